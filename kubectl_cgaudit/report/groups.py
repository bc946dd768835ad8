"""Nodes that run the same and change the same, so that five thousand of them read like five."""

from collections.abc import Iterable, Sequence
from hashlib import sha256

import msgspec
from msgspec import Struct

from kubectl_cgaudit.judge.audit import CONFIDENCES, NodeAudit, NodeMoment


class NodeGroup(Struct, frozen=True):
    """Equal nodes, at least one."""

    nodes: tuple[NodeAudit, ...]

    @property
    def node(self) -> NodeAudit:
        """One that speaks for all."""
        return self.nodes[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(node.name for node in self.nodes)

    @property
    def pod_count(self) -> int:
        """Pods on all of them."""
        return sum(node.pod_count for node in self.nodes)

    @property
    def hints(self) -> tuple[str, ...]:
        """The different hints on all of them: those of one may speak of a system that another does not run."""
        return tuple(dict.fromkeys(hint for node in self.nodes for hint in node.hints))

    def distinct(self, field: str) -> tuple[str, ...]:
        """The different values of a field in which the nodes may differ: `os_image`, `kernel`."""
        return tuple(sorted({str(getattr(node, field)) for node in self.nodes}))


def grouped(nodes: Iterable[NodeAudit]) -> list[NodeGroup]:
    """The groups: least surely known first, then those whose pods lose most against the system, then by name."""
    found: dict[bytes, list[NodeAudit]] = {}
    for node in nodes:
        found.setdefault(_face(node), []).append(node)
    return sorted((NodeGroup(tuple(members)) for members in found.values()), key=_badness)


def _face(node: NodeAudit) -> bytes:
    """What equal nodes have in common; its digest, as what it is of would fill the memory."""
    known = tuple((what, each.value, each.confidence) for what, each in node.known.items())
    cases = tuple((case.when, _root(case.before), _root(case.after), case.stops) for case in node.cases)
    face = node.kubelet_version, node.container_runtime, node.allocatable_milli, node.confidence, known, cases
    return sha256(msgspec.json.encode(face)).digest()


def _root(moment: NodeMoment) -> object:
    runtimes = tuple(moment.runtimes.items())
    return moment.cgroup, moment.kubepods, moment.system_slice, moment.pods_share, moment.kubelet, runtimes


def _badness(group: NodeGroup) -> tuple[int, float, Sequence[str]]:
    changes = [
        0.0 if case.stops else case.after.pods_per_system / case.before.pods_per_system for case in group.node.cases
    ]
    return -CONFIDENCES.index(group.node.confidence), min(changes, default=1.0), group.names
