"""Findings that do not count, and why: excepted by a policy, known from a baseline, gone since. Plain text, not escaped."""

from collections.abc import Iterable

from msgspec import Struct

from kubectl_cgaudit.judge.audit import Audit, Finding
from kubectl_cgaudit.report.words import counted


class Group(Struct, frozen=True):
    """Findings of one rule and severity that are set apart for one reason."""

    lead: str
    """`high CGA201 loses priority against system processes`."""
    subjects: tuple[str, ...]
    reason: str = ""


class Apart(Struct, frozen=True):
    """Why findings are set apart, and which."""

    title: str
    said: str
    groups: tuple[Group, ...] = ()
    notes: tuple[str, ...] = ()


def parts(audit: Audit) -> tuple[Apart, ...]:
    """What a policy and a baseline did; nothing where there was neither."""
    found = []
    if audit.policy:
        source, amount = audit.policy.source, len(audit.excepted)
        levels = ", ".join(f"{rule} {level}" for rule, level in audit.policy.severities.items())
        sets = f" Severities it sets: {levels}." if levels else ""
        excepted = [(each.finding, _reason(each.reason, each.expires, each.source)) for each in audit.excepted]
        found.append(Apart("Excepted", f"{_amount(amount)} excepted by {source}.{sets}", _groups(excepted)))
    if audit.baseline:
        source, amount = audit.baseline.source, len(audit.known)
        dated = f" ({audit.baseline.generated_at})" if audit.baseline.generated_at else ""
        known = _groups((each, "") for each in audit.known)
        notes = tuple(f"{note}." for note in audit.baseline.notes)
        found.append(Apart("Known", f"{_amount(amount)} known from the baseline {source}{dated}.", known, notes))
        if audit.fixed:
            verb = "is" if len(audit.fixed) == 1 else "are"
            said = f"{counted(len(audit.fixed), 'finding')} of the baseline {source} {verb} gone."
            found.append(Apart("Fixed", said, _groups((each, "") for each in audit.fixed)))
    return tuple(found)


def amounts(audit: Audit) -> str:
    """`20 known from baseline.json, 3 excepted by policy.yaml`; empty where nothing is set apart."""
    said = []
    if audit.baseline:
        said.append(f"{len(audit.known)} known from {audit.baseline.source}")
        said += [f"{len(audit.fixed)} of it gone"] if audit.fixed else []
    if audit.policy:
        said.append(f"{len(audit.excepted)} excepted by {audit.policy.source}")
    return ", ".join(said)


def _amount(amount: int) -> str:
    verb = "is" if amount == 1 else "are"
    return f"{counted(amount, 'finding')} {verb} not counted:" if amount else "No finding is"


def _reason(reason: str, expires: str | None, source: str) -> str:
    until = f", until {expires}" if expires else ""
    return f"{reason}{until} ({source})"


def _groups(findings: Iterable[tuple[Finding, str]]) -> tuple[Group, ...]:
    grouped: dict[tuple[str, str], list[str]] = {}
    for finding, reason in findings:
        lead = f"{finding.severity} {finding.rule} {finding.title}"
        grouped.setdefault((lead, reason), []).append(_subject(finding))
    return tuple(Group(lead, tuple(subjects), reason) for (lead, reason), subjects in grouped.items())


def _subject(finding: Finding) -> str:
    about = finding.subject
    said = [f"{about.title}{f' ({about.workload_kind})' if about.workload_kind else ''}", finding.when]
    return " ".join(part for part in said if part)
