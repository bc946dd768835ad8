"""CGA203, CGA205, CGA206: what the numbers themselves come to."""

import polars as pl
from polars import col

from kubectl_cgaudit.audit.changes import Case
from kubectl_cgaudit.audit.rules.base import LOW, Context, hits
from kubectl_cgaudit.cgroups.tree import BESTEFFORT
from kubectl_cgaudit.cgroups.weights import MIN_SHARES

_VALUES = ("before_value", "after_value")


def crossings(case: Case, _context: Context) -> pl.DataFrame:
    """CGA203: a container's value goes from below its version's default to it or beyond, or the other way."""
    was, will = col.before_ratio, col.after_ratio
    crosses = col.present & ((was >= 1) != (will >= 1))
    return hits(case.containers, crosses, LOW, (will - was).abs(), _VALUES, ("before_ratio", "after_ratio"))


def collisions(case: Case, _context: Context) -> pl.DataFrame:
    """CGA205: a pod, or a container with siblings, asks for CPU and gets weight 1, as one that asks for nothing does."""
    least = col.after_v2 & (col.after_value == 1) & (col.qos != BESTEFFORT)
    today = col.before_v2 & (col.before_value == 1).fill_null(value=False)
    badness = pl.when(today).then(0.0).otherwise(1.0) + col.after_shares / MIN_SHARES / 100
    requested = pl.coalesce("request", "sum_request") + col.overhead
    pods = hits(case.pods, least & (requested != 0), LOW, badness, (requested, requested), _VALUES, today=today)
    siblings = col.present & col.competes & (col.competing > 1)
    holds = least & (col.request > 0) & siblings
    containers = hits(case.containers, holds, LOW, badness, ("request", "request"), _VALUES, today=today)
    return pl.concat([pods, containers])


def indivisible(case: Case, context: Context) -> pl.DataFrame:
    """CGA206: a weight too small to be divided among child cgroups."""
    weight = col.after_value
    small = col.present & (col.request > 0) & col.after_v2 & (weight < context.thresholds.divisible)
    today = (col.before_v2 & (col.before_value == weight)).fill_null(value=False)
    badness = pl.when(today).then(0.0).otherwise(1.0) + 1 / weight
    return hits(case.containers, small, LOW, badness, ("request", "request"), _VALUES, today=today)
