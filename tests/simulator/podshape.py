"""A Pod as the API server sends it, with all that a real one carries: managedFields, env, probes, conditions.

What all pods of a workload share is encoded once, with marks where a pod differs; a pod is the parts around the marks
joined with its own values.
"""

import re
from functools import lru_cache
from typing import Any

import msgspec

from tests.simulator import dice, managed
from tests.simulator.cluster import POOLS, Ask, Cluster, Workload, node_name, pool

_MARK = re.compile(rb"~(\w+)~")
_ENV = (
    "LOG_LEVEL", "HTTP_PORT", "DB_HOST", "DB_NAME", "OTEL_ENDPOINT", "REDIS_URL", "FEATURE_FLAGS", "CACHE_TTL_SECONDS",
)  # fmt: skip
_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


def pod(cluster: Cluster, position: int) -> bytes:
    """The pod at a position of the list, as an item of it: without kind and apiVersion."""
    placed = cluster.pods[position]
    owner = cluster.workloads[placed.workload]
    rolled = dice.roll(cluster.seed, "pod", placed.namespace, placed.name)
    level = pool(placed.node).minor if placed.node >= 0 else 0
    parts, marks = _template(cluster.seed, owner, level)
    age = 1000 + owner.index * 173 % 5_000_000 + dice.number(rolled, 8, 60_000)
    address = f"10.{64 + (placed.node >> 8)}.{placed.node & 255}.{2 + dice.number(rolled, 9, 250)}"
    values = {
        b"name": placed.name,
        b"uid": dice.uuid(rolled),
        b"revision": str(1_000_000 + position),
        b"mount": dice.replica_suffix(rolled[16:], 0),
        b"replica": str(placed.replica),
        b"node": node_name(placed.node) if placed.node >= 0 else "",
        b"host": f"10.{placed.node >> 16}.{placed.node >> 8 & 255}.{placed.node & 255}",
        b"address": address,
        b"created": dice.stamp(age),
        b"scheduled": dice.stamp(age - 1),
        b"initialized": dice.stamp(age - 2),
        b"started": dice.stamp(age - 3 - dice.number(rolled, 10, 9)),
        b"ready": dice.stamp(age - 14),
        b"ended": dice.stamp(age - 400),
    }
    for place in range(len(owner.containers)):
        digest = dice.roll(cluster.seed, "container", placed.namespace, placed.name, place)
        values[b"id%d" % place] = digest[:32].hex()
    out = [parts[0]]
    for mark, part in zip(marks, parts[1:], strict=True):
        out += (values[mark].encode(), part)
    return b"".join(out)


@lru_cache(maxsize=64)
def _template(seed: int, owner: Workload, level: int) -> tuple[list[bytes], list[bytes]]:
    """The bytes between the marks, and the marks. `level` is the minor version of the kubelet, 0 without a node."""
    pieces = _MARK.split(msgspec.json.encode(_pod(seed, owner, level)))
    return pieces[::2], pieces[1::2]


def _pod(seed: int, owner: Workload, level: int) -> dict[str, Any]:
    spec = _spec(seed, owner, level)
    metadata: dict[str, Any] = {
        "name": "~name~",
        "namespace": owner.namespace,
        "uid": "~uid~",
        "resourceVersion": "~revision~",
        "creationTimestamp": "~created~",
        "labels": labels(owner),
        "annotations": _annotations(seed, owner),
    }
    if owner.kind in ("ReplicaSet", "DaemonSet", "Job"):
        metadata["generateName"] = f"{owner.owner}-"
    if owner.owner:
        metadata["ownerReferences"] = [owner_reference(seed, owner)]
    status = _status(owner, level)
    metadata["managedFields"] = managed.of_pod(metadata, spec, status)
    return {"metadata": metadata, "spec": spec, "status": status}


def labels(owner: Workload) -> dict[str, str]:
    """The labels of a workload's pods."""
    common = {"app": owner.name, "app.kubernetes.io/instance": owner.name, "app.kubernetes.io/part-of": owner.namespace}
    if owner.kind == "ReplicaSet":
        return {**common, "pod-template-hash": owner.owner.rpartition("-")[2]}
    if owner.kind == "Job":
        return {**common, "batch.kubernetes.io/job-name": owner.owner, "job-name": owner.owner}
    if owner.kind == "StatefulSet":
        return {
            **common,
            "apps.kubernetes.io/pod-index": "~replica~",
            "statefulset.kubernetes.io/pod-name": "~name~",
        }
    return common


def owner_reference(seed: int, owner: Workload) -> dict[str, Any]:
    """The entry of ownerReferences that names a pod's controller."""
    return {
        "apiVersion": "batch/v1" if owner.kind == "Job" else "apps/v1",
        "kind": owner.kind,
        "name": owner.owner,
        "uid": dice.uuid(dice.roll(seed, owner.kind, owner.index)),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _annotations(seed: int, owner: Workload) -> dict[str, str]:
    config = dice.roll(seed, "config", owner.index).hex()
    return {
        "checksum/config": config[:64],
        "checksum/secrets": config[64:],
        "kubectl.kubernetes.io/default-container": owner.containers[0].name,
        "kubectl.kubernetes.io/restartedAt": dice.stamp(owner.index + 90_000),
        "prometheus.io/path": "/metrics",
        "prometheus.io/port": "9090",
        "prometheus.io/scrape": "true",
    }


def container(owner: Workload, ask: Ask, mounts: bool = True) -> dict[str, Any]:
    """A container's spec; a pod template's has no mount of a token."""
    first = ask.name == owner.containers[0].name
    names = _ENV if first else _ENV[:3]
    env: list[dict[str, Any]] = [{"name": name, "value": f"{name.lower()}.{owner.name}.svc"} for name in names]
    env.append({"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}})
    if first:
        secret = {"name": f"{owner.name}-db", "key": "password"}
        env.append({"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": secret}})
    token = {
        "name": "kube-api-access-~mount~",
        "readOnly": True,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }
    probe = {
        "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    return {
        "name": ask.name,
        "image": f"registry.example/{owner.name}/{ask.name}:1.{owner.index % 40}.{owner.index % 7}",
        "args": ["--config=/etc/app/config.yaml", f"--listen-name={owner.name}"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": env,
        "resources": resources(ask),
        "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}, *([token] if mounts else [])],
        **({"livenessProbe": probe, "readinessProbe": probe} if first else {}),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"capabilities": {"drop": ["ALL"]}, "allowPrivilegeEscalation": False},
    }


def resources(ask: Ask) -> dict[str, Any]:
    """limits and requests, as far as they are given."""
    said: dict[str, Any] = {}
    for key, cpu, memory in (("limits", ask.cpu_limit, ask.memory_limit), ("requests", ask.cpu, ask.memory)):
        amounts = {**({"cpu": quantity(cpu)} if cpu else {}), **({"memory": f"{memory}Mi"} if memory else {})}
        if amounts:
            said[key] = amounts
    return said


def quantity(milli: int) -> str:
    """Millicores as the API server writes them."""
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def _spec(seed: int, owner: Workload, level: int) -> dict[str, Any]:
    token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    root = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    downward = {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}}
    taints = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": owner.name}},
    }
    spec: dict[str, Any] = {
        "volumes": [
            {"name": "config", "configMap": {"name": f"{owner.name}-config", "defaultMode": 420}},
            {"name": "kube-api-access-~mount~", "projected": {"sources": [token, root, downward], "defaultMode": 420}},
        ],
        "containers": [container(owner, each) for each in owner.containers],
        "restartPolicy": "Never" if owner.kind == "Job" else "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": owner.name,
        "serviceAccount": owner.name,
        **({"nodeName": "~node~"} if level else {}),
        "securityContext": {"runAsUser": 1000, "runAsNonRoot": True, "fsGroup": 1000},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for key in taints
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "topologySpreadConstraints": [spread],
    }
    if owner.runtime_class:
        spec["runtimeClassName"] = owner.runtime_class
    if owner.runtime_class == "kata":
        spec["overhead"] = {"cpu": "250m", "memory": "120Mi"}
    return spec


def _condition(kind: str, when: str, **more: str) -> dict[str, Any]:
    return {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": when, **more}


def _status(owner: Workload, level: int) -> dict[str, Any]:
    if not level:
        why = f"0/{len(POOLS)} nodes are available: {len(POOLS)} Insufficient cpu."
        waits = _condition("PodScheduled", "~created~", reason="Unschedulable", message=why) | {"status": "False"}
        return {"phase": "Pending", "conditions": [waits], "qosClass": owner.qos}
    marks = ("~started~", "~initialized~", "~ready~", "~ready~", "~scheduled~")
    conditions = [_condition(kind, when) for kind, when in zip(_CONDITIONS, marks, strict=True)]
    if owner.finished:
        for each in conditions:
            each.update({} if each["type"] in ("Initialized", "PodScheduled") else {"reason": "PodCompleted"})
            each["status"] = "True" if each["type"] in ("Initialized", "PodScheduled") else "False"
    statuses = [_container_status(owner, place, level) for place in range(len(owner.containers))]
    return {
        **({"observedGeneration": 1} if level >= 34 else {}),
        "phase": "Succeeded" if owner.finished else "Running",
        "conditions": conditions,
        "hostIP": "~host~",
        "hostIPs": [{"ip": "~host~"}],
        "podIP": "~address~",
        "podIPs": [{"ip": "~address~"}],
        "startTime": "~scheduled~",
        "containerStatuses": sorted(statuses, key=lambda each: str(each["name"])),
        "qosClass": owner.qos,
    }


def _container_status(owner: Workload, place: int, level: int) -> dict[str, Any]:
    ask = owner.containers[place]
    spec = container(owner, ask)
    identity = f"containerd://~id{place}~"
    done = {
        "exitCode": 0,
        "reason": "Completed",
        "startedAt": "~started~",
        "finishedAt": "~ended~",
        "containerID": identity,
    }
    status: dict[str, Any] = {
        "name": ask.name,
        "state": {"terminated": done} if owner.finished else {"running": {"startedAt": "~started~"}},
        "lastState": {},
        "ready": not owner.finished,
        "restartCount": 0,
        "image": spec["image"],
        "imageID": f"registry.example/{owner.name}/{ask.name}@sha256:{dice.roll(0, spec['image'])[:32].hex()}",
        "containerID": identity,
        "started": not owner.finished,
    }
    if level >= 33:
        said = resources(ask)
        status |= {**({"allocatedResources": said["requests"]} if "requests" in said else {}), "resources": said}
    if level >= 36:
        status["volumeMounts"] = [
            {**mount, **({"recursiveReadOnly": "Disabled"} if "readOnly" in mount else {})}
            for mount in spec["volumeMounts"]
        ]
    return status
