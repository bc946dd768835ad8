"""The answer in one sentence, and what to do next."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from kubectl_cgaudit.collect.model import Owner
from kubectl_cgaudit.judge.audit import EFFECTS, SEVERITIES, Coverage, Effect, Finding, Verdict, WorkloadAudit
from kubectl_cgaudit.judge.key import Key
from kubectl_cgaudit.judge.rounding import as_said
from kubectl_cgaudit.judge.rules.catalogue import (
    CONTRADICTED,
    INCOMPLETE,
    MAY_NOT_START,
    MISREADS_WEIGHT,
    PROBABLE_STATE,
    UNKNOWN_STATE,
    V1_NODE,
    WHO_SET,
)
from kubectl_cgaudit.judge.tally import SureLoss, loss_rank
from kubectl_cgaudit.judge.thresholds import Thresholds
from kubectl_cgaudit.text import capital, counted, named, number, percent, percents

_MOST_STEPS = 5
_NAMED = 3
_FIRST = (INCOMPLETE.id, UNKNOWN_STATE.id)


def conclude(
    workloads: Sequence[WorkloadAudit],
    findings: Sequence[Finding],
    coverage: Coverage,
    thresholds: Thresholds,
    sure_losses: Mapping[Key, SureLoss],
) -> Verdict:
    """The verdict. What only may happen is counted apart from what does; what is open is never a pass.

    `sure_losses` are of each workload that loses the greatest loss that holds in every case, and its node.
    """
    effects = Counter(workload.effect for workload in workloads)
    severities: Counter[str] = Counter()
    titles: Counter[str] = Counter()
    critical: dict[tuple[str, str], list[str]] = defaultdict(list)
    for finding in findings:
        severities[finding.severity] += 1
        titles[finding.title] += 1
        if finding.severity == "critical":
            critical[finding.rule, finding.when].append(finding.subject.title)
    parts = [
        _stopping(critical, workloads),
        _losing(workloads, sure_losses),
        _moving(workloads),
        _open(workloads, coverage, titles, sure_losses),
    ]
    said = [part for part in parts if part] or [_calm(workloads, effects, thresholds, titles)]
    if titles[PROBABLE_STATE.title]:
        said = [
            f"Probable, as {counted(titles[PROBABLE_STATE.title], 'node')} may differ from the default: {said[0]}",
            *said[1:],
        ]
        said += _otherwise(workloads)
    caveats = _caveats(coverage, titles[CONTRADICTED.title], found=any(parts))
    return Verdict(
        sentence=" ".join([*_incomplete(coverage, found=any(parts)), *said, *caveats]),
        workloads={effect: effects[effect] for effect in EFFECTS},
        findings={severity: severities[severity] for severity in SEVERITIES},
        next_steps=steps(findings),
    )


def _stopping(critical: Mapping[tuple[str, str], Sequence[str]], workloads: Sequence[WorkloadAudit]) -> str:
    """What does not start, by rule and what it depends on."""
    parts = []
    for rule, what, fate in (
        (V1_NODE.id, "node", "not come back from the kubelet upgrade"),
        (MAY_NOT_START.id, "workload", "have a container that does not start"),
    ):
        open_ = {when: names for (of, when), names in critical.items() if of == rule and when}
        sure = critical.get((rule, ""), ())
        if sure:
            parts.append(f"{_these(sure, what)} {'will' if rule == V1_NODE.id else 'may'} {fate}.")
        if open_:
            names = [name for each in open_.values() for name in each]
            parts.append(f"{_these(names, what)} may {fate}, {' or '.join(sorted(open_))}.")
    hit = sum("stops" in workload.effects for workload in workloads)
    if any(of == V1_NODE.id for of, _ in critical) and hit:
        verb = "has" if hit == 1 else "have"
        parts.append(f"{hit} of {counted(len(workloads), 'workload')} {verb} pods that do not run after the move.")
    return " ".join(parts)


def _otherwise(workloads: Sequence[WorkloadAudit]) -> list[str]:
    """Return what happens instead where a default is overridden, by what it is."""
    stops: dict[str, list[str]] = defaultdict(list)
    losses: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for each in workloads:
        for other in each.other_effects:
            if "stops" in other.effects and "stops" not in each.effects:
                stops[other.when].append(each.title)
            elif "loses" in other.effects and "loses" not in each.effects:
                losses[other.when].append((as_said(other.against_system or 0.0), each.title))
    parts = []
    for when in sorted({*stops, *losses}):
        said = []
        if stops[when]:
            verb = "does" if len(stops[when]) == 1 else "do"
            said.append(f"{_these(stops[when], 'workload')} {verb} not run after the move")
        if losses[when]:
            loss, title = min(losses[when])
            verb = "loses" if len(losses[when]) == 1 else "lose"
            worst = f"worst is {title} (-{percent(-loss)})"
            said.append(
                f"{counted(len(losses[when]), 'workload')} {verb} CPU priority against system processes, {worst}"
            )
        parts.append(f"{capital(when)}, {'; and '.join(said)}.")
    return parts


def _these(names: Sequence[str], what: str) -> str:
    return f"{counted(len(names), what)} ({named(sorted(names), _NAMED)})"


def _losing(workloads: Sequence[WorkloadAudit], sure_losses: Mapping[Key, SureLoss]) -> str:
    if not sure_losses:
        return ""
    losses = [(loss, f"{namespace}/{owner.name}") for (namespace, owner), loss in sure_losses.items()]
    (loss, node, was, will, before, after), title = min(losses, key=lambda each: (loss_rank(each[0]), each[1]))
    verb = "loses" if len(losses) == 1 else "lose"
    share, share_after = percents(before, after)
    # Of what may be unknown altogether the worst is said where that is said.
    settled = [each for each in workloads if "unknown" not in each.effects]
    further = _at_worst(settled, sure_losses, "; at worst, as the open questions turn out,", least=loss)
    return (
        f"{len(losses)} of {counted(len(workloads), 'workload')} {verb} CPU priority against system processes; "
        f"worst is {title} on {node}, from {number(was)} to {number(will)} times system.slice "
        f"(-{percent(-loss)}; from {share} to {share_after} of the full node){further}."
    )


def _moving(workloads: Sequence[WorkloadAudit]) -> str:
    moving = [(each, each.inside_pod) for each in workloads if "moves" in each.effects and each.inside_pod]
    if not moving:
        return ""
    worst, inside = min(moving, key=lambda each: each[1].change)
    both = sum("loses" in workload.effects for workload, _ in moving)
    among = f" ({_also_lose(both, len(moving))})" if both else ""
    up_to = "up to " if worst.possibilities > 1 else ""
    return (
        f"In {counted(len(moving), 'workload')}{among} CPU moves between the containers of a pod; most in {worst.title}, where "
        f"{inside.container} loses {up_to}{percent(-inside.change)} of its part."
    )


def _also_lose(count: int, of: int) -> str:
    if count == of:
        return "which also loses" if of == 1 else "all of which also lose"
    return f"{count} of which also {'loses' if count == 1 else 'lose'}"


def _open(
    workloads: Sequence[WorkloadAudit],
    coverage: Coverage,
    titles: Mapping[str, int],
    sure_losses: Mapping[Key, SureLoss],
) -> str:
    unread = [workload for workload in workloads if workload.unpredicted_pods]
    # What only may not start is named already.
    open_ = [workload for workload in workloads if workload.unsettled and workload.unpredicted_pods == 0]
    parts = []
    if open_:
        only_who = titles[WHO_SET.title] and not titles[UNKNOWN_STATE.title]
        nodes = _their_nodes(open_)
        what = f"who set values at the root of {nodes}" if only_who else f"what {nodes} run"
        parts.append(f"{unsaid(open_)}, because {what} is not known{_at_worst(open_, sure_losses)}.")
    if unread:
        partly = [workload for workload in unread if workload.pod_count]
        why = f"because {'some of ' if partly else ''}{_their_nodes(unread)} were not read"
        others = _at_worst(partly, sure_losses, "; of what was read at worst")
        parts.append(f"{unsaid(unread)}, {why}{others}.")
    if not coverage.complete and not workloads:
        parts.append(_nothing(coverage))
    return " ".join(parts)


def _their_nodes(workloads: Sequence[WorkloadAudit]) -> str:
    return f"{'its' if len(workloads) == 1 else 'their'} nodes"


def _nothing(coverage: Coverage) -> str:
    if coverage.filter and coverage.pods_read and not coverage.pods_audited:
        return f"No pod was audited: none matches {coverage.filter}."
    return "No pod was audited."


def unsaid(workloads: Sequence[WorkloadAudit]) -> str:
    """That it cannot be said what these gain or lose, and how many of them lose all the same."""
    count = counted(len(workloads), "workload")
    losing = sum("loses" in workload.effects for workload in workloads)
    they = "it gains or loses" if len(workloads) == 1 else "they gain or lose"
    if losing:
        return (
            f"For {count}, {_also_lose(losing, len(workloads))}, it cannot be said of every pod what it gains or loses"
        )
    return f"For {count} it cannot be said what {they}"


def _at_worst(
    workloads: Sequence[WorkloadAudit],
    sure_losses: Mapping[Key, SureLoss],
    lead: str = "; at worst",
    least: float = 0.0,
) -> str:
    """How bad an open question may turn out, beyond `least`. What is sure of a workload does not hang on it."""
    losses = [
        (each.against_system.change, each.title)
        for each in workloads
        if each.against_system and as_said(each.against_system.change) < _sure_of(each, sure_losses)
    ]
    # Of losses that read the same the first is the one of most CPU.
    loss, title = min(losses, key=lambda each: as_said(each[0]), default=(0.0, ""))
    if round(loss * 100) >= 0 or as_said(loss) >= as_said(least):
        return ""
    return f"{lead} {title} loses {percent(-loss)} against system processes"


def _sure_of(workload: WorkloadAudit, sure_losses: Mapping[Key, SureLoss]) -> float:
    """Its greatest loss that holds in every case, as it is said."""
    sure = sure_losses.get((workload.namespace, Owner(workload.kind, workload.name)))
    return as_said(sure[0]) if sure else 0.0


def _calm(
    workloads: Sequence[WorkloadAudit],
    effects: Counter[Effect],
    thresholds: Thresholds,
    titles: Counter[str],
) -> str:
    """What is said if no workload stops, loses, is open, or has CPU moving inside its pods."""
    if not workloads:
        return "No pod was audited: nothing can be said about workloads."
    whatever = (
        ", whichever way the open questions (CGA102) turn out"
        if titles[UNKNOWN_STATE.title] + titles[WHO_SET.title]
        else ""
    )
    every = counted(len(workloads), "workload")
    loss = f"{thresholds.system_loss * 100:.3g}% against system processes"
    move = f"no container {thresholds.pod_move * 100:.3g}% of its part of its pod"
    misread = titles[MISREADS_WEIGHT.title]
    rest = f" But programs of {counted(misread, 'workload')} misread cpu.weight, or may (CGA401)." if misread else ""
    if effects["gains"]:
        verb = "gains" if effects["gains"] == 1 else "gain"
        gaining = f"{effects['gains']} of {every} {verb} against system processes."
        return f"No workload loses {loss}, and {move}{whatever}; {gaining}{rest}"
    if effects["nominal"] and not misread:
        rest = f" Another number in cpu.weight, and no CPU beyond these: {counted(effects['nominal'], 'workload')}."
    # A threshold of one's own decides what counts as affected, and a program may act on the number.
    shares = "The shares of CPU are not" if misread else "Not"
    beyond = " beyond the thresholds" if thresholds != Thresholds() else ""
    return f"{shares} affected{beyond}{whatever}: of {every} none loses {loss}, and {move}.{rest}"


def _incomplete(coverage: Coverage, *, found: bool) -> list[str]:
    """Before anything that sounds like a pass."""
    if coverage.complete or found:
        return []
    return ["INCOMPLETE, so this is no pass: what could not be read is listed under coverage. Of what was read:"]


def _caveats(coverage: Coverage, contradicted: int, *, found: bool) -> list[str]:
    parts = []
    if contradicted:
        parts.append(f"On {counted(contradicted, 'node')} the evidence contradicts itself (CGA102).")
    if not coverage.complete and found:
        parts.append("The audit is incomplete: what could not be read is listed under coverage.")
    if coverage.unmatched:
        parts.append(f"Check what was said: {'; '.join(coverage.unmatched)}.")
    return parts


def steps(findings: Sequence[Finding]) -> tuple[str, ...]:
    """The remedy of the worst finding of each rule, worst first; of low severity only where nothing else is there.

    What was not read or is open comes first, as whoever settles it may not need the rest, and what only holds under a
    condition last, unless something may not start.
    Where a rule's findings have other remedies too, that is said: most are of one node or workload.
    """
    firsts: dict[tuple[bool, int, str, str], Finding] = {}
    remedies: dict[str, set[int]] = defaultdict(set)
    for finding in findings:
        place = 0 if finding.rule in _FIRST else 2 if finding.when and finding.severity != "critical" else 1
        # What is only probable is asked where something serious hangs on it.
        low = finding.severity == "low" and finding.title != PROBABLE_STATE.title
        firsts.setdefault((low, place if finding.leads else 3, finding.rule, finding.title), finding)
        remedies[finding.title].add(hash(finding.remedy))
    serious = {of: finding for of, finding in firsts.items() if not of[0]} or firsts
    steps: dict[str, str] = {}
    for _, finding in sorted(serious.items(), key=lambda entry: entry[0][1]):
        when = f"{finding.when}: " if finding.when else ""
        step = f"{finding.rule} ({finding.subject.title}): {when}{finding.remedy}"
        others = len(remedies[finding.title]) - 1
        steps.setdefault(finding.title, f"{step}{_more(others, finding) if others else ''}")
    return tuple(steps.values())[:_MOST_STEPS]


def _more(others: int, finding: Finding) -> str:
    if finding.title == UNKNOWN_STATE.title:
        nodes = "1 more node is" if others == 1 else f"{others} more nodes are"
        return (
            f" {nodes} not known: `kubectl cgaudit nodes` says which are alike, and what settles them, cheapest first."
        )
    are = "is 1 more remedy" if others == 1 else f"are {others} more remedies"
    whose = {"audit": "", "node": ", for other nodes"}.get(finding.subject.kind, ", for other nodes or workloads")
    return f" There {are} of {finding.rule}{whose}: -o json has all."
