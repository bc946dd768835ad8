"""CGA204: when it fires, when it does not, and what it sees."""

import pytest

from kubectl_cgaudit.audit.model import Finding
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


def told(finding: Finding) -> tuple[str | None, str | None, tuple[float | None, ...], tuple[float | None, ...]]:
    """The pod and the container that loses, its part of the pod before and after, and its values."""
    part, value = finding.measures
    assert (part.name, value.unit) == ("share of the pod", "shares or weight")
    return finding.where.pod, finding.where.container, (part.before, part.after), (value.before, value.after)


def test_204_numbers_of_the_measured_example() -> None:
    """facts section 2.4: app=200m + sidecar=20m; the app's part goes from 8/9 to 29/35."""
    objects = cluster(node(), pod("p", container("app", "200m"), container("sidecar", "20m")))
    result = audited(objects, V2_LINEAR, "runtime")
    (finding,) = of_rule(result, "CGA204").values()
    assert (finding.severity, finding.where.node) == ("low", "n1")
    assert told(finding) == ("p", "app", (0.888888889, 0.828571429), (8, 29))
    split = result.workloads[0].split
    assert split is not None
    assert (split.container, split.change) == ("app", -0.067857142)
    values = {each.container: (each.before_least, each.after_least) for each in result.workloads[0].values}
    assert values == {"app": (8, 29), "sidecar": (1, 6)}


def test_204_a_debug_container_takes_nothing() -> None:
    raw = pod("p", container("app", "50m"), ephemeralContainers=[{"name": "debug"}])
    raw["status"]["ephemeralContainerStatuses"] = [{"name": "debug", "state": {"running": {}}}]
    audit = audited(cluster(node(cpu="8"), raw), V1, "v2")
    assert of_rule(audit, "CGA204") == {}
    assert "moves" not in audit.workloads[0].effects


def test_204_with_several_losers_the_largest_is_the_app() -> None:
    pods = (container("a", "150m"), container("b", "200m"), container("z", "20m"))
    finding = the_finding("CGA204", V2_LINEAR, "runtime", node(), pod("p", *pods))
    assert told(finding) == ("p", "b", (0.533333333, 0.491525424), (8, 29))


def test_204_holds_from_its_threshold_on() -> None:
    """8 / 9 to 29 / 35 is -6.786%."""
    objects = cluster(node(), pod("p", container("app", "200m"), container("sidecar", "20m")))
    change = audited(objects, V2_LINEAR, "runtime").workloads[0].split
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
    assert told(finding) == ("p", "c", (round(153537 / 459877, 9), round(5857 / 17543, 9)), (153537, 5857))


def test_204_of_two_losers_the_one_with_the_larger_part_is_told() -> None:
    small = [container(f"s{n}", "20m") for n in range(6)]
    finding = of_rule(
        audited(
            cluster(node(), pod("p", container("a", "230m"), container("b", "200m"), *small)), V2_LINEAR, "runtime"
        ),
        "CGA204",
    )["default/p"]
    assert told(finding) == ("p", "a", (0.391304348, 0.329896907), (9, 32))


def test_the_worst_container_of_a_workload_is_told_whatever_its_place() -> None:
    pods = [
        pod(f"w-{n}", container("a", "1"), container("b", "2"), container("c", "500m"), owner=("StatefulSet", "w"))
        for n in range(2)
    ]
    finding = of_rule(audited(cluster(node(), *pods), V1, "v2"), "CGA203")["default/w"]
    value, ratio = finding.measures
    assert (finding.where.pod, finding.where.container) == ("w-0", "b")
    assert (value.before, value.after, ratio.before, ratio.after) == (2048, 79, 2, 0.79)
    assert (finding.where.pods_hit, finding.where.pods) == (2, 2)


def test_204_tells_who_loses_in_the_worst_case_and_where_it_holds_too() -> None:
    """30 : 2 shares on v1; 2 : 1, linear, on v2; 7 : 1, quadratic, after."""
    objects = cluster(node(), pod("p", container("a", "30m"), container("b", "2m")))
    finding = of_rule(audited(objects, "", "v2+runtime"), "CGA204")["default/p"]
    assert (finding.severity, finding.certainty, finding.detail["when"]) == (
        "high",
        "possible",
        "cgroup v2, linear runtime",
    )
    assert told(finding) == ("p", "b", (0.333333333, 0.125), (1, 1))
    assert {case.when: case.severity for case in finding.cases} == {
        "cgroup v2, linear runtime": "high",
        "cgroup v1, linear runtime": "low",
        "cgroup v1, quadratic runtime": "low",
    }


def test_204_of_several_cases_the_worst_is_told() -> None:
    """30 : 2 shares and 7 : 1 become 2 : 1, or the shares become 7 : 1."""
    objects = cluster(node(), pod("p", container("a", "30m"), container("b", "2m")))
    finding = of_rule(audited(objects, "", "v2,runc=1.1.5,crun=1.28"), "CGA204")["default/p"]
    assert finding.detail["when"] == "cgroup v2, linear runtime, unnamed runtime is crun"
    assert told(finding)[1] == "b"


def test_204_a_node_that_does_not_come_back_splits_no_pod() -> None:
    nodes = [node("a"), node("b")]
    rules = f"{V2_LINEAR}\n- {{match: {{name: b}}, cgroup: v1}}"
    pods = [
        pod(f"p-{name}", container("app", "1"), container("side", "100m"), on=name, owner=("StatefulSet", "w"))
        for name in ("a", "b")
    ]
    findings = [the_finding("CGA204", rules, f"runtime{to}", *nodes, *pods) for to in ("", ",kubelet=1.35")]
    assert [(each.where.nodes, each.where.pods_hit, each.where.pods) for each in findings] == [
        (("a",), 1, 2),
        (("a",), 1, 2),
    ]


def test_204_a_milder_case_beside_one_where_nothing_moves_is_told() -> None:
    finding = the_finding("CGA204", "", "v2", node(), pod("p", container("app", "26m"), container("side", "3m")))
    assert (finding.severity, finding.detail["when"]) == ("high", "cgroup v1, linear runtime")
    assert {case.when: case.severity for case in finding.cases} == {
        "cgroup v1, linear runtime": "high",
        "cgroup v1, quadratic runtime": "medium",
    }
    assert "This holds if cgroup v1." in finding.message
