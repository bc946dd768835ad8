"""What a kubelet makes of a pod: requests, shares, limits and quotas, by its release.

Part of the reference model: written from the documents alone, to be obviously right and not fast. It must never
import from kubectl_cgaudit.
"""

from typing import Literal

from tests.reference.amounts import quota, release, rounded_up, shares
from tests.reference.objects import Container, Pod


def reads_pod_level(version: str) -> bool:
    """Whether spec.resources of a pod counts: the gate PodLevelResources is off by default before 1.34."""
    return release(version) >= (1, 34, 0)


def rounds_pod_quota(version: str) -> bool:
    """Whether a pod's quota is rounded as systemd does: docs/findings/CGA301.md."""
    return release(version) >= (1, 35, 0) or (1, 33, 8) <= release(version) < (1, 34, 0)


def refuses_v1(version: str) -> bool:
    """Whether it does not start on cgroup v1: failCgroupV1 defaults to true from 1.35 on."""
    return release(version) >= (1, 35, 0)


def most_at_once(containers: tuple[Container, ...], what: Literal["request", "spec_request", "limit"]) -> int:
    """What runs together at most: containers and sidecars, or an init container and the sidecars before it."""
    amounts = [(each.role, getattr(each, what) or 0) for each in containers]
    sums = [sum(amount for role, amount in amounts if role != "init")]
    for place, (role, amount) in enumerate(amounts):
        if role == "init":
            sums.append(amount + sum(before for other, before in amounts[:place] if other == "sidecar"))
    return max(sums)


def pod_request(pod: Pod, version: str) -> int:
    """What a pod asks for, in thousandths: docs/method.md, "Shares"."""
    if pod.request is not None and reads_pod_level(version):
        return pod.request + pod.overhead
    return most_at_once(pod.containers, "request") + pod.overhead


def counted_request(pod: Pod, version: str) -> int:
    """What a pod adds to the Burstable slice: the spec's, also while a resize waits (setCPUCgroupConfig, 1.33 to 1.36)."""
    if pod.request is not None and reads_pod_level(version):
        return pod.request + pod.overhead
    return most_at_once(pod.containers, "spec_request") + pod.overhead


def pod_shares(pod: Pod, version: str) -> int:
    """The shares of a pod's cgroup."""
    return 2 if pod.qos == "BestEffort" else shares(pod_request(pod, version))


def container_shares(pod: Pod, container: Container, version: str) -> int:
    """The shares of a container: of its request if it has the key, even with 0, else of its limit."""
    if container.request is not None:
        return shares(container.request)
    return shares(container_limit(pod, container, version))


def container_limit(pod: Pod, container: Container, version: str) -> int:
    """The limit of a container in thousandths, or else the pod's; 0 for none."""
    return container.limit or _pod_level_limit(pod, version)


def container_quota(pod: Pod, container: Container, version: str) -> int | None:
    """The quota that the runtime is told, before any rounding."""
    return quota(container_limit(pod, container, version))


def pod_quota(pod: Pod, version: str, driver: str) -> int | None:
    """The quota of a pod's cgroup: Guaranteed always, Burstable if all is limited; kubelet, ResourceConfigForPod."""
    own = _pod_level_limit(pod, version)
    limited = bool(own) or all(each.limit for each in pod.containers)
    if pod.qos == "BestEffort" or (pod.qos == "Burstable" and not limited):
        return None
    limit = own or most_at_once(pod.containers, "limit")
    raw = quota(limit + pod.overhead) if limit else None
    return rounded_up(raw) if driver == "systemd" and rounds_pod_quota(version) else raw


def _pod_level_limit(pod: Pod, version: str) -> int:
    return (pod.limit or 0) if reads_pod_level(version) else 0
