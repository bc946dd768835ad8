"""The arithmetic of a cgroup in words: from requests to shares, to a weight, to a fraction, and from a limit to a quota."""

import math
from collections.abc import Sequence

from kubectl_cgaudit.cgroups import crio
from kubectl_cgaudit.cgroups.pods import container_limit, pod_level_resources, pod_request
from kubectl_cgaudit.cgroups.quota import milli_to_quota
from kubectl_cgaudit.cgroups.version import KubeletVersion
from kubectl_cgaudit.cgroups.weights import Formula, milli_to_shares, weight_of
from kubectl_cgaudit.collect.model import COMPETING, CPU_QUOTA, RESOURCES, Container, Pod
from kubectl_cgaudit.compare.cgroups import Cgroup
from kubectl_cgaudit.detect.runtime import ContainerFormula
from kubectl_cgaudit.detect.state import Setup
from kubectl_cgaudit.text import counted, percent

_MOST_SIBLINGS = 8


def to_shares(milli: int) -> str:
    """`3700 * 1024 // 1000 =`, before the shares; `1 * 1024 // 1000 = 1, at least` where that is out of range."""
    raw, shares = milli * 1024 // 1000, milli_to_shares(milli)
    bound = f" {raw}, at {'least' if raw < shares else 'most'}" if raw != shares else ""
    return f"{milli} * 1024 // 1000 ={bound}"


def weighed(cgroup: Cgroup, formula: ContainerFormula) -> str:
    """`3788 shares`, and on v2 how they become a weight."""
    shares = cgroup.shares
    if shares is None:
        return "no shares and no weight: this runtime sets none on the host"
    if cgroup.version == "v1":
        return f"{shares} shares"
    weight = cgroup.weight
    curve: Formula = "linear" if formula == "linear" else "quadratic"
    if weight != weight_of(shares, curve):
        other: Formula = "quadratic" if curve == "linear" else "linear"
        why = f"as the {other} formula makes it: written before the runtime was changed"
        if weight != weight_of(shares, other):
            why = f"which no formula makes of {shares} shares"
        return f"{shares} shares; weight {weight} was measured, {why}"
    if curve == "linear":
        return f"{shares} shares -> 1 + (({shares} - 2) * 9999) // 262142 = weight {weight}"
    exponent = f"L = log2({shares}) = {math.log2(shares):.4f}"
    return f"{shares} shares -> ceil(10 ** ((L*L + 125*L) / 612 - 7/34)), {exponent}: weight {weight}"


def part(own: Cgroup, others: Sequence[Cgroup]) -> float:
    """The fraction (0..1) a cgroup gets of what it and its siblings share."""
    total = (own.value or 0) + sum(cgroup.value or 0 for cgroup in others)
    return (own.value or 0) / total if total else 0.0


def fraction(name: str, own: Cgroup, others: Sequence[tuple[str, Cgroup]], of: str) -> str:
    """`kubepods: 145 / (145 + system.slice 100) = 59% of the node`."""
    listed = [f"{other} {cgroup.value}" for other, cgroup in others[:_MOST_SIBLINGS]]
    if len(others) > _MOST_SIBLINGS:
        rest = sum(cgroup.value or 0 for _, cgroup in others[_MOST_SIBLINGS:])
        listed.append(f"{counted(len(others) - _MOST_SIBLINGS, 'other')} {rest}")
    against = " + ".join([str(own.value), *listed])
    of_node = "" if of == "the node" else f" = {percent(own.share)} of the node"
    return f"{name}: {own.value} / ({against}) = {percent(part(own, [c for _, c in others]))} of {of}{of_node}"


def requested(pod: Pod, kubelet: KubeletVersion | None) -> str:
    """How a pod's request is made of those of its containers."""
    total = pod_request(pod, kubelet)
    overhead = f" + overhead {pod.overhead_milli}m" if pod.overhead_milli else ""
    if pod.request_milli is not None and pod_level_resources(kubelet):
        return f"pod-level request {pod.request_milli}m{overhead} = {total}m"
    running = [c for c in pod.containers if c.role in COMPETING]
    text = " + ".join(f"{c.name} {c.request_milli or 0}m" for c in running)
    starting, sidecars = [], 0
    for container in pod.containers:
        amount = container.request_milli or 0
        if container.role == "sidecar":
            sidecars += amount
        elif container.role == "init":
            before = f" + sidecars before it {sidecars}m" if sidecars else ""
            starting.append(f"init {container.name} {amount}m{before}")
    if starting:
        text = f"the larger of ({text}) and ({'), ('.join(starting)})"
    return f"request {text}{overhead} = {total}m"


def amount(container: Container, pod: Pod, setup: Setup) -> str:
    """Return what a container's shares are made of."""
    if setup.crio and crio.asked(pod).shares.get(container.name):
        return f"annotation {RESOURCES}{container.name}"
    if container.request_milli is not None:
        return f"request {container.request_milli}m"
    limit = container_limit(container, pod, setup.kubelet_version)
    if limit is None:
        return "no request"
    return f"no request, so its limit {limit}m" if container.limit_milli else f"no request, so the pod's limit {limit}m"


def quota(limit: int, cgroup: Cgroup, setup: Setup) -> str:
    """`limit 77m * 100000 us / 1000 = 7700 us, rounded up to 8000 us`."""
    if cgroup.quota_us is None:
        why = f"an annotation {CPU_QUOTA} asks CRI-O" if setup.cfs_quota else "the kubelet's cpuCFSQuota is false"
        return f"limit {limit}m: no quota, as {why}"
    raw = milli_to_quota(limit, cgroup.period_us)
    exact = limit * cgroup.period_us // 1000
    least = f", raised to the least of {raw} us" if raw != exact else ""
    rounded = f", rounded up to {cgroup.quota_us} us" if cgroup.quota_us != raw else ""
    return f"limit {limit}m * {cgroup.period_us} us / 1000 = {exact} us{least}{rounded}: the quota"
