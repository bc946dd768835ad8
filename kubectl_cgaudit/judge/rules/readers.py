"""CGA401: programs that read cpu.weight, or what is made of it, and misread it."""

import re
from collections.abc import Iterator
from typing import Literal

from kubectl_cgaudit.cgroups.weights import DEFAULT_WEIGHT
from kubectl_cgaudit.collect.model import Container, Pod
from kubectl_cgaudit.judge.audit import Finding
from kubectl_cgaudit.judge.compare import PodCase
from kubectl_cgaudit.judge.rules.catalogue import MISREADS_WEIGHT
from kubectl_cgaudit.judge.rules.context import Context, Hit, Look, by_workload, pod_hits, steps
from kubectl_cgaudit.predict.tree import Cgroup

_JDK_IMAGES = re.compile(
    r"(?:^|/)(?:openjdk|eclipse-temurin|amazoncorretto|adoptopenjdk|ibm-semeru-runtimes|zulu-openjdk|jdk|jre)$",
    re.ASCII,
)
_TAG = re.compile(r"(?:jdk-?|jre-?)?(\d{1,2})(?:u(\d{1,3}))?(?:[._](\d{1,2}))?(?:[._](\d{1,3}))?(?![\d.])", re.ASCII)
_TAG_WITHIN = re.compile(
    r"-(?:jdk|jre)-?(\d{1,2})(?:u(\d{1,3}))?(?:[._](\d{1,2}))?(?:[._](\d{1,3}))?(?![\d.])", re.ASCII
)
# JDK-8281181: the first releases that do not count CPUs from shares.
_FIXED = {11: 17, 17: 5, 18: 2}
# JDK-8230305 brought cgroup v2 to 15; the releases it was ported back to.
_KNOWS_V2 = {8: 372, 11: 16}
_CADVISOR = re.compile(r"(?:^|/)cadvisor$", re.ASCII)
Fault = Literal["misreads", "blind"]


def misreaders(context: Context) -> Iterator[Finding]:
    """CGA401, one finding a workload whose container's number changes or is read."""

    def hits() -> Iterator[Hit]:
        for _, pod, cases in context.pods():
            for index, (container, _) in enumerate(cases[0].before.containers):
                looks = [(case, _look(pod, container, index, case)) for case in cases]
                yield from pod_hits(context, pod, container.name, looks)

    return by_workload(MISREADS_WEIGHT, hits(), steps((2.0, "medium")))


def _look(pod: Pod, container: Container, index: int, case: PodCase) -> Look:
    before, after = case.before.containers[index][1], case.after.containers[index][1]
    name = f"Container {container.name} of {pod.namespace}/{pod.name}"
    jvm = old_jvm(container.image)
    if jvm:
        return _jvm(name, container.image, *jvm, before, after)
    changes = (before.version, before.value) != (after.version, after.value)
    if changes and _CADVISOR.search(_split(container.image)[0]):
        seen = f"{name} runs cAdvisor: its container_spec_cpu_shares inverts the linear formula (1024 shares show as 2597)."
        return 1.0, seen, "Do not alert on container_spec_cpu_shares across the move (cadvisor#3737); use CPU requests."
    if changes and container.sees_cgroups:
        seen = f"{name} mounts the host's cgroup tree: it may read cpu.shares or cpu.weight, which change."
        return (
            0.5,
            seen,
            "Check that its version knows cgroup v2 and both formulas (Datadog's agent does from #43760 on).",
        )
    return None


def _jvm(name: str, image: str, java: str, fault: Fault, before: Cgroup, after: Cgroup) -> Look:
    if fault == "blind":
        if before.version == after.version:
            return None
        seen = f"{name} runs {image} ({java}), which knows no cgroup v2: it then sees every CPU and all memory of the host."
        return 2.0, seen, "Update the JDK (8u372, 11.0.17, 17.0.5 or newer), or set -XX:ActiveProcessorCount and -Xmx."
    if after.weight is None or after.weight == before.weight:
        return None
    counts = f"counts CPUs from weight {after.weight} as if it were linear"
    if after.weight == DEFAULT_WEIGHT:
        counts = "takes weight 100 for no limit and sees every CPU of the host"
    seen = f"{name} runs {image} ({java}): after the move it {counts}."
    return 2.0, seen, "Update the JDK (11.0.17, 17.0.5, 18.0.2 or 19), or set -XX:ActiveProcessorCount."


def old_jvm(image: str) -> tuple[str, Fault] | None:
    """The Java version in an image's tag and its fault; None if it has none, or the tag does not tell.

    misreads: it counts CPUs from cpu.weight. blind: it knows no cgroup v2 at all.
    """
    repository, tag = _split(image)
    found = _TAG.match(tag) if _JDK_IMAGES.search(repository) else _TAG_WITHIN.search(tag)
    if not found:
        return None
    major, update, minor, patch = (int(part) if part else None for part in found.groups())
    if major == 8:
        return (f"Java 8u{update}", "blind") if update and update < _KNOWS_V2[8] else None
    if major in (9, 10, 12, 13, 14):
        return f"Java {major}", "blind"
    if major in (15, 16):
        return f"Java {major}", "misreads"
    if major in _FIXED and patch is not None and minor == 0 and patch < _FIXED[major]:
        fault: Fault = "blind" if patch < _KNOWS_V2.get(major, 0) else "misreads"
        return f"Java {major}.0.{patch}", fault
    return None


def _split(image: str) -> tuple[str, str]:
    """Repository and tag; a digest says nothing of the version."""
    named = image.partition("@")[0]
    head, colon, tag = named.rpartition(":")
    return (head, tag) if colon and "/" not in tag else (named, "")
