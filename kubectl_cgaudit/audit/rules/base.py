"""What a rule over pods gives: a row for each place where it holds in one case."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import polars as pl
from polars import col

from kubectl_cgaudit.audit.changes import Case
from kubectl_cgaudit.audit.thresholds import Thresholds

SEVERITIES = ("low", "medium", "high", "critical")
"""Mildest first. A column holds 1 to 4, and 0 where a rule does not hold."""
LOW, MEDIUM, HIGH, CRITICAL = range(1, 5)

HIT: dict[str, Any] = {
    "pod": pl.Int32,
    "place": pl.Int32,
    "severity": pl.Int8,
    "badness": pl.Float64,
    "moved": pl.Float64,
    "today": pl.Boolean,
    "first_before": pl.Float64,
    "first_after": pl.Float64,
    "second_before": pl.Float64,
    "second_after": pl.Float64,
    "container": pl.Int32,
}
"""The columns of every hit.

pod: its place in the case. place: the container's row where the rule is about one, -1 where it is about the pod. badness: how
bad it is among those of one severity. moved: of a loss, the fraction of the node's CPU. today: it is so already. first and
second: what the rule measured, by `MEASURES`. container: the row of the container that is told.
"""

MEASURES: Mapping[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "CGA201": (("share against system.slice", "times"), ("share of the node", "fraction")),
    "CGA203": (("value", "shares or weight"), ("value over the default", "times")),
    "CGA204": (("share of the pod", "fraction"), ("value", "shares or weight")),
    "CGA205": (("request", "milli"), ("value", "shares or weight")),
    "CGA206": (("request", "milli"), ("value", "shares or weight")),
    "CGA301": (("limit", "milli"), ("quota", "us")),
    "CGA302": (("limit", "milli"), ("quota", "us")),
    "CGA401": (("CPUs counted", "CPUs"), ("value", "shares or weight")),
}
"""Name and unit of what each rule measures."""


class Context(NamedTuple):
    """What rules judge by."""

    thresholds: Thresholds
    capacity: pl.Series
    """CPU of each node, in thousandths."""
    images: pl.DataFrame
    """What a program is known to make of its cgroup, a row an image: see `misreaders.traits`."""


Rule = Callable[[Case, Context], pl.DataFrame]
Pair = tuple[pl.Expr | str, pl.Expr | str]
"""A measure before and after."""


def graded(size: pl.Expr, *levels: tuple[float, int]) -> pl.Expr:
    """Return the severity of a size: that of the first level reached, else low."""
    chain = pl.lit(LOW)
    for least, severity in reversed(levels):
        chain = pl.when(size >= least).then(severity).otherwise(chain)
    return chain


def hits(
    table: pl.DataFrame,
    holds: pl.Expr,
    severity: pl.Expr | int,
    badness: pl.Expr,
    first: Pair,
    second: Pair,
    *,
    moved: pl.Expr | float = 0.0,
    today: pl.Expr | bool = False,
) -> pl.DataFrame:
    """Return the pods, or the containers, where a rule holds; on nodes that do not come back it holds nowhere."""
    of_containers = "role" in table.columns
    return (
        table.filter(col.there & ~col.lost & holds)
        .select(
            pod=col.pod if of_containers else col.index,
            place=col.row if of_containers else -1,
            severity=severity,
            badness=badness,
            moved=moved,
            today=today,
            first_before=first[0],
            first_after=first[1],
            second_before=second[0],
            second_after=second[1],
            container=col.row if of_containers else None,
        )
        .cast(pl.Schema(HIT))
    )
