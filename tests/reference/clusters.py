"""Random clusters as the API server shows them, each with a states file and a target.

Part of the reference model: written from the documents alone, to be obviously right and not fast. It must never
import from kubectl_cgaudit.
"""

from dataclasses import dataclass
from random import Random
from typing import Literal

from tests.reference.objects import Raw
from tests.reference.platforms import PLATFORMS, annotations, as_platform, platform_of
from tests.reference.specs import pod
from tests.reference.targets import Target

Kind = Literal["known", "unknowns", "file", "platforms"]
"""known: the states file says all of every node; unknowns: it leaves things out; file: the target is a file; platforms: the
nodes are of platforms, and pods have annotations."""
KINDS: tuple[Kind, ...] = ("known", "unknowns", "file", "platforms")

# Releases on both sides of every change of the rules: of formulas, quota rounding, pod-level resources, cgroup v1.
RUNTIMES = {
    "default": "runc 1.1.5, runc 1.1.15, runc 1.2.9, runc 1.3.0, runc 1.3.1, runc 1.3.2, runc 1.3.6, runc 1.4.0-rc.1, "
    "runc 1.4.0, runc 1.5.1, crun 1.21, crun 1.28, youki 0.5.6",
    "crun": "crun 1.21, crun 1.22, crun 1.23, crun 1.25.1, crun 1.28",
    "youki": "youki 0.5.6, youki 0.5.7",
    "kata": "kata",
    "runsc": "runsc",
    "sysbox-runc": "sysbox-runc",
    "odd": "linear, quadratic, runc 1.1.15, runc 1.3.6",
}
KUBELETS = (
    "1.24.17 1.28.0 1.30.4 1.31.14 1.32.0 1.32.9 1.33.0 1.33.7 1.33.8 1.33.13 1.34.0 1.34.5 1.35.0 1.35.2 1.36.2 1.37.0"
)
RUNTIME_TARGETS = (
    "runtime runc=1.3.1 runc=1.3.6 runc=1.4.0-rc.1 crun=1.21 crun=1.28 youki=0.5.6 youki=0.5.7 runc=1.3.6,crun=1.28 "
    "runc=1.3.1,crun=1.21"
)
KUBELET_TARGETS = "kubelet=1.33.8 kubelet=1.34 kubelet=1.35 kubelet=1.36.2"
ALLOCATABLE = "250m 500m 940m 1 1700m 1930m 2 3700m 3920m 4 7910m 16 31850m 63770m 128 192 256 300"
# On v1 and v2: numbers that both allow, as a rule for all nodes may give them to a node of the other version.
ROOT_VALUES = {"v1": (2, 20, 39, 512, 1000, 1024, 2048, 9000), "v2": (2, 20, 39, 100, 200, 300, 5000)}
OTHERS_AT_ROOT = ("docker", "user.slice", "podruntime")


@dataclass(frozen=True)
class Cluster:
    """A cluster, what its states file says, and where its nodes go."""

    nodes: list[Raw]
    pods: list[Raw]
    runtime_classes: list[Raw]
    states: list[Raw]
    target: Target

    @property
    def objects(self) -> list[Raw]:
        """All of the API's objects."""
        return [*self.nodes, *self.runtime_classes, *self.pods]


def cluster(kind: Kind, seed: int) -> Cluster:
    """The same one for the same seed, always."""
    random = Random(f"{kind} {seed}")
    handlers = {f"class-{name}": name for name in RUNTIMES if name != "default" and random.random() < 0.4}
    used = ["default", *handlers.values()]
    nodes = [_node(random, f"n{number}") for number in range(random.choice([1, 1, 2, 3]))]
    names = [each["metadata"]["name"] for each in nodes]
    pods = [pod(random, f"p{number}", names, handlers) for number in range(random.choice([1, 2, 3, 5, 8, 12]))]
    classes = [
        {"kind": "RuntimeClass", "apiVersion": "node.k8s.io/v1", "metadata": {"name": name}, "handler": handler}
        for name, handler in handlers.items()
    ]
    if kind == "platforms":
        for each in nodes:
            as_platform(random, each, random.choice(list(PLATFORMS)))
        for one in pods:
            one["metadata"]["annotations"] = annotations(random, one)
    states = [_said_of(random, each, used, kind == "unknowns") for each in nodes]
    if random.random() < 0.2:
        by_label = {
            "match": {"labels": {"pool": "blue"}},
            "driver": "systemd",
            "runtimes": _runtimes(random, ["default"]),
        }
        states.append(by_label)
    target = _file_target(random, names, used) if kind == "file" else _target(random)
    return Cluster(nodes, pods, classes, states, target)


def _node(random: Random, name: str) -> Raw:
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "uid": name, "labels": {"pool": random.choice(["red", "blue"])}},
        "status": {
            "capacity": {"cpu": "512"},
            "allocatable": {"cpu": random.choice(ALLOCATABLE.split())},
            # Nothing that the tool's catalogue knows.
            "nodeInfo": {
                "kubeletVersion": f"v{random.choice(KUBELETS.split())}",
                "operatingSystem": "linux",
                "osImage": "Custom",
                "containerRuntimeVersion": "containerd://1.7.0-x",
            },
        },
    }


def _said_of(random: Random, node: Raw, handlers: list[str], open_: bool) -> Raw:
    """The rule of a states file for a node; with `open_` each thing may be left out."""

    def hidden() -> bool:
        return open_ and random.random() < 0.4

    versions = platform_of(node).versions
    rule: Raw = {
        "match": {"name": node["metadata"]["name"]},
        "kubelet": random.choice(["linear", f"linear {random.choice(KUBELETS.split())}"]),
    }
    if not hidden():
        rule["cgroup"] = random.choice(["v1", "v1", "v2"]) if len(versions) > 1 else versions[0]
        rule |= _root(random, rule["cgroup"], 0.4)
        if ("system_slice" in rule or "root" in rule) and not hidden():
            rule["set_by"] = random.choice(["systemd", "kubelet"])
    if not hidden():
        rule["driver"] = random.choice(["systemd", "systemd", "cgroupfs"])
    runtimes = _runtimes(random, [each for each in handlers if not hidden()])
    return rule | ({"runtimes": runtimes} if runtimes else {})


def _target(random: Random) -> str:
    """In words; the default where all three are left out."""
    chances = (("v2", 0.5), (RUNTIME_TARGETS, 0.9), (KUBELET_TARGETS, 0.5))
    words = [random.choice(words.split()) for words, chance in chances if random.random() < chance]
    return ",".join(words) or "v2+runtime"


def _file_target(random: Random, names: list[str], handlers: list[str]) -> list[Raw]:
    """The rules of a target that is a file: they leave out what stays as it is."""
    rules = []
    for name in names:
        rule: Raw = {"match": {"name": random.choice([name, "n*"])}, "runtimes": _runtimes(random, ["default"])}
        if random.random() < 0.6:
            rule["cgroup"] = random.choice(["v1", "v2", "v2"])
            rule |= _root(random, rule["cgroup"], 0.4)
        if random.random() < 0.3:
            rule["driver"] = random.choice(["systemd", "cgroupfs"])
        if random.random() < 0.5:
            rule["kubelet"] = random.choice(KUBELETS.split())
        if random.random() < 0.5:
            rule["runtimes"] = _runtimes(random, handlers)
        rules.append(rule)
    return rules


def _root(random: Random, version: str, chance: float) -> Raw:
    """Values at the root that are said."""
    said: Raw = {}
    if random.random() < chance:
        said["system_slice"] = random.choice(ROOT_VALUES[version])
    if random.random() < chance:
        names = random.sample(OTHERS_AT_ROOT, random.choice([1, 2]))
        said["root"] = {name: random.choice(ROOT_VALUES[version]) for name in names}
    return said


def _runtimes(random: Random, handlers: list[str]) -> dict[str, str]:
    return {name: random.choice(RUNTIMES[name].split(", ")) for name in handlers}
