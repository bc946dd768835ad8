"""Whether a prediction came true: of one number, in every case that the open questions allow."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.compare.diff.types import NOT_PREDICTED, OUTCOMES, Measure, Outcome, Value, What

_NOT_PREDICTED = frozenset(NOT_PREDICTED)
_ORDER = {outcome: place for place, outcome in enumerate(OUTCOMES)}
Number = float | None
"""None where it cannot be said."""
Prediction = Number | Literal["stops"]
_ROUNDING = 1e-9
_RUNS = "runs"
STOPS: Final = "stops"
"""What is predicted of every number of what was said not to run."""


class Limit(Struct, frozen=True):
    """From where on a number has moved: fractions of what it was."""

    loss: float
    gain: float

    def moved(self, old: float, new: float) -> bool:
        """Whether the way from `old` to `new` counts."""
        return not old - abs(old) * self.loss < new < old + abs(old) * self.gain if old else new != old


def exact(before: Value, predicted: Value, now: Value) -> Outcome:
    """The outcome where any difference counts."""
    if predicted == STOPS:
        # That it runs all the same is said once, by its fate.
        return "unchanged" if now == before else "otherwise"
    if before == predicted:
        return "unchanged" if now == before else "unpredicted"
    return "came-true" if now == predicted else "as-before" if now == before else "otherwise"


def within(before: Number, predicted: Prediction, now: Number, limit: Limit) -> Outcome:
    """The outcome where small differences do not count; a number halfway is taken to be as before."""
    if before is None or predicted is None or now is None:
        return "unchanged" if before is now is None and predicted in (None, STOPS) else "unknown"
    if isinstance(predicted, str):
        return "otherwise" if limit.moved(before, now) else "unchanged"
    if not limit.moved(before, predicted):
        return "unpredicted" if limit.moved(before, now) and limit.moved(predicted, now) else "unchanged"
    if limit.moved(before, now) and limit.moved(predicted, now):
        return "otherwise"
    return "came-true" if abs(now - predicted) + _ROUNDING < abs(now - before) else "as-before"


def of_words(what: What, of: str, was: Sequence[tuple[Value, Value]], now: Sequence[Value]) -> Measure:
    """The measure of something exact; `was` is before and predicted in each case of the first audit, `now` in each
    case of the second.
    """
    found = {exact(before, predicted, each) for before, predicted in set(was) for each in set(now)}
    return Measure(
        what,
        of,
        _agreed(found),
        _distinct(before for before, _ in was),
        _distinct(predicted for _, predicted in was),
        _distinct(now),
    )


def of_fate(stops: Iterable[bool | None]) -> Measure:
    """The measure of what runs now; `stops` is in each case of the first audit whether it was said not to, None where that
    could not be said.
    """
    predicted: set[Value] = set()
    for each in stops:
        predicted |= {_RUNS, STOPS} if each is None else {STOPS if each else _RUNS}
    found: set[Outcome] = {"as-before" if each == STOPS else "unchanged" for each in predicted}
    return Measure("fate", "", _agreed(found), (_RUNS,), _distinct(predicted), (_RUNS,))


def of_numbers(what: What, was: Sequence[tuple[Number, Prediction]], now: Sequence[Number], limit: Limit) -> Measure:
    """The measure of a fraction or ratio."""
    found = {within(before, predicted, each, limit) for before, predicted in set(was) for each in set(now)}
    sides: tuple[Sequence[Prediction], ...] = ([b for b, _ in was], [p for _, p in was], now)
    known = [[each for each in values if each is not None] for values in sides]
    return Measure(what, "", _agreed(found), *map(_distinct, known))


def in_doubt(measure: Measure, *, all_of_it: bool) -> Measure:
    """The measure where the state now is not known: it never came true. `all_of_it`: nothing can be said at all."""
    if measure.outcome == "came-true" or all_of_it:
        return replace(measure, outcome="unknown")
    return measure


def against_evidence(measure: Measure, *, contested: bool, same_evidence: bool) -> Measure:
    """The measure where evidence contradicts what is said of its node: it never came true. `contested`: what it
    rests on is said against that evidence, so it did not surely move or stay either. `same_evidence`: it is the same in
    both audits, so that what stayed did stay, whichever is right.
    """
    return in_doubt(measure, all_of_it=contested and not (same_evidence and measure.outcome == "unchanged"))


def consistent(measures: Sequence[Measure]) -> list[Measure]:
    """The measures of one cgroup: where a change of any of them was predicted, none moved without a prediction."""
    if all(measure.before == measure.predicted for measure in measures):
        return list(measures)
    return [replace(each, outcome="otherwise") if each.outcome == "unpredicted" else each for each in measures]


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """What wants attention first; unchanged if there is none."""
    return min(outcomes, key=_ORDER.__getitem__, default="unchanged")


def listed(measures: Iterable[Measure]) -> tuple[Measure, ...]:
    """Without those that were to stay and stayed."""
    return tuple(measure for measure in measures if measure.outcome != "unchanged")


def _agreed(found: set[Outcome]) -> Outcome:
    """What holds however the open questions turn out."""
    if len(found) == 1:
        return next(iter(found))
    return "otherwise" if found and found <= _NOT_PREDICTED else "unknown"


def _distinct(values: Iterable[Value]) -> tuple[Value, ...]:
    found = set(values)
    if len(found) < 2:
        return tuple(found)
    return tuple(
        sorted(found, key=lambda value: (isinstance(value, str), value if isinstance(value, str) else "", value))
    )
