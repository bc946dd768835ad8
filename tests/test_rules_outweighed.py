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
    container,
    node,
    of_rule,
    pod,
    recorded,
    recorded_audit,
    severities,
    the_finding,
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


def test_202_says_which_reserve_brings_it_under_the_threshold() -> None:
    (finding,) = of_rule(recorded_audit(), "CGA202").values()
    assert finding.seen == (
        "worker-b: kubepods has weight 133, system.slice 20, below its default of 100: pods : system is 6.65 : 1 after the "
        "move (6.65 : 1 now), so system processes keep 13% of the node's CPU when everything wants it."
    )
    assert finding.remedy == (
        "Raise the reserve: enforce system-reserved-compressible on system.slice with 670m CPU (weight 27, pods : system "
        "3.96 to 4.81 : 1; leaves 2730m to 3330m to schedule, 3400m now, depending on how much is kubeReserved; its pods ask for "
        "3113m: what does not fit may be refused (OutOfcpu) when the kubelet starts) brings it under 5 : 1."
    )


def test_a_reserve_leaves_what_kube_reserved_takes_out_of_account_where_configz_says_it() -> None:
    """4000m - 100m kube-reserved - the new reserve; of worker-c's 300m reserved now 200m are for the system."""
    measured = audited(with_kubelets(recorded()), STATES.read_text())
    (outweighed,) = of_rule(measured, "CGA202").values()
    assert "with 650m CPU (weight 26, pods : system 4.88 : 1; leaves 3250m to schedule, 150m less than now)" in (
        outweighed.remedy
    )
    assert (linear(milli_to_shares(3250)), linear(milli_to_shares(650))) == (127, 26)
    lost = of_rule(measured, "CGA201")["shop/checkout"]
    assert (
        "with 830m CPU (weight 33, pods : system 3.64 : 1; leaves 3070m to schedule, 630m less than now; its pods ask for 3162m"
        in lost.remedy
    )
    assert (linear(milli_to_shares(3070)), linear(milli_to_shares(830))) == (120, 33)


@pytest.mark.parametrize(("system", "again"), [("200", True), ("1024", False)])
def test_202_on_v1_a_kubelet_that_enforces_a_reserve_writes_it_again(system: str, again: bool) -> None:
    rules = f"- {{cgroup: v1, system_slice: {system}, runtimes: {{default: runc 1.1.5}}}}"
    (finding,) = of_rule(audited(cluster(node(cpu="64"), ONE), rules, "runtime"), "CGA202").values()
    assert ("raise that reserve instead" in finding.remedy) is again


def test_202_on_v1_shares_are_said() -> None:
    finding = the_finding("CGA202", V1, "runtime", node(cpu="128"), ONE)
    assert finding.remedy == "`systemctl set-property system.slice CPUShares=13108` brings it under 10 : 1."
    most = the_finding("CGA202", V1, "runtime", node(cpu="128"), ONE, thresholds=("outweighed=0.25",))
    assert most.remedy.startswith("No value of system.slice is enough: the greatest is shares 262144. Judge by another")
    least = the_finding("CGA202", V1, "runtime", node(cpu="128"), ONE, thresholds=("outweighed=0.501",))
    assert least.remedy == "`systemctl set-property system.slice CPUShares=261621` brings it under 0.501 : 1."


def test_202_on_v2_a_weight_or_a_reserve() -> None:
    finding = the_finding("CGA202", V2_LINEAR, "v2", node(cpu="32"), ONE)
    assert finding.seen == (
        "n1: kubepods has weight 1250, system.slice 100: pods : system is 12.5 : 1 after the move (12.5 : 1 now), so system "
        "processes keep 7.4% of the node's CPU when everything wants it."
    )
    assert finding.remedy == (
        "`systemctl set-property system.slice CPUWeight=126` brings it under 10 : 1; or enforce system-reserved-compressible "
        "on system.slice with 2900m CPU (weight 114, pods : system 9.97 : 1; leaves 29100m to schedule, 2900m less than "
        "now)."
    )
    most = the_finding("CGA202", V2_LINEAR, "v2", node(cpu="32"), ONE, thresholds=("outweighed=0.1",))
    assert most.remedy.startswith("No value of system.slice is enough: the greatest is weight 10000. Judge by another")
    older = the_finding("CGA202", V2_LINEAR, "v2", node(cpu="32", kubelet="v1.31.0"), ONE)
    assert "enforce system-reserved on system.slice" in older.remedy
    since = the_finding("CGA202", V2_LINEAR, "v2", node(cpu="32", kubelet="v1.32.0"), ONE)
    assert "enforce system-reserved-compressible on system.slice" in since.remedy


def test_202_holds_from_the_limit_on() -> None:
    """Weight 1250 beside 100."""
    objects = cluster(node(cpu="32"), ONE)
    assert list(of_rule(audited(objects, V2_LINEAR, "v2", "outweighed=12.5"), "CGA202")) == ["n1"]
    assert of_rule(audited(objects, V2_LINEAR, "v2", "outweighed=12.51"), "CGA202") == {}


def test_202_a_limit_that_a_whole_weight_just_reaches_needs_the_next_one() -> None:
    """Weight 110 beside 100 is 1.1; 110 / 1.1 is a little less than 100."""
    finding = the_finding("CGA202", V2_LINEAR, "v2", node(cpu="2800m"), ONE, thresholds=("outweighed=1.1",))
    assert finding.remedy.startswith("`systemctl set-property system.slice CPUWeight=101` brings it under 1.1 : 1")


@pytest.mark.parametrize(
    ("set_by", "remedy"),
    [
        (
            "systemd",
            "`systemctl set-property system.slice CPUWeight=27` brings it under 5 : 1; or enforce "
            "system-reserved-compressible on system.slice with 670m CPU (weight 27, pods : system 3.96 to 4.81 : 1; leaves "
            "2730m to 3330m to schedule, 3400m now, depending on how much is kubeReserved).",
        ),
        (
            "kubelet",
            "Raise the reserve: enforce system-reserved-compressible on system.slice with 670m CPU (weight 27, pods : system "
            "3.96 to 4.81 : 1; leaves 2730m to 3330m to schedule, 3400m now, depending on how much is kubeReserved) brings it "
            "under 5 : 1.",
        ),
        (
            None,
            "`systemctl set-property system.slice CPUWeight=27` brings it under 5 : 1 if systemd set it; if a kubelet's "
            "reserve did, enforce system-reserved-compressible on system.slice with 670m CPU (weight 27, pods : system 3.96 to "
            "4.81 : 1; leaves 2730m to 3330m to schedule, 3400m now, depending on how much is kubeReserved).",
        ),
    ],
)
def test_202_a_low_weight_is_raised_where_it_was_set(set_by: str | None, remedy: str) -> None:
    said = f", set_by: {set_by}" if set_by else ""
    raw = node(cpu="4")
    raw["status"]["allocatable"] = {"cpu": "3400m"}
    rules = f"- {{cgroup: v2, system_slice: 20{said}, runtimes: {{default: runc 1.3.6}}}}"
    found = of_rule(audited(cluster(raw, pod("p", container("c", "1"))), rules, "v2"), "CGA202")
    assert found["n1"].remedy == remedy


@pytest.mark.parametrize(
    ("set_by", "on_v1", "on_v2"),
    [
        (
            "systemd",
            "`systemctl set-property system.slice CPUShares=9831` brings it under 10 : 1.",
            "`systemctl set-property system.slice CPUWeight=376` brings it under 10 : 1; or enforce {reserve}.",
        ),
        (
            "kubelet",
            "`systemctl set-property system.slice CPUShares=9831` brings it under 10 : 1; a kubelet that enforces a reserve "
            "there writes its own at every start: raise that reserve instead.",
            "Raise the reserve: enforce {reserve} brings it under 10 : 1.",
        ),
        (
            None,
            "`systemctl set-property system.slice CPUShares=9831` brings it under 10 : 1; a kubelet that enforces a reserve "
            "there writes its own at every start: raise that reserve instead.",
            "`systemctl set-property system.slice CPUWeight=376` brings it under 10 : 1 if systemd set it; if a kubelet's "
            "reserve did, enforce {reserve}.",
        ),
    ],
)
def test_202_a_reserve_of_many_cpus_is_raised_by_its_kubelet_too(set_by: str | None, on_v1: str, on_v2: str) -> None:
    """3 CPUs are 3072 shares, weight 118: more than the default, and written again at every start all the same."""
    said = f", set_by: {set_by}" if set_by else ""
    reserve = (
        "system-reserved-compressible on system.slice with 8720m CPU (weight 341, pods : system 10 : 1; leaves 87280m to "
        "schedule, 8720m less than now)"
    )
    for version, value, remedy in (("v1", 3072, on_v1), ("v2", 118, on_v2)):
        rules = f"- {{cgroup: {version}, system_slice: {value}{said}, runtimes: {{default: runc 1.1.5}}}}"
        finding = the_finding("CGA202", rules, "runtime", node(cpu="96"), ONE)
        assert finding.remedy == remedy.format(reserve=reserve)


@pytest.mark.parametrize(
    ("cpu", "system", "after_it"),
    [
        ("4", 20, ": it then has the default weight of 100 again."),
        ("96", 118, ", then `systemctl set-property system.slice CPUWeight=1876` brings it under 2 : 1."),
    ],
)
def test_202_where_no_reserve_is_enough_its_enforcement_goes_first(cpu: str, system: int, after_it: str) -> None:
    rules = f"- {{cgroup: v2, system_slice: {system}, set_by: kubelet, runtimes: {{default: runc 1.3.6}}}}"
    least = ("outweighed=2", "outweighed-reserve=2")
    finding = the_finding("CGA202", rules, "runtime", node(cpu=cpu), ONE, thresholds=least)
    assert finding.remedy == (
        "No reserve of a sensible size is enough. Take the enforcement off system.slice (its key out of "
        f"enforceNodeAllocatable){after_it}"
    )


@pytest.mark.parametrize(("to", "found"), [("kubelet=1.34", ["n1"]), ("kubelet=1.35", [])])
def test_202_of_a_node_that_does_not_come_back_nothing_is_said(to: str, found: list[str]) -> None:
    assert list(of_rule(audited(cluster(node(cpu="128"), ONE), V1, to), "CGA202")) == found


def test_202_says_for_which_cases_its_numbers_and_what_to_do_stand() -> None:
    finding = the_finding("CGA202", "", "v2+runtime", node(cpu="64"), ONE)
    assert (finding.severity, finding.when) == ("medium", "")
    assert "is 25 : 1 after the move (25 : 1 now), " in finding.seen
    assert finding.seen.endswith(
        " These numbers hold if cgroup v2; it is found in every other case too, with other numbers."
    )
    finding = the_finding("CGA202", "", "runtime", node(cpu="64"), ONE)
    assert (finding.severity, finding.when) == ("high", "if cgroup v1")
    assert finding.seen.endswith(" It is found in every other case too, with other numbers.")
    assert finding.remedy.startswith(
        "If cgroup v1: `systemctl set-property system.slice CPUShares=6554` brings it under 10 : 1. "
        "If cgroup v2: `systemctl set-property system.slice CPUWeight=251` brings it under 10 : 1; or enforce "
    )


def test_202_a_reserve_that_lowers_system_slice_is_held_to_what_holds_then() -> None:
    finding = the_finding("CGA202", V2_LINEAR, "v2", node(cpu="26"), ONE)
    assert "with 2540m CPU (weight 100, pods : system 9.17 : 1; leaves 23460m to schedule, " in finding.remedy


def test_a_reserve_does_not_lower_a_kubepods_that_is_made_from_capacity() -> None:
    config = replace(CONFIG, enforce_node_allocatable=(), system_reserved_milli=1000, kube_reserved_milli=3000)
    large = node(cpu="64")
    large["status"]["allocatable"]["cpu"] = "60"
    objects = with_answers(cluster(large, ONE), {"n1": answers(config=config)})
    remedy = of_rule(audited(objects, "", "v2"), "CGA202")["n1"].remedy
    assert (
        "with 6410m CPU (weight 251, pods : system 9.96 : 1; leaves 54590m to schedule, 5410m less than now)" in remedy
    )
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
    (finding,) = of_rule(audited(objects, rule % 20, "v2", *thresholds), "CGA202").values()
    assert finding.remedy.startswith(
        f"`systemctl set-property system.slice CPUWeight={weight}` brings it under {under}"
    )
    assert of_rule(audited(objects, rule % weight, "v2", *thresholds), "CGA202") == {}
    assert list(of_rule(audited(objects, rule % (weight - 1), "v2", *thresholds), "CGA202")) == ["n1"]
