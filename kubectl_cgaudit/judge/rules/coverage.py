"""CGA001: what could not be read."""

from collections.abc import Iterable, Iterator

from kubectl_cgaudit.judge.audit import Finding, GapRecord, Subject
from kubectl_cgaudit.judge.rules.catalogue import INCOMPLETE


def gaps(records: Iterable[GapRecord]) -> Iterator[Finding]:
    """One finding a gap."""
    for gap in records:
        yield INCOMPLETE.finding("high", Subject("audit", gap.what), "", _seen(gap), f"{gap.remedy}.")


class Behind:
    """The gaps of an audit, by what their findings say: a name holds only the first of a list."""

    def __init__(self, records: Iterable[GapRecord]) -> None:
        self._gaps = {_seen(gap): gap for gap in records}

    def of(self, finding: Finding) -> GapRecord | None:
        """The gap that a finding tells of; None if it tells of none."""
        return self._gaps.get(finding.seen) if finding.rule == INCOMPLETE.id else None


def _seen(gap: GapRecord) -> str:
    return f"{gap.what}: {gap.why}."
