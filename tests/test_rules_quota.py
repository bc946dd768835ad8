"""CGA301, CGA302: limits that stop a container, or are not what the spec says."""

from pathlib import Path
from typing import Any

import pytest

from kubectl_cgaudit.audit.model import Action, Audit, Finding
from kubectl_cgaudit.collect import configz
from kubectl_cgaudit.collect.assemble import with_answers
from tests.kubelet_support import good
from tests.support import (
    V1,
    V2_LINEAR,
    V2_QUADRATIC,
    audited_with_actions,
    cluster,
    container,
    node,
    of_rule,
    pod,
    severities,
    the_finding,
)

TO_80 = {"of": "container", "limitMilli": 80, "also": []}
V1_NEW = "- {cgroup: v1, driver: systemd, runtimes: {default: runc 1.3.6}}"


def numbers(finding: Finding) -> tuple[str | None, float | None, float | None, float | None, bool]:
    """The container, its limit, two quotas (CGA301: its own, its pod's; CGA302: before, after), and if it is so today."""
    limit, quota = finding.measures
    assert (limit.name, limit.unit, quota.name, quota.unit) == ("limit", "milli", "quota", "us")
    assert limit.before == limit.after
    return finding.where.container, limit.after, quota.before, quota.after, finding.today


def the_limit(rules: str, to: str, *objects: dict[str, Any]) -> tuple[Finding, Action]:
    """The only finding CGA301 about these objects, and the action that sets another limit."""
    found = audited_with_actions(cluster(*objects), rules, to)
    (finding,) = of_rule(found, "CGA301").values()
    (action,) = [each for each in found.actions if each.id in finding.actions and each.id.startswith("limit:")]
    return finding, action


def test_302_a_container_that_had_no_quota_has_none_and_not_none_us() -> None:
    limits = {"requests": {"cpu": "100m"}, "limits": {"cpu": "205m"}}
    placed = pod("p", container("app", "77m"), container("b", "10m", "20m"), resources=limits)
    finding = the_finding("CGA302", V2_QUADRATIC, "kubelet=1.35", node(cpu="8", kubelet="v1.31.1"), placed)
    assert numbers(finding) == ("app", 205, None, 21000, False)
    assert "a limit of 205m acts as 210m" in finding.message


def test_302_a_limit_of_the_pod_alone_acts_by_each_nodes_own_runtime() -> None:
    """Both hold the same numbers, but crun keeps the raw quota one cgroup below its scope."""
    placed = [
        pod(f"p-{on}", container("c"), resources={"requests": {"cpu": "50m"}, "limits": {"cpu": "77m"}}, on=on)
        for on in ("a", "b")
    ]
    rules = "- {{match: {{name: a}}, cgroup: v2, runtimes: {{default: {}}}}}\n"
    rules += "- {{match: {{name: b}}, cgroup: v2, runtimes: {{default: {}}}}}"
    for first, second in (("crun 1.25", "runc 1.3.6"), ("runc 1.3.6", "crun 1.25")):
        objects = cluster(node("a", kubelet="v1.35.2"), node("b", kubelet="v1.35.2"), *placed)
        found = of_rule(audited_with_actions(objects, rules.format(first, second), "v2"), "CGA302")
        assert list(found) == ["default/p-b" if first.startswith("crun") else "default/p-a"]


@pytest.mark.parametrize(
    ("limit", "kubelet", "rules", "to", "fires"),
    [
        ("77m", "v1.32.9", V1, "runtime", True),
        ("77m", "v1.33.7", V1, "runc=1.3.6", True),
        ("77m", "v1.34.9", V1, "runtime", True),
        ("77m", "v1.33.8", V1, "runtime", False),
        ("77m", "v1.32.9", V1, "runc=1.3.1", False),
        ("77m", "v1.32.9", V1, "v2+runtime", False),
        ("80m", "v1.32.9", V1, "runtime", False),
        ("4m", "v1.32.9", V1, "runtime", False),
        ("77m", "v1.32.9", "- {cgroup: v1, driver: cgroupfs, runtimes: {default: runc 1.1.5}}", "runtime", False),
        ("77m", "v1.32.9", "- {cgroup: v1, runtimes: {default: crun 1.21}}", "runtime", False),
        ("77m", "v1.33.8", V1_NEW, "kubelet=1.34.1", True),
    ],
)
def test_301_quota_rounding_stops_containers_from_starting(
    limit: str, kubelet: str, rules: str, to: str, fires: bool
) -> None:
    objects = cluster(node(kubelet=kubelet), pod("p", container("c", "50m", limit)))
    assert severities(audited_with_actions(objects, rules, to), "CGA301") == (
        {"default/p": "critical"} if fires else {}
    )


def test_301_needs_the_rounded_limit_to_exceed_the_pods_sum() -> None:
    """facts section 4: only if a container's limit rounded up exceeds the pod's raw sum of limits."""
    several = cluster(node(kubelet="v1.32.9"), pod("p", container("a", "50m", "77m"), container("b", "50m", "50m")))
    assert of_rule(audited_with_actions(several, V1, "runtime"), "CGA301") == {}
    init = pod("p", container("a", "50m", "50m"), initContainers=[container("setup", "50m", "615m")])
    (finding,) = of_rule(audited_with_actions(cluster(node(kubelet="v1.32.9"), init), V1, "runtime"), "CGA301").values()
    assert numbers(finding) == ("setup", 615, 62000, 61500, False)
    assert (finding.where.pod, finding.where.node) == ("p", "n1")
    assert finding.detail["write"] == {"of": "container", "limitMilli": 620, "also": []}
    unlimited = pod("p", container("a", "50m", "77m"), container("b", "50m"))
    assert of_rule(audited_with_actions(cluster(node(kubelet="v1.32.9"), unlimited), V1, "runtime"), "CGA301") == {}


def test_301_is_possible_where_the_state_is_open() -> None:
    objects = cluster(node(kubelet="v1.32.9"), pod("p", container("c", "50m", "77m")))
    (finding,) = of_rule(audited_with_actions(objects, "", "runtime"), "CGA301").values()
    assert (finding.severity, finding.certainty) == ("critical", "possible")
    assert [case.when for case in finding.cases] == ["cgroup v1, linear runtime", "cgroup v1, quadratic runtime"]
    assert finding.detail["takenForGranted"] == ["the runtime is runc", "the cgroup driver is systemd"]
    assert "if cgroup v1 and the runtime is runc and the cgroup driver is systemd" in finding.message


@pytest.mark.parametrize(
    ("limit", "rules", "to", "acts"),
    [
        ("77m", V2_LINEAR, "runtime", (80, 7700, 8000, False)),
        ("77m", V2_QUADRATIC, "runtime", (80, 8000, 8000, True)),
        ("4m", V2_LINEAR, "v2", (10, 1000, 1000, True)),
        ("80m", V2_LINEAR, "runtime", None),
        ("77m", V2_LINEAR, "v2", None),
        # crun keeps the raw quota in the cgroup below its scope, and that one binds.
        ("77m", "- {cgroup: v2, runtimes: {default: crun 1.28}}", "v2", None),
    ],
)
def test_302_a_limit_that_is_not_what_the_spec_says(
    limit: str, rules: str, to: str, acts: tuple[int, int, int, bool] | None
) -> None:
    found = of_rule(
        audited_with_actions(cluster(node(), pod("p", container("c", "1m", limit))), rules, to), "CGA302"
    ).values()
    assert [numbers(each) for each in found] == ([("c", int(limit[:-1]), *acts[1:])] if acts else [])
    assert all(f"a limit of {limit} acts as {acts[0]}m" in each.message for each in found if acts)


def of_pod(limit: str, *containers: dict[str, Any]) -> dict[str, Any]:
    return pod("p", *containers, resources={"requests": {"cpu": "20m"}, "limits": {"cpu": limit}})


def test_301_the_limit_of_the_pod_is_what_to_raise_where_it_has_one() -> None:
    whole = of_pod("25m", container("a", "10m", "25m"), container("b", "10m"))
    finding, action = the_limit(V1, "runc=1.3.6", node(kubelet="v1.34.1"), whole)
    assert finding.detail["write"] == {"of": "pod", "limitMilli": 30, "also": []}
    assert (action.change, action.when, action.clears) == (
        {"limits": {"a": 30}, "podLimit": 30},
        "before the move",
        (finding.id,),
    )
    raised = of_pod("30m", container("a", "10m", "25m"), container("b", "10m"))
    assert of_rule(audited_with_actions(cluster(node(kubelet="v1.34.1"), raised), V1, "runc=1.3.6"), "CGA301") == {}


@pytest.mark.parametrize(
    ("own", "write"),
    [
        ("77m", TO_80 | {"also": ["podLimit"]}),
        (None, TO_80 | {"of": "pod"}),
    ],
)
def test_302_says_that_the_limit_of_the_pod_must_go_up_too(own: str | None, write: dict[str, Any]) -> None:
    whole = of_pod("77m", container("a", "10m", own))
    finding = the_finding("CGA302", V2_QUADRATIC, "v2", node(kubelet="v1.35.1"), whole)
    assert finding.detail["write"] == write


@pytest.mark.parametrize(
    ("kubelet", "qos", "whole", "change"),
    [
        # A kubelet before 1.34 does not count the pod's limit, the API server holds the container's against it.
        ("v1.33.7", "Burstable", "77m", {"limits": {"app": 80}, "podLimit": 80}),
        ("v1.33.7", "Burstable", "80m", {"limits": {"app": 80}}),
        ("v1.33.7", "Burstable", None, {"limits": {"app": 80}}),
        ("v1.33.7", "Guaranteed", None, {"limits": {"app": 80}, "requests": {"app": 80}}),
        # The API server counts the pod's limit, whatever the kubelet does: the pod stays Guaranteed by that.
        ("v1.33.7", "Guaranteed", "80m", {"limits": {"app": 80}}),
        ("v1.33.7", "Guaranteed", "77m", {"limits": {"app": 80}, "podLimit": 80, "podRequest": 80}),
        # The pod's limit would be enough to start; the container's would then act as more than it says (CGA302).
        ("v1.34.1", "Burstable", "77m", {"limits": {"app": 80}, "podLimit": 80}),
        ("v1.34.1", "Guaranteed", "77m", {"limits": {"app": 80}, "podLimit": 80, "podRequest": 80}),
    ],
)
def test_301_says_what_must_change_with_the_limit(
    kubelet: str, qos: str, whole: str | None, change: dict[str, Any]
) -> None:
    request = "50m" if qos == "Burstable" else "77m"
    asked = request if qos == "Burstable" else whole
    own = {"resources": {"requests": {"cpu": asked}, "limits": {"cpu": whole}}} if whole else {}
    placed = pod("p", container("app", request, "77m"), qos=qos, **own)
    finding, action = the_limit(V1, "runc=1.3.6", node(kubelet=kubelet), placed)
    assert (action.change, action.clears, action.causes) == (change, (finding.id,), ())
    # A kubelet before 1.34 does not count what the pod itself asks for.
    dearer = "requests" in change or (kubelet == "v1.34.1" and "podRequest" in change)
    assert action.cost == ("3m more for each pod to schedule" if dearer else "no schedulable CPU")


def test_301_says_by_when_and_what_else_helps(tmp_path: Path) -> None:
    """The runtime of now is the new one already: what is left to do is not to be done before that."""
    to = tmp_path / "to.yaml"
    to.write_text("- {cgroup: v1}\n")
    quadratic = "runtimes: {default: runc 1.3.6}, driver: systemd}"
    on_v1, on_v2 = (
        the_limit(rules, target, node(kubelet="v1.33.7"), pod("p", container("app", "50m", "77m")))
        for rules, target in (
            (f"- {{cgroup: v1, {quadratic}", "runtime"),
            (f"- {{cgroup: v2, {quadratic}", str(to)),
        )
    )
    assert [numbers(each) for each, _ in (on_v1, on_v2)] == [
        ("app", 77, 8000, 7700, True),
        ("app", 77, 8000, 7700, False),
    ]
    assert [(each.when, each.alternatives[0]) for _, each in (on_v1, on_v2)] == [
        ("before the containers are next created", "move the node to cgroup v2 first"),
        ("before the move", "leave the node on cgroup v2"),
    ]
    assert all("1.33.8 and later in 1.33" in each.alternatives[1] for _, each in (on_v1, on_v2))


@pytest.mark.parametrize(
    ("own", "whole", "also"),
    [
        ("77m", None, ["requests"]),
        # The pod's own limit and request are equal, whatever a container has.
        ("77m", "90m", []),
        ("77m", "77m", ["podLimit", "podRequest"]),
        (None, "77m", ["podRequest"]),
    ],
)
def test_302_says_that_a_guaranteed_pod_has_requests_equal_to_its_limits(
    own: str | None, whole: str | None, also: list[str]
) -> None:
    of_the_pod = {"resources": {"requests": {"cpu": whole}, "limits": {"cpu": whole}}} if whole else {}
    placed = pod("p", container("app", own, own), qos="Guaranteed", **of_the_pod)
    finding = the_finding("CGA302", V2_QUADRATIC, "v2", node(kubelet="v1.35.1"), placed)
    assert finding.detail["write"] == {"of": "container" if own else "pod", "limitMilli": 80, "also": also}


def test_302_advises_what_is_stored_as_it_is_and_nothing_for_what_does_not_start() -> None:
    pods = pod("p", container("c0", "50m", "333m"), container("c1", "1m", "5m"))
    finding = the_finding("CGA302", V1, "v2+runtime", node(kubelet="v1.33.5"), pods)
    assert numbers(finding)[:3] == ("c0", 333, 33300)
    assert "a limit of 333m acts as 338m" in finding.message
    assert finding.detail["write"] == {"of": "container", "limitMilli": 340, "also": []}
    stays = audited_with_actions(cluster(node(kubelet="v1.33.5"), pods), V1, "runtime")
    assert of_rule(stays, "CGA301")["default/p"].where.container == "c0"
    assert of_rule(stays, "CGA302")["default/p"].where.container == "c1"


@pytest.mark.parametrize(
    ("kubelet", "rules", "to"), [("v1.34.0", V1, "runc=1.3.6"), ("v1.36.2", V2_LINEAR, "runc=1.3.6")]
)
def test_a_debug_container_is_not_judged_by_the_limit_of_its_pod(kubelet: str, rules: str, to: str) -> None:
    """It is not there once the pod is created anew."""
    own = {"limits": {"cpu": "333m"}, "requests": {"cpu": "333m"}}
    debugged = pod("p", container("app", "200m", "200m"), resources=own, ephemeralContainers=[container("dbg")])
    found = audited_with_actions(cluster(node(kubelet=kubelet), debugged), rules, to)
    assert [each.rule for each in found.findings if each.rule in ("CGA301", "CGA302")] == []
    assert "stops" not in found.workloads[0].effects
    # The same limit of a container that stays.
    kept = pod("p", container("app", "200m", "200m"), container("dbg"), resources=own)
    found = audited_with_actions(cluster(node(kubelet=kubelet), kept), rules, to)
    assert [each.rule for each in found.findings if each.rule in ("CGA301", "CGA302")] == [
        "CGA301" if rules == V1 else "CGA302"
    ]


def with_period(period_us: int, limit: str, rules: str, to: str, version: str, kubelet: str = "v1.33.5") -> Audit:
    """The audit of a node whose kubelet has this period of quotas."""
    config = configz.config(f'{{"kubeletconfig": {{"cpuCFSQuotaPeriod": "{period_us}us"}}}}'.encode())
    answers = {"n1": good("n1", cgroup_version=version, config=config, shares={})}
    objects = cluster(node(kubelet=kubelet), pod("p", container("c", "1m", limit)))
    return audited_with_actions(with_answers(objects, answers), rules, to)


@pytest.mark.parametrize(
    ("period_us", "limit", "acts", "write"),
    [
        # 1234.5 us are cut off to 1234.
        (12_345, "100m", None, None),
        (12_345, "777m", None, None),
        (99_999, "10m", None, None),
        # The smallest quota, 1000 us, is more than 30m and less than 31m.
        (33_000, "30m", "30.3m", 40),
        (33_300, "30m", "30.03m", 40),
        (7_000, "25m", "142.9m", 150),
        (50_000, "4m", "20m", 20),
    ],
)
def test_302_what_less_than_a_microsecond_is_and_never_the_limit_that_is_there(
    period_us: int, limit: str, acts: str | None, write: int | None
) -> None:
    found = with_period(period_us, limit, V2_LINEAR, "v2", "v2")
    assert of_rule(found, "CGA301") == {}
    findings = of_rule(found, "CGA302").values()
    assert [numbers(each) for each in findings] == ([("c", int(limit[:-1]), 1000, 1000, True)] if acts else [])
    assert [each.detail["write"]["limitMilli"] for each in findings] == ([write] if acts else [])
    assert all(f"a limit of {limit} acts as {acts}." in each.message for each in findings)


def test_302_a_rounded_limit_is_read_back_whole() -> None:
    """777m are 9592 us, rounded to 780m they are 9629.1: cut off."""
    found = with_period(12_345, "777m", V2_QUADRATIC, "v2", "v2", kubelet="v1.33.8")
    (finding,) = of_rule(found, "CGA302").values()
    assert numbers(finding) == ("c", 777, 9629, 9629, True)
    assert "a limit of 777m acts as 780m." in finding.message
    assert finding.detail["write"] == {"of": "container", "limitMilli": 780, "also": []}


@pytest.mark.parametrize(("period_us", "limit", "write"), [(33_000, "30m", 40), (7_000, "25m", 150)])
def test_301_advises_a_limit_that_starts_where_the_smallest_quota_is_more(
    period_us: int, limit: str, write: int
) -> None:
    """Of 33 ms 1000 us are 30.3m: every limit up to there is written as 40m."""
    found = with_period(period_us, limit, V1, "runtime", "v1")
    (finding,) = of_rule(found, "CGA301").values()
    assert [(each.change, each.clears, len(each.causes)) for each in found.actions if each.id in finding.actions] == [
        ({"limits": {"c": write}}, (finding.id,), 0),
        ({"cgroup": "v2"}, (finding.id,), 4),
    ]
    raised = with_period(period_us, f"{write}m", V1, "runtime", "v1")
    assert [each.rule for each in raised.findings if each.rule in ("CGA301", "CGA302")] == []
