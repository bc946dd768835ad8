"""Every other object as the API server sends it in a list: a pure function of the cluster and an index."""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from tests.simulator import dice, managed, podshape
from tests.simulator.cluster import Cluster, Workload, node_name, pool
from tests.simulator.kubelets import address, machine

_READY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)
_FEATURES = {
    36: ("ExtendWebSocketsToKubelet", "InPlacePodLevelResourcesVerticalScaling", "RestartAllContainersOnContainerExits")
}
_IMAGES = 20
_RUNTIME_CLASSES = (("crun", "crun"), ("kata", "kata"))
Entry = tuple[str, Callable[[], bytes]]


def node(cluster: Cluster, index: int) -> bytes:
    """The Node of an index."""
    of, name, rolled = pool(index), node_name(index), dice.roll(cluster.seed, "node", index)
    zone = f"eu-west-1{'abc'[index % 3]}"
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/instance-type": of.instance,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": of.instance,
        "pool": of.name,
        "topology.kubernetes.io/region": "eu-west-1",
        "topology.kubernetes.io/zone": zone,
    }
    annotations = {
        "csi.volume.kubernetes.io/nodeid": f'{{"ebs.csi.aws.com":"i-{rolled[:8].hex()}"}}',
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    }
    memory = of.memory_gib << 20
    amounts = {"ephemeral-storage": "104779756Ki", "hugepages-1Gi": "0", "hugepages-2Mi": "0"}
    status: dict[str, Any] = {
        "capacity": {"cpu": podshape.quantity(of.capacity), **amounts, "memory": f"{memory}Ki", "pods": "110"},
        "allocatable": {
            "cpu": podshape.quantity(of.allocatable),
            **amounts,
            "ephemeral-storage": "95491281146",
            "memory": f"{memory - 1_048_576}Ki",
            "pods": "110",
        },
        "conditions": [
            {
                "type": kind,
                "status": said,
                "lastHeartbeatTime": dice.stamp(dice.number(rolled, 9, 300)),
                "lastTransitionTime": dice.stamp(5_000_000 + index),
                "reason": reason,
                "message": message,
            }
            for kind, said, reason, message in _READY
        ],
        "addresses": [
            {"type": "InternalIP", "address": address(index)},
            {"type": "Hostname", "address": name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": machine(cluster.seed, index),
        "images": [_image(cluster, (index * 7 + at) % 400) for at in range(_IMAGES)],
    }
    if of.handlers:
        status["runtimeHandlers"] = [
            {"name": handler, "features": {"recursiveReadOnlyMounts": True, "userNamespaces": spaces}}
            for handler, spaces in of.handlers
        ]
    if of.minor in _FEATURES:
        status |= {"features": {"supplementalGroupsPolicy": True}, "declaredFeatures": _FEATURES[of.minor]}
    conditions: dict[str, Any] = {f'k:{{"type":"{kind}"}}': {"f:lastHeartbeatTime": {}} for kind, *_ in _READY}
    meta = {"f:annotations": managed.fields(annotations), "f:labels": managed.fields(labels)}
    metadata = {
        "name": name,
        "uid": dice.uuid(rolled),
        "resourceVersion": str(900_000 + index),
        "creationTimestamp": dice.stamp(5_000_100 + index),
        "labels": labels,
        "annotations": annotations,
        "managedFields": [
            _managed("kubelet", dice.stamp(5_000_100 + index), {"f:metadata": meta}),
            _managed("kubelet", dice.stamp(dice.number(rolled, 9, 300)), {"f:status": {"f:conditions": conditions}}),
        ],
    }
    return msgspec.json.encode(
        {"metadata": metadata, "spec": {"providerID": f"sim:///{zone}/{name}"}, "status": status}
    )


def _image(cluster: Cluster, index: int) -> dict[str, Any]:
    digest = dice.roll(cluster.seed, "image", index)[:32].hex()
    name = f"registry.example/image-{index}"
    return {"names": [f"{name}@sha256:{digest}", f"{name}:1.{index}"], "sizeBytes": 10_000_000 + index * 654_321}


def _managed(manager: str, time: str, owned: dict[str, Any]) -> dict[str, Any]:
    entry = {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1"}
    return {**entry, "fieldsV1": owned, **({"subresource": "status"} if "f:status" in owned else {})}


def owner(cluster: Cluster, of: Workload) -> bytes:
    """The ReplicaSet or Job of a workload, and what owns it: a Deployment or a CronJob."""
    rolled = dice.roll(cluster.seed, of.kind, of.index)
    above = {"ReplicaSet": ("apps/v1", "Deployment"), "Job": ("batch/v1", "CronJob")}[of.kind]
    labels = podshape.labels(of)
    metadata: dict[str, Any] = {
        "name": of.owner,
        "namespace": of.namespace,
        "uid": dice.uuid(rolled),
        "resourceVersion": str(950_000 + of.index),
        "generation": 1,
        "creationTimestamp": dice.stamp(6_000_000 + of.index),
        "labels": labels,
        "annotations": {"meta.helm.sh/release-name": of.name, "meta.helm.sh/release-namespace": of.namespace},
    }
    if of.kind == "ReplicaSet" or of.cron:
        named = {"apiVersion": above[0], "kind": above[1], "name": of.name}
        uid = dice.uuid(dice.roll(cluster.seed, above[1], of.index))
        metadata["ownerReferences"] = [{**named, "uid": uid, "controller": True, "blockOwnerDeletion": True}]
    containers = [podshape.container(of, each, mounts=False) for each in of.containers]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers, "serviceAccountName": of.name}}
    selector = {"matchLabels": {"app": of.name}}
    if of.kind == "ReplicaSet":
        spec: dict[str, Any] = {"replicas": of.replicas, "selector": selector, "template": template}
        status: dict[str, Any] = {"replicas": of.replicas, "readyReplicas": of.replicas, "observedGeneration": 1}
    else:
        spec = {"parallelism": of.replicas, "completions": of.replicas, "backoffLimit": 6, "template": template}
        status = {"succeeded": of.replicas} if of.finished else {"active": of.replicas, "ready": of.replicas}
    written = {"f:metadata": {"f:labels": managed.fields(labels)}, "f:spec": managed.fields(spec)}
    metadata["managedFields"] = [_managed("kube-controller-manager", dice.stamp(6_000_000 + of.index), written)]
    return msgspec.json.encode({"metadata": metadata, "spec": spec, "status": status})


def runtime_class(cluster: Cluster, index: int) -> bytes:
    """The RuntimeClass of an index."""
    name, handler = _RUNTIME_CLASSES[index]
    metadata = {
        "name": name,
        "uid": dice.uuid(dice.roll(cluster.seed, "runtimeclass", index)),
        "resourceVersion": str(420 + index),
        "creationTimestamp": dice.stamp(7_000_000),
    }
    overhead = {"overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}}} if name == "kata" else {}
    return msgspec.json.encode({"metadata": metadata, "handler": handler, **overhead})


def namespace(cluster: Cluster, name: str) -> bytes:
    """A Namespace."""
    metadata = {
        "name": name,
        "uid": dice.uuid(dice.roll(cluster.seed, "namespace", name)),
        "resourceVersion": "300",
        "creationTimestamp": dice.stamp(7_000_000),
        "labels": {"kubernetes.io/metadata.name": name},
    }
    body = {"metadata": metadata, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    return msgspec.json.encode(body)


def event_name(cluster: Cluster, index: int, reason: str) -> str:
    """The name of a node's event."""
    return f"{node_name(index)}.{dice.roll(cluster.seed, 'event', index, reason)[:8].hex()}"


def event(cluster: Cluster, index: int, reason: str) -> bytes:
    """An Event of a node: CgroupV1 or Starting."""
    name, when = node_name(index), dice.stamp(2000 + index % 1500)
    messages = {
        "CgroupV1": "cgroup v1 support is in maintenance mode, please migrate to cgroup v2",
        "Starting": "Starting kubelet.",
    }
    metadata = {
        "name": event_name(cluster, index, reason),
        "namespace": "default",
        "uid": dice.uuid(dice.roll(cluster.seed, "event-uid", index, reason)),
        "resourceVersion": str(990_000 + index),
        "creationTimestamp": when,
    }
    body = {
        "metadata": metadata,
        "involvedObject": {"kind": "Node", "name": name, "uid": name},
        "reason": reason,
        "message": messages[reason],
        "source": {"component": "kubelet", "host": name},
        "firstTimestamp": when,
        "lastTimestamp": when,
        "count": 1,
        "type": "Warning" if reason == "CgroupV1" else "Normal",
        "eventTime": None,
        "reportingComponent": "kubelet",
        "reportingInstance": name,
    }
    return msgspec.json.encode(body)


def entries(cluster: Cluster, resource: str) -> list[Entry]:
    """The objects of a resource in the order of the API: each key, and what renders it."""
    if resource == "pods":
        return [
            (f"/{each.namespace}/{each.name}", partial(podshape.pod, cluster, at))
            for at, each in enumerate(cluster.pods)
        ]
    found: list[Entry] = []
    if resource == "nodes":
        found = [(f"/{node_name(at)}", partial(node, cluster, at)) for at in range(cluster.size.nodes)]
    elif resource in ("replicasets", "jobs"):
        kind = {"replicasets": "ReplicaSet", "jobs": "Job"}[resource]
        owners = [each for each in cluster.workloads if each.kind == kind]
        found = [(f"/{each.namespace}/{each.owner}", partial(owner, cluster, each)) for each in owners]
    elif resource == "runtimeclasses":
        found = [(f"/{name}", partial(runtime_class, cluster, at)) for at, (name, _) in enumerate(_RUNTIME_CLASSES)]
    elif resource == "namespaces":
        found = [(f"/{name}", partial(namespace, cluster, name)) for name in cluster.namespaces]
    elif resource == "events":
        # An event lives for an hour: only kubelets that started lately still show what they run on.
        for at in range(0, cluster.size.nodes, 2):
            for reason in ("Starting", *(["CgroupV1"] if pool(at).cgroup == 1 else [])):
                found.append((f"/default/{event_name(cluster, at, reason)}", partial(event, cluster, at, reason)))
    return sorted(found, key=lambda entry: entry[0])
