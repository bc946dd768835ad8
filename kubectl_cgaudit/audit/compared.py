"""Which answers decide what happens to a pod: cases that differ in one answer only, compared."""

from typing import Any

import polars as pl
from polars import col


def compared(
    pairs: pl.DataFrame, of_pods: pl.DataFrame, of_containers: pl.DataFrame, hits: pl.DataFrame
) -> pl.DataFrame:
    """Return for each node and question whose answer decides what happens to a pod: the greatest loss that one answer makes.

    `pairs` are cases that differ in one answer only. A row has `node`, `question`, `case`, `row` (of the pod), `container`
    (null for
    the pod itself), `before`, `after` and `change`; the last ones are null where no loss depends on it.
    """
    if pairs.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    found = hits.group_by("pod", "case").agg(found=pl.struct("rule", "place", "severity").hash().sum())
    pods = of_pods.join(found, on=["pod", "case"], how="left").select(
        "node",
        "case",
        key="row",
        row="row",
        container=pl.lit(None, pl.Int32),
        before="before_against",
        after=pl.when(col.change.is_null()).then(0.0).otherwise("after_against"),
        change=col.change.fill_null(-1.0),
        signs=pl.struct("effects", col.found.fill_null(0)).hash(),
    )
    containers = of_containers.select(
        "node",
        "case",
        key=-1 - col.row,
        row="pod_row",
        container="row",
        before="before_in_pod",
        after="after_in_pod",
        change=col.change.fill_null(0.0),
        signs=pl.lit(0, pl.UInt64),
    )
    # What is the same in every case depends on no answer.
    every = pl.concat([pods, containers])
    varies = (col.change.min() != col.change.max()) | (col.signs.min() != col.signs.max())
    table = every.join(every.group_by("key").agg(varies=varies).filter("varies"), on="key", how="semi")
    one = pairs.join(table, on=["node", "case"], how="inner")
    other = table.select("key", other="case", other_change="change", other_signs="signs")
    both = one.join(other, on=["key", "other"], how="inner").filter(
        (col.change < col.other_change) | (col.signs != col.other_signs)
    )
    is_loss = (col.change < 0) & (col.change < col.other_change)
    return (
        both.with_columns(pl.when(is_loss).then(name).alias(name) for name in ("before", "after", "change"))
        .sort("change", "row", "case", nulls_last=True)
        .unique(["node", "question"], keep="first", maintain_order=True)
        .select(*_SCHEMA)
        .cast(pl.Schema(_SCHEMA))
    )


_SCHEMA: dict[str, Any] = {
    "node": pl.Int32,
    "question": pl.Int8,
    "case": pl.Int16,
    "row": pl.Int32,
    "container": pl.Int32,
    "before": pl.Float64,
    "after": pl.Float64,
    "change": pl.Float64,
}
