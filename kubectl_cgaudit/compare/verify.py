"""Predicted against measured: every cgroup of the nodes whose kubelets answered."""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.cgroups import paths
from kubectl_cgaudit.cgroups.paths import Driver
from kubectl_cgaudit.collect.model import Cluster, KubeletAnswers, Node
from kubectl_cgaudit.compare.causes import Cause, Causes, Same, What, cgroups, in_order, read
from kubectl_cgaudit.compare.cgroups import Cgroup, predicted_trees
from kubectl_cgaudit.detect import measured, shown
from kubectl_cgaudit.detect.configured import platform_reserve
from kubectl_cgaudit.detect.handlers import PlacedPod, handler, placed_pods
from kubectl_cgaudit.detect.measured import INNER
from kubectl_cgaudit.detect.settle import settle_as_told
from kubectl_cgaudit.detect.state import CgroupVersion, Setup, setups
from kubectl_cgaudit.detect.states import Rule


class Difference(Struct, frozen=True, rename="camel"):
    """A cgroup whose measured value is not the predicted one. Values are shares on v1, weights on v2, quotas microseconds."""

    node: str
    level: str
    namespace: str | None
    pod: str | None
    container: str | None
    cgroup: str
    predicted: tuple[int | None, ...]
    """More than one where an open question allows several, and none of them holds for most containers of the handler."""
    measured: int | None
    """None if what the kubelet shows is no weight; of a quota, if there is none."""
    what: What = "value"
    cause: Cause = "unknown"
    annotation: str = ""
    """The key of the annotation that is the cause."""


class Verification(Struct, frozen=True, rename="camel"):
    """What was compared, and what differs."""

    nodes: tuple[str, ...]
    """Those whose kubelet showed cgroups."""
    compared: int
    unmeasured: int
    """Predicted cgroups that the kubelet did not show: ended since, or not created yet. system.slice, which
    kubelets do not show unless they are told to, is not counted."""
    differences: tuple[Difference, ...]
    contradicted: dict[str, str]
    """Nodes on another cgroup version or driver than is predicted, which their kubelets say: no number is compared."""
    few_containers: dict[str, tuple[int, int]]
    """Nodes that showed fewer than half of their running containers: how many, and of how many. That these agree says
    little of the others, and their formula is the runtime's alone."""
    not_compared: dict[str, tuple[str, ...]]
    """Nodes that could not be compared, and why."""
    as_measured: tuple[str, ...] = ()
    """Nodes of which the measurement itself said the cgroup version or a runtime's formula: that these agree proves nothing."""
    late: tuple[str, ...] = ()
    """Nodes whose Burstable slice is not what its pods make it, but may still hold pods that have ended, or what one asked for
    before its resize. Kubelets write it anew once a minute: until then it proves nothing."""
    quotas: int = 0
    """Quotas that were compared."""
    explained: tuple[Difference, ...] = ()
    """Cgroups that are as predicted, but not as the spec alone makes them, which is what is `predicted` here."""
    conmon: dict[str, int] = {}
    """Scopes of CRI-O's conmon among the containers of each node's pods."""


class _OfNode(Struct):
    """The counts and differences of one node, while its cgroups go by."""

    compared: int = 0
    quotas: int = 0
    unmeasured: int = 0
    running: int = 0
    """Containers, without those of a pod in resize."""
    shown: int = 0
    """Of these."""
    differences: list[Difference] = []
    explained: list[Difference] = []
    late: bool = False


def verify(cluster: Cluster, rules: tuple[Rule, ...]) -> Verification:
    """Compare all nodes. Raises UsageError when the states file does not fit one of them."""
    placed, ended = placed_pods(cluster), _ended(cluster)
    as_measured = []
    found: dict[str, _OfNode] = {}
    contradicted: dict[str, str] = {}
    for node in cluster.nodes:
        answers = (cluster.kubelets or {}).get(node.name)
        if node.kind != "linux" or answers is None or answers.without_kubepods or not measured.usable(answers):
            continue
        here = placed.get(node.name, ())
        state = settle_as_told(node, here, cluster, rules)
        asked = ["cgroup", *(f"runtime:{used}" for used in {used for _, used in here})]
        if any(state.basis_of(about).confidence == "certain" for about in asked):
            as_measured.append(node.name)
        # What the states file says has the last word, so that a wrong one shows.
        reserve = platform_reserve(state.reserve, node)
        under = [answered.setup for answered in setups(state, {used for _, used in here}, reserve)]
        predicted = list(cgroups(node, here, under))
        versions = {setup.cgroup for setup in under}
        if answers.cgroup_version and answers.cgroup_version not in versions:
            contradicted[node.name] = f"cgroup {versions.pop()} is predicted, its kubelet says {answers.cgroup_version}"
        elif (driver := measured.driver(answers)) and not _named_as_by(driver, predicted):
            contradicted[node.name] = f"another cgroup driver is predicted, its cgroups are named as by {driver}"
        else:
            may_hold = partial(_may_hold, node, [*here, *ended[node.name]], under)
            found[node.name] = _compare(node, here, predicted, answers, Causes(node, here, under), may_hold)
    return Verification(
        nodes=tuple(found),
        compared=sum(each.compared for each in found.values()),
        unmeasured=sum(each.unmeasured for each in found.values()),
        differences=tuple(difference for each in found.values() for difference in each.differences),
        contradicted=contradicted,
        few_containers={
            name: (each.shown, each.running) for name, each in found.items() if each.shown * 2 < each.running
        },
        not_compared=_not_compared(cluster, {*found, *contradicted}),
        as_measured=tuple(name for name in as_measured if name in found),
        late=tuple(name for name, each in found.items() if each.late),
        quotas=sum(each.quotas for each in found.values()),
        explained=tuple(difference for each in found.values() for difference in each.explained),
        conmon={name: scopes for name in found if (scopes := measured.conmon_scopes((cluster.kubelets or {})[name]))},
    )


def _compare(
    node: Node,
    placed: Sequence[PlacedPod],
    predicted: Sequence[Same],
    answers: KubeletAnswers,
    causes: Causes,
    holds_ended: Callable[[Difference], bool],
) -> _OfNode:
    resizing = {(pod.namespace, pod.name) for pod, _ in placed if pod.resizing}
    others = _other_pods(predicted, answers)
    found = _OfNode()
    for same in _of_one_formula(predicted, placed, answers):
        first = same[0]
        in_resize = (first.namespace, first.pod) in resizing
        # The Burstable slice has the sum of the requests of pods that come and go.
        blurred = first.level == "qos" and others
        seen = None if in_resize or blurred else answers.shares.get(first.path or "")
        weighed = first.path is not None and any(cgroup.value is not None for cgroup in same)
        if first.level == "container" and weighed and not in_resize:
            found.running += 1
            found.shown += seen is not None or f"{first.path}{INNER}" in answers.shares
        if seen is None:
            # A container is shown by its scope, or by the cgroup that crun makes below.
            hidden = first.level in ("root", "inner") or f"{first.path}{INNER}" in answers.shares
            found.unmeasured += weighed and not hidden
            continue
        difference = _difference(node.name, same, seen, answers.cgroup_version, causes)
        if difference and (holds_ended(difference) or (first.level == "qos" and resizing)):
            found.late = True
            continue
        found.compared += 1
        if difference:
            _add(found.differences, difference)
        elif explained := _explained(node.name, same[0], "value", causes):
            _add(found.explained, explained)
        if answers.quotas is not None and first.level in ("pod", "container", "inner") and weighed:
            _compare_quota(node.name, same, answers, causes, found)
    return found


def _compare_quota(node: str, same: Same, answers: KubeletAnswers, causes: Causes, found: _OfNode) -> None:
    """Compare a quota; where a cgroup is shown and has none, no row shows it."""
    seen = shown.of_cgroup(answers, same[0].path, same[0].version).quota_us
    found.quotas += seen is not None or any(cgroup.quota_us is not None for cgroup in same)
    if seen not in {cgroup.quota_us for cgroup in same}:
        cause, key = causes.of_difference(same[0], seen, "quota")
        predicted = in_order({cgroup.quota_us for cgroup in same})
        _add(found.differences, _of(node, same[0], predicted, seen, "quota", cause, key))
    elif explained := _explained(node, same[0], "quota", causes):
        _add(found.explained, explained)


def _add(found: list[Difference], difference: Difference) -> None:
    """Add what is said of a cgroup; not of the one that crun makes below a scope, where the same is said of that."""
    of_scope = replace(difference, level="container", cgroup=difference.cgroup.removesuffix(INNER))
    if difference.level != "inner" or of_scope not in found:
        found.append(difference)


def _explained(node: str, cgroup: Cgroup, what: What, causes: Causes) -> Difference | None:
    """Return what makes a cgroup, which is as predicted, another than its spec does; None if nothing."""
    behind = causes.of_agreement(cgroup, what)
    if behind is None:
        return None
    cause, key, plain = behind
    return _of(node, cgroup, plain, read(cgroup, what), what, cause, key)


def _of(
    node: str,
    cgroup: Cgroup,
    predicted: tuple[int | None, ...],
    seen: int | None,
    what: What,
    cause: Cause,
    key: str,
) -> Difference:
    names = cgroup.namespace, cgroup.pod, cgroup.container
    return Difference(node, cgroup.level, *names, cgroup.path or "", predicted, seen, what, cause, key)


def _of_one_formula(predicted: Sequence[Same], placed: Sequence[PlacedPod], answers: KubeletAnswers) -> Iterator[Same]:
    """Yield the cgroups, each container in the case that most of its handler's agree with, if any do: a runtime has one formula,
    and not with each container the one that suits it.
    """
    handlers: dict[tuple[str | None, str | None], str] = {(pod.namespace, pod.name): used for pod, used in placed}
    agreeing: dict[str, Counter[int]] = defaultdict(Counter)
    for same in predicted:
        first = same[0]
        seen = answers.shares.get(first.path or "") if first.container else None
        if seen is not None:
            cases = (case for case, cgroup in enumerate(same) if _agrees(cgroup, seen, answers.cgroup_version))
            agreeing[handlers[first.namespace, first.pod]].update(cases)
    held = {used: max(sorted(cases), key=cases.__getitem__) for used, cases in agreeing.items() if cases}
    for same in predicted:
        first = same[0]
        case = held.get(handlers[first.namespace, first.pod]) if first.container else None
        yield same if case is None else (same[case],)


def _ended(cluster: Cluster) -> dict[str, list[PlacedPod]]:
    """The pods of each node that are listed still and have ended."""
    found: dict[str, list[PlacedPod]] = defaultdict(list)
    for pod in cluster.pods:
        if pod.node and pod.finished:
            found[pod.node].append((pod, handler(pod.runtime_class, cluster)))
    return found


def _may_hold(node: Node, pods: Sequence[PlacedPod], under: Sequence[Setup], difference: Difference) -> bool:
    """Whether a slice is greater than is predicted, and no greater than these pods make it."""
    if difference.level != "qos" or (difference.measured or 0) < max(value or 0 for value in difference.predicted):
        return False
    slices = [tree.burstable for tree in predicted_trees(node, pods, under)]
    return any(each.path == difference.cgroup and (difference.measured or 0) <= (each.value or 0) for each in slices)


def _named_as_by(driver: Driver, predicted: Sequence[Same]) -> bool:
    return any(same[0].path == paths.kubepods(driver) for same in predicted if same[0].level == "kubepods")


def _other_pods(predicted: Sequence[Same], answers: KubeletAnswers) -> bool:
    """Whether the kubelet shows other pods than are listed: one has come or gone in between."""
    slices = {same[0].path for same in predicted if same[0].level == "qos"}
    listed = {same[0].path for same in predicted if same[0].level == "pod"}
    there = {path for path in answers.shares if path.rpartition("/")[0] in slices}
    return there != {path for path in listed if path and path.rpartition("/")[0] in slices}


def _not_compared(cluster: Cluster, compared: Container[str]) -> dict[str, tuple[str, ...]]:
    answers = cluster.kubelets or {}
    left = [node for node in cluster.nodes if node.name not in compared]
    return {node.name: _why_not(node, answers.get(node.name)) for node in left}


def _why_not(node: Node, answers: KubeletAnswers | None) -> tuple[str, ...]:
    if node.kind != "linux":
        return (f"it is a {node.kind} node",)
    if answers and answers.without_kubepods:
        return ("its kubelet makes no kubepods tree (cgroupsPerQOS is false)",)
    return (answers.problems if answers else ()) or ("it showed no cgroups",)


def _difference(node: str, same: Same, seen: int, version: CgroupVersion | None, causes: Causes) -> Difference | None:
    fitting = [cgroup for cgroup in same if version in (None, cgroup.version)]
    predicted = tuple(sorted({cgroup.value for cgroup in fitting if cgroup.value is not None}))
    if not predicted or any(_agrees(cgroup, seen, version) for cgroup in fitting):
        return None
    value = _as_shown(fitting[0], seen)
    return _of(node, same[0], predicted, value, "value", *causes.of_difference(fitting[0], value, "value"))


def _agrees(cgroup: Cgroup, seen: int, version: CgroupVersion | None) -> bool:
    """Whether a shown number of shares is what is predicted, where the version fits that of the node."""
    return version in (None, cgroup.version) and cgroup.value is not None and _as_shown(cgroup, seen) == cgroup.value


def _as_shown(cgroup: Cgroup, seen: int) -> int | None:
    """What a shown number of shares means for a cgroup: itself on v1, on v2 the weight it was made from."""
    return seen if cgroup.version == "v1" else measured.weight_of_shown(seen)
