"""Pods that wait for a node: of them nothing is predicted, and what they belong to is not gone."""

from kubectl_cgaudit.judge.audit import Coverage


def waits(coverage: Coverage, namespace: str, workload: str) -> bool:
    """Whether a pod that has no node yet may be of a workload. Only its name tells: that begins with its workload's."""
    title = f"{namespace}/{workload}"
    return any(pod == title or pod.startswith(f"{title}-") for pod in coverage.pods_without_node)
