"""Every finding: when it fires, when it does not, and the numbers of its remedy."""

import re
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.cgroups.weights import Formula, linear, milli_to_shares, quadratic, weight_of
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.judge.rules.context import pod_hits
from kubectl_cgaudit.judge.rules.rebalance import Balance, request_for
from kubectl_cgaudit.text import percent
from tests.support import (
    STATES,
    V1,
    V2_LINEAR,
    V2_QUADRATIC,
    audited,
    cluster,
    compared,
    container,
    node,
    of_rule,
    other,
    pod,
    recorded,
    recorded_audit,
)
from tests.test_evidence import with_kubelets

ONE = pod("p", container("app", "1"))
V1_NEW = "- {cgroup: v1, driver: systemd, runtimes: {default: runc 1.3.6}}"


def severities(result: Any, rule: str) -> dict[str, str]:
    return {title: finding.severity for title, finding in of_rule(result, rule).items()}


def test_001_names_each_gap() -> None:
    result = audited(cluster(node(), pod("p", container("c"), on="gone")), V2_LINEAR)
    (finding,) = of_rule(result, "CGA001").values()
    assert (finding.severity, finding.subject.name) == ("high", "node gone")
    assert finding.remedy == "Read all nodes together with the pods."


@pytest.mark.parametrize(
    ("rules", "to", "expected"),
    [
        (V1, "kubelet=1.35", "critical"),
        (V1, "kubelet=1.34", "medium"),
        (V1, "runtime", "medium"),
        (V1, "v2", "low"),
        (V1, "v2,kubelet=1.36", "low"),
        (V2_LINEAR, "kubelet=1.35", None),
    ],
)
def test_101_a_v1_node_does_not_come_back_from_kubelet_1_35(rules: str, to: str, expected: str | None) -> None:
    assert severities(audited(cluster(node(), ONE), rules, to), "CGA101").get("n1") == expected


def test_101_says_if_it_is_only_possible() -> None:
    (finding,) = of_rule(audited(cluster(node(), ONE), "", "kubelet=1.35"), "CGA101").values()
    assert (finding.severity, finding.when) == ("critical", "if cgroup v1")


def test_102_names_what_is_open_and_what_settles_it() -> None:
    objects = cluster(node(), ONE, pod("q", container("c", "1"), runtimeClassName="crun"))
    (finding,) = of_rule(audited(objects), "CGA102").values()
    assert finding.seen == (
        "n1: not known are its cgroup version and the runtime of its handler crun and the runtime of its handler default; "
        "predicted for each possibility."
    )
    assert "with what you saw: - {match: {name: n1}, cgroup: v1 or v2, " in finding.remedy
    assert "runtimes: {crun: crun X.Y.Z, default: runc X.Y.Z}}" in finding.remedy
    assert of_rule(audited(objects, "- {cgroup: v2, runtimes: {default: linear, crun: linear}}"), "CGA102") == {}


def test_103_two_formulas_on_a_node_and_what_they_do_not_change() -> None:
    findings = of_rule(recorded_audit(), "CGA103")
    assert list(findings) == ["worker-a"]
    assert findings["worker-a"].seen == (
        "worker-a: runc-old: runc 1.1.15 (linear), crun: crun 1.28 (quadratic), default: runc 1.3.6 (quadratic). "
        "The pods of edge/legacy-gateway and edge/gateway ask for the same: the container envoy (300m) has weight 12 in the "
        "one and 40 in the other, but both pods have weight 14, so neither pod gets more CPU than the other."
    )


def test_201_the_loss_and_the_weight_that_undoes_it() -> None:
    findings = of_rule(recorded_audit(), "CGA201")
    assert set(findings) == {
        "data/postgres",
        "kube-system/kube-proxy",
        "platform/node-exporter",
        "shop/checkout",
        "shop/payments",
    }
    postgres = findings["data/postgres"]
    assert (postgres.severity, postgres.when) == ("high", "")
    assert postgres.seen == (
        "Pod data/postgres-1 on worker-c: 1.4 times the CPU of system.slice now, 0.545 times after (-61%); "
        "30% of the node's CPU now, 22% after, when everything wants CPU."
    )
    assert "give system.slice weight 39 (pods : system 3.72 : 1)" in postgres.remedy


@pytest.mark.parametrize(("threshold", "found"), [("system-loss=10%", 1), ("system-loss=0.7", 0)])
def test_201_follows_its_threshold(threshold: str, found: int) -> None:
    assert len(of_rule(audited(cluster(node(), ONE), V1, "v2", threshold), "CGA201")) == found


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
        "4.81 : 1; leaves at most 3330m to schedule, at least 70m less than now) brings it under 5 : 1."
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
        "with 830m CPU (weight 33, pods : system 3.64 : 1; leaves 3070m to schedule, 630m less than now)" in lost.remedy
    )
    assert (linear(milli_to_shares(3070)), linear(milli_to_shares(830))) == (120, 33)


@pytest.mark.parametrize(
    ("rules", "to", "found"),
    [(V1, "v2", True), (V2_LINEAR, "runtime", True), (V1, "v2+runtime", False), (V2_LINEAR, "v2", False)],
)
def test_203_one_cpu_crosses_the_default(rules: str, to: str, found: bool) -> None:
    assert bool(of_rule(audited(cluster(node(), ONE), rules, to), "CGA203")) is found


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


def test_204_raising_is_free_where_an_init_container_decides_the_pods_request() -> None:
    """shop/payments asks for 650m: its init container's 600m and the 50m of the sidecar before it, not 270m.

    Both gainers count: beside 11 + 6 it takes weight 49 to have 204 / 275 = 74% of the pod again.
    """
    finding = of_rule(recorded_audit(), "CGA204")["shop/payments"]
    assert finding.severity == "medium"
    assert finding.remedy == (
        "Raise the request, which costs nothing to schedule and keeps the pod's weight, as the pod's request stays 650m: "
        "payments 200m -> 391m; weights payments : vault-agent : metrics = 49 : 11 : 6, against 204 : 51 : 20 now. "
        "Not before the new runtime creates the containers on cgroup v2."
    )
    assert [quadratic(milli_to_shares(milli)) for milli in (391, 50, 20)] == [49, 11, 6]
    assert (percent(49 / (49 + 11 + 6)), percent(204 / (204 + 51 + 20))) == ("74%", "74%")


@pytest.mark.parametrize(
    ("app", "side", "weights", "remedy"),
    [
        # 102 : 5 is 95%; a weight of 1 is the least, so the app needs 20 beside it.
        ("100m", "5m", (20, 1), "Raising app alone does: 490m, 390m more a pod to schedule."),
        ("33m", "10m", (3, 1), "Raising app alone does: 54m, 21m more a pod to schedule."),
    ],
)
def test_204_claims_no_ratio_that_whole_weights_do_not_reach(
    app: str, side: str, weights: tuple[int, int], remedy: str
) -> None:
    objects = cluster(node(), pod("p", container("app", app), container("side", side)))
    (finding,) = of_rule(audited(objects, V1, "v2"), "CGA204").values()
    assert finding.remedy == (
        f"No shift of the request between them restores the old ratio. {remedy} Not before the new runtime creates the "
        "containers on cgroup v2."
    )
    raised = int(remedy.split(": ")[1].split("m")[0])
    assert (linear(milli_to_shares(raised)), linear(milli_to_shares(int(side[:-1])))) == weights


def part(mine: int, theirs: int, formula: Formula) -> float:
    own, other_ = (weight_of(milli_to_shares(milli), formula) for milli in (mine, theirs))
    return own / (own + other_)


@pytest.mark.parametrize(
    ("mine", "theirs", "formula", "found"),
    [
        # Weighing the two against each other in turn, these went back and forth between no shift and one far too large.
        (50, 2000, "linear", (105, 1945)),
        (20, 2000, "linear", (54, 1966)),
        (1000, 100, "quadratic", (1050, 50)),
    ],
)
def test_204_finds_the_shift_that_comes_nearest(
    mine: int, theirs: int, formula: Formula, found: tuple[int, int]
) -> None:
    old: Formula = "quadratic" if formula == "linear" else "linear"
    wanted = part(mine, theirs, old)
    ratio = 1 / wanted - 1
    assert Balance(mine, (theirs,), (ratio,), formula, 0.05).shifted() == (found[0], [found[1]])
    whole = mine + theirs
    missed = [abs(part(each, whole - each, formula) / wanted - 1) for each in range(mine, whole)]
    assert abs(part(*found, formula) / wanted - 1) == pytest.approx(min(missed))


@pytest.mark.parametrize("seed", range(4))
def test_204_what_the_remedy_advises_gives_the_loser_its_part_back(seed: int) -> None:
    """Each remedy is applied, and audited again: the loser lacks less of its part of now than the threshold."""
    random = Random(seed)
    kept = 0
    for rules, to in ((V2_LINEAR, "runtime"), (V1, "v2"), (V1, "v2+runtime"), (V2_QUADRATIC, "runc=1.1.5")):
        for _ in range(30):
            requests = {
                f"c{n}": random.choice((10, 20, 50, 100, 200, 500, 1000, 2000)) for n in range(random.choice((2, 3)))
            }
            found = advised(requests, rules, to)
            if found is None:
                continue
            loser, now, ways = found
            for way in ways:
                again = audited(requesting(way), rules, to).workloads[0].pods[0]
                (after,) = [each.cases[0].after.in_pod for each in again.containers if each.name == loser]
                assert after is not None
                assert after / now - 1 > -0.05, (requests, way)
                kept += 1
    assert kept > 20


def requesting(requests: Mapping[str, int]) -> Cluster:
    return cluster(node(cpu="32"), pod("p", *(container(name, f"{milli}m") for name, milli in requests.items())))


def advised(requests: dict[str, int], rules: str, to: str) -> tuple[str, float, list[dict[str, int]]] | None:
    """The container that loses, its part of now, and the requests that the remedy advises; None where nothing is found."""
    audit = audited(requesting(requests), rules, to)
    finding = of_rule(audit, "CGA204").get("default/p")
    if finding is None:
        return None
    loser = re.findall(r": (c\d) has", finding.seen)[0]
    (now,) = [each.cases[0].before.in_pod for each in audit.workloads[0].pods[0].containers if each.name == loser]
    shift, _, _ = finding.remedy.partition("; weights ")
    moved = {name: int(milli) for name, milli in re.findall(r"(c\d) \d+m -> (\d+)m", shift)}
    raised = re.findall(rf"Raising {loser} alone \w+:? (\d+)m", finding.remedy)
    assert moved or raised, finding.remedy
    return loser, now or 0.0, [requests | each for each in (moved, *({loser: int(milli)} for milli in raised)) if each]


@pytest.mark.parametrize(
    ("placed", "said"),
    [
        (
            pod("p", container("app", "1", "1"), container("side", "100m")),
            "The limit of app (1000m) must go up with it.",
        ),
        (pod("p", container("app", "1", "4"), container("side", "100m")), ""),
        (
            pod(
                "p",
                container("app", "1"),
                container("side", "100m"),
                resources={"requests": {"cpu": "1100m"}, "limits": {"cpu": "1500m"}},
            ),
            "The limit of the pod (1500m) must go up with it.",
        ),
        (
            pod("p", container("app", "1", "1"), container("side", "100m", "100m"), qos="Guaranteed"),
            "Their limits go with them, as the pod is Guaranteed.",
        ),
    ],
)
def test_204_names_the_limits_that_a_request_would_exceed(placed: Any, said: str) -> None:
    found = of_rule(audited(cluster(node(cpu="8", kubelet="v1.34.1"), placed), V2_LINEAR, "runtime"), "CGA204")
    remedy = found["default/p"].remedy
    assert "Raising app alone takes 1883m" in remedy
    assert re.findall(r"The limit of .*? with it\.|Their limits .*?\.", remedy) == ([said] if said else [])


@pytest.mark.parametrize(
    ("rules", "target", "said"),
    [
        (V1, "- {cgroup: v1, system_slice: 4096}", "On n1 keep the ratio of now: give system.slice shares 1024 "),
        (
            V2_LINEAR,
            "- {cgroup: v1, system_slice: 65536}",
            "Once n1 is on cgroup v1, not before, keep the ratio of now: give system.slice shares 2617 ",
        ),
    ],
)
def test_201_on_v1_the_remedy_is_in_shares(rules: str, target: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "to.yaml").write_text(target)
    finding = of_rule(audited(cluster(node(cpu="8"), ONE), rules, str(tmp_path / "to.yaml")), "CGA201")["default/p"]
    shares = said.split()[-1]
    ratio = {"1024": "8", "2617": "3.13"}[shares]
    assert finding.remedy == (
        f"{said}(pods : system {ratio} : 1) with `systemctl set-property system.slice CPUShares={shares}`, which lasts and "
        "`systemctl revert system.slice` undoes."
    )


def test_302_a_container_that_had_no_quota_has_none_and_not_none_us() -> None:
    limits = {"requests": {"cpu": "100m"}, "limits": {"cpu": "205m"}}
    placed = pod("p", container("app", "77m"), container("b", "10m", "20m"), resources=limits)
    found = of_rule(
        audited(cluster(node(cpu="8", kubelet="v1.31.1"), placed), V2_QUADRATIC, "kubelet=1.33.8"), "CGA302"
    )
    assert found["default/p"].seen.endswith(
        "a limit of 205m acts as 210m after the move (no quota now, 21000 us after)."
    )


def with_init(migrate: str) -> Any:
    """As shop/payments: app=200m + metrics=20m, the sidecar vault=50m, then an init container."""
    vault = container("vault", "50m", restartPolicy="Always")
    inits = [vault, container("migrate", migrate)]
    return pod("p", container("app", "200m"), container("metrics", "20m"), initContainers=inits)


@pytest.mark.parametrize(
    ("migrate", "remedy"),
    [
        # The containers together decide: 270m.
        (
            "100m",
            "Shift the request inside the pod, which costs nothing to schedule and keeps the pod's weight: app 200m -> 227m, "
            "vault 50m -> 37m, metrics 20m -> 6m; weights app : vault : metrics = 32 : 8 : 3, as 204 : 51 : 20 now. "
            "Raising app alone takes 391m, 191m more a pod to schedule. "
            "Not before the new runtime creates the containers on cgroup v2.",
        ),
        # The init container decides, and lowering vault lowers what it needs with it.
        (
            "400m",
            "Shift the request inside the pod: app 200m -> 227m, vault 50m -> 37m, metrics 20m -> 6m; weights "
            "app : vault : metrics = 32 : 8 : 3, as 204 : 51 : 20 now. The pod's request, of which init containers are a "
            "part, goes from 450m to 437m, its weight from 18 to 17. Raising app alone takes 391m, 11m more a pod to "
            "schedule. Not before the new runtime creates the containers on cgroup v2.",
        ),
    ],
)
def test_204_says_what_a_shift_does_to_the_pods_own_request(migrate: str, remedy: str) -> None:
    (finding,) = of_rule(audited(cluster(node(), with_init(migrate)), V1, "v2+runtime"), "CGA204").values()
    assert finding.remedy == remedy


def test_204_a_request_of_the_pod_itself_pays_for_the_containers() -> None:
    raw = pod("p", container("app", "200m"), container("sidecar", "20m"), resources={"requests": {"cpu": "500m"}})
    (finding,) = of_rule(audited(cluster(node(kubelet="v1.34.2"), raw), V2_LINEAR, "runtime"), "CGA204").values()
    assert finding.remedy == (
        "Raise the request, which costs nothing to schedule and keeps the pod's weight, as the pod's request stays 500m: "
        "app 200m -> 380m; weights app : sidecar = 48 : 6, against 8 : 1 now. "
        "Not before the new runtime creates the containers."
    )
    small = pod("p", container("app", "200m"), container("sidecar", "20m"), resources={"requests": {"cpu": "300m"}})
    (finding,) = of_rule(audited(cluster(node(kubelet="v1.34.2"), small), V2_LINEAR, "runtime"), "CGA204").values()
    assert finding.remedy.endswith(
        "Raising app alone takes 380m, 100m more a pod to schedule. Not before the new runtime creates the containers."
    )


@pytest.mark.parametrize(("wanted", "weight"), [(1, 1), (10.26, 10), (35, 35), (99.6, 100), (10000, 10000)])
def test_the_least_request_nearest_to_a_weight(wanted: float, weight: int) -> None:
    milli = request_for(wanted, "quadratic")
    assert quadratic(milli_to_shares(milli)) == weight
    assert weight == 1 or quadratic(milli_to_shares(milli - 1)) == weight - 1


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
        "The linear formula turns every request of 1m to 28m into weight 1: against its siblings a request of 28m counts no "
        "more than one of 1m, or none."
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


def test_207_besteffort_gains_on_v2() -> None:
    (finding,) = of_rule(recorded_audit(), "CGA207").values()
    assert finding.subject.name == "worker-c"
    assert finding.seen == (
        "worker-c: its 2 BestEffort pods together can take 0.05% of the node's CPU now and 0.5% after, 9.74 times as much, "
        "when everything wants CPU: 2 of 3239 shares in kubepods now, 1 of 125 weight after."
    )
    assert finding.remedy == (
        "Give these pods a CPU request: a pod with one is Burstable, and counts by its request in that slice. Or keep "
        "BestEffort pods off nodes that run full."
    )


@pytest.mark.parametrize(("request_", "names"), [(None, []), ("1", ["n1"])])
def test_207_is_about_nodes_that_have_other_pods_too(request_: str | None, names: list[str]) -> None:
    """So small a node has less kubepods on v1 than the least weight on v2: all its pods gain, whatever their class."""
    objects = [node(cpu="1m"), pod("b", container("c"), qos="BestEffort")]
    objects += [pod("p", container("c", request_))] if request_ else []
    assert sorted(of_rule(audited(cluster(*objects), V1, "v2"), "CGA207")) == names


@pytest.mark.parametrize("order", [1, -1])
def test_of_equally_bad_cases_the_last_by_name_is_told(order: int) -> None:
    (comparison,) = compared(cluster(node(), ONE), "- {cgroup: v2}", "runtime")
    cases = sorted(comparison.pod(0), key=lambda each: each.case.when)
    assert [each.case.when for each in cases] == ["linear runtime", "quadratic runtime"]
    looks = [(each, (0.5 - 1e-12 * place, each.case.when, "")) for place, each in enumerate(cases)]
    (hit,) = pod_hits(comparison.placed[0][0], None, looks[::order])
    assert (hit.seen, hit.badness, hit.when) == ("quadratic runtime", 0.5, "")


def test_302_a_limit_of_the_pod_alone_acts_by_each_nodes_own_runtime() -> None:
    """Both hold the same numbers, but crun keeps the raw quota one cgroup below its scope."""
    placed = [
        pod(f"p-{on}", container("c"), resources={"requests": {"cpu": "50m"}, "limits": {"cpu": "77m"}}, on=on)
        for on in ("a", "b")
    ]
    rules = (
        "- {{match: {{name: a}}, cgroup: v2, kubelet: '1.35.2', runtimes: {{default: {}}}}}\n- {{match: {{name: b}}, "
    )
    rules += "cgroup: v2, kubelet: '1.35.2', runtimes: {{default: {}}}}}"
    for first, second in (("crun 1.25", "runc 1.3.6"), ("runc 1.3.6", "crun 1.25")):
        objects = cluster(node("a"), node("b"), *placed)
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
    assert finding.remedy.startswith("Set the limit to 620m, a multiple of 10m, before the runtime is upgraded")
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


def test_pods_outside_the_selection_have_no_findings() -> None:
    objects = cluster(node(), ONE)
    hidden = replace(objects, pods=tuple(other(each, selected=False) for each in objects.pods))
    assert {finding.subject.kind for finding in audited(hidden, V1, "v2").findings} == {"node"}


def test_204_a_debug_container_takes_nothing() -> None:
    raw = pod("p", container("app", "50m"), ephemeralContainers=[{"name": "debug"}])
    raw["status"]["ephemeralContainerStatuses"] = [{"name": "debug", "state": {"running": {}}}]
    audit = audited(cluster(node(cpu="8"), raw), V1, "v2")
    assert of_rule(audit, "CGA204") == {}
    assert "moves" not in audit.workloads[0].effects


def test_204_what_asks_for_nothing_gives_nothing_away() -> None:
    """v1 gives 20 : 2, v2 1 : 1; the sidecar has no request that could be shifted."""
    audit = audited(cluster(node(cpu="8"), pod("p", container("app", "20m"), container("side"))), V1, "v2")
    assert of_rule(audit, "CGA204")["default/p"].remedy == (
        "No shift of the request between them restores the old ratio. Raising app alone does: 233m, 213m more a pod to schedule. "
        "Not before the new runtime creates the containers on cgroup v2."
    )


def test_205_an_init_container_is_nobodys_sibling() -> None:
    found = []
    for state in ({"running": {}}, {"terminated": {"exitCode": 0}}):
        raw = pod("p", container("app", "10m"), initContainers=[container("init", "100m")])
        raw["status"]["initContainerStatuses"] = [{"name": "init", "state": state}]
        found.append(of_rule(audited(cluster(node(cpu="8"), raw), V2_LINEAR, "v2"), "CGA205"))
    assert found[0] == found[1] == {}


@pytest.mark.parametrize(("limit", "said"), [("20m", " Its limit of 20m must go up with it."), ("50m", ""), (None, "")])
def test_205_a_request_does_not_pass_its_limit(limit: str | None, said: str) -> None:
    placed = pod("p", container("app", "10m", limit), container("b", "2"))
    found = of_rule(audited(cluster(node(cpu="8"), placed), V2_LINEAR, "v2"), "CGA205")["default/p"]
    assert found.remedy.startswith(f"Raise the request to 29m, the least that gets weight 2, or more.{said} A runtime")


def test_203_numbers_that_differ_in_the_third_digit_are_not_said_to_be_one() -> None:
    placed = pod("p", container("app", "998m"), container("b", "1"))
    finding = of_rule(audited(cluster(node(cpu="8"), placed), V1), "CGA203")["default/p"]
    assert "cpu.shares 1021 now, cpu.weight 100 after: 0.9971 -> 1.0000 times the default" in finding.seen


@pytest.mark.parametrize(("system", "again"), [("200", True), ("1024", False)])
def test_202_on_v1_a_kubelet_that_enforces_a_reserve_writes_it_again(system: str, again: bool) -> None:
    rules = f"- {{cgroup: v1, system_slice: {system}, runtimes: {{default: runc 1.1.5}}}}"
    (finding,) = of_rule(audited(cluster(node(cpu="64"), ONE), rules, "runtime"), "CGA202").values()
    assert ("raise that reserve instead" in finding.remedy) is again
