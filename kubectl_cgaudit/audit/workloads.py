"""Workloads as records, from the tables that were judged."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import repeat
from typing import Any, Literal

import polars as pl
from polars import col

from kubectl_cgaudit.audit.inputs import Key, Tables
from kubectl_cgaudit.audit.judge import Judged, first
from kubectl_cgaudit.audit.model import CONFIDENCES, EFFECTS, Change, Effect, OtherEffects, Span, WeightCount, Workload
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.collect.owners import workload as top_owner

_OF_CPU = sum(1 << EFFECTS.index(effect) for effect in EFFECTS if effect not in ("nominal", "none"))


@cache
def effects(bits: int) -> tuple[Effect, ...]:
    """Return the effects of a set, the strongest first."""
    return tuple(effect for place, effect in enumerate(EFFECTS) if bits >> place & 1)


def workloads(tables: Tables, judged: Judged, cluster: Cluster) -> tuple[Workload, ...]:
    """Return every selected workload, the worst first."""
    share, against, best, sure_loss, sure_share = (_changes(tables, judged, *each) for each in _CHANGES)
    sums = dict(
        zip(*_lists(judged.workloads["sums"], "workload", ("effects", "confidence", "pods", "cases")), strict=True)
    )
    worst = dict(zip(*_lists(judged.workloads["worst"], "workload", ("said", "moved")), strict=True))
    splits = _splits(tables, judged)
    spans, others, hit = _spans(tables, judged), _others(tables, judged, sums), _hit(judged, tables)
    unpredicted = _unpredicted(tables, cluster)
    found: list[tuple[tuple[Any, ...], Workload]] = []
    for number, key in enumerate(tables.workloads):
        bits, confidence, pods, cases = sums.get(number, _NO_SUMS)
        missing = unpredicted.pop(key, 0)
        if missing:
            bits, confidence = bits | _UNKNOWN, _CONFIDENCE_UNKNOWN
        split, split_best = splits.get(number, (None, None))
        pods_hit, nodes_hit = hit.get(number, (0, ()))
        found.append(
            (
                _order(bits, worst.get(number, (0.0, 0.0)), split, key),
                Workload(
                    kind=key[1].kind,
                    namespace=key[0],
                    name=key[1].name,
                    effects=effects(bits),
                    other_effects=others.get(number, ()),
                    confidence=CONFIDENCES[confidence],
                    pods=pods,
                    pods_hit=pods_hit,
                    unpredicted_pods=missing,
                    nodes_hit=nodes_hit,
                    share=share.get(number),
                    against_system=against.get(number),
                    against_system_best=best.get(number),
                    sure_loss=sure_loss.get(number),
                    sure_share=sure_share.get(number),
                    split=split,
                    split_best=split_best,
                    values=spans.get(number, ()),
                    cases=cases,
                ),
            )
        )
    for key, count in unpredicted.items():
        found.append((_order(_UNKNOWN, (0.0, 0.0), None, key), _unread(key, count)))
    found.sort(key=lambda each: each[0])
    return tuple(record for _, record in found)


_UNKNOWN = 1 << EFFECTS.index("unknown")
_CONFIDENCE_UNKNOWN = CONFIDENCES.index("unknown")
_NO_SUMS = (0, _CONFIDENCE_UNKNOWN, 0, 0)
_CHANGES = (
    ("share", "share", "share_change"),
    ("worst", "against", "change"),
    ("best", "against", "change"),
    ("sure", "against", "change"),
    ("sure", "share", "share_change"),
)
"""The table of the pod that is told of, what changes there, and the column of the change."""


def _lists(table: pl.DataFrame, key: str, names: Sequence[str]) -> tuple[list[Any], Iterable[tuple[Any, ...]]]:
    """Return a column, and the rows of others."""
    return table[key].to_list(), zip(*(table[name].to_list() for name in names), strict=True)


def _changes(tables: Tables, judged: Judged, name: str, what: str, change: str) -> dict[int, Change]:
    """Return the change of the pod that is told of each workload, by its number."""
    table = judged.workloads[name].filter(pl.col(change).is_not_null())
    return dict(zip(table["workload"].to_list(), _told(tables, table, what, change, container=False), strict=True))


def _told(tables: Tables, table: pl.DataFrame, what: str, change: str, *, container: bool) -> Iterator[Change]:
    """Yield the change of each row."""
    nodes, names = tables.nodes, tables.containers
    pods = tables.pod_names.gather(table["pod_row" if container else "row"]).to_list()
    numbers = table["name"].to_list() if container else repeat(None)
    columns = (table[each].to_list() for each in ("node", "case", f"before_{what}", f"after_{what}", change))
    for pod, number, (place, case, before, after, changed) in zip(
        pods, numbers, zip(*columns, strict=True), strict=container
    ):
        node = nodes[place]
        yield Change(
            pod,
            node.node.name,
            None if number is None else names[number],
            node.cases[case].when,
            before,
            after,
            changed,
        )


def _splits(tables: Tables, judged: Judged) -> dict[int, tuple[Change, Change | None]]:
    """Return the change of the container of each workload that loses most of its pod's CPU, and the best one of its name."""
    split = judged.workloads["split"]
    worst = first(split, "workload", ("change", False), ("name_rank", False), ("case", False))
    best = worst.select("workload", "name").join(
        judged.workloads["split_best"], on=["workload", "name"], how="left", maintain_order="left"
    )
    told = (_told(tables, each, "in_pod", "change", container=True) for each in (worst, best))
    return dict(zip(worst["workload"].to_list(), zip(*told, strict=True), strict=True))


def _hit(judged: Judged, tables: Tables) -> dict[int, tuple[int, tuple[str, ...]]]:
    """How many pods have their workload's strongest effect, and the nodes of these."""
    names = [node.node.name for node in tables.nodes]
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = pl.Series([place for _, place in sorted(zip(order, range(len(order)), strict=True))], dtype=pl.Int32)
    sums = judged.workloads["sums"].select("workload", strongest=_lowest_bit(col.effects))
    hit = (
        judged.pods.with_columns(rank=rank.gather(judged.pods["node"]))
        .join(sums, on="workload")
        .filter((col.effects & col.strongest) != 0)
        .group_by("workload")
        .agg(col.row.len().alias("count"), col("rank").unique().sort())
    )
    return {
        workload: (count, tuple([names[order[place]] for place in places]))
        for workload, count, places in hit.select("workload", "count", "rank").iter_rows()
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


def _others(
    tables: Tables, judged: Judged, sums: Mapping[int, tuple[int, int, int, int]]
) -> dict[int, tuple[OtherEffects, ...]]:
    """What is something else than in the most plausible cases; another number in cpu.weight is no news."""
    found: dict[int, list[OtherEffects]] = defaultdict(list)
    for workload, condition, bits, loss in judged.others.select("workload", "condition", "effects", "loss").iter_rows():
        if bits & _OF_CPU != sums.get(workload, _NO_SUMS)[0] & _OF_CPU:
            told = loss if loss is not None and loss < 0 else None
            found[workload].append(OtherEffects(tables.conditions[condition], effects(bits & _OF_CPU), told))
    return {workload: tuple(sorted(each, key=lambda one: one.when)) for workload, each in found.items()}


def _spans(tables: Tables, judged: Judged) -> dict[int, tuple[Span, ...]]:
    names = tables.containers
    found: dict[int, list[Span]] = defaultdict(list)
    columns = ("name", "before_v2", "after_v2")
    ends = ("before_least", "before_greatest", "after_least", "after_greatest")
    table = judged.spans.sort(columns).select("workload", *columns, *ends)
    for workload, name, before_v2, after_v2, *values in table.iter_rows():
        units = _UNITS[before_v2], _UNITS[after_v2]
        found[workload].append(Span(names[name], units[0], values[0], values[1], units[1], values[2], values[3]))
    return {workload: tuple(each) for workload, each in found.items()}


_UNITS: Mapping[bool, Literal["shares", "weight"]] = {False: "shares", True: "weight"}


def _order(bits: int, loss: tuple[float, float], split: Change | None, key: Key) -> tuple[Any, ...]:
    """To sort by, the worst first; of losses that read the same the one of most CPU."""
    strongest = (bits & -bits).bit_length() or len(EFFECTS) + 1
    return strongest, *loss, split.change if split else 0.0, key[0], key[1].name, key[1].kind


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
