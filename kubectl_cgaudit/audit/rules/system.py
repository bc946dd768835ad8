"""CGA201: pods that lose CPU to system processes."""

import polars as pl
from polars import col

from kubectl_cgaudit.audit.changes import Case
from kubectl_cgaudit.audit.rules.base import HIGH, LOW, MEDIUM, Context, graded, hits


def losses(case: Case, context: Context) -> pl.DataFrame:
    """CGA201: a pod's share over that of system.slice falls.

    It is low where the pod keeps its share of the node: on a large node system processes take little, whatever their weight.
    """
    limits = context.thresholds
    severity = (
        pl.when(limits.lost(col.share_change)).then(graded(-col.change, (0.5, HIGH), (0.2, MEDIUM))).otherwise(LOW)
    )
    against, share = (("before_against", "after_against"), ("before_share", "after_share"))
    return hits(case.pods, limits.lost(col.change), severity, -col.change, against, share, moved=-col.moved)
