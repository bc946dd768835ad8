"""CPU quota: what `cpu.cfs_quota_us` (v1) and `cpu.max` (v2) hold, in microseconds a period."""

from kubectl_cgaudit.collect.model import Container, Pod
from kubectl_cgaudit.detect.runtime import Runtime
from kubectl_cgaudit.detect.state import Setup
from kubectl_cgaudit.detect.version import rounds_pod_quota
from kubectl_cgaudit.predict.kubelet import container_limit, pod_limit

PERIOD_US = 100_000
SMALLEST_QUOTA_US = 1_000
_STEP_US_PER_SECOND = 10_000


def milli_to_quota(limit_milli: int) -> int:
    """Quota of a CPU limit in thousandths: `limit * period / 1000`, at least 1000 us.

    Source: kubernetes pkg/kubelet/cm/helpers_linux.go, `MilliCPUToQuota`.
    """
    return max(SMALLEST_QUOTA_US, limit_milli * PERIOD_US // 1000)


def round_up(quota_us: int) -> int:
    """The quota as systemd stores it: 1% of a CPU is its smallest step, and it is rounded up to one.

    Source: opencontainers/cgroups systemd/v2.go, `addCPUQuota`, since v0.0.2.
    """
    per_second = quota_us * 1_000_000 // PERIOD_US
    steps = -(-per_second // _STEP_US_PER_SECOND)
    return steps * _STEP_US_PER_SECOND * PERIOD_US // 1_000_000


def container_quota(container: Container, pod: Pod, setup: Setup, runtime: Runtime) -> int | None:
    """Quota of a container's cgroup (for crun the scope's), or None for no limit."""
    limit = container_limit(container, pod, setup.kubelet_version)
    if limit is None or runtime.formula == "none":
        return None
    quota = milli_to_quota(limit)
    return round_up(quota) if setup.driver == "systemd" and runtime.rounds_quota else quota


def pod_quota(pod: Pod, setup: Setup) -> int | None:
    """Quota of a pod's cgroup, or None when the kubelet sets none."""
    limit = pod_limit(pod, setup.kubelet_version)
    if limit is None:
        return None
    quota = milli_to_quota(limit)
    return round_up(quota) if setup.driver == "systemd" and rounds_pod_quota(setup.kubelet_version) else quota
