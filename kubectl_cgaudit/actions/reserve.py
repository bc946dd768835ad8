"""The enforced reserve that gives system processes their part beside the pods. CPU in thousandths."""

from functools import lru_cache

from msgspec import Struct

from kubectl_cgaudit.audit.cases import Case
from kubectl_cgaudit.cgroups.version import COMPRESSIBLE_FROM
from kubectl_cgaudit.cgroups.weights import linear, milli_to_shares
from kubectl_cgaudit.collect.model import Cluster, Node
from kubectl_cgaudit.detect.state import default_root_value
from kubectl_cgaudit.text import number

_LARGEST = 0.25
_STEP = 10
_CPU_ALONE = "system-reserved-compressible"

Limits = tuple[float, float]
"""The ratio pods : system to stay under, and the same where system.slice has less than its default."""
Range = tuple[int, int]
"""The least and the most that it may be; twice the same where it is known."""


class Reserve(Struct, frozen=True):
    """A reserve to enforce on system.slice of a cgroup v2 node, in thousandths of a CPU, and what follows from it."""

    key: str
    """Of `enforceNodeAllocatable`."""
    milli: int
    left: Range
    """What is allocatable then, in thousandths of a CPU."""
    kubepods: Range
    """The weight of kubepods then."""
    now: int
    """What is allocatable now, in thousandths of a CPU."""
    asked: int
    """What the node's active pods ask for together, in thousandths of a CPU."""

    @property
    def weight(self) -> int:
        """That of system.slice then."""
        return _weight(self.milli)

    @property
    def ratios(self) -> tuple[float, float]:
        """Pods to system processes then, by weight: the least and the greatest that it may be."""
        least, most = self.kubepods
        return least / self.weight, most / self.weight

    def words(self) -> str:
        """What to do, and what comes of it."""
        least, most = self.left
        if least < most:
            left = f"{least}m to {most}m to schedule, {self.now}m now, depending on how much is kubeReserved"
        else:
            left = f"{most}m to schedule, {f'{self.now - most}m less than' if most < self.now else 'as'} now"
        ratio = " to ".join(dict.fromkeys(map(number, self.ratios)))
        # A kubelet admits all of its pods anew when it starts (kubernetes#105523).
        if self.asked > least:
            left += (
                f"; its pods ask for {self.asked}m: what does not fit may be refused (OutOfcpu) when the kubelet starts"
            )
        # kubelet/cm/node_container_manager_linux.go, getCgroupConfig: all of systemReserved becomes a limit.
        if self.key != _CPU_ALONE:
            left += "; what systemReserved has of memory and pid limits system.slice then, too"
        return (
            f"enforce {self.key} on system.slice with {self.milli}m CPU (weight {self.weight}, pods : system {ratio} "
            f": 1; leaves {left})"
        )


def reserve_for(cluster: Cluster, node: Node, case: Case, limits: Limits, asked: int) -> Reserve | None:
    """The least reserve on cgroup v2 whose weight keeps pods within limits; None if it would cost too much, or the
    kubelet would not start with it.

    What is reserved is not allocatable, and lowers kubepods with it, where that is made from what is allocatable. How much of
    what is reserved now is for the system only /configz tells: else it may be all or nothing.
    """
    answers = (cluster.kubelets or {}).get(node.name)
    known = answers.config if answers else None
    if known and known.reserves_whole_cpus:
        return None
    said = (known.system_reserved_milli or 0) if known else 0
    # What pods had if nothing were reserved for the system.
    free = node.allocatable_milli + said, node.allocatable_milli + said
    if not known:
        free = node.allocatable_milli, max(node.allocatable_milli, node.capacity_milli)
    whole = node.capacity_milli if case.after.from_capacity else None
    milli = _least(node.capacity_milli, free[1], said, whole, limits)
    if milli is None:
        return None
    version = case.after.kubelet_version
    modern = version is None or version >= COMPRESSIBLE_FROM
    left = max(0, free[0] - milli), max(0, free[1] - milli)
    return Reserve(
        key=_CPU_ALONE if modern else "system-reserved",
        milli=milli,
        left=left,
        kubepods=(_weight(left[0] if whole is None else whole), _weight(left[1] if whole is None else whole)),
        now=node.allocatable_milli,
        asked=asked,
    )


@lru_cache(maxsize=4096)
def _least(capacity: int, free: int, said: int, whole: int | None, limits: Limits) -> int | None:
    """The least reserve that keeps pods within limits even if they have the most they may have; None if none does.

    `free` is what pods had if nothing were reserved for the system; `whole` is what kubepods is made from, if that is not what
    is left. What is known to be reserved, `said`, is the least: who reserved it needs it, and enforcing it costs nothing.
    """
    further = range(said // _STEP * _STEP + _STEP, int(capacity * _LARGEST) + 1, _STEP)
    for milli in (said, *further) if said else further:
        system = _weight(milli)
        limit = limits[system < default_root_value("v2")]
        if _weight(free - milli if whole is None else whole) / system < limit:
            return milli
    return None


def _weight(milli: int) -> int:
    return linear(milli_to_shares(milli))
