"""What the Markdown and the HTML report both say, in plain text that is not escaped yet."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from kubectl_cgaudit.detect.state import unit_of
from kubectl_cgaudit.judge.audit import (
    EFFECTS,
    SEVERITIES,
    Audit,
    CaseChange,
    Coverage,
    Effect,
    Moment,
    NodeAudit,
    NodeCase,
    NodeMoment,
    Standing,
    WorkloadAudit,
)
from kubectl_cgaudit.judge.condition import condition
from kubectl_cgaudit.judge.verdict import unsaid
from kubectl_cgaudit.report import apart
from kubectl_cgaudit.report.escape import shorten, visible
from kubectl_cgaudit.report.stopping import stopping
from kubectl_cgaudit.report.words import (
    EFFECT_WORDS,
    arrow,
    counted,
    inside_pod,
    nominal,
    number,
    only_stops,
    percent,
    ratio_to_system,
    signed,
)

LONGEST_NAME = 253
LONGEST_TEXT = 3000
ALSO: dict[Effect, str] = {
    "loses": "loses against system processes",
    "unknown": "for some of it, it cannot be said",
    "moves": "CPU moves inside its pod",
    "gains": "some pods gain against system processes",
    "nominal": "the number in cpu.weight changes",
}
STANDING: dict[Standing, str] = {
    "": "",
    "known": "nothing new against the baseline",
    "excepted": "excepted by the policy",
}
UNMOVED: dict[Effect, str] = {"nominal": "only the number in cpu.weight changes", "none": "nothing changes"}
METHOD = (
    "A weight competes only with its siblings in the cgroup tree. When everything wants CPU at once, a cgroup's fraction of "
    "the node's CPU is the product, from the root down, of its weight over the sum of its siblings' weights (shares on "
    "cgroup v1). Where a sibling is idle the others divide its part, so these fractions say who wins when the node is full, "
    "not what anyone uses today."
)
FORMULAS = (
    (
        "linear",
        "weight = 1 + (shares - 2) * 9999 // 262142",
        "the kubelet, in every version so far, for kubepods, the QoS classes, the pods and enforced reserves; "
        "runc up to 1.3.1 and crun up to 1.22 for containers",
    ),
    (
        "quadratic",
        "weight = ceil(10 ** ((L*L + 125*L) / 612 - 7/34)), L = log2(shares)",
        "runc from 1.3.2 and crun from 1.23 on, for containers only",
    ),
)
WHY_NOMINAL = (
    "A container that asks for 1 CPU shows 39 in cpu.weight under the linear formula and 100 under the quadratic one. That "
    "alone gives it no more CPU: it competes only with the other containers of its own pod, and the pod's weight is the "
    "kubelet's, whose formula does not change with the runtime. So a new runtime moves CPU only between the containers of one "
    "pod. Pods against system processes is decided by kubepods.slice against system.slice, which changes from cgroup v1 to v2."
)
UNKNOWN_NOTE = "is not a pass: every possibility was predicted, and what is shown is the range over them."

WORKLOAD_LEGEND = (
    "Worst first. Against system: the change of a pod's CPU divided by that of system.slice.",
    "CPU of the node: the fraction when everything wants CPU, of the pod and possibility that change most.",
    "Inside the pod: the container that loses most of its part.",
    "How sure: that of the least sure thing the numbers rest on, system.slice aside; stated is what the states file says.",
    "Nominal: the number in cpu.shares or cpu.weight, and how many times the default it is.",
    "a..b is the range over pods and, where a node's state is not known, over every possibility; ? cannot be said.",
)


class OneCase(Protocol):
    """A case of a node or a pod, or how either is drawn in it."""

    @property
    def when(self) -> str:
        """Empty if nothing is open."""


C = TypeVar("C", bound=OneCase)


def facts(audit: Audit) -> list[tuple[str, str]]:
    """What a change ticket asks first. Plain text, not escaped."""
    coverage, verdict = audit.coverage, audit.verdict
    return [
        ("Migration", f"now -> {audit.scenario.to}: {audit.scenario.description}"),
        ("Nodes audited", f"{coverage.nodes_audited} of {coverage.nodes_read} read{_but(_other_nodes(coverage))}"),
        ("Pods audited", f"{coverage.pods_audited} of {coverage.pods_read} read{_but(_other_pods(audit))}"),
        ("Workloads, each by its strongest effect", effect_counts(verdict.workloads) or "none"),
        ("Findings", _findings(audit)),
        ("Coverage", f"INCOMPLETE: {counted(len(coverage.gaps), 'gap')}" if not coverage.complete else "complete"),
        ("Read from", coverage.source + (f", only what matches {coverage.filter}" if coverage.filter else "")),
    ]


def _but(others: Mapping[str, int]) -> str:
    """How many were set apart, and why, so that it adds up."""
    said = ", ".join(f"{amount} {what}" for what, amount in others.items() if amount > 0)
    return f" ({said})" if said else ""


def _other_nodes(coverage: Coverage) -> dict[str, int]:
    return {"Windows": len(coverage.windows_nodes), "virtual": len(coverage.virtual_nodes)}


def _other_pods(audit: Audit) -> dict[str, int]:
    coverage = audit.coverage
    others = {
        "finished": coverage.pods_finished,
        "without a node": len(coverage.pods_without_node),
        "on Windows nodes": coverage.pods_on_windows_nodes,
        "on virtual nodes": coverage.pods_on_virtual_nodes,
        "on nodes that could not be read": sum(workload.unpredicted_pods for workload in audit.workloads),
    }
    rest = coverage.pods_read - coverage.pods_audited - sum(others.values())
    return {**others, "not asked for": rest} if coverage.filter else others


def _findings(audit: Audit) -> str:
    counts, set_apart = severity_counts(audit.verdict.findings) or "none", apart.amounts(audit)
    return f"{counts}; not counted: {set_apart}" if set_apart else counts


def effect_counts(amounts: Mapping[str, int]) -> str:
    """How many workloads there are of each effect, the worst first."""
    return "; ".join(f"{EFFECT_WORDS[effect]}: {amounts[effect]}" for effect in EFFECTS if amounts.get(effect))


def unsettled(workloads: Iterable[WorkloadAudit]) -> str:
    """Of how many workloads it cannot be said what they gain or lose; empty if there is none."""
    found = [workload for workload in workloads if workload.unsettled]
    return f"{unsaid(found)}." if found else ""


def severity_counts(amounts: Mapping[str, int]) -> str:
    """`5 high, 2 medium`, without what there is none of."""
    return ", ".join(f"{amounts[severity]} {severity}" for severity in SEVERITIES if amounts.get(severity))


def distinct(cases: Sequence[C], face: Callable[[C], object]) -> list[tuple[str, C]]:
    """The cases that show different faces, each with the words that tell it from the others."""
    groups: dict[object, list[C]] = {}
    for case in cases:
        groups.setdefault(face(case), []).append(case)
    every = [case.when for case in cases]
    return [(_telling([case.when for case in group], every), group[0]) for group in groups.values()]


def _telling(found: Sequence[str], every: Sequence[str]) -> str:
    if len(every) == 1:
        return every[0]
    return condition(found, every) or "the same in every case"


def node_cases(node: NodeAudit) -> list[tuple[str, NodeCase]]:
    """The cases of a node that differ in pods against system; its runtimes play no part in that."""
    return distinct(node.cases, lambda case: (_root(case.before), _root(case.after), case.stops))


def _root(moment: NodeMoment) -> tuple[object, ...]:
    return moment.cgroup, moment.kubepods, moment.system_slice, moment.pods_share, moment.system_share


def changes(cases: Sequence[CaseChange]) -> list[tuple[str, CaseChange]]:
    """The cases of a pod or container that differ."""
    return distinct(cases, lambda case: (case.before, case.after, case.stops))


def of_node(case: NodeCase, words: Callable[[NodeMoment], str]) -> str:
    """Something of a node before and after. What does not start has nothing after."""
    return arrow(words(case.before), "stops" if case.stops else words(case.after))


def root_values(case: NodeCase) -> str:
    """`kubepods : system.slice` before and after."""
    return of_node(case, lambda moment: f"{moment.kubepods} : {moment.system_slice}")


def ratios(case: NodeCase) -> str:
    """Pods against system.slice before and after."""
    return of_node(case, ratio_to_system)


def effect_words(workload: WorkloadAudit) -> str:
    """What happens to a workload, the strongest effect first."""
    also = [ALSO[effect] for effect in workload.effects[1:] if effect in ALSO]
    words = EFFECT_WORDS[workload.effect]
    if workload.effect in UNMOVED and not _changes_a_little(workload):
        words = UNMOVED[workload.effect]
    said = [words, f"also: {', '.join(also)}" if also else "", *_otherwise(workload), STANDING[workload.standing]]
    return "; ".join(part for part in said if part)


def _otherwise(workload: WorkloadAudit) -> list[str]:
    """Return what happens where a default is overridden, with the greatest loss."""
    found = []
    for other in workload.other_effects:
        loss = f" ({signed(other.against_system)})" if other.against_system and "loses" in other.effects else ""
        said = ", ".join(EFFECT_WORDS[effect] for effect in other.effects) or EFFECT_WORDS["none"]
        found.append(f"{other.when}: {said}{loss}")
    return found


def _changes_a_little(workload: WorkloadAudit) -> bool:
    found = (workload.against_system, workload.against_system_best, workload.inside_pod)
    return any(change is not None and signed(change.change) != "0%" for change in found)


def pods(workload: WorkloadAudit) -> str:
    """How many pods, and how many of them could not be predicted."""
    unpredicted = f" + {workload.unpredicted_pods} not predicted" if workload.unpredicted_pods else ""
    return f"{workload.pod_count}{unpredicted}"


def share(workload: WorkloadAudit) -> str:
    """The fraction of its node's CPU before and after, of the pod and case where it changes most."""
    if workload.may_stop:
        return stopping_share(workload) + (" in the worst case" if "stops" not in workload.effects else "")
    if workload.share is None:
        return "?"
    before, after = percent(workload.share.before), percent(workload.share.after)
    return arrow(before, after) + (" in the worst case" if is_open(workload) else "")


def stopping_share(workload: WorkloadAudit) -> str:
    """The fraction of its node's CPU that a pod has now which does not run after the move."""
    stops = stopping(workload)
    return "stops" if stops is None or stops.share is None else arrow(percent(stops.share), "stops")


def inside(workload: WorkloadAudit) -> str:
    """The container that loses most of its pod's CPU, over the cases where they differ; `?` if it cannot be said."""
    worst = workload.inside_pod
    if only_stops(workload) and not inside_pod(worst):
        return "stops"
    if worst is None:
        return "?"
    best = workload.inside_pod_best.change if workload.inside_pod_best else worst.change
    if not is_open(workload) or signed(best) == signed(worst.change):
        return inside_pod(worst) or "0%"
    return f"{worst.container} {signed(worst.change)}..{signed(best)}"


def is_open(workload: WorkloadAudit) -> bool:
    """Whether anything about its nodes is left open."""
    return workload.possibilities > 1


def nominals(workload: WorkloadAudit) -> list[str]:
    """Each container's nominal weight before and after; shares and weights are never mixed in one range."""
    return [f"{change.container}: {nominal(change)}" for change in workload.nominal]


def of_case(case: CaseChange, words: Callable[[Moment], str]) -> str:
    """Something of a cgroup before and after. A pod that does not run has nothing after."""
    return arrow(words(case.before), "stops" if case.stops else words(case.after))


def nominal_value(moment: Moment) -> str:
    """A cgroup's number, with its ratio to the default."""
    if moment.value is None:
        return "none set"
    return f"{unit_of(moment.version)} {moment.value} ({number(moment.nominal_ratio or 0)} x)"


def quota(moment: Moment) -> str:
    """The CPU quota, as CPU."""
    return "no limit" if moment.quota_us is None else f"{moment.quota_us / 100:.15g}m"


def times(against_system: float | None) -> str:
    """A multiple of system.slice's CPU."""
    return "?" if against_system is None else number(against_system)


def coverage_facts(coverage: Coverage) -> list[tuple[str, str]]:
    """What was set apart, and how names were found. Plain text, not escaped."""
    only = shorten(visible(coverage.filter), LONGEST_TEXT)
    siblings = "; the other pods are read as siblings" if coverage.complete else ""
    apart = [
        ("Filter", f"only what matches {only} is reported{siblings}" if only else ""),
        ("Finished pods, which want no CPU", str(coverage.pods_finished)),
        ("Pods without a node, not predicted", names(coverage.pods_without_node) or "none"),
        ("Windows nodes, which have no cgroups", _apart(coverage.windows_nodes, coverage.pods_on_windows_nodes)),
        (
            "Virtual nodes, which have no cgroups to predict",
            _apart(coverage.virtual_nodes, coverage.pods_on_virtual_nodes),
        ),
    ]
    apart += [(f"{kind} names", how) for kind, how in coverage.workload_names.items()]
    ignored = names(f"{count} {kind}" for kind, count in coverage.ignored_kinds.items())
    apart.append(("Objects of no use to the audit", ignored))
    apart.append(("Objects read more than once", str(coverage.duplicates) if coverage.duplicates else ""))
    return [(what, value) for what, value in apart if value]


def notes(coverage: Coverage) -> list[str]:
    """What else is to be known of the reading; first what the user said that speaks of nothing here."""
    return [f"Check: {what}" for what in coverage.unmatched] + list(coverage.notes)


def _apart(nodes: Sequence[str], pods_there: int) -> str:
    return f"{names(nodes)} ({counted(pods_there, 'pod')}, not predicted)" if nodes else "none"


def names(every: Iterable[str]) -> str:
    """All of them: a list of what was set apart is not cut, only a name that is too long to be one."""
    return ", ".join(shorten(visible(name), LONGEST_NAME) for name in every)
