"""How to write a CPU limit that starts, or that is what it acts as."""

from typing import Any

from kubectl_cgaudit.cgroups.pods import pod_level_resources
from kubectl_cgaudit.cgroups.quota import milli_to_quota, quota_to_milli
from kubectl_cgaudit.collect.model import Container, Pod
from kubectl_cgaudit.detect.state import Setup

_MILLI_A_STEP = 10


def that_starts(pod: Pod, limit_milli: int, setup: Setup) -> dict[str, Any]:
    """Return what to write instead of a limit that may keep a container from starting."""
    # The smallest quota may be that of more than a step.
    acts = quota_to_milli(milli_to_quota(limit_milli, setup.period_us), setup.period_us)
    return _written(pod, acts, of_pod=bool(pod.limit_milli) and pod_level_resources(setup.kubelet_version))


def as_it_acts(pod: Pod, container: Container, quota_us: int, setup: Setup) -> dict[str, Any]:
    """Return what to write instead of a limit that acts as a larger one."""
    return _written(pod, quota_to_milli(quota_us, setup.period_us), of_pod=not container.limit_milli)


def _written(pod: Pod, milli: int, *, of_pod: bool) -> dict[str, Any]:
    """Return whose limit becomes how much, and what has to change with it.

    No API server takes a container's limit above its pod's, and by a limit of the pod itself alone it makes one Guaranteed,
    whether or not the kubelet counts that.
    """
    write = -(-milli // _MILLI_A_STEP) * _MILLI_A_STEP
    over = not of_pod and pod.limit_milli is not None and 0 < pod.limit_milli < write
    also = ["podLimit"] if over else []
    if pod.qos == "Guaranteed" and (of_pod or over):
        also.append("podRequest")
    elif pod.qos == "Guaranteed" and not pod.limit_milli:
        also.append("requests")
    return {"of": "pod" if of_pod else "container", "limitMilli": write, "also": also}
