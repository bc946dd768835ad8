"""Numbers as the audit shows them."""

import math

UNIT = 1e9
"""One over the last digit that is shown."""
LEAST = 0.5e-9
"""No number that is shown lies between this and 0."""


def shown(value: float) -> float:
    """A number to nine digits after the point; -10**9..10**9 is exact.

    `round(value, 9)` says the same but for the last digit of a tie that is none in binary, and takes four times as long.
    """
    return round(value * UNIT) / UNIT


def rounded(value: float | None) -> float | None:
    """A number as the audit shows it."""
    return None if value is None else shown(value)


def as_said(change: float) -> float:
    """A change to the figures of it that `percent` says: of changes that read the same none is the greater one."""
    size = abs(change)
    if 0.995 <= size < 1:
        # As many digits as what is left has.
        return math.copysign(1 - as_said(1 - size), change)
    return round(change, 2 if size >= 0.0995 else 3) if size >= 0.001 else float(f"{change:.1g}")


def relative(before: float | None, after: float | None) -> float | None:
    """After / before - 1 as it is shown; None where nothing can be compared."""
    return shown(after / before - 1) if before and after is not None else None
