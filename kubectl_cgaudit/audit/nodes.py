"""Nodes as records: what is known of each, and what the move changes between pods and system processes."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
from msgspec import Struct

from kubectl_cgaudit.audit.cases import NodeCases
from kubectl_cgaudit.audit.confidence import confidence
from kubectl_cgaudit.audit.inputs import QOS, Tables
from kubectl_cgaudit.audit.judge import Judged
from kubectl_cgaudit.audit.model import EvidenceRecord, Known, NodeCase, NodeMoment, NodeRecord, QosMoment
from kubectl_cgaudit.collect.model import Cluster, Qos
from kubectl_cgaudit.detect.evidence import NOT_QUADRATIC
from kubectl_cgaudit.detect.runtime import ALWAYS, Runtime
from kubectl_cgaudit.detect.state import (
    DEFAULT,
    NAME,
    SYSTEM_SLICE,
    VERSIONS,
    Setup,
    State,
    default_root_value,
    reserve_in_unit,
    unit_of,
)
from kubectl_cgaudit.same import Same


def node_records(tables: Tables, judged: Judged, cluster: Cluster) -> tuple[NodeRecord, ...]:
    """Return every Linux node, in the order in which they were read."""
    same = Same()
    rows: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for row in judged.nodes.sort("row", "case").iter_rows(named=True):
        rows[row["row"]].append(row)
    # What the scheduler counts, by spec.
    request = pl.coalesce("spec_request", "sum_spec_request") + pl.col("overhead")
    asked = tables.inputs.pods.group_by("node").agg(request.sum())
    requested = dict(asked.iter_rows())
    return tuple(
        _record(node, rows[place], requested.get(place, 0), cluster, same) for place, node in enumerate(tables.nodes)
    )


def _record(node: NodeCases, rows: list[Mapping[str, Any]], requested: int, cluster: Cluster, same: Same) -> NodeRecord:
    own, state = node.node, node.state
    answers = (cluster.kubelets or {}).get(own.name)
    known = _known(state, node.handlers)
    pods = Counter(pod.qos for pod, _ in node.placed)
    return NodeRecord(
        name=own.name,
        kubelet_version=own.kubelet_version,
        container_runtime=own.runtime_version,
        os_image=own.os_image,
        kernel=own.kernel,
        capacity_milli=own.capacity_milli,
        allocatable_milli=own.allocatable_milli,
        requested_milli=requested,
        pods=len(node.placed),
        confidence=confidence(node, node.handlers),
        known=same(known, ("known", *known.items())),
        hints=same(state.hints(node.handlers)),
        evidence=same(
            tuple(
                EvidenceRecord(each.about, each.value, each.strength, each.source, each.saw, each.override)
                for each in state.evidence
            )
        ),
        contradictions=state.contradictions,
        problems=answers.problems if answers else (),
        cases=tuple(
            NodeCase(
                case.when,
                rank,
                leads,
                _moment(node, case.before, row, "before", pods),
                _moment(node, case.after, row, "after", pods),
                case.lost,
            )
            for rank, (case, leads, row) in enumerate(zip(node.cases, node.leading[None], rows, strict=True), start=1)
        ),
    )


def _moment(node: NodeCases, setup: Setup, row: Mapping[str, Any], when: str, pods: Counter[Qos]) -> NodeMoment:
    def at(name: str) -> Any:
        return row[f"{when}_{name}"]

    slices = node.slices
    shown = {"Burstable": slices.burstable, "BestEffort": slices.besteffort}
    values = (at("guaranteed"), at("burstable"), at("besteffort"))
    return NodeMoment(
        cgroup=setup.cgroup,
        driver=setup.driver,
        kubelet=f"{setup.kubelet_version or 'version unknown'} ({setup.kubelet_formula})",
        kubepods=at("kubepods"),
        system_slice=setup.system_slice,
        root=dict(setup.root),
        pods_per_system=at("pods_to_system"),
        pods_share=at("pods_share"),
        system_share=at("system_share"),
        qos={
            qos: QosMoment(pods[qos], value, at(f"share_{place}"), setup.measured and shown.get(qos) is not None)
            for place, (qos, value) in enumerate(zip(QOS, values, strict=True))
        },
        runtimes={handler: str(runtime) for handler, runtime in setup.runtimes},
        enforced=setup.enforced,
        services=setup.services,
        measured=setup.measured and slices.kubepods is not None,
    )


def _runtime(state: State, handler: str, runtime: Runtime) -> str:
    """What a handler runs; of one that is only known not to be quadratic, just that."""
    about = f"runtime:{handler}"
    if f"{NAME}{handler}" in state.basis:
        return f"{runtime.formula}, {runtime.name} {runtime.version} is {state.basis_of(f'{NAME}{handler}').confidence}"
    if runtime.version is not None or runtime.name in ALWAYS:
        return str(runtime)
    # A name that only the handler's own name tells is not evidence.
    only_not = any(piece.about == about and piece.value == NOT_QUADRATIC for piece in state.evidence)
    return NOT_QUADRATIC if only_not and state.basis_of(about).confidence == "likely" else runtime.formula


def _at_root(state: State) -> dict[str, str]:
    """What each top-level cgroup is known to have beside kubepods, by its name."""
    unit = unit_of(state.cgroup or "v2")
    found = {SYSTEM_SLICE: DEFAULT if state.cgroup is None else f"{unit} {default_root_value(state.cgroup)}"}
    for name, shares in state.reserved:
        found[name] = ", ".join(f"{unit_of(each)} {reserve_in_unit(shares, each)} on {each}" for each in VERSIONS)
        if state.cgroup is not None:
            found[name] = f"{unit} {reserve_in_unit(shares, state.cgroup)}"
    if state.system_slice is not None:
        found[SYSTEM_SLICE] = f"{unit} {state.system_slice}"
    return found | {name: f"{unit} {value}" for name, value in state.root}


def _known(state: State, handlers: tuple[str, ...]) -> dict[str, Known]:
    at_root = _at_root(state)
    system = at_root.pop(SYSTEM_SLICE)
    values: dict[str, str | None] = {
        "cgroup": state.cgroup,
        "driver": state.driver,
        "kubelet": state.kubelet_formula,
        "system_slice": system,
        "root": ", ".join(f"{name} ({value})" for name, value in sorted(at_root.items())) or "no other cgroup",
    }
    for handler in sorted({*handlers, *dict(state.runtimes)}):
        runtime = state.runtime(handler)
        values[f"runtime:{handler}"] = _runtime(state, handler, runtime) if runtime else None
    known = {}
    for what, value in values.items():
        basis = state.basis_of(what)
        known[what] = Known(value, basis.confidence if value else "unknown", basis.source, basis.override)
    if state.reserve is not None:
        basis = state.basis_of("reserve")
        known["reserve"] = Known(state.reserve, basis.confidence, basis.source, basis.override)
    if state.partitioned_pods:
        basis, value = state.basis_of("burstable"), dict(state.platform).get("burstable", "all")
        known["burstable"] = Known(value, basis.confidence, basis.source, basis.override)
    return known


class Overridden(Struct, frozen=True):
    """A default that an earlier audit took for what a node runs, and that was overridden there."""

    node: str
    about: str
    was: Known
    now: Known

    def words(self) -> str:
        """Return what was taken, on what ground, and what it is."""
        what = "cgroup" if self.about == "cgroup" else f"runtime of handler {self.about.removeprefix('runtime:')}"
        return f"{what} {self.was.value} was taken ({self.was.source}), and it is {self.now.value} ({self.now.source})"


def overridden(
    node: str, was: Mapping[str, Known], predicted: NodeMoment, now: Mapping[str, Known]
) -> Iterator[Overridden]:
    """Yield the defaults of an earlier audit that something stronger contradicts now, and not because the node has moved.

    `predicted` is what that audit said the node becomes.
    """
    for about, known in was.items():
        told = now.get(about)
        if known.confidence != "probable" or told is None or told.confidence in ("probable", "unknown"):
            continue
        if about == "cgroup":
            expected = {known.value, predicted.cgroup}
        elif about.startswith("runtime:"):
            expected = {_formula(known.value), _formula(predicted.runtimes.get(about.removeprefix("runtime:")))}
        else:
            continue
        value = told.value if about == "cgroup" else _formula(told.value)
        if value not in expected:
            yield Overridden(node, about, known, told)


def _formula(runtime: str | None) -> str:
    """Return `quadratic` of `runc 1.3.6 (quadratic)`; what is not quadratic is linear."""
    found = (runtime or "").rpartition("(")[2].rstrip(")")
    return "linear" if found == NOT_QUADRATIC else found
