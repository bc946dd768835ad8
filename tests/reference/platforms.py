"""Nodes of platforms, and the annotations of pods that CRI-O and OpenShift's kubelet read: docs/platforms.md, docs/method.md.

Part of the reference model: written from the documents alone, to be obviously right and not fast. It must never
import from kubectl_cgaudit.
"""

import json
from dataclasses import dataclass
from random import Random

from tests.reference.amounts import LEAST, MOST, milli
from tests.reference.objects import Raw

ROLE = "node-role.kubernetes.io/"
TARGET, RESOURCES = "target.workload.openshift.io/management", "resources.workload.openshift.io/"
UNIFIED, QUOTA = "unified-cgroup.crio.io/", "cpu-quota.crio.io"
UNIFIED_VALUES = ("cpu.weight=500", "memory.high=1;cpu.weight=7", "cpu.weight=0", "memory.high=1")
_RHCOS = "Red Hat Enterprise Linux CoreOS 9.6.20260301-0 (Plow)"


@dataclass(frozen=True)
class Platform:
    """What is different on the nodes of a platform."""

    os: str
    runtime: str
    kubelets: str
    role: str = "worker"
    versions: tuple[str, ...] = ("v1", "v2")
    """The cgroup versions it can have."""
    counts_partitioned: bool | None = True
    """Whether the Burstable slice counts pods for management partitions; None where that is open."""
    reserve: bool = False
    """Whether its kubelet enforces its reserve on system.slice, unless that was turned off."""
    root: tuple[str, ...] = ()
    """What competes at the root with the default, beside system.slice."""
    rounds_pod_quota: bool = False
    inner: bool = True
    """Whether crun makes a cgroup below the scope of a container."""

    @property
    def crio(self) -> bool:
        """Whether annotations of pods are read."""
        return self.runtime.startswith("cri-o://")


PLATFORMS = {
    "custom": Platform("Custom", "containerd://1.7.0-x", ""),
    "crio": Platform("Custom", "cri-o://1.33.1-x", "1.31.14 1.33.8", counts_partitioned=None),
    # release-4.21 vendors opencontainers/cgroups v0.0.3: facts of item 5.
    "openshift-4.21": Platform(
        _RHCOS,
        "cri-o://1.34.2-3.rhaos4.21.git1234567.el9",
        "1.34.0 1.34.5",
        versions=("v2",),
        counts_partitioned=False,
        rounds_pod_quota=True,
        inner=False,
    ),
    # machine-config-operator release-4.22, templates/worker alone.
    "openshift-4.22": Platform(
        _RHCOS,
        "cri-o://1.35.1-3.rhaos4.22.git1234567.el9",
        "1.35.0 1.35.2",
        versions=("v2",),
        counts_partitioned=False,
        reserve=True,
        inner=False,
    ),
    "openshift-4.22-control-plane": Platform(
        _RHCOS,
        "cri-o://1.35.1-3.rhaos4.22.git1234567.el9",
        "1.35.0 1.35.2",
        role="control-plane",
        versions=("v2",),
        counts_partitioned=False,
        inner=False,
    ),
    # amazon-eks-ami, 00-runtime-slice.conf.
    "eks-al2023": Platform(
        "Amazon Linux 2023.8.20250721",
        "containerd://1.7.27",
        "1.31.7-eks-473151a 1.33.4-eks-3385e9b",
        root=("runtime.slice",),
    ),
}


def platform_of(node: Raw) -> Platform:
    """The platform of a node, by its strings and its role."""
    info, labels = node["status"]["nodeInfo"], node["metadata"]["labels"]
    for each in PLATFORMS.values():
        strings = info.get("osImage"), info.get("containerRuntimeVersion")
        if strings == (each.os, each.runtime) and f"{ROLE}{each.role}" in labels:
            return each
    return PLATFORMS["custom"]


def as_platform(random: Random, node: Raw, name: str) -> None:
    """Give a node the strings of a platform."""
    platform, info = PLATFORMS[name], node["status"]["nodeInfo"]
    info["osImage"], info["containerRuntimeVersion"] = platform.os, platform.runtime
    node["metadata"]["labels"][f"{ROLE}{platform.role}"] = ""
    if platform.kubelets:
        info["kubeletVersion"] = f"v{random.choice(platform.kubelets.split())}"
    has = milli(node["status"]["allocatable"]["cpu"])
    node["status"]["capacity"]["cpu"] = f"{has + random.choice([0, 100, 500, 1000])}m"


def reserve_of(node: Raw) -> int:
    """Thousandths of a CPU that OpenShift reserves for the system: what pods may not have; 500m where nothing says it."""
    status = node["status"]
    return (milli(status["capacity"]["cpu"]) - milli(status["allocatable"]["cpu"])) or 500


def annotations(random: Random, pod: Raw) -> dict[str, str]:
    """Random annotations of a pod, each true or of no use."""
    names = [each["name"] for each in pod["spec"]["containers"]]
    found: dict[str, str] = {}
    if random.random() < 0.4:
        found[TARGET] = '{"effect": "PreferredDuringScheduling"}'
    for name in names:
        if random.random() < 0.3:
            found[RESOURCES + name] = json.dumps({"cpushares": random.choice([0, 1, 20, 256, 1024, 400000])})
        if random.random() < 0.2:
            found[UNIFIED + name] = random.choice(
                ["cpu.weight=500", "memory.high=1;cpu.weight=7", "cpu.weight=0", "memory.high=1"]
            )
    if random.random() < 0.2:
        found[random.choice([QUOTA, f"{QUOTA}/{names[0]}"])] = random.choice(["disable", "true", "false"])
    return found


def annotated_shares(said: dict[str, str], container: str) -> int | None:
    """The shares that a pod for a partition asks CRI-O for; None where it asks for none."""
    asked = json.loads(said.get(RESOURCES + container, "{}")).get("cpushares", 0) if TARGET in said else 0
    return min(max(asked, LEAST["v1"]), MOST["v1"]) if asked > 0 else None


def annotated_weight(said: dict[str, str], container: str) -> int | None:
    """The weight that an annotation asks CRI-O for; None for none."""
    entries = dict(each.split("=") for each in said.get(UNIFIED + container, "").split(";") if each)
    weight = int(entries.get("cpu.weight", "0"))
    return weight or None


def quota_is_off(said: dict[str, str], container: str) -> bool:
    """Whether an annotation asks CRI-O for no quota."""
    return any(said.get(key) in ("disable", "true") for key in (QUOTA, f"{QUOTA}/{container}"))
