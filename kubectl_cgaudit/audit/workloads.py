"""Workloads as records, from the tables that were judged."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
from polars import col
from polars import selectors as cs

from kubectl_cgaudit.audit.inputs import Key, Tables
from kubectl_cgaudit.audit.judge import Judged
from kubectl_cgaudit.audit.model import CONFIDENCES, EFFECTS, Change, Effect, OtherEffects, Span, WeightCount, Workload
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.collect.owners import workload as top_owner

Row = Mapping[str, Any]
_OF_CPU = sum(1 << EFFECTS.index(effect) for effect in EFFECTS if effect not in ("nominal", "none"))


def effects(bits: int) -> tuple[Effect, ...]:
    """Return the effects of a set, the strongest first."""
    return tuple(effect for place, effect in enumerate(EFFECTS) if bits >> place & 1)


def workloads(tables: Tables, judged: Judged, cluster: Cluster) -> tuple[Workload, ...]:
    """Return every selected workload, the worst first."""
    told = {name: _needed(table) for name, table in judged.workloads.items()}
    by_number = {name: _by_workload(table) for name, table in told.items() if name not in _BY_CONTAINER}
    splits = {name: _grouped(told[name]) for name in _BY_CONTAINER}
    spans, others, hit = _grouped(judged.spans), _grouped(judged.others), _hit(judged, tables)
    unpredicted = _unpredicted(tables, cluster)
    found = []
    for number, key in enumerate(tables.workloads):
        rows = {name: table.get(number) for name, table in by_number.items()}
        sums = rows["sums"]
        worst_split = min(splits["split"].get(number, ()), key=_split_order, default=None)
        best_split = next(
            (row for row in splits["split_best"].get(number, ()) if worst_split and row["name"] == worst_split["name"]),
            None,
        )
        pods_hit, nodes_hit = hit.get(number, (0, ()))
        sure = rows["sure"]
        missing = unpredicted.pop(key, 0)
        bits = (sums["effects"] if sums else 0) | (_UNKNOWN if missing else 0)
        found.append(
            (
                _order(bits, rows["worst"], worst_split, key),
                Workload(
                    kind=key[1].kind,
                    namespace=key[0],
                    name=key[1].name,
                    effects=effects(bits),
                    other_effects=_others(others.get(number, ()), bits, tables),
                    confidence=CONFIDENCES[sums["confidence"]] if sums and not missing else "unknown",
                    pods=sums["pods"] if sums else 0,
                    pods_hit=pods_hit,
                    unpredicted_pods=missing,
                    nodes_hit=nodes_hit,
                    share=_change(rows["share"], tables, "share", "share_change"),
                    against_system=_change(rows["worst"], tables, "against", "change"),
                    against_system_best=_change(rows["best"], tables, "against", "change"),
                    sure_loss=_change(sure, tables, "against", "change"),
                    sure_share=_change(sure, tables, "share", "share_change"),
                    split=_change(worst_split, tables, "in_pod", "change"),
                    split_best=_change(best_split, tables, "in_pod", "change"),
                    values=tuple(_span(row, tables) for row in sorted(spans.get(number, ()), key=_span_order)),
                    cases=sums["cases"] if sums else 0,
                ),
            )
        )
    for key, count in unpredicted.items():
        found.append((_order(_UNKNOWN, None, None, key), _unread(key, count)))
    found.sort(key=lambda each: each[0])
    return tuple(record for _, record in found)


_BY_CONTAINER = ("split", "split_best")
_UNKNOWN = 1 << EFFECTS.index("unknown")


def _needed(table: pl.DataFrame) -> pl.DataFrame:
    """The columns that a record tells of, or that it is sorted by: of all there would be as many objects as pods have."""
    return table.select(cs.by_name(*_TOLD, require_all=False))


_TOLD = (
    *("workload", "row", "pod_row", "node", "name", "name_rank", "case", "pods", "effects", "confidence", "cases"),
    *("said", "moved", "change", "share_change", "before_against", "after_against", "before_share", "after_share"),
    *("before_in_pod", "after_in_pod"),
)


def _by_workload(table: pl.DataFrame) -> dict[int, Row]:
    return {row["workload"]: row for row in table.iter_rows(named=True)}


def _grouped(table: pl.DataFrame) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in table.iter_rows(named=True):
        found[row["workload"]].append(row)
    return found


def _hit(judged: Judged, tables: Tables) -> dict[int, tuple[int, tuple[str, ...]]]:
    """How many pods have their workload's strongest effect, and the nodes of these."""
    sums = judged.workloads["sums"].select("workload", strongest=_lowest_bit(col.effects))
    hit = (
        judged.pods.join(sums, on="workload")
        .filter((col.effects & col.strongest) != 0)
        .group_by("workload")
        .agg(col.row.len().alias("count"), col.node.unique().sort())
    )
    names = [node.node.name for node in tables.nodes]
    return {
        row["workload"]: (row["count"], tuple(sorted(names[node] for node in row["node"])))
        for row in hit.iter_rows(named=True)
    }


def _lowest_bit(bits: pl.Expr) -> pl.Expr:
    """The strongest of a set of effects."""
    chain = pl.lit(0, pl.UInt8)
    for place in reversed(range(len(EFFECTS) - 1)):
        bit = pl.lit(1 << place, pl.UInt8)
        chain = pl.when((bits & bit) != 0).then(bit).otherwise(chain)
    return chain


def _unpredicted(tables: Tables, cluster: Cluster) -> dict[Key, int]:
    """Active pods on nodes that have or should have cgroups, and were not read."""
    settled = {node.name for node in cluster.nodes if node.kind in ("windows", "virtual")}
    settled |= {node.node.name for node in tables.nodes}
    found: dict[Key, int] = defaultdict(int)
    for pod in cluster.pods:
        if pod.selected and not pod.finished and pod.node is not None and pod.node not in settled:
            found[pod.namespace, top_owner(pod, cluster)] += 1
    return found


def _change(row: Row | None, tables: Tables, what: str, change: str) -> Change | None:
    if row is None or row[change] is None:
        return None
    pod, node = tables.pods[row.get("pod_row", row["row"])], tables.nodes[row["node"]]
    container = tables.containers[row["name"]] if "name" in row else None
    when = node.cases[row["case"]].when
    return Change(pod.name, node.node.name, container, when, row[f"before_{what}"], row[f"after_{what}"], row[change])


def _others(rows: Iterable[Row], bits: int, tables: Tables) -> tuple[OtherEffects, ...]:
    """What is something else than in the most plausible cases; another number in cpu.weight is no news."""
    found = []
    for row in sorted(rows, key=lambda row: tables.conditions[row["condition"]]):
        if row["effects"] & _OF_CPU != bits & _OF_CPU:
            loss = row["loss"] if row["loss"] is not None and row["loss"] < 0 else None
            found.append(OtherEffects(tables.conditions[row["condition"]], effects(row["effects"] & _OF_CPU), loss))
    return tuple(found)


def _split_order(row: Row) -> tuple[float, int, int]:
    return row["change"], row["name_rank"], row["case"]


def _span(row: Row, tables: Tables) -> Span:
    return Span(
        tables.containers[row["name"]],
        "weight" if row["before_v2"] else "shares",
        row["before_least"],
        row["before_greatest"],
        "weight" if row["after_v2"] else "shares",
        row["after_least"],
        row["after_greatest"],
    )


def _span_order(row: Row) -> tuple[int, bool, bool]:
    return row["name"], row["before_v2"], row["after_v2"]


def _order(bits: int, worst: Row | None, split: Row | None, key: Key) -> tuple[Any, ...]:
    """To sort by, the worst first; of losses that read the same the one of most CPU."""
    strongest = next((place for place in range(len(EFFECTS)) if bits >> place & 1), len(EFFECTS))
    loss = (worst["said"], worst["moved"]) if worst else (0.0, 0.0)
    return strongest, *loss, split["change"] if split else 0.0, key[0], key[1].name, key[1].kind


def _unread(key: Key, count: int) -> Workload:
    """A workload of which no pod could be predicted."""
    return Workload(key[1].kind, key[0], key[1].name, ("unknown",), (), "unknown", 0, 0, count, (), *(None,) * 7, (), 0)


def weights(judged: Judged) -> tuple[WeightCount, ...]:
    """Return how many containers ask for an amount and get certain values, by request, then by the values of cgroup v1 first."""
    rows = [
        WeightCount(
            row["requested"],
            "v2" if row["before_v2"] else "v1",
            row["before_value"],
            "v2" if row["after_v2"] else "v1",
            row["after_value"],
            row["containers"],
        )
        for row in judged.counts.iter_rows(named=True)
    ]
    return tuple(
        sorted(
            rows,
            key=lambda each: (
                -1 if each.request_milli is None else each.request_milli,
                each.before_version,
                -1 if each.before is None else each.before,
                each.after_version,
                -1 if each.after is None else each.after,
            ),
        )
    )
