"""The findings of an audit, packed: they say much the same of many, and all of a large cluster's would fill the memory."""

import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby
from operator import itemgetter

import msgspec

from kubectl_cgaudit.judge.audit import (
    SEVERITIES,
    AtLeast,
    Certainty,
    Finding,
    FindingCase,
    Graver,
    Severity,
    Subject,
    SubjectKind,
)
from kubectl_cgaudit.lazy import Lazy

_BLOCK = 256
_FASTEST = 1

Face = tuple[Severity, str, str]
"""Severity, rule and title: what findings under one headline have in common."""


class _Rule(msgspec.Struct, frozen=True):
    """What the findings of a rule have in common."""

    id: str
    severity: Severity
    title: str
    why: str


class _Row(msgspec.Struct, array_like=True, gc=False):
    """What is a finding's own."""

    rule: int
    kind: SubjectKind
    name: str
    namespace: str | None
    workload_kind: str | None
    when: str
    seen: str
    remedy: str
    certainty: Certainty
    cases: tuple[FindingCase, ...]
    graver: Graver | None
    at_least: tuple[AtLeast, ...]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[_Row])


class Findings(Lazy[Finding]):
    """The worst first, each made when it is asked for. They are packed in blocks, so they are best read in their order."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        known: dict[_Rule, int] = {}
        open_: dict[tuple[bool, int, str, str, int], list[_Row]] = {}
        full: dict[tuple[bool, int, str, str, int], list[tuple[int, bytes]]] = {}
        for finding in findings:
            rule = known.setdefault(_Rule(finding.rule, finding.severity, finding.title, finding.why), len(known))
            about = finding.subject
            rows = open_.setdefault(finding.order, [])
            rows.append(
                _Row(
                    rule,
                    about.kind,
                    about.name,
                    about.namespace,
                    about.workload_kind,
                    finding.when,
                    finding.seen,
                    finding.remedy,
                    finding.certainty,
                    finding.cases,
                    finding.graver,
                    finding.at_least,
                )
            )
            if len(rows) == _BLOCK:
                full.setdefault(finding.order, []).append(_packed(rows))
                rows.clear()
        blocks = [
            (order, *block)
            for order in sorted(open_)
            for block in [*full.get(order, ()), _packed(open_[order])]
            if block[0]
        ]
        self._rules = list(known)
        self.faces: list[tuple[Face, int]] = [
            ((SEVERITIES[severity], rule, title), amount) for (_, severity, rule, title, _), amount, _ in blocks
        ]
        """Of each block, and how many are in it."""
        self._blocks = [data for _, _, data in blocks]
        self._ends = list(accumulate(amount for _, amount, _ in blocks))
        self._read: tuple[int, list[Finding]] = (-1, [])
        """The block that was read last, and its place."""

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[Finding]:
        for block in self._blocks:
            yield from self._unpacked(block)

    def _at(self, index: int) -> Finding:
        block = bisect_right(self._ends, index)
        if self._read[0] != block:
            self._read = block, self._unpacked(self._blocks[block])
        found: Finding = self._read[1][index - self._ends[block]]
        return found

    def _unpacked(self, block: bytes) -> list[Finding]:
        found = []
        for row in _DECODER.decode(zlib.decompress(block)):
            rule = self._rules[row.rule]
            about = Subject(row.kind, row.name, row.namespace, row.workload_kind)
            told = row.when, row.seen, rule.why, row.remedy, row.certainty, row.cases, row.graver, row.at_least
            found.append(Finding(rule.id, rule.severity, rule.title, about, *told))
        return found


def faces(findings: Sequence[Finding]) -> list[tuple[Face, int]]:
    """What findings in a row have in common, and how many they are; packed ones need not be read for it."""
    if isinstance(findings, Findings):
        found: Iterable[tuple[Face, int]] = findings.faces
    else:
        found = (((each.severity, each.rule, each.title), 1) for each in findings)
    return [(face, sum(amount for _, amount in run)) for face, run in groupby(found, itemgetter(0))]


def _packed(rows: Sequence[_Row]) -> tuple[int, bytes]:
    """How many there are, and their bytes."""
    return len(rows), zlib.compress(_ENCODER.encode(rows), _FASTEST)
