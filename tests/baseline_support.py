"""The audit of the recorded cluster, held against a baseline."""

from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import Audit, Finding
from kubectl_cgaudit.judge.baseline import against, load
from tests.support import recorded_audit, rendered

AUDIT = recorded_audit()


def compared(baseline: Audit, audit: Audit = AUDIT) -> Audit:
    return against(load(rendered("json", baseline).encode(), "base.json"), audit)


def without(audit: Audit, *places: int) -> Audit:
    return replace(audit, findings=tuple(each for i, each in enumerate(audit.findings) if i not in places))


def ids(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(each.rule, each.subject.title) for each in findings]
