"""What a finding tells of the place that is worst: who, and what it has before and after."""

from typing import Any

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
    recorded_audit,
    the_finding,
)


def told(finding: Finding) -> tuple[str | None, list[tuple[str, float | None, float | None]]]:
    """The container that is told of, and what is measured of it, with the digits that are shown."""
    measures = [(each.name, _short(each.before), _short(each.after)) for each in finding.measures]
    return finding.where.container, measures


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


@pytest.mark.parametrize(
    ("rule", "rules", "to", "containers", "expected"),
    [
        (
            "CGA203",
            V1,
            "v2+runtime",
            [("app", "998m"), ("b", "1")],
            ("app", [("value", 1021, 100), ("value over the default", 0.9971, 1)]),
        ),
        # 1024 shares are 1.00 times the default, weight 39 is 0.39 times: of several the one that moves most.
        (
            "CGA203",
            V1,
            "v2",
            [("a", "1"), ("c", "4")],
            ("a", [("value", 1024, 39), ("value over the default", 1, 0.39)]),
        ),
        ("CGA205", V1, "v2", [("a", "20m"), ("b", "25m")], ("b", [("request", 25, 25), ("value", 25, 1)])),
        ("CGA205", V2_LINEAR, "v2", [("a", "20m"), ("b", "25m")], ("b", [("request", 25, 25), ("value", 1, 1)])),
        ("CGA205", V2_LINEAR, "v2", [("a", "20m")], (None, [("request", 20, 20), ("value", 1, 1)])),
        (
            "CGA206",
            V2_LINEAR,
            "v2",
            [("a", "20m"), ("b", "128m"), ("c", "150m")],
            ("a", [("request", 20, 20), ("value", 1, 1)]),
        ),
        ("CGA206", V1, "v2+runtime", [("a", "3m"), ("b", "1")], ("a", [("request", 3, 3), ("value", 3, 2)])),
        # 4 CPUs beside 1024 shares are 4 : 1, beside weight 100 they are 1.57 : 1.
        (
            "CGA201",
            V1,
            "v2",
            [("c", "1")],
            (None, [("share against system.slice", 4, 1.57), ("share of the node", 0.8, 0.6109)]),
        ),
    ],
)
def test_of_one_pod(
    rule: str, rules: str, to: str, containers: list[tuple[str, str]], expected: tuple[Any, ...]
) -> None:
    placed = pod("p", *(container(name, milli) for name, milli in containers))
    assert told(the_finding(rule, rules, to, node(), placed)) == expected


def test_the_largest_loss_of_the_recorded_cluster() -> None:
    """From the kernel's files: kubepods 3788 shares beside 1024 are weight 145 beside 100 after the move."""
    finding = of_rule(recorded_audit(), "CGA201")["shop/checkout"]
    assert (finding.severity, finding.certainty, finding.today) == ("high", "stated", False)
    assert (finding.where.pods_hit, finding.where.pods, finding.where.nodes) == (1, 3, ("worker-c",))
    assert [(each.before, each.after) for each in finding.measures] == [
        (1.287271104, 0.492405128),
        (0.273933003, 0.200981685),
    ]


def test_pods_outweigh_system_processes_where_a_reserve_lowered_them() -> None:
    """worker-b enforces 500m on system.slice: weight 20 beside 133."""
    finding = of_rule(recorded_audit(), "CGA202")["worker-b"]
    assert (finding.severity, finding.today) == ("low", True)
    assert [round(each.after or 0, 4) for each in finding.measures] == [6.65, 0.1307]


def test_besteffort_pods_gain_on_cgroup_v2() -> None:
    """2 of 3239 shares in kubepods on v1, 1 of weight 125 on v2."""
    finding = of_rule(recorded_audit(), "CGA207")["worker-c"]
    (share,) = finding.measures
    assert (finding.severity, finding.detail["pods"]) == ("low", 2)
    assert [_short(share.before), _short(share.after)] == [0.0004861, 0.004735]


def test_a_kubelet_that_does_not_read_what_a_pod_asks_for_as_a_whole() -> None:
    whole = pod("p", container("a"), resources={"requests": {"cpu": "2"}, "limits": {"cpu": "2"}})
    finding = the_finding("CGA205", V2_LINEAR, "v2", node(kubelet="v1.31.2"), whole)
    assert told(finding) == (None, [("request", 2000, 2000), ("value", 1, 1)])
    assert of_rule(audited(cluster(node(kubelet="v1.34.1"), whole), V2_LINEAR, "v2"), "CGA205") == {}


def test_what_is_open_lists_the_cases_in_which_it_holds() -> None:
    found = audited(cluster(node(), pod("p", container("c", "1"))), "- {runtimes: {default: runc 1.1.15}}", "v2")
    finding = of_rule(found, "CGA201")["default/p"]
    assert [(case.when, case.severity) for case in finding.cases] == [("cgroup v1", "high")]
    assert finding.certainty == "possible"
