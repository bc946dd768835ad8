"""Least and greatest over the cases of a container, for formats with a row each."""

from collections.abc import Callable, Sequence

from kubectl_cgaudit.judge.audit import CaseChange, Moment

Ends = tuple[int | float | None, int | float | None]
_DIGITS = 9


def ends(values: Sequence[int | float | None]) -> Ends:
    """The least and the greatest; none where one of them is missing."""
    if len(values) == 1:
        return values[0], values[0]
    known = [value for value in values if value is not None]
    return (min(known), max(known)) if known and len(known) == len(values) else (None, None)


def change(case: CaseChange, read: Callable[[Moment], float | None]) -> float | None:
    """After / before - 1; None where there is nothing to compare."""
    before, after = read(case.before), read(case.after)
    return round(after / before - 1, _DIGITS) if before and after is not None else None
