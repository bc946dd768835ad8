"""What a pod asks for and may use, and where its cgroups lie."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.cgroups import paths
from kubectl_cgaudit.cgroups.pods import (
    container_limit,
    may_count_pod_level,
    pod_level_resources,
    pod_limit,
    pod_request,
    pod_shares,
)
from kubectl_cgaudit.cgroups.version import KubeletVersion
from tests.support import V1, V2_LINEAR, cluster, container, node, pod, viewed


@pytest.mark.parametrize(
    ("qos", "driver", "path"),
    [
        ("Guaranteed", "systemd", "/kubepods.slice"),
        ("Burstable", "systemd", "/kubepods.slice/kubepods-burstable.slice"),
        ("BestEffort", "systemd", "/kubepods.slice/kubepods-besteffort.slice"),
        ("Guaranteed", "cgroupfs", "/kubepods"),
        ("Burstable", "cgroupfs", "/kubepods/burstable"),
        ("BestEffort", "cgroupfs", "/kubepods/besteffort"),
    ],
)
def test_paths_of_the_classes(qos: Any, driver: Any, path: str) -> None:
    assert paths.qos(qos, driver) == path


@pytest.mark.parametrize("args", [(None, "/p"), ("", "/p"), ("containerd://x", None), ("no-scheme", "/p")])
def test_a_container_without_an_id_or_a_pod_has_no_path(args: tuple[Any, Any]) -> None:
    assert paths.container(*args, "systemd") is None


def test_a_pod_without_a_uid_has_no_path() -> None:
    found = cluster(node(), pod("p", container("c", "1"))).pods[0]
    assert paths.pod(found, "systemd") is not None
    assert paths.pod(replace(found, uid=""), "systemd") is None


@pytest.mark.parametrize(
    ("version", "known"),
    [(None, True), ((1, 31, 9), False), ((1, 32, 0), False), ((1, 33, 99), False), ((1, 34, 0), True)],
)
def test_pod_level_resources_count_from_1_34_on(version: Any, known: bool) -> None:
    kubelet = KubeletVersion(*version) if version else None
    assert pod_level_resources(kubelet) is known
    found = cluster(
        node(), pod("p", container("c"), resources={"limits": {"cpu": "2"}, "requests": {"cpu": "1"}})
    ).pods[0]
    assert container_limit(found.containers[0], found, kubelet) == (2000 if known else None)
    assert pod_limit(found, kubelet) == (2000 if known else None)
    assert pod_request(found, kubelet) == (1000 if known else 0)
    bare = cluster(node(), pod("p", container("c"))).pods[0]
    assert container_limit(bare.containers[0], bare, kubelet) is None


def test_the_limit_of_a_pod_by_its_class() -> None:
    kubelet = KubeletVersion(1, 33, 0)

    def limit(*containers: dict[str, Any], **spec: Any) -> int | None:
        return pod_limit(cluster(node(), pod("p", *containers, **spec)).pods[0], kubelet)

    one = container("a", "1", "1")
    assert limit(one) == 1000
    assert limit(one, container("b", "1")) is None
    assert limit(one, container("b", "1"), qos="Guaranteed") == 1000
    assert limit(one, ephemeralContainers=[container("debug")]) == 1000
    assert limit(one, initContainers=[container("init", "1")]) is None
    assert limit(one, initContainers=[container("init", "3", "3")]) == 3000
    assert limit(one, initContainers=[container("init", "3", "3"), container("second", "1", "1")]) == 3000
    assert limit(container("a"), qos="BestEffort") is None
    assert limit(one, qos="BestEffort") is None
    assert limit(one, overhead={"cpu": "100m"}) == 1100


def test_the_request_of_a_pod_is_of_the_moment_that_asks_for_most() -> None:
    kubelet = KubeletVersion(1, 33, 0)

    def request(app: str, *inits: dict[str, Any]) -> int:
        return pod_request(cluster(node(), pod("p", container("a", app), initContainers=list(inits))).pods[0], kubelet)

    side = container("side", "300m", restartPolicy="Always")
    big, small = container("big", "900m"), container("small", "100m")
    assert request("100m", big, small) == 900
    assert request("100m", small, big) == 900
    assert request("100m", side, big) == 1200
    assert request("100m", big, side) == 900
    assert request("700m", side, small) == 1000


@pytest.mark.parametrize(
    ("status", "weight", "quota"),
    [
        ({"allocatedResources": {"cpu": "1"}}, 39, 400_000),
        ({"allocatedResources": {"cpu": "1"}, "resources": {"limits": {"cpu": "2"}}}, 39, 200_000),
        ({"allocatedResources": {"cpu": "1"}, "conditions": []}, 79, 400_000),
        ({}, 79, 400_000),
    ],
)
def test_a_pod_level_resize_that_is_pending_counts_as_allocated(
    status: dict[str, object], weight: int, quota: int
) -> None:
    raw = pod("p", container("c"), resources={"requests": {"cpu": "2"}, "limits": {"cpu": "4"}})
    raw["status"] |= {"conditions": [{"type": "PodResizePending", "status": "True"}], **status}
    (comparison,) = viewed(cluster(node(kubelet="v1.36.2"), raw), V2_LINEAR)
    tree = comparison.cases[0].before.pods()[0]
    assert (tree.cgroup.weight, tree.cgroup.quota_us) == (weight, quota)


def test_a_besteffort_pod_has_the_least_shares_whatever_its_overhead() -> None:
    (found,) = cluster(node(), pod("p", container("c"), qos="BestEffort", overhead={"cpu": "250m"})).pods
    assert (pod_request(found, None), pod_shares(found, None)) == (250, 2)


@pytest.mark.parametrize(
    ("version", "may"),
    [("", False), ("1.31.99", False), ("1.32.0", True), ("1.33.99", True), ("1.34.0", False)],
)
def test_which_kubelets_have_a_gate_for_what_pods_ask_for_as_a_whole(version: str, may: bool) -> None:
    assert may_count_pod_level(KubeletVersion.parse(version)) is may


def test_what_is_allocated_to_a_pod_has_its_overhead_in_it() -> None:
    """As `PodRequests` of the kubelet counts; so have the limits that it reads back from the pod's cgroup."""
    raw = pod(
        "p", container("c"), resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}, overhead={"cpu": "250m"}
    )
    raw["status"] |= {
        "conditions": [{"type": "PodResizePending", "status": "True"}],
        "allocatedResources": {"cpu": "750m"},
        "resources": {"limits": {"cpu": "1250m"}},
    }
    (comparison,) = viewed(cluster(node(kubelet="v1.36.2"), raw), V1, "kubelet=1.36.3")
    tree = comparison.cases[0].before.pods()[0]
    assert (tree.cgroup.shares, tree.cgroup.quota_us) == (768, 125_000)
    raw["status"]["conditions"] = []
    (settled_,) = viewed(cluster(node(kubelet="v1.36.2"), raw), V1, "kubelet=1.36.3")
    tree = settled_.cases[0].before.pods()[0]
    assert (tree.cgroup.shares, tree.cgroup.quota_us) == (1280, 225_000)


@pytest.mark.parametrize(
    ("status", "limit"),
    [
        ({"resize": "InProgress"}, 150),
        ({"conditions": [{"type": "PodResizeInProgress", "status": "True"}]}, 150),
        ({"conditions": [{"type": "PodResizePending", "status": "False"}]}, 150),
        ({"resize": "Proposed"}, 77),
        ({"resize": "Deferred"}, 77),
        ({"resize": "Infeasible"}, 77),
        ({"conditions": [{"type": "PodResizePending", "status": "True"}]}, 77),
        ({"conditions": [{"type": f"PodResize{each}", "status": "True"} for each in ("InProgress", "Pending")]}, 77),
    ],
)
def test_a_limit_that_the_kubelet_has_granted_counts_before_it_is_in_force(
    status: dict[str, object], limit: int
) -> None:
    """What a kubelet has allocated is what it gives a container that is created anew."""
    resources = {"requests": {"cpu": "150m"}, "limits": {"cpu": "150m"}}
    raw = pod("p", container("c", "150m", "150m"), resources=resources)
    in_force = {"limits": {"cpu": "77m"}}
    allocated = {"allocatedResources": {"cpu": "150m"}, "resources": in_force}
    raw["status"] |= {"containerStatuses": [{"name": "c", **allocated}], **allocated, **status}
    (found,) = cluster(node(), raw).pods
    (held,) = found.containers
    assert (held.request_milli, held.limit_milli) == (150, limit)
    assert (found.request_milli, found.limit_milli) == (150, limit)
