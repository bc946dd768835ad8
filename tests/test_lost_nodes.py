"""Nodes that do not come back from a kubelet upgrade: what is said of them, and nothing else."""

import re
from pathlib import Path

from kubectl_cgaudit.report import html, markdown
from tests.support import ONE, V1, audited, cluster, container, node, pod, rendered


def test_a_rollback_to_v1_stops_pods_where_the_kubelet_refuses_v1(tmp_path: Path) -> None:
    target = tmp_path / "back.yaml"
    target.write_text("- {cgroup: v1}\n")
    result = audited(
        cluster(node(kubelet="v1.36.2"), ONE), "- {cgroup: v2, runtimes: {default: runc 1.3.6}}", str(target)
    )
    assert result.workloads[0].effects[0] == "stops"
    assert result.verdict.workloads["gains"] == 0


def test_of_a_node_that_does_not_come_back_nothing_is_shown_after() -> None:
    nodes = [node("a", kubelet="v1.36.2"), node("b")]
    twins = [pod(f"w-{on}", container("c", "1"), on=on) for on in ("a", "b")]
    audit = audited(cluster(*nodes, *twins), f"{V1}\n- {{match: {{name: a}}, cgroup: v2}}", "kubelet=1.35")
    assert [[case.stops for case in each.cases] for each in audit.nodes] == [[False], [True]]
    wide, page = rendered("wide", audit).splitlines(), markdown.render(audit)
    head = next(line for line in wide if line.startswith("NODE "))
    row = next(line for line in wide if line.startswith("b "))
    cells = dict(zip(re.split("  +", head), re.split("  +", row), strict=False))
    assert {name: cells[name] for name in ("CGROUP", "PODS : SYSTEM", "KUBEPODS : SYSTEM.SLICE", "CPU FOR PODS")} == {
        "CGROUP": "v1 -> stops",
        "PODS : SYSTEM": "4 : 1 -> stops",
        "KUBEPODS : SYSTEM.SLICE": "4096 : 1024 -> stops",
        "CPU FOR PODS": "80% -> stops",
    }
    (workload,) = [line for line in wide if line.startswith("default/w-b ")]
    assert re.split("  +", workload)[2:7] == ["stops", "likely", "stops", "4 -> stops (w-b on b)", "80% -> stops"]
    assert "| b | likely | v1 → stops | 4096 : 1024 → stops | 4 : 1 → stops | 80% → stops | 20% → stops |" in page
    assert "| b | cgroup version | v1 | stops | stated | test rule 1 |" in page
    shown = html.render(audit)
    assert shown.count("<b>does not start</b>: its kubelet refuses cgroup v1") == 1
    assert "stops against system" not in shown


def test_of_a_node_that_does_not_come_back_only_that_is_said() -> None:
    pods = [pod("p", container("a", "200m"), container("b", "20m"), resources={"requests": {"cpu": "2"}})]
    found = audited(cluster(node(kubelet="v1.30.1"), *pods), V1, "kubelet=1.35")
    assert [each.rule for each in found.findings] == ["CGA101"]


def test_where_a_node_may_be_lost_the_other_case_is_told_and_named() -> None:
    objects = cluster(node(), pod("p", container("c", "50m", "77m"), container("s", "300m")))
    result = audited(objects, "- {driver: systemd, runtimes: {default: runc 1.1.15}}", "runtime,kubelet=1.36")
    # As if the node were surely on v2, where the limit's quota and the split are the same in both cases.
    assert [(found.rule, found.when) for found in result.findings] == [
        ("CGA101", "if cgroup v1"),
        ("CGA102", ""),
        ("CGA204", "if cgroup v2"),
        ("CGA302", "if cgroup v2"),
    ]


def test_of_a_workload_that_stops_in_part_a_pod_that_stops_is_named() -> None:
    """The others do not change, and a healthy pod of theirs was said to stop."""
    nodes = [node("a", kubelet="v1.36.2"), node("b")]
    twins = [pod(f"agent-{on}", container("c", "1"), on=on, owner=("DaemonSet", "agent")) for on in ("a", "b")]
    audit = audited(cluster(*nodes, *twins), f"{V1}\n- {{match: {{name: a}}, cgroup: v2}}", "kubelet=1.35")
    (workload,) = audit.workloads
    assert [(each.name, each.effects) for each in workload.pods] == [("agent-a", ()), ("agent-b", ("stops",))]
    (row,) = [line for line in rendered("wide", audit).splitlines() if line.startswith("default/agent ")]
    assert re.split("  +", row)[4:7] == ["stops", "4 -> stops (agent-b on b)", "80% -> stops"]
    assert "| 2 | **does not run after the move** | likely | stops | 80% → stops |" in markdown.render(audit)
    assert '<b>stops</b><span class="also">4 × system.slice on b</span>' in html.render(audit)
