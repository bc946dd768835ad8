"""The cgroup tree of a node in a given setup, with the CPU fraction of each cgroup when all want CPU.

A weight competes only with its siblings: a cgroup's fraction is the product, from the root down, of its
value over the sum of its siblings' (weights on v2, shares on v1).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from kubectl_cgaudit.cgroups import paths
from kubectl_cgaudit.cgroups.pods import container_shares, pod_request, pod_shares
from kubectl_cgaudit.cgroups.weights import DEFAULT_SHARES, DEFAULT_WEIGHT, MIN_SHARES, milli_to_shares, weight_of
from kubectl_cgaudit.collect.model import Container, Node, Pod, Qos
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.state import SYSTEM_SLICE, CgroupVersion, Setup
from kubectl_cgaudit.predict.quota import container_quota, pod_quota

QOS_CLASSES: tuple[Qos, ...] = ("Guaranteed", "Burstable", "BestEffort")
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
    """A pod's cgroup and those of its containers."""

    pod: Pod
    cgroup: Cgroup
    containers: tuple[tuple[Container, Cgroup], ...]


class NodeTree(Struct, frozen=True):
    """All cgroups of a node that cgaudit speaks of."""

    root: tuple[Cgroup, ...]
    """system.slice first, then the others that want CPU."""
    kubepods: Cgroup
    burstable: Cgroup
    besteffort: Cgroup
    pods: tuple[PodTree, ...]

    @property
    def system(self) -> Cgroup:
        """system.slice."""
        return self.root[0]

    def cgroups(self) -> Iterable[Cgroup]:
        """Every cgroup, parents before children."""
        return (cgroup for _, cgroup in self.rows())

    def rows(self) -> Iterable[tuple[int, Cgroup]]:
        """Every cgroup with its depth below the root's children, parents before children."""
        yield from ((0, cgroup) for cgroup in self.root)
        yield 0, self.kubepods
        for qos, parent in zip(QOS_CLASSES, (None, self.burstable, self.besteffort), strict=True):
            if parent is not None:
                yield 1, parent
            depth = 1 if parent is None else 2
            for tree in self.pods:
                if tree.pod.qos == qos:
                    yield depth, tree.cgroup
                    yield from ((depth + 1, cgroup) for _, cgroup in tree.containers)


def kubelet_value(shares: int, setup: Setup) -> int:
    """What the kubelet writes for `shares`: themselves on v1, its formula's weight on v2."""
    return shares if setup.cgroup == "v1" else weight_of(shares, setup.kubelet_formula)


def burstable_shares(pods: Iterable[Pod], setup: Setup) -> int:
    """Shares of the burstable slice: of the summed requests of its active pods."""
    requests = (pod_request(pod, setup.kubelet_version) for pod in pods if pod.qos == "Burstable")
    return milli_to_shares(sum(requests))


def predict(node: Node, placed: Sequence[PlacedPod], setup: Setup) -> NodeTree:
    """The tree of a node. `placed` are its active pods."""
    leftovers = {(each.namespace, each.pod, each.container): each.weight for each in setup.leftovers}
    pods = [_PodValues(pod, handler, setup, leftovers) for pod, handler in placed]
    kubepods = milli_to_shares(node.capacity_milli if setup.from_capacity else node.allocatable_milli)
    burstable = burstable_shares((pod for pod, _ in placed), setup)
    root_values = [(SYSTEM_SLICE, setup.system_slice), *setup.root]
    root_total = kubelet_value(kubepods, setup) + sum(value for _, value in root_values)
    share = kubelet_value(kubepods, setup) / root_total

    # Inside kubepods compete the Guaranteed pods, and each slice that holds something hungry.
    totals = {qos: sum(pod.value for pod in pods if pod.pod.qos == qos and pod.wants_cpu) for qos in QOS_CLASSES}
    values = {
        "Guaranteed": totals["Guaranteed"],
        "Burstable": kubelet_value(burstable, setup) if totals["Burstable"] else 0,
        "BestEffort": kubelet_value(MIN_SHARES, setup) if totals["BestEffort"] else 0,
    }
    total = sum(values.values())
    slices = {qos: share * value / total if total else 0.0 for qos, value in values.items()}

    def kubelet_slice(level: Level, path: str, shares: int, share: float) -> Cgroup:
        return _kubelet_cgroup(level, None, path, shares, None, share, setup)

    driver = setup.driver
    return NodeTree(
        root=tuple(_root_cgroup(name, value, value / root_total, setup) for name, value in root_values),
        kubepods=kubelet_slice("kubepods", paths.kubepods(driver), kubepods, share),
        burstable=kubelet_slice("qos", paths.qos("Burstable", driver), burstable, slices["Burstable"]),
        besteffort=kubelet_slice("qos", paths.qos("BestEffort", driver), MIN_SHARES, slices["BestEffort"]),
        pods=tuple(pod.build(slices[pod.pod.qos], totals[pod.pod.qos]) for pod in pods),
    )


def _root_cgroup(name: str, value: int, share: float, setup: Setup) -> Cgroup:
    shares, weight = (value, None) if setup.cgroup == "v1" else (None, value)
    return Cgroup("root", None, None, None, f"/{name}", setup.cgroup, shares, weight, None, setup.period_us, share)


def _kubelet_cgroup(
    level: Level, pod: Pod | None, path: str | None, shares: int, quota: int | None, share: float, setup: Setup
) -> Cgroup:
    weight = weight_of(shares, setup.kubelet_formula) if setup.cgroup == "v2" else None
    namespace, name = (pod.namespace, pod.name) if pod else (None, None)
    return Cgroup(level, namespace, name, None, path, setup.cgroup, shares, weight, quota, setup.period_us, share)


class _PodValues:
    """A pod's values before the node's totals are known."""

    def __init__(self, pod: Pod, handler: str, setup: Setup, leftovers: Mapping[tuple[str, str, str], int]) -> None:
        self.leftovers = leftovers
        self.pod = pod
        self.setup = setup
        self.runtime = setup.runtime(handler)
        self.shares = pod_shares(pod, setup.kubelet_version)
        self.value = kubelet_value(self.shares, setup)
        self.containers = [
            (container, container_shares(container, pod, setup.kubelet_version))
            for container in pod.containers
            if container.presence != "gone"
        ]
        self.wants_cpu = any(container.role != "init" for container, _ in self.containers)

    def build(self, slice_share: float, slice_total: int) -> PodTree:
        share = slice_share * self.value / slice_total if self.wants_cpu else 0.0
        path = paths.pod(self.pod, self.setup.driver)
        weighed = [(container, shares, self._weight(container, shares)) for container, shares in self.containers]
        on_v1 = self.setup.cgroup == "v1"
        total = sum(
            (shares if on_v1 else weight or 0) for container, shares, weight in weighed if container.role != "init"
        )
        cgroups = []
        for container, shares, weight in weighed:
            value = shares if on_v1 else weight
            competes = container.role != "init" and self.runtime.formula != "none" and value is not None
            cgroups.append(
                (
                    container,
                    Cgroup(
                        level="container",
                        namespace=self.pod.namespace,
                        pod=self.pod.name,
                        container=container.name,
                        path=paths.container(container.runtime_id, path, self.setup.driver),
                        version=self.setup.cgroup,
                        shares=shares if self.runtime.formula != "none" else None,
                        weight=weight,
                        quota_us=container_quota(container, self.pod, self.setup, self.runtime),
                        period_us=self.setup.period_us,
                        share=share * value / total if competes and value is not None else None,
                    ),
                )
            )
        quota = pod_quota(self.pod, self.setup)
        cgroup = _kubelet_cgroup("pod", self.pod, path, self.shares, quota, share, self.setup)
        return PodTree(self.pod, cgroup, tuple(cgroups))

    def _weight(self, container: Container, shares: int) -> int | None:
        if self.setup.cgroup == "v1" or self.runtime.formula == "none":
            return None
        left_over = self.leftovers.get((self.pod.namespace, self.pod.name, container.name))
        return left_over or weight_of(shares, self.runtime.formula)
