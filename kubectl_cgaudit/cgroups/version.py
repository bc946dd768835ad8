"""Kubelet versions, and what changed with them."""

import re
from typing import NamedTuple

_VERSION = re.compile(r"^v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?![\d.])")


class KubeletVersion(NamedTuple):
    """A kubelet release; builds and suffixes (`+k3s1`, `-eks-1a2b`) are left out."""

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> "KubeletVersion | None":
        """Read `v1.33.13`, `1.35` (its first patch) or `v1.32.1+k3s1`; None when it is no version."""
        found = _VERSION.match(text.strip())
        return cls(int(found[1]), int(found[2]), int(found[3] or 0)) if found else None

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


_CHECKED = (1, 25), (1, 37)
"""The first and the last minor release whose formula was looked up: 1.25 to 1.36 in their source, 1.37 in its tests."""
NEWEST = (1, 37), "2026-11-23"
"""The newest minor release that was seen, and when."""
COMPRESSIBLE_FROM = KubeletVersion(1, 32, 0)
"""The first kubelet with system-reserved-compressible, which enforces the CPU of a reserve and not its memory."""

RESIZES_FROM = KubeletVersion(1, 33, 0)
"""The first kubelet that resizes pods in place by default (feature gate InPlacePodVerticalScaling, KEP-1287)."""
_ROUNDS_FROM = KubeletVersion(1, 35, 0)


def was_checked(kubelet: KubeletVersion | None) -> bool:
    """Whether it was looked up that this kubelet uses the linear formula. Others are taken to, as all so far do."""
    return kubelet is not None and _CHECKED[0] <= kubelet[:2] <= _CHECKED[1]


def refuses_v1(kubelet: KubeletVersion | None) -> bool:
    """Whether this kubelet refuses to start on cgroup v1 by default (`failCgroupV1`, true from 1.35)."""
    return kubelet is not None and kubelet >= KubeletVersion(1, 35, 0)


def needs_patch(text: str) -> bool:
    """Whether a release said without its patch stands for kubelets that round a pod's quota and for others: 1.33 alone."""
    return re.fullmatch(r"v?1\.33", text.strip()) is not None


def rounds_pod_quota(kubelet: KubeletVersion | None) -> bool:
    """Whether the kubelet writes a pod's quota rounded up to 10 ms with the systemd driver.

    From 1.33.8 on in 1.33, and from 1.35; 1.34 vendors the older library and writes it raw. An unknown
    version counts as one that does not: that is the one a runtime upgrade can hurt (runc#4982).
    """
    if kubelet is None:
        return False
    if kubelet[:2] == (1, 33):
        return kubelet.patch >= 8
    return kubelet >= _ROUNDS_FROM
