"""From what is known of every node and pod to the tables that are predicted and judged."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import polars as pl
from msgspec import Struct
from polars import col

from kubectl_cgaudit.audit.cases import NodeCases, PodsOnNode
from kubectl_cgaudit.audit.confidence import confidence, settled, taken_for_granted
from kubectl_cgaudit.audit.model import CERTAINTIES, CONFIDENCES
from kubectl_cgaudit.cgroups import crio
from kubectl_cgaudit.cgroups.pods import pod_level_resources
from kubectl_cgaudit.cgroups.tree import LINEAR, NONE, QUADRATIC, Inputs, Setups, container_shares
from kubectl_cgaudit.collect.model import COMPETING, Cluster, Owner, Pod, Qos
from kubectl_cgaudit.collect.owners import workload
from kubectl_cgaudit.detect.shown import NOTHING, Shown
from kubectl_cgaudit.detect.state import Setup

QOS: tuple[Qos, ...] = ("Guaranteed", "Burstable", "BestEffort")
ROLES = ("app", "sidecar", "init", "ephemeral")
_FORMULAS = {"none": NONE, "linear": LINEAR, "quadratic": QUADRATIC, "neither": NONE}
Key = tuple[str, Owner]
"""Namespace and top owner of a workload's pods."""

_PROFILE = {
    "qos": pl.Int8,
    "request": pl.Int64,
    "spec_request": pl.Int64,
    "limit": pl.Int64,
    "sum_request": pl.Int64,
    "sum_spec_request": pl.Int64,
    "sum_limit": pl.Int64,
    "overhead": pl.Int64,
    "all_limited": pl.Boolean,
    "wants_cpu": pl.Boolean,
    "partitioned": pl.Boolean,
    "annotated": pl.Boolean,
    "selected": pl.Boolean,
}
AMOUNTS = (
    "qos",
    "request",
    "spec_request",
    "limit",
    "sum_request",
    "sum_spec_request",
    "sum_limit",
    "overhead",
    "all_limited",
)
"""The columns of a pod that say what it asks for, which other requests and limits change."""
_CONTAINER = {
    "profile": pl.Int32,
    "place": pl.Int32,
    "name": pl.Int32,
    "image": pl.Int32,
    "role": pl.Int8,
    "sees_cgroups": pl.Boolean,
    "competing": pl.Int32,
    "request": pl.Int64,
    "limit": pl.Int64,
    "ephemeral": pl.Boolean,
    "present": pl.Boolean,
    "competes": pl.Boolean,
    "asked_shares": pl.Int64,
    "asked_weight": pl.Int64,
    "unlimited": pl.Boolean,
}
_SETUP = {
    "v2": pl.Boolean,
    "kubelet_quadratic": pl.Boolean,
    "pod_level": pl.Boolean,
    "rounds_pod_quota": pl.Boolean,
    "systemd": pl.Boolean,
    "cfs_quota": pl.Boolean,
    "period_us": pl.Int64,
    "system_slice": pl.Int64,
    "root_sum": pl.Int64,
    "from_capacity": pl.Boolean,
    "stale": pl.Boolean,
    "crio": pl.Boolean,
    "leaves_out": pl.Boolean,
    "inner": pl.Boolean,
    "measured": pl.Boolean,
}
_RUNTIME = {
    "formula": pl.Int8,
    "rounds_quota": pl.Boolean,
    "is_crun": pl.Boolean,
    "may_be_runc": pl.Boolean,
    "may_be_crun": pl.Boolean,
}


class CaseTables(NamedTuple):
    """The cases of every node, the most plausible first."""

    nodes: pl.DataFrame
    """A row a node: `cases` (how many it has), `may_ignore_annotations` (nothing shows whether CRI-O heeds them)."""
    cases: Sequence[pl.DataFrame]
    """The first cases of all nodes, the second ones, ...: a row a node with `there`, `lost`, `before` and `after` (rows of the
    setups)."""
    handlers: pl.DataFrame
    """Row `node * handlers + handler`: `confidence`, the weakest of all facts that count for the pods of a handler; `settled`,
    the weakest of those that leave no question open (places in CERTAINTIES); `taken`, whether a failing start rests on a default;
    `leading`, how many cases describe what is most plausible; and for each case `leads_<n>`, whether it is one of these."""
    conditions: pl.DataFrame
    """A row a `node` and `case`: `condition`, a number for what the case assumes."""
    pairs: pl.DataFrame
    """A row for two cases of a node that differ in the answer to one question only: `node`, `question` (its place among the
    node's), `case`, `other`."""


class Tables(Struct, frozen=True):
    """Everything that is predicted and judged, and the names behind the numbers."""

    nodes: tuple[NodeCases, ...]
    inputs: Inputs
    setups: Setups
    cases: CaseTables
    pods: Sequence[Pod]
    """By row."""
    workloads: tuple[Key, ...]
    """By number, in order of name."""
    pod_names: pl.Series
    containers: tuple[str, ...]
    """Names of containers by number, in order."""
    images: tuple[str, ...]
    handlers: tuple[str, ...]
    conditions: tuple[str, ...]
    """What cases assume, by number."""
    after: Inputs | None = None
    """What is predicted after the move where that is something else, as requests that somebody changes."""

    def container_name(self, row: int) -> str:
        """Return the name of the container of a row."""
        number: int = self.inputs.containers["name"][row]
        return self.containers[number]


class _Numbers:
    """Gives each distinct value a number."""

    def __init__(self) -> None:
        self.of: dict[Any, int] = {}

    def __call__(self, value: Any) -> int:
        return self.of.setdefault(value, len(self.of))

    def in_order(self, key: Callable[[Any], Any] | None = None) -> tuple[tuple[Any, ...], pl.Series]:
        """Return the values in order, and the place in it of each number."""
        values = sorted(self.of, key=key)
        places = [0] * len(values)
        for place, value in enumerate(values):
            places[self.of[value]] = place
        return tuple(values), pl.Series(places, dtype=pl.Int32)


class _Built(NamedTuple):
    """The tables of pods, and the names behind their numbers."""

    inputs: Inputs
    pods: list[Pod]
    pod_names: pl.Series
    containers: tuple[str, ...]
    images: tuple[str, ...]
    handlers: tuple[str, ...]


def tables(nodes: tuple[NodeCases, ...], cluster: Cluster) -> Tables:
    """Return the tables of all nodes and their active pods; pods are in the order of their nodes."""
    keys = _Numbers()
    built = _build([node.on_node for node in nodes], lambda pods: _workloads(pods, cluster, keys))
    workloads, order = keys.in_order()
    numbers = col.workload.replace_strict(range(len(order)), order, default=-1, return_dtype=pl.Int32)
    of_pods = built.inputs.pods.with_columns(workload=pl.when(col.workload >= 0).then(numbers))
    cases, setups, conditions = case_tables(nodes, built.handlers)
    return Tables(
        nodes,
        built.inputs._replace(pods=of_pods),
        setups,
        cases,
        built.pods,
        workloads,
        built.pod_names,
        built.containers,
        built.images,
        built.handlers,
        conditions,
    )


def inputs(nodes: Sequence[PodsOnNode]) -> tuple[Inputs, tuple[str, ...]]:
    """Return what is predicted of these pods, whoever they belong to, and their handlers by number."""
    built = _build(nodes, lambda pods: [-1] * len(pods))
    return built.inputs, built.handlers


def _build(nodes: Sequence[PodsOnNode], workloads_of: Callable[[Sequence[Pod]], list[int]]) -> _Built:
    profiles: list[tuple[Any, ...]] = []
    of_containers: list[tuple[Any, ...]] = []
    names, images, handlers = _Numbers(), _Numbers(), _Numbers()
    pods = [pod for node in nodes for pod, _ in node.placed]
    used = [handler for node in nodes for _, handler in node.placed]
    alike = [id(pod.alike) for pod in pods]
    first = dict(zip(reversed(alike), reversed(pods), strict=True))
    numbers = {identity: number for number, identity in enumerate(dict.fromkeys(alike))}
    for identity, profile in numbers.items():
        profiles.append(_profile(first[identity]))
        of_containers += _containers(profile, first[identity], names, images)
    for handler in dict.fromkeys(used):
        handlers(handler)
    rows: dict[str, list[int]] = {
        "node": [number for number, node in enumerate(nodes) for _ in range(len(node.placed))],
        "profile": list(map(numbers.__getitem__, alike)),
        "handler": list(map(handlers.of.__getitem__, used)),
        "workload": workloads_of(pods),
    }
    container_names, name_order = names.in_order()
    pod_names = pl.Series([pod.name for pod in pods], dtype=pl.String)
    of_pods = (
        pl.DataFrame(rows, schema=dict.fromkeys(rows, pl.Int32))
        .with_columns(
            row=pl.int_range(pl.len(), dtype=pl.Int32),
            name_rank=pod_names.rank("dense").cast(pl.Int32) if pods else pl.Series([], dtype=pl.Int32),
        )
        .hstack(pl.DataFrame(profiles, schema=_PROFILE, orient="row")[rows["profile"]])
    )
    containers = (
        of_pods.select("profile", pod="row")
        .join(
            pl.DataFrame(of_containers, schema=_CONTAINER, orient="row"),
            on="profile",
            how="inner",
            maintain_order="left_right",
        )
        .with_columns(
            row=pl.int_range(pl.len(), dtype=pl.Int32),
            name=col.name.replace_strict(range(len(name_order)), name_order, default=0, return_dtype=pl.Int32),
        )
    )
    of_pods, containers = with_shares(*_with_shown(nodes, of_pods, containers))
    found = Inputs(_nodes(nodes), of_pods.drop("profile"), containers.drop("profile"))
    return _Built(found, pods, pod_names, container_names, tuple(images.of), tuple(handlers.of))


def with_shares(pods: pl.DataFrame, containers: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return pods and containers with what does not depend on the setup: shares, and whose quota is taken away."""
    containers = container_shares(containers, pods)
    unlimited = containers.group_by("pod").agg(col("unlimited_on", "unlimited_off").any()).rename({"pod": "row"})
    pods = pods.drop("unlimited_on", "unlimited_off", strict=False).join(
        unlimited, on="row", how="left", maintain_order="left"
    )
    return pods.with_columns(col("unlimited_on", "unlimited_off").fill_null(value=False)), containers


def amounts(pod: Pod) -> tuple[Any, ...]:
    """Return what a pod asks for: a row of the columns `AMOUNTS`."""
    return _profile(pod)[: len(AMOUNTS)]


def _workloads(pods: Sequence[Pod], cluster: Cluster, keys: _Numbers) -> list[int]:
    """The number of each pod's workload, -1 of one that nobody asked about. Pods that are alike have one, if something controls
    them.
    """
    known: dict[int, int] = {}
    found = []
    for pod in pods:
        alike = pod.alike
        number = known.get(id(alike))
        if number is None:
            number = keys((alike.namespace, workload(pod, cluster))) if alike.selected else -1
            if alike.controller is not None and alike.controller.kind != "Node":
                known[id(alike)] = number
        found.append(number)
    return found


def _profile(pod: Pod) -> tuple[Any, ...]:
    asked = crio.asked(pod)
    return (
        QOS.index(pod.qos),
        pod.request_milli,
        pod.spec_request_milli,
        pod.limit_milli,
        _at_most(pod, "request_milli"),
        _at_most(pod, "spec_request_milli"),
        _at_most(pod, "limit_milli"),
        pod.overhead_milli,
        all(each.limit_milli for each in pod.containers if each.role != "ephemeral"),
        any(each.role in COMPETING and each.presence != "gone" for each in pod.containers),
        asked.partitioned,
        bool(asked.shares or asked.weights or asked.unlimited),
        pod.selected,
    )


def _at_most(pod: Pod, amount: str) -> int:
    """The largest sum in force at any moment of a pod's life: while an init container runs, or afterwards."""
    running = sidecars = starting = 0
    for container in pod.containers:
        milli = getattr(container, amount) or 0
        if container.role == "sidecar":
            sidecars += milli
            starting = max(starting, sidecars)
        elif container.role == "init":
            starting = max(starting, sidecars + milli)
        elif container.role == "app":
            running += milli
    return max(running + sidecars, starting)


def _containers(profile: int, pod: Pod, names: _Numbers, images: _Numbers) -> Iterable[tuple[Any, ...]]:
    asked = crio.asked(pod)
    off = asked.unlimited if pod.qos == "Guaranteed" and pod.runtime_class else frozenset()
    competing = sum(each.role in COMPETING and each.presence != "gone" for each in pod.containers)
    for place, container in enumerate(pod.containers):
        present = container.presence != "gone"
        yield (
            profile,
            place,
            names(container.name),
            images(container.image),
            ROLES.index(container.role),
            container.sees_cgroups,
            competing,
            container.request_milli,
            container.limit_milli,
            container.role == "ephemeral",
            present,
            present and container.role in COMPETING,
            asked.shares.get(container.name),
            asked.weights.get(container.name),
            "" in off or container.name in off,
        )


def _with_shown(
    nodes: Sequence[PodsOnNode], pods: pl.DataFrame, containers: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add what kubelets show of single cgroups, and which containers an earlier runtime created."""
    of_pods: list[tuple[int, int | None, int | None]] = []
    of_containers: list[tuple[int, int, int | None, int | None, int | None]] = []
    first = 0
    for node in nodes:
        left = {(each.namespace, each.pod, each.container): each.formula for each in node.leftovers}
        for place, (pod, _) in enumerate(node.placed) if node.shown or left else ():
            shown = node.shown[place] if node.shown else None
            if shown:
                of_pods.append((first + place, *_shown(shown.own)))
            seen = iter(shown.containers) if shown else iter(())
            for index, container in enumerate(pod.containers):
                own = next(seen, NOTHING) if container.presence != "gone" else NOTHING
                formula = left.get((pod.namespace, pod.name, container.name))
                if own is not NOTHING or formula:
                    known = None if formula is None else _FORMULAS[formula]
                    of_containers.append((first + place, index, *_shown(own), known))
        first += len(node.placed)
    pod_schema = {"row": pl.Int32, "shown_value": pl.Int64, "shown_quota": pl.Int64}
    schema = {"pod": pl.Int32, "place": pl.Int32, **pod_schema, "left_formula": pl.Int8}
    schema.pop("row")
    return (
        pods.join(pl.DataFrame(of_pods, schema=pod_schema, orient="row"), "row", "left", maintain_order="left"),
        containers.join(
            pl.DataFrame(of_containers, schema=schema, orient="row"), ["pod", "place"], "left", maintain_order="left"
        ),
    )


def _shown(shown: Shown) -> tuple[int | None, int | None]:
    return shown.value, (shown.quota_us or 0) if shown.has_quota else None


def _nodes(nodes: Sequence[PodsOnNode]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            (
                each.node.allocatable_milli,
                each.node.capacity_milli,
                each.slices.kubepods,
                each.slices.burstable,
                each.slices.besteffort,
                len(each.placed),
            )
            for each in nodes
        ],
        schema=dict.fromkeys(
            ("allocatable", "capacity", "shown_kubepods", "shown_burstable", "shown_besteffort", "pods"), pl.Int64
        ),
        orient="row",
    ).with_columns(row=pl.int_range(pl.len(), dtype=pl.Int32))


def case_tables(nodes: Sequence[NodeCases], handlers: Sequence[str]) -> tuple[CaseTables, Setups, tuple[str, ...]]:
    """Return the tables of these nodes' cases and setups, and what the cases assume, by number."""
    setups, conditions = _Numbers(), _Numbers()
    found = _cases(nodes, setups, handlers, conditions)
    return found, setup_tables(tuple(setups.of), handlers), tuple(conditions.of)


def _cases(nodes: Sequence[NodeCases], setups: _Numbers, handlers: Sequence[str], conditions: _Numbers) -> CaseTables:
    most = max((len(node.cases) for node in nodes), default=1)
    found = []
    for number in range(most):
        rows = [(number < len(node.cases), node.cases[min(number, len(node.cases) - 1)]) for node in nodes]
        found.append(
            pl.DataFrame(
                [(there, case.lost, setups(case.before), setups(case.after)) for there, case in rows],
                schema={"there": pl.Boolean, "lost": pl.Boolean, "before": pl.Int32, "after": pl.Int32},
                orient="row",
            )
        )
    of_handlers = [_of_handler(node, handler, most) for node in nodes for handler in handlers]
    schema = {"confidence": pl.Int8, "settled": pl.Int8, "taken": pl.Boolean, "leading": pl.Int32}
    schema |= {f"leads_{number}": pl.Boolean for number in range(most)}
    of_nodes = pl.DataFrame(
        [(len(node.cases), node.state.crio and not node.cases[0].before.measured) for node in nodes],
        schema={"cases": pl.Int32, "may_ignore_annotations": pl.Boolean},
        orient="row",
    )
    of_cases = [
        (place, number, conditions(case.when))
        for place, node in enumerate(nodes)
        for number, case in enumerate(node.cases)
    ]
    return CaseTables(
        of_nodes,
        found,
        pl.DataFrame(of_handlers, schema=schema, orient="row"),
        pl.DataFrame(of_cases, schema={"node": pl.Int32, "case": pl.Int16, "condition": pl.Int32}, orient="row"),
        _pairs(nodes),
    )


def _pairs(nodes: Sequence[NodeCases]) -> pl.DataFrame:
    rows = []
    for place, node in enumerate(nodes):
        for number, question in enumerate(node.questions):
            by_rest: dict[object, list[int]] = {}
            for case, (_, answers) in enumerate((each.when, each.answers) for each in node.cases):
                rest = tuple((asked.about, answer) for asked, answer in answers if asked.about != question.about)
                by_rest.setdefault(rest, []).append(case)
            for cases in by_rest.values():
                rows += [(place, number, one, other) for one in cases for other in cases if one != other]
    schema = {"node": pl.Int32, "question": pl.Int8, "case": pl.Int16, "other": pl.Int16}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _of_handler(node: NodeCases, handler: str, most: int) -> tuple[Any, ...]:
    leads = node.leading.get(handler, ())
    if not leads:
        return (0, 0, False, 0, *(False for _ in range(most)))
    return (
        CONFIDENCES.index(confidence(node, [handler])),
        CERTAINTIES.index(settled(node, handler)),
        bool(taken_for_granted(node.state, handler)),
        sum(leads),
        *(number < len(leads) and leads[number] for number in range(most)),
    )


def setup_tables(setups: Sequence[Setup], handlers: Sequence[str]) -> Setups:
    """Return the tables of these setups."""
    rows, runtimes = [], []
    for setup in setups:
        rows.append(
            (
                setup.cgroup == "v2",
                setup.kubelet_formula == "quadratic",
                pod_level_resources(setup.kubelet_version),
                setup.rounds_pod_quota,
                setup.driver == "systemd",
                setup.cfs_quota,
                setup.period_us,
                setup.system_slice,
                sum(value for _, value in setup.root),
                setup.from_capacity,
                bool(setup.leftovers),
                setup.crio,
                setup.partitioned,
                setup.inner,
                setup.measured,
            )
        )
        known = dict(setup.runtimes)
        for handler in handlers:
            run = known.get(handler)
            runtimes.append(
                (
                    _FORMULAS[run.formula],
                    run.rounds_quota,
                    run.name == "crun",
                    run.name in ("runc", None),
                    run.name in ("crun", None),
                )
                if run
                else (LINEAR, False, False, False, False)
            )
    return Setups(
        pl.DataFrame(rows, schema=_SETUP, orient="row"),
        pl.DataFrame(runtimes, schema=_RUNTIME, orient="row"),
        len(handlers),
    )
