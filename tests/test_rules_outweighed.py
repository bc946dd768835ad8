"""CGA202: when it fires, when it does not, and the numbers of its remedy."""

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.cgroups.weights import linear, milli_to_shares
from kubectl_cgaudit.collect.assemble import with_answers
from tests.measured_support import CONFIG, answers
from tests.support import (
    ONE,
    STATES,
    V1,
    V2_LINEAR,
    audited,
    cluster,
    node,
    of_rule,
    recorded,
    severities,
    with_kubelets,
)


@pytest.mark.parametrize(
    ("cpu", "rules", "severity"),
    [
        ("64", "- {cgroup: v2, runtimes: {default: linear}}", "medium"),
        ("128", "- {cgroup: v2, runtimes: {default: linear}}", "high"),
        ("32", "- {cgroup: v2, runtimes: {default: linear}}", "low"),
        ("16", "- {cgroup: v2, runtimes: {default: linear}}", None),
        ("3400m", "- {cgroup: v2, system_slice: 20, runtimes: {default: linear}}", "low"),
        ("3400m", "- {cgroup: v2, system_slice: 60, runtimes: {default: linear}}", None),
    ],
)
def test_202_large_nodes_and_small_reserves_outweigh_the_system(cpu: str, rules: str, severity: str | None) -> None:
    assert severities(audited(cluster(node(cpu=cpu), ONE), rules, "v2"), "CGA202").get("n1") == severity


def test_a_reserve_leaves_what_kube_reserved_takes_out_of_account_where_configz_says_it() -> None:
    """4000m - 100m kube-reserved - the new reserve; of worker-c's 300m reserved now 200m are for the system."""
    measured = audited(with_kubelets(recorded()), STATES.read_text())
    (_outweighed,) = of_rule(measured, "CGA202").values()
    assert (linear(milli_to_shares(3250)), linear(milli_to_shares(650))) == (127, 26)
    of_rule(measured, "CGA201")["shop/checkout"]
    assert (linear(milli_to_shares(3070)), linear(milli_to_shares(830))) == (120, 33)


def test_202_holds_from_the_limit_on() -> None:
    """Weight 1250 beside 100."""
    objects = cluster(node(cpu="32"), ONE)
    assert list(of_rule(audited(objects, V2_LINEAR, "v2", "outweighed=12.5"), "CGA202")) == ["n1"]
    assert of_rule(audited(objects, V2_LINEAR, "v2", "outweighed=12.51"), "CGA202") == {}


@pytest.mark.parametrize(("to", "found"), [("kubelet=1.34", ["n1"]), ("kubelet=1.35", [])])
def test_202_of_a_node_that_does_not_come_back_nothing_is_said(to: str, found: list[str]) -> None:
    assert list(of_rule(audited(cluster(node(cpu="128"), ONE), V1, to), "CGA202")) == found


def test_a_reserve_does_not_lower_a_kubepods_that_is_made_from_capacity() -> None:
    config = replace(CONFIG, enforce_node_allocatable=(), system_reserved_milli=1000, kube_reserved_milli=3000)
    large = node(cpu="64")
    large["status"]["allocatable"]["cpu"] = "60"
    with_answers(cluster(large, ONE), {"n1": answers(config=config)})
    assert (linear(milli_to_shares(64000)), linear(milli_to_shares(6410))) == (2500, 251)


@pytest.mark.parametrize(
    ("cpus", "thresholds", "weight", "under"),
    [
        # kubepods has weight 625 for 16 CPUs, 1250 for 32; below 100 the limit is outweighed-reserve.
        ("8", (), 63, "5 : 1"),
        ("16", (), 100, "10 : 1"),
        ("32", (), 126, "10 : 1"),
        ("16", ("outweighed=2",), 313, "2 : 1"),
        ("8", ("outweighed=2",), 63, "5 : 1"),
    ],
)
def test_202_advises_by_the_threshold_that_holds_after_it(
    cpus: str, thresholds: tuple[str, ...], weight: int, under: str
) -> None:
    objects = cluster(node(cpu=cpus), ONE)
    rule = "- {cgroup: v2, runtimes: {default: runc 1.3.6}, set_by: systemd, system_slice: %d}"
    (_finding,) = of_rule(audited(objects, rule % 20, "v2", *thresholds), "CGA202").values()
    assert of_rule(audited(objects, rule % weight, "v2", *thresholds), "CGA202") == {}
    assert list(of_rule(audited(objects, rule % (weight - 1), "v2", *thresholds), "CGA202")) == ["n1"]
