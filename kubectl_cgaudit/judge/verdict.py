"""The answer in one sentence, and what to do next."""

from collections import Counter
from collections.abc import Mapping, Sequence

from kubectl_cgaudit.judge.audit import EFFECTS, SEVERITIES, Coverage, Effect, Finding, Verdict, WorkloadAudit
from kubectl_cgaudit.judge.key import Key
from kubectl_cgaudit.judge.rules.catalogue import UNKNOWN_STATE, V1_NODE, WILL_NOT_START
from kubectl_cgaudit.judge.tally import SureLoss
from kubectl_cgaudit.judge.thresholds import Thresholds
from kubectl_cgaudit.text import counted, number, percent

_MOST_STEPS = 5


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
    critical: Counter[tuple[str, str]] = Counter()
    asked = False
    for finding in findings:
        severities[finding.severity] += 1
        critical[finding.rule, finding.when] += finding.severity == "critical"
        asked = asked or finding.title == UNKNOWN_STATE.title
    parts = [
        _stopping(critical),
        _losing(len(workloads), sure_losses),
        _moving(workloads),
        _open(workloads, coverage),
    ]
    said = [part for part in parts if part] or [_calm(workloads, effects, thresholds, asked=asked)]
    return Verdict(
        sentence=" ".join([*_incomplete(coverage, found=any(parts)), *said, *_caveats(coverage, found=any(parts))]),
        workloads={effect: effects[effect] for effect in EFFECTS},
        findings={severity: severities[severity] for severity in SEVERITIES},
        next_steps=steps(findings),
    )


def _stopping(critical: Counter[tuple[str, str]]) -> str:
    """How many do not start, by rule and what it depends on."""
    parts = []
    for rule, what, fate in (
        (V1_NODE.id, "node", "not come back from the kubelet upgrade"),
        (WILL_NOT_START.id, "workload", "have a container that does not start"),
    ):
        open_ = {when: count for (of, when), count in critical.items() if of == rule and when and count}
        sure = critical[rule, ""]
        if sure:
            parts.append(f"{counted(sure, what)} will {fate}.")
        if open_:
            parts.append(f"{counted(sum(open_.values()), what)} may {fate}, {' or '.join(sorted(open_))}.")
    return " ".join(parts)


def _losing(workloads: int, sure_losses: Mapping[Key, SureLoss]) -> str:
    if not sure_losses:
        return ""
    losses = [(loss, f"{namespace}/{owner.name}") for (namespace, owner), loss in sure_losses.items()]
    (loss, node, was, will, before, after), title = min(losses)
    verb = "loses" if len(losses) == 1 else "lose"
    return (
        f"{len(losses)} of {counted(workloads, 'workload')} {verb} CPU priority against system processes; "
        f"worst is {title} on {node}, from {number(was)} to {number(will)} times system.slice "
        f"(-{percent(-loss)}; of the full node {percent(after)} in place of {percent(before)})."
    )


def _moving(workloads: Sequence[WorkloadAudit]) -> str:
    moving = [workload for workload in workloads if "moves" in workload.effects and workload.inside_pod]
    if not moving:
        return ""
    worst = min(moving, key=lambda workload: workload.inside_pod.change if workload.inside_pod else 0.0)
    change = worst.inside_pod
    both = sum("loses" in workload.effects for workload in moving)
    among = f" ({_also_lose(both)})" if both else ""
    up_to = "up to " if worst.possibilities > 1 else ""
    detail = ""
    if change:
        detail = f"; most in {worst.title}, where {change.container} loses {up_to}{percent(-change.change)} of its part"
    return f"In {counted(len(moving), 'workload')}{among} CPU moves between the containers of a pod{detail}."


def _also_lose(count: int) -> str:
    return f"{count} of which also {'loses' if count == 1 else 'lose'}"


def _open(workloads: Sequence[WorkloadAudit], coverage: Coverage) -> str:
    unread = sum(workload.unpredicted_pods > 0 for workload in workloads)
    open_ = [workload for workload in workloads if "unknown" in workload.effects and workload.unpredicted_pods == 0]
    parts = []
    if open_:
        count = counted(len(open_), "workload")
        losing = sum("loses" in workload.effects for workload in open_)
        which = (
            f"{count}, {_also_lose(losing)}, it cannot be said of every pod" if losing else f"{count} it cannot be said"
        )
        parts.append(f"For {which}, because what their nodes run is not known{_at_worst(open_)}.")
    if unread:
        partly = [workload for workload in workloads if workload.unpredicted_pods and workload.pod_count]
        why = "because nodes of theirs were not read" if partly else "because their nodes were not read"
        parts.append(f"For {counted(unread, 'workload')} it cannot be said, {why}{_at_worst(partly)}.")
    if not coverage.complete and not workloads:
        parts.append("No pod was audited.")
    return " ".join(parts)


def _at_worst(workloads: Sequence[WorkloadAudit]) -> str:
    """How bad an open question may turn out."""
    losses = [(each.against_system.change, each.title) for each in workloads if each.against_system]
    loss, title = min(losses, default=(0.0, ""))
    return f"; at worst {title} loses {percent(-loss)} against system processes" if round(loss * 100) < 0 else ""


def _calm(workloads: Sequence[WorkloadAudit], effects: Counter[Effect], thresholds: Thresholds, *, asked: bool) -> str:
    """What is said if no workload stops, loses, is open, or has CPU moving inside its pods."""
    if not workloads:
        return "No pod was audited: nothing can be said about workloads."
    whatever = ", whichever way the open questions (CGA102) turn out" if asked else ""
    if effects["gains"]:
        verb = "gains" if effects["gains"] == 1 else "gain"
        return (
            f"No workload loses CPU priority{whatever}; {effects['gains']} of "
            f"{counted(len(workloads), 'workload')} {verb} against system processes."
        )
    numbers = (
        ""
        if not effects["nominal"]
        else f" Another number in cpu.weight, which alone decides nothing: {counted(effects['nominal'], 'workload')}."
    )
    return (
        f"Not affected{whatever}: of {counted(len(workloads), 'workload')} none loses "
        f"{thresholds.system_loss:.0%} against system processes, and no container {thresholds.pod_move:.0%} of its part of "
        f"its pod.{numbers}"
    )


def _incomplete(coverage: Coverage, *, found: bool) -> list[str]:
    """Before anything that sounds like a pass."""
    if coverage.complete or found:
        return []
    return ["INCOMPLETE, so this is no pass: what could not be read is listed under coverage. Of what was read:"]


def _caveats(coverage: Coverage, *, found: bool) -> list[str]:
    parts = []
    if not coverage.complete and found:
        parts.append("The audit is incomplete: what could not be read is listed under coverage.")
    if coverage.unmatched:
        parts.append(f"Check what was said: {'; '.join(coverage.unmatched)}.")
    return parts


def steps(findings: Sequence[Finding]) -> tuple[str, ...]:
    """The remedy of the worst finding of each rule, worst first; of low severity only where nothing else is there.

    What is open comes before remedies that only hold under a condition: whoever knows the answer may not need them.
    """
    firsts: dict[tuple[bool, int, str], Finding] = {}
    for finding in findings:
        place = 2 if finding.when else int(finding.rule == UNKNOWN_STATE.id)
        firsts.setdefault((finding.severity == "low", place, finding.rule), finding)
    serious = {of: finding for of, finding in firsts.items() if not of[0]} or firsts
    steps: dict[str, str] = {}
    for _, finding in sorted(serious.items(), key=lambda entry: entry[0][1]):
        when = f"{finding.when}: " if finding.when else ""
        steps.setdefault(finding.rule, f"{finding.rule} ({finding.subject.title}): {when}{finding.remedy}")
    return tuple(steps.values())[:_MOST_STEPS]
