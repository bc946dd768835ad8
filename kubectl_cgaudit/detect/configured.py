"""What a kubelet's configuration says of its node: the driver, kubepods, quotas, the reserves it enforces. From /configz, or by a
platform's rule.

Source: kubernetes pkg/kubelet/cm/node_container_manager_linux.go (`enforceNodeAllocatableCgroups`,
`enforceExistingCgroup`) and cgroup_manager_linux.go (`ParseSystemdToCgroupName`, `ToSystemd`), 1.31 to 1.36.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from kubectl_cgaudit.cgroups.paths import DRIVERS, Driver
from kubectl_cgaudit.cgroups.version import KubeletVersion
from kubectl_cgaudit.cgroups.weights import milli_to_shares
from kubectl_cgaudit.collect.model import KubeletConfig, Node
from kubectl_cgaudit.detect.evidence import CONFIGZ, RESERVED, Evidence, Strength
from kubectl_cgaudit.detect.state import DEFAULT, PERIOD_US, SYSTEM_SLICE, CgroupVersion, reserve_in_unit

_SLICE = ".slice"
_OPENSHIFT_MILLI = 500


def platform_reserve(rule: str | None, node: Node) -> int | None:
    """Return the shares of system.slice by a platform's rule, as the catalogue names it; None where no rule is given.

    OpenShift reserves for the system alone, so that is what the node has and its pods may not have; 500m where nothing says it.
    Source: openshift/machine-config-operator templates/common/_base/files/kubelet-auto-sizing.yaml, release-4.22.
    """
    if rule is None:
        return None
    return milli_to_shares(node.capacity_milli - node.allocatable_milli or _OPENSHIFT_MILLI)


class _Reserve(Struct, frozen=True):
    """A cgroup at the root that a reserve is enforced on, or in."""

    name: str
    shares: int | None
    """None where the reserve is enforced on a cgroup within, and this one has its default."""
    sure: bool
    saw: str


def evidence(
    config: KubeletConfig,
    version: CgroupVersion | None,
    by_path: Driver | None,
    kubelet: KubeletVersion | None,
    kernel: Mapping[str, str],
) -> Iterator[Evidence]:
    """Everything a configuration says. `kernel` is what the kernel shows of the same: where it differs, that counts."""
    if by_path is None and config.cgroup_driver in DRIVERS:
        # Before 1.35 the field stays at its default when the driver comes from the runtime.
        sure = kubelet is not None and kubelet >= KubeletVersion(1, 35, 0)
        yield Evidence("driver", config.cgroup_driver, "certain" if sure else "hint", CONFIGZ, "cgroupDriver")
        if sure:
            by_path = config.cgroup_driver
    enforced = config.enforce_node_allocatable
    listed = ", ".join(enforced) or "nothing"
    yield Evidence("reserves", listed, "certain", CONFIGZ, f"enforceNodeAllocatable is {listed}")
    if config.cgroups_per_qos:
        made_of = "allocatable" if "pods" in enforced else "capacity"
        yield Evidence("kubepods", made_of, "certain", CONFIGZ, f"enforceNodeAllocatable is {listed}")
    else:
        yield Evidence("kubepods", "none", "certain", CONFIGZ, "cgroupsPerQOS is false")
    if not config.cpu_cfs_quota:
        yield Evidence("quota", "off", "certain", CONFIGZ, "cpuCFSQuota is false")
    if config.cpu_cfs_quota_period_us != PERIOD_US:
        period = str(config.cpu_cfs_quota_period_us)
        yield Evidence("period", period, "certain", CONFIGZ, f"cpuCFSQuotaPeriod is {period} us")
    for reserve in _reserves(config, by_path):
        yield _told(reserve, version, kernel)


def _told(reserve: _Reserve, version: CgroupVersion | None, kernel: Mapping[str, str]) -> Evidence:
    # Of another driver than systemd it would be another cgroup; whether one that only holds the reserve was left at its
    # default, nobody says.
    how: Strength = "certain" if reserve.sure and reserve.shares is not None else "likely"
    if version is None:
        value = DEFAULT if reserve.shares is None else str(reserve.shares)
        return Evidence(f"{RESERVED}{reserve.name}", value, how, CONFIGZ, reserve.saw)
    about = "system_slice" if reserve.name == SYSTEM_SLICE else f"root:{reserve.name}"
    value = str(reserve_in_unit(reserve.shares, version))
    if kernel.get(about, value) != value:
        how = "hint"
    return Evidence(about, value, how, CONFIGZ, reserve.saw)


def _reserves(config: KubeletConfig, by_path: Driver | None) -> list[_Reserve]:
    """In the order in which the kubelet writes them: of two on one cgroup the last counts."""
    system = config.system_reserved_cgroup, config.system_reserved_milli
    kube = config.kube_reserved_cgroup, config.kube_reserved_milli
    found: dict[str, _Reserve] = {}
    for key, (cgroup, milli) in (
        ("system-reserved", system),
        ("kube-reserved", kube),
        ("system-reserved-compressible", system),
        ("kube-reserved-compressible", kube),
    ):
        if key in config.enforce_node_allocatable and cgroup and milli is not None:
            saw = f"{key} is enforced on {cgroup} with {milli}m CPU"
            sure = by_path is not None or cgroup.endswith(_SLICE)
            reserve = _at_root(cgroup, milli_to_shares(milli), by_path, sure, saw)
            # What lies within one that has a reserve of its own changes nothing at the root.
            if reserve and not (reserve.shares is None and (reserve.name in found or reserve.name == SYSTEM_SLICE)):
                found[reserve.name] = reserve
    return list(found.values())


def _at_root(cgroup: str, shares: int, by_path: Driver | None, sure: bool, saw: str) -> _Reserve | None:
    """What stands at the root; a driver that is not known is taken for systemd."""
    path = cgroup.strip("/")
    if by_path == "cgroupfs":
        return _Reserve(path, shares, sure, saw) if path and "/" not in path else None
    # The kubelet takes the last part of the path for a unit, whose dashes are the slices it lies in.
    unit = path.rpartition("/")[2].removesuffix(_SLICE)
    outer, dash, _ = unit.partition("-")
    if not outer:
        return None
    if dash:
        return _Reserve(f"{outer}{_SLICE}", None, sure, f"{saw}, which systemd keeps in {outer}{_SLICE}")
    return _Reserve(f"{unit}{_SLICE}", shares, sure, saw)
