"""What platforms are known to run: the rules of `catalogue.yaml`, held against a node's own strings."""

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Literal

import msgspec
from msgspec import Struct

from kubectl_cgaudit import yaml_reader
from kubectl_cgaudit.collect.model import Node
from kubectl_cgaudit.detect.evidence import Evidence

Subject = Literal["cgroup", "runtime:default"]
Numbers = tuple[int, ...]

_LABEL = "label:"


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
    its entries being enough. A row without a value keeps the weaker ones after it from guessing.
    """

    id: str
    date: str
    """When its source was read."""
    source: str
    status: Literal["verified", "inferred", "ambiguous", "unknown"]
    about: Subject
    match: dict[str, str]
    note: str
    value: Literal["linear", "quadratic", "none", "v1", "v2"] | None = None
    confidence: Literal["likely", "hint"] = "hint"
    within: tuple[dict[str, str], ...] = ()


class Catalogue(Struct, frozen=True, forbid_unknown_fields=True):
    """The file as it is written. Every group of a pattern is a number of the version it reads."""

    patterns: dict[str, str]
    rows: tuple[Row, ...]


class _Rule(Struct, frozen=True):
    row: Row
    patterns: tuple[tuple[str, re.Pattern[str]], ...]
    within: tuple[tuple[tuple[str, tuple[Span, ...]], ...], ...]

    def fits(self, strings: Mapping[str, str]) -> bool:
        versions: dict[str, Numbers] = {}
        for field, pattern in self.patterns:
            found = pattern.fullmatch(strings.get(field, ""))
            if not found:
                return False
            versions[field] = tuple(int(group) for group in found.groups() if group)
        return not self.within or any(
            all(any(versions[field] in span for span in spans) for field, spans in ranges) for ranges in self.within
        )


@cache
def catalogue() -> Catalogue:
    """The catalogue of the package, read once."""
    text = resources.files("kubectl_cgaudit.detect").joinpath("catalogue.yaml").read_text(encoding="utf-8")
    return msgspec.convert(yaml_reader.document(text, yaml_reader.OBJECTS), Catalogue)


def evidence(node: Node) -> Iterator[Evidence]:
    """What the catalogue says of the node: at most one piece about each subject."""
    if node.kind in ("windows", "virtual"):
        return
    fields, names = _looked_at()
    strings = _strings(node)
    if not any(pattern.fullmatch(node.name) for pattern in names):
        # Then the name is no reason to look again.
        strings["name"] = ""
    yield from _said(tuple([(field, strings[field]) for field in fields if field in strings]))


@cache
def _looked_at() -> tuple[tuple[str, ...], tuple[re.Pattern[str], ...]]:
    """The fields that any rule looks at, and the patterns of names."""
    patterns = [each for rule in _rules() for each in rule.patterns]
    return tuple(sorted({field for field, _ in patterns})), tuple(found for field, found in patterns if field == "name")


@lru_cache(maxsize=4096)
def _said(seen: tuple[tuple[str, str], ...]) -> tuple[Evidence, ...]:
    """What is said of all nodes with these strings."""
    return tuple(_evidence(dict(seen)))


def _evidence(strings: Mapping[str, str]) -> Iterator[Evidence]:
    for about in ("cgroup", "runtime:default"):
        row = _speaker([rule.row for rule in _rules() if rule.row.about == about and rule.fits(strings)])
        if row and row.value:
            yield Evidence(about, row.value, row.confidence, f"platform rule {row.id}", _saw(row, strings))


def _speaker(rows: list[Row]) -> Row | None:
    """The first likely row, else the first at all; likely rows that disagree settle nothing."""
    likely = [row for row in rows if row.confidence == "likely"]
    if len({row.value for row in likely}) > 1:
        return None
    return next(iter(likely or rows), None)


def _saw(row: Row, strings: Mapping[str, str]) -> str:
    seen = [f"{field.removeprefix(_LABEL)} {strings[field]}" for field in row.match if strings.get(field)]
    return f"{', '.join(seen)}: {row.note}"


@cache
def _rules() -> tuple[_Rule, ...]:
    known = catalogue()
    patterns = {name: re.compile(pattern, re.ASCII) for name, pattern in known.patterns.items()}
    return tuple(
        _Rule(
            row,
            tuple((field, patterns[name]) for field, name in row.match.items()),
            tuple(
                tuple((field, tuple(map(Span.parse, spans.split()))) for field, spans in ranges.items())
                for ranges in row.within
            ),
        )
        for row in known.rows
    )


def _strings(node: Node) -> dict[str, str]:
    return {
        "kubelet": node.kubelet_version,
        "runtime": node.runtime_version,
        "os": node.os_image,
        "kernel": node.kernel,
        "name": node.name,
        **{f"{_LABEL}{key}": value for key, value in node.labels.items()},
    }


def _numbers(text: str) -> Numbers:
    return tuple(int(part) for part in text.split(".") if part)
