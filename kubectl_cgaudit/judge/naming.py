"""Workloads that two audits may know by two owners: one read ReplicaSets or Jobs, the other made do with names."""

from kubectl_cgaudit.judge.audit import Coverage

_NAMED_BY_PODS = frozenset({"Pod", "StatefulSet", "DaemonSet"})


def may_differ(kind: str | None, one: Coverage, other: Coverage) -> bool:
    """Whether a workload of this kind in one audit may be one of another kind or name in the other: a Rollout is taken for a
    Deployment where its ReplicaSet was not read.
    """
    return one.workload_names != other.workload_names and kind is not None and kind not in _NAMED_BY_PODS
