"""What the migration changes on every node between pods and system processes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from kubectl_cgaudit.collect.model import Cluster, Qos
from kubectl_cgaudit.detect.evidence import NOT_QUADRATIC
from kubectl_cgaudit.detect.runtime import ALWAYS, Runtime
from kubectl_cgaudit.detect.state import (
    DEFAULT,
    NAME,
    SYSTEM_SLICE,
    VERSIONS,
    State,
    default_root_value,
    reserve_in_unit,
    unit_of,
)
from kubectl_cgaudit.judge.audit import EvidenceRecord, Known, NodeAudit, NodeCase, NodeMoment, QosMoment
from kubectl_cgaudit.judge.compare import Comparison
from kubectl_cgaudit.judge.confidence import of_handlers
from kubectl_cgaudit.judge.rounding import shown
from kubectl_cgaudit.predict.shape import QOS_CLASSES
from kubectl_cgaudit.predict.tree import NodeTree
from kubectl_cgaudit.same import Same


def judge(comparisons: Iterable[Comparison], cluster: Cluster) -> tuple[NodeAudit, ...]:
    """The nodes with their cases."""
    same = Same()
    return tuple(_judge(comparison, cluster, same) for comparison in comparisons)


def _judge(comparison: Comparison, cluster: Cluster, same: Same) -> NodeAudit:
    node, state = comparison.node, comparison.state
    answers = (cluster.kubelets or {}).get(node.name)
    known = _known(state, comparison.handlers)
    pods = Counter(pod.qos for pod, _ in comparison.placed)
    moments = {of: _moment(tree, pods, same) for of, tree in comparison.trees.items()}
    first, *others = (
        NodeCase(case.when, moments[id(case.before)], moments[id(case.after)], case.lost, rank, leads)
        for rank, (case, leads) in enumerate(zip(comparison.cases, comparison.leading[None], strict=True), start=1)
    )
    return NodeAudit(
        name=node.name,
        kubelet_version=node.kubelet_version,
        container_runtime=node.runtime_version,
        os_image=node.os_image,
        kernel=node.kernel,
        allocatable_milli=node.allocatable_milli,
        pod_count=len(comparison.placed),
        confidence=of_handlers(comparison, comparison.handlers),
        known=same(known, ("known", *known.items())),
        hints=same(state.hints(comparison.handlers)),
        evidence=same(
            tuple(
                EvidenceRecord(each.about, each.value, each.strength, each.source, each.saw, each.override)
                for each in state.evidence
            )
        ),
        contradictions=state.contradictions,
        problems=answers.problems if answers else (),
        when=first.when,
        before=first.before,
        after=first.after,
        stops=first.stops,
        others=tuple(others),
    )


def _moment(tree: NodeTree, pods: Mapping[Qos, int], same: Same) -> NodeMoment:
    setup = tree.setup
    runtimes = {handler: str(runtime) for handler, runtime in setup.runtimes}
    return NodeMoment(
        cgroup=setup.cgroup,
        kubepods=tree.kubepods_value,
        system_slice=setup.system_slice,
        pods_per_system=same(shown(tree.pods_to_system)),
        pods_share=same(shown(tree.kubepods_share)),
        system_share=same(shown(tree.system_share)),
        kubelet=same(f"{setup.kubelet_version or 'version unknown'} ({setup.kubelet_formula})"),
        runtimes=same(runtimes, ("runtimes", *runtimes.items())),
        qos={qos: same(_qos(tree, qos, pods[qos])) for qos in QOS_CLASSES},
        driver=setup.driver,
        root=same(dict(setup.root), ("root", *setup.root)),
        measured=tree.kubepods.measured,
    )


def _qos(tree: NodeTree, qos: Qos, count: int) -> QosMoment:
    if qos == "Guaranteed":
        return QosMoment(count, tree.pods.totals[qos], shown(tree.pods.slices[qos]))
    its_slice = tree.burstable if qos == "Burstable" else tree.besteffort
    return QosMoment(count, its_slice.value or 0, shown(its_slice.share or 0.0), its_slice.measured)


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
