"""What a pod's cgroups hold whatever node it is on, worked out once for all pods that are alike."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from kubectl_cgaudit.cgroups.pods import container_shares, pod_level_resources, pod_request, pod_shares
from kubectl_cgaudit.cgroups.version import rounds_pod_quota
from kubectl_cgaudit.cgroups.weights import weight_of
from kubectl_cgaudit.collect.model import COMPETING, Pod, Qos
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.state import Leftover, Setup
from kubectl_cgaudit.predict.quota import container_quota, pod_quota
from kubectl_cgaudit.same import Same

QOS_CLASSES: tuple[Qos, ...] = ("Guaranteed", "Burstable", "BestEffort")


def kubelet_value(shares: int, setup: Setup) -> int:
    """What the kubelet writes for `shares`: themselves on v1, its formula's weight on v2."""
    return shares if setup.cgroup == "v1" else weight_of(shares, setup.kubelet_formula)


class PodShape(Struct, frozen=True, gc=False):
    """What a pod's cgroups hold, whatever node it is on: all but its share."""

    qos: int
    """The place of its class in QOS_CLASSES."""
    request_milli: int
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


class Shapes:
    """Works out equal pods under equal setups once. For the pods of one cluster, as long as these are there."""

    def __init__(self) -> None:
        self._known: dict[Setup, _Table] = {}
        self._by_handler: dict[object, dict[int, PodShape]] = {}
        self.same = Same()
        """What equal shapes have in common is held once."""
        self._by_identity: dict[int, int] = {}
        self._outlines: dict[object, int] = {}
        self._samples: list[PlacedPod] = []

    def outlines(self, placed: Iterable[PlacedPod], leftovers: Sequence[Leftover] = ()) -> tuple[int, ...]:
        """A number for each pod: pods with the same have the same shape in every setup with these leftovers."""
        alone = {(each.namespace, each.pod) for each in leftovers}
        return tuple([self._outline(pod, handler, alone) for pod, handler in placed])

    def _outline(self, pod: Pod, handler: str, alone: set[tuple[str, str]]) -> int:
        # Replicas have the same object for what they have in common, so one cluster's have one handler, too.
        alike = pod.alike
        left_over = bool(alone) and (pod.namespace, pod.name) in alone
        known = None if left_over else self._by_identity.get(id(alike))
        if known is None:
            # What the containers are called decides nothing.
            inside = self.same(
                tuple(
                    [
                        self.same((c.role, c.request_milli, c.limit_milli, c.presence == "gone"))
                        for c in alike.containers
                    ]
                )
            )
            key = (id(inside), alike.qos, handler, alike.overhead_milli, alike.request_milli, alike.limit_milli)
            if left_over:
                # Like none of the others, it is no sample of theirs either.
                return self._number((key, pod.namespace, pod.name), (pod, handler))
            known = self._by_identity[id(alike)] = self._number(key, (pod, handler))
        return known

    def _number(self, key: object, sample: PlacedPod) -> int:
        outline = self._outlines.setdefault(key, len(self._samples))
        if outline == len(self._samples):
            self._samples.append(sample)
        return outline

    def under(self, setup: Setup) -> Mapping[int, PodShape]:
        """The shape of each outline in a setup, made when it is asked for."""
        table = self._known.get(setup)
        if table is None:
            table = self._known[setup] = _Table(self, setup)
        return table

    def of_handler(self, setup: Setup, handler: str) -> dict[int, PodShape]:
        """The shapes of a handler's pods so far, in all setups that are alike for them."""
        return self._by_handler.setdefault((setup_key(setup, handler), setup.leftovers), {})

    def sample(self, outline: int) -> PlacedPod:
        """A pod of an outline."""
        return self._samples[outline]


class _Table(dict[int, PodShape]):
    """The shapes in one setup, by outline."""

    def __init__(self, shapes: Shapes, setup: Setup) -> None:
        super().__init__()
        self._shapes = shapes
        self._setup = setup
        self._by_handler: dict[str, dict[int, PodShape]] = {}

    def __missing__(self, outline: int) -> PodShape:
        pod, handler = self._shapes.sample(outline)
        known = self._by_handler.get(handler)
        if known is None:
            known = self._by_handler[handler] = self._shapes.of_handler(self._setup, handler)
        shape = known.get(outline)
        if shape is None:
            made = _shape(pod, handler, self._setup, self._shapes)
            # Under most setups a pod has the shape it has under others.
            shape = known[outline] = self._shapes.same(made)
        self[outline] = shape
        return shape


def setup_key(setup: Setup, handler: str) -> object:
    """What of a setup decides the shape of a handler's pod that carries nothing from before."""
    return (
        setup.cgroup,
        setup.kubelet_formula,
        pod_level_resources(setup.kubelet_version),
        rounds_pod_quota(setup.kubelet_version),
        setup.driver,
        setup.cfs_quota,
        setup.period_us,
        setup.runtime(handler),
    )


def _shape(
    pod: Pod,
    handler: str,
    setup: Setup,
    shapes: Shapes,
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
        left = setup.left_over(pod.namespace, pod.name, container.name)
        if not on_v1 and runtime.formula != "none":
            weight = left.weight if left else weight_of(own, runtime.formula)
        amounts = own, weight, container_quota(container, pod, setup, setup.creator(handler, left))
        weighed.append(amounts)
        hungry.append(container.role in COMPETING)
    values = [own if on_v1 else weight for own, weight, _ in weighed]
    total = sum(value or 0 for value, wants in zip(values, hungry, strict=True) if wants)
    return PodShape(
        qos=QOS_CLASSES.index(pod.qos),
        request_milli=pod_request(pod, setup.kubelet_version),
        shares=shares,
        value=kubelet_value(shares, setup),
        quota_us=pod_quota(pod, setup),
        containers=shapes.same(tuple(weighed)),
        part=shapes.same(
            tuple(
                value / total if wants and runtime.formula != "none" and value is not None else None
                for value, wants in zip(values, hungry, strict=True)
            )
        ),
        wants_cpu=any(hungry),
        formula=runtime.formula,
    )
