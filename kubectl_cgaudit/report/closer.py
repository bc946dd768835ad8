"""A closer look at a workload: its worst pod, level by level, what decides it, and what to do."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from kubectl_cgaudit.judge.audit import (
    Change,
    ContainerAudit,
    Finding,
    Moment,
    NodeAudit,
    NodeCase,
    NodeMoment,
    PodAudit,
    WorkloadAudit,
)
from kubectl_cgaudit.judge.source import named
from kubectl_cgaudit.report.content import times
from kubectl_cgaudit.report.pictures.levels import Level, of_case
from kubectl_cgaudit.report.stopping import stopping
from kubectl_cgaudit.report.words import arrow, number, percent, ratio_to_system, signed

SubjectKey = tuple[str | None, str, str | None]
_SAME = 1e-6


class Closer(Struct, frozen=True):
    """What is shown of a workload. Strings are not escaped."""

    workload: WorkloadAudit
    pod: PodAudit
    when: str
    now: tuple[Level, ...]
    after: tuple[Level, ...]
    """Empty where the pod does not run after the move."""
    rows: tuple[tuple[str, str, str, str], ...]
    """Level, who writes it, now, after."""
    why: str
    findings: Sequence[Finding]
    others: str
    """What of the workload is not in the picture."""


def by_subject(findings: Iterable[Finding], workloads: Iterable[WorkloadAudit]) -> dict[SubjectKey, list[Finding]]:
    """The findings of each of these workloads, worst first."""
    found: dict[SubjectKey, list[Finding]] = {(each.namespace, each.name, each.kind): [] for each in workloads}
    for finding in findings:
        about = finding.subject
        of_it = found.get((about.namespace, about.name, about.workload_kind))
        if of_it is not None and about.kind == "workload":
            of_it.append(finding)
    return found


def closer(
    workload: WorkloadAudit, nodes: Mapping[str, NodeAudit], findings: Mapping[SubjectKey, Sequence[Finding]]
) -> Closer | None:
    """The closer look; None where no pod was predicted."""
    change, stops = _decisive(workload), stopping(workload)
    pod = named(workload.pods, stops.pod if stops else change.pod if change else "")
    if pod is None or pod.node not in nodes:
        return None
    node = nodes[pod.node]
    when = stops.when if stops else change.when if change else ""
    index = next((i for i, case in enumerate(pod.cases) if case.when == when), 0)
    containers = _first(pod.containers, workload.inside_pod)
    case = node.cases[index]
    now = of_case(case.before, pod, index, containers, after=False)
    after = of_case(case.after, pod, index, containers, after=True)
    return Closer(
        workload=workload,
        pod=pod,
        when=pod.cases[index].when,
        now=now,
        after=() if stops else after,
        rows=tuple(
            (name, writer, was, "stops" if stops else then) for name, writer, was, then in _rows(now, after, pod, index)
        ),
        why=_why(workload, pod, case, index),
        findings=findings.get((workload.namespace, workload.name, workload.kind), ()),
        others=_chosen_for(workload, None if stops else change) if len(workload.pods) > 1 else "",
    )


def _decisive(workload: WorkloadAudit) -> Change | None:
    """The change to look at: against the system, unless CPU only moves inside the pod or is gained."""
    worst, inside = workload.against_system, workload.inside_pod
    if workload.effect == "moves" and inside:
        return inside
    if workload.effect == "unknown" and inside and worst and min(worst.change, inside.change) < 0:
        return min(worst, inside, key=lambda change: change.change)
    return deciding(workload)


def deciding(workload: WorkloadAudit) -> Change | None:
    """The change against the system that is most to be told: the worst, and of what gains or at least loses nothing the best."""
    worst, best = workload.against_system, workload.against_system_best
    gains = workload.effect == "gains" or (worst is not None and worst.change >= 0)
    return best if gains and best else worst


def _chosen_for(workload: WorkloadAudit, change: Change | None) -> str:
    """Why its picture is shown, and not that of another pod."""
    if change is None:
        what = "that does not run after the move, or the first of these"
    elif change.container is not None:
        what = f"in which {change.container} loses most"
    elif change.change < 0:
        what = "that loses most against system processes"
    elif change.change > 0:
        what = "that gains most against system processes"
    else:
        return ""
    return f"Of its {len(workload.pods)} pods this is the one {what}."


def _first(containers: Sequence[ContainerAudit], inside: Change | None) -> Sequence[ContainerAudit]:
    """The one that loses most of its pod's CPU first."""
    name = inside.container if inside else None
    return sorted(containers, key=lambda each: each.name != name)


def _rows(
    now: Sequence[Level], after: Sequence[Level], pod: PodAudit, index: int
) -> Iterable[tuple[str, str, str, str]]:
    names = ("all pods, of the node", f"{pod.qos} pods, of all pods", f"this pod, of the {pod.qos} pods")
    for name, before, then in zip(names, now, after, strict=False):
        yield name, before.writer, percent(before.own.fraction), percent(then.own.fraction)
    case = pod.cases[index]
    yield "= this pod, of the node", "", percent(case.before.share), percent(case.after.share)
    yield "= this pod, times system.slice", "", times(case.before.against_system), times(case.after.against_system)
    for container in pod.containers:
        each = container.cases[index]
        if each.before.in_pod is not None:
            yield (
                f"{container.name}, of this pod",
                "runtime",
                percent(each.before.in_pod),
                percent(each.after.in_pod),
            )


def _why(workload: WorkloadAudit, pod: PodAudit, case: NodeCase, index: int) -> str:
    if pod.cases[index].stops:
        return f"{pod.name} does not run after the move: {pod.node} does not come back (CGA101)."
    parts = list(_against_system(pod, case, index))
    inside = workload.inside_pod
    found = next((each for each in pod.containers if inside and each.name == inside.container), None)
    if found and found.cases[index].before.in_pod and signed(_change(found, index)) != "0%":
        each = found.cases[index]
        parts.append(
            f"Inside the pod {found.name} goes from {percent(each.before.in_pod)} to {percent(each.after.in_pod)} "
            f"({signed(_change(found, index))}): the runtime writes other weights, which only its containers share."
        )
    return " ".join(parts)


def _against_system(pod: PodAudit, case: NodeCase, index: int) -> Iterator[str]:
    """What becomes of the pod against the system, and at which level that is decided."""
    moment, before, then = pod.cases[index], case.before, case.after
    was, will = moment.before.against_system, moment.after.against_system
    if not was or not will or abs(will / was - 1) < _SAME:
        yield "Against system processes nothing changes for this pod."
        return
    root = math.log(then.pods_per_system / before.pods_per_system)
    whole = math.log(will / was)
    moved = before.cgroup != then.cgroup
    because = f", because {pod.node} goes from cgroup {before.cgroup} to {then.cgroup}" if moved else ""
    # The whole is the product of both levels; where they move apart, the root explains nothing of a gain.
    if abs(root) >= abs(whole - root):
        ratio = arrow(ratio_to_system(before), ratio_to_system(then))
        values = f"{before.kubepods} : {before.system_slice} -> {then.kubepods} : {then.system_slice}"
        yield f"At the root of the tree pods : system.slice goes {ratio} ({values}){because}."
    else:
        part = f"{_within(moment.before, before)} -> {_within(moment.after, then)}"
        yield (
            f"Inside kubepods its part goes {part}{because}: the numbers of its siblings change otherwise than its own."
        )
    yield f"So it has {number(was)} -> {number(will)} times the CPU of system.slice."


def _within(moment: Moment, node: NodeMoment) -> str:
    """The pod's part of all pods' CPU."""
    return percent((moment.share or 0.0) / node.pods_share) if node.pods_share else "?"


def _change(container: ContainerAudit, index: int) -> float:
    before, after = container.cases[index].before.in_pod, container.cases[index].after.in_pod
    return after / before - 1 if before and after is not None else 0.0
