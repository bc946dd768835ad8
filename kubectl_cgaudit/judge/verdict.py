"""The answer in one sentence, and what to do next."""

from collections import Counter
from collections.abc import Sequence

from kubectl_cgaudit.judge.audit import EFFECTS, SEVERITIES, Coverage, Effect, Finding, Verdict, WorkloadAudit
from kubectl_cgaudit.judge.rules.catalogue import UNKNOWN_STATE

_MOST_STEPS = 5
_OPEN = UNKNOWN_STATE.id


def conclude(workloads: Sequence[WorkloadAudit], findings: Sequence[Finding], coverage: Coverage) -> Verdict:
    """The verdict. It says 'not affected' only if everything was read and nothing is open."""
    effects = Counter(workload.effect for workload in workloads)
    severities = Counter(finding.severity for finding in findings)
    return Verdict(
        sentence=_sentence(workloads, findings, effects, coverage),
        workloads={effect: effects[effect] for effect in EFFECTS},
        findings={severity: severities[severity] for severity in SEVERITIES},
        next_steps=_steps(findings),
    )


def _sentence(
    workloads: Sequence[WorkloadAudit], findings: Sequence[Finding], effects: Counter[Effect], coverage: Coverage
) -> str:
    parts = [_stopping(findings), _losing(workloads, effects), _moving(workloads), _open(effects, coverage)]
    said = [part for part in parts if part]
    if said:
        return " ".join(said)
    if not workloads:
        return "No pod was audited: nothing can be said about workloads."
    if effects["gains"]:
        return f"No workload loses CPU priority; {effects['gains']} of {len(workloads)} gain against system processes."
    if effects["nominal"]:
        return (
            f"Not affected: no CPU share changes beyond the thresholds. Of {_count(len(workloads), 'workload', 'workloads')} "
            f"{effects['nominal']} carry another number in cpu.weight, which alone decides nothing."
        )
    return f"Not affected: nothing changes for {_count(len(workloads), 'workload', 'workloads')} beyond the thresholds."


def _stopping(findings: Sequence[Finding]) -> str:
    containers = sum(finding.rule == "CGA301" for finding in findings)
    nodes = sum(finding.rule == "CGA101" and finding.severity == "critical" for finding in findings)
    parts = []
    if nodes:
        parts.append(f"{_count(nodes, 'node does', 'nodes do')} not come back from the kubelet upgrade.")
    if containers:
        parts.append(f"{_count(containers, 'workload has', 'workloads have')} containers that will not start.")
    return " ".join(parts)


def _losing(workloads: Sequence[WorkloadAudit], effects: Counter[Effect]) -> str:
    worst = next((workload for workload in workloads if workload.effect == "loses"), None)
    if worst is None or worst.against_system is None:
        return ""
    change = worst.against_system
    return (
        f"{effects['loses']} of {len(workloads)} workloads lose CPU priority against system processes; worst is "
        f"{worst.title}, {change.change:.0%} on {change.node}."
    )


def _moving(workloads: Sequence[WorkloadAudit]) -> str:
    moving = [workload for workload in workloads if "moves" in workload.effects and workload.inside_pod]
    if not moving:
        return ""
    worst = min(moving, key=lambda workload: workload.inside_pod.change if workload.inside_pod else 0.0)
    change = worst.inside_pod
    both = sum("loses" in workload.effects for workload in moving)
    among = f" ({both} of them counted above)" if both else ""
    detail = (
        f"; most in {worst.title}, where {change.container} loses {-change.change:.0%} of its part" if change else ""
    )
    return (
        f"In {_count(len(moving), 'workload', 'workloads')}{among} CPU moves between the containers of a pod{detail}."
    )


def _open(effects: Counter[Effect], coverage: Coverage) -> str:
    parts = []
    if effects["unknown"]:
        parts.append(
            f"For {_count(effects['unknown'], 'workload', 'workloads')} it cannot be said, because what their nodes run "
            "is not known."
        )
    if not coverage.complete:
        parts.append("The audit is incomplete: what could not be read is listed under coverage.")
    return " ".join(parts)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _steps(findings: Sequence[Finding]) -> tuple[str, ...]:
    """The remedy of the worst finding of each rule, worst first; of low severity only where nothing else is there.

    What is open comes before remedies that only hold under a condition: whoever knows the answer may not need them.
    """
    serious = [finding for finding in findings if finding.severity != "low"] or findings
    ordered = sorted(serious, key=lambda finding: 2 if finding.when else finding.rule == _OPEN)
    steps: dict[str, str] = {}
    for finding in ordered:
        when = f"{finding.when}: " if finding.when else ""
        steps.setdefault(finding.rule, f"{finding.rule} ({finding.subject.title}): {when}{finding.remedy}")
    return tuple(steps.values())[:_MOST_STEPS]
