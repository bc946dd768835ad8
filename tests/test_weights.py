"""The conversions against four real runtimes, exact arithmetic, and their inverses."""

from decimal import ROUND_CEILING, Decimal, localcontext
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_cgaudit.cgroups.weights import (
    MAX_SHARES,
    Formula,
    linear,
    linear_inverse,
    milli_to_shares,
    quadratic,
    shares_with_weight,
    weight_of,
)
from kubectl_cgaudit.detect import runtime
from kubectl_cgaudit.report.convert import of_weight
from tests.support import GOLDEN


def sweep() -> list[tuple[str, int, int]]:
    rows = [line.split("\t") for line in (GOLDEN / "runtime-sweep.tsv").read_text().splitlines()[1:]]
    return [(name, int(shares), int(weight)) for name, shares, weight in rows]


def test_every_recorded_runtime_wrote_what_its_version_predicts() -> None:
    rows = sweep()
    assert len(rows) == 228
    wrong = [
        row for row in rows if weight_of(row[1], "quadratic" if _formula(row[0]) == "quadratic" else "linear") != row[2]
    ]
    assert wrong == []
    assert {name: _formula(name) for name, _, _ in rows} == {
        "runc-1.3.6": "quadratic",
        "runc-1.1.15": "linear",
        "crun-1.28": "quadratic",
        "crun-1.21": "linear",
    }


def _formula(name: str) -> str:
    return runtime.parse(name.replace("-", " ")).formula


def test_quadratic_agrees_with_exact_arithmetic_on_every_share() -> None:
    # The exact value grows with the shares, so a weight is right for a whole run of shares if it is right at both ends.
    runs = [(weight, list(run)) for weight, run in groupby(range(2, MAX_SHARES + 1), key=quadratic)]
    assert sum(len(run) for _, run in runs) == MAX_SHARES - 1
    assert [weight for weight, _ in runs] == sorted({weight for weight, _ in runs})
    wrong = [
        (share, weight) for weight, run in runs for share in (run[0], run[-1]) if _exact_quadratic(share) != weight
    ]
    assert wrong == []


def _exact_quadratic(shares: int) -> int:
    if shares >= MAX_SHARES:
        return 10000
    with localcontext() as context:
        context.prec = 40
        log = Decimal(shares).ln() / Decimal(2).ln()
        value = Decimal(10) ** ((log * log + 125 * log) / 612 - Decimal(7) / 34)
        # 1024 is the one exact integer; 40 digits leave an error of far less than this in it.
        nearest = value.to_integral_value()
        if abs(value - nearest) < Decimal("1e-30"):
            return int(nearest)
        return max(1, int(value.to_integral_value(ROUND_CEILING)))


def test_linear_agrees_with_exact_arithmetic_on_every_share() -> None:
    wrong = [
        shares for shares in range(2, MAX_SHARES + 1) if linear(shares) != 1 + int(Decimal(shares - 2) * 9999 / 262142)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("shares", "line", "curve"),
    [
        (2, 1, 1),
        (3, 1, 2),
        (28, 1, 7),
        (102, 4, 17),
        (1024, 39, 100),
        (1048, 40, 102),
        (262143, 9999, 10000),
        (262144, 10000, 10000),
    ],
)
def test_published_points(shares: int, line: int, curve: int) -> None:
    assert (linear(shares), quadratic(shares)) == (line, curve)


def test_the_formulas_agree_only_at_the_ends() -> None:
    assert [s for s in range(2, MAX_SHARES + 1) if linear(s) == quadratic(s)] == [2, MAX_SHARES]


@pytest.mark.parametrize("shares", [-5, 0, 1])
def test_below_the_range_is_the_least_weight(shares: int) -> None:
    assert (linear(shares), quadratic(shares)) == (1, 1)


def test_above_the_range_is_the_greatest_weight() -> None:
    assert (linear(300_000), quadratic(300_000)) == (10000, 10000)


@given(st.integers(1, 10000))
def test_the_read_back_of_a_weight_has_that_weight_or_the_one_below(weight: int) -> None:
    # Integer division loses up to one step; the kubelet's read-back shares are known to.
    assert linear(linear_inverse(weight)) in (weight, weight - 1)


@given(st.integers(2, MAX_SHARES), st.sampled_from(["linear", "quadratic"]))
def test_the_shares_of_a_weight_are_the_whole_interval(shares: int, formula: str) -> None:
    curve = "linear" if formula == "linear" else "quadratic"
    first, last = shares_with_weight(weight_of(shares, curve), curve)
    assert first <= shares <= last
    assert weight_of(first, curve) == weight_of(last, curve) == weight_of(shares, curve)
    assert first == 2 or weight_of(first - 1, curve) < weight_of(shares, curve)
    assert last == MAX_SHARES or weight_of(last + 1, curve) > weight_of(shares, curve)


@pytest.mark.parametrize("formula", ["linear", "quadratic"])
def test_every_weight_has_requests_and_they_are_the_whole_interval(formula: Formula) -> None:
    def weigh(milli: int) -> int:
        return weight_of(milli_to_shares(milli), formula)

    for weight in range(1, 10001):
        (entry,) = [each for each in of_weight(weight)["weights"] if each["formula"] == formula]
        least, most = entry["requests_milli"]
        assert (weigh(least), least == 0 or weigh(least - 1) < weight) == (weight, True)
        if weight < 10000:
            assert (weigh(most), weigh(most + 1)) == (weight, weight + 1)
    assert most is None


@pytest.mark.parametrize("weight", [0, -1, 10001])
def test_a_weight_out_of_range_is_refused(weight: int) -> None:
    with pytest.raises(ValueError, match=r"1\.\.10000"):
        shares_with_weight(weight, "linear")
