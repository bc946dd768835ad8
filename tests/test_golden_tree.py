"""The predicted tree against the kernel's own cgroup files and measured CPU shares."""

from typing import Any

import pytest

from kubectl_cgaudit import plain
from kubectl_cgaudit.plain import json_rows, yaml_rows
from kubectl_cgaudit.report import tree as cgroups
from tests.support import STATES, cluster, container, golden_json, node, pod, recorded, viewed

LEVELS = ("kubepods", "qos", "pod", "container")


def rows() -> list[dict[str, Any]]:
    comparisons = viewed(recorded(), STATES.read_text(), "v2+runtime")
    found: list[dict[str, Any]] = [*cgroups.data(comparisons).rows]
    return found


def test_now_equals_every_recorded_cgroup() -> None:
    golden = {(row["node"], row["cgroup"]): row for row in golden_json("cgroups.json") if row["level"] in LEVELS}
    predicted = {(row["node"], row["cgroup"]): row for row in rows() if row["level"] in LEVELS and row["cgroup"]}
    assert len(golden) == 77
    assert set(predicted) == set(golden)
    for key, truth in golden.items():
        row = predicted[key]
        assert {name: row[name] for name in ("level", "namespace", "pod", "container")} == {
            name: truth[name] for name in ("level", "namespace", "pod", "container")
        }
        on_v1 = "shares" in truth
        now = row["now"]
        assert now["version"] == ("v1" if on_v1 else "v2")
        assert now["weight"] == truth.get("weight")
        assert now["quota_us"] == truth["quota_us"], key
        assert now["period_us"] == truth["period_us"]
        if on_v1:
            assert now["shares"] == truth["shares"], key


def test_only_the_container_that_was_never_created_has_no_cgroup() -> None:
    assert [(row["pod"], row["container"]) for row in rows() if row["cgroup"] is None] == [("debug-shell", "sh")]


def test_a_tree_is_never_held_whole_and_reads_as_if_it_were() -> None:
    comparisons = viewed(recorded(), STATES.read_text(), "v2+runtime")
    for each, nodes in ((rows(), comparisons), ([], ())):
        as_json, as_yaml = list(json_rows(cgroups.data(nodes))), list(yaml_rows(cgroups.data(nodes)))
        assert (len(as_json), len(as_yaml)) == (len(each) + 2, len(each) + 1)
        assert "".join(as_json) == plain.as_json({"cgroups": each})
        assert "".join(as_yaml) == plain.as_yaml({"cgroups": each})
    assert len(list(cgroups.as_text(comparisons))) == sum(len(each.cases) for each in comparisons)


def test_system_slice_is_as_recorded_on_every_node() -> None:
    system = {row["node"]: row["now"] for row in rows() if row["cgroup"] == "/system.slice"}
    golden = {row["node"]: row for row in golden_json("cgroups.json") if row["cgroup"] == "/system.slice"}
    assert {name: now["weight"] for name, now in system.items()} == {"worker-a": 100, "worker-b": 20, "worker-c": None}
    assert {name: now["shares"] for name, now in system.items()} == {
        "worker-a": None,
        "worker-b": None,
        "worker-c": 1024,
    }
    assert {name: row.get("weight") for name, row in golden.items()} == {
        "worker-a": 100,
        "worker-b": 20,
        "worker-c": None,
    }


def test_measured_cpu_shares_of_a_saturated_node_are_predicted() -> None:
    golden = golden_json("saturated-node.json")
    pods = [
        {
            **each,
            "kind": "Pod",
            "spec": {**each["spec"], "nodeName": "n1"},
            "status": {**each["status"], "phase": "Running"},
        }
        for each in golden["pods"]
    ]
    measured = {_place(row): row for row in golden["cgroups"]}
    # The scopes' ids are read from the recording, as the pods were saved without their status.
    for each in pods:
        names = [c["name"] for c in each["spec"]["containers"]]
        each["status"]["containerStatuses"] = [
            {"name": name, "state": {"running": {}}, "containerID": _runtime_id(golden, each["metadata"]["name"], name)}
            for name in names
        ]
    comparisons = viewed(
        cluster(node(cpu=golden["allocatable_cpu"], kubelet=golden["kubelet"]), *pods),
        "- {cgroup: v2, runtimes: {default: runc 1.3.6, runc-old: runc 1.1.15}}",
        "runc=1.3.6",
    )
    predicted = {_place(row): row for row in cgroups.data(comparisons).rows}
    idle = {("/user.slice", None), ("/init.scope", None)}
    pauses = {key for key, row in measured.items() if row["cgroup"].endswith(".scope") and row["container"] is None}
    assert set(measured) - idle - pauses == set(predicted)
    assert len(predicted) == 16
    for key, row in predicted.items():
        assert row["now"]["weight"] == measured[key]["weight"], key
        assert abs(row["now"]["share"] - measured[key]["share_of_used_cpu"]) < 0.005, key


def _place(row: dict[str, Any]) -> tuple[str, str | None]:
    return row["cgroup"], row["container"]


def _runtime_id(golden: dict[str, Any], pod_name: str, container_name: str) -> str:
    path = next(r["cgroup"] for r in golden["cgroups"] if (r["pod"], r["container"]) == (pod_name, container_name))
    return "containerd://" + path.rsplit("cri-containerd-", 1)[1].removesuffix(".scope")


def test_published_v1_node_gives_pods_91_percent() -> None:
    rules = "- {cgroup: v1, root: {docker: 1024, user.slice: 1024}, runtimes: {default: runc 1.1.5}}"
    (comparison,) = viewed(cluster(node(cpu="30")), rules)
    before = comparison.cases[0].before
    assert before.kubepods.shares == 30720
    assert [(c.path, c.shares, c.weight) for c in before.root] == [
        ("/system.slice", 1024, None),
        ("/docker", 1024, None),
        ("/user.slice", 1024, None),
    ]
    assert before.kubepods.share == pytest.approx(30720 / 33792)
    assert f"{before.kubepods.share:.0%}" == "91%"


def test_published_v2_node_has_kubepods_76_and_a_cpu_39() -> None:
    objects = cluster(node(cpu="1930m"), pod("p", container("c", "1")))
    (comparison,) = viewed(objects, "- {cgroup: v2, runtimes: {default: linear}}")
    before = comparison.cases[0].before
    assert before.kubepods.weight == 76
    assert before.pods()[0].containers[0][1].weight == 39


def test_facts_numbers_of_system_against_pods() -> None:
    """facts section 2: 64 CPUs are 64:1 on v1 and 25:1 on v2; 1 CPU is 1:1, then 0.39:1."""
    ratios = []
    for cpu in ("64", "1"):
        (comparison,) = viewed(cluster(node(cpu=cpu)), "- {cgroup: v1, runtimes: {default: linear}}", "v2")
        case = comparison.cases[0]
        ratios += [case.before.pods_to_system, case.after.pods_to_system]
    assert ratios == [64.0, 25.0, 1.0, 0.39]
