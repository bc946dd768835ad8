"""Actions: what they say they clear, lower and cause is what a second audit with them applied finds."""

from typing import Any

import pytest

from kubectl_cgaudit.actions import nodes, requests
from kubectl_cgaudit.actions.change import Change
from kubectl_cgaudit.actions.whatif import apply, graded, outcomes
from kubectl_cgaudit.audit.model import ActionEffect, Audit, CpuOfNode
from kubectl_cgaudit.detect import target
from kubectl_cgaudit.report.actions import told
from tests.reference.clusters import KINDS
from tests.support import (
    STATES,
    V1,
    V2_LINEAR,
    audited_with_actions,
    cluster,
    container,
    node,
    pod,
    ran,
    random_objects,
    recorded,
    recorded_audit,
)

LOSSES = (
    "CGA201:data/StatefulSet/postgres",
    "CGA201:kube-system/DaemonSet/kube-proxy",
    "CGA201:platform/DaemonSet/node-exporter",
    "CGA201:shop/Deployment/checkout",
    "CGA201:shop/Deployment/payments",
)


def test_of_the_recorded_cluster() -> None:
    weight, request, limit = recorded_audit().actions
    assert (weight.id, weight.kind, weight.who) == ("system-weight:worker-c", "node", "node owners")
    assert weight.title == "Give system.slice weight 39 on worker-c"
    assert weight.change == {"systemSlice": 39, "cgroup": "v2"}
    assert weight.run == ("systemctl set-property system.slice CPUWeight=39",)
    assert weight.when == "once the node is on cgroup v2, not before"
    assert (weight.clears, weight.lowers, weight.causes) == (LOSSES, (), ())
    assert weight.effect == ActionEffect(
        5, 0, 0, (CpuOfNode("pods", "worker-c", 0.78719867, 0.591836735, 0.788043478),)
    )
    assert weight.detail["alternatives"][0] == {
        "kind": "reserve",
        "key": "system-reserved-compressible",
        "milli": 830,
        "left": (2870, 3170),
        "kubepods": (112, 124),
        "now": 3700,
        "asked": 3162,
        "weight": 33,
        "ratios": [112 / 33, 124 / 33],
    }
    assert (request.id, request.change) == ("request:shop/Deployment/payments", {"requests": {"payments": 349}})
    assert (request.clears, request.causes) == (("CGA204:shop/Deployment/payments",), ())
    # An init container decides what the pod asks for: 650m before and after.
    assert request.detail["cost"]["schedulableMilli"] == 0
    assert (limit.id, limit.change) == ("limit:edge/Deployment/legacy-gateway", {"limits": {"ext-authz": 80}})


def test_a_finding_names_its_actions() -> None:
    by_id = {each.id: each.actions for each in recorded_audit().findings}
    assert {by_id[each] for each in LOSSES} == {("system-weight:worker-c",)}
    assert by_id["CGA204:shop/Deployment/payments"] == ("request:shop/Deployment/payments",)
    assert by_id["CGA204:platform/DaemonSet/node-exporter"] == ()


def one(found: Audit, kind: str) -> Any:
    (action,) = [each for each in found.actions if each.id.startswith(f"{kind}:")]
    return action


def test_equal_actions_are_one() -> None:
    pods = [pod(f"p{on}", container("c", "1"), on=on) for on in ("n1", "n2", "n3")]
    found = audited_with_actions(cluster(node("n1"), node("n2"), node("n3", cpu="8"), *pods), V1, "v2")
    assert [(each.id, each.change["systemSlice"], each.target["nodes"]) for each in found.actions] == [
        ("system-weight:n1+2", 39, ["n1", "n2", "n3"]),
    ]


def test_a_pool_gives_its_name() -> None:
    labels = {"karpenter.sh/nodepool": "general"}
    objects = [node(name, labels=labels) for name in ("n1", "n2")]
    pods = [pod(f"p{on}", container("c", "1"), on=on) for on in ("n1", "n2")]
    assert one(audited_with_actions(cluster(*objects, *pods), V1, "v2"), "system-weight").id == "system-weight:general"


@pytest.mark.parametrize(
    ("fields", "ways", "command"),
    [
        ({"osImage": "Ubuntu 24.04"}, ["systemd"], "systemctl set-property system.slice CPUWeight=39"),
        (
            {"osImage": "Bottlerocket OS 1.40"},
            ["try"],
            "systemctl set-property --runtime system.slice CPUWeight=39",
        ),
        (
            {"osImage": "Red Hat Enterprise Linux CoreOS 418", "containerRuntimeVersion": "cri-o://1.31.4"},
            ["machineconfig", "try"],
            'echo \'{"apiVersion": "machineconfiguration.openshift.io/v1"',
        ),
    ],
    ids=["plain", "bottlerocket", "openshift"],
)
def test_the_lasting_way_of_the_platform_comes_first(fields: dict[str, str], ways: list[str], command: str) -> None:
    found = one(audited_with_actions(cluster(node(**fields), pod("p", container("c", "1"))), V1, "v2"), "system-weight")
    assert found.detail["ways"] == ways
    assert found.run[0].startswith(command)


def test_no_weight_is_set_under_a_kubelet_that_writes_its_own() -> None:
    rules = "- {cgroup: v1, system_slice: 512, set_by: kubelet, runtimes: {default: runc 1.1.5}}"
    found = audited_with_actions(cluster(node(), pod("p", container("c", "1"))), rules, "v2")
    assert all("CGA201" not in each for action in found.actions for each in action.clears)


def test_a_shift_inside_the_pod_costs_nothing_and_raising_alone_takes_its_limit_with_it() -> None:
    placed = pod("p", container("app", "200m", "250m"), container("side", "50m"), container("third", "20m"))
    action = one(audited_with_actions(cluster(node(cpu="8"), placed), V2_LINEAR, "runtime"), "request")
    assert action.title == "Shift CPU requests in default/p: app 200m -> 223m, side 50m -> 37m, third 20m -> 10m"
    assert action.change == {"requests": {"app": 223, "side": 37, "third": 10}}
    assert (action.cost, action.when) == (
        "no schedulable CPU",
        "once the new runtime creates the containers, not before",
    )
    assert [each["change"] for each in action.detail["others"]] == [
        {"requests": {"app": 349}, "limits": {"app": 350}},
        {"requests": {"app": 319}, "limits": {"app": 320}},
    ]


def test_a_guaranteed_pod_stays_guaranteed() -> None:
    parts = (("a", "200m"), ("y", "50m"), ("z", "20m"))
    placed = pod("p", *(container(name, milli, milli) for name, milli in parts), qos="Guaranteed")
    action = one(audited_with_actions(cluster(node(cpu="8"), placed), V2_LINEAR, "runtime"), "request")
    assert action.change["requests"] == action.change["limits"]


def test_an_inspection_that_decides_the_greatest_loss_is_first_and_others_wait() -> None:
    found = audited_with_actions(cluster(node(), pod("p", container("c", "1"))), "", "v2")
    assert [each.id for each in found.actions] == ["inspect:cgroup:n1", "system-weight:n1"]
    assert found.actions[0].run == ("stat -fc %T /sys/fs/cgroup",)
    assert found.actions[1].waits_for == ("inspect:cgroup:n1",)


def test_nodes_that_do_not_come_back_are_moved_together() -> None:
    objects = [node(name) for name in ("n1", "n2")]
    action = one(
        audited_with_actions(cluster(*objects, pod("p", container("c", "1"))), V1, "kubelet=1.35"), "cgroup-v2"
    )
    assert (action.id, action.target) == ("cgroup-v2:n1+1", {"nodes": ["n1", "n2"]})
    # On cgroup v2 they come back, and what runs there loses as on every such move.
    assert action.lowers == ("CGA101:n1", "CGA101:n2")
    assert action.causes == ("CGA201:default/Pod/p", "CGA203:default/Pod/p")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seeds", [range(25), range(25, 50)], ids=["0-24", "25-49"])
def test_what_an_action_says_is_what_a_second_audit_finds(kind: str, seeds: range) -> None:
    tried = 0
    for seed in seeds:
        objects, rules, to = random_objects(kind, seed)
        run = ran(objects, rules, to)
        before = {each.id: graded(each) for each in run.audit.findings}
        every = (*nodes.candidates(run, objects), *requests.candidates(run))
        changes = [each.change for each in every if each.change != Change()][:12]
        for change, found in zip(changes, outcomes(run, changes), strict=True):
            again = apply(run, objects, target.parse(to), change)
            after = {each.id: graded(each) for each in again.audit.findings}
            assert set(found.cleared) == before.keys() - after.keys(), (seed, change)
            assert set(found.caused) >= after.keys() - before.keys(), (seed, change)
            worse = {each for each in before.keys() & after.keys() if after[each] > before[each]}
            better = {each for each in before.keys() & after.keys() if after[each] < before[each]}
            assert (set(found.caused) - (after.keys() - before.keys()), set(found.lowered)) == (worse, better), (
                seed,
                change,
            )
            tried += 1
    assert tried > 0


def test_the_recorded_cluster_with_its_weight_has_no_loss() -> None:
    """5 high before; log-shipper and cart get 0.3% of the full node in place of 0.2%."""
    objects = recorded()
    run = ran(objects, STATES.read_text())
    (candidate,) = nodes.candidates(run, objects)
    again = apply(run, objects, target.parse("v2+runtime"), candidate.change).audit
    assert again.verdict.findings == {"critical": 0, "high": 0, "medium": 2, "low": 15}


@pytest.mark.parametrize(("cpu", "lacking"), [("312m", []), ("311m", []), ("310m", ["n1"])])
def test_a_request_that_does_not_fit_says_where(cpu: str, lacking: list[str]) -> None:
    """The pods ask for 306m, and 5m more are to be scheduled."""
    objects = cluster(
        node(cpu=cpu), pod("p", container("a", "300m"), container("b", "5m")), pod("q", container("z", "1m"))
    )
    (raised,) = [
        each.action
        for each in requests.candidates(ran(objects, V2_LINEAR, "runtime"))
        if each.action.detail["kind"] == "raise"
    ]
    assert raised.detail["cost"] == {"schedulableMilli": 5, "podRequestMilli": 305, "pods": 1, "lacking": lacking}
    short = "; node n1 has too little CPU left to schedule that" if lacking else ""
    assert told(raised).cost == f"5m more for each pod to schedule{short}"
