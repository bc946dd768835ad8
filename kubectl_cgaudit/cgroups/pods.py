"""What the kubelet computes from a pod's spec: shares, pod requests, pod limits.

Source of the rules: kubernetes pkg/kubelet/cm/helpers_linux.go (`ResourceConfigForPod`,
`MilliCPUToShares`), component-helpers/resource (`PodRequests`, `PodLimits`) and
pkg/kubelet/kuberuntime/kuberuntime_container_linux.go (`calculateLinuxResources`), 1.31 to 1.36.
"""

from collections.abc import Iterable
from typing import Literal

from kubectl_cgaudit.cgroups import crio
from kubectl_cgaudit.cgroups.version import KubeletVersion
from kubectl_cgaudit.cgroups.weights import MIN_SHARES, milli_to_shares
from kubectl_cgaudit.collect.model import Container, Pod

_POD_LEVEL_FROM = KubeletVersion(1, 34, 0)


def pod_level_resources(kubelet: KubeletVersion | None) -> bool:
    """Whether the kubelet counts `spec.resources` of a pod.

    The feature gate PodLevelResources is on by default from 1.34; 1.32 and 1.33 have it, off by default.
    """
    return kubelet is None or kubelet >= _POD_LEVEL_FROM


def may_count_pod_level(kubelet: KubeletVersion | None) -> bool:
    """Whether a kubelet that is taken not to count them has a gate with which it does."""
    return kubelet is not None and KubeletVersion(1, 32, 0) <= kubelet < _POD_LEVEL_FROM


def container_shares(container: Container, pod: Pod, kubelet: KubeletVersion | None, *, by_crio: bool = False) -> int:
    """Return the shares (2..262144) of a container: its request when the key exists, else its limit, else the pod's limit.

    `by_crio` counts the pod's annotations, which CRI-O reads and no other runtime does.
    """
    if by_crio and (annotated := crio.asked(pod).shares.get(container.name)):
        return annotated
    if container.request_milli is not None:
        return milli_to_shares(container.request_milli)
    limit = container_limit(container, pod, kubelet)
    return milli_to_shares(limit or 0)


def container_limit(container: Container, pod: Pod, kubelet: KubeletVersion | None) -> int | None:
    """CPU limit of a container in thousandths; the pod's when it has none of its own; None for no limit."""
    if container.limit_milli:
        return container.limit_milli
    if pod.limit_milli and pod_level_resources(kubelet):
        return pod.limit_milli
    return None


def pod_request(pod: Pod, kubelet: KubeletVersion | None) -> int:
    """Return the CPU request of a pod in thousandths, overhead included, as it is allocated: the pod's cgroup follows that.

    The larger of what the containers and sidecars ask for together and what any init container asks for
    with the sidecars started before it; a pod-level request replaces that.
    """
    if pod.request_milli is not None and pod_level_resources(kubelet):
        return pod.request_milli + pod.overhead_milli
    return _at_most(pod.containers, "request_milli") + pod.overhead_milli


def spec_request(pod: Pod, kubelet: KubeletVersion | None) -> int:
    """Return the same as the spec says it, also while a resize waits: what the kubelet sums up for the Burstable slice.

    Source: kubernetes pkg/kubelet/cm/qos_container_manager_linux.go, `setCPUCgroupConfig`, 1.33.13 to 1.36.
    """
    if pod.spec_request_milli is not None and pod_level_resources(kubelet):
        return pod.spec_request_milli + pod.overhead_milli
    return _at_most(pod.containers, "spec_request_milli") + pod.overhead_milli


def pod_shares(pod: Pod, kubelet: KubeletVersion | None) -> int:
    """Shares (2..262144) of a pod's cgroup: of its request; BestEffort pods have the least there is."""
    return MIN_SHARES if pod.qos == "BestEffort" else milli_to_shares(pod_request(pod, kubelet))


def pod_limit(pod: Pod, kubelet: KubeletVersion | None) -> int | None:
    """CPU limit of a pod in thousandths, or None when the kubelet sets no quota on its cgroup.

    Guaranteed pods have one always, Burstable pods when every container (init containers too) or the pod
    itself has a limit, BestEffort pods never.
    """
    if pod.qos == "BestEffort":
        return None
    pod_level = pod.limit_milli if pod_level_resources(kubelet) else None
    declared = all(container.limit_milli for container in pod.containers if container.role != "ephemeral")
    if pod.qos == "Burstable" and not declared and not pod_level:
        return None
    total = pod_level or _at_most(pod.containers, "limit_milli")
    return total + pod.overhead_milli if total else None


def _at_most(
    containers: Iterable[Container], what: Literal["request_milli", "spec_request_milli", "limit_milli"]
) -> int:
    """The largest sum in force at any moment of a pod's life: while an init container runs, or afterwards."""
    running = 0
    sidecars = 0
    starting = 0
    for container in containers:
        amount = getattr(container, what) or 0
        if container.role == "sidecar":
            sidecars += amount
            starting = max(starting, sidecars)
        elif container.role == "init":
            starting = max(starting, sidecars + amount)
        elif container.role == "app":
            running += amount
    return max(running + sidecars, starting)
