"""Parse a kubelet's /configz."""

import msgspec
from msgspec import Struct

from kubectl_cgaudit.collect import quantity, wire
from kubectl_cgaudit.collect.http import excerpt
from kubectl_cgaudit.collect.model import KubeletConfig
from kubectl_cgaudit.duration import microseconds
from kubectl_cgaudit.errors import InputError

_AGAIN = "ask again"
_SHOWN = 60
_LARGEST = 1 << 20
"""Of a configuration, in bytes: they take a few thousand."""
_LONGEST_PERIOD_US = 1_000_000


class _Kubelet(Struct, rename="camel"):
    """The fields of a KubeletConfiguration. The kubelet has put its defaults in and leaves out what is empty."""

    cgroup_driver: str | None = None
    cgroups_per_qos: bool | None = msgspec.field(default=None, name="cgroupsPerQOS")
    enforce_node_allocatable: list[str] | None = None
    system_reserved_cgroup: str | None = None
    kube_reserved_cgroup: str | None = None
    system_reserved: dict[str, str] | None = None
    kube_reserved: dict[str, str] | None = None
    cpu_cfs_quota: bool | None = msgspec.field(default=None, name="cpuCFSQuota")
    cpu_cfs_quota_period: str | None = msgspec.field(default=None, name="cpuCFSQuotaPeriod")
    cpu_manager_policy: str | None = None
    reserved_system_cpus: str | None = msgspec.field(default=None, name="reservedSystemCPUs")


class _Configz(Struct):
    kubeletconfig: _Kubelet


def config(body: bytes) -> KubeletConfig:
    """What /configz says. Raises InputError when it is none."""
    if len(body) > _LARGEST:
        raise InputError(f"the answer is larger than {_LARGEST >> 20} MiB; {_AGAIN}")
    try:
        said = msgspec.json.decode(body, type=_Configz).kubeletconfig
    except msgspec.ValidationError as error:
        raise InputError(f"the answer is no kubelet configuration: {error}; {_AGAIN}") from None
    except wire.UNDECODABLE:
        raise InputError(f"the answer is not JSON but {excerpt(body)!r}; {_AGAIN}") from None
    return KubeletConfig(
        cgroup_driver=said.cgroup_driver or None,
        cgroups_per_qos=said.cgroups_per_qos is not False,
        # The kubelet turns an absent list into [pods] before it answers, so here absent means that it is empty.
        enforce_node_allocatable=tuple(said.enforce_node_allocatable or ()),
        system_reserved_cgroup=said.system_reserved_cgroup or None,
        kube_reserved_cgroup=said.kube_reserved_cgroup or None,
        system_reserved_milli=_cpu("systemReserved", said.system_reserved),
        kube_reserved_milli=_cpu("kubeReserved", said.kube_reserved),
        cpu_cfs_quota=said.cpu_cfs_quota is not False,
        cpu_cfs_quota_period_us=_period_us(said.cpu_cfs_quota_period or "100ms"),
        cpu_manager_policy=said.cpu_manager_policy or None,
        reserves_whole_cpus=bool(said.reserved_system_cpus),
    )


def _cpu(key: str, reserved: dict[str, str] | None) -> int | None:
    if not reserved or "cpu" not in reserved:
        return None
    try:
        return quantity.milli(reserved["cpu"])
    except InputError as error:
        raise InputError(f"{key}.cpu: {error}") from None


def _period_us(text: str) -> int:
    found = microseconds(text) or 0
    if not 1 <= found <= _LONGEST_PERIOD_US:
        raise InputError(f"cpuCFSQuotaPeriod {text[:_SHOWN]!r} is no duration from 1us to 1s; {_AGAIN}")
    return int(found)
