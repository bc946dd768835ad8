"""The cgroup tree of a node in a given setup, with the CPU fraction of each cgroup when all want CPU.

A weight competes only with its siblings: a cgroup's fraction is the product, from the root down, of its
value over the sum of its siblings' (weights on v2, shares on v1).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from kubectl_cgaudit.cgroups import paths
from kubectl_cgaudit.cgroups.weights import DEFAULT_SHARES, DEFAULT_WEIGHT, MIN_SHARES, milli_to_shares
from kubectl_cgaudit.collect.model import Container, Node, Pod, Qos
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.shown import NO_SLICES, ShownSlices
from kubectl_cgaudit.detect.state import SYSTEM_SLICE, CgroupVersion, Setup
from kubectl_cgaudit.lazy import Lazy
from kubectl_cgaudit.predict.shape import QOS_CLASSES, Amounts, PodShape, Shapes, kubelet_value

_GUARANTEED, _BURSTABLE, _BESTEFFORT = range(3)
Level = Literal["root", "kubepods", "qos", "pod", "container"]


class Cgroup(Struct, frozen=True):
    """A cgroup as it is predicted. None stands for what does not apply.

    shares: 2..262144, the v1 value, or on v2 what the weight is made from. weight: 1..10000, v2 only.
    share: the fraction (0..1) of the node's CPU under full contention; None where it cannot be said or the
    cgroup does not compete (an init container, which runs before the others).
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


class PodTree:
    """A pod's cgroup and those of its containers, made when they are asked for."""

    __slots__ = ("_cgroup", "_containers", "_paths_too", "_setup", "_shape", "_share", "pod")

    def __init__(self, pod: Pod, shape: PodShape, share: float, setup: Setup, *, paths_too: bool) -> None:
        self.pod = pod
        self._shape = shape
        self._share = share
        self._setup = setup
        self._paths_too = paths_too
        self._cgroup: Cgroup | None = None
        self._containers: tuple[tuple[Container, Cgroup], ...] | None = None

    @property
    def cgroup(self) -> Cgroup:
        """The pod's own."""
        if self._cgroup is None:
            path = paths.pod(self.pod, self._setup.driver) if self._paths_too else None
            shape = self._shape
            self._cgroup = _kubelet_cgroup(
                "pod",
                self.pod,
                path,
                (shape.shares, shape.value),
                shape.quota_us,
                self._share,
                self._setup,
                measured=shape.measured[0],
            )
        return self._cgroup

    @property
    def containers(self) -> tuple[tuple[Container, Cgroup], ...]:
        """Those that are not gone, each with its cgroup."""
        if self._containers is None:
            shape = self._shape
            present = self.pod.present
            self._containers = tuple(
                (container, self._container(container, amounts, part, measured=measured))
                for container, amounts, part, measured in zip(
                    present, shape.containers, shape.part, shape.measured[1:], strict=True
                )
            )
        return self._containers

    @property
    def parts(self) -> tuple[float | None, ...]:
        """The fraction of the pod's CPU of each of these; None where it does not compete. The same on every node."""
        return self._shape.part

    def _container(self, container: Container, amounts: Amounts, part: float | None, *, measured: bool) -> Cgroup:
        shares, weight, quota = amounts
        setup = self._setup
        return Cgroup(
            level="container",
            namespace=self.pod.namespace,
            pod=self.pod.name,
            container=container.name,
            path=paths.container(container.runtime_id, self.cgroup.path, setup.driver) if self._paths_too else None,
            version=setup.cgroup,
            shares=None if self._shape.formula == "none" else shares,
            weight=weight,
            quota_us=quota,
            period_us=setup.period_us,
            share=None if part is None else self._share * part,
            measured=measured,
        )


class PodTrees(Lazy[PodTree]):
    """The trees of a node's pods."""

    __slots__ = ("_setup", "_slices", "_totals", "outlines", "placed", "shapes")

    def __init__(
        self,
        placed: Sequence[PlacedPod],
        outlines: Sequence[int],
        setup: Setup,
        shapes: Mapping[int, PodShape],
        totals: tuple[int, ...],
        slices: tuple[float, ...],
    ) -> None:
        self.placed = placed
        self.outlines = outlines
        """Of each pod: those with the same have the same shape."""
        self.shapes = shapes
        """By outline."""
        self._setup = setup
        self._totals = totals
        self._slices = slices

    @property
    def slices(self) -> dict[Qos, float]:
        """The fraction of the node's CPU of each QoS class."""
        return dict(zip(QOS_CLASSES, self._slices, strict=True))

    @property
    def totals(self) -> dict[Qos, int]:
        """What the pods of each class that want CPU compete with, together."""
        return dict(zip(QOS_CLASSES, self._totals, strict=True))

    @property
    def request_milli(self) -> int:
        """What all of them ask for together, in thousandths of a CPU."""
        return sum(self.shapes[outline].request_milli for outline in self.outlines)

    def __len__(self) -> int:
        return len(self.placed)

    def _at(self, index: int) -> PodTree:
        return self._build(index, paths_too=False)

    def with_paths(self, index: int) -> PodTree:
        """The tree of a pod with the paths of its cgroups."""
        return self._build(index, paths_too=True)

    def share(self, shape: PodShape) -> float:
        """The fraction of the node's CPU of a pod of this shape."""
        return self.fraction(shape.qos, shape.value) if shape.wants_cpu else 0.0

    def fraction(self, qos: int, value: int) -> float:
        """That of a pod that wants CPU, by the place of its class and what it competes with."""
        return self._slices[qos] * value / self._totals[qos]

    def _build(self, index: int, *, paths_too: bool) -> PodTree:
        shape = self.shapes[self.outlines[index]]
        return PodTree(self.placed[index][0], shape, self.share(shape), self._setup, paths_too=paths_too)


class NodeTree(Struct, frozen=True, eq=False):
    """All cgroups of a node that cgaudit speaks of. Those above the pods are made when they are asked for."""

    setup: Setup
    pods: PodTrees
    kubepods_shares: int
    burstable_shares: int
    shown: ShownSlices = NO_SLICES
    """What the kubelet shows of the slices, where that counts."""

    @property
    def root(self) -> tuple[Cgroup, ...]:
        """system.slice first, then the others that want CPU."""
        setup, total = self.setup, self._root_total
        values = [(SYSTEM_SLICE, setup.system_slice), *setup.root]
        measured = SYSTEM_SLICE if self.shown.system == setup.system_slice else ""
        return tuple(
            _root_cgroup(name, value, value / total, setup, measured=name == measured) for name, value in values
        )

    @property
    def system_share(self) -> float:
        """The fraction of the node's CPU of system.slice."""
        return self.setup.system_slice / self._root_total

    @property
    def _root_total(self) -> int:
        return root_total(self.setup, self.kubepods_value)

    @property
    def kubepods_value(self) -> int:
        """What all pods compete with at the root: shares on v1, weight on v2."""
        return self.shown.kubepods or kubelet_value(self.kubepods_shares, self.setup)

    @property
    def kubepods_share(self) -> float:
        """The fraction of the node's CPU of all pods."""
        return self.kubepods_value / self._root_total

    @property
    def pods_to_system(self) -> float:
        """What kubepods competes with over what system.slice does."""
        return self.kubepods_value / self.setup.system_slice

    @property
    def kubepods(self) -> Cgroup:
        """All pods."""
        path = paths.kubepods(self.setup.driver)
        return self._slice("kubepods", path, self.kubepods_shares, self.kubepods_share, self.shown.kubepods)

    @property
    def burstable(self) -> Cgroup:
        """The slice of the Burstable pods."""
        return self._of_class("Burstable", self.burstable_shares, self.shown.burstable)

    @property
    def besteffort(self) -> Cgroup:
        """The slice of the BestEffort pods."""
        return self._of_class("BestEffort", MIN_SHARES, self.shown.besteffort)

    def _of_class(self, qos: Qos, shares: int, shown: int | None) -> Cgroup:
        return self._slice("qos", paths.qos(qos, self.setup.driver), shares, self.pods.slices[qos], shown)

    def _slice(self, level: Level, path: str, shares: int, share: float, shown: int | None) -> Cgroup:
        value = shown or kubelet_value(shares, self.setup)
        return _kubelet_cgroup(level, None, path, (shares, value), None, share, self.setup, measured=shown is not None)

    def cgroups(self) -> Iterable[Cgroup]:
        """Every cgroup, parents before children."""
        return (cgroup for _, cgroup in self.rows())

    def rows(self) -> Iterable[tuple[int, Cgroup]]:
        """Every cgroup with its path and its depth below the root's children, parents before children."""
        yield from ((0, cgroup) for cgroup in self.root)
        yield 0, self.kubepods
        for qos, parent in zip(QOS_CLASSES, (None, self.burstable, self.besteffort), strict=True):
            if parent is not None:
                yield 1, parent
            depth = 1 if parent is None else 2
            for index, (pod, _) in enumerate(self.pods.placed):
                if pod.qos == qos:
                    tree = self.pods.with_paths(index)
                    yield depth, tree.cgroup
                    yield from ((depth + 1, cgroup) for _, cgroup in tree.containers)


def root_total(setup: Setup, kubepods: int) -> int:
    """What competes at the root of a node, together: its kubepods, of this value, system.slice and the others."""
    return kubepods + setup.system_slice + sum(value for _, value in setup.root)


def predict(
    node: Node,
    placed: Sequence[PlacedPod],
    setup: Setup,
    shapes: Shapes | None = None,
    outlines: Sequence[int] | None = None,
    shown: ShownSlices = NO_SLICES,
) -> NodeTree:
    """The tree of a node. `placed` are its active pods; trees that share `shapes` work out equal pods once.

    `outlines` are those of the pods, for who has asked `shapes` for them. Where measured values count in this setup, those of
    the slices are in `shown`.
    """
    shapes = shapes or Shapes()
    outlines = shapes.outlines(placed, setup.leftovers) if outlines is None else outlines
    table = shapes.under(setup)
    shown = shown if setup.measured else NO_SLICES
    kubepods = milli_to_shares(node.capacity_milli if setup.from_capacity else node.allocatable_milli)
    value = shown.kubepods or kubelet_value(kubepods, setup)
    share = value / root_total(setup, value)

    # Inside kubepods compete the Guaranteed pods, and each slice that holds something hungry.
    totals = [0] * len(QOS_CLASSES)
    requests = 0
    for outline in outlines:
        shape = table[outline]
        if shape.wants_cpu:
            totals[shape.qos] += shape.value
        if shape.qos == _BURSTABLE:
            requests += shape.counted_milli
    burstable = milli_to_shares(requests)
    values = (
        totals[_GUARANTEED],
        shown.burstable or kubelet_value(burstable, setup) if totals[_BURSTABLE] else 0,
        shown.besteffort or kubelet_value(MIN_SHARES, setup) if totals[_BESTEFFORT] else 0,
    )
    total = sum(values)
    slices = tuple([share * value / total if total else 0.0 for value in values])
    return NodeTree(setup, PodTrees(placed, outlines, setup, table, tuple(totals), slices), kubepods, burstable, shown)


def _root_cgroup(name: str, value: int, share: float, setup: Setup, *, measured: bool) -> Cgroup:
    shares, weight = (value, None) if setup.cgroup == "v1" else (None, value)
    version, period_us = setup.cgroup, setup.period_us
    return Cgroup("root", None, None, None, f"/{name}", version, shares, weight, None, period_us, share, measured)


def _kubelet_cgroup(
    level: Level,
    pod: Pod | None,
    path: str | None,
    amounts: tuple[int, int],
    quota: int | None,
    share: float,
    setup: Setup,
    *,
    measured: bool,
) -> Cgroup:
    """Return a cgroup that the kubelet writes, from the shares that are asked for and the value it has."""
    shares, value = amounts
    shares, weight = (value, None) if setup.cgroup == "v1" else (shares, value)
    namespace, name = (pod.namespace, pod.name) if pod else (None, None)
    return Cgroup(
        level, namespace, name, None, path, setup.cgroup, shares, weight, quota, setup.period_us, share, measured
    )
