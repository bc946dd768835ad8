"""Predicted against measured: every cgroup of the nodes whose kubelets answered."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kubectl_cgaudit.collect.model import Cluster, KubeletAnswers, Node
from kubectl_cgaudit.detect import measured
from kubectl_cgaudit.detect.handlers import PlacedPod, placed_pods
from kubectl_cgaudit.detect.settle import settle_as_told
from kubectl_cgaudit.detect.state import CgroupVersion, setups
from kubectl_cgaudit.detect.states import Rule
from kubectl_cgaudit.predict.tree import Cgroup, predict


class Difference(Struct, frozen=True, rename="camel"):
    """A cgroup whose measured value is not the predicted one. Values are shares on v1, weights on v2."""

    node: str
    level: str
    namespace: str | None
    pod: str | None
    container: str | None
    cgroup: str
    predicted: tuple[int, ...]
    """More than one where an open question allows several."""
    measured: int | None
    """None if what the kubelet shows is no weight."""


class Verification(Struct, frozen=True, rename="camel"):
    """What was compared, and what differs."""

    nodes: tuple[str, ...]
    """Those whose kubelet showed cgroups."""
    compared: int
    unmeasured: int
    """Predicted cgroups that the kubelet did not show: ended since, or not created yet. system.slice, which
    kubelets do not show unless they are told to, is not counted."""
    differences: tuple[Difference, ...]
    not_compared: dict[str, tuple[str, ...]]
    """Nodes that could not be compared, and why."""


def verify(cluster: Cluster, rules: tuple[Rule, ...]) -> Verification:
    """Compare all nodes. Raises UsageError when the states file does not fit one of them."""
    placed = placed_pods(cluster)
    nodes, compared, unmeasured = [], 0, 0
    differences: list[Difference] = []
    for node in cluster.nodes:
        answers = (cluster.kubelets or {}).get(node.name)
        if node.kind != "linux" or answers is None or not measured.usable(answers):
            continue
        nodes.append(node.name)
        here = placed.get(node.name, ())
        resizing = {(pod.namespace, pod.name) for pod, _ in here if pod.resizing}
        for same in _predicted(node, here, cluster, rules):
            found = None if (same[0].namespace, same[0].pod) in resizing else _shown(answers, same[0])
            if found is None:
                unmeasured += same[0].path is not None and same[0].level != "root"
                continue
            compared += 1
            difference = _difference(node.name, same, found, answers.cgroup_version)
            if difference:
                differences.append(difference)
    return Verification(tuple(nodes), compared, unmeasured, tuple(differences), _not_compared(cluster, nodes))


def _not_compared(cluster: Cluster, compared: Sequence[str]) -> dict[str, tuple[str, ...]]:
    answers = cluster.kubelets or {}
    reasons = {node.name: answers[node.name].problems if node.name in answers else () for node in cluster.nodes}
    apart = {node.name: (f"it is a {node.kind} node",) for node in cluster.nodes if node.kind != "linux"}
    left = {name: apart.get(name) or why for name, why in reasons.items() if name not in compared}
    return {name: why or ("it showed no cgroups",) for name, why in left.items()}


def _predicted(
    node: Node, placed: Sequence[PlacedPod], cluster: Cluster, rules: tuple[Rule, ...]
) -> Iterator[tuple[Cgroup, ...]]:
    """Each cgroup in every case; what the states file says has the last word, so that a wrong one shows."""
    state = settle_as_told(node, placed, cluster, rules)
    trees = [predict(node, placed, setup) for _, setup in setups(state, {used for _, used in placed})]
    return zip(*(tree.cgroups() for tree in trees), strict=True)


def _shown(answers: KubeletAnswers, cgroup: Cgroup) -> int | None:
    if cgroup.path is None:
        return None
    # crun's container lies one cgroup below its scope; both carry the weight.
    return answers.shares.get(cgroup.path, answers.shares.get(f"{cgroup.path}/container"))


def _difference(node: str, same: Sequence[Cgroup], shown: int, version: CgroupVersion | None) -> Difference | None:
    first = same[0]
    fitting = [cgroup for cgroup in same if version is None or cgroup.version == version] or list(same)
    predicted = tuple(sorted({cgroup.value for cgroup in fitting if cgroup.value is not None}))
    if not predicted or any(_as_shown(cgroup, shown) == cgroup.value for cgroup in fitting):
        return None
    value = _as_shown(fitting[0], shown)
    return Difference(
        node, first.level, first.namespace, first.pod, first.container, first.path or "", predicted, value
    )


def _as_shown(cgroup: Cgroup, shown: int) -> int | None:
    """What a shown number of shares means for a cgroup: itself on v1, on v2 the weight it was made from."""
    return shown if cgroup.version == "v1" else measured.weight_of_shown(shown)
