"""What happens if somebody does something: predict and judge again with other setups or requests after the move.

Many changes are judged at once: each has copies of the nodes it touches, and a copy is judged as a node of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
from msgspec.structs import replace
from polars import col

from kubectl_cgaudit.actions.change import Change, NodeChange, WorkloadChange, changed_node, changed_pod
from kubectl_cgaudit.audit import judge
from kubectl_cgaudit.audit.findings import node_findings
from kubectl_cgaudit.audit.inputs import AMOUNTS, Tables, amounts, case_tables, with_shares
from kubectl_cgaudit.audit.model import SEVERITIES, Finding
from kubectl_cgaudit.audit.run import Run, judged_run, judging
from kubectl_cgaudit.cgroups.tree import Inputs
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.detect.target import Scenario

_PODS_AT_ONCE = 120_000
"""Pods of copies that lie in memory together, if no single change has more."""
_RULE_IDS = tuple(judge.RULES)
_LEVELS = range(1, len(SEVERITIES) + 1)
Grade = tuple[bool, int, int]
"""How bad a finding is: whether it holds in a most plausible case, its severity from 1 on, and how many pods it hits."""
_NONE: Grade = (False, 0, 0)
_LOW = 1


class Outcome(NamedTuple):
    """What becomes of the findings, by their ids in order."""

    cleared: tuple[str, ...]
    lowered: tuple[str, ...]
    """Less severe, or on fewer pods."""
    caused: tuple[str, ...]
    """New, more severe, or on more pods."""
    grades: Mapping[str, tuple[Grade, Grade]]
    """How bad each finding of a touched node or workload is without the change, and with it."""
    pods_share: Mapping[tuple[int, int], float]
    """The fraction of a full node's CPU that its pods get, by the place of the node and the number of the case."""

    @property
    def helps(self) -> bool:
        """Whether what is left is less bad than without the change: fewer of the worst findings, or on fewer pods."""
        was, will = zip(*self.grades.values(), strict=True) if self.grades else ((), ())
        return bool(self.cleared or self.lowered) and _burden(will) < _burden(was) and not self._harms

    @property
    def _harms(self) -> bool:
        """Whether it causes, in a most plausible case, what is more than low and as severe as all that it mends."""
        mended = max((self.grades[each][0][:2] for each in (*self.cleared, *self.lowered)), default=(False, 0))
        caused = (self.grades[each][1][:2] for each in self.caused)
        return any(leads and severity > _LOW and (leads, severity) >= mended for leads, severity in caused)


def apply(run: Run, cluster: Cluster, scenario: Scenario, change: Change, said: Sequence[str] = ()) -> Run:
    """Return the whole audit with a change made after the move, which `said` names. Raises UsageError when a rule does not fit a
    node.
    """
    every = [(place, change) for place in range(len(run.tables.nodes))]
    known = run.audit
    made = judged_run(
        cluster,
        copies(run.tables, every),
        scenario,
        run.context.thresholds,
        known.coverage,
        known.time,
    )
    target = replace(made.audit.target, what_if=tuple(said))
    return made._replace(audit=replace(made.audit, target=target))


def outcomes(run: Run, changes: Sequence[Change]) -> list[Outcome]:
    """Return what becomes of the findings with each change alone. Only nodes that a change touches are predicted again."""
    placed = _nodes_of_workloads(run.tables)
    before = _Before(run)
    found = []
    for group in _groups(run.tables, [touched(run.tables, change, placed) for change in changes]):
        entries = [(place, number) for number, places in group for place in places]
        built = copies(run.tables, [(place, changes[number]) for place, number in entries])
        images = run.context.images if built.images == run.tables.images else None
        context = judging(built, run.context.thresholds, images)
        again = judge.found(built.inputs, built.setups, built.cases, context, built.after)
        shares = _shares(again, entries)
        of_nodes: dict[int, dict[str, Grade]] = {}
        for copy, finding in node_findings(built, again, run.context.thresholds):
            of_nodes.setdefault(entries[copy][1], {})[finding.id] = graded(finding)
        pairs = before.paired(group, entries, again.spread, of_nodes)
        found += [_outcome(pairs[number], shares.get(number, {})) for number, _ in group]
    return found


def _outcome(pairs: Mapping[str, tuple[Grade, Grade]], shares: Mapping[tuple[int, int], float]) -> Outcome:
    return Outcome(
        tuple(sorted(each for each, (was, will) in pairs.items() if was > _NONE and will == _NONE)),
        tuple(sorted(each for each, (was, will) in pairs.items() if _NONE < will < was)),
        tuple(sorted(each for each, (was, will) in pairs.items() if will > was)),
        pairs,
        shares,
    )


def _shares(again: judge.Found, entries: Sequence[tuple[int, int]]) -> dict[int, dict[tuple[int, int], float]]:
    """Return of each change what pods get of the nodes that it touches."""
    found: dict[int, dict[tuple[int, int], float]] = {}
    for copy, case, share in again.nodes.select("row", "case", "after_pods_share").iter_rows():
        place, number = entries[copy]
        found.setdefault(number, {})[place, case] = share
    return found


def touched(tables: Tables, change: Change, placed: Mapping[tuple[str, str, str], Sequence[int]]) -> list[int]:
    """Return the places of the nodes that a change touches; `placed` are the nodes of each workload's pods."""
    names = change.of_nodes()
    nodes = {place for place, node in enumerate(tables.nodes) if node.node.name in names} if names else set()
    return sorted(nodes.union(*(placed.get(each.key, ()) for each in change.workloads)))


def _nodes_of_workloads(tables: Tables) -> dict[tuple[str, str, str], Sequence[int]]:
    pairs = tables.inputs.pods.filter(col.workload.is_not_null()).group_by("workload").agg(col.node.unique())
    found = {}
    for number, nodes in pairs.iter_rows():
        namespace, owner = tables.workloads[number]
        found[namespace, owner.kind, owner.name] = nodes
    return found


def _groups(tables: Tables, touching: Sequence[list[int]]) -> Iterator[list[tuple[int, list[int]]]]:
    """Yield the changes that are judged together: number and nodes of each."""
    sizes = tables.inputs.nodes["pods"].to_list()
    group: list[tuple[int, list[int]]] = []
    held = 0
    for number, places in enumerate(touching):
        size = sum(sizes[place] for place in places)
        if group and held + size > _PODS_AT_ONCE:
            yield group
            group, held = [], 0
        group.append((number, places))
        held += size
    if group:
        yield group


def copies(tables: Tables, wanted: Sequence[tuple[int, Change]]) -> Tables:
    """Return the tables of copies of nodes: of each the place of the node, and what is changed on it."""
    of_change = {key: change.of_nodes() for key, change in {id(change): change for _, change in wanted}.items()}
    nodes, of_nodes = [], []
    for place, change in wanted:
        node = tables.nodes[place]
        own = of_change[id(change)].get(node.node.name, [])
        nodes.append(changed_node(node, own) if own else node)
        of_nodes.append(own)
    places = pl.Series([place for place, _ in wanted], dtype=pl.Int32)
    given, rows = _copied(tables.inputs, places)
    cases, setups, conditions = case_tables(nodes, tables.handlers)
    pods = [tables.pods[row] for row in rows]
    names = tables.pod_names.gather(rows)
    made = replace(
        tables,
        nodes=tuple(nodes),
        inputs=given,
        setups=setups,
        cases=cases,
        conditions=conditions,
        pods=pods,
        pod_names=names,
        after=None,
    )
    return _asking(made, [change for _, change in wanted], of_nodes)


def _copied(given: Inputs, places: pl.Series) -> tuple[Inputs, pl.Series]:
    """Return copies of the nodes at these places with their pods and containers, and the row of each pod in the original."""
    counts = given.nodes["pods"]
    first = (counts.cum_sum() - counts).gather(places)
    of_pods = _ranges(first, counts.gather(places))
    rows = of_pods["row"]
    pods = given.pods[rows].with_columns(node=of_pods["of"].cast(pl.Int32), row=pl.int_range(pl.len(), dtype=pl.Int32))
    owner = given.containers["pod"]
    start = owner.search_sorted(rows, side="left").cast(pl.Int64)
    of_containers = _ranges(start, owner.search_sorted(rows, side="right").cast(pl.Int64) - start)
    containers = given.containers[of_containers["row"]].with_columns(
        pod=of_containers["of"].cast(pl.Int32), row=pl.int_range(pl.len(), dtype=pl.Int32)
    )
    nodes = given.nodes[places].with_columns(row=pl.int_range(pl.len(), dtype=pl.Int32))
    return Inputs(nodes, pods, containers), rows


def _ranges(first: pl.Series, count: pl.Series) -> pl.DataFrame:
    """Return a row for each of `count` numbers from `first` on: the number as `row`, and as `of` the place of its range."""
    frame = pl.DataFrame({"first": first.cast(pl.Int64), "count": count.cast(pl.Int64)}).with_row_index("of")
    return frame.filter(col.count > 0).select("of", row=pl.int_ranges("first", col.first + col.count)).explode("row")


def _asking(made: Tables, changes: Sequence[Change], of_nodes: Sequence[Sequence[NodeChange]]) -> Tables:
    """Return the tables with what pods ask for, and what is allocatable, after the move."""
    given = made.inputs
    then = given
    allocatable = [
        next((each.allocatable_milli for each in reversed(own) if each.allocatable_milli is not None), None)
        for own in of_nodes
    ]
    rows = _changed_rows(made, changes)
    if any(change.asks for _, change in rows):
        then = _with_amounts(made, rows)
    if any(each is not None for each in allocatable):
        other = pl.coalesce(pl.Series(allocatable, dtype=pl.Int64), "allocatable")
        then = then._replace(nodes=given.nodes.with_columns(allocatable=other))
    after = None if then is given else then
    updated = [(row, name) for row, change in rows for name in change.updated]
    if updated:
        # No fault is known of a program whose image has no name.
        images = (*made.images, "")
        given = given._replace(containers=_updated(made, updated, len(images) - 1))
        made = replace(made, images=images, inputs=given)
    return replace(made, after=after)


def _changed_rows(made: Tables, changes: Sequence[Change]) -> list[tuple[int, WorkloadChange]]:
    """Return the pods of changed workloads, row by row, with what changes."""
    numbers = {(space, owner.kind, owner.name): number for number, (space, owner) in enumerate(made.workloads)}
    by_change = {id(change): change for change in changes if change.workloads}
    asked = [
        (copy, numbers[each.key], each)
        for copy, change in enumerate(changes)
        if id(change) in by_change
        for each in change.workloads
        if each.key in numbers
    ]
    if not asked:
        return []
    keys = pl.DataFrame(
        [(copy, number, place) for place, (copy, number, _) in enumerate(asked)],
        schema={"node": pl.Int32, "workload": pl.Int32, "change": pl.Int32},
        orient="row",
    )
    found = made.inputs.pods.select("row", "node", "workload").join(keys, on=["node", "workload"]).sort("row", "change")
    return [(row, asked[change][2]) for row, change in found.select("row", "change").iter_rows()]


def _with_amounts(made: Tables, rows: Sequence[tuple[int, WorkloadChange]]) -> Inputs:
    """Return the inputs with other requests and limits of some pods."""
    profiles: dict[tuple[int, int], int] = {}
    of_pods: list[tuple[Any, ...]] = []
    of_containers: list[tuple[int, int, int | None, int | None]] = []
    numbers = []
    for row, change in rows:
        pod = made.pods[row]
        key = id(pod.alike), id(change)
        if key not in profiles:
            profiles[key] = len(of_pods)
            then = changed_pod(pod, change)
            of_pods.append(amounts(then))
            of_containers += [
                (profiles[key], place, each.request_milli, each.limit_milli)
                for place, each in enumerate(then.containers)
            ]
        numbers.append(profiles[key])
    pods, containers = made.inputs.pods, made.inputs.containers
    changed = pl.DataFrame(
        {"pod": [row for row, _ in rows], "profile": numbers}, schema={"pod": pl.Int32, "profile": pl.Int32}
    )
    new_pods = pl.DataFrame(of_pods, schema={name: pods.schema[name] for name in AMOUNTS}, orient="row")
    schema = {"profile": pl.Int32, "place": pl.Int32, "request": pl.Int64, "limit": pl.Int64}
    new_containers = changed.join(pl.DataFrame(of_containers, schema=schema, orient="row"), on="profile").drop(
        "profile"
    )
    return Inputs(
        made.inputs.nodes,
        *with_shares(
            _overlaid(pods, changed.select(row="pod").hstack(new_pods[changed["profile"]]), ["row"]),
            _overlaid(containers, new_containers, ["pod", "place"]),
        ),
    )


def _overlaid(table: pl.DataFrame, new: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """Return the table with other values, also null ones, in the rows that `new` names."""
    names = [name for name in new.columns if name not in key]
    both = table.join(
        new.with_columns(there=pl.lit(value=True)), on=key, how="left", suffix="_new", maintain_order="left"
    )
    values = {name: pl.when("there").then(f"{name}_new").otherwise(name) for name in names}
    return both.with_columns(**values).select(table.columns)


def _updated(made: Tables, wanted: Sequence[tuple[int, str]], image: int) -> pl.DataFrame:
    names = {name: number for number, name in enumerate(made.containers)}
    rows = pl.DataFrame(
        [(row, names[name], image) for row, name in wanted if name in names],
        schema={"pod": pl.Int32, "name": pl.Int32, "image": pl.Int32},
        orient="row",
    )
    return _overlaid(made.inputs.containers, rows, ["pod", "name"])


class _Before:
    """The findings without a change, node by node."""

    def __init__(self, run: Run) -> None:
        self._keys = [f"{namespace}/{owner.kind}/{owner.name}" for namespace, owner in run.tables.workloads]
        self._spread = _grades(run.judged.spread)
        self._whole = _whole(self._spread, "rule", "workload")
        places = {node.node.name: place for place, node in enumerate(run.tables.nodes)}
        self._nodes: dict[int, dict[str, Grade]] = {}
        for finding in run.audit.findings:
            if finding.subject.kind == "node" and finding.subject.name in places:
                self._nodes.setdefault(places[finding.subject.name], {})[finding.id] = graded(finding)

    def paired(
        self,
        group: Sequence[tuple[int, Sequence[int]]],
        entries: Sequence[tuple[int, int]],
        spread: pl.DataFrame,
        of_nodes: Mapping[int, Mapping[str, Grade]],
    ) -> dict[int, dict[str, tuple[Grade, Grade]]]:
        """Return how bad findings are without each change and with it, where that may differ.

        `entries` are the place and the change of each copy of a node, `spread` and `of_nodes` what is found there.
        """
        found: dict[int, dict[str, tuple[Grade, Grade]]] = {}
        for number, places in group:
            then = of_nodes.get(number, {})
            pairs = found[number] = {
                identity: (grade, then.get(identity, _NONE))
                for place in places
                for identity, grade in self._nodes.get(place, {}).items()
            }
            for identity, grade in then.items():
                pairs.setdefault(identity, (_NONE, grade))
        for number, rule, workload, *grades in self._changing(entries, spread).iter_rows():
            was = _NONE if grades[1] is None else (grades[0], grades[1], grades[2])
            will = _NONE if grades[4] is None else (grades[3], grades[4], grades[5])
            found[number][f"{_RULE_IDS[rule]}:{self._keys[workload]}"] = was, will
        return found

    def _changing(self, entries: Sequence[tuple[int, int]], spread: pl.DataFrame) -> pl.DataFrame:
        """Return the rules and workloads that are otherwise on a touched node, in their order: how bad before, and with it."""
        touched = pl.DataFrame(entries, schema={"node": pl.Int32, "change": pl.Int32}, orient="row")
        copies = _grades(spread)
        columns = [*_KEY, "node", *_GRADE]
        after = copies.with_columns(touched[copies["node"]]).select(columns)
        before = self._spread.join(touched, on="node").select(columns)
        differing = [before.join(after, on=columns, how="anti"), after.join(before, on=columns, how="anti")]
        keys = pl.concat(differing).select(_KEY).unique()
        elsewhere = (
            self._spread.join(keys, on=["rule", "workload"])
            .join(touched, on=["change", "node"], how="anti")
            .select(columns)
        )
        then = _whole(pl.concat([elsewhere, after.join(keys, on=_KEY, how="semi")]), *_KEY)
        return (
            keys.join(self._whole, on=["rule", "workload"], how="left")
            .join(then, on=_KEY, how="left", suffix="_then")
            .sort(_KEY)
            .select(*_KEY, *_GRADE, *(f"{name}_then" for name in _GRADE))
        )


_KEY = ["change", "rule", "workload"]
_GRADE = ["leads", "severity", "pods"]


def _burden(grades: Sequence[Grade]) -> list[int]:
    """Return how many findings there are of each grade, the worst first, and then how many pods they hit."""
    order = [(leads, severity) for leads in (True, False) for severity in reversed(_LEVELS)]
    return [*(sum(grade[:2] == each for grade in grades) for each in order), sum(grade[2] for grade in grades)]


def graded(finding: Finding) -> Grade:
    """Return how bad a finding is."""
    return finding.leads, SEVERITIES.index(finding.severity) + 1, finding.where.pods_hit


def _grades(spread: pl.DataFrame) -> pl.DataFrame:
    """Return how bad each rule and workload is on each node."""
    worst = pl.max_horizontal(*(pl.when(col(f"certainty_{level}").is_not_null()).then(level) for level in _LEVELS))
    severity = pl.when(col.severity > 0).then("severity").otherwise(worst)
    return spread.select(
        "rule",
        "workload",
        "node",
        leads=col.severity > 0,
        severity=severity.cast(pl.Int32),
        pods=col.pods.cast(pl.Int64),
    )


def _whole(grades: pl.DataFrame, *key: str) -> pl.DataFrame:
    """Return how bad a finding is that is this bad on its nodes: what holds in a most plausible case comes first."""
    ranked = (col.leads.cast(pl.Int32) * len(_RANKS) + col.severity).max()
    found = grades.group_by(key).agg(ranked=ranked, leading=(col.pods * col.leads).sum(), pods=col.pods.sum())
    leads = col.ranked >= len(_RANKS)
    return found.select(
        *key,
        leads=leads,
        severity=col.ranked % len(_RANKS),
        pods=pl.when(leads).then("leading").otherwise("pods"),
    )


_RANKS = (0, *_LEVELS)


class Place(NamedTuple):
    """Pods and containers of a node in one case: columns as in `changes.Case`."""

    node: Mapping[str, Any]
    """The node at both moments: `pods_share`, `system_share` and `pods_to_system` with `before_` and `after_`."""
    pods: pl.DataFrame
    containers: pl.DataFrame


def places(built: Tables, cases: Sequence[int]) -> list[Place]:
    """Return every node in one of its cases, by the number of the case."""
    found: dict[int, Place] = {}
    for lot in judge.cut(built.inputs, built.cases, built.after):
        for number, _, before, after, case in judge.cases_of(lot, built.setups):
            wanted = [node for node in range(lot.nodes.start, lot.nodes.stop) if cases[node] == number]
            here = pl.Series([node - lot.nodes.start for node in wanted], dtype=pl.Int32)
            pods = case.pods.filter(col.node.is_in(here.implode())).partition_by("node", as_dict=True)
            owners = case.pods["node"].gather(case.containers["pod"])
            containers = case.containers.with_columns(node=owners).filter(col.node.is_in(here.implode()))
            by_node = containers.partition_by("node", as_dict=True)
            for node, place in zip(wanted, here, strict=True):
                moments = {
                    f"{when}_{name}": each.nodes[column][place]
                    for when, each in (("before", before), ("after", after))
                    for name, column in _MOMENT.items()
                }
                found[node] = Place(
                    moments, pods.get((place,), case.pods.clear()), by_node.get((place,), containers.clear())
                )
    return [found[node] for node in range(len(built.nodes))]


_MOMENT = {
    "pods_share": "kubepods_share",
    "system_share": "system_share",
    "pods_to_system": "pods_to_system",
    "kubepods": "kubepods",
}
