"""Numbers as the audit shows them."""

DIGITS = 9


def rounded(value: float | None) -> float | None:
    """A number as the audit shows it."""
    return None if value is None else round(value, DIGITS)


def relative(before: float | None, after: float | None) -> float | None:
    """After / before - 1; None where there is nothing to compare."""
    return after / before - 1 if before and after is not None else None
