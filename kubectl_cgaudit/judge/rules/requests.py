"""What another request takes with it: limits, and the request and weight of its pod. CPU in thousandths."""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from kubectl_cgaudit.cgroups.pods import container_shares, pod_level_resources, pod_request
from kubectl_cgaudit.cgroups.version import KubeletVersion
from kubectl_cgaudit.cgroups.weights import milli_to_shares, weight_of
from kubectl_cgaudit.collect.model import COMPETING, Container, Pod
from kubectl_cgaudit.detect.state import Setup, unit_of
from kubectl_cgaudit.judge.rules.catalogue import LIMIT_CHANGED, SAME_WEIGHT
from kubectl_cgaudit.judge.rules.quota import altered
from kubectl_cgaudit.predict.shape import kubelet_value

_GUARANTEED = " Limits go with requests, as the pod is Guaranteed."


def more_cpu(pod: Pod, kubelet: KubeletVersion | None, *, by_containers: bool = False) -> str:
    """What gives a pod more weight, in words: not every pod has a request to raise. `by_containers`: by theirs alone."""
    asks = pod_request(pod, kubelet) > pod.overhead_milli
    if by_containers:
        return "raise the CPU requests of its containers" if asks else "give its containers CPU requests"
    return "raise its CPU request" if asks else "give it a CPU request"


def limits(pod: Pod, asked: Sequence[tuple[Container, int]], whole: int) -> str:
    """What other requests of containers, and `whole` of their pod, take with them.

    No API server takes a limit below its request, or a pod's own request below those of its containers together. By a limit of
    the pod itself alone it makes one Guaranteed.
    """
    together = whole - pod.overhead_milli
    own = ""
    if pod.request_milli is not None and together > pod.request_milli:
        own = f" The pod's own request of {pod.request_milli}m must go up to {together}m with it."
    if _by_containers(pod):
        return own + _GUARANTEED
    named = (
        *((container.name, container.limit_milli, milli) for container, milli in asked),
        ("the pod", pod.limit_milli, together),
    )
    over = [f"{name} ({limit}m)" for name, limit, request in named if limit and request > limit]
    return f"{own} The limit of {' and of '.join(over)} must go up with it." if over else own


def limits_of_all(pod: Pod, whole: int, setup: Setup) -> str:
    """The same of a pod that is to ask for `whole`, whichever of its containers ask for it."""
    together = whole - pod.overhead_milli
    if pod.request_milli is not None and pod_level_resources(setup.kubelet_version):
        exceeded = pod.limit_milli and together > pod.limit_milli
        return f" The limit of the pod ({pod.limit_milli}m) must go up with it." if exceeded else ""
    running = [container for container in pod.containers if container.role in COMPETING]
    if len(running) == 1:
        return limits(pod, [(running[0], together)], whole)
    if _by_containers(pod):
        return _GUARANTEED
    most = sum(container.limit_milli or together for container in running)
    over = f" The limits of its containers, {most}m together, must go up with it." if most < together else ""
    return limits(pod, (), whole) + over


def _by_containers(pod: Pod) -> bool:
    """Whether a pod is Guaranteed as its containers have limits equal to their requests."""
    return pod.qos == "Guaranteed" and not pod.limit_milli


class PodRequest:
    """A pod's request (thousandths of a CPU) and its weight, now and with other requests of its containers."""

    def __init__(self, pod: Pod, setup: Setup) -> None:
        self.pod = pod
        self.setup = setup
        self.now = self.after({})

    def after(self, requests: Mapping[str, int]) -> int:
        """The pod's request with these requests of containers. One of the pod itself is never less than their sum."""
        pod, version = _asking(self.pod, requests), self.setup.kubelet_version
        unsaid = replace(pod, alike=replace(pod.alike, request_milli=None))
        return max(pod_request(pod, version), pod_request(unsaid, version))

    def named_then(self, requests: Mapping[str, int], used: str) -> str:
        """Which rules find containers with these requests that they do not find now. `used` is the pod's handler."""
        asking = _asking(self.pod, requests)
        pairs = list(zip(self.pod.containers, asking.containers, strict=True))
        said = []
        for rule, why, finds in _FINDS:
            names = [
                then.name
                for now, then in pairs
                if finds(asking, then, self.setup, used) and not finds(self.pod, now, self.setup, used)
            ]
            if names:
                said.append(f"{rule} names {' and '.join(names)} ({why})")
        return f" Then {', '.join(said)}." if said else ""

    def changes(self, milli: int) -> str:
        """What another request means for the pod, in words."""
        now, then = (kubelet_value(milli_to_shares(each), self.setup) for each in (self.now, milli))
        unit = unit_of(self.setup.cgroup)
        weight = f"its {unit} stays {now}" if now == then else f"its {unit} from {now} to {then}"
        inits = any(container.role == "init" for container in self.pod.containers)
        of_which = ", of which init containers are a part," if inits else ""
        return f"The pod's request{of_which} goes from {self.now}m to {milli}m, {weight}."


def _asking(pod: Pod, requests: Mapping[str, int]) -> Pod:
    """The pod with these requests of its containers; their limits go with them where that makes it Guaranteed."""
    guaranteed = _by_containers(pod)

    def asking(each: Container) -> Container:
        milli = requests.get(each.name)
        if milli is None:
            return each
        return replace(each, request_milli=milli, limit_milli=milli if guaranteed else each.limit_milli)

    return replace(pod, alike=replace(pod.alike, containers=tuple(map(asking, pod.containers))))


def _has_the_least(pod: Pod, container: Container, setup: Setup, used: str) -> bool:
    """Whether a container that asks for CPU has weight 1."""
    formula = setup.runtime(used).formula
    if setup.cgroup == "v1" or formula == "none" or not container.request_milli:
        return False
    return weight_of(container_shares(container, pod, setup.kubelet_version), formula) == 1


_FINDS: tuple[tuple[str, str, Callable[[Pod, Container, Setup, str], object]], ...] = (
    (SAME_WEIGHT.id, "weight 1", _has_the_least),
    (LIMIT_CHANGED.id, "no multiple of 10m", altered),
)
"""Rules that new requests may make find a container, why they do, and whether one does."""
