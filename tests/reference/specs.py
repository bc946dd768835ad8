"""Random pods as the API server shows them, of every QoS class, with what decides their cgroups.

Part of the reference model: written from the documents alone, to be obviously right and not fast. It must never
import from kubectl_cgaudit.
"""

from random import Random

from tests.reference.amounts import milli
from tests.reference.kubelet import most_at_once
from tests.reference.objects import Raw, read_containers
from tests.reference.statuses import statuses

CPU = "1m 2m 3m 4m 9m 10m 11m 15m 20m 25m 27m 28m 29m 50m 77m 100m 105m 200m 250m 333m 500m 999m 0.1 1 1.5 2 4 16 64"
RARE_CPU = "0 300 1000 2k 500u 1500u 0.0005 1e-1 12345678n 1e1 256 255999m"
MEMORY = {"memory": "1Gi"}


def pod(random: Random, name: str, nodes: list[str], handlers: dict[str, str]) -> Raw:
    """A pod on one of the nodes; `handlers` are those of the RuntimeClasses by name."""
    qos = random.choice(["BestEffort", "Guaranteed", "Burstable", "Burstable", "Burstable"])
    spec: Raw = {
        "nodeName": random.choice(nodes),
        "containers": [_container(random, f"c{number}", qos) for number in range(random.choice([1, 1, 2, 2, 3]))],
    }
    if random.random() < 0.35:
        spec["initContainers"] = [
            _container(random, f"i{number}", qos) | random.choice([{}, {"restartPolicy": "Always"}])
            for number in range(random.choice([1, 2, 3]))
        ]
    if random.random() < 0.1:
        spec["ephemeralContainers"] = [{"name": "debugger", "image": "x:1"}]
    if random.random() < 0.15:
        spec["resources"] = _pod_level(random, spec)
    if handlers and random.random() < 0.4:
        spec["runtimeClassName"] = random.choice(list(handlers))
        if random.random() < 0.4:
            spec["overhead"] = {"cpu": random.choice(["3m", "10m", "250m", "1"])} | MEMORY
    phase = random.choices(["Running", "Pending", "Unknown", "Succeeded", "Failed"], [20, 2, 1, 1, 1])[0]
    status = {"phase": phase, "qosClass": qos_class(spec)} | statuses(random, spec)
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": _metadata(random, name, spec["nodeName"]),
        "spec": spec,
        "status": status,
    }


def cpu(random: Random) -> str:
    """An amount: mostly one on an edge of the arithmetic, rarely one that is written in another way."""
    return random.choice((RARE_CPU if random.random() < 0.05 else CPU).split())


def qos_class(spec: Raw) -> str:
    """The class that the API server gives: https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/."""
    containers = [each["resources"] for each in spec["containers"] + spec.get("initContainers", [])]
    sources = [spec["resources"]] if spec.get("resources") else containers
    requests, limits = _sums(sources, "requests"), _sums(sources, "limits")
    if not requests and not limits:
        return "BestEffort"
    all_limited = all(_positive(each, "limits").keys() == {"cpu", "memory"} for each in sources)
    return "Guaranteed" if all_limited and requests == limits else "Burstable"


def _container(random: Random, name: str, qos: str) -> Raw:
    resources = {"BestEffort": _best_effort, "Guaranteed": _guaranteed, "Burstable": _burstable}[qos](random)
    return {"name": name, "image": "x:1", "resources": resources}


def _best_effort(random: Random) -> Raw:
    return random.choice([{}, {}, {"requests": {}}, {"requests": {"cpu": "0"}}])


def _guaranteed(random: Random) -> Raw:
    amount = {"cpu": random.choice(CPU.split())} | MEMORY
    return {"requests": dict(amount), "limits": dict(amount)}


def _burstable(random: Random) -> Raw:
    less, more = sorted([cpu(random), cpu(random)], key=milli)
    return random.choice(
        [
            {},
            {"requests": {"memory": "1Mi"}},
            {"requests": {"cpu": "0"}, "limits": {"cpu": more}},
            {"requests": {"cpu": less}},
            {"requests": {"cpu": less}},
            {"requests": {"cpu": less}, "limits": {"cpu": more}},
            {"requests": {"cpu": less}, "limits": {"cpu": more}},
            {"requests": {"cpu": more}, "limits": {"cpu": more}},
            {"limits": {"cpu": more}},
        ]
    )


def _pod_level(random: Random, spec: Raw) -> Raw:
    """Resources of the pod as a whole, as the API server takes them: no less than its containers have."""
    containers = tuple(read_containers({"spec": spec, "status": {}}))
    asked = most_at_once(containers, "request")
    request = max(milli(cpu(random)), asked)
    limit = max(milli(cpu(random)), request, *(each.limit or 0 for each in containers))
    requests, limits = {"cpu": f"{request}m"}, {"cpu": f"{limit}m"}
    return random.choice(
        [
            {"requests": requests},
            {"limits": limits},
            {"requests": requests, "limits": limits},
            {"requests": limits | MEMORY, "limits": limits | MEMORY},
            {"requests": MEMORY, "limits": MEMORY},
        ]
    )


def _sums(sources: list[Raw], kind: str) -> dict[str, int]:
    amounts = [_positive(each, kind) for each in sources]
    names = {name for each in amounts for name in each}
    return {name: sum(each.get(name, 0) for each in amounts) for name in names}


def _positive(resources: Raw, kind: str) -> dict[str, int]:
    """What is more than 0 of it."""
    return {name: milli(amount) for name, amount in resources.get(kind, {}).items() if milli(amount)}


def _metadata(random: Random, name: str, node: str) -> Raw:
    meta: Raw = {"name": name, "namespace": random.choice(["a", "b"]), "uid": f"uid-{name}"}
    kind = random.choice(["DaemonSet", "StatefulSet", "Node", "", "", "", ""])
    if kind:
        # A static pod is its node's.
        owner = node if kind == "Node" else f"w{random.randrange(3)}"
        meta["ownerReferences"] = [{"kind": kind, "name": owner, "controller": True}]
    return meta
