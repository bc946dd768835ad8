"""Objects that come in any order: names, owners, warnings, gaps."""

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_cgaudit.collect.assemble import pods_by_node
from kubectl_cgaudit.collect.model import Owner
from kubectl_cgaudit.collect.owners import workload
from tests.support import cluster, container, node, pod, refused_text

N, P = node(), pod("p", container("c", "1"))


@pytest.mark.parametrize(
    ("status", "limit"),
    [
        ({"resources": {"limits": {"cpu": "200m"}}}, 200),
        ({"resources": {}}, None),
        ({}, 400),
        ({"allocatedResources": {"cpu": "50m"}}, 400),
        ({"allocatedResources": {"cpu": "50m"}, "resources": {"limits": {"cpu": "100m"}}}, 100),
    ],
)
def test_while_a_resize_is_pending_the_limit_is_the_one_that_is_there(
    status: dict[str, object], limit: int | None
) -> None:
    raw = pod("p", container("c", "100m", "400m"))
    raw["status"]["conditions"] = [{"type": "PodResizePending", "status": "True"}]
    raw["status"]["containerStatuses"] = [{"name": "c", **status}]
    (found,) = cluster(N, raw).pods
    assert found.containers[0].limit_milli == limit


@pytest.mark.parametrize(
    ("allocated", "pending", "request_"),
    [
        # Memory alone is allocated: the request for CPU is still asked for.
        ({"memory": "64Mi"}, True, None),
        ({"memory": "64Mi"}, False, 100),
        ({"cpu": "50m"}, True, 50),
        ({"cpu": "50m"}, False, 50),
        (None, True, 100),
    ],
)
def test_while_a_resize_is_pending_the_request_is_what_is_allocated(
    allocated: dict[str, str] | None, pending: bool, request_: int | None
) -> None:
    raw = pod("p", container("c", "100m"))
    raw["status"]["conditions"] = [{"type": "PodResizePending", "status": str(pending)}]
    raw["status"]["containerStatuses"] = [{"name": "c", "allocatedResources": allocated}]
    (found,) = cluster(N, raw).pods
    assert found.containers[0].request_milli == request_


def test_how_many_more_objects_are_bad(tmp_path: Path) -> None:
    def bad(*names: str) -> str:
        pods = [{"kind": "Pod", "metadata": {"name": name}, "spec": 1} for name in names]
        return refused_text(tmp_path, json.dumps({"kind": "List", "items": [N, *pods]}))

    assert "Pod a: " in bad("a")
    assert "like it" not in bad("a")
    assert "(and 1 more object like it); correct the input" in bad("a", "b")
    assert "(and 2 more objects like it); correct the input" in bad("a", "b", "c")


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({"name": "p", "namespace": "x"}, "Pod x/p: "),
        ({"name": "p"}, "Pod p: "),
        ({"namespace": "x"}, "Pod (unnamed): "),
        (None, "Pod (unnamed): "),
        ({"name": ""}, "Pod (unnamed): "),
    ],
)
def test_a_bad_object_is_named_as_far_as_it_can_be(metadata: Any, name: str, tmp_path: Path) -> None:
    raw = {"kind": "Pod", "spec": 1} | ({} if metadata is None else {"metadata": metadata})
    assert name in refused_text(tmp_path, json.dumps({"kind": "List", "items": [N, raw]}))


def test_an_object_without_a_name_is_refused(tmp_path: Path) -> None:
    for raw in (N, P):
        assert f"a {raw['kind']} without metadata.name" in refused_text(
            tmp_path, json.dumps({"kind": "List", "items": [raw | {"metadata": {"name": ""}}]})
        )


def event(when: str, reason: str = "CgroupV1", name: str = "n1") -> dict[str, Any]:
    return {
        "kind": "Event",
        "metadata": {"name": f"e-{when}"},
        "reason": reason,
        "lastTimestamp": when,
        "involvedObject": {"kind": "Node", "name": name},
    }


@pytest.mark.parametrize("turn", [1, -1])
def test_the_last_warning_of_a_node_counts_whatever_the_order(turn: int) -> None:
    events = [event("2026-11-01T00:00:00Z"), event("2026-11-02T00:00:00Z"), event("2026-11-03T00:00:00Z", "Other")]
    found = cluster(N, *events[::turn], event("2026-10-01T00:00:00Z", name="n2"))
    assert found.cgroup_v1_warnings == {"n1": "2026-11-02T00:00:00Z", "n2": "2026-10-01T00:00:00Z"}
    assert found.reading.ignored == {"Event": 1}


def test_only_active_pods_on_a_node_are_asked_of_its_kubelet() -> None:
    found = cluster(
        N, P, pod("q", container("c"), on=None), pod("r", container("c"), phase="Succeeded"), pod("s", container("c"))
    )
    assert pods_by_node(found) == {"n1": {("default", "p"), ("default", "s")}}


@pytest.mark.parametrize(
    ("api_version", "owner"),
    [
        ("batch/v1", ("CronJob", "train")),
        (None, ("CronJob", "train")),
        ("batch.volcano.sh/v1alpha1", ("Job.batch.volcano.sh", "train-20251105")),
    ],
)
def test_an_owner_of_another_group_is_none_of_kubernetes_own(api_version: str | None, owner: tuple[str, str]) -> None:
    raw = pod("p", container("c", "1"), owner=("Job", "train-20251105"))
    raw["metadata"]["ownerReferences"][0]["apiVersion"] = api_version
    found = cluster(N, raw)
    assert workload(found.pods[0], found) == Owner(*owner)
