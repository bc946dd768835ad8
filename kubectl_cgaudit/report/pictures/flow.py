"""A pod's way down the tree as columns: each divides among siblings what the column before gave to one of them."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kubectl_cgaudit.report.escape import shorten
from kubectl_cgaudit.report.pictures.levels import Level, Part, Role
from kubectl_cgaudit.report.words import percent

WIDTH = 760
_TOP, _HEIGHT, _BAR, _STEP = 34.0, 120.0, 122.0, 198.0
HEIGHT = int(_TOP + _HEIGHT + 42)
_LEAST_LABELLED = 15.0
_LONGEST = 14


class Box(Struct, frozen=True):
    """A part of a column. Pixels of the picture's own coordinates."""

    x: float
    y: float
    width: float
    height: float
    role: Role
    label: str
    """Empty where the part is too low for a line."""


class Column(Struct, frozen=True):
    """A level: its title above, what its own box is of the node below, its boxes, and the funnel to the next."""

    x: float
    title: str
    caption: tuple[str, ...]
    """Lines, as columns stand too close for a long one; the second is what the own box is too low for."""
    boxes: tuple[Box, ...]
    funnel: str
    """Points of a polygon, empty for the last column."""


class Flow(Struct, frozen=True):
    """The picture, and what it says in words."""

    columns: tuple[Column, ...]
    text: str


def flow(levels: Sequence[Level]) -> Flow:
    """The columns of a pod's levels."""
    return Flow(tuple(_columns(levels)), "; ".join(_said(level) for level in levels))


def _said(level: Level) -> str:
    return f"{level.title}: " + ", ".join(f"{part.label} {percent(part.fraction)}" for part in level.parts)


def _columns(levels: Sequence[Level]) -> Iterator[Column]:
    of_node = 1.0
    for index, level in enumerate(levels):
        x = index * _STEP + 8
        of_node *= level.own.fraction
        boxes = tuple(_boxes(level.parts, x))
        own = next(box for box in boxes if box.role == "own")
        funnel = ""
        if index + 1 < len(levels):
            right, target = x + _BAR, x + _STEP
            corners = [
                (right, own.y),
                (target, _TOP),
                (target, _TOP + _HEIGHT),
                (right, own.y + own.height),
            ]
            funnel = " ".join(f"{_round(a)},{_round(b)}" for a, b in corners)
        unlabelled = () if own.label else (_label(level.own),)
        yield Column(x, level.title, (f"{percent(of_node)} of the node", *unlabelled), boxes, funnel)


def _boxes(parts: Sequence[Part], x: float) -> Iterator[Box]:
    y = _TOP
    for part in parts:
        height = part.fraction * _HEIGHT
        label = _label(part) if height >= _LEAST_LABELLED else ""
        yield Box(x, _round(y), _BAR, max(_round(height), 0.6), part.role, label)
        y += height


def _label(part: Part) -> str:
    return f"{shorten(part.label, _LONGEST)} {percent(part.fraction)}"


def _round(value: float) -> float:
    return round(value, 1)
