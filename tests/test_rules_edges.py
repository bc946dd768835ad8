"""What tells one finding from another by a single condition: severities, words and numbers of remedies."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kubectl_cgaudit.errors import UsageError
from kubectl_cgaudit.judge.policy.read import parse
from kubectl_cgaudit.judge.rules import jvm
from kubectl_cgaudit.judge.rules.context import pod_hits
from tests.support import V1, V2_LINEAR, audited, cluster, container, node, of_rule, pod
from tests.test_policy import AUDIT, subjects, under

ONE = pod("p", container("app", "1"))


def only(rule: str, rules: str, to: str, *objects: dict[str, Any], **more: Any) -> Any:
    (finding,) = of_rule(audited(cluster(*objects), rules, to, *more.get("thresholds", ())), rule).values()
    return finding


def test_the_worst_case_is_told_and_of_equally_bad_ones_the_last_by_name() -> None:
    found = cluster(ONE, node()).pods[0]
    looks = [
        (SimpleNamespace(case=SimpleNamespace(when=when)), bad and (bad, f"seen {when}", f"do {when}"))
        for when, bad in (("a", 2.0), ("b", 2.0), ("c", 1.0), ("d", None))
    ]
    (hit,) = pod_hits(found, None, iter(looks))
    assert (hit.place, hit.badness, hit.seen, hit.remedy) == (None, 2.0, "seen b", "do b")
    assert hit.when
    (alone,) = pod_hits(found, found.containers[0], iter(looks[:2]))
    assert (alone.place, alone.when) == (0, "")
    assert list(pod_hits(found, None, iter(looks[3:]))) == []


def test_101_back_to_v1(tmp_path: Path) -> None:
    (tmp_path / "back.yaml").write_text("- {cgroup: v1}")
    back = str(tmp_path / "back.yaml")
    finding = only("CGA101", V2_LINEAR, back, node(kubelet="v1.34.1"), ONE)
    assert (finding.severity, finding.seen) == (
        "medium",
        "n1 goes from cgroup v2 back to v1; a kubelet from 1.35 on does not start there.",
    )
    finding = only("CGA101", V2_LINEAR, back, node(kubelet="v1.35.1"), ONE)
    assert (finding.severity, finding.seen) == (
        "critical",
        "n1 goes from cgroup v2 back to v1; kubelet 1.35.1 does not start there unless failCgroupV1 is false.",
    )
    finding = only("CGA101", V1, "runtime", node(kubelet="v1.35.1"), ONE)
    assert (finding.severity, finding.seen) == (
        "medium",
        "n1 is on cgroup v1 with kubelet 1.35.1, which runs there only because failCgroupV1 is false.",
    )


def test_102_names_only_what_is_open() -> None:
    finding = only("CGA102", "- {runtimes: {default: runc 1.3.6}}", "v2", node(), ONE)
    assert finding.seen == "n1: not known is its cgroup version; predicted for each possibility."
    assert finding.remedy == (
        "Look on the node with `stat -fc %T /sys/fs/cgroup` (cgroup2fs is v2, tmpfs is v1), and say it with --states FILE, "
        "with what you saw: - {match: {name: n1}, cgroup: v1 or v2}"
    )
    finding = only("CGA102", "- {cgroup: v2}", "v2", node(), ONE)
    assert finding.seen == "n1: not known is the runtime of its handler default; predicted for each possibility."
    assert finding.remedy == (
        "Look on the node with `runc --version` or `crun --version`, and say it with --states FILE, with what you saw: "
        "- {match: {name: n1}, runtimes: {default: runc X.Y.Z}}"
    )


def test_103_needs_both_formulas_on_a_v2_node_of_which_nothing_is_open() -> None:
    uses = pod("q", container("app", "1"), runtimeClassName="new")
    both = "runtimes: {default: runc 1.1.15, new: runc 1.3.6}"
    objects = cluster(node(), ONE, uses)
    (finding,) = of_rule(audited(objects, f"- {{cgroup: v2, {both}}}", "v2"), "CGA103").values()
    assert (finding.severity, finding.when) == ("low", "")
    for rules in (
        f"- {{cgroup: v1, driver: systemd, {both}}}",
        f"- {{{both}}}",
        "- {cgroup: v2, runtimes: {default: runc 1.3.6, new: runc 1.3.6}}",
        "- {cgroup: v2, runtimes: {default: runc 1.1.15, new: runc 1.1.15}}",
    ):
        assert of_rule(audited(objects, rules, "v2"), "CGA103") == {}, rules


def test_103_compares_pods_of_one_class_that_ask_for_the_same() -> None:
    """No example is taken from pods that are alike in the weight of the pod only."""
    both = "- {cgroup: v2, runtimes: {default: runc 1.1.15, new: runc 1.3.6}}"

    def example(*containers: dict[str, Any], **spec: Any) -> str:
        first = pod("p", container("app", "1"), container("side", "100m"))
        second = pod("q", *containers, runtimeClassName="new", **spec)
        return only("CGA103", both, "v2", node(), first, second).seen

    assert "ask for the same" in example(container("app", "1"), container("side", "100m"))
    for containers in (
        (container("app", "900m"), container("side", "200m")),
        (container("app", "1", "2"), container("side", "100m")),
    ):
        assert "ask for the same" not in example(*containers)
    assert "ask for the same" not in example(container("app", "1"), container("side", "100m"), qos="Guaranteed")


def test_202_on_v1_shares_are_said() -> None:
    finding = only("CGA202", V1, "runtime", node(cpu="128"), ONE)
    assert finding.remedy == "`systemctl set-property system.slice CPUShares=13108` brings it under 10 : 1."
    most = only("CGA202", V1, "runtime", node(cpu="128"), ONE, thresholds=("outweighed=0.25",))
    assert most.remedy == "`systemctl set-property system.slice CPUShares=262144` brings it under 0.25 : 1."


def test_202_on_v2_a_weight_or_a_reserve() -> None:
    finding = only("CGA202", V2_LINEAR, "v2", node(cpu="32"), ONE)
    assert finding.remedy == (
        "`systemctl set-property system.slice CPUWeight=126` brings it under 10 : 1; or enforce system-reserved-compressible "
        "on system.slice with 2900m CPU (weight 114, pods : system 9.97 : 1; leaves at most 29100m to schedule, at least "
        "2900m less than now)."
    )
    most = only("CGA202", V2_LINEAR, "v2", node(cpu="32"), ONE, thresholds=("outweighed=0.1",))
    assert most.remedy == "`systemctl set-property system.slice CPUWeight=10000` brings it under 0.1 : 1."
    older = only("CGA202", V2_LINEAR, "v2", node(cpu="32", kubelet="v1.31.0"), ONE)
    assert "enforce system-reserved on system.slice" in older.remedy
    since = only("CGA202", V2_LINEAR, "v2", node(cpu="32", kubelet="v1.32.0"), ONE)
    assert "enforce system-reserved-compressible on system.slice" in since.remedy


def test_202_holds_from_the_limit_on() -> None:
    """Weight 1250 beside 100."""
    objects = cluster(node(cpu="32"), ONE)
    assert list(of_rule(audited(objects, V2_LINEAR, "v2", "outweighed=12.5"), "CGA202")) == ["n1"]
    assert of_rule(audited(objects, V2_LINEAR, "v2", "outweighed=12.51"), "CGA202") == {}


def test_203_of_several_the_one_that_moves_most_and_what_it_asks_for() -> None:
    pods = (container("a", "1"), container("b", None, "1"), container("c", "4", "8"))
    finding = only("CGA203", V1, "v2", node(cpu="16"), pod("p", *pods))
    assert finding.seen.startswith(
        "Container b of default/p: cpu.shares 1024 now, cpu.weight 39 after: 1.00 -> 0.39 times"
    )
    assert "times the default for a limit of 1000m." in finding.seen
    asked = only("CGA203", V1, "v2", node(), pod("p", container("a", "1"), container("b", "500m")))
    assert "times the default for a request of 1000m." in asked.seen
    whole = pod("p", container("a"), resources={"limits": {"cpu": "1"}, "requests": {"cpu": "1"}})
    of_pod = only("CGA203", V1, "v2", node(kubelet="v1.34.2"), whole)
    assert "times the default for a limit of 1000m." in of_pod.seen


def test_203_both_ways_count_by_how_far_they_go() -> None:
    """1.00 -> 0.39 loses 0.61; on the quadratic curve 4 CPUs go from 4.00 to 2.6: not across; 900m from 0.9 to 0.93."""
    up = audited(cluster(node(), pod("p", container("a", "1010m"), container("b", "1100m"))), V2_LINEAR, "runtime")
    (finding,) = of_rule(up, "CGA203").values()
    assert finding.seen.startswith("Container b of default/p: cpu.weight 43 now, cpu.weight")


def test_204_with_several_losers_the_largest_is_the_app() -> None:
    pods = (container("a", "150m"), container("b", "200m"), container("z", "20m"))
    finding = only("CGA204", V2_LINEAR, "runtime", node(), pod("p", *pods))
    assert finding.seen == (
        "Pod default/p on n1: b has 53% of its pod's CPU now and 49% after (-7.8%); what it loses goes to a (40% -> 41%) and "
        "z (6.7% -> 10%). Weights: a 6 -> 24, b 8 -> 29, z 1 -> 6."
    )
    assert "weights b : a : z = 31 : 23 : 4, as 8 : 6 : 1 now" in finding.remedy


@pytest.mark.parametrize(
    ("containers", "said"),
    [
        (
            (container("a", "200m"), container("z")),
            "z no request -> 10m, a 200m -> 190m; weights z : a = 4 : 28, as 1 : 8 now.",
        ),
        (
            (container("a", "200m"), container("y", "20m"), container("z")),
            "z no request -> 10m, y 20m -> 10m; weights z : a : y = 4 : 29 : 4, as 1 : 8 : 1 now.",
        ),
        (
            (container("a", None, "200m"), container("z", "20m")),
            "a 200m -> 210m, z 20m -> 10m; weights a : z = 30 : 4, as 8 : 1 now.",
        ),
        (
            (container("a", "200m"), container("z", None, "20m")),
            "a 200m -> 210m, z 20m -> 10m; weights a : z = 30 : 4, as 8 : 1 now.",
        ),
    ],
)
def test_204_what_has_no_request_gets_one_and_a_limit_stands_for_one(
    containers: tuple[dict[str, Any], ...], said: str
) -> None:
    assert said in only("CGA204", V2_LINEAR, "runtime", node(), pod("p", *containers)).remedy


def test_204_the_limits_of_a_guaranteed_pod_go_with_the_requests() -> None:
    same = pod("p", container("a", "200m", "200m"), container("z", "20m", "20m"), qos="Guaranteed")
    limits = " Their limits go with them, as the pod is Guaranteed."
    assert limits in only("CGA204", V2_LINEAR, "runtime", node(), same).remedy
    less = pod("p", container("a", "200m"), container("z", "20m"))
    assert limits not in only("CGA204", V2_LINEAR, "runtime", node(), less).remedy


def test_204_holds_from_its_threshold_on() -> None:
    """8 / 9 to 29 / 35 is -6.786%."""
    objects = cluster(node(), pod("p", container("app", "200m"), container("sidecar", "20m")))
    change = audited(objects, V2_LINEAR, "runtime").workloads[0].inside_pod
    assert change is not None
    assert list(of_rule(audited(objects, V2_LINEAR, "runtime", f"pod-move={-change.change}"), "CGA204"))
    assert of_rule(audited(objects, V2_LINEAR, "runtime", "pod-move=0.068"), "CGA204") == {}


def test_205_is_no_matter_of_lone_containers_and_pods_without_a_request() -> None:
    two = pod("p", container("a", "20m"), container("b", "25m"))
    finding = only("CGA205", V1, "v2", node(), two)
    assert finding.seen == (
        "Container b of default/p asks for 25m (25 shares) and gets weight 1, the least there is: no more than a sibling that "
        "asks for 1m, or for nothing. 1 more of this workload is found by this rule."
    )
    assert finding.remedy == (
        "Raise the request to 29m, the least that gets weight 2, or more. A runtime with the quadratic formula tells them "
        "apart inside the pod."
    )
    already = only("CGA205", V2_LINEAR, "v2", node(), two)
    assert "or for nothing. It is so now, too." in already.seen
    lone = only("CGA205", V2_LINEAR, "v2", node(), pod("p", container("a", "20m")))
    assert lone.seen.startswith("Pod default/p asks for 20m (20 shares) and gets weight 1, the least there is:")
    assert lone.remedy == "Raise the request to 29m, the least that gets weight 2, or more."
    finished = pod("p", container("a", "20m"), container("b", "30m"), restartPolicy="Never")
    finished["status"]["containerStatuses"] = [{"name": "b", "state": {"terminated": {"exitCode": 0}}}]
    found = audited(cluster(node(), finished), V2_LINEAR, "v2")
    assert not [each for each in of_rule(found, "CGA205").values() if "Container a" in each.seen]
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


def test_206_under_the_threshold_and_what_a_runtime_would_change() -> None:
    pods = (container("a", "20m"), container("b", "128m"), container("c", "150m"))
    finding = only("CGA206", V2_LINEAR, "v2", node(), pod("p", *pods))
    assert finding.seen == ("Container a of default/p (20m) has weight 1 after the move, under 5. It is so now, too.")
    assert (
        finding.remedy
        == "Only if it creates child cgroups: raise its request, or use a runtime with the quadratic formula."
    )
    least = only("CGA206", V1, "v2+runtime", node(), pod("p", container("a", "3m"), container("b", "1")))
    assert least.seen == "Container a of default/p (3m) has weight 2 after the move, under 5."
    assert least.remedy == "Only if it creates child cgroups: raise its request."
    at = cluster(node(), pod("p", container("a", "130m"), container("b", "1")))
    assert of_rule(audited(at, V2_LINEAR, "v2", "divisible=6"), "CGA206")
    assert of_rule(audited(at, V2_LINEAR, "v2", "divisible=5"), "CGA206") == {}


def test_207_what_besteffort_pods_gain() -> None:
    def found(to: str, rules: str, *pods: dict[str, Any]) -> dict[str, Any]:
        return of_rule(audited(cluster(node(), *pods), rules, to), "CGA207")

    best = [pod(f"q{number}", container("c"), qos="BestEffort") for number in range(2)]
    assert found("v2", V1, ONE, *best)["n1"].seen == (
        "n1: its 2 BestEffort pods together can take 0.2% of the node's CPU now and 1.5% after, 9.79 times as much, when "
        "everything wants CPU: 2 of 1026 shares in kubepods now, 1 of 40 weight after."
    )
    assert found("v2", V1, pod("p", container("a", "20m")), best[0])["n1"].seen == (
        "n1: its BestEffort pod can take 7.3% of the node's CPU now and 31% after, 4.2 times as much, when everything wants "
        "CPU: 2 of 22 shares in kubepods now, 1 of 2 weight after."
    )
    assert found("runtime", V1, ONE, *best) == {}
    assert found("v2+runtime", V2_LINEAR, ONE, *best) == {}
    assert found("v2", V1, *best) == {}
    assert found("v2", V1, ONE) == {}


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("cadvisor", ("cadvisor", "")),
        ("registry:5000/openjdk", ("registry:5000/openjdk", "")),
        ("registry:5000/openjdk:11", ("registry:5000/openjdk", "11")),
        ("a/b:1@sha256:c", ("a/b", "1")),
        ("a/b@sha256:c", ("a/b", "")),
    ],
)
def test_an_image_is_split_into_repository_and_tag(image: str, parts: tuple[str, str]) -> None:
    assert jvm.split(image) == parts


@pytest.mark.parametrize(
    ("image", "found"),
    [
        ("openjdk:9", ("Java 9", "blind")),
        ("openjdk:10", ("Java 10", "blind")),
        ("openjdk:12", ("Java 12", "blind")),
        ("openjdk:14", ("Java 14", "blind")),
        ("openjdk:15", ("Java 15", "misreads")),
        ("openjdk:17.0", None),
        ("openjdk:17.1.2", None),
        ("openjdk:17.0.5", None),
    ],
)
def test_401_further_releases(image: str, found: tuple[str, str] | None) -> None:
    assert jvm.old_jvm(image) == found


@pytest.mark.parametrize(("weight", "cpus"), [(293, 8), (332, 9), (371, 9), (1035, 26)])
def test_401_weights_near_half_a_cpu(weight: int, cpus: int) -> None:
    assert jvm.cpus("v2", weight) == cpus


def test_401_a_cadvisor_without_a_tag_is_one() -> None:
    exporter = pod("b", container("cadvisor", "100m", image="cadvisor"))
    assert "runs cAdvisor" in only("CGA401", V2_LINEAR, "runtime", node(), exporter).seen


def test_an_exception_that_is_over_and_matches_nothing_says_both() -> None:
    over = "exceptions: [{rule: CGA101, match: {node: other*}, reason: gone, expires: 2026-05-31}]"
    (finding,) = (each for each in under(over).findings if each.rule == "CGA002")
    assert finding.seen == "p.yaml exception 1 (gone) held until 2026-05-31. It matches no finding."
    one = "exceptions: [{rule: CGA202, reason: x, expires: 2026-05-31}]"
    (finding,) = (each for each in under(one).findings if each.rule == "CGA002")
    assert finding.seen.endswith("held until 2026-05-31. 1 finding that it speaks of counts again.")


def test_what_is_excepted_is_counted_in_the_sentence() -> None:
    assert under("severities: {CGA302: medium}").verdict.sentence == AUDIT.verdict.sentence
    one = under("exceptions: [{rule: CGA202, reason: x}]")
    assert one.verdict.sentence == f"{AUDIT.verdict.sentence} 1 finding is excepted by p.yaml and not counted."


def test_without_a_day_an_exception_that_expires_still_holds() -> None:
    found = under("exceptions: [{rule: CGA202, reason: x, expires: 2020-01-01}]", today=None)
    assert subjects(found.findings, "CGA202") == []


def test_severities_are_recorded_in_the_order_of_the_rules() -> None:
    found = under("severities: {CGA302: medium, CGA203: off}").policy
    assert found is not None
    assert list(found.severities.items()) == [("CGA203", "off"), ("CGA302", "medium")]


@pytest.mark.parametrize(
    "text",
    [
        "exceptions: [{rule: [], reason: x}]",
        "exceptions: [{rule: CGA101, reason: x, expires: '20261231'}]",
    ],
)
def test_more_that_a_policy_refuses(text: str) -> None:
    with pytest.raises(UsageError):
        parse(text, "p.yaml")
