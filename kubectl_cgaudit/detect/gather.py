"""All evidence of a node: from the Node, its pods, events, and its kubelet if that was asked."""

from collections.abc import Iterator, Sequence

from kubectl_cgaudit.cgroups.version import KubeletVersion
from kubectl_cgaudit.collect.model import Cluster, Node
from kubectl_cgaudit.detect import catalogue, features, measured, readback, reading, warning
from kubectl_cgaudit.detect.evidence import Evidence
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.measured import WeighedContainer
from kubectl_cgaudit.detect.state import CgroupVersion


def evidence(node: Node, placed: Sequence[PlacedPod], cluster: Cluster) -> Iterator[Evidence]:
    """Every piece but the kubelet's answers, in the order of its source."""
    by_platform = tuple(catalogue.evidence(node))
    if not any(piece.about == "accepts" for piece in by_platform):
        yield from reading.evidence(node)
    yield from by_platform
    yield from features.evidence(node, (handler for _, handler in placed))
    warned = (cluster.cgroup_v1_warnings or {}).get(node.name)
    if warned is not None:
        yield warning.evidence(node, warned)
    yield from readback.evidence(pod for pod, _ in placed)


def measurement(
    node: Node, placed: Sequence[PlacedPod], cluster: Cluster, known: CgroupVersion | None
) -> Iterator[Evidence]:
    """What the node's kubelet answered. `known` is the cgroup version that everything else says."""
    answers = (cluster.kubelets or {}).get(node.name)
    if answers:
        yield from measured.evidence(answers, placed, KubeletVersion.parse(node.kubelet_version), known)


def containers(
    node: Node, placed: Sequence[PlacedPod], cluster: Cluster, version: CgroupVersion | None
) -> list[WeighedContainer]:
    """The node's running containers whose measured weight decides their formula."""
    answers = (cluster.kubelets or {}).get(node.name)
    if answers is None or version != "v2":
        return []
    return measured.container_formulas(answers, placed, KubeletVersion.parse(node.kubelet_version))
