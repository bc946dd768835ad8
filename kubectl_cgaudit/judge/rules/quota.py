"""CGA301, CGA302: limits that may stop a container from starting, or are not what the spec says."""

from collections.abc import Iterator

from msgspec import structs

from kubectl_cgaudit.cgroups.pods import container_limit, pod_level_resources
from kubectl_cgaudit.collect.model import Container, Pod
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.state import Setup
from kubectl_cgaudit.judge.compare import Comparison, PodCase
from kubectl_cgaudit.judge.confidence import taken_for_granted
from kubectl_cgaudit.judge.rules.catalogue import LIMIT_CHANGED, MAY_NOT_START
from kubectl_cgaudit.judge.rules.context import Context, Hit, Pairs, PodRule, graded, narrowed, pod_hits
from kubectl_cgaudit.judge.rules.looks import Look
from kubectl_cgaudit.predict.quota import (
    as_limit,
    cannot_start,
    container_quota,
    milli_to_quota,
    pod_quota,
    quota_to_milli,
)
from kubectl_cgaudit.text import capital

_MILLI_A_STEP = 10
_SO_NOW = "it is so now, too: it fails when it is next created."
_CRITICAL, _LOW = graded((0.0, "critical")), graded()


def _limited(pod: Pod) -> Iterator[Container]:
    """Those that may have a quota after the move: debug containers are not there once the pod is created anew."""
    return (
        container
        for container in pod.containers
        if container.role != "ephemeral" and (container.limit_milli or pod.limit_milli)
    )


def _is_limited(_context: Context, pod: Pod, _pairs: Pairs) -> bool:
    return any(_limited(pod))


def _failing_starts(
    _context: Context, comparison: Comparison, placed: PlacedPod, cases: tuple[PodCase, ...]
) -> Iterator[Hit]:
    """Init containers fail the same way."""
    pod, used = placed
    taken = taken_for_granted(comparison.state, used)
    for container in _limited(pod):
        looks = [(case, _failing(comparison.node.name, pod, container, used, case)) for case in cases]
        yield from (narrowed(hit, taken) for hit in pod_hits(pod, container, looks, _CRITICAL))


FAILING_STARTS = PodRule(MAY_NOT_START, _failing_starts, _is_limited)
"""CGA301."""


def _failing(node: str, pod: Pod, container: Container, used: str, case: PodCase) -> Look | None:
    now, then = case.case.now, case.case.then
    if not cannot_start(pod, container, then, used):
        return None
    already = cannot_start(pod, container, now, used)

    def words() -> tuple[str, str]:
        limit = container_limit(container, pod, then.kubelet_version) or 0
        own, of_pod = container_quota(container, pod, then, then.runtime(used)), pod_quota(pod, then)
        kubelet = then.kubelet_version or "of unknown version"
        seen = (
            f"Container {container.name} of {pod.namespace}/{pod.name} on {node}: its limit of {limit}m is written as {own} "
            f"us, more than the {of_pod} us of its pod (cgroup v1, {then.runtime(used)}, kubelet {kubelet})."
        )
        of_the_pod = _decides(pod, then)
        whose = " of the pod" if of_the_pod else ""
        # The smallest quota may be that of more than a step.
        write = _step(quota_to_milli(milli_to_quota(limit, then.period_us), then.period_us))
        further = "; ".join(_goes_with(pod, write, of_the_pod))
        by_then = "before the container is next created" if already else "before the move"
        on_v2 = "leave the node on cgroup v2" if now.cgroup == "v2" else "move the node to cgroup v2 first"
        remedy = (
            f"Set the limit{whose} to {write}m, a multiple of 10m{f' ({further})' if further else ''}, {by_then}; or {on_v2}; or "
            "take a kubelet that rounds the pod's quota too (1.33.8 and later in 1.33; 1.35, which starts on cgroup v1 with "
            "failCgroupV1: false only)."
        )
        return seen, remedy

    return Look(float(not already), words, _SO_NOW if already else "")


def _changed_limits(
    _context: Context, _comparison: Comparison, placed: PlacedPod, cases: tuple[PodCase, ...]
) -> Iterator[Hit]:
    pod, used = placed
    for container in _limited(pod):
        looks = [(case, _changed(pod, container, used, case)) for case in cases]
        yield from pod_hits(pod, container, looks, _LOW)


CHANGED_LIMITS = PodRule(LIMIT_CHANGED, _changed_limits, _is_limited)
"""CGA302."""


def _in_force(pod: Pod, container: Container, setup: Setup, used: str) -> int | None:
    """The quota that binds: the smaller of the container's and its pod's; crun keeps the raw one below its scope."""
    runtime = setup.creator(used, setup.left_over(pod.namespace, pod.name, container.name))
    raw = structs.replace(runtime, rounds_quota=runtime.rounds_quota and runtime.name != "crun")
    own, of_pod = container_quota(container, pod, setup, raw), pod_quota(pod, setup)
    return own if own is None or of_pod is None else min(own, of_pod)


def _as_it_acts(pod: Pod, container: Container, acts: str, least: int) -> str:
    """How to write a limit that acts like this: `least` is the smallest, in thousandths of a CPU, that is no smaller."""
    write = _step(least)
    as_it_acts = acts == f"{write}m"
    value = f"as it acts, {acts}, or as another multiple of 10m" if as_it_acts else f"as {write}m, a multiple of 10m"
    of_the_pod = not container.limit_milli
    further = "".join(f" {capital(each)}." for each in _goes_with(pod, write, of_the_pod))
    return f"Write the limit{' of the pod' if of_the_pod else ''} {value}.{further}"


def _decides(pod: Pod, setup: Setup) -> bool:
    """Whether a pod has a limit of its own that the kubelet counts."""
    return bool(pod.limit_milli) and pod_level_resources(setup.kubelet_version)


def _goes_with(pod: Pod, write: int, of_the_pod: bool) -> list[str]:
    """What changes with a limit, of the pod or of a container, that is written as so many thousandths of a CPU.

    No API server takes a container's limit above its pod's, and by a limit of the pod itself alone it makes one Guaranteed,
    whether or not the kubelet counts that.
    """
    over = not of_the_pod and pod.limit_milli is not None and 0 < pod.limit_milli < write
    further = [f"that of the pod, {pod.limit_milli}m, must go up with it"] if over else []
    if pod.qos == "Guaranteed" and (of_the_pod or over):
        further.append("the pod's own request goes with its limit, as the pod is Guaranteed")
    elif pod.qos == "Guaranteed" and not pod.limit_milli:
        further.append("requests go with limits, as the pod is Guaranteed")
    return further


def _step(milli: int) -> int:
    """The next limit that is stored as it is."""
    return -(-milli // _MILLI_A_STEP) * _MILLI_A_STEP


def altered(pod: Pod, container: Container, setup: Setup, used: str) -> int | None:
    """The quota in force, in microseconds a period, of a container that starts, where it is not the limit in its spec."""
    limit = container_limit(container, pod, setup.kubelet_version)
    quota = None if limit is None else _in_force(pod, container, setup, used)
    # A quota is whole microseconds: what is less than one is no change.
    as_written = limit is None or quota is None or abs(quota * 1000 - limit * setup.period_us) < 1000
    return None if as_written or cannot_start(pod, container, setup, used) else quota


def _changed(pod: Pod, container: Container, used: str, case: PodCase) -> Look | None:
    now, then = case.case.now, case.case.then
    limit, quota = container_limit(container, pod, then.kubelet_version), altered(pod, container, then, used)
    if limit is None or quota is None:
        return None
    before = _in_force(pod, container, now, used)
    already = before == quota
    size = (quota * 1000 / then.period_us - limit) / limit

    def words() -> tuple[str, str]:
        acts = as_limit(quota, then.period_us)
        was = "no quota" if before is None else f"{before} us"
        change = f"as it does now ({quota} us)" if already else f"({was} now, {quota} us after)"
        what = f"Container {container.name} of {pod.namespace}/{pod.name}"
        seen = f"{what}: a limit of {limit}m acts as {acts} after the move {change}."
        return seen, _as_it_acts(pod, container, acts, quota_to_milli(quota, then.period_us))

    return Look((0.0 if already else 1000.0) + size, words)
