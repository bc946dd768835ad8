"""Requests for a weight, and the shift that gives a container its part back."""

from typing import Any

import pytest

from kubectl_cgaudit.actions.rebalance import Balance, Measure, Requests, request_for, value
from kubectl_cgaudit.cgroups.weights import Formula, milli_to_shares, quadratic, weight_of


def part(mine: int, theirs: int, formula: Formula) -> float:
    own, other_ = (weight_of(milli_to_shares(milli), formula) for milli in (mine, theirs))
    return own / (own + other_)


@pytest.mark.parametrize(
    ("mine", "theirs", "formula", "found"),
    [
        # Weighing the two against each other in turn, these went back and forth between no shift and one far too large.
        (50, 2000, "linear", (105, 1945)),
        (20, 2000, "linear", (54, 1966)),
        (1000, 100, "quadratic", (1050, 50)),
    ],
)
def test_204_finds_the_shift_that_comes_nearest(
    mine: int, theirs: int, formula: Formula, found: tuple[int, int]
) -> None:
    old: Formula = "quadratic" if formula == "linear" else "linear"
    wanted = part(mine, theirs, old)
    ratio = 1 / wanted - 1
    assert Balance(mine, (theirs,), (ratio,), formula, 0.05).shifted() == (found[0], (found[1],))
    whole = mine + theirs
    missed = [abs(part(each, whole - each, formula) / wanted - 1) for each in range(mine, whole)]
    assert abs(part(*found, formula) / wanted - 1) == pytest.approx(min(missed))


@pytest.mark.parametrize(
    ("mine", "theirs", "before", "after", "shifted", "raised", "spread"),
    [
        (1000, (10, 250), "linear", "quadratic", (1077, (6, 177)), 1491, (1078, (6, 176))),
        (1000, (250, 10), "linear", "quadratic", (1077, (177, 6)), 1491, (1078, (176, 6))),
        # Whole weights leave the smaller one short where all are spread.
        (1000, (100, 50), "shares", "quadratic", (1080, (50, 20)), 2188, None),
        # Of six each may have the value just below or above what it should; of seven all have the one or the other.
        (2000, (100, 10, 500, 200, 50, 25), "linear", "quadratic", (2315, (43, 6, 391, 109, 15, 6)), 3576, None),
        (
            2000,
            (10, 50, 10, 100, 1, 100, 2),
            "shares",
            "quadratic",
            (2165, (2, 15, 2, 43, 1, 43, 2)),
            5703,
            (2174, (2, 15, 2, 38, 2, 38, 2)),
        ),
        (10, (100, 100), "quadratic", "shares", (23, (91, 96)), 24, (22, (94, 94))),
        (5, (25,), "quadratic", "shares", (8, (22,)), 8, (8, (22,))),
        (5, (150,), "linear", "shares", (23, (132,)), 26, (23, (132,))),
    ],
)
def test_204_of_several_gainers_each_gives_and_the_sum_stays(
    mine: int,
    theirs: tuple[int, ...],
    before: Measure,
    after: Measure,
    shifted: Requests,
    raised: int,
    spread: Requests | None,
) -> None:
    own, *others = (value(milli, before) for milli in (mine, *theirs))
    balance = Balance(mine, theirs, tuple(other / own for other in others), after, 0.05)
    assert (balance.shifted(), balance.raised(), balance.spread()) == (shifted, raised, spread)
    sums = {found[0] + sum(found[1]) for found in (shifted, spread) if found}
    assert sums == {mine + sum(theirs)}
    assert not any(map(balance.too_much, balance.lacking(shifted)))


@pytest.mark.parametrize(("wanted", "weight"), [(1, 1), (10.26, 10), (35, 35), (99.6, 100), (10000, 10000)])
def test_the_least_request_nearest_to_a_weight(wanted: float, weight: int) -> None:
    milli = request_for(wanted, "quadratic")
    assert quadratic(milli_to_shares(milli)) == weight
    assert weight == 1 or quadratic(milli_to_shares(milli - 1)) == weight - 1


@pytest.mark.parametrize(
    ("wanted", "formula", "milli"),
    [
        (0.3, "linear", 2),
        (1, "linear", 2),
        (2, "linear", 29),
        (10000, "linear", 256000),
        (20000, "linear", 256000),
        (0.3, "quadratic", 2),
        (2, "quadratic", 3),
        (10000, "quadratic", 255972),
    ],
)
def test_the_request_for_a_weight_at_the_ends(wanted: float, formula: Any, milli: int) -> None:
    assert request_for(wanted, formula) == milli


def test_204_no_request_has_more_than_the_greatest_weight() -> None:
    assert Balance(4000, (256000,), (0.5,), "linear", 0.05).raised() == 256000


@pytest.mark.parametrize(
    ("rest", "ratio", "requests", "lacks", "fair"),
    [
        # Beside 128 and 256 it lacks 25% of its third: beside 184 and 199 not more.
        (128, 1.0, (180, (195,)), 0.2485, True),
        (128, 1.0, (250, (250,)), 0.4, False),
        # Beside 128 and 256 it lacks nothing.
        (256, 1.3, (250, (250,)), 0.1538, False),
        (256, 1.3, (200, (199,)), 0.0198, True),
    ],
)
def test_204_the_rest_may_not_lack_more_than_without(
    rest: int, ratio: float, requests: Requests, lacks: float, fair: bool
) -> None:
    balance = Balance(125, (250,), (1.0,), "shares", 0.05, (rest,), (ratio,))
    assert balance.lacking(requests)[2] == pytest.approx(lacks, abs=1e-4)
    assert balance.fair(requests) is fair


@pytest.mark.parametrize(
    ("lacks", "too_much"), [(0.05, True), (0.04999999999, True), (0.0499998, False), (-0.1, False)]
)
def test_204_lacks_too_much_who_would_be_found(lacks: float, too_much: bool) -> None:
    balance = Balance(125, (250,), (1.0,), "shares", 0.05)
    assert balance.too_much(lacks) is too_much
    assert not Balance(125, (250,), (1.0,), "shares", 1e-9).too_much(1e-16)
