"""All evidence of a node: from the Node, its pods, events, and its kubelet if that was asked."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from kubectl_cgaudit.cgroups.version import KubeletVersion
from kubectl_cgaudit.collect.model import Cluster, KubeletAnswers, Node, Pod
from kubectl_cgaudit.detect import catalogue, features, measured, readback, reading
from kubectl_cgaudit.detect.evidence import Evidence
from kubectl_cgaudit.detect.measured import ContainerFormula
from kubectl_cgaudit.detect.state import Leftover

PlacedPod = tuple[Pod, str]


def evidence(node: Node, placed: Sequence[PlacedPod], cluster: Cluster) -> Iterator[Evidence]:
    """Every piece, in the order of its source."""
    yield from reading.evidence(node)
    yield from catalogue.evidence(node)
    yield from features.evidence(node)
    if cluster.cgroup_v1_nodes and node.name in cluster.cgroup_v1_nodes:
        saw = "the kubelet warned of cgroup v1 at its last start"
        yield Evidence("cgroup", "v1", "likely", "Event CgroupV1", saw)
    yield from readback.evidence(pod for pod, _ in placed)
    answers = (cluster.kubelets or {}).get(node.name)
    if answers:
        yield from measured.evidence(answers, placed, KubeletVersion.parse(node.kubelet_version))


def leftovers(node: Node, placed: Sequence[PlacedPod], cluster: Cluster) -> tuple[Leftover, ...]:
    """The running containers whose measured weight is not what their handler writes now."""
    answers = (cluster.kubelets or {}).get(node.name)
    if answers is None:
        return ()
    by_handler: dict[str, list[ContainerFormula]] = defaultdict(list)
    for each in _decided(answers, placed, KubeletVersion.parse(node.kubelet_version)):
        by_handler[each.handler].append(each)
    return tuple(
        Leftover(each.namespace, each.pod, each.container, handler, each.weight, each.formula)
        for handler, members in sorted(by_handler.items())
        for each in members
        if each.formula != measured.current_formula(members)
    )


def _decided(
    answers: KubeletAnswers, placed: Sequence[PlacedPod], kubelet: KubeletVersion | None
) -> list[ContainerFormula]:
    driver = measured.driver(answers)
    if driver is None or answers.cgroup_version != "v2" or answers.stats_from_spec:
        return []
    return measured.container_formulas(answers, placed, driver, kubelet)
