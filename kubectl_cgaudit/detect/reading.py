"""A first simple reading of the Node object: what it says of the node's state, and what it only hints at."""

from kubectl_cgaudit.collect.model import Node
from kubectl_cgaudit.detect.state import Basis, State
from kubectl_cgaudit.detect.version import KubeletVersion, refuses_v1


def read(node: Node) -> State:
    """The state as far as the Node object tells it.

    The cgroup version and the runtime are not in it. The systemd driver is assumed because under it a
    runtime upgrade can stop containers from starting, which must not be missed.
    """
    version = KubeletVersion.parse(node.kubelet_version)
    hints = []
    if refuses_v1(version):
        hints.append(f"kubelet {version} refuses cgroup v1 unless failCgroupV1 is false: probably v2")
    return State(
        cgroup=None,
        driver="systemd",
        kubelet_formula="linear",
        kubelet_version=version,
        system_slice=None,
        root=(),
        runtimes=(),
        basis={
            "driver": Basis("hint", "default: systemd, under which limits can stop containers from starting"),
            "kubelet": Basis("likely", "every kubelet from 1.25 to 1.36 uses the linear formula, 1.37 by its tests"),
            "system_slice": Basis("hint", "systemd's default"),
            "root": Basis("hint", "default: only kubepods and system.slice want CPU"),
        },
        hints=tuple(hints),
    )
