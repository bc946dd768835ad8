"""The kubelet's arithmetic on pods, rule by rule."""

from typing import Any

import pytest

from kubectl_cgaudit.cgroups.pods import container_shares, pod_limit, pod_request
from kubectl_cgaudit.cgroups.version import KubeletVersion
from kubectl_cgaudit.cgroups.weights import milli_to_shares
from kubectl_cgaudit.collect.model import Pod
from tests.support import cluster, container, pod

NEW = KubeletVersion(1, 36, 0)
OLD = KubeletVersion(1, 31, 9)


def one(*containers: dict[str, Any], **spec: Any) -> Pod:
    return cluster(pod("p", *containers, **spec)).pods[0]


@pytest.mark.parametrize(
    ("milli", "shares"),
    [(0, 2), (1, 2), (2, 2), (3, 3), (100, 102), (1000, 1024), (256_000, 262_144), (10**9, 262_144)],
)
def test_thousandths_become_clamped_shares(milli: int, shares: int) -> None:
    assert milli_to_shares(milli) == shares


def test_a_request_of_zero_is_a_request() -> None:
    subject = one(container("c", "0", "500m"))
    assert container_shares(subject.containers[0], subject, NEW) == 2


def test_without_a_request_the_limit_counts() -> None:
    subject = one(container("c", None, "500m"))
    assert container_shares(subject.containers[0], subject, NEW) == 512


def test_without_either_the_pods_limit_counts_from_1_32() -> None:
    subject = one(container("c"), resources={"limits": {"cpu": "200m"}})
    assert container_shares(subject.containers[0], subject, NEW) == 204
    assert container_shares(subject.containers[0], subject, OLD) == 2


def sidecar(name: str, request: str) -> dict[str, Any]:
    return container(name, request, restartPolicy="Always")


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ([], 220),
        ([container("migrate", "600m")], 600),
        ([container("migrate", "100m")], 220),
        ([sidecar("vault", "50m"), container("migrate", "600m")], 650),
        ([container("migrate", "600m"), sidecar("vault", "50m")], 600),
        ([sidecar("vault", "50m"), sidecar("log", "30m"), container("migrate", "100m")], 300),
    ],
)
def test_the_pod_request_is_the_most_that_runs_at_once(init: list[dict[str, Any]], expected: int) -> None:
    subject = one(container("app", "200m"), container("metrics", "20m"), initContainers=init)
    assert pod_request(subject, NEW) == expected


def test_overhead_is_added_also_to_a_pod_level_request() -> None:
    assert pod_request(one(container("c", "200m"), overhead={"cpu": "250m"}), NEW) == 450
    level = one(container("c", "200m"), overhead={"cpu": "250m"}, resources={"requests": {"cpu": "300m"}})
    assert pod_request(level, NEW) == 550
    assert pod_request(level, OLD) == 450


@pytest.mark.parametrize(
    ("subject", "limit"),
    [
        (one(container("a", "1", "1"), container("b", "25m", "25m"), qos="Guaranteed"), 1025),
        (one(container("a", "1", "2"), container("b", "25m", "30m")), 2030),
        (one(container("a", "1", "2"), container("b", "25m")), None),
        (one(container("a", "1", "2"), initContainers=[container("i", "1")]), None),
        (one(container("a", "1", "2"), initContainers=[container("i", "1", "3")]), 3000),
        (one(container("a", "1"), resources={"limits": {"cpu": "400m"}}), 400),
        (one(container("a", "1", "2"), overhead={"cpu": "100m"}), 2100),
        (one(container("a"), qos="BestEffort"), None),
        (one(container("a", "1")), None),
    ],
)
def test_the_pod_limit_follows_the_qos_class(subject: Pod, limit: int | None) -> None:
    assert pod_limit(subject, NEW) == limit


def test_a_pod_level_limit_is_not_known_to_old_kubelets() -> None:
    assert pod_limit(one(container("a", "1"), resources={"limits": {"cpu": "400m"}}), OLD) is None


def test_a_pending_resize_counts_what_is_allocated() -> None:
    raw = pod("p", container("c", "500m", "500m"))
    raw["status"]["containerStatuses"] = [
        {
            "name": "c",
            "state": {"running": {}},
            "allocatedResources": {"cpu": "200m"},
            "resources": {"limits": {"cpu": "200m"}},
        }
    ]
    subject = cluster(raw).pods[0]
    assert (pod_request(subject, NEW), pod_limit(subject, NEW)) == (200, 200)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v1.33.13", (1, 33, 13)),
        ("1.35", (1, 35, 0)),
        ("v1.32.1+k3s1", (1, 32, 1)),
        ("v1.30.4-eks-16b398d", (1, 30, 4)),
        ("v1.36.2+rke2r1", (1, 36, 2)),
        ("latest", None),
        ("", None),
        ("1.2.3.4", None),
    ],
)
def test_kubelet_versions(text: str, expected: tuple[int, int, int] | None) -> None:
    assert KubeletVersion.parse(text) == expected
