"""Findings that are set apart: what is left decides the verdict's counts and steps, and how a workload stands."""

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import SEVERITIES, Audit, Finding, Severity, Standing, Subject, Verdict, WorkloadAudit
from kubectl_cgaudit.judge.verdict import steps


def recounted(audit: Audit, sentence: str) -> Audit:
    """The audit whose verdict counts its findings only, with this sentence. What workloads gain and lose stays."""
    counts = Counter(finding.severity for finding in audit.findings)
    verdict = Verdict(
        sentence=sentence,
        workloads=audit.verdict.workloads,
        findings={severity: counts[severity] for severity in SEVERITIES},
        next_steps=steps(audit.findings),
    )
    return replace(audit, verdict=verdict, workloads=_standing(audit))


def at_or_above(findings: Iterable[Finding], level: Severity) -> int:
    """How many findings are this bad or worse. What only may hold counts too: unknown is not safe."""
    most = SEVERITIES.index(level)
    return sum(SEVERITIES.index(finding.severity) <= most for finding in findings)


def _standing(audit: Audit) -> tuple[WorkloadAudit, ...]:
    left = {finding.subject for finding in audit.findings}
    apart: dict[Subject, Standing] = {each.finding.subject: "excepted" for each in audit.excepted}
    apart |= {finding.subject: "known" for finding in audit.known}
    found = []
    for workload in audit.workloads:
        subject = Subject("workload", workload.name, workload.namespace, workload.kind)
        standing: Standing = "" if subject in left else apart.get(subject, "")
        found.append(workload if workload.standing == standing else replace(workload, standing=standing))
    return tuple(found)
