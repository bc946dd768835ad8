"""What a pod's cgroups hold whatever node it is on, worked out once for all pods that are alike."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from kubectl_cgaudit.cgroups.pods import container_shares, pod_shares
from kubectl_cgaudit.cgroups.weights import weight_of
from kubectl_cgaudit.collect.model import Pod
from kubectl_cgaudit.detect.state import Setup
from kubectl_cgaudit.predict.quota import container_quota, pod_quota


def kubelet_value(shares: int, setup: Setup) -> int:
    """What the kubelet writes for `shares`: themselves on v1, its formula's weight on v2."""
    return shares if setup.cgroup == "v1" else weight_of(shares, setup.kubelet_formula)


class PodShape(Struct, frozen=True, gc=False):
    """What a pod's cgroups hold, whatever node it is on: all but its share."""

    shares: int
    value: int
    """What the pod competes with: shares on v1, weight on v2."""
    quota_us: int | None
    containers: tuple["Amounts", ...]
    """Shares, weight and quota of each container that is not gone."""
    part: tuple[float | None, ...]
    """The fraction of the pod's CPU of each container; None for what does not compete."""
    wants_cpu: bool
    formula: str
    """The runtime's."""


Amounts = tuple[int, int | None, int | None]
ShapeOf = Callable[[Pod, str], PodShape]


class Shapes:
    """Works out equal pods under equal setups once. For the pods of one cluster, as long as these are there."""

    def __init__(self) -> None:
        self._known: dict[object, dict[object, PodShape]] = {}
        self._under: dict[object, ShapeOf] = {}
        self._shapes: dict[PodShape, PodShape] = {}
        self._same: dict[Amounts, Amounts] = {}
        self._outlines: dict[object, int] = {}
        self._by_identity: dict[int, int] = {}

    def key(self, pod: Pod, handler: str) -> object:
        """What of a pod decides its shape: not what it and its containers are called."""
        # Pods of one workload have the same tuple of containers, see collect/assemble.py.
        known = self._by_identity.get(id(pod.containers))
        if known is None:
            outline = tuple((c.role, c.request_milli, c.limit_milli, c.presence == "gone") for c in pod.containers)
            known = self._outlines.setdefault(outline, len(self._outlines))
            self._by_identity[id(pod.containers)] = known
        return known, pod.qos, handler, pod.overhead_milli, pod.request_milli, pod.limit_milli

    def under(self, setup: Setup) -> ShapeOf:
        """The shape of a pod with a runtime handler, in a setup."""
        whole = setup_key(setup)
        if not setup.leftovers and whole in self._under:
            return self._under[whole]
        known = self._known.setdefault(whole, {})
        leftovers = {(each.namespace, each.pod, each.container): each.weight for each in setup.leftovers}
        special = {(each.namespace, each.pod) for each in setup.leftovers}

        def shape_of(pod: Pod, handler: str) -> PodShape:
            if special and (pod.namespace, pod.name) in special:
                return _shape(pod, handler, setup, leftovers, self._same)
            key = self.key(pod, handler)
            shape = known.get(key)
            if shape is None:
                made = _shape(pod, handler, setup, {}, self._same)
                # Under most setups a pod has the shape it has under others.
                shape = known[key] = self._shapes.setdefault(made, made)
            return shape

        if not setup.leftovers:
            self._under[whole] = shape_of
        return shape_of


def setup_key(setup: Setup) -> object:
    """What of a setup decides the shape of a pod that carries nothing from before."""
    return (
        setup.cgroup,
        setup.kubelet_formula,
        setup.kubelet_version,
        setup.driver,
        setup.cfs_quota,
        setup.period_us,
        setup.runtimes,
    )


def _shape(
    pod: Pod,
    handler: str,
    setup: Setup,
    leftovers: Mapping[tuple[str, str, str], int],
    same: dict[Amounts, Amounts],
) -> PodShape:
    runtime = setup.runtime(handler)
    on_v1 = setup.cgroup == "v1"
    shares = pod_shares(pod, setup.kubelet_version)
    weighed: list[Amounts] = []
    hungry: list[bool] = []
    for container in pod.containers:
        if container.presence == "gone":
            continue
        own = container_shares(container, pod, setup.kubelet_version)
        weight = None
        if not on_v1 and runtime.formula != "none":
            weight = leftovers.get((pod.namespace, pod.name, container.name)) or weight_of(own, runtime.formula)
        amounts = own, weight, container_quota(container, pod, setup, runtime)
        weighed.append(same.setdefault(amounts, amounts))
        hungry.append(container.role != "init")
    values = [own if on_v1 else weight for own, weight, _ in weighed]
    total = sum(value or 0 for value, wants in zip(values, hungry, strict=True) if wants)
    return PodShape(
        shares=shares,
        value=kubelet_value(shares, setup),
        quota_us=pod_quota(pod, setup),
        containers=tuple(weighed),
        part=tuple(
            value / total if wants and runtime.formula != "none" and value is not None else None
            for value, wants in zip(values, hungry, strict=True)
        ),
        wants_cpu=any(hungry),
        formula=runtime.formula,
    )
