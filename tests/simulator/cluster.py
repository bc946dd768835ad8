"""What is in the simulated cluster: its size, node pools, workloads, and which pod runs where."""

from typing import NamedTuple

from msgspec import Struct

from tests.simulator import dice

_WORDS = (
    "checkout",
    "cart",
    "ledger",
    "search",
    "inbox",
    "pricing",
    "media",
    "billing",
    "risk",
    "orders",
    "fleet",
    "geo",
)
_ROLES = ("api", "worker", "web", "sync", "gateway", "cache", "indexer", "stream", "admin", "relay")
_DAEMONS = ("kube-proxy", "node-exporter", "log-shipper", "csi-node", "cni-agent", "gpu-probe")
_REPLICAS = (1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5, 6, 10, 18)
_CONTAINERS = (1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 4, 4)
_REQUESTS = (5, 10, 10, 20, 25, 50, 50, 50, 100, 100, 100, 100, 150, 200, 250, 250, 300, 500, 1000, 2000)
_CONTAINER_NAMES = ("app", "istio-proxy", "metrics", "vault-agent")
_TRIES = 64
_MOST_PODS = 110


class Size(Struct, frozen=True):
    """How large the cluster is."""

    nodes: int = 30
    pods: int = 300


class Pool(Struct, frozen=True):
    """A kind of node. CPU in millicores; `minor` is the kubelet's minor version."""

    name: str
    capacity: int
    allocatable: int
    memory_gib: int
    minor: int
    kubelet: str
    runtime: str
    os: str
    kernel: str
    cgroup: int
    instance: str
    handlers: tuple[tuple[str, bool], ...] = ()


POOLS = (
    Pool(
        "general", 8000, 7910, 32, 33, "v1.33.5-eks-113cf36", "containerd://2.1.4", "Amazon Linux 2023.9.20251027",
        "6.12.53-69.119.amzn2023.x86_64", 2, "m7i.2xlarge", (("", False), ("runc", False)),
    ),
    Pool(
        "legacy", 16000, 15890, 64, 32, "v1.32.9-eks-113cf36", "containerd://1.7.27", "Amazon Linux 2",
        "5.10.245-241.976.amzn2.x86_64", 1, "m5.4xlarge", (("", False), ("runc", False)),
    ),
    Pool(
        "compute", 32000, 31850, 64, 34, "v1.34.1", "containerd://2.1.5", "Ubuntu 24.04.3 LTS",
        "6.8.0-87-generic", 2, "c7i.8xlarge", (("", True), ("crun", True), ("runc", True)),
    ),
    Pool(
        "edge", 16000, 15700, 32, 36, "v1.36.2", "containerd://2.1.9+unknown", "Debian GNU/Linux 13 (trixie)",
        "6.12.48+deb13-cloud-amd64", 2, "m16", (("", True), ("crun", True), ("kata", False), ("runc", True)),
    ),
    Pool(
        "batch", 64000, 63500, 256, 33, "v1.33.13", "containerd://1.6.20", "Debian GNU/Linux 12 (bookworm)",
        "6.1.0-41-cloud-amd64", 1, "m64",
    ),
)  # fmt: skip
_POOL_OF = (0, 0, 1, 2, 0, 1, 3, 2, 4, 3)


class Ask(Struct, frozen=True):
    """What a container asks for: CPU in millicores, memory in MiB; None where it says nothing."""

    name: str
    cpu: int | None
    cpu_limit: int | None
    memory: int | None
    memory_limit: int | None


class Workload(Struct, frozen=True):
    """Pods of one kind. `kind` is that of their owner: ReplicaSet, StatefulSet, DaemonSet, Job, or Pod for none."""

    index: int
    kind: str
    name: str
    namespace: str
    owner: str
    """The name of the pods' owner; empty for bare pods."""
    replicas: int
    containers: tuple[Ask, ...]
    qos: str
    runtime_class: str = ""
    finished: bool = False
    cron: bool = False

    @property
    def cpu(self) -> int:
        """Millicores that one pod reserves."""
        return sum(each.cpu or 0 for each in self.containers) + (250 if self.runtime_class == "kata" else 0)


class Placed(NamedTuple):
    """A pod. `node` is -1 for a pod that waits for one."""

    namespace: str
    name: str
    workload: int
    replica: int
    node: int


class Cluster:
    """A cluster of a size, grown from a seed: the same for the same two, in every process."""

    def __init__(self, size: Size, seed: int = 1) -> None:
        self.size = size
        self.seed = seed
        self.workloads = _workloads(size, seed)
        self.pods = sorted(_place(size, seed, self.workloads), key=lambda pod: f"/{pod.namespace}/{pod.name}")

    @property
    def namespaces(self) -> list[str]:
        """The names of all namespaces, sorted."""
        return sorted({"default", "kube-system", *(each.namespace for each in self.workloads)})

    @property
    def identity(self) -> str:
        """A name for this cluster in file names."""
        return f"{self.seed}-{self.size.nodes}-{self.size.pods}"


def pool(index: int) -> Pool:
    """The pool of a node."""
    return POOLS[_POOL_OF[index % len(_POOL_OF)]]


def node_name(index: int) -> str:
    """The name of a node."""
    return f"{pool(index).name}-{index:05}"


def _workloads(size: Size, seed: int) -> list[Workload]:
    if not size.nodes or not size.pods:
        return []
    daemons = min(len(_DAEMONS) - 1, max(size.pods // size.nodes // 6, 0))
    made = [_daemon(seed, index, size.nodes) for index in range(daemons)]
    left = size.pods - daemons * size.nodes
    namespaces = min(max(4, size.pods // 300), 500)
    while left:
        made.append(workload(seed, len(made), namespaces, left))
        left -= made[-1].replicas
    return made


def _daemon(seed: int, index: int, nodes: int) -> Workload:
    asks = ((100, None), (15, 100), (None, None), (30, None), (25, 250), (10, 10))[index]
    memory = None if asks == (None, None) else 64
    container = Ask(_DAEMONS[index], asks[0], asks[1], memory, None)
    qos = "Burstable" if memory else "BestEffort"
    return Workload(index, "DaemonSet", container.name, "kube-system", container.name, nodes, (container,), qos)


def workload(seed: int, index: int, namespaces: int, most: int) -> Workload:
    """The workload of an index, in one of so many namespaces, with at most so many pods."""
    rolled = dice.roll(seed, "workload", index)
    part = dice.number(rolled, 0, 100)
    kind = "ReplicaSet" if part < 72 else "StatefulSet" if part < 84 else "Job" if part < 98 else "Pod"
    name = f"{dice.pick(rolled, 1, _WORDS)}-{dice.pick(rolled, 2, _ROLES)}-{index:x}"
    team = dice.number(rolled, 3, namespaces)
    namespace = f"{_WORDS[team % len(_WORDS)]}-{team:03}"
    cron = kind == "Job" and part % 2 == 0
    owners = {"ReplicaSet": f"{name}-{dice.hash_suffix(rolled)}", "StatefulSet": name, "Job": name, "Pod": ""}
    owner = f"{name}-{29_000_000 + index * 5}" if cron else owners[kind]
    containers, qos = _asks(rolled)
    one = kind == "Pod" or (kind == "Job" and not cron)
    return Workload(
        index=index,
        kind=kind,
        name=name,
        namespace=namespace,
        owner=owner,
        replicas=1 if one else min(most, dice.pick(rolled, 4, _REPLICAS)),
        containers=containers,
        qos=qos,
        runtime_class={7: "crun", 21: "crun", 42: "kata"}.get(dice.number(rolled, 5, 64), ""),
        finished=kind == "Job" and dice.number(rolled, 6, 2) == 0,
        cron=cron,
    )


def _asks(rolled: bytes) -> tuple[tuple[Ask, ...], str]:
    """What the containers ask for, and the QoS class that follows."""
    style = dice.number(rolled, 7, 100)
    names = _CONTAINER_NAMES[: dice.pick(rolled, 8, _CONTAINERS)]
    if style < 12:
        return tuple(Ask(name, None, None, None, None) for name in names), "BestEffort"
    asks = []
    for place, name in enumerate(names):
        cpu = dice.pick(rolled, 9 + place, _REQUESTS)
        memory = dice.pick(rolled, 13 + place, (64, 128, 256, 512, 1024))
        if style < 27:
            asks.append(Ask(name, cpu, cpu, memory, memory))
        else:
            limit = dice.pick(rolled, 17 + place, (None, None, None, 2 * cpu, 4 * cpu))
            asks.append(Ask(name, cpu, limit, memory, 2 * memory))
    return tuple(asks), "Guaranteed" if style < 27 else "Burstable"


def _place(size: Size, seed: int, workloads: list[Workload]) -> list[Placed]:
    """Every pod on the next node that has room, as a spreading scheduler would do."""
    free = [pool(node).allocatable for node in range(size.nodes)]
    slots = [_MOST_PODS if size.pods <= _MOST_PODS * size.nodes else size.pods] * size.nodes
    placed, at = [], 0
    for each in workloads:
        rolled = dice.roll(seed, "replica", each.index)
        cpu = 0 if each.finished else each.cpu
        for replica in range(each.replicas):
            node = replica if each.kind == "DaemonSet" else -1
            for ahead in range(_TRIES if node < 0 else 0):
                chosen = (at + ahead) % size.nodes
                if free[chosen] >= cpu and slots[chosen] and _handles(chosen, each.runtime_class):
                    node = chosen
                    break
            at = (at if each.kind == "DaemonSet" else at + 1) % size.nodes
            if node >= 0:
                free[node] -= cpu
                slots[node] -= 1
            placed.append(Placed(each.namespace, _pod_name(each, rolled, replica), each.index, replica, node))
    return placed


def _handles(node: int, runtime_class: str) -> bool:
    return not runtime_class or any(name == runtime_class for name, _ in pool(node).handlers)


def _pod_name(owner: Workload, rolled: bytes, replica: int) -> str:
    if owner.kind == "Pod":
        return owner.name
    return f"{owner.owner}-{replica if owner.kind == 'StatefulSet' else dice.replica_suffix(rolled, replica)}"
