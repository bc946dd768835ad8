"""Judge every pod in every case: its effects, the worst places of its workload, and what the rules find.

Nodes are taken some at a time, so that the cases of a large cluster never lie in memory together. Of each lot a row for each
workload
and rule is kept, and the lots are merged at the end.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import polars as pl
from polars import col

from kubectl_cgaudit.audit import changes, compared
from kubectl_cgaudit.audit.changes import Case
from kubectl_cgaudit.audit.inputs import CaseTables
from kubectl_cgaudit.audit.rounding import as_said, shown
from kubectl_cgaudit.audit.rules import misreaders, pod_split, quota, system, weights
from kubectl_cgaudit.audit.rules.base import Context, Rule
from kubectl_cgaudit.audit.thresholds import Thresholds
from kubectl_cgaudit.cgroups.tree import Inputs, Moment, Setups, predict
from kubectl_cgaudit.collect.progress import Progress, silent

EFFECTS = ("stops", "may-stop", "loses", "unknown", "moves", "gains", "nominal")
"""Strongest first. A set of effects is a number with a bit for each."""
STOPS, MAY_STOP, LOSES, UNKNOWN, MOVES, GAINS, NOMINAL = (1 << place for place in range(len(EFFECTS)))
_DECIDES = STOPS | LOSES | UNKNOWN | MOVES | GAINS
"""Effects that leave the outcome unknown where they depend on what is not known."""
_ALL = 255
RULES: Mapping[str, Rule] = {
    "CGA201": system.losses,
    "CGA203": weights.crossings,
    "CGA204": pod_split.moves,
    "CGA205": weights.collisions,
    "CGA206": weights.indivisible,
    "CGA301": quota.failing_starts,
    "CGA302": quota.changed_limits,
    "CGA401": misreaders.misreaders,
}
_PROBABLE, _POSSIBLE = 3, 4
_LEVELS = (1, 2, 3, 4)
_BY_SHARE = list(RULES).index("CGA201")
"""The place of the rule about a pod's own share, which the kubelet decides, and no annotation."""
_RESTS_ON_DEFAULTS = list(RULES).index("CGA301")
"""The place of the rule for which a handler of unknown version counts as runc, and a driver that nobody says as systemd."""
_PODS_A_LOT = 30000


class Judged(NamedTuple):
    """What is kept of all pods."""

    nodes: pl.DataFrame
    """A row a node (`row`) and case, the node at both moments."""
    pods: pl.DataFrame
    """A row a pod: `row`, `workload`, `effects`, `other_effects` (in less plausible cases), `confidence` (its place in
    CONFIDENCES),
    `cases` (how many describe what is most plausible)."""
    others: pl.DataFrame
    """A row a workload and `condition` under which a default is overridden: `effects`, and the greatest `loss`."""
    questions: pl.DataFrame
    """A row a node and question whose answer decides something: the greatest loss that one answer makes, if any."""
    workloads: dict[str, pl.DataFrame]
    """`sums` has a row for each workload; `worst`, `best`, `share`, `sure` the pod of each where that is told of; `split` and
    `split_best` the container of each workload and container name."""
    spans: pl.DataFrame
    """The least and greatest values of each container name of a workload, by cgroup version before and after."""
    findings: pl.DataFrame
    """A row a rule and workload: the place that is told, in which case, and the severity in every case where it holds
    (`held`)."""
    spread: pl.DataFrame
    """A row a rule, workload and node: how many pods and places, and the certainty (place in CERTAINTIES) at each severity."""
    counts: pl.DataFrame
    """How many containers ask for an amount of CPU and get certain values."""


def judge(
    inputs: Inputs,
    setups: Setups,
    case_tables: CaseTables,
    context: Context,
    after: Inputs | None = None,
    progress: Progress = silent,
) -> Judged:
    """Judge all pods. Pods and containers have a `row`, their place in the inputs.

    `after` are the inputs after the move where they are others, row by row beside those before.
    """
    parts, done = [], 0
    for lot in cut(inputs, case_tables, after):
        progress("pods", done, len(inputs.pods))
        parts.append(_lot(lot, context._replace(capacity=context.capacity[lot.nodes]), setups))
        done += len(lot.inputs.pods)
    tables = {name: pl.concat([part[name] for part in parts]) for name in parts[0]}
    return Judged(
        tables["nodes"],
        tables["pods"],
        _merged_others(tables["others"]),
        tables["questions"],
        {"sums": _sums(tables["sums"]), **{name: merge(tables[name]) for name, merge in _FIRSTS.items()}},
        _spans(tables["spans"]),
        _told(tables["findings"]),
        tables["spread"],
        tables["counts"].group_by(_COMBINATION).agg(col.containers.sum()),
    )


def lots(inputs: Inputs, most: int = _PODS_A_LOT) -> Iterator[tuple[int, int]]:
    """Yield the first and the last node (exclusive) of each lot: of at most so many pods, or one node."""
    first = held = 0
    for node, size in enumerate(inputs.nodes["pods"]):
        if held and held + size > most:
            yield first, node
            first, held = node, 0
        held += size
    yield first, len(inputs.nodes)


class Found(NamedTuple):
    """What the rules find, as in `Judged`, and nothing of single workloads."""

    nodes: pl.DataFrame
    questions: pl.DataFrame
    spread: pl.DataFrame


def found(inputs: Inputs, setups: Setups, case_tables: CaseTables, context: Context, after: Inputs | None) -> Found:
    """Return what the rules find of all pods, as `judge` does."""
    parts = [
        _found(lot, context._replace(capacity=context.capacity[lot.nodes]), setups)
        for lot in cut(inputs, case_tables, after)
    ]
    return Found(*(pl.concat([part[name] for part in parts]) for name in Found._fields))


class Lot(NamedTuple):
    """Some nodes and their pods, numbered anew; `row` stays what it was."""

    nodes: slice
    inputs: Inputs
    after: Inputs | None
    """The inputs after the move, where they are others."""
    cases: CaseTables


def cut(inputs: Inputs, case_tables: CaseTables, after: Inputs | None = None, most: int = _PODS_A_LOT) -> Iterator[Lot]:
    """Yield the rows of some nodes at a time, with at most so many pods."""
    handlers = len(case_tables.handlers) // max(1, len(inputs.nodes))
    for first, end in lots(inputs, most):
        yield Lot(
            slice(first, end),
            _cut(inputs, first, end),
            None if after is None else _cut(after, first, end),
            CaseTables(
                case_tables.nodes[first:end],
                [each[first:end] for each in case_tables.cases],
                case_tables.handlers[first * handlers : end * handlers],
                _of_nodes(case_tables.conditions, first, end),
                _of_nodes(case_tables.pairs, first, end),
            ),
        )


def _cut(inputs: Inputs, first: int, end: int) -> Inputs:
    nodes = inputs.nodes[first:end]
    start = int(inputs.nodes["pods"][:first].sum())
    pods = inputs.pods[start : start + nodes["pods"].sum()].with_columns(col.node - first)
    containers = inputs.containers.filter(col.pod.is_between(start, start + len(pods), closed="left"))
    return Inputs(nodes, pods, containers.with_columns(col.pod - start))


def _of_nodes(table: pl.DataFrame, first: int, end: int) -> pl.DataFrame:
    return table.filter(col.node.is_between(first, end, closed="left")).with_columns(col.node - first)


class CaseOfLot(NamedTuple):
    """A case of some nodes, with the moments that it is made of."""

    number: int
    nodes: pl.DataFrame
    before: Moment
    after: Moment
    case: Case


def cases_of(lot: Lot, setups: Setups) -> Iterator[CaseOfLot]:
    """Yield every case that one of these nodes has, predicting each setup once."""
    moments: dict[tuple[bool, tuple[int, ...]], Moment] = {}

    def moment(inputs: Inputs, setup_of_node: pl.Series) -> Moment:
        key = inputs is lot.inputs, tuple(setup_of_node)
        if key not in moments:
            moments[key] = predict(inputs, setups, setup_of_node)
        return moments[key]

    handlers = _of_handler(lot.inputs, lot.cases)
    for number, nodes in enumerate(lot.cases.cases):
        # A cluster without nodes has the first case, so that every table has its columns.
        if nodes["there"].any() or nodes.is_empty():
            before = moment(lot.inputs, nodes["before"])
            after = moment(lot.inputs if lot.after is None else lot.after, nodes["after"])
            case = changes.build(lot.inputs, before, after, nodes, handlers[f"leads_{number}"])
            yield CaseOfLot(number, nodes, before, after, case)


class _Cases(NamedTuple):
    """Some nodes in all of their cases, one after the other."""

    nodes: pl.DataFrame
    pods: pl.DataFrame
    containers: pl.DataFrame
    hits: pl.DataFrame
    """What the rules find."""


def _cases(lot: Lot, context: Context, setups: Setups) -> _Cases:
    of_nodes, of_pods, of_containers, hits = [], [], [], []
    for number, nodes, before, after, case in cases_of(lot, setups):
        of_nodes.append(_node_changes(number, before, after, lot.inputs, nodes))
        of_pods.append(_pod_changes(number, case, context.thresholds))
        of_containers.append(_container_changes(number, case))
        for place, rule in enumerate(RULES.values()):
            found = rule(case, context)
            of_case = {"rule": pl.lit(place, pl.Int8), "case": pl.lit(number, pl.Int16)}
            hits.append(found.with_columns(leads=case.pods["leads"].gather(found["pod"]), **of_case))
    return _Cases(pl.concat(of_nodes), pl.concat(of_pods), pl.concat(of_containers), pl.concat(hits, how="diagonal"))


def _found(lot: Lot, context: Context, setups: Setups) -> dict[str, pl.DataFrame]:
    """What the rules find on some nodes."""
    found, case_tables = _cases(lot, context, setups), lot.cases
    handlers = _of_handler(lot.inputs, case_tables)
    _, by_place = _certainties(found.hits, lot.inputs, case_tables, handlers)
    by_pair = compared.compared(case_tables.pairs, found.pods, found.containers, found.hits)
    tables = {"nodes": found.nodes, "questions": by_pair, "spread": _spread(by_place)}
    return {name: _renumbered(table, lot.inputs.nodes["row"]) for name, table in tables.items()}


def _lot(lot: Lot, context: Context, setups: Setups) -> dict[str, pl.DataFrame]:
    """What is kept of some nodes."""
    inputs, case_tables = lot.inputs, lot.cases
    of_nodes, of_pods, of_containers, all_hits = _cases(lot, context, setups)
    handlers = _of_handler(inputs, case_tables)
    leading = of_containers.filter(col.leads)
    moved = of_pods.filter(col.leads & col.change.is_not_null()).with_columns(said=as_said(col.change))
    shares = of_pods.filter(col.leads & col.share_change.is_not_null()).with_columns(size=col.share_change.abs())
    split = leading.filter(col.change.is_not_null())
    pods = _effects(of_pods)
    pods = pods.hstack(_confidence(inputs, case_tables, handlers)[pods["pod"]])
    hits, by_place = _certainties(all_hits, inputs, case_tables, handlers)
    by_pair = compared.compared(case_tables.pairs, of_pods, of_containers, all_hits)
    kept = {
        "worst": moved,
        "best": moved,
        "share": shares,
        "sure": _sure(moved, handlers),
        "split": split,
        "split_best": split,
    }
    kept_tables = {
        "nodes": of_nodes,
        "pods": pods,
        "others": _others(of_pods, case_tables.conditions),
        "questions": by_pair,
        "sums": _sums(pods.with_columns(pods=pl.lit(1))),
        **{name: _FIRSTS[name](table) for name, table in kept.items()},
        "spans": _spans_of(of_containers),
        "findings": _worst_places(hits, by_place),
        "spread": _spread(by_place),
        "counts": _counts(leading),
    }
    # Nodes are numbered anew in a lot.
    return {name: _renumbered(table, inputs.nodes["row"]) for name, table in kept_tables.items()}


def _renumbered(table: pl.DataFrame, rows: pl.Series) -> pl.DataFrame:
    return table.with_columns(node=rows.gather(table["node"])) if "node" in table.columns else table


def _node_changes(number: int, before: Moment, after: Moment, inputs: Inputs, nodes: pl.DataFrame) -> pl.DataFrame:
    """Every node at both moments of a case."""
    moments = [
        each.nodes.select(
            kubepods="kubepods",
            pods_to_system=shown(col.pods_to_system),
            pods_share=shown(col.kubepods_share),
            system_share=shown(col.system_share),
            burstable="burstable",
            besteffort="besteffort",
            guaranteed="total_0",
            **{f"share_{qos}": shown(pl.col(f"slice_{qos}")) for qos in range(3)},
        ).select(pl.all().name.prefix(f"{when}_"))
        for when, each in (("before", before), ("after", after))
    ]
    of_node = inputs.nodes.select("row", case=pl.lit(number, pl.Int16))
    return pl.concat([of_node, *moments], how="horizontal").filter(nodes["there"])


def _pod_changes(number: int, case: Case, limits: Thresholds) -> pl.DataFrame:
    """What changes for each pod in a case, and its effects there."""
    by_pod = case.containers.group_by("pod").agg(
        moves=(limits.moved(col.change) & col.present).any(),
        nominal=(col.before_ratio.ne_missing(col.after_ratio) & col.present).any(),
        fails=col.after_fails.any(),
    )
    pods = case.pods.with_row_index("pod").with_columns(col.pod.cast(pl.Int32))
    runs = (
        _bit(LOSES, limits.lost(col.change))
        | _bit(GAINS, limits.gained(col.change))
        | _bit(MOVES, col.moves)
        | _bit(NOMINAL, col.nominal)
        | _bit(MAY_STOP, col.fails)
    )
    return (
        pods.join(by_pod, on="pod", how="left", maintain_order="left")
        .filter("there")
        .select(
            "row",
            "pod",
            "workload",
            "name_rank",
            "node",
            "leads",
            "change",
            "before_against",
            "after_against",
            "share_change",
            "before_share",
            "after_share",
            "moved",
            case=pl.lit(number, pl.Int16),
            effects=pl.when("lost").then(pl.lit(STOPS, pl.UInt8)).otherwise(runs),
        )
    )


def _bit(effect: int, holds: pl.Expr) -> pl.Expr:
    return pl.when(holds).then(pl.lit(effect, pl.UInt8)).otherwise(pl.lit(0, pl.UInt8))


def _container_changes(number: int, case: Case) -> pl.DataFrame:
    """What changes for each container in a case."""
    of_pod = case.pods.select("workload", "name_rank", "node", pod_row="row")[case.containers["pod"]]
    return (
        case.containers.hstack(of_pod)
        .filter(col.there & col.present)
        .select(
            "row",
            "pod_row",
            "workload",
            "name_rank",
            "node",
            "name",
            "leads",
            "change",
            "before_in_pod",
            "after_in_pod",
            "before_v2",
            "after_v2",
            "before_value",
            "after_value",
            requested=pl.coalesce("request", "limit"),
            case=pl.lit(number, pl.Int16),
        )
    )


def _effects(changes: pl.DataFrame) -> pl.DataFrame:
    """The effects of each pod: what holds in all leading cases; a change of CPU in some of them only is unknown, never left
    out.
    """
    none, every = pl.lit(0, pl.UInt8), pl.lit(_ALL, pl.UInt8)
    leads = pl.when("leads")
    sets = changes.group_by("row", maintain_order=True).agg(
        col("pod", "workload", "node", "name_rank").first(),
        sure=leads.then("effects").otherwise(every).bitwise_and(),
        may=leads.then("effects").otherwise(none).bitwise_or(),
        other=leads.then(none).otherwise("effects").bitwise_or(),
    )
    open_ = col.may & (every ^ col.sure)
    effects = col.sure | _bit(UNKNOWN, (open_ & _DECIDES) != 0) | (open_ & (MAY_STOP | NOMINAL))
    return sets.select("row", "pod", "workload", "node", "name_rank", effects=effects, other_effects="other")


def _others(of_pods: pl.DataFrame, conditions: pl.DataFrame) -> pl.DataFrame:
    """What happens to each workload in cases in which a default is overridden, by their conditions."""
    return _merged_others(
        of_pods.filter(~col.leads).join(conditions, on=["node", "case"], how="left").with_columns(loss="change")
    )


def _merged_others(table: pl.DataFrame) -> pl.DataFrame:
    return table.group_by("workload", "condition").agg(col.effects.bitwise_or(), col.loss.min())


def _of_handler(inputs: Inputs, case_tables: CaseTables) -> pl.DataFrame:
    """Of each pod, what is known of its node and handler."""
    handlers = len(case_tables.handlers) // max(1, len(inputs.nodes))
    return case_tables.handlers[inputs.pods["node"] * handlers + inputs.pods["handler"]]


def _confidence(inputs: Inputs, case_tables: CaseTables, handlers: pl.DataFrame) -> pl.DataFrame:
    """Of each pod: how surely its numbers are known, and how many cases describe what is most plausible."""
    doubtful = _may_be_ignored(inputs, case_tables)
    return handlers.select(
        confidence=pl.when(doubtful).then(pl.max_horizontal("confidence", pl.lit(_PROBABLE))).otherwise("confidence"),
        cases="leading",
    )


def _may_be_ignored(inputs: Inputs, case_tables: CaseTables) -> pl.Series:
    """Whether annotations decide a pod's numbers, and nothing shows that CRI-O heeds them."""
    return inputs.pods["annotated"] & case_tables.nodes["may_ignore_annotations"].gather(inputs.pods["node"])


def _sums(table: pl.DataFrame) -> pl.DataFrame:
    return table.group_by("workload").agg(
        col.pods.sum(),
        col.effects.bitwise_or(),
        col.other_effects.bitwise_or(),
        col.confidence.max(),
        col.cases.max(),
    )


def _sure(moved: pl.DataFrame, handlers: pl.DataFrame) -> pl.DataFrame:
    """Of each pod that loses in every leading case, the one in which it loses least."""
    leading = handlers["leading"].gather(moved["pod"])
    every = moved.with_columns(defined=pl.len().over("row"), leading=leading).filter(col.defined == col.leading)
    least = first(every, "row", ("change", True), ("case", False)).filter(col.change < 0)
    moved_by: pl.DataFrame = least.with_columns(moved=col.after_share - col.before_share).drop("defined", "leading")
    return moved_by


def first(table: pl.DataFrame, key: str | list[str], *order: tuple[str, bool]) -> pl.DataFrame:
    """Return the first row of each key, by columns that fall (True) or rise."""
    # The number of the row decides what is left open: sorting whole groups stably costs ten times as much.
    names, falling = [*(name for name, _ in order), "row_number"], [*(falls for _, falls in order), False]
    best = col.row_number.sort_by(names, descending=falling, nulls_last=True).first()
    kept = table.with_row_index("row_number").group_by(key).agg(best)
    return table[kept["row_number"].sort()]


_FIRSTS: Mapping[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "worst": lambda table: first(
        table, "workload", ("said", False), ("moved", False), ("name_rank", False), ("case", False)
    ),
    "best": lambda table: first(table, "workload", ("change", True), ("name_rank", True), ("case", False)),
    "share": lambda table: first(
        table, "workload", ("size", True), ("share_change", False), ("name_rank", False), ("case", False)
    ),
    "sure": lambda table: first(table, "workload", ("said", False), ("moved", False), ("node", False)),
    "split": lambda table: first(table, ["workload", "name"], ("change", False), ("name_rank", False), ("case", False)),
    "split_best": lambda table: first(
        table, ["workload", "name"], ("change", True), ("name_rank", False), ("case", False)
    ),
}
"""The row that is told of each workload, or of each container name of a workload."""

_SPAN = ["workload", "name", "before_v2", "after_v2"]
_COMBINATION = ["requested", "before_v2", "before_value", "after_v2", "after_value"]


def _spans_of(containers: pl.DataFrame) -> pl.DataFrame:
    both = containers.filter(col.before_value.is_not_null() & col.after_value.is_not_null())
    return _spans(
        both.with_columns(
            before_least="before_value",
            before_greatest="before_value",
            after_least="after_value",
            after_greatest="after_value",
        )
    )


def _spans(table: pl.DataFrame) -> pl.DataFrame:
    return table.group_by(_SPAN).agg(
        col.before_least.min(), col.before_greatest.max(), col.after_least.min(), col.after_greatest.max()
    )


def _counts(containers: pl.DataFrame) -> pl.DataFrame:
    """However many cases give a container the same values, it counts once for them."""
    one_case = containers["case"].n_unique() < 2
    own = containers.select("row", *_COMBINATION)
    return (own if one_case else own.unique()).group_by(_COMBINATION).agg(containers=pl.len())


_PLACE = ["rule", "row", "place"]
"""A place is a pod or one of its containers, where a rule holds."""


def _certainties(
    hits: pl.DataFrame, inputs: Inputs, case_tables: CaseTables, handlers: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What the rules find, with the names behind it, and how surely a rule holds of each place at each severity."""
    of_pods = pl.concat(
        [
            inputs.pods.select("row", "workload", "name_rank", "node"),
            case_tables.nodes.select("cases")[inputs.pods["node"]],
            handlers.select("settled", "taken", "leading"),
            pl.DataFrame({"doubtful": _may_be_ignored(inputs, case_tables)}),
        ],
        how="horizontal",
    )[hits["pod"]]
    taken = ((col.rule == _RESTS_ON_DEFAULTS) & col.taken) | ((col.rule != _BY_SHARE) & col.doubtful)
    hits = (
        hits.drop("pod")
        .hstack(of_pods)
        .with_columns(
            settled=pl.when(taken).then(pl.max_horizontal("settled", pl.lit(_PROBABLE))).otherwise("settled"),
            badness=shown(col.badness),
            container=pl.coalesce(pl.when(col.place >= 0).then("place"), "container"),
        )
    )
    names = inputs.containers.select("name", container="row")
    hits = hits.join(names, on="container", how="left", maintain_order="left")
    by_place = (
        hits.group_by(_PLACE, maintain_order=True)
        .agg(
            col("workload", "name_rank", "node", "cases", "leading", "settled").first(),
            in_leading=pl.when("leads").then("severity").otherwise(0).max(),
            in_any=col.severity.max(),
            **{f"all_{level}": (col.severity >= level).sum() for level in _LEVELS},
            **{f"leading_{level}": (col.leads & (col.severity >= level)).sum() for level in _LEVELS},
        )
        .with_columns(
            severity=pl.when(col.in_leading > 0).then("in_leading").otherwise("in_any"),
            **{
                f"certainty_{level}": pl.when(col(f"all_{level}") == col.cases)
                .then("settled")
                .when(col(f"leading_{level}") == col.leading)
                .then(pl.max_horizontal("settled", pl.lit(_PROBABLE)))
                .when(col(f"all_{level}") > 0)
                .then(_POSSIBLE)
                for level in _LEVELS
            },
        )
        .with_columns(
            certainty=pl.coalesce(*(pl.when(col.severity == level).then(f"certainty_{level}") for level in _LEVELS)),
            is_likely=col.in_leading > 0,
        )
    )
    return hits, by_place


def _worst_places(hits: pl.DataFrame, by_place: pl.DataFrame) -> pl.DataFrame:
    """The worst place of each rule and workload, with its severity in the leading cases, if it holds in any of these."""
    key = _PLACE
    told = first(
        hits.join(by_place.select(*key, "severity", "certainty", "is_likely"), on=[*key, "severity"]).filter(
            col.leads | ~col.is_likely
        ),
        key,
        ("badness", True),
        ("case", False),
    )
    worst = _told(told)
    held = hits.join(worst, on=key, how="semi").group_by(key).agg(held=pl.struct("case", "severity").sort_by("case"))
    return worst.join(held, on=key, how="left")


def _told(places: pl.DataFrame) -> pl.DataFrame:
    """The place that is told of each rule and workload."""
    return first(
        places.with_columns(inside=col.place >= 0),
        ["rule", "workload"],
        ("is_likely", True),
        ("severity", True),
        ("certainty", False),
        ("badness", True),
        ("moved", True),
        ("name_rank", False),
        ("inside", False),
        ("name", False),
    ).drop("inside")


def _spread(places: pl.DataFrame) -> pl.DataFrame:
    """Where a rule holds of each workload, node by node."""
    return places.group_by("rule", "workload", "node").agg(
        pods=col.row.n_unique(),
        places=pl.len(),
        likely_places=(col.in_leading > 0).sum(),
        severity=col.in_leading.max(),
        **{f"certainty_{level}": col(f"certainty_{level}").min() for level in _LEVELS},
    )
