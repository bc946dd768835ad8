"""What comes of one prediction: outcomes of numbers and words, and the worst of several."""

import pytest

from kubectl_cgaudit.compare.diff.outcome import Limit, consistent, exact, of_numbers, of_words, within, worst
from kubectl_cgaudit.compare.diff.types import Measure


def test_halves_of_a_measure() -> None:
    limit = Limit(0.1, 0.2)
    assert [limit.moved(1.0, now) for now in (0.9, 0.91, 1.19, 1.2)] == [True, False, False, True]
    assert [limit.moved(-1.0, now) for now in (-1.1, -1.09, -0.81, -0.8)] == [True, False, False, True]
    assert within(None, 1.0, 1.0, limit) == "unknown"
    assert within(1.0, 0.5, 1.5, limit) == "otherwise"
    assert within(1.0, 2.0, 1.95, limit) == "came-true"
    assert within(1.0, 2.0, 1.05, limit) == "as-before"
    assert worst([]) == "unchanged"
    words = of_words("weight", "", [("none", "none"), (5, 5)], ["none", 4])
    assert (words.outcome, words.before, words.now) == ("unknown", (5, "none"), (4, "none"))
    numbers = of_numbers("share", [(None, 0.5), (0.25, None)], [None, 0.5], limit)
    assert (numbers.before, numbers.predicted, numbers.now) == ((0.25,), (0.5,), (0.5,))


def test_a_number_that_moved_only_from_what_was_predicted_is_unchanged() -> None:
    assert within(1.0, 0.92, 1.02, Limit(0.10, 0.10)) == "unchanged"


def test_many_numbers_are_in_order() -> None:
    numbers = [3.0, 0.75, 2.0, 0.5, 0.25, 1.0]
    found = of_numbers("share", [(each, each) for each in numbers], numbers, Limit(0.1, 0.1))
    assert found.before == found.predicted == found.now == (0.25, 0.5, 0.75, 1.0, 2.0, 3.0)


def test_where_a_change_was_predicted_nothing_of_the_same_cgroup_moved_unpredicted() -> None:
    changed = Measure("weight", "", "came-true", ("a",), ("b",), ("b",))
    moved = Measure("quota-us", "", "unpredicted", (1,), (1,), (2,))
    stayed = Measure("share", "", "unchanged", (1.0,), (1.0,), (1.0,))
    assert [each.outcome for each in consistent([changed, moved, stayed])] == ["came-true", "otherwise", "unchanged"]
    assert [each.outcome for each in consistent([moved, stayed])] == ["unpredicted", "unchanged"]


@pytest.mark.parametrize(
    ("before", "predicted", "now", "outcome"),
    [
        ("a", "a", "a", "unchanged"),
        ("a", "a", "b", "unpredicted"),
        ("a", "b", "b", "came-true"),
        ("a", "b", "a", "as-before"),
        ("a", "b", "c", "otherwise"),
    ],
)
def test_exact_outcomes(before: str, predicted: str, now: str, outcome: str) -> None:
    assert exact(before, predicted, now) == outcome


@pytest.mark.parametrize(
    ("before", "predicted", "now", "outcome"),
    [
        (1.0, 1.0, 1.0, "unchanged"),
        (1.0, 1.05, 0.95, "unchanged"),
        (1.0, 1.0, 0.9, "unpredicted"),
        (1.0, 0.5, 0.5, "came-true"),
        (1.0, 0.5, 0.52, "came-true"),
        (1.0, 0.5, 0.98, "as-before"),
        (1.0, 0.9, 0.95, "as-before"),
        (1.0, 0.5, 0.75, "otherwise"),
        (1.0, 0.5, 2.0, "otherwise"),
        (0.0, 0.0, 0.5, "unpredicted"),
        (0.0, 0.0, 0.0, "unchanged"),
        (None, None, None, "unchanged"),
        (0.5, None, 0.5, "unknown"),
        (0.5, 0.7, None, "unknown"),
    ],
)
def test_outcomes_of_numbers(before: float | None, predicted: float | None, now: float | None, outcome: str) -> None:
    assert within(before, predicted, now, Limit(0.10, 0.10)) == outcome
