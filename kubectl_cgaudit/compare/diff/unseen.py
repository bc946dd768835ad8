"""What an audit did not see: nodes that may be there all the same, and nodes with pods or root cgroups that it does not count."""

from collections.abc import Iterable

from kubectl_cgaudit.audit import unanswered
from kubectl_cgaudit.audit.model import GapRecord

# "kubelet of" a node as the earliest audits have it.
_NEITHER = (unanswered.KIND, "kubelet of ", "RuntimeClass not read")
_NODES = ("node not read", "node without CPU", "Node that cannot be read")
_SHARES = ("node without kubepods", "node without system.slice", "node with another PodLevelResources")
_PODS = ("pods", "namespace whose pods were not read")
_ON = "Pod that cannot be read on "
_OTHERS = " that cannot be read"


class Unseen:
    """What the gaps of an audit leave open. A gap that is none of those named above may hide anything."""

    def __init__(self, gaps: Iterable[GapRecord]) -> None:
        self._nodes: set[str] = set()
        self._shares: set[str] = set()
        self._any_node = self._any_share = False
        for gap in gaps:
            name = gap.kind or gap.what
            if name in _NODES:
                self._nodes |= {*gap.members}
            elif name in _SHARES:
                self._shares |= {*gap.members}
            elif name.startswith(_ON):
                self._shares.add(name.removeprefix(_ON))
            elif name.startswith(_PODS) or name == f"Pod{_OTHERS}":
                self._any_share = True
            elif not name.startswith(_NEITHER) and not name.endswith(_OTHERS):
                self._any_node = self._any_share = True

    def node(self, name: str) -> bool:
        """Whether a node of this name may be there, unread."""
        return self._any_node or name in self._nodes

    def shares(self, node: str) -> bool:
        """Whether something competes on this node, or may, that the audit does not count."""
        return self._any_share or node in self._shares
