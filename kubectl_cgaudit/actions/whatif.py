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
        context = judging(built, run.context.thresholds)
        again = judge.found(built.inputs, built.setups, built.cases, context, built.after)
        after = _after(built, again, entries, run)
        shares = _shares(again, entries)
        found += [
            before.compared(places, *after[number])._replace(pods_share=shares.get(number, {}))
            for number, places in group
        ]
    return found


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


Spread = Mapping[tuple[int, int], Mapping[int, Grade]]
"""How bad each rule and workload is on each node."""


class _Before:
    """The findings without a change, node by node."""

    def __init__(self, run: Run) -> None:
        self._tables = run.tables
        self._spread = _spread(run.judged.spread)
        places = {node.node.name: place for place, node in enumerate(run.tables.nodes)}
        self._keys_of: dict[int, set[tuple[int, int]]] = {}
        for key, rows in self._spread.items():
            for node in rows:
                self._keys_of.setdefault(node, set()).add(key)
        self._nodes: dict[int, dict[str, Grade]] = {}
        for finding in run.audit.findings:
            if finding.subject.kind == "node" and finding.subject.name in places:
                self._nodes.setdefault(places[finding.subject.name], {})[finding.id] = graded(finding)

    def compared(self, places: Sequence[int], spread: Spread, of_nodes: Mapping[str, Grade]) -> Outcome:
        """Return what becomes of the findings where the touched nodes have these instead."""
        touched = set(places)
        pairs: dict[str, tuple[Grade, Grade]] = {}
        for place in places:
            for identity, grade in self._nodes.get(place, {}).items():
                pairs[identity] = grade, of_nodes.get(identity, _NONE)
        for identity, grade in of_nodes.items():
            pairs.setdefault(identity, (_NONE, grade))
        for key in self._changing(touched, spread):
            rows = self._spread.get(key, {})
            then = {**{node: grade for node, grade in rows.items() if node not in touched}, **spread.get(key, {})}
            pairs[self._identity(key)] = _whole(rows), _whole(then)
        return Outcome(
            tuple(sorted(each for each, (was, will) in pairs.items() if was > _NONE and will == _NONE)),
            tuple(sorted(each for each, (was, will) in pairs.items() if _NONE < will < was)),
            tuple(sorted(each for each, (was, will) in pairs.items() if will > was)),
            pairs,
            {},
        )

    def _changing(self, touched: set[int], spread: Spread) -> Iterator[tuple[int, int]]:
        """Yield rules and workloads that are otherwise on a touched node."""
        before: set[tuple[int, int]] = set().union(*(self._keys_of.get(node, ()) for node in touched))
        for key in sorted(before | spread.keys()):
            rows = self._spread.get(key, {})
            here = {node: rows[node] for node in touched & rows.keys()}
            if here != spread.get(key, {}):
                yield key

    def _identity(self, key: tuple[int, int]) -> str:
        namespace, owner = self._tables.workloads[key[1]]
        return f"{_RULE_IDS[key[0]]}:{namespace}/{owner.kind}/{owner.name}"


def _burden(grades: Sequence[Grade]) -> list[int]:
    """Return how many findings there are of each grade, the worst first, and then how many pods they hit."""
    order = [(leads, severity) for leads in (True, False) for severity in reversed(_LEVELS)]
    return [*(sum(grade[:2] == each for grade in grades) for each in order), sum(grade[2] for grade in grades)]


def graded(finding: Finding) -> Grade:
    """Return how bad a finding is."""
    return finding.leads, SEVERITIES.index(finding.severity) + 1, finding.where.pods_hit


def _whole(rows: Mapping[int, Grade]) -> Grade:
    """Return how bad a finding is that is this bad on its nodes: what holds in a most plausible case comes first."""
    if not rows:
        return _NONE
    leads = any(grade[0] for grade in rows.values())
    among = [grade for grade in rows.values() if grade[0] == leads]
    return leads, max(severity for _, severity, _ in among), sum(pods for *_, pods in among)


def _spread(table: pl.DataFrame) -> dict[tuple[int, int], dict[int, Grade]]:
    found: dict[tuple[int, int], dict[int, Grade]] = {}
    for rule, workload, node, grade in _grades(table):
        found.setdefault((rule, workload), {})[node] = grade
    return found


def _grades(table: pl.DataFrame) -> Iterator[tuple[int, int, int, Grade]]:
    worst = pl.max_horizontal(*(pl.when(col(f"certainty_{level}").is_not_null()).then(level) for level in _LEVELS))
    rows = table.select("rule", "workload", "node", "severity", "pods", worst=worst)
    for rule, workload, node, severity, pods, any_case in rows.iter_rows():
        yield rule, workload, node, (severity > 0, severity or any_case, pods)


_After = dict[int, tuple[dict[tuple[int, int], dict[int, Grade]], dict[str, Grade]]]


def _after(built: Tables, again: judge.Found, entries: Sequence[tuple[int, int]], run: Run) -> _After:
    """Return what is found with each change: of each rule and workload by node, and of the nodes themselves."""
    found: _After = {number: ({}, {}) for _, number in entries}
    for rule, workload, copy, grade in _grades(again.spread):
        place, number = entries[copy]
        found[number][0].setdefault((rule, workload), {})[place] = grade
    for copy, finding in node_findings(built, again, run.context.thresholds):
        found[entries[copy][1]][1][finding.id] = graded(finding)
    return found


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
