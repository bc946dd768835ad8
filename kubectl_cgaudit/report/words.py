"""How numbers and effects are written, the same in every format."""

from functools import lru_cache

from kubectl_cgaudit.judge.audit import Change, Effect, NodeMoment, NominalChange, Span, WorkloadAudit
from kubectl_cgaudit.text import counted as counted
from kubectl_cgaudit.text import named as named
from kubectl_cgaudit.text import number as number
from kubectl_cgaudit.text import percent as percent

EFFECT_WORDS: dict[Effect, str] = {
    "stops": "does not run after the move",
    "may-stop": "has a container that may not start after the move",
    "loses": "loses against system processes",
    "unknown": "cannot be said",
    "moves": "CPU moves inside its pod",
    "gains": "gains against system processes",
    "nominal": "another number in cpu.weight, no CPU beyond the thresholds",
    "none": "nothing changes beyond the thresholds",
}
_KIND_LETTERS = {
    "Deployment": "deploy",
    "StatefulSet": "sts",
    "DaemonSet": "ds",
    "CronJob": "cj",
    "Job": "job",
    "ReplicaSet": "rs",
    "Pod": "pod",
}


def signed(change: float) -> str:
    """A relative change: -62%, +18%, -4.7%, 0%; a loss of nearly all as `percent` has it."""
    value = change * 100
    if abs(value) < 0.05:
        return "0%"
    if -1 < change <= -0.5:
        return percent(change)
    return f"{value:+.0f}%" if abs(value) >= 9.95 else f"{value:+.1f}%"


def span(values: Span) -> str:
    """One value, or the least and the greatest."""
    least, greatest = number(values.least), number(values.greatest)
    return least if least == greatest else f"{least}..{greatest}"


def otherwise(workload: WorkloadAudit) -> list[str]:
    """Return what happens to a workload where a default is overridden: `if cgroup v1: loses, moves`."""
    return [f"{other.when}: {', '.join(other.effects) or 'nothing'}" for other in workload.other_effects]


def with_kind(title: str, kind: str) -> str:
    """A workload's title and its kind as kubectl shortens it: `shop/checkout deploy`."""
    return f"{title} {_KIND_LETTERS.get(kind, kind.lower())}"


def arrow(before: str, after: str) -> str:
    """`a -> b`, or `a` alone if both are the same."""
    return before if before == after else f"{before} -> {after}"


def against_system(workload: WorkloadAudit) -> str:
    """The change against system.slice: of its worst pod, or the range over pods and cases."""
    worst, best = workload.against_system, workload.against_system_best
    if only_stops(workload):
        return "stops"
    if worst is None or best is None:
        return "stops..?" if workload.may_stop else "?"
    # Nothing is worse than to stop.
    low, high = "stops" if workload.may_stop else signed(worst.change), signed(best.change)
    return low if low == high else f"{low}..{high}"


def only_stops(workload: WorkloadAudit) -> bool:
    """Whether nothing is to be said of it but that it stops: its numbers after the move are as they were."""
    ends = workload.against_system, workload.against_system_best
    return workload.effect == "stops" and all(each is None or signed(each.change) == "0%" for each in ends)


def inside_pod(change: Change | None) -> str:
    """The container that loses most of its pod's CPU, and how much."""
    if change is None or change.container is None or signed(change.change) == "0%":
        return ""
    return f"{change.container} {signed(change.change)}"


@lru_cache(maxsize=4096)
def nominal(change: NominalChange) -> str:
    """A container's nominal weight before and after, with the ratio to the default. Many workloads have the same."""
    before, after = f"{change.before_unit} {span(change.before)}", f"{change.after_unit} {span(change.after)}"
    return f"{arrow(before, after)} ({arrow(span(change.ratio_before), span(change.ratio_after))} x default)"


def ratio_to_system(moment: NodeMoment) -> str:
    """Pods against system.slice: `3.7 : 1`."""
    return f"{number(moment.pods_per_system)} : 1"
