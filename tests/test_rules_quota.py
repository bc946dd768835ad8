"""CGA301, CGA302: limits that stop a container, or are not what the spec says."""

from pathlib import Path
from typing import Any

import pytest

from kubectl_cgaudit.collect import configz
from kubectl_cgaudit.collect.assemble import with_answers
from tests.kubelet_support import good
from tests.support import (
    V1,
    V2_LINEAR,
    V2_QUADRATIC,
    audited,
    cluster,
    container,
    node,
    of_rule,
    pod,
    severities,
    the_finding,
)

V1_NEW = "- {cgroup: v1, driver: systemd, runtimes: {default: runc 1.3.6}}"


def test_302_a_container_that_had_no_quota_has_none_and_not_none_us() -> None:
    limits = {"requests": {"cpu": "100m"}, "limits": {"cpu": "205m"}}
    placed = pod("p", container("app", "77m"), container("b", "10m", "20m"), resources=limits)
    found = of_rule(audited(cluster(node(cpu="8", kubelet="v1.31.1"), placed), V2_QUADRATIC, "kubelet=1.35"), "CGA302")
    assert found["default/p"].seen.endswith(
        "a limit of 205m acts as 210m after the move (no quota now, 21000 us after)."
    )


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
        found = of_rule(audited(objects, rules.format(first, second), "v2"), "CGA302")
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
    assert severities(audited(objects, rules, to), "CGA301") == ({"default/p": "critical"} if fires else {})


def test_301_needs_the_rounded_limit_to_exceed_the_pods_sum() -> None:
    """facts section 4: only if a container's limit rounded up exceeds the pod's raw sum of limits."""
    several = cluster(node(kubelet="v1.32.9"), pod("p", container("a", "50m", "77m"), container("b", "50m", "50m")))
    assert of_rule(audited(several, V1, "runtime"), "CGA301") == {}
    init = pod("p", container("a", "50m", "50m"), initContainers=[container("setup", "50m", "615m")])
    (finding,) = of_rule(audited(cluster(node(kubelet="v1.32.9"), init), V1, "runtime"), "CGA301").values()
    assert finding.seen.startswith(
        "Container setup of default/p on n1: its limit of 615m is written as 62000 us, more than the 61500"
    )
    assert finding.remedy.startswith("Set the limit to 620m, a multiple of 10m, before the move")
    unlimited = pod("p", container("a", "50m", "77m"), container("b", "50m"))
    assert of_rule(audited(cluster(node(kubelet="v1.32.9"), unlimited), V1, "runtime"), "CGA301") == {}


def test_301_is_possible_where_the_state_is_open() -> None:
    objects = cluster(node(kubelet="v1.32.9"), pod("p", container("c", "50m", "77m")))
    (finding,) = of_rule(audited(objects, "", "runtime"), "CGA301").values()
    when = "if cgroup v1 and the runtime is runc and the cgroup driver is systemd"
    assert (finding.severity, finding.when) == ("critical", when)


@pytest.mark.parametrize(
    ("limit", "rules", "to", "seen"),
    [
        ("77m", V2_LINEAR, "runtime", "a limit of 77m acts as 80m after the move (7700 us now, 8000 us after)."),
        (
            "77m",
            V2_QUADRATIC,
            "runtime",
            "a limit of 77m acts as 80m after the move as it does now (8000 us).",
        ),
        ("4m", V2_LINEAR, "v2", "a limit of 4m acts as 10m after the move as it does now (1000 us)."),
        ("80m", V2_LINEAR, "runtime", None),
        ("77m", V2_LINEAR, "v2", None),
        # crun keeps the raw quota in the cgroup below its scope, and that one binds.
        ("77m", "- {cgroup: v2, runtimes: {default: crun 1.28}}", "v2", None),
    ],
)
def test_302_a_limit_that_is_not_what_the_spec_says(limit: str, rules: str, to: str, seen: str | None) -> None:
    found = of_rule(audited(cluster(node(), pod("p", container("c", "1m", limit))), rules, to), "CGA302")
    assert [finding.seen for finding in found.values()] == ([f"Container c of default/p: {seen}"] if seen else [])


def of_pod(limit: str, *containers: dict[str, Any]) -> dict[str, Any]:
    return pod("p", *containers, resources={"requests": {"cpu": "20m"}, "limits": {"cpu": limit}})


def test_301_the_limit_of_the_pod_is_what_to_raise_where_it_has_one() -> None:
    whole = of_pod("25m", container("a", "10m", "25m"), container("b", "10m"))
    finding = the_finding("CGA301", V1, "runc=1.3.6", node(kubelet="v1.34.1"), whole)
    assert finding.remedy.startswith("Set the limit of the pod to 30m, a multiple of 10m, before the move; ")
    raised = of_pod("30m", container("a", "10m", "25m"), container("b", "10m"))
    assert of_rule(audited(cluster(node(kubelet="v1.34.1"), raised), V1, "runc=1.3.6"), "CGA301") == {}


@pytest.mark.parametrize(
    ("own", "remedy"),
    [
        (
            "77m",
            "Write the limit as it acts, 80m, or as another multiple of 10m. That of the pod, 77m, must go up with it.",
        ),
        (None, "Write the limit of the pod as it acts, 80m, or as another multiple of 10m."),
    ],
)
def test_302_says_that_the_limit_of_the_pod_must_go_up_too(own: str | None, remedy: str) -> None:
    whole = of_pod("77m", container("a", "10m", own))
    assert the_finding("CGA302", V2_QUADRATIC, "v2", node(kubelet="v1.35.1"), whole).remedy == remedy


THE_PODS = " (that of the pod, 77m, must go up with it)"
WITH_REQUESTS = " (requests go with limits, as the pod is Guaranteed)"
OF_THE_POD = "the pod's own request goes with its limit, as the pod is Guaranteed"


@pytest.mark.parametrize(
    ("kubelet", "qos", "whole", "whose", "further"),
    [
        # A kubelet before 1.34 does not count the pod's limit, the API server holds the container's against it.
        ("v1.33.7", "Burstable", "77m", "", THE_PODS),
        ("v1.33.7", "Burstable", "80m", "", ""),
        ("v1.33.7", "Burstable", None, "", ""),
        ("v1.33.7", "Guaranteed", None, "", WITH_REQUESTS),
        # The API server counts the pod's limit, whatever the kubelet does: the pod stays Guaranteed by that.
        ("v1.33.7", "Guaranteed", "80m", "", ""),
        ("v1.33.7", "Guaranteed", "77m", "", f"{THE_PODS[:-1]}; {OF_THE_POD})"),
        ("v1.34.1", "Burstable", "77m", " of the pod", ""),
        ("v1.34.1", "Guaranteed", "77m", " of the pod", f" ({OF_THE_POD})"),
    ],
)
def test_301_says_what_must_change_with_the_limit(
    kubelet: str, qos: str, whole: str | None, whose: str, further: str
) -> None:
    request = "50m" if qos == "Burstable" else "77m"
    asked = request if qos == "Burstable" else whole
    own = {"resources": {"requests": {"cpu": asked}, "limits": {"cpu": whole}}} if whole else {}
    placed = pod("p", container("app", request, "77m"), qos=qos, **own)
    remedy = the_finding("CGA301", V1, "runc=1.3.6", node(kubelet=kubelet), placed).remedy
    assert remedy == (
        f"Set the limit{whose} to 80m, a multiple of 10m{further}, before the move; or move the node to cgroup v2 "
        "first; or take a kubelet that rounds the pod's quota too (1.33.8 and later in 1.33; 1.35, which starts on cgroup v1 "
        "with failCgroupV1: false only)."
    )


def test_301_says_by_when_and_what_else_helps(tmp_path: Path) -> None:
    """The runtime of now is the new one already: what is left to do is not to be done before that."""
    to = tmp_path / "to.yaml"
    to.write_text("- {cgroup: v1}\n")
    quadratic = "runtimes: {default: runc 1.3.6}, driver: systemd}"
    on_v1, on_v2 = (
        the_finding("CGA301", rules, target, node(kubelet="v1.33.7"), pod("p", container("app", "50m", "77m")))
        for rules, target in (
            (f"- {{cgroup: v1, {quadratic}", "runtime"),
            (f"- {{cgroup: v2, {quadratic}", str(to)),
        )
    )
    assert on_v1.seen.endswith(
        " us of its pod (cgroup v1, runc 1.3.6 (quadratic), kubelet 1.33.7). It is so now, too: it fails when it is next created."
    )
    assert on_v2.seen.endswith(" us of its pod (cgroup v1, runc 1.3.6 (quadratic), kubelet 1.33.7).")
    assert on_v1.remedy.startswith(
        "Set the limit to 80m, a multiple of 10m, before the container is next created; or move the node to cgroup v2 first; or "
    )
    assert on_v2.remedy.startswith(
        "Set the limit to 80m, a multiple of 10m, before the move; or leave the node on cgroup v2; or take "
    )


@pytest.mark.parametrize(
    ("own", "whole", "further"),
    [
        ("77m", None, " Requests go with limits, as the pod is Guaranteed."),
        # The pod's own limit and request are equal, whatever a container has.
        ("77m", "90m", ""),
        ("77m", "77m", f" That of the pod, 77m, must go up with it. T{OF_THE_POD[1:]}."),
        (None, "77m", f" T{OF_THE_POD[1:]}."),
    ],
)
def test_302_says_that_a_guaranteed_pod_has_requests_equal_to_its_limits(
    own: str | None, whole: str | None, further: str
) -> None:
    of_the_pod = {"resources": {"requests": {"cpu": whole}, "limits": {"cpu": whole}}} if whole else {}
    placed = pod("p", container("app", own, own), qos="Guaranteed", **of_the_pod)
    remedy = the_finding("CGA302", V2_QUADRATIC, "v2", node(kubelet="v1.35.1"), placed).remedy
    whose = "" if own else " of the pod"
    assert remedy == f"Write the limit{whose} as it acts, 80m, or as another multiple of 10m.{further}"


def test_302_advises_what_is_stored_as_it_is_and_nothing_for_what_does_not_start() -> None:
    pods = pod("p", container("c0", "50m", "333m"), container("c1", "1m", "5m"))
    finding = the_finding("CGA302", V1, "v2+runtime", node(kubelet="v1.33.5"), pods)
    assert finding.seen.startswith(
        "Container c0 of default/p: a limit of 333m acts as 338m after the move (33300 us now, "
    )
    assert finding.remedy == "Write the limit as 340m, a multiple of 10m."
    stays = audited(cluster(node(kubelet="v1.33.5"), pods), V1, "runtime")
    assert of_rule(stays, "CGA301")["default/p"].seen.startswith("Container c0 ")
    assert of_rule(stays, "CGA302")["default/p"].seen.startswith("Container c1 ")


@pytest.mark.parametrize(
    ("kubelet", "rules", "to"), [("v1.34.0", V1, "runc=1.3.6"), ("v1.36.2", V2_LINEAR, "runc=1.3.6")]
)
def test_a_debug_container_is_not_judged_by_the_limit_of_its_pod(kubelet: str, rules: str, to: str) -> None:
    """It is not there once the pod is created anew."""
    own = {"limits": {"cpu": "333m"}, "requests": {"cpu": "333m"}}
    debugged = pod("p", container("app", "200m", "200m"), resources=own, ephemeralContainers=[container("dbg")])
    found = audited(cluster(node(kubelet=kubelet), debugged), rules, to)
    assert [each.rule for each in found.findings if each.rule in ("CGA301", "CGA302")] == []
    assert "stops" not in found.workloads[0].effects
    # The same limit of a container that stays.
    kept = pod("p", container("app", "200m", "200m"), container("dbg"), resources=own)
    found = audited(cluster(node(kubelet=kubelet), kept), rules, to)
    assert [each.rule for each in found.findings if each.rule in ("CGA301", "CGA302")] == [
        "CGA301" if rules == V1 else "CGA302"
    ]


def with_period(
    period_us: int, limit: str, rules: str, to: str, version: str, kubelet: str = "v1.33.5"
) -> dict[str, tuple[str, str]]:
    """What CGA301 and CGA302 see and advise, by their ids, on a node whose kubelet has this period."""
    config = configz.config(f'{{"kubeletconfig": {{"cpuCFSQuotaPeriod": "{period_us}us"}}}}'.encode())
    answers = {"n1": good("n1", cgroup_version=version, config=config, shares={})}
    objects = cluster(node(kubelet=kubelet), pod("p", container("c", "1m", limit)))
    found = audited(with_answers(objects, answers), rules, to).findings
    return {each.rule: (each.seen, each.remedy) for each in found if each.rule in ("CGA301", "CGA302")}


@pytest.mark.parametrize(
    ("period_us", "limit", "acts", "now", "write"),
    [
        # 1234.5 us are cut off to 1234.
        (12_345, "100m", None, None, None),
        (12_345, "777m", None, None, None),
        (99_999, "10m", None, None, None),
        # The smallest quota, 1000 us, is more than 30m and less than 31m.
        (33_000, "30m", "30.3m", "1000 us", "as 40m, a multiple of 10m"),
        (33_300, "30m", "30.03m", "1000 us", "as 40m, a multiple of 10m"),
        (7_000, "25m", "142.9m", "1000 us", "as 150m, a multiple of 10m"),
        (50_000, "4m", "20m", "1000 us", "as it acts, 20m, or as another multiple of 10m"),
    ],
)
def test_302_what_less_than_a_microsecond_is_and_never_the_limit_that_is_there(
    period_us: int, limit: str, acts: str | None, now: str | None, write: str | None
) -> None:
    found = with_period(period_us, limit, V2_LINEAR, "v2", "v2")
    seen = f"Container c of default/p: a limit of {limit} acts as {acts} after the move as it does now ({now})."
    assert found == ({"CGA302": (seen, f"Write the limit {write}.")} if acts else {})


def test_302_a_rounded_limit_is_read_back_whole() -> None:
    """777m are 9592 us, rounded to 780m they are 9629.1: cut off."""
    found = with_period(12_345, "777m", V2_QUADRATIC, "v2", "v2", kubelet="v1.33.8")
    assert found["CGA302"] == (
        "Container c of default/p: a limit of 777m acts as 780m after the move as it does now (9629 us).",
        "Write the limit as it acts, 780m, or as another multiple of 10m.",
    )


@pytest.mark.parametrize(("period_us", "limit", "write"), [(33_000, "30m", "40m"), (7_000, "25m", "150m")])
def test_301_advises_a_limit_that_starts_where_the_smallest_quota_is_more(
    period_us: int, limit: str, write: str
) -> None:
    """Of 33 ms 1000 us are 30.3m: every limit up to there is written as 40m."""
    found = with_period(period_us, limit, V1, "runtime", "v1")
    assert found["CGA301"][1].startswith(f"Set the limit to {write}, a multiple of 10m, before the move; ")
    assert with_period(period_us, write, V1, "runtime", "v1") == {}
