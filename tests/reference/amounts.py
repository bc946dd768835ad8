"""Amounts of CPU, and the numbers in cgroup files that they become.

Part of the reference model: written from the documents alone, to be obviously right and not fast. It must never
import from kubectl_cgaudit.
"""

import math
import re
from fractions import Fraction

DEFAULT = {"v1": 1024, "v2": 100}
LEAST = {"v1": 2, "v2": 1}
MOST = {"v1": 262144, "v2": 10000}

# https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
_SUFFIXES = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1)}
_SUFFIXES |= {letter: Fraction(1000**power) for power, letter in enumerate("kMGTPE", 1)}
_SUFFIXES |= {f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", 1)}
_QUANTITY = re.compile(r"(?P<number>[0-9.]+)(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[numkMGTPE]?|[KMGTPE]i))")


def milli(quantity: str) -> int:
    """Thousandths of a Kubernetes quantity, rounded up."""
    parts = _QUANTITY.fullmatch(quantity)
    assert parts is not None, quantity
    unit = Fraction(10) ** int(parts["exponent"]) if parts["exponent"] else _SUFFIXES[parts["suffix"]]
    return math.ceil(Fraction(parts["number"]) * unit * 1000)


def shares(amount: int) -> int:
    """cpu.shares of thousandths of a CPU: docs/method.md, "Shares"."""
    return min(max(amount * 1024 // 1000, LEAST["v1"]), MOST["v1"])


def linear(value: int) -> int:
    """The weight of shares by KEP-2254, as every kubelet makes it: docs/method.md, "Weights"."""
    return 1 + ((value - 2) * 9999) // 262142


def linear_shares(weight: int) -> int:
    """The shares that a linear weight stands for, as kubelets and cAdvisor read it back."""
    return 2 + ((weight - 1) * 262142) // 9999


def quadratic(value: int) -> int:
    """The weight of shares as runc makes it from 1.3.2 on, and crun from 1.23 on."""
    if value <= LEAST["v1"]:
        return LEAST["v2"]
    if value >= MOST["v1"]:
        return MOST["v2"]
    log = math.log2(value)
    return math.ceil(10 ** ((log * log + 125 * log) / 612 - 7 / 34))


FORMULAS = {"linear": linear, "quadratic": quadratic}


def quota(limit: int) -> int | None:
    """Microseconds in 100000 of a limit in thousandths, as the kubelet's MilliCPUToQuota says it; None for no limit."""
    return max(limit * 100, 1000) if limit else None


def rounded_up(quota_us: int | None) -> int | None:
    """A quota as systemd writes it: up to 10 ms of a second, that is 1000 us of 100000."""
    return None if quota_us is None else -(-quota_us // 1000) * 1000


def release(text: str) -> tuple[int, int, int]:
    """`v1.33.8-eks-1` as (1, 33, 8): what is left out is 0."""
    numbers = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", text)
    assert numbers is not None, text
    major, minor, patch = numbers.groups()
    return int(major), int(minor), int(patch or 0)
