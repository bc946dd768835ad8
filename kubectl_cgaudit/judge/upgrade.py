"""An audit of an older schema, completed to today's from what is in it."""

from collections import Counter

from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import SCHEMA_VERSION, Audit, CaseChange, Change, PodAudit, WorkloadAudit
from kubectl_cgaudit.judge.rounding import relative
from kubectl_cgaudit.judge.weights import combinations, counts


def upgraded(audit: Audit) -> Audit:
    """The audit with the fields that its schema did not have. What nothing in it says, such as QoS classes, stays empty."""
    if audit.schema_version != "1.0":
        return audit
    workloads = tuple(_completed(workload) for workload in audit.workloads)
    pods = [pod for workload in workloads for pod in workload.pods]
    return replace(
        audit,
        schema_version=SCHEMA_VERSION,
        workloads=workloads,
        weights=counts(Counter(each for pod in pods for each in combinations(pod))),
        container_count=sum(len(pod.containers) for pod in pods),
    )


def _completed(workload: WorkloadAudit) -> WorkloadAudit:
    """The workload with how much is open, what stops, and where its most moved container loses least."""
    worst = workload.inside_pod
    found = [
        Change(pod.name, container.name, pod.node, case.when, before, after, change)
        for pod in workload.pods
        for container in pod.containers
        if worst and container.name == worst.container
        for case in container.cases
        for before, after in [(case.before.in_pod, case.after.in_pod)]
        if before is not None and after is not None and (change := relative(before, after)) is not None
    ]
    return replace(
        workload,
        pods=tuple(_stopping(pod) if "stops" in pod.effects else pod for pod in workload.pods),
        may_stop="stops" in workload.effects,
        inside_pod_best=min(found, key=lambda each: (-each.change, each.pod, each.when), default=None),
        possibilities=max((len(pod.cases) for pod in workload.pods), default=0),
    )


def _stopping(pod: PodAudit) -> PodAudit:
    """The pod with what its effects say of every case."""

    def marked(cases: tuple[CaseChange, ...]) -> tuple[CaseChange, ...]:
        return tuple(replace(case, stops=True) for case in cases)

    containers = tuple(replace(each, cases=marked(each.cases)) for each in pod.containers)
    return replace(pod, cases=marked(pod.cases), containers=containers)
