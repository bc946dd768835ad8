"""What a pod's workload is known by."""

from kubectl_cgaudit.collect.model import Cluster, Owner, Pod
from kubectl_cgaudit.collect.owners import workload

Key = tuple[str, Owner]
"""Namespace and top owner."""


def key(pod: Pod, cluster: Cluster) -> Key:
    """The key of a pod's workload."""
    return pod.namespace, workload(pod, cluster)
