"""Nodes that do not come back from a kubelet upgrade: what is said of them, and nothing else."""

import re
from pathlib import Path

import polars as pl

from tests.support import ONE, V1, audited, cluster, container, node, pod, pod_values, rendered, saved

AFTER = ("stops", "after_value_least", "after_share_greatest", "change_share", "change_against_system_least")


def test_a_rollback_to_v1_stops_pods_where_the_kubelet_refuses_v1(tmp_path: Path) -> None:
    target = tmp_path / "back.yaml"
    target.write_text("- {cgroup: v1}\n")
    result = audited(
        cluster(node(kubelet="v1.36.2"), ONE), "- {cgroup: v2, runtimes: {default: runc 1.3.6}}", str(target)
    )
    assert result.workloads[0].effects[0] == "stops"
    assert result.verdict.workloads.get("gains", 0) == 0


def test_of_a_node_that_does_not_come_back_nothing_is_shown_after() -> None:
    nodes = [node("a", kubelet="v1.36.2"), node("b")]
    twins = [pod(f"w-{on}", container("c", "1"), on=on) for on in ("a", "b")]
    found = saved(cluster(*nodes, *twins), f"{V1}\n- {{match: {{name: a}}, cgroup: v2}}", "kubelet=1.35")
    assert [[case.stops for case in each.cases] for each in found.audit.nodes] == [[False], [True]]
    wide, page = rendered("wide", found).splitlines(), rendered("markdown", found)
    head = next(line for line in wide if line.startswith("NODE "))
    row = next(line for line in wide if line.startswith("b "))
    cells = dict(zip(re.split("  +", head), re.split("  +", row), strict=False))
    assert (cells["CPU FOR PODS"], cells["PODS : SYSTEM"]) == ("80%", "4")
    (workload,) = [line for line in wide if line.startswith("! default/w-b ")]
    assert re.split("  +", workload) == ["! default/w-b pod", "1 of 1", "b", "-", "-"]
    stops = "→ does not start"
    assert f"| b | v1 {stops} | 80% {stops} | 20% {stops} | 4 {stops} | 4096 : 1024 {stops} |" in page
    assert f"| b | cgroup version | v1 | {stops[2:]} | stated | test rule 1 |" in page
    shown = rendered("html", found)
    assert '<td data-label="cgroup">v1 → does not start</td>' in shown
    assert '<td data-label="Pods get">80% → does not start</td>' in shown
    assert "its node does not come back" in shown
    (record,) = [frame.filter(pl.col("pod") == "w-b") for frame in found.containers.frames()]
    assert record.select(AFTER).row(0) == (True, None, None, None, None)


def test_of_a_node_that_does_not_come_back_only_that_is_said() -> None:
    pods = [pod("p", container("a", "200m"), container("b", "20m"), resources={"requests": {"cpu": "2"}})]
    found = audited(cluster(node(kubelet="v1.30.1"), *pods), V1, "kubelet=1.35")
    assert [each.rule for each in found.findings] == ["CGA101"]


def test_where_a_node_may_be_lost_the_other_case_is_told_and_named() -> None:
    objects = cluster(node(), pod("p", container("c", "50m", "77m"), container("s", "300m")))
    result = audited(objects, "- {driver: systemd, runtimes: {default: runc 1.1.15}}", "runtime,kubelet=1.36")
    # As if the node were surely on v2, where the limit's quota and the split are the same in both cases.
    assert [(found.rule, [case.when for case in found.cases]) for found in result.findings] == [
        ("CGA101", ["cgroup v1"]),
        ("CGA102", []),
        ("CGA204", ["cgroup v2"]),
        ("CGA302", ["cgroup v2"]),
    ]


def test_of_a_workload_that_stops_in_part_a_pod_that_stops_is_named() -> None:
    """The others do not change, and a healthy pod of theirs was said to stop."""
    nodes = [node("a", kubelet="v1.36.2"), node("b")]
    twins = [pod(f"agent-{on}", container("c", "1"), on=on, owner=("DaemonSet", "agent")) for on in ("a", "b")]
    found = saved(cluster(*nodes, *twins), f"{V1}\n- {{match: {{name: a}}, cgroup: v2}}", "kubelet=1.35")
    (workload,) = found.audit.workloads
    assert (workload.effects, workload.pods_hit, workload.pods, workload.nodes_hit) == (("stops",), 1, 2, ("b",))
    assert [*pod_values(found, ("effects",)).items()] == [("agent-a", [([],)]), ("agent-b", [(["stops"],)])]
    (row,) = [line for line in rendered("wide", found).splitlines() if line.startswith("! default/agent ")]
    assert re.split("  +", row)[:3] == ["! default/agent ds", "1 of 2", "b"]
    assert "| `!` | default/agent | DaemonSet | 1 of 2 | b |" in rendered("markdown", found)
