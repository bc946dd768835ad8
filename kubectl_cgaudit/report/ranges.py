"""Least and greatest over the cases of a container, for the formats with a row each: CSV and NDJSON."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from kubectl_cgaudit.judge.audit import CaseChange, Moment

Ends = tuple[int | float | None, int | float | None]
MEASURES: dict[str, Callable[[Moment], int | float | None]] = {
    "value": lambda moment: moment.value,
    "share": lambda moment: moment.share,
    "against_system": lambda moment: moment.against_system,
    "in_pod": lambda moment: moment.in_pod,
    "quota_us": lambda moment: moment.quota_us,
}
_DIGITS = 9


def versions(moments: Iterable[Moment]) -> str:
    """`v1`, `v2`, or both if it depends on the case."""
    return ";".join(sorted({moment.version for moment in moments}))


def measured(moments: Sequence[Moment]) -> Iterator[tuple[str, Ends]]:
    """Each measure with its ends. Shares and weights are no range: of both together there are none."""
    mixed = len({moment.version for moment in moments}) > 1
    for measure, read in MEASURES.items():
        no_range = mixed and measure == "value"
        yield measure, (None, None) if no_range else ends([read(moment) for moment in moments])


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
