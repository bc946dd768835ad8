"""The cgroup trees of nodes as records, from columns: what `tree` and `explain` show, and `verify` compares."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import polars as pl
from msgspec import Struct
from polars import col

from kubectl_cgaudit.audit.cases import PodsOnNode
from kubectl_cgaudit.audit.inputs import QOS, inputs, setup_tables
from kubectl_cgaudit.cgroups import crio, paths
from kubectl_cgaudit.cgroups.tree import Inputs, Moment, predict
from kubectl_cgaudit.cgroups.weights import DEFAULT_SHARES, DEFAULT_WEIGHT, MIN_SHARES
from kubectl_cgaudit.collect.model import Container, Node, Pod, Qos
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.runtime import Runtime
from kubectl_cgaudit.detect.state import SYSTEM_SLICE, CgroupVersion, Setup

Level = Literal["root", "kubepods", "qos", "pod", "container"]


class Cgroup(Struct, frozen=True):
    """A cgroup as it is predicted. None stands for what does not apply.

    shares: 2..262144, the v1 value, or on v2 what the weight is made from. weight: 1..10000, v2 only. share: the fraction (0..1)
    of the node's CPU under full contention; None where it cannot be said or the cgroup does not compete (an init container,
    which runs before the others).
    """

    level: Level
    namespace: str | None
    pod: str | None
    container: str | None
    path: str | None
    version: CgroupVersion
    shares: int | None
    weight: int | None
    quota_us: int | None
    period_us: int
    share: float | None
    measured: bool = False
    """Whether the value is what the kubelet shows of the cgroup, and not predicted."""

    @property
    def value(self) -> int | None:
        """What competes with the siblings: shares on v1, weight on v2."""
        return self.shares if self.version == "v1" else self.weight

    @property
    def nominal_ratio(self) -> float | None:
        """The value over its version's default: shares/1024 on v1, weight/100 on v2."""
        default = DEFAULT_SHARES if self.version == "v1" else DEFAULT_WEIGHT
        return self.value / default if self.value is not None else None


class PodTree(Struct, frozen=True):
    """A pod's cgroup and those of its containers that are not gone."""

    pod: Pod
    cgroup: Cgroup
    containers: tuple[tuple[Container, Cgroup], ...]
    parts: tuple[float | None, ...]
    """The fraction of the pod's CPU of each of these; None where it does not compete."""


class NodeTree:
    """All cgroups of a node that cgaudit speaks of, in one setup; made when they are asked for."""

    def __init__(self, trees: "Trees", place: int, setup: Setup, moment: Moment) -> None:
        self.setup = setup
        self.placed: Sequence[PlacedPod] = trees.nodes[place].placed
        self._trees = trees
        self._place = place
        self._moment = moment
        self._row: Mapping[str, Any] = moment.nodes.row(place, named=True)
        self._shown = trees.nodes[place].slices

    @property
    def slices(self) -> dict[Qos, float]:
        """The fraction of the node's CPU of each QoS class."""
        return {qos: self._row[f"slice_{number}"] for number, qos in enumerate(QOS)}

    @property
    def totals(self) -> dict[Qos, int]:
        """What the pods of each class that want CPU compete with, together."""
        return {qos: self._row[f"total_{number}"] for number, qos in enumerate(QOS)}

    @property
    def root_total(self) -> int:
        """What competes at the root of the node, together."""
        return self.kubepods_value + sum(value for _, value in self.setup.top_level)

    @property
    def root(self) -> tuple[Cgroup, ...]:
        """system.slice first, then the others that want CPU."""
        shown = self.setup.measured and self._shown.system == self.setup.system_slice
        total = self.root_total
        return tuple(
            self._root(name, value, value / total, measured=shown and name == SYSTEM_SLICE)
            for name, value in self.setup.top_level
        )

    def _root(self, name: str, value: int, share: float, *, measured: bool) -> Cgroup:
        shares, weight = (value, None) if self.setup.cgroup == "v1" else (None, value)
        period = self.setup.period_us
        return Cgroup(
            "root", None, None, None, f"/{name}", self.setup.cgroup, shares, weight, None, period, share, measured
        )

    @property
    def system_share(self) -> float:
        """The fraction of the node's CPU of system.slice."""
        return self.setup.system_slice / self.root_total

    @property
    def kubepods_value(self) -> int:
        """What all pods compete with at the root: shares on v1, weight on v2."""
        value: int = self._row["kubepods"]
        return value

    @property
    def kubepods_shares(self) -> int:
        """What the value of kubepods is made from."""
        shares: int = self._row["kubepods_shares"]
        return shares

    @property
    def burstable_shares(self) -> int:
        """What the value of the Burstable slice is made from: the sum of its pods' requests."""
        shares: int = self._row["burstable_shares"]
        return shares

    @property
    def kubepods_share(self) -> float:
        """The fraction of the node's CPU of all pods."""
        return self.kubepods_value / self.root_total

    @property
    def pods_to_system(self) -> float:
        """What kubepods competes with over what system.slice does."""
        return self.kubepods_value / self.setup.system_slice

    @property
    def kubepods(self) -> Cgroup:
        """All pods."""
        path, shown = paths.kubepods(self.setup.driver), self._shown.kubepods
        values = self.kubepods_shares, self.kubepods_value
        return self._of_kubelet("kubepods", None, path, values, None, self.kubepods_share, measured=self._counts(shown))

    @property
    def burstable(self) -> Cgroup:
        """The slice of the Burstable pods."""
        return self._of_class("Burstable", (self.burstable_shares, self._row["burstable"]), self._shown.burstable)

    @property
    def besteffort(self) -> Cgroup:
        """The slice of the BestEffort pods."""
        return self._of_class("BestEffort", (MIN_SHARES, self._row["besteffort"]), self._shown.besteffort)

    def _of_class(self, qos: Qos, values: tuple[int, int], shown: int | None) -> Cgroup:
        path = paths.qos(qos, self.setup.driver)
        return self._of_kubelet("qos", None, path, values, None, self.slices[qos], measured=self._counts(shown))

    def _counts(self, shown: int | None) -> bool:
        return self.setup.measured and shown is not None

    def pod(self, index: int) -> PodTree:
        """The tree of a pod, by its place on the node."""
        first = self._trees.first[self._place]
        row = self._moment.pods.row(first + index, named=True)
        pod = self.placed[index][0]
        path = paths.pod(pod, self.setup.driver)
        cgroup = self._of_kubelet(
            "pod", pod, path, (row["shares"], row["value"]), row["quota"], row["share"], measured=row["measured"]
        )
        start, end = self._trees.containers[first + index]
        rows = self._moment.containers[start:end].rows(named=True)
        present = [each for each in zip(pod.containers, rows, strict=True) if each[0].presence != "gone"]
        return PodTree(
            pod,
            cgroup,
            tuple((container, self._container(pod, container, of_it, path)) for container, of_it in present),
            tuple(of_it["in_pod"] for _, of_it in present),
        )

    def pods(self) -> tuple[PodTree, ...]:
        """Return the trees of all pods."""
        return tuple(self.pod(index) for index in range(len(self.placed)))

    def _container(self, pod: Pod, container: Container, row: Mapping[str, Any], parent: str | None) -> Cgroup:
        setup, sets_none = self.setup, row["value"] is None
        shares, weight = (row["value"], None) if setup.cgroup == "v1" else (row["shares"], row["value"])
        return Cgroup(
            level="container",
            namespace=pod.namespace,
            pod=pod.name,
            container=container.name,
            path=paths.container(container.runtime_id, parent, setup.driver),
            version=setup.cgroup,
            shares=None if sets_none else shares,
            weight=weight,
            quota_us=row["quota"],
            period_us=setup.period_us,
            share=row["share"],
            measured=row["measured"],
        )

    def _of_kubelet(
        self,
        level: Level,
        pod: Pod | None,
        path: str | None,
        values: tuple[int, int],
        quota: int | None,
        share: float,
        *,
        measured: bool,
    ) -> Cgroup:
        """Return a cgroup that the kubelet writes, from the shares that are asked for and the value it has."""
        shares, value = values
        setup = self.setup
        shares, weight = (value, None) if setup.cgroup == "v1" else (shares, value)
        namespace, name = (pod.namespace, pod.name) if pod else (None, None)
        return Cgroup(
            level, namespace, name, None, path, setup.cgroup, shares, weight, quota, setup.period_us, share, measured
        )

    def rows(self) -> Iterator[tuple[int, Cgroup]]:
        """Yield every cgroup with its depth below the root's children, parents before children."""
        yield from ((0, cgroup) for cgroup in self.root)
        yield 0, self.kubepods
        for qos, parent in zip(QOS, (None, self.burstable, self.besteffort), strict=True):
            if parent is not None:
                yield 1, parent
            depth = 1 if parent is None else 2
            for index, (pod, _) in enumerate(self.placed):
                if pod.qos == qos:
                    tree = self.pod(index)
                    yield depth, tree.cgroup
                    yield from ((depth + 1, cgroup) for _, cgroup in tree.containers)

    def cgroups(self) -> Iterator[Cgroup]:
        """Yield every cgroup, parents before children."""
        return (cgroup for _, cgroup in self.rows())


class Trees:
    """The trees of nodes, predicted together for one setup of each."""

    def __init__(self, nodes: Sequence[PodsOnNode], inputs: Inputs, handlers: tuple[str, ...]) -> None:
        self.nodes = nodes
        self._inputs = inputs
        self._handlers = handlers
        self.first: list[int] = [0, *inputs.nodes["pods"].cum_sum().to_list()]
        sizes = inputs.containers.group_by("pod").len()
        ends = (
            inputs.pods.select(pod="row")
            .join(sizes, on="pod", how="left", maintain_order="left")
            .select(end=col.len.fill_null(0).cum_sum(), len=col.len.fill_null(0))
        )
        self.containers: list[tuple[int, int]] = [(end - size, end) for end, size in ends.iter_rows()]

    def under(self, setups: Sequence[Setup]) -> list[NodeTree]:
        """Return the tree of every node in its setup."""
        distinct = list(dict.fromkeys(setups))
        numbers = {setup: number for number, setup in enumerate(distinct)}
        of_node = pl.Series([numbers[setup] for setup in setups], dtype=pl.Int32)
        moment = predict(self._inputs, setup_tables(distinct, self._handlers), of_node)
        return [NodeTree(self, place, setup, moment) for place, setup in enumerate(setups)]


def predicted_trees(node: Node, placed: Sequence[PlacedPod], setups: Sequence[Setup]) -> list[NodeTree]:
    """Return the tree of a node with these pods in each of the setups."""
    leftovers = next((setup.leftovers for setup in setups if setup.leftovers), ())
    # The same node once for each setup: one prediction for all.
    nodes = [PodsOnNode(node, placed, leftovers=leftovers)] * len(setups)
    return Trees(nodes, *inputs(nodes)).under(setups)


def has_inner(setup: Setup, runtime: Runtime) -> bool:
    """Return whether the container runs in a cgroup within its scope, as crun makes one below a scope of systemd's.

    What nobody names is taken for crun, CRI-O's default. The inner cgroup has what the runtime was told, the scope what systemd
    made of it.
    """
    return setup.inner and setup.cgroup == "v2" and setup.driver == "systemd" and runtime.name in ("crun", None)


def asked_weight(container: Container, pod: Pod, setup: Setup) -> int | None:
    """Return the weight that an annotation asks CRI-O for; None where it asks for none, or the runtime is another."""
    return crio.asked(pod).weights.get(container.name) if setup.crio else None
