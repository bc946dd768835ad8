"""Requests for a weight, and the shift that gives a container its part back."""

from typing import Any

import pytest

from kubectl_cgaudit.cgroups.weights import Formula, milli_to_shares, quadratic, weight_of
from kubectl_cgaudit.judge.rules.rebalance import Balance, Requests, request_for


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
