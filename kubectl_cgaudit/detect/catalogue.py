"""What platforms are known to run: the rows of `catalogue.yaml`, held against a node's own strings."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Literal

import msgspec
from msgspec import Struct

from kubectl_cgaudit import yaml_reader
from kubectl_cgaudit.cgroups.paths import Driver
from kubectl_cgaudit.cgroups.weights import Formula
from kubectl_cgaudit.collect.model import Node
from kubectl_cgaudit.detect.evidence import Evidence
from kubectl_cgaudit.detect.state import CgroupVersion

Numbers = tuple[int, ...]

_LABEL = "label:"
_NAME = "name"
_WITHOUT_VALUE = "(no value)"
SUBJECTS = (
    "cgroup",
    "runtime:default",
    "host",
    "accepts",
    "services",
    "system_slice",
    "reserve",
    "kubepods",
    "burstable",
    "pod-quota",
    "conmon",
    "inner",
)
"""What a row may be about, beside `root:NAME`: the comment at the head of the file says which value means what."""


class Span(Struct, frozen=True):
    """A range of versions with both ends in it; an end counts as far as it is written, so `1.33` is all of 1.33."""

    low: Numbers
    high: Numbers

    @classmethod
    def parse(cls, text: str) -> "Span":
        """Read `1.33.0..1.33.5`, `..1.30`, `1.35..` or the single `2.1.5`."""
        low, dots, high = text.partition("..")
        return cls(_numbers(low), _numbers(high if dots else low))

    def __contains__(self, version: Numbers) -> bool:
        low, high = self.low[: len(version)], self.high[: len(version)]
        return version[: len(low)] >= low and version[: len(high)] <= high


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the catalogue.

    `match` gives the pattern each field has to fit; `within` the versions they may have together, one of
    its entries being enough. A row without a value keeps the rows after it from guessing.
    """

    id: str
    date: str
    """When its source was read; of status `unknown`, when a source was looked for and none found."""
    source: str
    status: Literal["verified", "inferred", "ambiguous", "unknown"]
    about: str
    """One of SUBJECTS, or `root:NAME` for a top-level cgroup beside kubepods and system.slice."""
    match: dict[str, str]
    note: str
    value: str | None = None
    confidence: Literal["likely", "probable", "hint"] = "hint"
    override: str = ""
    """What may make a node of this platform differ. A probable row has one."""
    of_host: bool = False
    """Whether it holds on a node that is a container too, as it speaks of the machine under it."""
    within: tuple[dict[str, str], ...] = ()


class Platform(Struct, frozen=True, forbid_unknown_fields=True):
    """A release that `--to platform=ID` names: what its nodes run, where a source says so. None leaves the node as it is."""

    id: str
    date: str
    source: str
    note: str
    cgroup: CgroupVersion | None = None
    runtime: Formula | None = None
    """The formula of every handler that sets a weight."""
    kubelet: str | None = None
    driver: Driver | None = None
    root: dict[str, int] | None = None
    """All that competes at the root beside kubepods and system.slice, with its weight; system.slice then has its default."""
    system_slice: int | None = None
    """What competes in the place of system.slice, where the platform has none."""
    services: str | None = None
    """The top-level cgroup that holds the kubelet and the container runtime."""
    reserve: str | None = None
    """The rule of the reserve that the kubelet enforces on system.slice."""
    reserve_match: dict[str, str] = {}
    """The nodes on which it does, as a row's `match`."""
    pod_quota: Literal["rounded"] | None = None
    """Its kubelet rounds a pod's quota up, though by its version it would not."""
    next_of: dict[str, str] = {}
    """The nodes whose next release may be this one, as a row's `match`: it changes what competes at their root."""
    next_within: tuple[dict[str, str], ...] = ()


class Command(Struct, frozen=True, forbid_unknown_fields=True):
    """How a platform tells what its nodes run, by a command of its own."""

    id: str
    date: str
    source: str
    about: str
    match: dict[str, str]
    command: str
    """NODE in it stands for the node's name; other words in capitals are the user's to fill in."""
    needs: str
    shows: str
    instead: bool = False
    """Whether there is no logging in to such a node, nor a debug pod that could look."""
    within: tuple[dict[str, str], ...] = ()


class Catalogue(Struct, frozen=True, forbid_unknown_fields=True):
    """The file as it is written. Every group of a pattern is a number of the version it reads."""

    patterns: dict[str, str]
    rows: tuple[Row, ...]
    targets: tuple[Platform, ...] = ()
    commands: tuple[Command, ...] = ()


class _Condition(Struct, frozen=True):
    """What a node's strings have to be."""

    patterns: tuple[tuple[str, str], ...]
    """Each field, and the name of the pattern it has to fit."""
    within: tuple[tuple[tuple[str, tuple[Span, ...]], ...], ...]

    def fits(self, strings: Mapping[str, str]) -> bool:
        versions: dict[str, Numbers] = {}
        for field, pattern in self.patterns:
            text = strings.get(field, "")
            numbers = _read(pattern, text) if field != _NAME else () if pattern in text.split() else None
            if numbers is None:
                return False
            versions[field] = numbers
        return not self.within or any(
            all(any(versions[field] in span for span in spans) for field, spans in ranges) for ranges in self.within
        )


class _Rule(Struct, frozen=True):
    row: Row
    condition: _Condition


@cache
def catalogue() -> Catalogue:
    """The catalogue of the package, read once."""
    text = resources.files("kubectl_cgaudit.detect").joinpath("catalogue.yaml").read_text(encoding="utf-8")
    return msgspec.convert(yaml_reader.document(text, yaml_reader.OBJECTS), Catalogue)


def evidence(node: Node) -> Iterator[Evidence]:
    """Yield what the catalogue says of the node: about each subject a piece, and another where that was read elsewhere."""
    if node.kind in ("windows", "virtual"):
        return
    strings = _strings(node)
    yield from _said(tuple([(field, strings[field]) for field in _fields() if field in strings]))


def commands(node: Node, about: str) -> tuple[Command, ...]:
    """Return the platform's own commands that answer a question about a node."""
    return tuple(row for row in catalogue().commands if row.about == about and fits(node, row.match, row.within))


def fits(node: Node, match: Mapping[str, str], within: Sequence[Mapping[str, str]] = ()) -> bool:
    """Return whether a node's strings fit these patterns and ranges of versions."""
    return _condition(match, within).fits(_strings(node))


@cache
def _fields() -> tuple[str, ...]:
    """Return the fields that any row looks at."""
    return tuple(sorted({field for row in catalogue().rows for field in row.match}))


@cache
def _names() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the patterns of names, by what they are called."""
    known = catalogue()
    matches = [each.match for each in known.rows] + [each.match for each in known.commands]
    called = {match[_NAME] for match in matches if _NAME in match}
    return tuple((name, _patterns()[name]) for name in sorted(called))


@lru_cache(maxsize=4096)
def _said(seen: tuple[tuple[str, str], ...]) -> tuple[Evidence, ...]:
    """Return what is said of all nodes with these strings."""
    return tuple(_evidence(dict(seen)))


def _evidence(strings: Mapping[str, str]) -> Iterator[Evidence]:
    fitting = [rule.row for rule in _rules() if rule.condition.fits(strings)]
    for about in dict.fromkeys(row.about for row in fitting):
        for row in _speakers([row for row in fitting if row.about == about]):
            yield Evidence(
                about,
                row.value or "",
                row.confidence,
                f"platform rule {row.id}",
                _saw(row, strings),
                row.override,
                "host" if row.of_host else "boot",
                tuple(row.match),
            )


def _speakers(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that count, of those about one subject that fit: the first, a likely one before all others.

    A row that was read from other strings counts too, unless one without a value keeps the rows after it silent. Likely rows
    that disagree settle nothing.
    """
    likely = [row for row in rows if row.confidence == "likely"]
    if len({row.value for row in likely}) > 1:
        return []
    found: list[Row] = []
    read: set[str] = set()
    for row in (*likely[:1], *rows):
        if row.value is None:
            break
        if not read & row.match.keys():
            found.append(row)
            read |= row.match.keys()
    return found


def _saw(row: Row, strings: Mapping[str, str]) -> str:
    fields = [field for field in row.match if field != _NAME and strings.get(field)]
    seen = [f"{field.removeprefix(_LABEL)} {strings[field]}" for field in fields] or ["its name"]
    return f"{', '.join(seen)}: {row.note}"


@cache
def _rules() -> tuple[_Rule, ...]:
    return tuple(_Rule(row, _condition(row.match, row.within)) for row in catalogue().rows)


@lru_cache(maxsize=16384)
def _read(pattern: str, text: str) -> Numbers | None:
    """Return the numbers that a pattern reads in a text; None where it does not fit."""
    found = _patterns()[pattern].fullmatch(text)
    return tuple(int(group) for group in found.groups() if group) if found else None


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    return {name: re.compile(pattern, re.ASCII) for name, pattern in catalogue().patterns.items()}


def _condition(match: Mapping[str, str], within: Sequence[Mapping[str, str]]) -> _Condition:
    return _Condition(
        tuple(match.items()),
        tuple(
            tuple((field, tuple(map(Span.parse, spans.split()))) for field, spans in ranges.items())
            for ranges in within
        ),
    )


def _strings(node: Node) -> dict[str, str]:
    return {
        "kubelet": node.kubelet_version,
        "runtime": node.runtime_version,
        "os": node.os_image,
        "kernel": node.kernel,
        # What a name is like, not which it is: so nodes that are alike are looked at once.
        _NAME: " ".join(name for name, pattern in _names() if pattern.fullmatch(node.name)),
        "provider": node.provider,
        # The roles of a node are labels without a value.
        **{f"{_LABEL}{key}": value or _WITHOUT_VALUE for key, value in node.labels.items()},
    }


def _numbers(text: str) -> Numbers:
    return tuple(int(part) for part in text.split(".") if part)
