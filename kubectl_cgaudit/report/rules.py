"""The rules: a short name, why each matters, what it is asked about, the gravest severity it has, and where its page is."""

import re
from collections.abc import Iterable

from msgspec import Struct

from kubectl_cgaudit.audit.model import Finding, Severity, SubjectKind

HOMEPAGE = "https://github.com/kubectl-cgaudit/kubectl-cgaudit"
DOCS = f"{HOMEPAGE}/blob/main/docs"
METHOD = f"{DOCS}/method.md"
LIMITS = f"{DOCS}/limits.md"
_ID = re.compile(r"CGA[0-9]{3}")


class Rule(Struct, frozen=True):
    """A rule of the catalogue."""

    id: str
    about: SubjectKind
    gravest: Severity
    """The greatest severity it has where no policy sets another."""
    name: str
    why: str


INCOMPLETE, EXCEPTION, V1_NODE, NODE_STATE, STARTS = "CGA001", "CGA002", "CGA101", "CGA102", "CGA301"
RULES: tuple[Rule, ...] = (
    Rule(
        "CGA001",
        "audit",
        "high",
        "Audit incomplete",
        "Something could not be read, so it is not in the numbers. What was not read may lose CPU too.",
    ),
    Rule(
        "CGA002",
        "audit",
        "low",
        "Exception expired or unused",
        "An expired exception no longer applies: its findings count again. One that matches nothing is a typo or out of date, "
        "and could hide a later finding.",
    ),
    Rule(
        "CGA101",
        "node",
        "critical",
        "Node on cgroup v1",
        "The node runs cgroup v1. A kubelet from 1.35 on refuses to start there unless failCgroupV1 is false.",
    ),
    Rule(
        "CGA102",
        "node",
        "medium",
        "Node state not settled",
        "The Kubernetes API does not say which cgroup version or runtime a node has. Every answer is predicted, the most "
        "plausible first. An open question is not a pass.",
    ),
    Rule(
        "CGA103",
        "node",
        "medium",
        "Two formulas on one node",
        "Equal requests get different numbers in cpu.weight. Between pods nothing differs, because pods carry the kubelet's "
        "weight; containers compete only inside their pod.",
    ),
    Rule(
        "CGA201",
        "workload",
        "high",
        "Workload loses CPU to system services",
        "On a full node, all pods together compete with system services (container runtime, kubelet, sshd). Their weights "
        "decide who gets the CPU, and the move changes the ratio.",
    ),
    Rule(
        "CGA202",
        "node",
        "high",
        "Pods outweigh system services",
        "When pods use all the CPU they may, the container runtime, the kubelet and sshd get very little. Probes become slow, "
        "the node may turn NotReady, and logins may fail.",
    ),
    Rule(
        "CGA203",
        "workload",
        "low",
        "cpu.weight crosses its default",
        "Programs that compare cpu.weight with its default decide otherwise after the move. The number is not a share of CPU: "
        "a container competes only inside its pod.",
    ),
    Rule(
        "CGA204",
        "workload",
        "high",
        "CPU moves between containers of a pod",
        "The runtime's formula divides a pod's CPU among its containers. The formula of runc 1.3.2+ and crun 1.23+ gives small "
        "containers more and large ones less. The pod's own share stays.",
    ),
    Rule(
        "CGA205",
        "workload",
        "low",
        "Different requests get one weight",
        "The linear formula turns every request from 1m to 28m into weight 1. Against its siblings such a request counts no "
        "more than the smallest.",
    ),
    Rule(
        "CGA206",
        "workload",
        "low",
        "Weight too small to divide",
        "A container that manages its own cgroups (KEP-5474) divides its weight among them. So small a weight leaves nothing "
        "to divide. Other containers are not affected.",
    ),
    Rule(
        "CGA207",
        "node",
        "medium",
        "BestEffort pods gain against requests",
        "On a full node, pods without requests take more CPU from pods with requests than before. BestEffort counts 2 shares "
        "against 1024 for a CPU on cgroup v1, and weight 1 against 39 on v2.",
    ),
    Rule(
        "CGA301",
        "workload",
        "critical",
        "Container does not start after the upgrade",
        "On cgroup v1 with the systemd driver, runc 1.3.2+ rounds the container's quota up to 10m, above its pod's quota. The "
        "kernel refuses it (runc#4982): `failed to write cpu.cfs_quota_us: invalid argument`.",
    ),
    Rule(
        "CGA302",
        "workload",
        "low",
        "CPU limit differs from the spec",
        "The kubelet raises limits under 10m to 10m, and the systemd driver rounds limits up to a multiple of 10m. The "
        "container may use more CPU than its spec says.",
    ),
    Rule(
        "CGA401",
        "workload",
        "medium",
        "Program misreads cpu.weight",
        "Some programs turn cpu.weight back into CPUs with the linear formula, or take 100 for 'not set': old JVMs, cAdvisor's "
        "container_spec_cpu_shares, agents with /sys/fs/cgroup. They decide otherwise although no CPU share changes.",
    ),
)
BY_ID = {rule.id: rule for rule in RULES}


def page_of(rule: str) -> str | None:
    """Return the address of the page that explains a rule; None for an unknown rule, as audits are also read from files."""
    return f"{DOCS}/findings/{rule}.md" if _ID.fullmatch(rule) else None


def name_of(rule: str, findings: Iterable[Finding] = ()) -> str:
    """Return the short name of a rule; of an unknown one the title of its first finding, else its id."""
    if rule in BY_ID:
        return BY_ID[rule].name
    return next((finding.title for finding in findings if finding.title), rule)
