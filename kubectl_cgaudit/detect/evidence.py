"""A piece of evidence: what was seen where, what it says of a node, and how surely."""

from typing import Literal

from msgspec import Struct

Confidence = Literal["certain", "likely", "hint", "assumed", "unknown"]
"""certain: measured. likely: a verified rule. hint: a default or recommendation. assumed: the states file says so."""

NOT_QUADRATIC = "not quadratic"
CONFIGZ = "kubelet /configz"
"""A source: what a kubelet says of its configuration."""
RESERVED = "reserved:"
"""Before the name of a top-level cgroup whose reserve, in shares, waits for the cgroup version."""


class Evidence(Struct, frozen=True):
    """One thing said of a node.

    `about` is `cgroup`, `driver`, `kubelet`, `system_slice`, `root:<name>`, `reserved:<name>`, `reserves`, `kubepods`,
    `quota`, `period` or `runtime:<handler>`. `value` is `v1` or `v2`, `systemd` or `cgroupfs`, a formula, a number, or a
    word of the kubelet's configuration; of a runtime it is `linear`, `quadratic`, `none` (it sets no weight),
    `not quadratic`, or a name with its version such as `runc 1.3.6`.
    """

    about: str
    value: str
    confidence: Confidence
    source: str
    """Where it was seen: `node.status.runtimeHandlers`, `platform rule k3s`, `kubelet /configz`."""
    saw: str
    """What was seen there, in words."""
