"""What the runtime handlers' names and features say.

A handler without user namespaces is older than runc 1.2, so it is no quadratic runc or crun; it may be Kata, or any youki.
Source: containerd and CRI-O `RuntimeHandlerFeatures`; runc 1.1.15 reports false, runc 1.3.6 and crun 1.21 true. containerd asks
for ID-mapped mounts too (`supportsCRIUserns`), which youki says it has not (`commands/features.rs`), whatever its formula. And it
looks into shims of runc's kind only: of another it says nothing, which a kubelet shows as false too. So of a handler whose name
speaks of no runtime it is a hint. Docker's nodes show false whatever they run (Mirantis/cri-dockerd core/, `getRuntimeHandlers`,
PR #370): there it proves nothing.

Kata and gVisor set no weight of containers, whichever version they are, and sysbox only ever a linear one: their name is enough.
"""

from collections.abc import Iterable, Iterator

from kubectl_cgaudit.collect.model import Node
from kubectl_cgaudit.detect.evidence import NOT_QUADRATIC, Evidence, Strength
from kubectl_cgaudit.detect.runtime import ALWAYS, named_by
from kubectl_cgaudit.detect.state import DEFAULT_HANDLER

BY_NAME = "handler's name"
"""A source: what the handler is called."""
_DOCKER = "docker://"


def evidence(node: Node, used: Iterable[str]) -> Iterator[Evidence]:
    """Yield one piece for every handler, of those reported and those `used`, whose formula its name or features settle."""
    without = {
        handler.name or DEFAULT_HANDLER
        for handler in node.handlers
        if handler.user_namespaces is False and not node.runtime_version.startswith(_DOCKER)
    }
    for name in sorted(without.union(used, (handler.name or DEFAULT_HANDLER for handler in node.handlers))):
        spoken = named_by(name)
        about = f"runtime:{name}"
        if spoken in ALWAYS:
            yield Evidence(about, spoken, "likely", BY_NAME, f"the handler {name} runs {spoken} by its name")
        elif name in without and spoken != "youki":
            sure: Strength = "likely" if spoken or name == DEFAULT_HANDLER else "hint"
            saw = "userNamespaces is false"
            yield Evidence(about, NOT_QUADRATIC, sure, "node.status.runtimeHandlers", saw, "", "kubelet", ("handlers",))
