"""A record for each container: what every format that lists containers writes, in one schema and one order.

Records are in the order of their nodes, then of namespace and name of their pod, then as the pod has its containers. The most
plausible case stands in `before_...` and `after_...`, the others in `cases`. `..._least` and `..._greatest` are over the leading
cases, in which no default is overridden. A case in which the pod `stops` has an `after` that is never reached, and no change.

Shares are fractions of a full node's CPU, `in_pod` of the pod's; `against_system` is the share over that of system.slice. CPU is
in thousandths, quotas in microseconds of a period of 100000 us.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal

import polars as pl
from polars import col

from kubectl_cgaudit.audit import judge
from kubectl_cgaudit.audit.changes import Case
from kubectl_cgaudit.audit.inputs import QOS, ROLES, Tables
from kubectl_cgaudit.audit.model import CONFIDENCES, EFFECTS, Audit
from kubectl_cgaudit.audit.rounding import relative, shown
from kubectl_cgaudit.audit.workloads import effects
from kubectl_cgaudit.detect.state import PERIOD_US

_MOMENTS: tuple[Literal["before", "after"], ...] = ("before", "after")
_VALUES: dict[str, Any] = {
    "version": pl.String,
    "value": pl.Int64,
    "share": pl.Float64,
    "against_system": pl.Float64,
    "in_pod": pl.Float64,
    "quota_us": pl.Int64,
    "measured": pl.Boolean,
}
_OF_POD: dict[str, Any] = {
    "pod_value": pl.Int64,
    "pod_share": pl.Float64,
    "pod_against_system": pl.Float64,
    "pod_quota_us": pl.Int64,
    "pod_measured": pl.Boolean,
}
_AT: dict[str, Any] = {f"{moment}_{name}": type_ for moment in _MOMENTS for name, type_ in (_VALUES | _OF_POD).items()}
RECORD = "cgaudit.container/1"
"""What a record calls its schema; columns are only added to it."""
_RUN: dict[str, Any] = {
    "schema": pl.String,
    "cluster": pl.String,
    "cluster_uid": pl.String,
    "time": pl.String,
    "target": pl.String,
    "tool_version": pl.String,
    "complete": pl.Boolean,
}
_CASE: dict[str, Any] = {"when": pl.String, "rank": pl.Int32, "leading": pl.Boolean, "stops": pl.Boolean, **_AT}
_MEASURES = ("value", "share", "against_system", "in_pod", "quota_us")
_CHANGES: dict[str, tuple[str, str]] = {
    "change_share": ("before_share", "after_share"),
    "change_against_system": ("before_against_system", "after_against_system"),
    "change_in_pod": ("before_in_pod", "after_in_pod"),
    "change_pod_against_system": ("before_pod_against_system", "after_pod_against_system"),
}
"""Changes, after / before - 1, and what they are of."""
_RANGED: dict[str, Any] = {
    **{f"{moment}_{name}": _VALUES[name] for moment in _MOMENTS for name in _MEASURES},
    **dict.fromkeys(_CHANGES, pl.Float64),
}
_ENDS = ("least", "greatest")
_RANGES: dict[str, Any] = {
    "leading_cases": pl.Int32,
    "leading_cases_stopping": pl.Int32,
    **{f"{name}_{end}": type_ for name, type_ in _RANGED.items() for end in _ENDS},
}
SCHEMA: dict[str, Any] = {
    **_RUN,
    "namespace": pl.String,
    "workload_kind": pl.String,
    "workload": pl.String,
    "workload_effects": pl.List(pl.String),
    "pod": pl.String,
    "node": pl.String,
    "qos": pl.String,
    "handler": pl.String,
    "confidence": pl.String,
    "effects": pl.List(pl.String),
    "container": pl.String,
    "role": pl.String,
    "request_milli": pl.Int64,
    "limit_milli": pl.Int64,
    "when": pl.String,
    "stops": pl.Boolean,
    **_AT,
    **dict.fromkeys(_CHANGES, pl.Float64),
    **_RANGES,
    "cases": pl.List(pl.Struct(_CASE)),
}
"""Name and type of every column of a record."""
KEY = ("namespace", "pod", "container")
_PODS_A_LOT = 5000
"""A record has some hundred columns: fewer of them lie in memory at once than where pods are judged."""


class Containers:
    """The records of an audit, made some nodes at a time whenever they are asked for."""

    def __init__(self, frames: Callable[[], Iterator[pl.DataFrame]]) -> None:
        self._frames = frames

    def frames(self) -> Iterator[pl.DataFrame]:
        """Yield the records in their order, with the columns of SCHEMA."""
        return self._frames()

    def of_pod(self, namespace: str, pod: str) -> pl.DataFrame:
        """Return the records of one pod."""
        found = [frame.filter(col.namespace == namespace, col.pod == pod) for frame in self.frames()]
        return pl.concat(found) if found else pl.DataFrame(schema=SCHEMA)


def containers(run_audit: Audit, tables: Tables, judged: judge.Judged) -> Containers:
    """Return the records of an audit that was just made."""
    return Containers(lambda: _made(run_audit, tables, judged))


def _made(audit: Audit, tables: Tables, judged: judge.Judged) -> Iterator[pl.DataFrame]:
    names = _Names(audit, tables, judged)
    for lot in judge.cut(tables.inputs, tables.cases, tables.after, _PODS_A_LOT):
        found = [_of_case(each.number, each.case, lot.cases.conditions) for each in judge.cases_of(lot, tables.setups)]
        if found:
            yield names.named(_together(found, names.conditions))


def _of_case(number: int, case: Case, conditions: pl.DataFrame) -> pl.DataFrame:
    """All containers in one case as columns of a record, without names; those count that are `present` and `there`."""
    of_pod = case.pods.select(
        "leads",
        pod_row="row",
        node="node",
        **{
            f"{moment}_{name}": pl.col(f"{moment}_{source}")
            for moment in _MOMENTS
            for name, source in (("pod_value", "value"), ("pod_share", "share"), ("pod_against_system", "against"))
        },
        **{f"{moment}_pod_quota_us": _usual(f"{moment}_quota", moment) for moment in _MOMENTS},
        **{f"{moment}_pod_measured": pl.col(f"{moment}_measured") for moment in _MOMENTS},
        **{f"{moment}_system": pl.col(f"{moment}_system") for moment in _MOMENTS},
    )[case.containers["pod"]]
    table = case.containers.select(
        "row",
        "there",
        "present",
        "lost",
        "place",
        *(pl.col(f"{moment}_{name}") for moment in _MOMENTS for name in ("value", "in_pod", "measured")),
        **{
            f"{moment}_version": pl.when(f"{moment}_v2").then(pl.lit("v2")).otherwise(pl.lit("v1"))
            for moment in _MOMENTS
        },
        **{f"{moment}_share": shown(pl.col(f"{moment}_share")) for moment in _MOMENTS},
        **{f"{moment}_raw_share": pl.col(f"{moment}_share") for moment in _MOMENTS},
        **{f"{moment}_quota_us": _usual(f"{moment}_quota", moment) for moment in _MOMENTS},
    ).hstack(of_pod)
    return (
        table.with_columns(
            case=pl.lit(number, pl.Int16),
            stops="lost",
            **{
                f"{moment}_against_system": shown(pl.col(f"{moment}_raw_share") / pl.col(f"{moment}_system"))
                for moment in _MOMENTS
            },
        )
        .join(conditions, on=["node", "case"], how="left", maintain_order="left")
        .with_columns(
            pl.when(~col.stops).then(relative(pl.col(before), pl.col(after))).alias(name)
            for name, (before, after) in _CHANGES.items()
        )
        .select("row", "pod_row", "place", "present", "there", "case", "condition", "leads", "stops", *_AT, *_CHANGES)
    )


def _usual(quota: str, moment: str) -> pl.Expr:
    """A quota of a period of 100000 us."""
    return pl.col(quota) * PERIOD_US // pl.col(f"{moment}_period_us")


def _together(found: list[pl.DataFrame], conditions: pl.Series) -> pl.DataFrame:
    """The most plausible case of each container, the ranges over the leading ones, and a list of the others.

    Each case has all containers, row by row beside the others.
    """
    first, *rest = found
    counts = first.select(held=col.present & col.there)["held"]
    others = [
        table.filter(col.present & col.there).select(
            "row",
            "case",
            "stops",
            *_AT,
            when=conditions.gather(table.filter(col.present & col.there)["condition"]),
            rank=col.case.cast(pl.Int32) + 1,
            leading="leads",
        )
        for table in rest
    ]
    lists = (
        pl.concat(others).sort("row", "case").group_by("row", maintain_order=True).agg(cases=pl.struct(*_CASE))
        if others
        else pl.DataFrame(schema={"row": first.schema["row"], "cases": SCHEMA["cases"]})
    )
    return (
        first.hstack(_ranges(found))
        .filter(counts)
        .join(lists, on="row", how="left", maintain_order="left")
        .with_columns(col.cases.fill_null([]))
    )


def _ranges(found: list[pl.DataFrame]) -> pl.DataFrame:
    """The ends of each number over the leading cases; shares and weights are no range, and one case without a number leaves none.

    Nothing comes after in cases in which the pod stops.
    """
    columns = ["there", "leads", "stops", *(f"{moment}_version" for moment in _MOMENTS), *_RANGED]
    wide = pl.concat(
        [table.select(pl.col(columns).name.suffix(f"#{place}")) for place, table in enumerate(found)],
        how="horizontal",
    )
    places = range(len(found))
    wide = wide.with_columns(pl.col(f"there#{place}") & pl.col(f"leads#{place}") for place in places).with_columns(
        (pl.col(f"there#{place}") & ~pl.col(f"stops#{place}")).alias(f"reached#{place}") for place in places
    )
    return wide.select(
        pl.sum_horizontal(pl.col(f"there#{place}").cast(pl.Int32) for place in places).alias("leading_cases"),
        pl.sum_horizontal(
            (pl.col(f"there#{place}") & pl.col(f"stops#{place}")).cast(pl.Int32) for place in places
        ).alias("leading_cases_stopping"),
        *(end for name in _RANGED for end in _ends(name, places)),
    )


def _ends(name: str, places: range) -> Iterator[pl.Expr]:
    moment, _, what = name.partition("_")
    counts = [pl.col(f"there#{place}" if moment == "before" else f"reached#{place}") for place in places]
    values = [pl.col(f"{name}#{place}") for place in places]
    broken = pl.any_horizontal(held & value.is_null() for held, value in zip(counts, values, strict=True))
    if what == "value":
        version = [
            [held & (pl.col(f"{moment}_version#{place}") == one) for held, place in zip(counts, places, strict=True)]
            for one in ("v1", "v2")
        ]
        broken |= pl.any_horizontal(version[0]) & pl.any_horizontal(version[1])
    held_values = [pl.when(held).then(value) for held, value in zip(counts, values, strict=True)]
    yield pl.when(~broken).then(pl.min_horizontal(held_values)).alias(f"{name}_least")
    yield pl.when(~broken).then(pl.max_horizontal(held_values)).alias(f"{name}_greatest")


class _Names:
    """Puts names in the place of numbers."""

    def __init__(self, audit: Audit, tables: Tables, judged: judge.Judged) -> None:
        self._run = {
            "schema": RECORD,
            "cluster": audit.cluster.get("name"),
            "cluster_uid": audit.cluster.get("uid"),
            "time": audit.time,
            "target": audit.target.to,
            "tool_version": audit.tool_version,
            "complete": audit.coverage.complete,
        }
        self.conditions = pl.Series(tables.conditions, dtype=pl.String)
        self._containers = pl.Series(tables.containers, dtype=pl.String)
        sets = [list(effects(bits)) for bits in range(1 << (len(EFFECTS) - 1))]
        self._effects = pl.Series(sets, dtype=pl.List(pl.String))
        self._nodes = pl.Series([node.node.name for node in tables.nodes], dtype=pl.String)
        by_key = {(each.namespace, each.kind, each.name): list(each.effects) for each in audit.workloads}
        keys = tables.workloads
        self._workloads = pl.DataFrame(
            {
                "namespace": [namespace for namespace, _ in keys],
                "workload_kind": [owner.kind for _, owner in keys],
                "workload": [owner.name for _, owner in keys],
                "workload_effects": [by_key.get((namespace, owner.kind, owner.name), []) for namespace, owner in keys],
            },
            schema={name: SCHEMA[name] for name in ("namespace", "workload_kind", "workload", "workload_effects")},
        )
        of_pods = judged.pods.select("row", "effects", "confidence")
        self._pods = tables.inputs.pods.select("row", "node", "workload", "qos", "handler", "name_rank").join(
            of_pods, on="row", how="left", maintain_order="left"
        )
        self._pod_names = tables.pod_names
        self._handlers = pl.Series(tables.handlers, dtype=pl.String)
        self._of_containers = tables.inputs.containers.select("name", "role", "request", "limit")

    def named(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return the records of a table of numbers."""
        of_pod = self._pods[table["pod_row"]]
        of_container = self._of_containers[table["row"]]
        table = table.hstack(self._workloads[of_pod["workload"]]).with_columns(
            pod=self._pod_names.gather(table["pod_row"]),
            node_row=of_pod["node"],
            node=self._nodes.gather(of_pod["node"]),
            qos=pl.Series(QOS, dtype=pl.String).gather(of_pod["qos"]),
            handler=self._handlers.gather(of_pod["handler"]),
            confidence=pl.Series(CONFIDENCES, dtype=pl.String).gather(of_pod["confidence"]),
            effects=self._effects.gather(of_pod["effects"]),
            container=self._containers.gather(of_container["name"]),
            role=pl.Series(ROLES, dtype=pl.String).gather(of_container["role"]),
            request_milli=of_container["request"],
            limit_milli=of_container["limit"],
            when=self.conditions.gather(table["condition"]),
            **{name: pl.lit(value, SCHEMA[name]) for name, value in self._run.items()},
        )
        return (
            table.sort("node_row", "namespace", "pod", "pod_row", "place", maintain_order=True)
            .select(*SCHEMA)
            .cast(pl.Schema(SCHEMA))
        )
