"""The workload a pod belongs to: its top owner, never its ReplicaSet."""

import re

from kubectl_cgaudit.collect.model import Cluster, Owner, Pod

# A CronJob names its Jobs after the scheduled minute (seconds until 1.20): kubernetes pkg/controller/cronjob.
_SCHEDULED = re.compile(r"(?P<name>.+)-\d{8,10}", re.ASCII)


def workload(pod: Pod, cluster: Cluster) -> Owner:
    """The top owner of a pod; a pod that nothing controls is its own workload."""
    owner = pod.controller
    if owner is None or owner.kind == "Node":
        return Owner("Pod", pod.name)
    if owner.kind == "ReplicaSet":
        key = (pod.namespace, owner.name)
        if cluster.replicasets is not None and key in cluster.replicasets:
            return cluster.replicasets[key] or owner
        return _deployment(owner, pod.template_hash)
    if owner.kind == "Job":
        key = (pod.namespace, owner.name)
        if cluster.jobs is not None and key in cluster.jobs:
            return cluster.jobs[key] or owner
        return _cronjob(owner)
    return owner


def _deployment(replicaset: Owner, template_hash: str | None) -> Owner:
    suffix = f"-{template_hash}"
    if template_hash and replicaset.name.endswith(suffix) and len(replicaset.name) > len(suffix):
        return Owner("Deployment", replicaset.name[: -len(suffix)])
    return replicaset


def _cronjob(job: Owner) -> Owner:
    found = _SCHEDULED.fullmatch(job.name)
    return Owner("CronJob", found["name"]) if found else job
