"""CGA204: when it fires, when it does not, and what it says."""

import pytest

from kubectl_cgaudit.cgroups.weights import milli_to_shares, quadratic
from tests.support import (
    V1,
    V2_LINEAR,
    audited,
    cluster,
    container,
    node,
    of_rule,
    pod,
    the_finding,
)


def test_204_numbers_of_the_measured_example() -> None:
    """facts section 2.4: app=200m + sidecar=20m; the app's part goes from 8/9 to 29/35."""
    objects = cluster(node(), pod("p", container("app", "200m"), container("sidecar", "20m")))
    (finding,) = of_rule(audited(objects, V2_LINEAR, "runtime"), "CGA204").values()
    assert finding.seen == (
        "Pod default/p on n1: app has 89% of its pod's CPU now and 83% after (-6.8%); what it loses goes to sidecar "
        "(11% -> 17%). Weights: app 8 -> 29, sidecar 1 -> 6."
    )
    assert finding.remedy == (
        "Shift the request inside the pod, which costs nothing to schedule and keeps the pod's weight: app 200m -> 210m, "
        "sidecar 20m -> 10m; weights app : sidecar = 30 : 4, as 8 : 1 now. Raising app alone takes 380m, 180m more a pod to "
        "schedule. Not before the new runtime creates the containers."
    )
    assert quadratic(milli_to_shares(10)) == 4


def test_204_a_debug_container_takes_nothing() -> None:
    raw = pod("p", container("app", "50m"), ephemeralContainers=[{"name": "debug"}])
    raw["status"]["ephemeralContainerStatuses"] = [{"name": "debug", "state": {"running": {}}}]
    audit = audited(cluster(node(cpu="8"), raw), V1, "v2")
    assert of_rule(audit, "CGA204") == {}
    assert "moves" not in audit.workloads[0].effects


def test_204_with_several_losers_the_largest_is_the_app() -> None:
    pods = (container("a", "150m"), container("b", "200m"), container("z", "20m"))
    finding = the_finding("CGA204", V2_LINEAR, "runtime", node(), pod("p", *pods))
    assert finding.seen == (
        "Pod default/p on n1: b has 53% of its pod's CPU now and 49% after (-7.8%); what it loses goes to a (40% -> 41%) and "
        "z (6.7% -> 10%). Weights: a 6 -> 24, b 8 -> 29, z 1 -> 6."
    )
    assert "weights b : a : z = 31 : 23 : 4, as 8 : 6 : 1 now" in finding.remedy


def test_204_holds_from_its_threshold_on() -> None:
    """8 / 9 to 29 / 35 is -6.786%."""
    objects = cluster(node(), pod("p", container("app", "200m"), container("sidecar", "20m")))
    change = audited(objects, V2_LINEAR, "runtime").workloads[0].inside_pod
    assert change is not None
    assert list(of_rule(audited(objects, V2_LINEAR, "runtime", f"pod-move={-change.change}"), "CGA204"))
    assert of_rule(audited(objects, V2_LINEAR, "runtime", "pod-move=0.068"), "CGA204") == {}


@pytest.mark.parametrize("threshold", ["pod-move=1e-7", "pod-move=1e-9"])
def test_204_nothing_moves_where_nothing_changes_however_small_the_threshold(threshold: str) -> None:
    """Another kubelet leaves the containers' weights as they are."""
    objects = cluster(node(kubelet="v1.34.1"), pod("p", container("app", "900m"), container("proxy", "50m")))
    audit = audited(objects, V2_LINEAR, "kubelet=1.36", threshold)
    assert of_rule(audit, "CGA204") == {}
    assert "moves" not in audit.workloads[0].effects


def test_204_a_loss_so_small_that_nobody_is_seen_to_gain() -> None:
    """153537 / 459877 to 5857 / 17543 is less by one of the digits that are shown; b has more, by less than half of one."""
    containers = (container("a", "149939m"), container("b", "149222m"), container("c", "149939m"))
    finding = the_finding("CGA204", V1, "v2", node(cpu="512"), pod("p", *containers), thresholds=("pod-move=1e-9",))
    assert finding.seen == (
        "Pod default/p on n1: c has 33% of its pod's CPU now and 33% after (>-0.0001%). "
        "Weights: a 153537 -> 5857, b 152803 -> 5829, c 153537 -> 5857."
    )
    assert finding.remedy == (
        "No shift of the request between them restores the old ratio. Raising c alone does: 149956m, 17m more a pod to "
        "schedule. But then a lacks 0.006% of its part of now, b 0.006%. "
        "Not before the node is on cgroup v2, with the runtime it has then."
    )


def test_204_of_two_losers_the_one_with_the_larger_part_is_told() -> None:
    small = [container(f"s{n}", "20m") for n in range(6)]
    finding = of_rule(
        audited(
            cluster(node(), pod("p", container("a", "230m"), container("b", "200m"), *small)), V2_LINEAR, "runtime"
        ),
        "CGA204",
    )["default/p"]
    assert finding.seen.startswith("Pod default/p on n1: a has 39% of its pod's CPU now and 33% after (-")


def test_the_worst_container_of_a_workload_is_told_whatever_its_place() -> None:
    pods = [
        pod(f"w-{n}", container("a", "1"), container("b", "2"), container("c", "500m"), owner=("StatefulSet", "w"))
        for n in range(2)
    ]
    finding = of_rule(audited(cluster(node(), *pods), V1, "v2"), "CGA203")["default/w"]
    assert finding.seen.startswith(
        "Container b of default/w-0: cpu.shares 2048 now, cpu.weight 79 after: 2.00 -> 0.79 times"
    )
    assert finding.seen.endswith(" 3 more of this workload are found by this rule.")


def test_204_tells_who_loses_in_the_other_cases_and_what_helps_it() -> None:
    """30 : 2 shares on v1; 2 : 1, linear, on v2; 7 : 1, quadratic, after."""
    objects = cluster(node(), pod("p", container("a", "30m"), container("b", "2m")))
    finding = of_rule(audited(objects, "", "v2+runtime"), "CGA204")["default/p"]
    assert (finding.severity, finding.when) == ("high", "if cgroup v2, linear runtime")
    assert finding.seen == (
        "Pod default/p on n1: b has 33% of its pod's CPU now and 12% after (-62%); what it loses goes to a (67% -> 88%). "
        "Weights: a 2 -> 7, b 1 -> 1. It is found if cgroup v1 too, with other numbers. If cgroup v1 a loses, -6.7%."
    )
    assert finding.remedy == (
        "If cgroup v2, linear runtime: Shift the request inside the pod, which costs nothing to schedule and keeps the pod's "
        "weight: b 2m -> 7m, a 30m -> 25m; weights b : a = 3 : 6, as 1 : 2 now. Raising b alone takes 10m, 8m more a pod to "
        "schedule. Not before the new runtime creates the containers. If cgroup v1: No shift of the request between them "
        "restores the old ratio. Raising a alone does: 78m, 48m more a pod to schedule. "
        "Not before the node is on cgroup v2, with the runtime it has then."
    )


def test_204_of_who_loses_in_other_cases_the_worst_of_them_is_told() -> None:
    """30 : 2 shares and 7 : 1 become 2 : 1, or the shares become 7 : 1."""
    objects = cluster(node(), pod("p", container("a", "30m"), container("b", "2m")))
    finding = of_rule(audited(objects, "", "v2,runc=1.1.5,crun=1.28"), "CGA204")["default/p"]
    assert finding.when == "if cgroup v2, linear runtime, unnamed runtime is crun"
    assert finding.seen.endswith(" unnamed runtime is crun a loses, -29% at worst.")


def test_204_a_node_that_does_not_come_back_splits_no_pod() -> None:
    nodes = [node("a"), node("b")]
    rules = f"{V2_LINEAR}\n- {{match: {{name: b}}, cgroup: v1}}"
    pods = [
        pod(f"p-{name}", container("app", "1"), container("side", "100m"), on=name, owner=("StatefulSet", "w"))
        for name in ("a", "b")
    ]
    remedies = [the_finding("CGA204", rules, f"runtime{to}", *nodes, *pods).remedy for to in ("", ",kubelet=1.35")]
    assert [" On b another formula splits the pod" in remedy for remedy in remedies] == [True, False]


def test_204_a_milder_case_beside_one_where_nothing_moves_is_told() -> None:
    finding = the_finding("CGA204", "", "v2", node(), pod("p", container("app", "26m"), container("side", "3m")))
    assert (finding.severity, finding.when) == ("high", "if cgroup v1, linear runtime")
    assert finding.seen.endswith(" It is found if cgroup v1, quadratic runtime too, with other numbers.")
    assert finding.remedy.startswith("If cgroup v1, linear runtime: No shift of the request between them restores ")
    assert " If cgroup v1, quadratic runtime: Shift the request inside the pod, which costs nothing" in finding.remedy
