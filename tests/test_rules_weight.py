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


def test_205_the_quadratic_runtime_separates_inside_the_pod_only() -> None:
    objects = cluster(node(), pod("p", container("a", "20m"), container("b", "100m")))
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


def test_205_is_no_matter_of_lone_containers_and_pods_without_a_request() -> None:
    two = pod("p", container("a", "20m"), container("b", "25m"))
    the_finding("CGA205", V1, "v2", node(), two)
    the_finding("CGA205", V2_LINEAR, "v2", node(), two)
    the_finding("CGA205", V2_LINEAR, "v2", node(), pod("p", container("a", "20m")))
    finished = pod("p", container("a", "20m"), container("b", "30m"), restartPolicy="Never")
    finished["status"]["containerStatuses"] = [{"name": "b", "state": {"terminated": {"exitCode": 0}}}]
    audited(cluster(node(), finished), V2_LINEAR, "v2")
    overhead = pod("p", container("a"), container("b"), qos="BestEffort", overhead={"cpu": "10m"})
    assert of_rule(audited(cluster(node(), overhead), V2_LINEAR, "v2"), "CGA205") == {}
    limited = pod("p", container("a", "40m"), container("b", None, "20m"))
    assert of_rule(audited(cluster(node(), limited), V2_LINEAR, "v2"), "CGA205") == {}


def test_206_under_the_threshold_and_what_a_runtime_would_change() -> None:
    pods = (container("a", "20m"), container("b", "128m"), container("c", "150m"))
    the_finding("CGA206", V2_LINEAR, "v2", node(), pod("p", *pods))
    the_finding("CGA206", V1, "v2+runtime", node(), pod("p", container("a", "3m"), container("b", "1")))
    at = cluster(node(), pod("p", container("a", "130m"), container("b", "1")))
    assert of_rule(audited(at, V2_LINEAR, "v2", "divisible=6"), "CGA206")
    assert of_rule(audited(at, V2_LINEAR, "v2", "divisible=5"), "CGA206") == {}


def test_205_of_a_pod_whose_kubelet_does_not_read_what_it_asks_for_as_a_whole() -> None:
    whole = pod("p", container("a"), resources={"requests": {"cpu": "2"}, "limits": {"cpu": "2"}})
    the_finding("CGA205", V2_LINEAR, "v2", node(kubelet="v1.31.2"), whole)
    assert of_rule(audited(cluster(node(kubelet="v1.34.1"), whole), V2_LINEAR, "v2"), "CGA205") == {}


def of_its_own(request_: str, limit: str) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": request_}, "limits": {"cpu": limit}}}


GUARANTEED = " Limits go with requests, as the pod is Guaranteed."


def test_205_advises_a_kubelet_only_where_it_is_enough() -> None:
    whole = pod("p", container("a", "5m"), resources={"requests": {"cpu": "10m"}, "limits": {"cpu": "1"}})
    the_finding("CGA205", V2_LINEAR, "v2", node(kubelet="v1.30.1"), whole)
    assert list(of_rule(audited(cluster(node(kubelet="v1.34.1"), whole), V2_LINEAR, "v2"), "CGA205")) == ["default/p"]
