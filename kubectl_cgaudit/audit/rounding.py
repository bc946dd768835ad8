"""Numbers as reports show them. What decides is what is shown: the digits behind differ from node to node."""

import polars as pl

_DIGITS = 9


def shown(value: pl.Expr) -> pl.Expr:
    """Round to nine digits after the point."""
    return value.round(_DIGITS, mode="half_to_even")


def relative(before: pl.Expr, after: pl.Expr) -> pl.Expr:
    """After / before - 1 as it is shown; null where there is nothing to compare."""
    return pl.when(before != 0).then(shown(after / before - 1))


def as_said(change: pl.Expr) -> pl.Expr:
    """A change to the digits that a percentage shows: of changes that read the same none is the greater one."""
    size = change.abs()
    fine = (
        pl.when(size >= 0.0995)
        .then(change.round(2, mode="half_to_even"))
        .otherwise(change.round(3, mode="half_to_even"))
    )
    tiny = change.round_sig_figs(1)
    near = change.sign() * (1 - _coarse(1 - size))
    return pl.when((size >= 0.995) & (size < 1)).then(near).when(size >= 0.001).then(fine).otherwise(tiny)


def _coarse(rest: pl.Expr) -> pl.Expr:
    return pl.when(rest >= 0.001).then(rest.round(3, mode="half_to_even")).otherwise(rest.round_sig_figs(1))


def rounded(value: float | None) -> float | None:
    """Return a number as it is shown: nine digits after the point."""
    return None if value is None else round(value * 1e9) / 1e9
