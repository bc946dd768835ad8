"""What the runtime handlers' features say.

A handler without user namespaces is older than runc 1.2, so it is no quadratic runc or crun; it may be Kata.
Source: containerd and CRI-O `RuntimeHandlerFeatures`; runc 1.1.15 reports false, runc 1.3.6 and crun 1.21 true.
"""

from collections.abc import Iterator

from kubectl_cgaudit.collect.model import Node
from kubectl_cgaudit.detect.evidence import NOT_QUADRATIC, Evidence
from kubectl_cgaudit.detect.state import DEFAULT_HANDLER


def evidence(node: Node) -> Iterator[Evidence]:
    """One piece for every handler that cannot be quadratic."""
    for handler in node.handlers:
        if handler.user_namespaces is False:
            name = handler.name or DEFAULT_HANDLER
            yield Evidence(
                f"runtime:{name}", NOT_QUADRATIC, "likely", "node.status.runtimeHandlers", "userNamespaces is false"
            )
