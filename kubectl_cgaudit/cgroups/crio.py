"""What CRI-O, and the kubelet as OpenShift builds it, take from a pod's annotations.

Source: cri-o of 2026-08-21, pkg/config/workloads.go (`resourcesFromAnnotation`), internal/factory/container/container.go
(`AddUnifiedResourcesFromAnnotations`), internal/runtimehandlerhooks (`shouldCPUQuotaBeDisabled`, `isContainerRequestWholeCPU`);
openshift/kubernetes pkg/kubelet/cm/qos_container_manager_linux.go (`setCPUCgroupConfig`). Whether CRI-O heeds them is decided
by its configuration, which no API shows: `[crio.runtime.workloads.management]`, and `allowed_annotations` of the handler.
"""

import base64
import binascii
from contextlib import suppress
from functools import lru_cache

import msgspec
from msgspec import Struct

from kubectl_cgaudit.cgroups.weights import MAX_SHARES, MAX_WEIGHT, MIN_SHARES, MIN_WEIGHT
from kubectl_cgaudit.collect.model import CPU_QUOTA, PARTITIONED, RESOURCES, UNIFIED, Pod

SCHEME = "cri-o://"
"""What node.status.nodeInfo.containerRuntimeVersion begins with where the container runtime is CRI-O."""
_OFF = ("disable", "true")
_WHOLE_CPU = 1024


class Asked(Struct, frozen=True):
    """What a pod's annotations ask for."""

    partitioned: bool
    """It is for a management partition: OpenShift's kubelet does not count it in the Burstable slice."""
    shares: dict[str, int]
    """The shares of its containers, by name, in place of what the spec makes them."""
    weights: dict[str, int]
    """The cgroup v2 weights of its containers, by name."""
    unlimited: frozenset[str]
    """The containers without a quota; `""` stands for all of them."""


class _Resources(Struct):
    """The value of a `resources.workload.openshift.io/` annotation."""

    cpushares: int = 0


NOTHING = Asked(partitioned=False, shares={}, weights={}, unlimited=frozenset())


def asked(pod: Pod) -> Asked:
    """Return what the pod's annotations ask for. A value that CRI-O would refuse asks for nothing."""
    return _asked(pod.annotations) if pod.annotations else NOTHING


@lru_cache(maxsize=4096)
def _asked(annotations: tuple[tuple[str, str], ...]) -> Asked:
    partitioned = any(key.startswith(PARTITIONED) for key, _ in annotations)
    shares, weights, unlimited = {}, {}, set()
    for key, value in annotations:
        # Without the annotation that activates a partition CRI-O does not look for its resources.
        if key.startswith(RESOURCES) and partitioned and (own := _shares(value)):
            shares[key.removeprefix(RESOURCES)] = own
        elif key.startswith(UNIFIED) and (weight := _weight(value)):
            weights[key.removeprefix(UNIFIED)] = weight
        elif key.partition("/")[0] == CPU_QUOTA and value in _OFF:
            unlimited.add(key.partition("/")[2])
    return Asked(partitioned, shares, weights, frozenset(unlimited))


def _shares(value: str) -> int | None:
    try:
        found = msgspec.json.decode(value, type=_Resources).cpushares
    except (msgspec.DecodeError, UnicodeError):
        return None
    # 0 stands for the default of the configuration, which is to leave them.
    return min(MAX_SHARES, max(MIN_SHARES, found)) if found > 0 else None


def _weight(value: str) -> int | None:
    """Return the weight of `cpu.weight=500;memory.high=1000`; CRI-O takes a value that is valid base64 for base64."""
    text = dict(entry.partition("=")[::2] for entry in value.split(";")).get("cpu.weight", "")
    with suppress(binascii.Error):
        text = base64.b64decode(text, validate=True).decode(errors="replace")
    number = int(text) if text.isascii() and text.isdigit() else 0
    return number if MIN_WEIGHT <= number <= MAX_WEIGHT else None


def takes_quota_off(pod: Pod, container: str, shares: int) -> bool:
    """Return whether CRI-O removes the quota of this container, and with it that of its pod.

    Only of Guaranteed pods with a RuntimeClass, and of containers that ask for whole CPUs.
    """
    off = asked(pod).unlimited
    if not off or pod.qos != "Guaranteed" or not pod.runtime_class:
        return False
    return ("" in off or container in off) and shares % _WHOLE_CPU == 0
