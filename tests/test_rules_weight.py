"""CGA203, CGA205, CGA206: when they fire, when they do not, and what they say."""

from typing import Any

import pytest

from tests.support import (
    ONE,
    V1,
    V2_LINEAR,
    V2_QUADRATIC,
    audited,
    cluster,
    container,
    node,
    of_rule,
    pod,
    the_finding,
)


@pytest.mark.parametrize(
    ("rules", "to", "found"),
    [(V1, "v2", True), (V2_LINEAR, "runtime", True), (V1, "v2+runtime", False), (V2_LINEAR, "v2", False)],
)
def test_203_one_cpu_crosses_the_default(rules: str, to: str, found: bool) -> None:
    assert bool(of_rule(audited(cluster(node(), ONE), rules, to), "CGA203")) is found


@pytest.mark.parametrize(
    ("request_", "rules", "found"),
    [
        ("26m", V2_LINEAR, True),
        ("28m", V1, True),
        ("29m", V2_LINEAR, False),
        ("2m", V2_LINEAR, True),
        ("0", V2_LINEAR, False),
    ],
)
def test_205_small_requests_weigh_like_none(request_: str, rules: str, found: bool) -> None:
    objects = cluster(node(), pod("p", container("c", request_)))
    assert bool(of_rule(audited(objects, rules, "v2"), "CGA205")) is found


def test_205_compares_with_siblings_only() -> None:
    objects = cluster(node(), pod("p", container("c", "26m")))
    (finding,) = of_rule(audited(objects, V2_LINEAR, "v2"), "CGA205").values()
    assert finding.seen == (
        "Pod default/p asks for 26m (26 shares) and gets weight 1, the least there is: no more than a sibling that asks "
        "for 1m, or for nothing. It is so now, too."
    )
    assert finding.why == (
        "The linear formula turns every request of 1m to 28m into weight 1, the quadratic one those of 1m and 2m: against its "
        "siblings such a request counts no more than the least, or none."
    )


def test_205_the_quadratic_runtime_separates_inside_the_pod_only() -> None:
    objects = cluster(node(), pod("p", container("a", "20m"), container("b", "100m")))
    assert "Container a of default/p" in of_rule(audited(objects, V2_LINEAR, "v2"), "CGA205")["default/p"].seen
    assert of_rule(audited(objects, V2_QUADRATIC, "v2"), "CGA205") == {}


@pytest.mark.parametrize(
    ("request_", "rules", "found"),
    [("100m", V2_LINEAR, True), ("100m", V2_QUADRATIC, False), ("200m", V2_LINEAR, False)],
)
def test_206_a_weight_of_4_cannot_be_divided(request_: str, rules: str, found: bool) -> None:
    objects = cluster(node(), pod("p", container("c", request_)))
    assert bool(of_rule(audited(objects, rules, "v2"), "CGA206")) is found


def test_205_an_init_container_is_nobodys_sibling() -> None:
    found = []
    for state in ({"running": {}}, {"terminated": {"exitCode": 0}}):
        raw = pod("p", container("app", "10m"), initContainers=[container("init", "100m")])
        raw["status"]["initContainerStatuses"] = [{"name": "init", "state": state}]
        found.append(of_rule(audited(cluster(node(cpu="8"), raw), V2_LINEAR, "v2"), "CGA205"))
    assert found[0] == found[1] == {}


@pytest.mark.parametrize(
    ("limit", "said"), [("20m", " The limit of app (20m) must go up with it."), ("50m", ""), (None, "")]
)
def test_205_a_request_does_not_pass_its_limit(limit: str | None, said: str) -> None:
    placed = pod("p", container("app", "10m", limit), container("b", "2"))
    found = of_rule(audited(cluster(node(cpu="8"), placed), V2_LINEAR, "v2"), "CGA205")["default/p"]
    assert found.remedy.startswith(f"Raise the request to 29m, the least that gets weight 2, or more.{said} A runtime")


def test_203_numbers_that_differ_in_the_third_digit_are_not_said_to_be_one() -> None:
    placed = pod("p", container("app", "998m"), container("b", "1"))
    finding = of_rule(audited(cluster(node(cpu="8"), placed), V1), "CGA203")["default/p"]
    assert "cpu.shares 1021 now, cpu.weight 100 after: 0.9971 -> 1.0000 times the default" in finding.seen


def test_203_of_several_the_one_that_moves_most_and_what_it_asks_for() -> None:
    pods = (container("a", "1"), container("b", None, "1"), container("c", "4", "8"))
    finding = the_finding("CGA203", V1, "v2", node(cpu="16"), pod("p", *pods))
    assert finding.seen.startswith(
        "Container a of default/p: cpu.shares 1024 now, cpu.weight 39 after: 1.00 -> 0.39 times"
    )
    asked = the_finding("CGA203", V1, "v2", node(), pod("p", container("a", "1"), container("b", "500m")))
    assert "times the default for a request of 1000m." in asked.seen
    limited = the_finding("CGA203", V1, "v2", node(), pod("p", container("b", None, "1"), container("c", "500m")))
    assert "times the default for a limit of 1000m." in limited.seen
    whole = pod("p", container("a"), resources={"limits": {"cpu": "1"}, "requests": {"cpu": "1"}})
    of_pod = the_finding("CGA203", V1, "v2", node(kubelet="v1.34.2"), whole)
    assert "times the default for the pod's limit of 1000m." in of_pod.seen
    unread = the_finding("CGA203", V1, "kubelet=1.33.13", node(kubelet="v1.34.2"), whole)
    assert "cpu.shares 2 after: 1.00 -> 0.00 times the default for 2 shares." in unread.seen


def test_203_both_ways_count_by_how_far_they_go() -> None:
    """1.00 -> 0.39 loses 0.61; on the quadratic curve 4 CPUs go from 4.00 to 2.6: not across; 900m from 0.9 to 0.93."""
    up = audited(cluster(node(), pod("p", container("a", "1010m"), container("b", "1100m"))), V2_LINEAR, "runtime")
    (finding,) = of_rule(up, "CGA203").values()
    assert finding.seen.startswith("Container b of default/p: cpu.weight 43 now, cpu.weight")


def test_205_is_no_matter_of_lone_containers_and_pods_without_a_request() -> None:
    two = pod("p", container("a", "20m"), container("b", "25m"))
    finding = the_finding("CGA205", V1, "v2", node(), two)
    assert finding.seen == (
        "Container b of default/p asks for 25m (25 shares) and gets weight 1, the least there is: no more than a sibling that "
        "asks for 1m, or for nothing. 1 more of this workload is found by this rule."
    )
    assert finding.remedy == (
        "Raise the request to 29m, the least that gets weight 2, or more. A runtime with the quadratic formula tells them "
        "apart inside the pod."
    )
    already = the_finding("CGA205", V2_LINEAR, "v2", node(), two)
    assert "or for nothing. It is so now, too." in already.seen
    lone = the_finding("CGA205", V2_LINEAR, "v2", node(), pod("p", container("a", "20m")))
    assert lone.seen.startswith("Pod default/p asks for 20m (20 shares) and gets weight 1, the least there is:")
    assert lone.remedy == "Raise the request to 29m, the least that gets weight 2, or more."
    finished = pod("p", container("a", "20m"), container("b", "30m"), restartPolicy="Never")
    finished["status"]["containerStatuses"] = [{"name": "b", "state": {"terminated": {"exitCode": 0}}}]
    found = audited(cluster(node(), finished), V2_LINEAR, "v2")
    assert not [each for each in of_rule(found, "CGA205").values() if "Container a" in each.seen]
    overhead = pod("p", container("a"), container("b"), qos="BestEffort", overhead={"cpu": "10m"})
    assert of_rule(audited(cluster(node(), overhead), V2_LINEAR, "v2"), "CGA205") == {}
    limited = pod("p", container("a", "40m"), container("b", None, "20m"))
    assert of_rule(audited(cluster(node(), limited), V2_LINEAR, "v2"), "CGA205") == {}


def test_205_of_several_the_new_one_is_worse_and_then_the_larger_request() -> None:
    mixed = audited(
        cluster(
            node(),
            node("n2"),
            *(
                pod(f"p-{name}", container("a", "20m"), container("b", "27m"), on=name, owner=("StatefulSet", "p"))
                for name in ("n1", "n2")
            ),
        ),
        f"{V2_LINEAR}\n- {{match: {{name: n2}}, cgroup: v1, driver: systemd}}",
        "v2",
    )
    (finding,) = of_rule(mixed, "CGA205").values()
    assert finding.seen.startswith("Container b of default/p-n2 asks for 27m (27 shares)")


def test_206_of_several_the_new_one_is_worse_and_then_the_smaller_weight() -> None:
    new = (container("a", "60m"), container("b", "40m"), container("c", "80m"))
    owner = ("StatefulSet", "p")
    mixed = audited(
        cluster(
            node(),
            node("n2"),
            pod("p-0", container("a", "10m"), owner=owner),
            pod("p-1", *new, on="n2", owner=owner),
        ),
        f"{V2_LINEAR}\n- {{match: {{name: n2}}, cgroup: v1, driver: systemd}}",
        "v2",
    )
    (finding,) = of_rule(mixed, "CGA206").values()
    assert finding.seen.startswith("Container b of default/p-1 (40m) has weight 2 after the move, under 5. 3 more of ")


def test_206_under_the_threshold_and_what_a_runtime_would_change() -> None:
    pods = (container("a", "20m"), container("b", "128m"), container("c", "150m"))
    finding = the_finding("CGA206", V2_LINEAR, "v2", node(), pod("p", *pods))
    assert finding.seen == ("Container a of default/p (20m) has weight 1 after the move, under 5. It is so now, too.")
    assert (
        finding.remedy
        == "Only if it creates child cgroups: raise its request to 105m (weight 5) or more, or use a runtime with the quadratic "
        "formula."
    )
    least = the_finding("CGA206", V1, "v2+runtime", node(), pod("p", container("a", "3m"), container("b", "1")))
    assert least.seen == "Container a of default/p (3m) has weight 2 after the move, under 5."
    assert least.remedy == "Only if it creates child cgroups: raise its request to 15m (weight 5) or more."
    at = cluster(node(), pod("p", container("a", "130m"), container("b", "1")))
    assert of_rule(audited(at, V2_LINEAR, "v2", "divisible=6"), "CGA206")
    assert of_rule(audited(at, V2_LINEAR, "v2", "divisible=5"), "CGA206") == {}


@pytest.mark.parametrize(
    ("request_", "runtime", "remedy"),
    [
        (
            "20m",
            "runc 1.1.5",
            "Raise the request to 29m, the least that gets weight 2, or more. A runtime with the quadratic formula tells them "
            "apart inside the pod. As it is, it has more of its pod's CPU after the move than now (1.9% -> 2.5%).",
        ),
        # 1024 : 26 before, 39 : 1 after: that is 1.0% more of its part.
        (
            "26m",
            "runc 1.1.5",
            "Raise the request to 29m, the least that gets weight 2, or more. A runtime with the quadratic formula tells them "
            "apart inside the pod.",
        ),
        # 2m are 2 shares, the least there is: no formula tells them apart.
        (
            "2m",
            "runc 1.1.5",
            "Raise the request to 29m, the least that gets weight 2, or more. "
            "As it is, it has more of its pod's CPU after the move than now (0.2% -> 2.5%).",
        ),
        (
            "2m",
            "runc 1.3.6",
            "Raise the request to 3m, the least that gets weight 2, or more. "
            "As it is, it has more of its pod's CPU after the move than now (0.2% -> 1.0%).",
        ),
    ],
)
def test_205_says_what_helps_under_the_formula_of_then(request_: str, runtime: str, remedy: str) -> None:
    objects = cluster(node(), pod("p", container("app", "1"), container("s", request_)))
    found = of_rule(audited(objects, f"- {{cgroup: v1, runtimes: {{default: {runtime}}}}}", "v2"), "CGA205")
    assert found["default/p"].remedy == remedy


def test_205_of_a_pod_whose_kubelet_does_not_read_what_it_asks_for_as_a_whole() -> None:
    whole = pod("p", container("a"), resources={"requests": {"cpu": "2"}, "limits": {"cpu": "2"}})
    finding = the_finding("CGA205", V2_LINEAR, "v2", node(kubelet="v1.31.2"), whole)
    assert finding.seen.startswith("Pod default/p asks for 2000m (2 shares) and gets weight 1, ")
    assert finding.seen.endswith(" Its kubelet does not read what a pod asks for as a whole. It is so now, too.")
    assert (
        finding.remedy
        == "Give its containers requests of their own, of 29m together or more, or the node a kubelet from 1.34 on."
    )
    assert of_rule(audited(cluster(node(kubelet="v1.34.1"), whole), V2_LINEAR, "v2"), "CGA205") == {}


def of_its_own(request_: str, limit: str) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": request_}, "limits": {"cpu": limit}}}


GUARANTEED = " Limits go with requests, as the pod is Guaranteed."


@pytest.mark.parametrize(
    ("kubelet", "placed", "said"),
    [
        ("v1.33.1", pod("p", container("a", "15m", "25m")), " The limit of a (25m) must go up with it."),
        ("v1.33.1", pod("p", container("a", "15m", "29m")), ""),
        # Overhead is asked for by no container, and an init container is over before the others run.
        ("v1.33.1", pod("p", container("a", "15m", "25m"), overhead={"cpu": "5m"}), ""),
        (
            "v1.33.1",
            pod("p", container("a", "15m", "25m"), initContainers=[container("i", "1m")]),
            " The limit of a (25m) must go up with it.",
        ),
        ("v1.33.1", pod("p", container("a", "15m", "15m"), qos="Guaranteed"), GUARANTEED),
        ("v1.33.1", pod("p", container("a", "9m", "9m"), container("b", "4m", "4m"), qos="Guaranteed"), GUARANTEED),
        (
            "v1.33.1",
            pod("p", container("a", "9m", "9m"), container("b", "4m", "4m")),
            " The limits of its containers, 13m together, must go up with it.",
        ),
        # There is room in one of them, or no end to one.
        ("v1.33.1", pod("p", container("a", "9m", "9m"), container("b", "4m", "20m")), ""),
        ("v1.33.1", pod("p", container("a", "9m", "9m"), container("b", "4m")), ""),
        # What the pod itself asks for, by a kubelet that counts it and by one that does not.
        (
            "v1.34.1",
            pod("p", container("a", "2m", "3m"), **of_its_own("9m", "9m")),
            " The limit of the pod (9m) must go up with it.",
        ),
        ("v1.34.1", pod("p", container("a", "2m", "3m"), **of_its_own("9m", "29m")), ""),
        ("v1.34.1", pod("p", container("a", "2m", "3m"), resources={"requests": {"cpu": "9m"}}), ""),
        ("v1.34.1", pod("p", container("a", "15m", "25m")), " The limit of a (25m) must go up with it."),
        (
            "v1.33.1",
            pod("p", container("a", "9m"), **of_its_own("9m", "90m")),
            " The pod's own request of 9m must go up to 29m with it.",
        ),
    ],
)
def test_205_of_a_pod_says_what_goes_up_with_its_request(kubelet: str, placed: dict[str, Any], said: str) -> None:
    finding = of_rule(audited(cluster(node(kubelet=kubelet), placed), V2_LINEAR, "v2"), "CGA205")["default/p"]
    assert finding.seen.startswith("Pod default/p asks for ")
    assert finding.remedy == f"Raise the request to 29m, the least that gets weight 2, or more.{said}"


def test_206_says_what_a_larger_request_takes_with_it_and_where_none_is_enough() -> None:
    objects = node(), pod("p", container("a", "20m", "50m"), container("b", "1"))
    least = the_finding("CGA206", V2_LINEAR, "v2", *objects, thresholds=("divisible=5.5",)).remedy
    assert least == (
        "Only if it creates child cgroups: raise its request to 131m (weight 6) or more, or use a runtime with the quadratic "
        "formula. The limit of a (50m) must go up with it."
    )
    none = the_finding("CGA206", V2_LINEAR, "v2", *objects, thresholds=("divisible=10001",)).remedy
    assert none == "No weight is as large as that: judge by another --threshold."


def test_205_says_in_which_case_it_is_so_now() -> None:
    finding = the_finding("CGA205", "", "v2", node(), pod("p", container("a", "10m"), container("b", "1")))
    assert finding.when == "if linear runtime"
    assert finding.seen.endswith(" If cgroup v2, linear runtime it is so now, too.")


@pytest.mark.parametrize(("milli", "other"), [("5m", "."), ("20m", ", or use a runtime with the quadratic formula.")])
def test_206_advises_a_formula_only_where_it_is_enough(milli: str, other: str) -> None:
    finding = the_finding("CGA206", V2_LINEAR, "v2", node(), pod("p", container("a", milli), container("b", "1")))
    assert finding.remedy == f"Only if it creates child cgroups: raise its request to 105m (weight 5) or more{other}"


def test_205_advises_a_kubelet_only_where_it_is_enough() -> None:
    whole = pod("p", container("a", "5m"), resources={"requests": {"cpu": "10m"}, "limits": {"cpu": "1"}})
    finding = the_finding("CGA205", V2_LINEAR, "v2", node(kubelet="v1.30.1"), whole)
    assert finding.remedy == (
        "Give its containers requests of their own, of 29m together or more. The pod's own request of 10m must go up to 29m "
        "with it."
    )
    assert list(of_rule(audited(cluster(node(kubelet="v1.34.1"), whole), V2_LINEAR, "v2"), "CGA205")) == ["default/p"]
