"""CGA401: programs that read the numbers, and what they make of the move."""

from pathlib import Path

import pytest

from kubectl_cgaudit.detect.state import CgroupVersion
from kubectl_cgaudit.judge.rules import jvm
from tests.support import V1, V2_LINEAR, audited, cluster, container, node, of_rule, pod, the_finding


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
    assert "runs cAdvisor" in the_finding("CGA401", V2_LINEAR, "runtime", node(), exporter).seen


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
    ("image", "rules", "to", "said"),
    [
        (
            "openjdk:16",
            V2_LINEAR,
            "runtime",
            "takes weight 100 for no shares set and sees every CPU of the host; now it counts 1 CPU from weight 39.",
        ),
        ("openjdk:16", V2_LINEAR, "v2", None),
        ("openjdk:13", V1, "v2", "knows no cgroup v2: it then sees every CPU and all memory of the host"),
        ("openjdk:13", V2_LINEAR, "runtime", None),
        ("openjdk:17.0.9", V2_LINEAR, "runtime", None),
    ],
)
def test_401_what_an_old_jvm_makes_of_the_move(image: str, rules: str, to: str, said: str | None) -> None:
    objects = cluster(node(), pod("p", container("c", "1", image=image)))
    found = of_rule(audited(objects, rules, to), "CGA401")
    assert list(found) == (["default/p"] if said else [])
    assert [said in each.seen for each in found.values() if said] == ([True] if said else [])


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
    begins = "Container agent of default/a mounts the host's cgroup tree"
    assert [each.seen[: len(begins)] for each in found.values()] == ([begins] if seen else [])
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
    ("request_", "limit", "rules", "to", "said"),
    [
        # Both numbers are the default, and read as not set.
        ("1", None, V1, "v2+runtime", None),
        # The linear inverse is right for a linear runtime: nothing changes,
        ("2", None, V1, "v2", None),
        ("500m", None, V1, "v2", None),
        # or the count becomes the right one.
        (
            "1",
            None,
            V1,
            "v2",
            (
                "low",
                "counts 1 CPU from weight 39; now it takes 1024 shares for no shares set and sees every CPU of the host.",
            ),
        ),
        # 47 stands for 1.2 CPUs: v1 rounds up, v2 to the nearest.
        ("1200m", None, V1, "v2", ("medium", "counts 1 CPU from weight 47; now it counts 2 CPUs from 1228 shares.")),
        (
            "2",
            None,
            V1,
            "v2+runtime",
            ("medium", "counts 4 CPUs from weight 174; now it counts 2 CPUs from 2048 shares."),
        ),
        (
            "2",
            None,
            V2_LINEAR,
            "runtime",
            ("medium", "counts 4 CPUs from weight 174; now it counts 2 CPUs from weight 79."),
        ),
        # Never more than the node has.
        (
            "3",
            None,
            V2_LINEAR,
            "runtime",
            ("medium", "counts 4 CPUs from weight 240; now it counts 3 CPUs from weight 118."),
        ),
        ("4", None, V2_LINEAR, "runtime", None),
        # With a limit it counts from the quota.
        ("1", "2", V2_LINEAR, "runtime", None),
    ],
)
def test_401_fires_where_the_count_changes(
    request_: str, limit: str | None, rules: str, to: str, said: tuple[str, str] | None
) -> None:
    objects = cluster(node(), pod("p", container("c", request_, limit, image="openjdk:17.0.4")))
    found = [(each.severity, each.seen) for each in of_rule(audited(objects, rules, to), "CGA401").values()]
    start = "Container c of default/p runs openjdk:17.0.4 (Java 17.0.4): after the move it "
    assert found == ([(said[0], start + said[1])] if said else [])


def test_401_and_203_name_the_same_jdk_releases() -> None:
    objects = cluster(node(), pod("p", container("c", "1", image="openjdk:17.0.4")))
    result = audited(objects, V2_LINEAR, "runtime")
    assert jvm.FIXED_IN == "11.0.17, 17.0.5, 18.0.2 or 19"
    assert [each.remedy for each in of_rule(result, "CGA401").values()] == [
        "Move to JDK 11.0.17, 17.0.5, 18.0.2 or 19, or set -XX:ActiveProcessorCount."
    ]
    assert [each.remedy for each in of_rule(result, "CGA203").values()] == [
        "Nothing for the CPU share. Check what reads the number: JVMs before 11.0.17, 17.0.5, 18.0.2 or 19 count CPUs from it "
        "(weight 100 reads as no shares set; set -XX:ActiveProcessorCount), and dashboards on container_spec_cpu_shares."
    ]


def test_401_a_jvm_that_knows_no_v2_is_at_home_on_v1(tmp_path: Path) -> None:
    back = tmp_path / "v1.yaml"
    back.write_text("- {cgroup: v1}\n")
    objects = cluster(node(), pod("p", container("c", "1", image="openjdk:13")))
    assert of_rule(audited(objects, V2_LINEAR, str(back)), "CGA401") == {}


@pytest.mark.parametrize(
    ("image", "request_", "mounts", "rules", "said"),
    [
        (
            "openjdk:13",
            "1",
            False,
            V1,
            (
                "medium",
                "runs openjdk:13 (Java 13), which knows no cgroup v2: it then sees every CPU and all memory of the host.",
                "Move to JDK 11.0.17, 17.0.5, 18.0.2 or 19 (8u372 knows cgroup v2, but counts CPUs from cpu.weight), or set "
                "-XX:ActiveProcessorCount and -Xmx.",
            ),
        ),
        (
            "openjdk:16",
            "1",
            False,
            V1,
            (
                "low",
                "runs openjdk:16 (Java 16): after the move it counts 1 CPU from weight 39; now it takes 1024 shares for no "
                "shares set and sees every CPU of the host.",
                "The new count is what it asks for: expect thread pools of that size, or set -XX:ActiveProcessorCount.",
            ),
        ),
        (
            "gcr.io/cadvisor/cadvisor:v0.49.1",
            "100m",
            True,
            V1,
            (
                "low",
                "runs cAdvisor: its container_spec_cpu_shares inverts the linear formula (1024 shares show as 2597).",
                "Do not alert on container_spec_cpu_shares across the move (cadvisor#3737); use CPU requests.",
            ),
        ),
        ("gcr.io/cadvisor/cadvisor:v0.49.1", "100m", True, V2_LINEAR, None),
        (
            "agent",
            "100m",
            True,
            V1,
            (
                "low",
                "mounts the host's cgroup tree: it may read cpu.shares or cpu.weight, which change.",
                "Check that its version knows cgroup v2 and both formulas (Datadog's agent does from #43760 on).",
            ),
        ),
        ("agent", "100m", True, V2_LINEAR, None),
        ("agent", "100m", False, V1, None),
    ],
)
def test_401_what_is_seen_on_the_way_to_v2_and_what_to_do(
    image: str, request_: str, mounts: bool, rules: str, said: tuple[str, str, str] | None
) -> None:
    mount = {"volumeMounts": [{"name": "host"}]} if mounts else {}
    reader = pod(
        "b",
        container("c", request_, image=image, **mount),
        container("other", request_),
        volumes=[{"name": "host", "hostPath": {"path": "/sys"}}],
    )
    found = of_rule(audited(cluster(node(), reader), rules, "v2"), "CGA401").values()
    told = [(said[0], f"Container c of default/b {said[1]}", said[2])] if said else []
    assert [(each.severity, each.seen, each.remedy) for each in found] == told


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
    assert (found.severity, " mounts the host's cgroup tree: " in found.seen) == ("low", True)
