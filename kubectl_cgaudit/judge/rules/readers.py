"""CGA401: programs that read cpu.weight, or what is made of it, and misread it."""

import re
from collections.abc import Iterator

from kubectl_cgaudit.cgroups.weights import DEFAULT_WEIGHT
from kubectl_cgaudit.collect.model import Container, Pod
from kubectl_cgaudit.judge.audit import Finding
from kubectl_cgaudit.judge.compare import PodCase
from kubectl_cgaudit.judge.rules.catalogue import MISREADS_WEIGHT
from kubectl_cgaudit.judge.rules.context import Context, Hit, Look, by_workload, pod_hits, steps

_JVM_IMAGES = re.compile(
    r"(?:^|/)(?:openjdk|eclipse-temurin|amazoncorretto|adoptopenjdk|ibm-semeru-runtimes|zulu-openjdk|jdk|jre|tomcat|jetty)$",
    re.ASCII,
)
_TAG_VERSION = re.compile(
    r"^(?:jdk-?|jre-?)?(\d{1,2})(?:u(\d{1,3}))?(?:[._](\d{1,2}))?(?:[._](\d{1,3}))?(?![\d.])", re.ASCII
)
# JDK-8281181: the first releases that do not count CPUs from shares.
_FIXED = {11: (0, 17), 17: (0, 5), 18: (0, 2)}
_CADVISOR = re.compile(r"(?:^|/)cadvisor$", re.ASCII)


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
    if jvm and after.weight is not None and after.weight != before.weight:
        counts = (
            "takes weight 100 for no limit and sees every CPU of the host"
            if after.weight == DEFAULT_WEIGHT
            else (f"counts CPUs from weight {after.weight} as if it were linear")
        )
        seen = f"{name} runs {container.image} ({jvm}): after the move it {counts}."
        return 2.0, seen, "Update the JDK (11.0.17, 17.0.5, 18.0.2 or 19), or set -XX:ActiveProcessorCount."
    repository, _ = _split(container.image)
    if _CADVISOR.search(repository) and case.case.now != case.case.then:
        seen = f"{name} runs cAdvisor: its container_spec_cpu_shares inverts the linear formula (1024 shares show as 2597)."
        return 1.0, seen, "Do not alert on container_spec_cpu_shares across the move (cadvisor#3737); use CPU requests."
    if pod.mounts_cgroups and case.case.now != case.case.then:
        seen = f"{name} mounts the host's /sys/fs/cgroup: it may read cpu.shares or cpu.weight, which change."
        return (
            0.5,
            seen,
            "Check that its version knows cgroup v2 and both formulas (Datadog agent from #43760 on, koordinator not).",
        )
    return None


def old_jvm(image: str) -> str | None:
    """The Java version in an image's tag, if it is one that misreads cpu.weight; None if it is not, or cannot be told."""
    repository, tag = _split(image)
    found = _TAG_VERSION.match(tag)
    if not _JVM_IMAGES.search(repository) or not found:
        return None
    major = int(found[1])
    rest = (int(found[3] or 0), int(found[4]) if found[4] else None)
    if major in (8, 9, 10) or 12 <= major <= 16:
        # No 8 reads cpu.weight correctly before 8u372, which brought cgroup v2; before it, it sees no cgroup at all.
        return None if major == 8 and int(found[2] or 0) >= 372 else f"Java {major}"
    if major in _FIXED and rest[1] is not None and (rest[0], rest[1]) < _FIXED[major]:
        return f"Java {major}.{rest[0]}.{rest[1]}"
    return None


def _split(image: str) -> tuple[str, str]:
    """Repository and tag; a digest says nothing of the version."""
    named = image.partition("@")[0]
    head, colon, tag = named.rpartition(":")
    return (head, tag) if colon and "/" not in tag else (named, "")
