"""The two conversions from cgroup v1 `cpu.shares` to cgroup v2 `cpu.weight`, and their inverses.

Shares range over 2..262144 (default 1024), weights over 1..10000 (default 100).
"""

import math
from bisect import bisect_left
from functools import cache, lru_cache
from typing import Literal

Formula = Literal["linear", "quadratic"]
FORMULAS: tuple[Formula, ...] = ("linear", "quadratic")

MIN_SHARES = 2
MAX_SHARES = 262144
DEFAULT_SHARES = 1024
MIN_WEIGHT = 1
MAX_WEIGHT = 10000
DEFAULT_WEIGHT = 100


@lru_cache(maxsize=8192)
def milli_to_shares(milli: int) -> int:
    """Shares (2..262144) of a CPU quantity in thousandths: `milli * 1024 // 1000`, clamped.

    Source: kubernetes pkg/kubelet/cm/helpers_linux.go, `MilliCPUToShares`.
    """
    return max(MIN_SHARES, min(MAX_SHARES, milli * 1024 // 1000))


def linear(shares: int) -> int:
    """Weight (1..10000) of `shares`, as KEP-2254 has it and as every kubelet up to 1.37 writes it.

    Integer arithmetic: `1 + ((shares - 2) * 9999) // 262142`. Source: kubernetes
    pkg/kubelet/cm/cgroup_manager_linux.go, `getCPUWeight`; runc before 1.3.2, crun before 1.23.
    """
    if shares <= MIN_SHARES:
        return MIN_WEIGHT
    if shares >= MAX_SHARES:
        return MAX_WEIGHT
    return 1 + ((shares - 2) * 9999) // 262142


@cache
def quadratic(shares: int) -> int:
    """Weight (1..10000) of `shares` under runc >= 1.3.2 and crun >= 1.23.

    `ceil(10 ** ((L*L + 125*L) / 612 - 7/34))` with `L = log2(shares)`. Source: opencontainers/cgroups
    `ConvertCPUSharesToCgroupV2Value`. IEEE doubles agree with exact arithmetic on every share.
    """
    if shares <= MIN_SHARES:
        return MIN_WEIGHT
    if shares >= MAX_SHARES:
        return MAX_WEIGHT
    log = math.log2(shares)
    return math.ceil(10 ** ((log * log + 125 * log) / 612.0 - 7.0 / 34.0))


@lru_cache(maxsize=8192)
def weight_of(shares: int, formula: Formula) -> int:
    """Weight of `shares` under `formula`."""
    return linear(shares) if formula == "linear" else quadratic(shares)


def linear_inverse(weight: int) -> int:
    """Shares that the kubelet and cAdvisor read back from a weight: `2 + ((weight - 1) * 262142) // 9999`.

    Source: KEP-2254; kubernetes pkg/kubelet/cm/cgroup_manager_linux.go, `cpuWeightToCPUShares`.
    """
    return MIN_SHARES + ((weight - 1) * 262142) // 9999


def systemd_weight(shares: int) -> int:
    """Weight (1..10000) that systemd gives a unit on cgroup v2 for its CPUShares=: the ratio to the default stays.

    Source: systemd src/core/cgroup.c, `cgroup_cpu_shares_to_weight`.
    """
    return max(MIN_WEIGHT, min(MAX_WEIGHT, shares * DEFAULT_WEIGHT // DEFAULT_SHARES))


def systemd_shares(weight: int) -> int:
    """Shares (2..262144) that systemd gives a unit on cgroup v1 for its CPUWeight=.

    Source: systemd src/core/cgroup.c, `cgroup_cpu_weight_to_shares`.
    """
    return max(MIN_SHARES, min(MAX_SHARES, weight * DEFAULT_SHARES // DEFAULT_WEIGHT))


@cache
def shares_with_weight(weight: int, formula: Formula) -> tuple[int, int]:
    """The smallest and largest shares that `formula` turns into `weight`.

    Both formulas grow with the shares and leave out no weight, so the answer is one interval. Raises ValueError outside 1..10000.
    """
    if not MIN_WEIGHT <= weight <= MAX_WEIGHT:
        raise ValueError(f"a weight ranges over {MIN_WEIGHT}..{MAX_WEIGHT}, not {weight}")
    candidates = range(MIN_SHARES, MAX_SHARES + 1)
    first = bisect_left(candidates, weight, key=lambda shares: weight_of(shares, formula))
    after = bisect_left(candidates, weight + 1, key=lambda shares: weight_of(shares, formula))
    return candidates[first], candidates[after - 1]
