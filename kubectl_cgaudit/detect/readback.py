"""What a pod's own status proves: from kubelet 1.36 on it is read back from the pod's cgroup.

`status.resources.requests.cpu` is `ceil((2 + ((w - 1) * 262142) // 9999) * 1000 / 1024)` for a weight `w`. A
Running pod that shows 975m for 1000m is on cgroup v2, and its kubelet wrote the linear weight 39.
Source: kubernetes pkg/kubelet/kubelet_pods.go and pkg/kubelet/cm/cgroup_manager_linux.go, 1.36.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from kubectl_cgaudit.cgroups.weights import FORMULAS, Formula, linear_inverse, milli_to_shares, weight_of
from kubectl_cgaudit.collect.model import Pod
from kubectl_cgaudit.detect.evidence import Evidence

_SOURCE = "pod.status.resources"
_FROM_SPEC_MILLI = 2


def evidence(pods: Iterable[Pod]) -> Iterator[Evidence]:
    """What the pods of one node prove of it. A pod that shows its request unchanged proves nothing."""
    seen: dict[Formula, list[str]] = defaultdict(list)
    for pod in pods:
        formula = proven_formula(pod)
        if formula:
            seen[formula].append(f"{pod.namespace}/{pod.name} shows {pod.read_back_milli}m for {pod.allocated_milli}m")
    for formula, saw in sorted(seen.items()):
        words = f"{saw[0]}" + (f", and {len(saw) - 1} more pods like it" if len(saw) > 1 else "")
        yield Evidence("cgroup", "v2", "certain", _SOURCE, words)
        yield Evidence("kubelet", formula, "certain", _SOURCE, words)


def proven_formula(pod: Pod) -> Formula | None:
    """The kubelet's formula, if the pod shows a value that only a cgroup v2 weight of that formula explains."""
    allocated, shown = pod.allocated_milli, pod.read_back_milli
    if allocated is None or shown is None or pod.finished or shown <= _FROM_SPEC_MILLI or shown == allocated:
        return None
    shares = milli_to_shares(allocated)
    explained = [formula for formula in FORMULAS if read_back(weight_of(shares, formula)) == shown]
    return explained[0] if len(explained) == 1 else None


def read_back(weight: int) -> int:
    """The CPU in thousandths that the kubelet reads from a weight."""
    return -(-linear_inverse(weight) * 1000 // 1024)
