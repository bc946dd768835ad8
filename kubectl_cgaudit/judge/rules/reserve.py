"""The enforced reserve that gives system processes their part beside the pods. CPU in thousandths."""

from functools import lru_cache

from kubectl_cgaudit.cgroups.version import COMPRESSIBLE_FROM
from kubectl_cgaudit.cgroups.weights import linear, milli_to_shares
from kubectl_cgaudit.collect.model import Cluster, Node
from kubectl_cgaudit.detect.state import default_root_value
from kubectl_cgaudit.judge.compare import Case
from kubectl_cgaudit.text import number

_LARGEST = 0.25
_STEP = 10

Limits = tuple[float, float]
"""The ratio pods : system to stay under, and the same where system.slice has less than its default."""


def reserve_for(cluster: Cluster, node: Node, case: Case, limits: Limits) -> str | None:
    """The enforced reserve on cgroup v2 whose weight keeps pods within limits; None if it would cost too much.

    What is reserved is not allocatable, and lowers kubepods with it, where that is made from what is allocatable. How much of
    what is reserved now is for the system only /configz tells: else all of it may be, and the least that the reserve costs is
    said.
    """
    answers = (cluster.kubelets or {}).get(node.name)
    said = answers.config.system_reserved_milli or 0 if answers and answers.config else None
    reserved = max(0, node.capacity_milli - node.allocatable_milli) if said is None else said
    whole = node.capacity_milli if case.then.from_capacity else None
    found = _least(node.capacity_milli, node.allocatable_milli + reserved, reserved, whole, limits)
    if found is None:
        return None
    milli, left = found
    version = case.then.kubelet_version
    modern = version is None or version >= COMPRESSIBLE_FROM
    key = "system-reserved-compressible" if modern else "system-reserved"
    return (
        f"enforce {key} on system.slice with {milli}m CPU (weight {_weight(milli)}, pods : system "
        f"{number(_weight(left if whole is None else whole) / _weight(milli))} : 1; leaves "
        f"{'at most ' if said is None else ''}{left}m to schedule, "
        f"{'at least ' if said is None else ''}{node.allocatable_milli - left}m less than now)"
    )


@lru_cache(maxsize=4096)
def _least(capacity: int, free: int, reserved: int, whole: int | None, limits: Limits) -> tuple[int, int] | None:
    """The least reserve that keeps pods within limits, and what it leaves to schedule; None if none does.

    `free` is what pods had if nothing were reserved for the system, for which `reserved` is now; `whole` is what kubepods is
    made from, if that is not what is left.
    """
    for milli in range(_STEP, int(capacity * _LARGEST) + 1, _STEP):
        left = free - max(milli, reserved)
        system = _weight(milli)
        limit = limits[system < default_root_value("v2")]
        if _weight(left if whole is None else whole) / system < limit:
            return milli, left
    return None


def _weight(milli: int) -> int:
    return linear(milli_to_shares(milli))
