"""The arithmetic of shares and weights as Polars expressions; each value is made by the scalar function."""

import polars as pl

from kubectl_cgaudit.cgroups.weights import MAX_SHARES, MIN_SHARES, quadratic


def shares_of(milli: pl.Expr) -> pl.Expr:
    """Return `milli_to_shares` of a column of CPU amounts in thousandths."""
    return (milli * 1024 // 1000).clip(MIN_SHARES, MAX_SHARES)


def linear_weight(shares: pl.Expr) -> pl.Expr:
    """Return `linear` of a column of shares (2..262144)."""
    return 1 + ((shares - MIN_SHARES) * 9999) // 262142


def quadratic_weight(shares: pl.Expr) -> pl.Expr:
    """Return `quadratic` of a column of shares (2..262144), looked up in what the exact function gives for the values there."""
    return shares.map_batches(_quadratic_column, return_dtype=pl.Int64)


def _quadratic_column(shares: pl.Series) -> pl.Series:
    known = shares.unique().drop_nulls()
    weights = pl.Series(list(map(quadratic, known)), dtype=pl.Int64)
    found: pl.Series = shares.replace_strict(known, weights, default=None, return_dtype=pl.Int64)
    return found
