"""An audit of another minor schema version, in today's: an older one completed from what is in it."""

from collections import Counter
from collections.abc import Mapping

from msgspec.structs import replace

from kubectl_cgaudit.cgroups.version import KubeletVersion, refuses_v1
from kubectl_cgaudit.judge.audit import (
    SCHEMA_VERSION,
    Audit,
    CaseChange,
    Change,
    NodeCase,
    NodeMoment,
    PodAudit,
    WorkloadAudit,
)
from kubectl_cgaudit.judge.rounding import relative
from kubectl_cgaudit.judge.weights import combinations, counts


def upgraded(audit: Audit) -> Audit:
    """The audit in today's schema, with the fields that an older one did not have and without those that a newer one added.

    What nothing in it says, such as QoS classes, stays empty.
    """
    if audit.schema_version != "1.0":
        return replace(audit, schema_version=SCHEMA_VERSION)
    nodes = tuple(
        replace(node, cases=tuple(replace(case, stops=_is_lost(case)) for case in node.cases)) for node in audit.nodes
    )
    lost = {node.name: tuple(case.stops for case in node.cases) for node in nodes}
    workloads = tuple(_completed(workload, lost) for workload in audit.workloads)
    pods = [pod for workload in workloads for pod in workload.pods]
    return replace(
        audit,
        schema_version=SCHEMA_VERSION,
        nodes=nodes,
        workloads=workloads,
        weights=counts(Counter(each for pod in pods for each in combinations(pod))),
        container_count=sum(len(pod.containers) for pod in pods),
    )


def _is_lost(case: NodeCase) -> bool:
    """Whether the kubelet of after does not start on the node's cgroup version, which that of before does."""
    return _refuses(case.after) and not _refuses(case.before)


def _refuses(moment: NodeMoment) -> bool:
    return moment.cgroup == "v1" and refuses_v1(KubeletVersion.parse(moment.kubelet))


def _completed(workload: WorkloadAudit, lost: Mapping[str, tuple[bool, ...]]) -> WorkloadAudit:
    """The workload with how much is open, what stops, and where its most moved container loses least."""
    worst = workload.inside_pod
    pods = tuple(_stopping(pod, lost[pod.node]) for pod in workload.pods)
    found = [
        Change(pod.name, container.name, pod.node, case.when, before, after, change)
        for pod in workload.pods
        for container in pod.containers
        if worst and container.name == worst.container
        for case, gone in zip(container.cases, lost[pod.node], strict=True)
        for before, after in [(case.before.in_pod, case.after.in_pod)]
        if not gone and before is not None and after is not None and (change := relative(before, after)) is not None
    ]
    return replace(
        workload,
        pods=pods,
        may_stop=any(case.stops for pod in pods for case in pod.cases),
        inside_pod_best=min(found, key=lambda each: (-each.change, each.pod, each.when), default=None),
        possibilities=max((len(pod.cases) for pod in workload.pods), default=0),
    )


def _stopping(pod: PodAudit, lost: tuple[bool, ...]) -> PodAudit:
    """The pod with what its effects say of every case, and its node of each."""

    def marked(cases: tuple[CaseChange, ...]) -> tuple[CaseChange, ...]:
        return tuple(replace(case, stops=always or gone) for case, gone in zip(cases, lost, strict=True))

    always = "stops" in pod.effects
    if not always and not any(lost):
        return pod
    containers = tuple(replace(each, cases=marked(each.cases)) for each in pod.containers)
    return replace(pod, cases=marked(pod.cases), containers=containers)
