"""CGA204: what its remedy says, word by word."""

from pathlib import Path
from typing import Any

import pytest

from kubectl_cgaudit.cgroups.weights import linear, milli_to_shares, quadratic
from kubectl_cgaudit.text import percent
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
    recorded_audit,
    requesting,
    the_finding,
)


def test_204_raising_is_free_where_an_init_container_decides_the_pods_request() -> None:
    """shop/payments asks for 650m: its init container's 600m and the 50m of the sidecar before it, not 270m.

    Both gainers count: beside 11 + 6 it takes weight 49 to have 204 / 275 = 74% of the pod again.
    """
    finding = of_rule(recorded_audit(), "CGA204")["shop/payments"]
    assert finding.severity == "medium"
    assert finding.remedy == (
        "Raise the request, which costs nothing to schedule and keeps the pod's weight, as the pod's request stays 650m: "
        "payments 200m -> 391m; weights payments : vault-agent : metrics = 49 : 11 : 6, against 204 : 51 : 20 now. "
        "But then vault-agent lacks 10% of its part of now. "
        "Not before the node is on cgroup v2, with the runtime it has then. "
        "This is for worker-c. On worker-b another formula splits the pod, or may, before or after the move: there, new requests "
        "may take CPU from a container."
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
        f"No shift of the request between them restores the old ratio. {remedy} "
        "Not before the node is on cgroup v2, with the runtime it has then."
    )
    raised = int(remedy.split(": ")[1].split("m")[0])
    assert (linear(milli_to_shares(raised)), linear(milli_to_shares(int(side[:-1])))) == weights


OF_A = "- {match: {name: a}, cgroup: v1, runtimes: {default: runc 1.1.5}}\n"
OF_OTHERS = "- {{match: {{name: {}}}, cgroup: {}, runtimes: {{default: {}}}}}\n"


@pytest.mark.parametrize(
    ("others", "to", "named"),
    [
        # b has the formula already: there the sidecar has 10 : 104 of its pod with the shift, and 17 : 100 without.
        ({"b": ("v2", "runc 1.3.6"), "c": ("v1", "runc 1.1.5")}, "v2+runtime", "b"),
        # d goes to it from the linear one.
        ({"d": ("v2", "runc 1.1.15"), "b": ("v2", "runc 1.3.6")}, "v2+runtime", "b, d"),
        ({"b": ("v1", "runc 1.1.5")}, "v2+runtime", None),
        # What a runtime is called does not matter, nor what splits no pod.
        ({"b": ("v1", "runc 1.3.6"), "c": ("v1", "crun 1.28")}, "v2+runtime", None),
        ({"b": ("v1", "kata")}, "v2+runtime", None),
        # Nothing is known of b.
        ({"b": None}, "v2+runtime", "b"),
        ({f"b{n}": ("v2", "runc 1.3.6") for n in range(7)}, "v2+runtime", "b0, b1, b2, b3, b4 and 2 more"),
    ],
)
def test_204_says_on_which_nodes_another_formula_splits_the_pod(
    others: dict[str, tuple[str, str] | None], to: str, named: str | None
) -> None:
    """All pods of a workload have the requests that are worked out for the worst."""
    rules = OF_A + "".join(OF_OTHERS.format(name, *what) for name, what in others.items() if what)
    pods = [
        pod(f"w-{on}", container("app", "1"), container("side", "100m"), on=on, owner=("StatefulSet", "w"))
        for on in ("a", *others)
    ]
    finding = the_finding("CGA204", rules, to, *map(node, ("a", *others)), *pods)
    assert finding.seen.startswith("Pod default/w-a on a: ")
    words = (
        f" This is for a. On {named} another formula splits the pod, or may, before or after the move: there, new requests may "
        "take CPU from a container."
    )
    assert finding.remedy.partition(" This is for ")[1:] == (
        words.partition(" This is for ")[1:] if named else ("", "")
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
            "Raising app alone takes 391m, 191m more a pod to schedule. But then vault lacks 10% of its part of now. "
            "Not before the node is on cgroup v2, with the runtime it has then.",
        ),
        # The init container decides, and lowering vault lowers what it needs with it.
        (
            "400m",
            "Shift the request inside the pod: app 200m -> 227m, vault 50m -> 37m, metrics 20m -> 6m; weights "
            "app : vault : metrics = 32 : 8 : 3, as 204 : 51 : 20 now. The pod's request, of which init containers are a "
            "part, goes from 450m to 437m, its weight from 18 to 17. Raising app alone takes 391m, 11m more a pod to "
            "schedule. But then vault lacks 10% of its part of now. "
            "Not before the node is on cgroup v2, with the runtime it has then.",
        ),
    ],
)
def test_204_says_what_a_shift_does_to_the_pods_own_request(migrate: str, remedy: str) -> None:
    (finding,) = of_rule(audited(cluster(node(), with_init(migrate)), V1, "v2+runtime"), "CGA204").values()
    assert finding.remedy == remedy


def test_204_what_asks_for_nothing_gives_nothing_away() -> None:
    """v1 gives 20 : 2, v2 1 : 1; the sidecar has no request that could be shifted."""
    audit = audited(cluster(node(cpu="8"), pod("p", container("app", "20m"), container("side"))), V1, "v2")
    assert of_rule(audit, "CGA204")["default/p"].remedy == (
        "No shift of the request between them restores the old ratio. Raising app alone does: 233m, 213m more a pod to schedule. "
        "Not before the node is on cgroup v2, with the runtime it has then."
    )


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
    assert said in the_finding("CGA204", V2_LINEAR, "runtime", node(), pod("p", *containers)).remedy


def test_204_what_neither_gains_nor_is_the_loser_counts_in_the_remedy() -> None:
    """1 : 59 : 1 before, 1 : 138 : 4 after; 2 : 138 : 2 gives the first only 1.41% of its 1.64%, and 3 : 138 : 2 the last."""
    pods = pod("p", container("c0"), container("c1", "1500m"), container("c2", "10m"))
    finding = the_finding("CGA204", V2_LINEAR, "runtime", node(), pods)
    assert finding.remedy.startswith(
        "No shift of the request between them restores the old ratio. Raising c0 alone does: 6m, "
    )
    assert (quadratic(6), quadratic(4), quadratic(milli_to_shares(1500))) == (3, 2, 138)


def test_204_no_shift_takes_from_a_container_that_it_does_not_name() -> None:
    """256 : 78 : 10 before, 10 : 3 : 1 after; 4 for app are 10 of 15 for main, which had 74% of the pod and now 67%."""
    pods = pod("p", container("main", "250m"), container("app", "77m"), container("istio-proxy", "10m"))
    finding = the_finding("CGA204", V1, "v2", node(), pods)
    assert "app has 23% of its pod's CPU now and 21% after (-5.5%)" in finding.seen
    assert finding.remedy == (
        "No shift of the request between them restores the old ratio. Raising app alone does: 80m, 3m more a pod to schedule. "
        "But then main lacks 10% of its part of now. Not before the node is on cgroup v2, with the runtime it has then."
    )
    assert percent(1 - 10 / 15 / (256 / (256 + 78 + 10))) == "10%"


def test_204_of_two_that_lose_the_other_is_told_by_what_it_lacks_then() -> None:
    """8 : 8 : 2 before, 29 : 29 : 11 after: beside 32 and 11 the 29 are 40% in place of 44%, beside 30 and 9 more than that."""
    pods = pod("p", container("api", "200m"), container("worker", "200m"), container("istio-proxy", "50m"))
    finding = the_finding("CGA204", V2_LINEAR, "runtime", node(), pods)
    assert finding.remedy == (
        "Shift the request inside the pod, which costs nothing to schedule and keeps the pod's weight: worker 200m -> 211m, "
        "istio-proxy 50m -> 39m; weights worker : istio-proxy = 30 : 9, as 8 : 2 now. Raising worker alone takes 222m, 22m "
        "more a pod to schedule. But then api lacks 9.4% of its part of now. Not before the new runtime creates the containers."
    )
    assert [percent(1 - 29 / (29 + own + side) * 18 / 8) for own, side in ((32, 11), (30, 9))] == ["9.4%", "4.0%"]


@pytest.mark.parametrize(
    ("requests", "shift", "weights"),
    [
        # 208m beside 2m is nearer for c0, and takes a third of its part from c1.
        ({"c0": 200, "c1": 10}, "c0 200m -> 207m, c1 10m -> 3m", (30, 2)),
        ({"c0": 1500, "c1": 250, "c2": 15}, "c0 1500m -> 1612m, c1 250m -> 150m, c2 15m -> 3m", (146, 24, 2)),
    ],
)
def test_204_no_shift_takes_from_another_what_it_gives(
    requests: dict[str, int], shift: str, weights: tuple[int, ...]
) -> None:
    (finding,) = of_rule(audited(requesting(requests), V1), "CGA204").values()
    assert (
        f"the pod's weight: {shift}; weights {' : '.join(requests)} = {' : '.join(map(str, weights))}, as "
        in finding.remedy
    )


def test_204_a_container_without_a_request_does_not_stand_in_the_way_of_a_shift() -> None:
    pods = pod("p", container("app", "1"), container("proxy", "100m"), container("helper"))
    (finding,) = of_rule(audited(cluster(node(), pods), V1), "CGA204").values()
    assert (
        "app 1000m -> 1057m, proxy 100m -> 43m; weights app : proxy : helper = 105 : 10 : 1, as 1024 : 102 : 2"
        in finding.remedy
    )


def test_204_says_what_raising_takes_from_another() -> None:
    """500 : 15 : 3 was 96.5 : 2.9 : 0.6; of 56 : 1 : 1 the second has 1.7%."""
    (finding,) = of_rule(audited(requesting({"c0": 500, "c1": 15, "c2": 3}), V1, "v2"), "CGA204").values()
    assert finding.remedy == (
        "No shift of the request between them restores the old ratio. Raising c0 alone does: 1437m, 937m more a pod to "
        "schedule. But then c1 lacks 40% of its part of now. "
        "Not before the node is on cgroup v2, with the runtime it has then."
    )


def test_204_on_the_way_to_cgroup_v1_shares_are_reckoned_with(tmp_path: Path) -> None:
    target = tmp_path / "back.yaml"
    target.write_text("- {cgroup: v1}\n")
    objects = requesting({"c0": 1000, "c1": 100})
    (finding,) = of_rule(audited(objects, V2_QUADRATIC, str(target)), "CGA204").values()
    assert finding.remedy == (
        "Shift the request inside the pod, which costs nothing to schedule and keeps the pod's weight: c1 100m -> 160m, "
        "c0 1000m -> 940m; shares c1 : c0 = 163 : 962, as 17 : 100 now. Raising c1 alone takes 170m, 70m more a pod to "
        "schedule. Not before the node is on cgroup v1, with the runtime it has then."
    )


@pytest.mark.parametrize("name", ["a", "z"])
def test_204_of_equal_parts_the_one_that_loses_most_is_told_whatever_its_name(name: str) -> None:
    pods = pod("p", container("big", "2"), container(name, "4m"), container("b", "1m"))
    (finding,) = of_rule(audited(cluster(node(), pods), V2_LINEAR, "runc=1.3.6"), "CGA204").values()
    assert finding.severity == "high"
    assert " b has 1.2% of its pod's CPU now and 0.6% after (-54%)" in finding.seen


@pytest.mark.parametrize(
    ("asked", "rules", "to", "threshold", "remedy"),
    [
        # 35 : 59 : 17 before, 10 : 20 : 4 after: no whole weights give all three their part.
        (
            ("250m", "500m", "100m"),
            V2_QUADRATIC,
            "runc=1.1.5",
            "5%",
            "Shift the request inside the pod, which costs nothing to schedule and keeps the pod's weight: a 250m -> 261m, "
            "b 500m -> 489m; weights a : b = 11 : 19, as 35 : 59 now. Then c still lacks 23% of its part of now. Raising a alone "
            "takes 259m, 9m more a pod to schedule. But then c lacks 25% of its part of now. "
            "Not before the new runtime creates the containers.",
        ),
        # a has the least there is, and has it without a request as well.
        (
            (None, "15m", "77m"),
            V1,
            "v2+runtime",
            "5%",
            "No shift of the request between them restores the old ratio. Raising c alone does: 176m, 99m more a pod to "
            "schedule. Not before the node is on cgroup v2, with the runtime it has then.",
        ),
        # The greatest weight is 10000.
        (("256", None), V1, "v2", "0.005%", "No shift of the request between them restores the old ratio."),
    ],
)
def test_204_says_what_no_request_restores(
    asked: tuple[str | None, ...], rules: str, to: str, threshold: str, remedy: str
) -> None:
    containers = (container(name, milli) for name, milli in zip("abc", asked, strict=False))
    thresholds = (f"pod-move={threshold}",)
    found = the_finding("CGA204", rules, to, node(cpu="512"), pod("p", *containers), thresholds=thresholds)
    assert found.remedy == remedy
