"""CPU quota: what `cpu.cfs_quota_us` (v1) and `cpu.max` (v2) hold, in microseconds a period."""

from kubectl_cgaudit.cgroups.crio import takes_quota_off
from kubectl_cgaudit.cgroups.pods import container_limit, container_shares, pod_limit
from kubectl_cgaudit.collect.model import Container, Pod
from kubectl_cgaudit.detect.runtime import Runtime
from kubectl_cgaudit.detect.state import PERIOD_US, Setup

SMALLEST_QUOTA_US = 1_000
_STEP_US_PER_SECOND = 10_000


def milli_to_quota(limit_milli: int, period_us: int = PERIOD_US) -> int:
    """Quota of a CPU limit in thousandths: `limit * period / 1000`, at least 1000 us.

    Source: kubernetes pkg/kubelet/cm/helpers_linux.go, `MilliCPUToQuota`.
    """
    return max(SMALLEST_QUOTA_US, limit_milli * period_us // 1000)


def quota_to_milli(quota_us: int, period_us: int) -> int:
    """The least limit in thousandths of a CPU that has this quota or more: quotas are whole microseconds, cut off."""
    return -(-quota_us * 1000 // period_us)


def as_limit(quota_us: int, period_us: int) -> str:
    """The limit that has this quota, as a spec writes it; the smallest quota may lie between two."""
    limit = quota_to_milli(quota_us, period_us)
    return f"{limit}m" if milli_to_quota(limit, period_us) == quota_us else f"{quota_us * 1000 / period_us:.4g}m"


def round_up(quota_us: int, period_us: int = PERIOD_US) -> int:
    """The quota as systemd stores it: 1% of a CPU is its smallest step, and it is rounded up to one.

    Source: opencontainers/cgroups systemd/v2.go, `addCPUQuota`, since v0.0.2.
    """
    per_second = quota_us * 1_000_000 // period_us
    steps = -(-per_second // _STEP_US_PER_SECOND)
    return steps * _STEP_US_PER_SECOND * period_us // 1_000_000


def container_quota(container: Container, pod: Pod, setup: Setup, runtime: Runtime) -> int | None:
    """Quota of a container's cgroup (for crun on v2 the scope's), or None for no limit.

    Where crun makes no cgroup below the scope its raw value comes last there: on v1, as the kernel takes none beyond the pod's,
    and on v2 where it is told to make none.
    """
    quota = runtime_quota(container, pod, setup, runtime)
    raw_last = runtime.name == "crun" and (setup.cgroup == "v1" or not setup.inner)
    rounds = runtime.rounds_quota and not raw_last
    return round_up(quota, setup.period_us) if quota is not None and setup.driver == "systemd" and rounds else quota


def runtime_quota(container: Container, pod: Pod, setup: Setup, runtime: Runtime) -> int | None:
    """Return the quota that the runtime is told, which crun leaves in the cgroup below its scope; None for no limit."""
    limit = container_limit(container, pod, setup.kubelet_version)
    if limit is None or runtime.formula == "none" or not setup.cfs_quota or _is_off(container, pod, setup):
        return None
    return milli_to_quota(limit, setup.period_us)


def _is_off(container: Container, pod: Pod, setup: Setup) -> bool:
    """Return whether CRI-O takes the quota of a container away, as an annotation asks it to."""
    return setup.crio and takes_quota_off(pod, container.name, container_shares(container, pod, setup.kubelet_version))


def pod_quota(pod: Pod, setup: Setup) -> int | None:
    """Quota of a pod's cgroup, or None when the kubelet sets none."""
    limit = pod_limit(pod, setup.kubelet_version)
    # CRI-O takes the pod's away with that of the first container.
    if limit is None or not setup.cfs_quota or any(_is_off(container, pod, setup) for container in pod.containers):
        return None
    quota = milli_to_quota(limit, setup.period_us)
    return round_up(quota, setup.period_us) if setup.driver == "systemd" and setup.rounds_pod_quota else quota


def cannot_start(pod: Pod, container: Container, setup: Setup, handler_name: str) -> bool:
    """Whether the kernel refuses this container's quota. Rule: runc#4982, containerd#12496.

    A debug container is not there when its pod is created anew.
    """
    runtime = setup.runtime(handler_name)
    writes_rounded = setup.driver == "systemd" and runtime.rounds_quota and runtime.name in ("runc", None)
    if setup.cgroup != "v1" or not writes_rounded or container.role == "ephemeral":
        return False
    of_pod, own = pod_quota(pod, setup), container_quota(container, pod, setup, runtime)
    return of_pod is not None and own is not None and own > of_pod
