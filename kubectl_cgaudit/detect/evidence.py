"""A piece of evidence: what was seen where, what it says of a node, and how strong it is."""

from typing import Literal

from msgspec import Struct

Strength = Literal["certain", "likely", "probable", "hint"]
"""certain: measured. likely: a verified rule. probable: a platform's default. hint: it points one way and settles nothing."""
Confidence = Literal["certain", "stated", "likely", "probable", "unknown"]
"""How sure an answer is. stated: the states file says so. probable: a default that may have been overridden."""
Side = Literal["boot", "host", "kubelet"]

NOT_QUADRATIC = "not quadratic"
CONFIGZ = "kubelet /configz"
"""A source: what a kubelet says of its configuration."""
RESERVED = "reserved:"
"""Before the name of a top-level cgroup whose reserve, in shares, waits for the cgroup version."""


class Evidence(Struct, frozen=True):
    """One thing said of a node.

    `about` is `cgroup`, `driver`, `kubelet`, `system_slice`, `root:<name>`, `reserved:<name>`, `reserves`, `kubepods`,
    `quota`, `period`, `runtime:<handler>`, or of a platform's row `host`, `accepts`, `reserve`, `burstable`, `pod-quota`,
    `conmon` or `inner`. `value` is `v1` or `v2`, `systemd` or `cgroupfs`, a formula, a number, the name of a rule, or a word
    of the kubelet's configuration; of a runtime it is `linear`, `quadratic`, `none` (it sets no weight), `not quadratic`, or
    a name with its version such as `runc 1.3.6`.
    """

    about: str
    value: str
    strength: Strength
    source: str
    """Where it was seen: `node.status.runtimeHandlers`, `platform rule k3s`, `kubelet /configz`."""
    saw: str
    """What was seen there, in words."""
    override: str = ""
    """Of a default: what may have made this node differ."""
    side: Side | None = None
    """Whether it is of what the node boots, or of the machine under it, if that is another one, or of what its kubelet accepts
    or shows: two of one side are not independent."""
    strings: tuple[str, ...] = ()
    """The node's strings that it was read from: two that share one are not independent either."""
