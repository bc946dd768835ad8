"""CGA401: programs that read the numbers, and what they make of the move."""

from pathlib import Path
from typing import Any

import pytest

from kubectl_cgaudit.audit.model import Finding
from kubectl_cgaudit.audit.rules import jvm
from kubectl_cgaudit.detect.state import CgroupVersion
from tests.support import V1, V2_LINEAR, audited, cluster, container, node, of_rule, pod, the_finding


def numbers(finding: Finding) -> tuple[float | None, ...]:
    """The CPUs that a JVM counts before and after, and the values that are read."""
    cpus, value = finding.measures
    assert (cpus.name, value.unit) == ("CPUs counted", "shares or weight")
    return cpus.before, cpus.after, value.before, value.after


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("cadvisor", ("cadvisor", "")),
        ("registry:5000/openjdk", ("registry:5000/openjdk", "")),
        ("registry:5000/openjdk:11", ("registry:5000/openjdk", "11")),
        ("a/b:1@sha256:c", ("a/b", "1")),
        ("a/b@sha256:c", ("a/b", "")),
    ],
)
def test_an_image_is_split_into_repository_and_tag(image: str, parts: tuple[str, str]) -> None:
    assert jvm.split(image) == parts


@pytest.mark.parametrize(
    ("image", "found"),
    [
        ("openjdk:9", ("Java 9", "blind")),
        ("openjdk:10", ("Java 10", "blind")),
        ("openjdk:12", ("Java 12", "blind")),
        ("openjdk:14", ("Java 14", "blind")),
        ("openjdk:15", ("Java 15", "misreads")),
        ("openjdk:17.0", None),
        ("openjdk:17.1.2", None),
        ("openjdk:17.0.5", None),
        ("openjdk:18.0.2", None),
        ("ibm-semeru-runtimes:open-18.0.2_9-jdk", None),
    ],
)
def test_401_further_releases(image: str, found: tuple[str, str] | None) -> None:
    assert jvm.old_jvm(image) == found


@pytest.mark.parametrize(("weight", "cpus"), [(293, 8), (332, 9), (371, 9), (1035, 26)])
def test_401_weights_near_half_a_cpu(weight: int, cpus: int) -> None:
    assert jvm.cpus("v2", weight) == cpus


def test_401_a_cadvisor_without_a_tag_is_one() -> None:
    exporter = pod("b", container("cadvisor", "100m", image="cadvisor"))
    assert the_finding("CGA401", V2_LINEAR, "runtime", node(), exporter).detail["program"] == "cadvisor"


@pytest.mark.parametrize(
    ("image", "java", "fault"),
    [
        ("openjdk:8u292", "Java 8u292", "blind"),
        ("openjdk:8", None, None),
        ("openjdk:8u371", "Java 8u371", "blind"),
        ("openjdk:8u372", "Java 8u372", "misreads"),
        ("eclipse-temurin:8u412-b08-jre", "Java 8u412", "misreads"),
        ("eclipse-temurin:11.0.15_10", "Java 11.0.15", "blind"),
        ("eclipse-temurin:11.0.16_8-jre", "Java 11.0.16", "misreads"),
        ("eclipse-temurin:11.0.17", None, None),
        ("docker.io/library/openjdk:17.0.4", "Java 17.0.4", "misreads"),
        ("eclipse-temurin:17.0.4.1_1-jre", "Java 17.0.4", "misreads"),
        ("eclipse-temurin:11.0.16.1_1-jdk", "Java 11.0.16", "misreads"),
        ("a/b:1-jre-18.0.1.1", "Java 18.0.1", "misreads"),
        ("openjdk:17", None, None),
        ("openjdk:21", None, None),
        ("amazoncorretto:15", "Java 15", "misreads"),
        ("amazoncorretto:8", None, None),
        ("registry:5000/openjdk", None, None),
        ("nginx:11.0.1", None, None),
        ("openjdk@sha256:abc", None, None),
        ("openjdk:16@sha256:abc", "Java 16", "misreads"),
        ("adoptopenjdk/openjdk8:jre8u292-b10", "Java 8u292", "blind"),
        ("adoptopenjdk/openjdk11:jdk-11.0.11_9-alpine", "Java 11.0.11", "blind"),
        # OpenJ9 counts otherwise.
        ("adoptopenjdk/openjdk11-openj9:jdk-11.0.11_9", None, None),
        ("bellsoft/liberica-openjre-alpine:11.0.14", "Java 11.0.14", "blind"),
        ("bellsoft/liberica-openjdk-alpine-musl:17.0.4", "Java 17.0.4", "misreads"),
        ("openjdk:13", "Java 13", "blind"),
        ("tomcat:9.0.85-jdk17", None, None),
        ("tomcat:9.0.85", None, None),
        ("jetty:12.0-jdk21", None, None),
        ("tomcat:9.0.60-jdk11.0.14", "Java 11.0.14", "blind"),
        ("openjdk:21.0.1", None, None),
        # OpenJ9 never counts CPUs from the number, and learned of cgroup v2 in other releases.
        ("ibm-semeru-runtimes:open-8u332-b09-jre", "Java 8u332", "blind"),
        ("ibm-semeru-runtimes:open-8u345-b01-jre", None, None),
        ("icr.io/appcafe/ibm-semeru-runtimes:certified-11.0.15_10-jdk", "Java 11.0.15", "blind"),
        ("ibm-semeru-runtimes:open-11.0.16_8-jdk", None, None),
        ("ibm-semeru-runtimes:open-17.0.3_7-jdk-jammy", "Java 17.0.3", "blind"),
        ("ibm-semeru-runtimes:open-17.0.4.1_1-jdk-jammy", None, None),
        ("ibm-semeru-runtimes:open-jdk-18.0.1.1_2-jre", "Java 18.0.1", "blind"),
        ("ibm-semeru-runtimes:open-17-jre", None, None),
        ("adoptopenjdk:15.0.2_7-jdk-openj9-0.24.0", "Java 15", "blind"),
        ("tomcat:9-jdk16-openj9", "Java 16", "blind"),
    ],
)
def test_401_old_jvms_are_told_by_their_tag(image: str, java: str | None, fault: str | None) -> None:
    assert jvm.old_jvm(image) == ((java, fault) if java else None)


@pytest.mark.parametrize(
    ("image", "rules", "to", "expected"),
    [
        # It takes weight 100 for no shares set, and sees every CPU of the host.
        ("openjdk:16", V2_LINEAR, "runtime", ("Java 16", "misreads", 1, 4, 39, 100)),
        ("openjdk:16", V2_LINEAR, "v2", None),
        ("openjdk:13", V1, "v2", ("Java 13", "blind", None, None, 1024, 39)),
        ("openjdk:13", V2_LINEAR, "runtime", None),
        ("openjdk:17.0.9", V2_LINEAR, "runtime", None),
    ],
)
def test_401_what_an_old_jvm_makes_of_the_move(
    image: str, rules: str, to: str, expected: tuple[Any, ...] | None
) -> None:
    objects = cluster(node(), pod("p", container("c", "1", image=image)))
    found = of_rule(audited(objects, rules, to), "CGA401").values()
    java = [(each.detail["java"], each.detail["fault"]) for each in found if each.detail["program"] == "jvm"]
    assert [(*told, *numbers(each)) for told, each in zip(java, found, strict=True)] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/sys/fs/cgroup", True),
        ("/sys/fs/cgroup/", True),
        ("/sys/fs/cgroup/cpu", True),
        ("/sys", True),
        ("/", True),
        ("/sys/fs/cgroup-other", False),
        ("/var/lib", False),
    ],
)
def test_401_only_the_container_that_mounts_the_cgroups_is_named(path: str, seen: bool) -> None:
    agent = pod(
        "a",
        container("agent", "100m", volumeMounts=[{"name": "host"}]),
        container("other", "100m"),
        volumes=[{"name": "host", "hostPath": {"path": path}}],
    )
    found = of_rule(audited(cluster(node(), agent), V2_LINEAR, "runtime"), "CGA401")
    assert list(found) == (["default/a"] if seen else [])
    assert [(each.where.container, each.detail["program"]) for each in found.values()] == (
        [("agent", "cgroup-mount")] if seen else []
    )
    assert of_rule(audited(cluster(node(), agent), V2_LINEAR, "kubelet=1.34"), "CGA401") == {}


@pytest.mark.parametrize(
    ("version", "value", "cpus"),
    [
        ("v1", 2, 1),
        ("v1", 1022, 1),
        ("v1", 1024, None),
        ("v1", 1025, 2),
        ("v1", 2048, 2),
        ("v2", 1, 1),
        ("v2", 39, 1),
        ("v2", 47, 1),
        ("v2", 58, 1),
        ("v2", 59, 2),
        ("v2", 79, 2),
        ("v2", 100, None),
        ("v2", 174, 4),
        ("v2", 10000, 256),
    ],
)
def test_401_cpus_an_old_jvm_counts(version: CgroupVersion, value: int, cpus: int | None) -> None:
    assert jvm.cpus(version, value) == cpus


@pytest.mark.parametrize(
    ("request_", "limit", "rules", "to", "expected"),
    [
        # Both numbers are the default, and read as not set.
        ("1", None, V1, "v2+runtime", None),
        # The linear inverse is right for a linear runtime: nothing changes,
        ("2", None, V1, "v2", None),
        ("500m", None, V1, "v2", None),
        # or the count becomes the right one: 1024 shares are taken for no shares set, and every CPU of the host is seen.
        ("1", None, V1, "v2", ("low", 4, 1, 1024, 39)),
        # 47 stands for 1.2 CPUs: v1 rounds up, v2 to the nearest.
        ("1200m", None, V1, "v2", ("medium", 2, 1, 1228, 47)),
        ("2", None, V1, "v2+runtime", ("medium", 2, 4, 2048, 174)),
        ("2", None, V2_LINEAR, "runtime", ("medium", 2, 4, 79, 174)),
        # Never more than the node has.
        ("3", None, V2_LINEAR, "runtime", ("medium", 3, 4, 118, 240)),
        ("4", None, V2_LINEAR, "runtime", None),
        # With a limit it counts from the quota.
        ("1", "2", V2_LINEAR, "runtime", None),
    ],
)
def test_401_fires_where_the_count_changes(
    request_: str, limit: str | None, rules: str, to: str, expected: tuple[Any, ...] | None
) -> None:
    objects = cluster(node(), pod("p", container("c", request_, limit, image="openjdk:17.0.4")))
    found = of_rule(audited(objects, rules, to), "CGA401").values()
    assert [(each.severity, *numbers(each)) for each in found] == ([expected] if expected else [])


def test_401_names_the_jdk_and_the_releases_that_read_it_right() -> None:
    finding = the_finding("CGA401", V2_LINEAR, "runtime", node(), pod("p", container("c", "1", image="openjdk:17.0.4")))
    assert (finding.detail["image"], finding.detail["java"]) == ("openjdk:17.0.4", "Java 17.0.4")
    assert finding.detail["fixedIn"] == jvm.FIXED_IN == "11.0.17, 17.0.5, 18.0.2 or 19"


def test_401_a_jvm_that_knows_no_v2_is_at_home_on_v1(tmp_path: Path) -> None:
    back = tmp_path / "v1.yaml"
    back.write_text("- {cgroup: v1}\n")
    objects = cluster(node(), pod("p", container("c", "1", image="openjdk:13")))
    assert of_rule(audited(objects, V2_LINEAR, str(back)), "CGA401") == {}


@pytest.mark.parametrize(
    ("image", "request_", "mounts", "rules", "expected"),
    [
        ("openjdk:13", "1", False, V1, ("medium", "jvm", None, None, 1024, 39)),
        ("openjdk:16", "1", False, V1, ("low", "jvm", 4, 1, 1024, 39)),
        ("gcr.io/cadvisor/cadvisor:v0.49.1", "100m", True, V1, ("low", "cadvisor", None, None, 102, 4)),
        ("gcr.io/cadvisor/cadvisor:v0.49.1", "100m", True, V2_LINEAR, None),
        ("agent", "100m", True, V1, ("low", "cgroup-mount", None, None, 102, 4)),
        ("agent", "100m", True, V2_LINEAR, None),
        ("agent", "100m", False, V1, None),
    ],
)
def test_401_what_is_seen_on_the_way_to_v2(
    image: str, request_: str, mounts: bool, rules: str, expected: tuple[Any, ...] | None
) -> None:
    mount = {"volumeMounts": [{"name": "host"}]} if mounts else {}
    reader = pod(
        "b",
        container("c", request_, image=image, **mount),
        container("other", request_),
        volumes=[{"name": "host", "hostPath": {"path": "/sys"}}],
    )
    found = of_rule(audited(cluster(node(), reader), rules, "v2"), "CGA401").values()
    told = [(each.severity, each.detail["program"], *numbers(each)) for each in found]
    assert told == ([expected] if expected else [])
    assert [each.where.container for each in found] == (["c"] if expected else [])


@pytest.mark.parametrize("image", ["openjdk:13", "openjdk:16"])
def test_401_a_jvm_in_a_sandbox_sees_nothing_of_the_nodes_cgroups(image: str) -> None:
    kata = pod("p", container("c", "1200m", image=image), runtimeClassName="kata")
    assert of_rule(audited(cluster(node(), kata), "- {cgroup: v1, runtimes: {kata: kata}}", "v2"), "CGA401") == {}


def test_401_an_old_jvm_that_nothing_is_wrong_with_may_still_read_the_host() -> None:
    """On v2 before and after: nothing changes for a JVM that knows none of it."""
    mounted = pod(
        "p",
        container("c", "500m", image="openjdk:8u300", volumeMounts=[{"name": "host", "mountPath": "/host"}]),
        volumes=[{"name": "host", "hostPath": {"path": "/sys/fs/cgroup"}}],
    )
    found = the_finding("CGA401", V2_LINEAR, "runtime", node(), mounted)
    assert (found.severity, found.detail["program"]) == ("low", "cgroup-mount")
