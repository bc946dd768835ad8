"""A pod before and after, as the audit shows it."""

from array import array
from collections.abc import Iterable, Sequence
from typing import overload

from kubectl_cgaudit.cgroups.version import refuses_v1
from kubectl_cgaudit.collect.model import Pod
from kubectl_cgaudit.judge.audit import (
    EFFECTS,
    CaseChange,
    ContainerAudit,
    Effect,
    Moment,
    PodAudit,
)
from kubectl_cgaudit.judge.compare import Comparison, PodCase
from kubectl_cgaudit.judge.confidence import of_handlers, taken_for_granted
from kubectl_cgaudit.judge.thresholds import Thresholds
from kubectl_cgaudit.predict.quota import cannot_start
from kubectl_cgaudit.predict.tree import Cgroup

DIGITS = 9
_BITS = 32


def audited(comparison: Comparison, index: int, thresholds: Thresholds) -> PodAudit:
    """The pod of a node, by its place among the node's pods."""
    pod, used = comparison.placed[index]
    cases = comparison.pod(index)
    containers = [
        ContainerAudit(
            container.name,
            container.role,
            container.request_milli,
            container.limit_milli,
            tuple(_change(case, case.before.containers[place][1], case.after.containers[place][1]) for case in cases),
        )
        for place, (container, _) in enumerate(cases[0].before.containers)
    ]
    changes = tuple(_change(case, case.before.cgroup, case.after.cgroup) for case in cases)
    surely = not taken_for_granted(comparison.state, used)
    found = [
        by_share(system_change(changes[place]), thresholds)
        | inside([each.cases[place] for each in containers], thresholds)
        | stops(pod, used, case, surely=surely)
        for place, case in enumerate(cases)
    ]
    sure = of_handlers(comparison.state, [used])
    return PodAudit(pod.name, comparison.node.name, pod.qos, used, sure, effects(found), changes, tuple(containers))


def _change(case: PodCase, before: Cgroup, after: Cgroup) -> CaseChange:
    return CaseChange(
        case.case.when,
        _moment(case, before, after=False),
        _moment(case, after, after=True),
    )


def _moment(case: PodCase, cgroup: Cgroup, *, after: bool) -> Moment:
    in_pod = case.in_pod(cgroup, after=after) if cgroup.level == "container" else None
    return Moment(
        version=cgroup.version,
        value=cgroup.value,
        nominal_ratio=rounded(cgroup.nominal_ratio),
        share=rounded(cgroup.share),
        against_system=rounded(case.against_system(cgroup, after=after)),
        in_pod=rounded(in_pod),
        quota_us=cgroup.quota_us,
    )


def rounded(value: float | None) -> float | None:
    """A number as the audit shows it."""
    return None if value is None else round(value, DIGITS)


def relative(before: float | None, after: float | None) -> float | None:
    """After / before - 1; None where there is nothing to compare."""
    return after / before - 1 if before and after is not None else None


def system_change(pod: CaseChange) -> float | None:
    """How much a pod gains or loses against the system."""
    return relative(pod.before.against_system, pod.after.against_system)


def by_share(change: float | None, thresholds: Thresholds) -> set[Effect]:
    """What a change against the system comes to."""
    if (change or 0.0) <= -thresholds.system_loss:
        return {"loses"}
    return {"gains"} if (change or 0.0) >= thresholds.system_gain else set()


def inside(containers: Iterable[CaseChange], thresholds: Thresholds) -> set[Effect]:
    """What changes between the containers of a pod, and in their numbers."""
    found: set[Effect] = set()
    for container in containers:
        if (relative(container.before.in_pod, container.after.in_pod) or 0.0) <= -thresholds.pod_move:
            found.add("moves")
        if container.before.nominal_ratio != container.after.nominal_ratio:
            found.add("nominal")
    return found


def stops(pod: Pod, used: str, case: PodCase, *, surely: bool) -> set[Effect]:
    """Whether the pod does not run after the move: its node does not come back, or a container does not start.

    What is taken for granted of the runtime makes the second unknown.
    """
    now, then = case.case.now, case.case.then
    lost = then.cgroup == "v1" and refuses_v1(then.kubelet_version) and not refuses_v1(now.kubelet_version)
    fails = any(cannot_start(pod, container, then, used) for container in pod.containers)
    if lost or (fails and surely):
        return {"stops"}
    return {"unknown"} if fails else set()


def effects(cases: Sequence[set[Effect]]) -> tuple[Effect, ...]:
    """What holds in every case; a change of CPU that holds only in some is unknown, never left out."""
    sure = set.intersection(*cases)
    open_ = set.union(*cases) - sure
    found = set(sure)
    if open_ & {"stops", "unknown", "loses", "gains", "moves"}:
        found.add("unknown")
    if "nominal" in open_:
        found.add("nominal")
    return tuple(effect for effect in EFFECTS if effect in found)


class Pods(Sequence[PodAudit]):
    """Pods of a workload, each made when it is asked for: all of a large cluster's would fill the memory."""

    def __init__(self, comparisons: Sequence[Comparison], thresholds: Thresholds) -> None:
        self._comparisons = comparisons
        self._thresholds = thresholds
        self._places = array("Q")

    def add(self, node: int, index: int) -> None:
        """Take in a pod: the place of its node among the comparisons, and its own on the node."""
        self._places.append(node << _BITS | index)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> PodAudit: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PodAudit]: ...
    def __getitem__(self, index: int | slice) -> PodAudit | Sequence[PodAudit]:
        if isinstance(index, slice):
            return tuple(self[each] for each in range(*index.indices(len(self))))
        node, place = self._where(self._places[index])
        return audited(self._comparisons[node], place, self._thresholds)

    def named(self, name: str) -> PodAudit | None:
        """The pod of that name, without making the others."""
        for each in self._places:
            node, place = self._where(each)
            if self._comparisons[node].placed[place][0].name == name:
                return audited(self._comparisons[node], place, self._thresholds)
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    @staticmethod
    def _where(place: int) -> tuple[int, int]:
        return place >> _BITS, place & ((1 << _BITS) - 1)


def named(pods: Sequence[PodAudit], name: str) -> PodAudit | None:
    """The pod of that name."""
    if isinstance(pods, Pods):
        return pods.named(name)
    return next((pod for pod in pods if pod.name == name), None)
