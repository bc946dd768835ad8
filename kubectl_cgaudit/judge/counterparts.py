"""Which finding of a baseline is the counterpart of one of the audit: a gap is held against one as a set."""

from collections.abc import Iterable, Sequence

from kubectl_cgaudit.judge.audit import SEVERITIES, Finding, GapRecord, Subject
from kubectl_cgaudit.judge.rules import catalogue
from kubectl_cgaudit.judge.rules.coverage import Behind
from kubectl_cgaudit.text import NAMED

_Key = tuple[str, Subject | str]
_TITLES = frozenset(rule.title for rule in catalogue.RULES)


class Counterparts:
    """What the baseline found, of which each finding of the audit takes its counterpart out."""

    def __init__(self, found: Iterable[Finding], then: Sequence[GapRecord], now: Sequence[GapRecord]) -> None:
        self._then, self._now = Behind(then), Behind(now)
        # Earlier releases kept no list: the name has to do.
        self._listed = any(gap.kind for gap in then)
        self._left: dict[_Key, list[Finding]] = {}
        for finding in sorted(found, key=lambda each: each.order):
            self._left.setdefault(self._key(finding, self._then), []).append(finding)

    def take(self, finding: Finding) -> bool:
        """Take its counterpart out, if there is one that makes it known."""
        left = self._left.get(self._key(finding, self._now), [])
        same = [each for each in left if _may_be(finding, each) and not self._worse(finding, each)]
        if same:
            left.remove(min(same, key=lambda each: each.title != finding.title))
        return bool(same)

    def outgrown(self, finding: Finding) -> Sequence[str]:
        """Take out what it grew from, if anything, as that is not gone; what its gap has more."""
        left = self._left.get(self._key(finding, self._now), [])
        if of_it := next((each for each in left if _may_be(finding, each)), None):
            left.remove(of_it)
        return self._more(finding, of_it) if of_it else ()

    def left(self) -> tuple[Finding, ...]:
        """What no finding took."""
        return tuple(sorted((each for rest in self._left.values() for each in rest), key=lambda each: each.order))

    def _key(self, finding: Finding, gaps: Behind) -> _Key:
        gap = gaps.of(finding) if self._listed else None
        return finding.rule, gap.kind if gap and gap.kind else finding.subject

    def _worse(self, now: Finding, then: Finding) -> bool:
        """Whether it is more severe than it was, holds for sure where it only might, or tells of more."""
        graver = SEVERITIES.index(now.severity) < SEVERITIES.index(then.severity)
        return graver or (bool(then.when) and not now.when) or bool(self._more(now, then))

    def _more(self, now: Finding, then: Finding) -> Sequence[str]:
        """What its gap has that the other is not known to have had."""
        gap, was = self._now.of(now), self._then.of(then)
        if gap is None or was is None or not was.members:
            return gap.members[NAMED:] if gap else ()
        had = set(was.members)
        return [each for each in gap.members if each not in had]


def _may_be(now: Finding, then: Finding) -> bool:
    """Whether it is the same rule: some share an id, and a title that is none of theirs was worded otherwise once."""
    return then.title == now.title or then.title not in _TITLES
