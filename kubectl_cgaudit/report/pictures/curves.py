"""Both conversions from shares to weight on logarithmic axes, with the audited containers on them."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from msgspec import Struct

from kubectl_cgaudit.cgroups.weights import (
    DEFAULT_SHARES,
    MAX_SHARES,
    MAX_WEIGHT,
    MIN_SHARES,
    linear,
    milli_to_shares,
    quadratic,
)
from kubectl_cgaudit.judge.audit import WeightCount

WIDTH, HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 700.0, 14.0, 350.0
_SAMPLES = 96
_LARGEST_DOT = 11.0


class Tick(Struct, frozen=True):
    """A line of the grid with its label."""

    at: float
    label: str


class Dot(Struct, frozen=True):
    """Containers at one place of the picture."""

    x: float
    y: float
    radius: float
    moment: Literal["now", "after"]
    text: str


class Curves(Struct, frozen=True):
    """The picture."""

    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    linear: str
    quadratic: str
    default_x: float
    default_linear_y: float
    default_quadratic_y: float
    dots: tuple[Dot, ...]


class Request(Struct, frozen=True):
    """A row of the table below the picture."""

    milli: int | None
    shares: int
    containers: int
    linear: int
    quadratic: int


def curves(counts: Iterable[WeightCount]) -> Curves:
    """The picture of the containers that have a weight now or after."""
    now: Counter[tuple[int, int]] = Counter()
    after: Counter[tuple[int, int]] = Counter()
    for each in counts:
        shares = _shares(each)
        if not _from_its_request(each, shares):
            continue
        if each.before_version == "v2" and each.before is not None:
            now[shares, each.before] += each.containers
        if each.after_version == "v2" and each.after is not None:
            after[shares, each.after] += each.containers
    cpus = (("2m", 2), ("10m", 10), ("100m", 102), ("1 CPU", 1024), ("10", 10240), ("100", 102400))
    return Curves(
        across=tuple(Tick(_x(shares), label) for label, shares in cpus),
        up=tuple(Tick(_y(weight), str(weight)) for weight in (1, 10, 100, 1000, 10000)),
        linear=_line(linear),
        quadratic=_line(quadratic),
        default_x=_x(DEFAULT_SHARES),
        default_linear_y=_y(linear(DEFAULT_SHARES)),
        default_quadratic_y=_y(quadratic(DEFAULT_SHARES)),
        dots=(*_dots(after, "after"), *_dots(now, "now")),
    )


def requests(counts: Iterable[WeightCount]) -> list[Request]:
    """How many containers ask for what, and what either formula makes of it; the most frequent first."""
    asked: Counter[tuple[int | None, int]] = Counter()
    for each in counts:
        if _from_its_request(each, _shares(each)):
            asked[each.request_milli, _shares(each)] += each.containers
    ordered = sorted(asked.items(), key=lambda each: (-each[1], each[0][1]))
    return [Request(milli, shares, count, linear(shares), quadratic(shares)) for (milli, shares), count in ordered]


def _shares(count: WeightCount) -> int:
    return milli_to_shares(count.request_milli or 0)


def _from_its_request(count: WeightCount, shares: int) -> bool:
    """Whether its weights come from its own request; of pod-level resources the audit does not say how."""
    weights = {count.before} if count.before_version == "v2" else set()
    weights |= {count.after} if count.after_version == "v2" else set()
    return weights <= {None, linear(shares), quadratic(shares)}


def _dots(found: Counter[tuple[int, int]], moment: Literal["now", "after"]) -> Iterator[Dot]:
    """A dot for each place, not for each pair: pairs a pixel apart are one to the eye."""
    places: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for (shares, weight), count in found.items():
        places.setdefault((round(_x(shares) / 4), round(_y(weight) / 4)), []).append((count, shares, weight))
    most = max((sum(count for count, _, _ in each) for each in places.values()), default=1)
    for members in sorted(places.values(), key=lambda each: min(each)[1:]):
        _, shares, weight = max(members)
        count = sum(each[0] for each in members)
        radius = 3 + (_LARGEST_DOT - 3) * math.sqrt(count / most)
        text = f"{moment}: {shares} shares, weight {weight}: {count} container{'s' if count > 1 else ''}"
        yield Dot(_x(shares), _y(weight), round(radius, 1), moment, text)


def _line(formula: Callable[[int], int]) -> str:
    points = {
        round(math.exp(math.log(MIN_SHARES) + (math.log(MAX_SHARES) - math.log(MIN_SHARES)) * i / _SAMPLES))
        for i in range(_SAMPLES + 1)
    }
    return " ".join(f"{_x(shares)},{_y(formula(shares))}" for shares in sorted(points))


def _x(shares: int) -> float:
    part = (math.log(shares) - math.log(MIN_SHARES)) / (math.log(MAX_SHARES) - math.log(MIN_SHARES))
    return round(_LEFT + part * (_RIGHT - _LEFT), 1)


def _y(weight: int) -> float:
    return round(_BOTTOM - math.log(weight) / math.log(MAX_WEIGHT) * (_BOTTOM - _TOP), 1)
