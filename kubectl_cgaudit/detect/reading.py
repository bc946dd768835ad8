"""What the Node object itself says, and what holds where nothing says otherwise."""

from collections.abc import Iterator

from kubectl_cgaudit.cgroups.version import KubeletVersion, refuses_v1, was_checked
from kubectl_cgaudit.collect.model import Node
from kubectl_cgaudit.detect.evidence import Evidence
from kubectl_cgaudit.detect.state import Basis, State

_FORMULA = "every kubelet from 1.25 to 1.36 uses the linear formula, 1.37 by its tests"


def defaults(kubelet_version: str) -> State:
    """A state in which the cgroup version and the runtimes are open, and the rest is what it usually is.

    The systemd driver is the default because under it a runtime upgrade can stop containers from starting,
    which must not be missed.
    """
    version = KubeletVersion.parse(kubelet_version)
    return State(
        cgroup=None,
        driver="systemd",
        kubelet_formula="linear",
        kubelet_version=version,
        system_slice=None,
        root=(),
        runtimes=(),
        basis={
            "driver": Basis(
                "probable", "default: systemd, under which limits can stop containers from starting", "cgroupDriver"
            ),
            "kubelet": Basis("likely" if was_checked(version) else "probable", _FORMULA),
            "system_slice": Basis("probable", "systemd's default", "a unit's CPUWeight=, or an enforced reserve"),
            "burstable": Basis(
                "probable", "default: upstream's kubelet counts every pod", "a kubelet as OpenShift builds it"
            ),
            "root": Basis("probable", "default: only kubepods and system.slice want CPU", "another slice that is busy"),
        },
    )


def has_no_slice(node: Node) -> bool:
    """Whether a node has no system.slice, for it runs no systemd: https://docs.siderolabs.com/talos, on `talosctl cgroups`."""
    return node.os_image.startswith("Talos")


def evidence(node: Node) -> Iterator[Evidence]:
    """Yield what the kubelet's version says: from 1.35 on it starts on cgroup v1 only where it is told to."""
    version = KubeletVersion.parse(node.kubelet_version)
    if refuses_v1(version):
        saw = f"kubelet {version} refuses cgroup v1 unless failCgroupV1 is false"
        source = "node.status.nodeInfo.kubeletVersion"
        yield Evidence("cgroup", "v2", "probable", source, saw, "failCgroupV1: false", "kubelet", ("kubelet",))
