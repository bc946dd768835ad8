"""The audit of the recorded cluster, held against a baseline."""

from msgspec.structs import replace

from kubectl_cgaudit.audit.baseline import against
from kubectl_cgaudit.audit.model import Audit, Finding
from kubectl_cgaudit.audit.saved import Saved, load_audit
from kubectl_cgaudit.report.findings import described
from kubectl_cgaudit.report.records import Json
from tests.support import STATES, recorded, rendered, saved

SAVED = saved(recorded(), STATES.read_text())
AUDIT = SAVED.audit


def written(audit: Audit) -> bytes:
    """An audit as JSON, without its containers."""
    writer = Json()
    return b"".join([*writer.head(audit), *writer.tail()])


def compared(baseline: Audit, audit: Audit = AUDIT) -> Audit:
    return described(against(load_audit(written(baseline), "base.json"), "base.json", audit))


def shown(name: str, audit: Audit) -> str:
    """A report of an audit, with the containers of the recorded cluster."""
    return rendered(name, Saved(audit, SAVED.containers))


def without(audit: Audit, *places: int) -> Audit:
    return replace(audit, findings=tuple(each for i, each in enumerate(audit.findings) if i not in places))


def ids(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(each.rule, each.subject.title) for each in findings]
