"""The rules' titles and why each matters. Ids are stable."""

from msgspec import Struct

from kubectl_cgaudit.detect.state import SYSTEM_SLICE
from kubectl_cgaudit.judge.audit import Finding, Severity, Subject, SubjectKind


class Rule(Struct, frozen=True):
    """A rule of the catalogue."""

    id: str
    about: SubjectKind
    gravest: Severity
    """The greatest severity it has where no policy sets another."""
    title: str
    why: str

    def finding(self, severity: Severity, subject: Subject, when: str, seen: str, remedy: str) -> Finding:
        """A finding of this rule."""
        return Finding(self.id, severity, self.title, subject, when, seen, self.why, remedy)


INCOMPLETE = Rule(
    "CGA001",
    "audit",
    "high",
    "audit incomplete",
    "What could not be read is not in the numbers, so no line of this audit proves that nothing else changes.",
)
EXCEPTION = Rule(
    "CGA002",
    "audit",
    "low",
    "exception expired or unused",
    "An exception that no longer holds must not look as if it did: what it covered counts again. One that covers nothing is "
    "a typo, or its cause is gone, and it would hide the next finding that fits.",
)
V1_NODE = Rule(
    "CGA101",
    "node",
    "critical",
    "cgroup v1 node",
    "A kubelet from 1.35 on refuses to start on cgroup v1 (failCgroupV1): the node does not come back from that upgrade.",
)
UNKNOWN_STATE = Rule(
    "CGA102",
    "node",
    "medium",
    "node state not known",
    "The API does not say which cgroup version or runtime a node has; where it is open, every possibility is predicted "
    "and the range is shown. An open question is not a pass.",
)
PROBABLE_STATE = Rule(
    "CGA102",
    "node",
    "low",
    "node state probable, not checked",
    "What is shown first is what the platform does by default. Who overrode the default has the other case, which is predicted "
    "beside it.",
)
WHO_SET = Rule(
    "CGA102",
    "node",
    "medium",
    "not known who set a value at the root",
    "systemd and a kubelet that enforces a reserve make different weights of one number of shares, and the other way round. Both "
    "are predicted and the range is shown. An open question is not a pass.",
)
CONTRADICTED = Rule(
    "CGA102",
    "node",
    "medium",
    "evidence contradicts itself",
    "One of two things that are each as good as certain is wrong: the states file, or a platform's rule, or the node was "
    "changed since. The numbers follow the stronger one.",
)
BOTH_FORMULAS = Rule(
    "CGA103",
    "node",
    "medium",
    "both formulas on one node",
    "Equal requests carry different numbers in cpu.weight. Containers compete only inside their own pod, and pods carry "
    "the kubelet's weight, so between the pods nothing differs.",
)


def why_it_loses(services: str) -> str:
    """Return why CGA201 matters, where the kubelet and the container runtime run in the top-level cgroup `services`."""
    others = (
        "system.slice (container runtime, kubelet, sshd, agents)"
        if services == SYSTEM_SLICE
        else f"system.slice (sshd, agents) and {services} (container runtime, kubelet)"
    )
    each = "both want" if services == SYSTEM_SLICE else "all want"
    return (
        f"kubepods competes with {others} at the root of the cgroup tree. When {each} all the CPU, the ratio of their weights "
        "decides."
    )


def why_it_outweighs(services: str) -> str:
    """Return why CGA202 matters, likewise."""
    their = "system.slice's weight leaves them"
    if services != SYSTEM_SLICE:
        their = f"the weights of {services} (container runtime, kubelet) and system.slice (sshd) leave them"
    return (
        f"When pods use all the CPU they are allowed, the container runtime, the kubelet and sshd get only what {their}: slow "
        "probes, NotReady nodes, no way to log in. Raising system.slice does not help kernel threads: they compete beside it."
    )


SYSTEM_LOSS = Rule("CGA201", "workload", "high", "loses priority against system processes", why_it_loses(SYSTEM_SLICE))
SYSTEM_OUTWEIGHED = Rule(
    "CGA202", "node", "high", "system processes are outweighed by pods", why_it_outweighs(SYSTEM_SLICE)
)
OVERRIDDEN = Rule(
    "CGA102",
    "node",
    "medium",
    "a default was overridden",
    "The earlier audit took the platform's default for what this node runs, and it runs something else: what that audit said "
    "first of its pods did not hold.",
)
CROSSES_DEFAULT = Rule(
    "CGA203",
    "workload",
    "low",
    "nominal weight crosses the default",
    "This is the number `cat cpu.weight` shows, not the CPU share: a container competes only inside its pod. Programs that "
    "read the number and compare it with the default decide otherwise from now on.",
)
MOVES_INSIDE = Rule(
    "CGA204",
    "workload",
    "high",
    "CPU moves between containers of one pod",
    "The runtime's formula decides how a pod's CPU is split among its containers. The quadratic one flattens the ratio: "
    "small containers gain what large ones lose. A new runtime alone leaves the pod's own share as it is.",
)
SAME_WEIGHT = Rule(
    "CGA205",
    "workload",
    "low",
    "different requests fall on one weight",
    "The linear formula turns every request of 1m to 28m into weight 1, the quadratic one those of 1m and 2m: against its "
    "siblings such a request counts no more than the least, or none.",
)
NOT_DIVISIBLE = Rule(
    "CGA206",
    "workload",
    "low",
    "weight too small to divide among child cgroups",
    "A container that manages its own cgroups (KEP-5474) divides its weight among them; with so small a number there is "
    "nothing to divide. It matters only to such containers.",
)
BESTEFFORT_GAIN = Rule(
    "CGA207",
    "node",
    "medium",
    "BestEffort pods gain against requests",
    "On cgroup v1 BestEffort counts 2 shares against 1024 for a CPU requested; on v2 weight 1 against 39. When the node is "
    "full, pods without requests take more from those that have them.",
)
MAY_NOT_START = Rule(
    "CGA301",
    "workload",
    "critical",
    "container may not start after the upgrade",
    "On cgroup v1 with the systemd driver, runc from 1.3.2 on writes the container's quota rounded up to 10m; the kubelet "
    "wrote the pod's unrounded, and the kernel refuses a child larger than its parent (runc#4982): "
    "`failed to write cpu.cfs_quota_us: invalid argument`. It is a race: some pods start and some do not, and one that failed "
    "stays broken until it is created anew.",
)
LIMIT_CHANGED = Rule(
    "CGA302",
    "workload",
    "low",
    "limit silently changed",
    "The CPU the container may use is not the limit in its spec: the kubelet raises limits under 10m to 10m, and under the "
    "systemd driver limits are rounded up to a multiple of 10m.",
)
MISREADS_WEIGHT = Rule(
    "CGA401",
    "workload",
    "medium",
    "program that misreads cpu.weight",
    "Some programs turn the number in cpu.weight back into CPUs with the linear formula, or take 100 for 'not set': old JVMs, "
    "cAdvisor's container_spec_cpu_shares, agents with /sys/fs/cgroup. Their decisions change although no CPU share does.",
)
RULES: tuple[Rule, ...] = tuple(rule for rule in list(vars().values()) if isinstance(rule, Rule))
"""All of them; two may share an id."""
IDS: tuple[str, ...] = tuple(sorted({rule.id for rule in RULES}))
