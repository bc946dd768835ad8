"""One case of a migration as columns: every pod and container before and after."""

from typing import NamedTuple

import polars as pl
from polars import col

from kubectl_cgaudit.audit.rounding import relative, shown
from kubectl_cgaudit.cgroups.tree import Inputs, Moment
from kubectl_cgaudit.cgroups.weights import DEFAULT_SHARES, DEFAULT_WEIGHT


class Case(NamedTuple):
    """Pods and containers on the nodes that have this case, row by row beside the inputs."""

    pods: pl.DataFrame
    """The inputs' columns; `there` (the node has this case, and the pod was asked about), `lost` (it does not come back);
    `before_` and `after_` of `v2`, `value`,
    `quota`, `share`, `against` (share over that of system.slice); `change` (of `against`), `share_change`, `moved` (in
    fractions of the
    node's CPU)."""
    containers: pl.DataFrame
    """The inputs' columns; `before_` and `after_` of `value`, `ratio` (value over its version's default), `quota`, `in_pod`,
    `limited`;
    `change` (of `in_pod`)."""


def build(inputs: Inputs, before: Moment, after: Moment, nodes: pl.DataFrame, leads: pl.Series) -> Case:
    """Return the case; `nodes` has `there` and `lost`, and `leads` says of each pod whether the case is a leading one to it."""
    node = inputs.pods["node"]
    of_node = pl.concat(
        [
            nodes.select("there", "lost"),
            before.nodes.select(before_system="system_share", before_v2="v2"),
            after.nodes.select(after_system="system_share", after_v2="v2"),
        ],
        how="horizontal",
    )[node]
    pods = pl.concat(
        [
            inputs.pods.with_columns(index=pl.int_range(pl.len(), dtype=pl.Int32), leads=leads),
            of_node,
            before.pods.select(
                pl.col("shares", "value", "quota", "share", "formula", "measured", "period_us").name.prefix("before_")
            ),
            after.pods.select(
                pl.col("shares", "value", "quota", "share", "formula", "measured", "period_us").name.prefix("after_")
            ),
        ],
        how="horizontal",
    )
    pods = pods.with_columns(
        there=col.there & col.selected,
        before_against=shown(col.before_share / col.before_system),
        after_against=shown(col.after_share / col.after_system),
        before_share=shown(col.before_share),
        after_share=shown(col.after_share),
    ).with_columns(
        change=pl.when(~col.lost).then(relative(col.before_against, col.after_against)),
        share_change=pl.when(~col.lost).then(relative(col.before_share, col.after_share)),
        moved=pl.when(col.lost).then(0.0).otherwise(col.after_share - col.before_share),
    )
    fields = (
        "shares",
        "value",
        "quota",
        "pod_quota",
        "quota_in_force",
        "fails",
        "in_pod",
        "limited",
        "share",
        "measured",
    )
    containers = pl.concat(
        [
            inputs.containers,
            pods.select(
                "there", "lost", "leads", "qos", "before_v2", "after_v2", "before_period_us", "after_period_us"
            )[inputs.containers["pod"]],
            before.containers.select(pl.col(*fields).name.prefix("before_")),
            after.containers.select(pl.col(*fields).name.prefix("after_")),
        ],
        how="horizontal",
    )
    containers = containers.with_columns(
        before_ratio=_ratio("before"),
        after_ratio=_ratio("after"),
        before_in_pod=shown(col.before_in_pod),
        after_in_pod=shown(col.after_in_pod),
    ).with_columns(change=pl.when(~col.lost).then(relative(col.before_in_pod, col.after_in_pod)))
    return Case(pods, containers)


def _ratio(moment: str) -> pl.Expr:
    """The value over the default of its cgroup version: shares / 1024, weight / 100."""
    default = pl.when(f"{moment}_v2").then(DEFAULT_WEIGHT).otherwise(DEFAULT_SHARES)
    return shown(col(f"{moment}_value") / default)
