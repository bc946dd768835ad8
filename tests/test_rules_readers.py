"""CGA401: programs that read the numbers, and what they make of the move."""

import pytest

from kubectl_cgaudit.judge.rules import jvm
from tests.support import V2_LINEAR, container, node, pod, the_finding


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
