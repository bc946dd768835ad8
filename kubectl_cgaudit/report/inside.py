"""Where CPU moves between the containers of a pod: each container's part, now and after."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.detect.state import unit_of
from kubectl_cgaudit.judge.audit import Audit, ContainerAudit, WorkloadAudit
from kubectl_cgaudit.judge.source import named
from kubectl_cgaudit.judge.thresholds import Thresholds
from kubectl_cgaudit.lazy import Lazy
from kubectl_cgaudit.report.words import percent, signed


class Slice(Struct, frozen=True):
    """A container's part of its pod's CPU."""

    name: str
    request: str
    before: float
    after: float
    nominal: str

    @property
    def change(self) -> str:
        """How much of its part it gains or loses."""
        return signed(self.after / self.before - 1) if self.before else "?"

    @property
    def numbers(self) -> tuple[str, str]:
        """Both parts in percent."""
        return percent(self.before), percent(self.after)


class Inside(Struct, frozen=True):
    """A pod in which CPU moves. Strings are not escaped."""

    workload: WorkloadAudit
    pod: str
    node: str
    when: str
    slices: tuple[Slice, ...]


class _Moving(Lazy[Inside]):
    """A report shows the first few."""

    def __init__(self, workloads: Sequence[WorkloadAudit]) -> None:
        self._workloads = workloads

    def __len__(self) -> int:
        return len(self._workloads)

    def _at(self, index: int) -> Inside:
        return _inside(self._workloads[index])


def moving(audit: Audit) -> Sequence[Inside]:
    """The workloads in which CPU moves beyond the threshold, or may, most first; each by its worst pod."""
    usual = Thresholds()
    limits = replace(usual, pod_move=audit.scenario.thresholds.get("pod-move", usual.pod_move))
    found = [workload for workload in audit.workloads if _moves(workload, limits)]
    found.sort(key=lambda each: (each.inside_pod.change if each.inside_pod else 0.0, each.title, each.kind))
    return _Moving(found)


def _moves(workload: WorkloadAudit, limits: Thresholds) -> bool:
    """What is unknown may be all but this: then only how much moves at worst says whether it counts."""
    if workload.inside_pod is None or signed(workload.inside_pod.change) == "0%":
        return False
    may_move = "unknown" in workload.effects and limits.moves(workload.inside_pod.change)
    return "moves" in workload.effects or may_move


def _inside(workload: WorkloadAudit) -> Inside:
    change = workload.inside_pod
    assert change is not None
    pod = named(workload.pods, change.pod)
    assert pod is not None
    index = next((i for i, case in enumerate(pod.cases) if case.when == change.when), 0)
    slices = [_slice(container, index) for container in pod.containers]
    return Inside(workload, pod.name, pod.node, change.when, tuple(each for each in slices if each))


def _slice(container: ContainerAudit, index: int) -> Slice | None:
    before, after = container.cases[index].before, container.cases[index].after
    if before.in_pod is None or after.in_pod is None:
        return None
    amount = container.request_milli if container.request_milli is not None else container.limit_milli
    nominal = f"{unit_of(before.version)} {before.value} -> {unit_of(after.version)} {after.value}"
    return Slice(container.name, "none" if amount is None else f"{amount}m", before.in_pod, after.in_pod, nominal)
