"""An audit of an older schema, completed to today's from what is in it."""

from collections import Counter

from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import SCHEMA_VERSION, Audit, Change, WeightCount, WorkloadAudit
from kubectl_cgaudit.judge.pods import relative, rounded


def upgraded(audit: Audit) -> Audit:
    """The audit with the fields that its schema did not have. What nothing in it says, such as QoS classes, stays empty."""
    if audit.schema_version != "1.0":
        return audit
    workloads = tuple(_with_extremes(workload) for workload in audit.workloads)
    containers = [container for workload in workloads for pod in workload.pods for container in pod.containers]
    return replace(
        audit,
        schema_version=SCHEMA_VERSION,
        workloads=workloads,
        weights=_weights(audit),
        container_count=len(containers),
    )


def _with_extremes(workload: WorkloadAudit) -> WorkloadAudit:
    """The workload with how much is open, and where its most moved container loses least."""
    worst = workload.inside_pod
    found = [
        Change(pod.name, container.name, pod.node, case.when, before, after, change)
        for pod in workload.pods
        for container in pod.containers
        if worst and container.name == worst.container
        for case in container.cases
        for before, after in [(case.before.in_pod, case.after.in_pod)]
        if before is not None and after is not None and (change := rounded(relative(before, after))) is not None
    ]
    return replace(
        workload,
        inside_pod_best=max(found, key=lambda each: (each.change, each.pod, each.when), default=None),
        possibilities=max((len(pod.cases) for pod in workload.pods), default=0),
    )


def _weights(audit: Audit) -> tuple[WeightCount, ...]:
    counts: Counter[tuple[object, ...]] = Counter()
    for workload in audit.workloads:
        for pod in workload.pods:
            for container in pod.containers:
                milli = container.request_milli if container.request_milli is not None else container.limit_milli
                for case in container.cases:
                    before, after = case.before, case.after
                    counts[milli, before.version, before.value, after.version, after.value] += 1
    ordered = sorted(counts.items(), key=lambda entry: [(-1 if each is None else each) for each in entry[0]])
    return tuple(WeightCount(*key, amount) for key, amount in ordered)  # type: ignore[call-arg, arg-type]
