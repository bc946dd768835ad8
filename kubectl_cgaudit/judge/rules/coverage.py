"""CGA001: what could not be read."""

from collections.abc import Iterable, Iterator

from kubectl_cgaudit.judge.audit import Finding, GapRecord, Subject
from kubectl_cgaudit.judge.rules.catalogue import INCOMPLETE


def gaps(records: Iterable[GapRecord]) -> Iterator[Finding]:
    """One finding a gap."""
    for gap in records:
        yield INCOMPLETE.finding("high", Subject("audit", gap.what), "", f"{gap.what}: {gap.why}.", f"{gap.remedy}.")
