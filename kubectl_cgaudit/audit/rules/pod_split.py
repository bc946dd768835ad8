"""CGA204: CPU that moves between the containers of one pod."""

import polars as pl
from polars import col

from kubectl_cgaudit.audit.changes import Case
from kubectl_cgaudit.audit.rules.base import HIGH, MEDIUM, Context, graded, hits


def moves(case: Case, context: Context) -> pl.DataFrame:
    """CGA204: a container loses part of its pod's CPU to its siblings.

    Of several losers the one with the largest part is told, the pod's main program; of equal parts the one that loses most.
    """
    losers = case.containers.filter(col.there & col.present & context.thresholds.moved(col.change))
    order = ["pod", "before_in_pod", "change", "name"]
    told = losers.sort(order, descending=[False, True, False, True]).unique("pod", keep="first", maintain_order=True)
    severity = graded(-col.change, (0.3, HIGH), (0.1, MEDIUM))
    split, values = ("before_in_pod", "after_in_pod"), ("before_value", "after_value")
    return hits(told, pl.lit(value=True), severity, -col.change, split, values).with_columns(place=pl.lit(-1, pl.Int32))
