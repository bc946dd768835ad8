"""CGA001: what could not be read."""

from collections.abc import Iterable, Iterator

from kubectl_cgaudit.judge.audit import Finding, GapRecord, Subject
from kubectl_cgaudit.judge.rules.catalogue import INCOMPLETE


def gaps(records: Iterable[GapRecord]) -> Iterator[Finding]:
    """One finding a gap."""
    for gap in records:
        yield INCOMPLETE.finding("high", Subject("audit", gap.what), "", f"{gap.what}: {gap.why}.", f"{gap.remedy}.")


class Behind:
    """The gaps of an audit, by what their findings are about: of a list it names the first only."""

    def __init__(self, records: Iterable[GapRecord]) -> None:
        self._gaps: dict[str, list[GapRecord]] = {}
        for gap in records:
            self._gaps.setdefault(gap.what, []).append(gap)

    def of(self, finding: Finding) -> GapRecord | None:
        """The gap that a finding tells of; None if it tells of none. What it says decides only between two of one name."""
        found = self._gaps.get(finding.subject.name) if finding.rule == INCOMPLETE.id else None
        return max(found, key=lambda gap: gap.why in finding.seen) if found else None
