"""Findings that are set apart: what is left decides the verdict's counts, and how a workload stands."""

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from kubectl_cgaudit.audit.model import (
    CERTAINTIES,
    SEVERITIES,
    AtLeast,
    Audit,
    Certainty,
    Finding,
    Severity,
    Standing,
    Subject,
    Verdict,
    Workload,
)

_MOST_UNDECIDED = 1000


def recounted(audit: Audit) -> Audit:
    """Return the audit whose verdict counts its findings only. What workloads gain and lose stays."""
    counts = Counter(finding.severity for finding in audit.findings)
    verdict = Verdict(audit.verdict.workloads, {severity: counts[severity] for severity in reversed(SEVERITIES)})
    return replace(audit, verdict=verdict, workloads=_standing(audit))


def surely(finding: Finding, level: Severity) -> Certainty | None:
    """Return how surely a finding is this severe or worse; None where it is not, in any case."""
    known = finding.at_least or (AtLeast(finding.severity, finding.certainty),)
    found = [each.certainty for each in known if SEVERITIES.index(each.severity) >= SEVERITIES.index(level)]
    return min(found, key=CERTAINTIES.index, default=None)


def at_or_above(
    findings: Iterable[Finding], level: Severity, least: Certainty = "probable"
) -> tuple[int, list[Finding]]:
    """Return how many findings are this severe or worse with this certainty or better, and those that are with less.

    The latter hold in a case that is not excluded: unknown is not safe.
    """
    amount, undecided = 0, list[Finding]()
    for finding in findings:
        sure = surely(finding, level)
        if sure and CERTAINTIES.index(sure) <= CERTAINTIES.index(least):
            amount += 1
        elif sure and len(undecided) < _MOST_UNDECIDED:
            undecided.append(finding)
    return amount, undecided


def _standing(audit: Audit) -> tuple[Workload, ...]:
    left = {finding.subject for finding in audit.findings}
    apart: dict[Subject, Standing] = {each.finding.subject: "excepted" for each in audit.excepted}
    apart |= {finding.subject: "known" for finding in audit.known}
    found = []
    for workload in audit.workloads:
        subject = Subject("workload", workload.name, workload.namespace, workload.kind)
        standing: Standing = "" if subject in left else apart.get(subject, "")
        found.append(workload if workload.standing == standing else replace(workload, standing=standing))
    return tuple(found)
