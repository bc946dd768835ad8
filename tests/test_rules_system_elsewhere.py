"""CGA201: what it says of the nodes and pods of a workload that are not the worst."""

from typing import Any

import pytest

from tests.support import V1, audited, cluster, container, node, of_rule, pod, the_finding


def replicas(*nodes: str) -> list[dict[str, Any]]:
    return [
        pod(f"w-{place}", container("c", "2"), on=name, owner=("StatefulSet", "w")) for place, name in enumerate(nodes)
    ]


def test_201_names_what_to_do_on_every_node_where_a_workload_loses() -> None:
    """The worst of equal losses is where most of a node's CPU is lost, and what fits there may be wrong elsewhere."""
    nodes = [node("a64", "64"), node("b4"), node("c4"), node("d16", "16"), node("e4")]
    finding = the_finding("CGA201", V1, "v2", *nodes, *replicas("a64", "b4", "c4", "d16", "e4"))
    assert finding.seen.startswith(
        "Pod default/w-1 on b4: 4 times the CPU of system.slice now, 1.57 times after (-61%)"
    )
    assert finding.remedy.startswith(
        "Once b4 is on cgroup v2, not before, keep the ratio of now: give system.slice weight 39"
    )
    assert finding.remedy.endswith(
        ". Its other nodes: watch before changing anything (pods outweigh it by more than 10 : 1 now) on a64, d16; weight 39 "
        "for system.slice, once on cgroup v2, not before, on c4, e4."
    )
    assert "Its other nodes" not in the_finding("CGA201", V1, "v2", node("b4"), *replicas("b4", "b4")).remedy


def test_201_says_what_is_still_lost_on_the_other_nodes_and_where_a_202_is_made() -> None:
    """50m beside a BestEffort pod: 51 : 2 of the shares are 2 : 1 of the weights."""
    nodes = [node("a4"), node("c4"), node("d7", "7"), node("e64", "64"), node("f4")]
    pods = [
        pod(f"w-{place}", container("c", "50m"), on=name, owner=("StatefulSet", "w"))
        for place, name in enumerate(("a4", "c4", "d7", "e64", "f4"))
    ]

    def others(*beside: str) -> str:
        best = [pod(f"b-{name}", container("c"), qos="BestEffort", on=name) for name in beside]
        return the_finding("CGA201", V1, "v2", *nodes, *pods, *best).remedy.partition(" Its other nodes: ")[2]

    what = (
        "weight 39 for system.slice, once on cgroup v2, not before, on c4, f4; weight 39 for system.slice (CGA202 names the node "
        "then), once on cgroup v2, not before, on d7; watch before changing anything (pods outweigh it by more than 10 : 1 now) "
        "on e64."
    )
    assert others("a4") == what
    assert (
        others("a4", "c4")
        == f"{what} It still loses 30% then on c4, as weights are rounded: raise its CPU request too."
    )
    assert (
        others("a4", "c4", "d7", "e64")
        == f"{what} It still loses up to 31% then on c4, d7, e64, as weights are rounded: raise its CPU request too."
    )


def test_201_a_node_with_another_weight_or_none_is_told_apart() -> None:
    rules = "\n".join([V1, "- {match: {name: b4}, cgroup: v1, system_slice: 4096, set_by: systemd}"])
    finding = the_finding("CGA201", rules, "v2", node("a4"), node("b4"), *replicas("a4", "b4"))
    assert finding.seen.startswith("Pod default/w-1 on b4: 1 times")
    assert "give system.slice weight 157 " in finding.remedy
    assert finding.remedy.endswith(
        ". Its other nodes: weight 39 for system.slice, once on cgroup v2, not before, on a4."
    )
    mixed = "\n".join(["- {cgroup: v2, runtimes: {default: linear}}", "- {match: {name: a4}, cgroup: v1}"])
    sibling = [pod(f"big-{name}", container("c", "2500m"), on=name) for name in ("a4", "b4")]
    both = audited(cluster(node("a4"), node("b4"), *replicas("a4", "b4"), *sibling), mixed, "v2")
    assert "Its other nodes" not in of_rule(both, "CGA201")["default/w"].remedy


@pytest.mark.parametrize(
    ("known", "open_", "said"),
    [
        (1, 1, " 1 more of this workload is found by this rule, not for sure."),
        (1, 2, " 2 more of this workload are found by this rule, none of them for sure."),
        (2, 2, " 3 more of this workload are found by this rule, 1 of them for sure."),
        (3, 0, " 2 more of this workload are found by this rule."),
        (0, 3, " 2 more of this workload are found by this rule."),
    ],
)
def test_201_how_many_more_lose_for_sure_is_said_where_it_is_not_as_told(known: int, open_: int, said: str) -> None:
    names = [*(f"s{place}" for place in range(known)), *(f"o{place}" for place in range(open_))]
    rules = "".join(f"- {{match: {{name: s{place}}}, cgroup: v1}}\n" for place in range(known))
    finding = the_finding("CGA201", rules, "v2", *map(node, names), *replicas(*names))
    assert finding.when == ("" if known else "if cgroup v1")
    assert said in finding.seen


def test_201_how_many_more_lose_for_sure_is_said_where_the_worst_only_may() -> None:
    rules = "- {match: {name: s4}, cgroup: v1, system_slice: 45, set_by: kubelet, runtimes: {default: linear}}"
    finding = the_finding("CGA201", rules, "v2", node("o4"), node("s4"), *replicas("o4", "s4"))
    assert finding.when == "if cgroup v1"
    assert " 1 more of this workload is found by this rule, for sure." in finding.seen


def test_201_says_where_system_slice_can_or_need_not_change() -> None:
    """system.slice of k4 is a reserve of 2 CPUs: the kubelet keeps its ratio, but not that of 51 : 2 shares in kubepods."""
    rules = f"{V1}\n- {{match: {{name: k4}}, cgroup: v1, system_slice: 2048, set_by: kubelet}}"
    nodes = [node("a4"), node("k4"), node("t4", osImage="Talos (v1.11.2)")]
    pods = [pod(f"w-{name}", container("c", "50m"), on=name, owner=("StatefulSet", "w")) for name in ("a4", "k4", "t4")]
    beside = pod("b", container("c"), qos="BestEffort", on="k4")
    finding = the_finding("CGA201", rules, "v2", *nodes, *pods, beside)
    assert finding.remedy.startswith("Once a4 is on cgroup v2, ")
    assert finding.remedy.endswith(
        " Its other nodes: nothing for system.slice on k4; nothing to set by hand on t4. It still loses 31% then on k4, as "
        "weights are rounded: raise its CPU request too."
    )


def test_201_of_another_node_says_for_which_cases() -> None:
    """On b4 nothing is known: on v2 it loses nothing, and needs nothing."""
    rules = "- {match: {name: a4}, cgroup: v1, system_slice: 4096, set_by: systemd}"
    finding = the_finding("CGA201", rules, "v2", node("a4"), node("b4"), *replicas("a4", "b4"))
    assert finding.seen.startswith("Pod default/w-0 on a4: 1 times ")
    assert finding.remedy.endswith(
        ". Its other nodes: weight 39 for system.slice, once on cgroup v2, not before (if cgroup v1), on b4."
    )
