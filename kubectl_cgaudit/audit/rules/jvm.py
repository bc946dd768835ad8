"""Old JVMs: which image runs one, and how many CPUs it counts from its cgroup's number.

Source: JDK `cgroupV1Subsystem_linux.cpp`, `cgroupV2Subsystem_linux.cpp` and `active_processor_count`, before JDK-8281181.
JDK 8 knows cgroup v2 from 8u372 on; no release of it is known that has JDK-8281181.
OpenJ9, which is in IBM Semeru, counts CPUs from quota and cpuset alone (openj9#2251), and knows cgroup v2 from 0.33 on
(openj9#14190).
"""

import re
from typing import Literal

from kubectl_cgaudit.cgroups.weights import DEFAULT_SHARES, DEFAULT_WEIGHT
from kubectl_cgaudit.detect.state import CgroupVersion

_JDK_IMAGES = re.compile(
    r"(?:^|/)(?:openjdk|eclipse-temurin|amazoncorretto|adoptopenjdk(?:/openjdk\d{1,2})?|ibm-semeru-runtimes|zulu-openjdk|"
    r"liberica-open(?:jdk|jre)-(?:alpine|centos|debian)(?:-musl)?|jdk|jre)$",
    re.ASCII,
)
_VERSION = r"(\d{1,2})(?:u(\d{1,3}))?(?:[._](\d{1,2}))?(?:[._](\d{1,3}))?(?:\.\d{1,3})?(?![\d.])"
_TAG = re.compile(rf"(?:open-|certified-)?(?:jdk-?|jre-?)?{_VERSION}", re.ASCII)
_TAG_WITHIN = re.compile(rf"-(?:jdk|jre)-?{_VERSION}", re.ASCII)
_OPENJ9 = re.compile(r"openj9|semeru", re.ASCII)
# JDK-8281181: the first releases that do not count CPUs from shares.
_FIXED = {11: 17, 17: 5, 18: 2}
# JDK-8230305 brought cgroup v2 to 15; the releases it was ported back to.
_KNOWS_V2 = {8: 372, 11: 16}
_OPENJ9_KNOWS_V2 = {8: 345, 11: 16, 17: 4, 18: 2}
_SHARES_OF_A_CPU = 1024
FIXED_IN = f"{', '.join(f'{major}.0.{patch}' for major, patch in _FIXED.items())} or 19"
"""The JDK releases to update to, in words."""
Fault = Literal["misreads", "blind"]


def old_jvm(image: str) -> tuple[str, Fault] | None:
    """The Java version in an image's tag and its fault; None if it has none, or the tag does not tell.

    misreads: it counts CPUs from cpu.weight. blind: it knows no cgroup v2 at all.
    """
    repository, tag = split(image)
    found = _TAG.match(tag) if _JDK_IMAGES.search(repository) else _TAG_WITHIN.search(tag)
    if not found:
        return None
    major, update, minor, patch = (int(part) if part else None for part in found.groups())
    is_j9 = _OPENJ9.search(image)
    knows_v2 = _OPENJ9_KNOWS_V2 if is_j9 else _KNOWS_V2
    if major == 8 and update and (update < knows_v2[8] or not is_j9):
        return f"Java 8u{update}", "blind" if update < knows_v2[8] else "misreads"
    if major in (9, 10, 12, 13, 14, 15, 16):
        return f"Java {major}", "misreads" if major > 14 and not is_j9 else "blind"
    if major not in _FIXED or patch is None or minor != 0:
        return None
    if patch < knows_v2.get(major, 0):
        return f"Java {major}.0.{patch}", "blind"
    return (f"Java {major}.0.{patch}", "misreads") if patch < _FIXED[major] and not is_j9 else None


def cpus(version: CgroupVersion, value: int) -> int | None:
    """CPUs that a JVM that misreads counts from cpu.shares (v1) or cpu.weight (v2); None where it takes them for not set."""
    if value == (DEFAULT_SHARES if version == "v1" else DEFAULT_WEIGHT):
        return None
    if version == "v1":
        return asked(value)
    shares = (262142 * value - 1) // 9999 + 2
    below, beyond = divmod(shares, _SHARES_OF_A_CPU)
    # A weight is coarse, so it takes the nearest whole CPU, the lower one of two that are as near.
    return max(1, below + (beyond > _SHARES_OF_A_CPU // 2))


def asked(shares: int) -> int:
    """Whole CPUs that shares stand for, rounded up."""
    return -(-shares // _SHARES_OF_A_CPU)


def split(image: str) -> tuple[str, str]:
    """Repository and tag; a digest says nothing of the version."""
    named = image.partition("@")[0]
    head, colon, tag = named.rpartition(":")
    return (head, tag) if colon and "/" not in tag else (named, "")
