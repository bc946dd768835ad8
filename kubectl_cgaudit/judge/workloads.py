"""What the migration changes for every container, pod and workload."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Literal

from kubectl_cgaudit.cgroups.version import refuses_v1
from kubectl_cgaudit.collect.model import Cluster, Owner, Pod
from kubectl_cgaudit.collect.owners import workload
from kubectl_cgaudit.detect.handlers import handler
from kubectl_cgaudit.judge.audit import (
    EFFECTS,
    CaseChange,
    Change,
    Confidence,
    ContainerAudit,
    Effect,
    Moment,
    NominalChange,
    PodAudit,
    Span,
    WorkloadAudit,
)
from kubectl_cgaudit.judge.compare import Comparison, PodCase
from kubectl_cgaudit.judge.confidence import of_handlers, taken_for_granted, weakest
from kubectl_cgaudit.judge.thresholds import Thresholds
from kubectl_cgaudit.predict.quota import cannot_start
from kubectl_cgaudit.predict.tree import Cgroup

Key = tuple[str, Owner]
_DIGITS = 9


def judge(cluster: Cluster, comparisons: Sequence[Comparison], thresholds: Thresholds) -> tuple[WorkloadAudit, ...]:
    """Every selected workload with an active pod on a node that has or should have cgroups, the worst first."""
    pods: dict[Key, list[PodAudit]] = defaultdict(list)
    unpredicted: dict[Key, int] = defaultdict(int)
    judged = set()
    for comparison in comparisons:
        for pod, cases in comparison.pods():
            judged.add((pod.namespace, pod.name))
            if pod.selected:
                used = handler(pod, cluster)
                sure = of_handlers(comparison.state, [used])
                taken = taken_for_granted(comparison.state, used)
                found = _pod(pod, used, sure, taken, comparison.node.name, cases, thresholds)
                pods[key(pod, cluster)].append(found)
    apart = {node.name for node in cluster.nodes if node.kind in ("windows", "virtual")}
    for pod in cluster.pods:
        if pod.selected and _should_be_judged(pod, apart) and (pod.namespace, pod.name) not in judged:
            unpredicted[key(pod, cluster)] += 1
    keys = sorted(set(pods) | set(unpredicted))
    return tuple(sorted((_workload(k, pods.get(k, []), unpredicted.get(k, 0)) for k in keys), key=_badness))


def key(pod: Pod, cluster: Cluster) -> Key:
    """What a pod's workload is known by: its namespace and its top owner."""
    return pod.namespace, workload(pod, cluster)


def _should_be_judged(pod: Pod, apart: set[str]) -> bool:
    return pod.node is not None and not pod.finished and pod.node not in apart


def _pod(
    pod: Pod,
    used: str,
    sure: Confidence,
    taken: Sequence[str],
    node: str,
    cases: tuple[PodCase, ...],
    thresholds: Thresholds,
) -> PodAudit:
    containers = []
    for index, (container, _) in enumerate(cases[0].before.containers):
        changes = tuple(
            _change(case, case.before.containers[index][1], case.after.containers[index][1]) for case in cases
        )
        containers.append(
            ContainerAudit(container.name, container.role, container.request_milli, container.limit_milli, changes)
        )
    pod_changes = tuple(_change(case, case.before.cgroup, case.after.cgroup) for case in cases)
    effects = _effects(
        [
            _case_effects(pod_changes[index], [c.cases[index] for c in containers], thresholds)
            | _stops(pod, used, case, surely=not taken)
            for index, case in enumerate(cases)
        ]
    )
    return PodAudit(pod.name, node, pod.qos, used, sure, effects, pod_changes, tuple(containers))


def _change(case: PodCase, before: Cgroup, after: Cgroup) -> CaseChange:
    return CaseChange(
        case.case.when,
        _moment(case, before, case.before.cgroup, after=False),
        _moment(case, after, case.after.cgroup, after=True),
    )


def _moment(case: PodCase, cgroup: Cgroup, pod: Cgroup, *, after: bool) -> Moment:
    in_pod = None
    if cgroup.level == "container" and cgroup.share is not None and pod.share:
        in_pod = cgroup.share / pod.share
    return Moment(
        version=cgroup.version,
        value=cgroup.value,
        nominal_ratio=_rounded(cgroup.nominal_ratio),
        share=_rounded(cgroup.share),
        against_system=_rounded(case.against_system(cgroup, after=after)),
        in_pod=_rounded(in_pod),
        quota_us=cgroup.quota_us,
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)


def relative(before: float | None, after: float | None) -> float | None:
    """After / before - 1; None where there is nothing to compare."""
    return after / before - 1 if before and after is not None else None


def _case_effects(pod: CaseChange, containers: Iterable[CaseChange], thresholds: Thresholds) -> set[Effect]:
    effects: set[Effect] = set()
    system = relative(pod.before.against_system, pod.after.against_system) or 0.0
    if system <= -thresholds.system_loss:
        effects.add("loses")
    elif system >= thresholds.system_gain:
        effects.add("gains")
    for container in containers:
        if (relative(container.before.in_pod, container.after.in_pod) or 0.0) <= -thresholds.pod_move:
            effects.add("moves")
        if container.before.nominal_ratio != container.after.nominal_ratio:
            effects.add("nominal")
    return effects


def _stops(pod: Pod, used: str, case: PodCase, *, surely: bool) -> set[Effect]:
    """Whether the pod does not run after the move: its node does not come back, or a container does not start.

    What is taken for granted of the runtime makes the second unknown.
    """
    now, then = case.case.now, case.case.then
    lost = then.cgroup == "v1" and refuses_v1(then.kubelet_version) and not refuses_v1(now.kubelet_version)
    fails = any(cannot_start(pod, container, then, used) for container in pod.containers)
    if lost or (fails and surely):
        return {"stops"}
    return {"unknown"} if fails else set()


def _effects(cases: Sequence[set[Effect]]) -> tuple[Effect, ...]:
    """What holds in every case; a change of CPU that holds only in some is unknown, never left out."""
    sure = set.intersection(*cases)
    open_ = set.union(*cases) - sure
    found = set(sure)
    if open_ & {"stops", "unknown", "loses", "gains", "moves"}:
        found.add("unknown")
    if "nominal" in open_:
        found.add("nominal")
    return tuple(effect for effect in EFFECTS if effect in found)


def _workload(k: Key, pods: list[PodAudit], unpredicted: int) -> WorkloadAudit:
    namespace, owner = k
    effects = set(chain.from_iterable(pod.effects for pod in pods)) | ({"unknown"} if unpredicted else set())
    system = sorted(_changes(pods, lambda moment: moment.against_system, of_pods=True), key=_by_change)
    inside = sorted(_changes(pods, lambda moment: moment.in_pod, of_pods=False), key=_by_change)
    shares = sorted(_changes(pods, lambda moment: moment.share, of_pods=True), key=_by_change)
    return WorkloadAudit(
        kind=owner.kind,
        namespace=namespace,
        name=owner.name,
        effects=tuple(effect for effect in EFFECTS if effect in effects),
        confidence="unknown" if unpredicted else weakest(pod.confidence for pod in pods),
        pod_count=len(pods),
        unpredicted_pods=unpredicted,
        share=max(shares, key=lambda change: abs(change.change)) if shares else None,
        against_system=system[0] if system else None,
        against_system_best=system[-1] if system else None,
        inside_pod=inside[0] if inside else None,
        nominal=_nominal(pods),
        pods=tuple(pods),
    )


def _by_change(change: Change) -> tuple[float, str, str]:
    return change.change, change.pod, change.when


def _changes(pods: Iterable[PodAudit], read: Callable[[Moment], float | None], *, of_pods: bool) -> Iterable[Change]:
    for pod in pods:
        parts: list[tuple[str | None, tuple[CaseChange, ...]]] = (
            [(None, pod.cases)] if of_pods else [(container.name, container.cases) for container in pod.containers]
        )
        for name, cases in parts:
            for case in cases:
                before, after = read(case.before), read(case.after)
                change = relative(before, after)
                if change is not None and before is not None and after is not None:
                    yield Change(pod.name, name, pod.node, case.when, before, after, round(change, _DIGITS))


def _nominal(pods: Iterable[PodAudit]) -> tuple[NominalChange, ...]:
    same_units: dict[tuple[str, str, str], list[CaseChange]] = defaultdict(list)
    for pod in pods:
        for container in pod.containers:
            for case in container.cases:
                if case.before.value is not None and case.after.value is not None:
                    same_units[container.name, case.before.version, case.after.version].append(case)
    return tuple(
        NominalChange(
            container=name,
            before=_span([case.before.value or 0 for case in cases]),
            after=_span([case.after.value or 0 for case in cases]),
            ratio_before=_span([case.before.nominal_ratio or 0 for case in cases]),
            ratio_after=_span([case.after.nominal_ratio or 0 for case in cases]),
            before_unit=_unit(before),
            after_unit=_unit(after),
        )
        for (name, before, after), cases in same_units.items()
    )


def _span(values: Sequence[float]) -> Span:
    return Span(float(min(values)), float(max(values)))


def _unit(version: str) -> Literal["shares", "weight"]:
    return "shares" if version == "v1" else "weight"


def _badness(audit: WorkloadAudit) -> tuple[int, float, float, str, str, str]:
    system = audit.against_system.change if audit.against_system else 0.0
    inside = audit.inside_pod.change if audit.inside_pod else 0.0
    return EFFECTS.index(audit.effect), system, inside, audit.namespace, audit.name, audit.kind
