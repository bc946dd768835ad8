"""What a pod's cgroups hold whatever node it is on, worked out once for all pods that are alike."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kubectl_cgaudit.cgroups import crio
from kubectl_cgaudit.cgroups.pods import container_shares, pod_level_resources, pod_request, pod_shares, spec_request
from kubectl_cgaudit.cgroups.weights import weight_of
from kubectl_cgaudit.collect.model import COMPETING, Container, Pod, Qos
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.runtime import Runtime
from kubectl_cgaudit.detect.shown import NOTHING, Shown, ShownPod
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
    counted_milli: int
    """What it adds to the sum that the Burstable slice is made from."""
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
    measured: tuple[bool, ...]
    """Whether the value of the pod, and of each of these containers, is what its kubelet shows."""


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
        self._samples: list[tuple[Pod, str, ShownPod | None]] = []

    def outlines(
        self, placed: Sequence[PlacedPod], leftovers: Sequence[Leftover] = (), shown: Sequence[ShownPod] = ()
    ) -> tuple[int, ...]:
        """A number for each pod: pods with the same have the same shape in every setup with these leftovers.

        `shown` is what their kubelet shows of each, if it was asked.
        """
        alone = {(each.namespace, each.pod) for each in leftovers}
        if not shown:
            return tuple([self._outline(pod, handler, alone, None) for pod, handler in placed])
        return tuple(
            [self._outline(pod, handler, alone, seen) for (pod, handler), seen in zip(placed, shown, strict=True)]
        )

    def _outline(self, pod: Pod, handler: str, alone: set[tuple[str, str]], shown: ShownPod | None) -> int:
        # Replicas have the same object for what they have in common, so one cluster's have one handler, too.
        alike = pod.alike
        left_over = bool(alone) and (pod.namespace, pod.name) in alone
        known = None if left_over or shown else self._by_identity.get(id(alike))
        if known is None:
            # What the containers are called decides nothing, but to annotations.
            inside = self.same(tuple([self.same(_decisive(each)) for each in alike.containers]))
            key: tuple[object, ...] = (
                id(inside),
                alike.qos,
                handler,
                alike.overhead_milli,
                alike.request_milli,
                alike.limit_milli,
                alike.spec_request_milli,
                self.same((alike.annotations, tuple(each.name for each in alike.containers), alike.runtime_class))
                if alike.annotations
                else None,
            )
            if shown:
                key = *key, self.same(shown)
            if left_over:
                # Like none of the others, it is no sample of theirs either.
                key = *key, pod.namespace, pod.name
            known = self._number(key, (pod, handler), shown)
            if not left_over and not shown:
                self._by_identity[id(alike)] = known
        return known

    def _number(self, key: object, sample: PlacedPod, shown: ShownPod | None) -> int:
        outline = self._outlines.setdefault(key, len(self._samples))
        if outline == len(self._samples):
            self._samples.append((*sample, shown))
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

    def sample(self, outline: int) -> tuple[Pod, str, ShownPod | None]:
        """A pod of an outline, its handler, and what its kubelet shows of it."""
        return self._samples[outline]


def _decisive(container: Container) -> tuple[object, ...]:
    """Return what of a container decides its pod's shape."""
    gone = container.presence == "gone"
    return container.role, container.request_milli, container.limit_milli, gone, container.spec_request_milli


class _Table(dict[int, PodShape]):
    """The shapes in one setup, by outline."""

    def __init__(self, shapes: Shapes, setup: Setup) -> None:
        super().__init__()
        self._shapes = shapes
        self._setup = setup
        self._by_handler: dict[str, dict[int, PodShape]] = {}

    def __missing__(self, outline: int) -> PodShape:
        pod, handler, shown = self._shapes.sample(outline)
        known = self._by_handler.get(handler)
        if known is None:
            known = self._by_handler[handler] = self._shapes.of_handler(self._setup, handler)
        shape = known.get(outline)
        if shape is None:
            made = _shape(pod, handler, self._setup, self._shapes, shown if self._setup.measured else None)
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
        setup.rounds_pod_quota,
        setup.driver,
        setup.cfs_quota,
        setup.period_us,
        setup.runtime(handler),
        setup.crio,
        setup.partitioned,
        setup.inner,
        setup.measured,
    )


def _shape(pod: Pod, handler: str, setup: Setup, shapes: Shapes, shown: ShownPod | None) -> PodShape:
    """Return the shape of a pod; what is `shown` of its cgroups stands in place of what is predicted."""
    formula, present = setup.runtime(handler).formula, pod.present
    own = shown.own if shown else NOTHING
    seen = shown.containers if shown and formula != "none" else (NOTHING,) * len(present)
    weighed = [_amounts(container, pod, setup, handler, here) for container, here in zip(present, seen, strict=True)]
    hungry = [container.role in COMPETING for container in present]
    values = [shares if setup.cgroup == "v1" else weight for shares, weight, _ in weighed]
    total = sum(value or 0 for value, wants in zip(values, hungry, strict=True) if wants)
    shares = pod_shares(pod, setup.kubelet_version)
    left_out = setup.partitioned and crio.asked(pod).partitioned
    return PodShape(
        qos=QOS_CLASSES.index(pod.qos),
        request_milli=pod_request(pod, setup.kubelet_version),
        counted_milli=0 if left_out else spec_request(pod, setup.kubelet_version),
        shares=shares,
        value=kubelet_value(shares, setup) if own.value is None else own.value,
        quota_us=own.quota_us if own.has_quota else pod_quota(pod, setup),
        containers=shapes.same(tuple(weighed)),
        part=shapes.same(
            tuple(
                value / total if wants and formula != "none" and value is not None else None
                for value, wants in zip(values, hungry, strict=True)
            )
        ),
        wants_cpu=any(hungry),
        formula=formula,
        measured=shapes.same(tuple(here.value is not None for here in (own, *seen))),
    )


def _amounts(container: Container, pod: Pod, setup: Setup, handler: str, seen: Shown) -> Amounts:
    """Return what a container's cgroup holds."""
    runtime = setup.runtime(handler)
    shares = container_shares(container, pod, setup.kubelet_version, by_crio=setup.crio)
    weight = None
    if setup.cgroup == "v2" and runtime.formula != "none":
        annotated = None if has_inner(setup, runtime) else asked_weight(container, pod, setup)
        weight = annotated or weight_of(shares, runtime.formula)
    if seen.value is not None:
        shares, weight = (seen.value, None) if setup.cgroup == "v1" else (shares, seen.value)
    left = setup.left_over(pod.namespace, pod.name, container.name)
    quota = container_quota(container, pod, setup, setup.creator(handler, left))
    return shares, weight, seen.quota_us if seen.has_quota else quota


def has_inner(setup: Setup, runtime: Runtime) -> bool:
    """Return whether the container runs in a cgroup within its scope, as crun makes one below a scope of systemd's.

    What nobody names is taken for crun, CRI-O's default. The inner cgroup has what the runtime was told, the scope what systemd
    made of it.
    """
    return setup.inner and setup.cgroup == "v2" and setup.driver == "systemd" and runtime.name in ("crun", None)


def asked_weight(container: Container, pod: Pod, setup: Setup) -> int | None:
    """Return the weight that an annotation asks CRI-O for; None where it asks for none, or the runtime is another."""
    return crio.asked(pod).weights.get(container.name) if setup.crio else None
