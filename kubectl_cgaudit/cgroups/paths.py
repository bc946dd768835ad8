"""Where a cgroup lies below /sys/fs/cgroup, for both cgroup drivers."""

from functools import cache
from typing import Literal

from kubectl_cgaudit.collect.model import Pod, Qos

Driver = Literal["systemd", "cgroupfs"]
DRIVERS: tuple[Driver, ...] = ("systemd", "cgroupfs")

_SCOPES = {"containerd": "cri-containerd", "cri-o": "crio"}


@cache
def kubepods(driver: Driver) -> str:
    """The cgroup of all pods."""
    return "/kubepods.slice" if driver == "systemd" else "/kubepods"


@cache
def qos(qos_class: Qos, driver: Driver) -> str:
    """The cgroup that holds the pods of a QoS class; Guaranteed pods lie directly in kubepods."""
    parent, name = kubepods(driver), qos_class.lower()
    if qos_class == "Guaranteed":
        return parent
    return f"{parent}/kubepods-{name}.slice" if driver == "systemd" else f"{parent}/{name}"


def pod(subject: Pod, driver: Driver) -> str | None:
    """The cgroup of a pod, or None without its uid."""
    if not subject.uid:
        return None
    parent = qos(subject.qos, driver)
    if driver == "cgroupfs":
        return f"{parent}/pod{subject.uid}"
    prefix = parent.rsplit("/", 1)[1].removesuffix(".slice")
    return f"{parent}/{prefix}-pod{subject.uid.replace('-', '_')}.slice"


def container(runtime_id: str | None, pod_path: str | None, driver: Driver) -> str | None:
    """The cgroup of a running container (crun's inner `container` directory aside), or None when it has none."""
    if not runtime_id or not pod_path or "://" not in runtime_id:
        return None
    scheme, identifier = runtime_id.split("://", 1)
    scope = _SCOPES.get(scheme, scheme)
    if driver == "systemd":
        return f"{pod_path}/{scope}-{identifier}.scope"
    return f"{pod_path}/crio-{identifier}" if scheme == "cri-o" else f"{pod_path}/{identifier}"
