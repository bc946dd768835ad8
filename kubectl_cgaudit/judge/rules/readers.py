"""CGA401: programs that read cpu.weight, or what is made of it, and misread it."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from kubectl_cgaudit.collect.model import Container, Node, Pod
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.judge.compare import Comparison, PodCase
from kubectl_cgaudit.judge.rules import jvm
from kubectl_cgaudit.judge.rules.catalogue import MISREADS_WEIGHT
from kubectl_cgaudit.judge.rules.context import Context, Hit, Pairs, PodRule, graded, pod_hits
from kubectl_cgaudit.judge.rules.looks import Look
from kubectl_cgaudit.predict.tree import Cgroup

_CADVISOR = re.compile(r"(?:^|/)cadvisor$", re.ASCII)
_GRADED = graded((2.0, "medium"))


def _misreaders(
    _context: Context, comparison: Comparison, placed: PlacedPod, cases: tuple[PodCase, ...]
) -> Iterator[Hit]:
    """Containers whose number changes or is read."""
    pod, _ = placed
    for index, (container, _) in enumerate(cases[0].before.containers):
        looks = [(case, _look(comparison.node, pod, container, index, case)) for case in cases]
        yield from pod_hits(pod, container, looks, _GRADED)


def _may_read(_context: Context, pod: Pod, _pairs: Pairs) -> bool:
    return any(traits(container) != _READS_NOTHING for container in pod.containers)


MISREADERS = PodRule(MISREADS_WEIGHT, _misreaders, _may_read)
"""CGA401."""


def traits(container: Container) -> object:
    """What this module looks at in a container, beside its amounts of CPU."""
    return _image_traits(container.image), container.sees_cgroups


_READS_NOTHING = ((None, False), False)


def count_cpus(containers: Iterable[Container]) -> bool:
    """Whether what is found depends on how many CPUs the node has."""
    return any(jvm.old_jvm(container.image) for container in containers)


@lru_cache(maxsize=4096)
def _image_traits(image: str) -> object:
    return jvm.old_jvm(image), bool(_CADVISOR.search(jvm.split(image)[0]))


def _look(node: Node, pod: Pod, container: Container, index: int, case: PodCase) -> Look | None:
    before, after = case.before.containers[index][1], case.after.containers[index][1]
    name = f"Container {container.name} of {pod.namespace}/{pod.name}"
    found = jvm.old_jvm(container.image)
    if found:
        java, fault = found
        runs = f"{name} runs {container.image} ({java})"
        look = _blind(runs, before, after) if fault == "blind" else _misreads(runs, node, before, after)
        if look:
            return look
    changes = (before.version, before.value) != (after.version, after.value)
    if changes and _CADVISOR.search(jvm.split(container.image)[0]):
        seen = f"{name} runs cAdvisor: its container_spec_cpu_shares inverts the linear formula (1024 shares show as 2597)."
        remedy = "Do not alert on container_spec_cpu_shares across the move (cadvisor#3737); use CPU requests."
        return Look(1.0, lambda: (seen, remedy))
    if changes and container.sees_cgroups:
        seen = f"{name} mounts the host's cgroup tree: it may read cpu.shares or cpu.weight, which change."
        remedy = "Check that its version knows cgroup v2 and both formulas (Datadog's agent does from #43760 on)."
        return Look(0.5, lambda: (seen, remedy))
    return None


def _blind(runs: str, before: Cgroup, after: Cgroup) -> Look | None:
    # In a sandbox it sees the cgroups of that, whatever the node has.
    if before.value is None or (before.version, after.version) != ("v1", "v2"):
        return None
    seen = f"{runs}, which knows no cgroup v2: it then sees every CPU and all memory of the host."
    remedy = (
        f"Move to JDK {jvm.FIXED_IN} (8u372 knows cgroup v2, but counts CPUs from cpu.weight), or set "
        "-XX:ActiveProcessorCount and -Xmx."
    )
    return Look(2.0, lambda: (seen, remedy))


def _misreads(runs: str, node: Node, before: Cgroup, after: Cgroup) -> Look | None:
    # With a CPU limit it counts from the quota and leaves the shares alone (PreferContainerQuotaForCPUCount).
    if before.value is None or after.value is None or after.quota_us is not None:
        return None
    host = max(1, node.capacity_milli // 1000)
    was, will = (_counts(cgroup, host) for cgroup in (before, after))
    if was == will:
        return None
    seen = f"{runs}: after the move it {_reads(after, host)}; now it {_reads(before, host)}."
    if jvm.cpus(after.version, after.value) and will == min(host, jvm.asked(after.shares or 0)):
        remedy = "The new count is what it asks for: expect thread pools of that size, or set -XX:ActiveProcessorCount."
        return Look(1.0, lambda: (seen, remedy))
    remedy = f"Move to JDK {jvm.FIXED_IN}, or set -XX:ActiveProcessorCount."
    return Look(2.0, lambda: (seen, remedy))


def _counts(cgroup: Cgroup, host: int) -> int:
    return min(host, jvm.cpus(cgroup.version, cgroup.value or 0) or host)


def _reads(cgroup: Cgroup, host: int) -> str:
    number = f"{cgroup.value} shares" if cgroup.version == "v1" else f"weight {cgroup.value}"
    if jvm.cpus(cgroup.version, cgroup.value or 0) is None:
        return f"takes {number} for no shares set and sees every CPU of the host"
    count = _counts(cgroup, host)
    return f"counts {count} CPU{'s' if count > 1 else ''} from {number}"
