"""What the runtime handlers' features say.

A handler without user namespaces is older than runc 1.2, so it is no quadratic runc or crun; it may be Kata, or any youki.
Source: containerd and CRI-O `RuntimeHandlerFeatures`; runc 1.1.15 reports false, runc 1.3.6 and crun 1.21 true. containerd asks
for ID-mapped mounts too (`supportsCRIUserns`), which youki says it has not (`commands/features.rs`), whatever its formula. And it
looks into shims of runc's kind only: of another it says nothing, which a kubelet shows as false too. So of a handler whose name
speaks of no runtime it is a hint.
"""

from collections.abc import Iterator

from kubectl_cgaudit.collect.model import Node
from kubectl_cgaudit.detect.evidence import NOT_QUADRATIC, Confidence, Evidence
from kubectl_cgaudit.detect.runtime import ALWAYS, named_by
from kubectl_cgaudit.detect.state import DEFAULT_HANDLER


def evidence(node: Node) -> Iterator[Evidence]:
    """One piece for every handler that cannot be quadratic."""
    for handler in node.handlers:
        if handler.user_namespaces is False:
            name = handler.name or DEFAULT_HANDLER
            spoken = named_by(name)
            if spoken == "youki":
                continue
            always = spoken in ALWAYS
            value = spoken if spoken and always else NOT_QUADRATIC
            saw = "userNamespaces is false" + (f", and the handler's name speaks of {spoken}" if always else "")
            sure: Confidence = "likely" if spoken or name == DEFAULT_HANDLER else "hint"
            yield Evidence(f"runtime:{name}", value, sure, "node.status.runtimeHandlers", saw)
