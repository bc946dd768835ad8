"""What is said of workloads: effects, and that an open question is never a pass."""

from pathlib import Path
from typing import Any

import pytest

from kubectl_cgaudit.judge.audit import Audit
from kubectl_cgaudit.judge.rounding import as_said
from kubectl_cgaudit.judge.shifts import Shifts
from kubectl_cgaudit.judge.source import Pods, Source
from kubectl_cgaudit.judge.tally import Tally
from tests.support import V1, V2_LINEAR, V2_QUADRATIC, audited, cluster, container, node, of_rule, pod, recorded_audit

TWO = pod("p", container("app", "200m"), container("sidecar", "20m"))
ONE = pod("p", container("app", "200m"))


def effects(result: Audit) -> tuple[str, ...]:
    (workload,) = result.workloads
    return workload.effects


@pytest.mark.parametrize(
    ("pod_", "rules", "to", "expected"),
    [
        (ONE, V1, "v2", ("loses", "nominal")),
        (ONE, V1, "runtime", ()),
        (ONE, V2_LINEAR, "runtime", ("nominal",)),
        (TWO, V2_LINEAR, "runtime", ("moves", "nominal")),
        (TWO, V2_QUADRATIC, "v2+runtime", ()),
        (TWO, V2_LINEAR, "runc=1.2.9", ()),
        (TWO, V1, "v2+runtime", ("loses", "moves", "nominal")),
        (pod("p", container("a"), qos="BestEffort"), V1, "v2", ("loses", "nominal")),
    ],
)
def test_each_migration_does_what_it_does(
    pod_: dict[str, object], rules: str, to: str, expected: tuple[str, ...]
) -> None:
    assert effects(audited(cluster(node(), pod_), rules, to)) == expected


@pytest.mark.parametrize(
    ("pod_", "rules", "to", "expected"),
    [
        (ONE, "", "v2", ("unknown", "nominal")),
        (TWO, "- {cgroup: v2}", "runtime", ("unknown", "nominal")),
        # A lone container has no siblings: whatever the formula, no CPU moves.
        (ONE, "- {cgroup: v2}", "runtime", ("nominal",)),
        (ONE, "- {cgroup: v2}", "v2", ()),
    ],
)
def test_an_open_question_is_unknown_unless_it_cannot_matter(
    pod_: dict[str, object], rules: str, to: str, expected: tuple[str, ...]
) -> None:
    assert effects(audited(cluster(node(), pod_), rules, to)) == expected


@pytest.mark.parametrize(("slice_", "threshold", "found"), [(90, "10%", True), (91, "10%", False), (80, "20%", True)])
def test_a_change_that_reads_as_the_threshold_reaches_it(
    tmp_path: Path, slice_: int, threshold: str, found: bool
) -> None:
    target = tmp_path / "to.yaml"
    target.write_text("- {system_slice: 100}\n")
    rules = f"- {{cgroup: v2, system_slice: {slice_}, runtimes: {{default: runc 1.3.6}}}}"
    objects = cluster(node(cpu="4600m"), pod("p", container("c", "1")))
    result = audited(objects, rules, str(target), f"system-loss={threshold}")
    (workload,) = result.workloads
    assert workload.against_system is not None
    assert workload.against_system.change == round(slice_ / 100 - 1, 9)
    assert ("loses" in workload.effects, "CGA201" in {each.rule for each in result.findings}) == (found, found)


def test_pods_on_nodes_that_were_not_read_are_unknown_and_a_gap() -> None:
    result = audited(cluster(node(), pod("p", container("c", "1"), on="gone")), V2_LINEAR)
    (workload,) = result.workloads
    assert (workload.effects, workload.pod_count, workload.unpredicted_pods) == (("unknown",), 0, 1)
    (gap,) = result.coverage.gaps
    assert (gap.what, gap.why) == ("node gone", "1 pod runs there, but the Node is not among what was read")
    assert not result.coverage.complete
    assert result.verdict.sentence == (
        "For 1 workload it cannot be said what it gains or loses, because its nodes were not read. "
        "The audit is incomplete: what could not be read is listed under coverage."
    )


@pytest.mark.parametrize(
    ("label", "value"), [("type", "virtual-kubelet"), ("eks.amazonaws.com/compute-type", "fargate")]
)
def test_windows_virtual_and_homeless_are_set_apart_counted_and_named(label: str, value: str) -> None:
    windows = node("win", labels={"kubernetes.io/os": "windows"})
    virtual = node("aci", labels={label: value})
    result = audited(
        cluster(
            node(),
            windows,
            virtual,
            pod("w", container("c", "1"), on="win"),
            pod("v", container("c", "1"), on="aci"),
            pod("v2", container("c", "1"), on="aci"),
            pod("h", container("c", "1"), on=None, phase="Pending"),
            pod("done", container("c", "1"), phase="Succeeded"),
            ONE,
        ),
        V2_QUADRATIC,
    )
    coverage = result.coverage
    assert (coverage.windows_nodes, coverage.virtual_nodes, coverage.pods_without_node) == (
        ("win",),
        ("aci",),
        ("default/h",),
    )
    assert (coverage.pods_on_windows_nodes, coverage.pods_on_virtual_nodes, coverage.pods_finished) == (1, 2, 1)
    assert (coverage.nodes_read, coverage.nodes_audited, coverage.pods_audited) == (3, 1, 1)
    assert [workload.name for workload in result.workloads] == ["p"]
    assert coverage.complete


def test_the_recorded_clusters_workloads() -> None:
    result = recorded_audit()
    assert {workload.title: workload.effects for workload in result.workloads} == {
        "shop/checkout": ("loses", "moves", "nominal"),
        "data/postgres": ("loses", "nominal"),
        "shop/payments": ("loses", "moves", "nominal"),
        "kube-system/kube-proxy": ("loses", "nominal"),
        "platform/node-exporter": ("loses", "moves", "nominal"),
        "edge/canary-gateway": ("moves", "nominal"),
        "edge/legacy-gateway": ("moves", "nominal"),
        "platform/log-shipper": ("gains", "nominal"),
        "shop/cart": ("gains", "nominal"),
        "data/redis": ("nominal",),
        "batch/index-rebuild": ("nominal",),
        "shop/frontend": ("nominal",),
        "edge/gateway": (),
        "platform/build-farm": (),
        "platform/debug-shell": (),
    }
    checkout = result.workloads[0]
    assert checkout.against_system is not None
    assert (checkout.against_system.node, round(checkout.against_system.change, 3)) == ("worker-c", -0.617)
    (on_c,) = [each for each in checkout.pods if each.node == "worker-c"]
    case = on_c.containers[0].cases[0]
    assert (case.before.value, case.before.nominal_ratio, case.after.value, case.after.nominal_ratio) == (
        1024,
        1.0,
        100,
        1.0,
    )


def test_equal_pods_differ_in_nominal_weight_but_not_as_pods() -> None:
    """facts section 2: a runtime's formula changes container weights only."""
    workloads = {workload.title: workload for workload in recorded_audit().workloads}
    gateway, legacy = workloads["edge/gateway"].pods[0], workloads["edge/legacy-gateway"].pods[0]
    assert [c.cases[0].before.value for c in gateway.containers] == [40, 11]
    assert [c.cases[0].before.value for c in legacy.containers] == [12, 2]
    assert gateway.cases[0].before == legacy.cases[0].before
    assert legacy.cases[0].before == legacy.cases[0].after


def test_the_recorded_nodes_pods_against_system_processes() -> None:
    numbers = {
        each.name: [
            (moment.kubepods, moment.system_slice, round(moment.pods_per_system, 2), round(moment.pods_share, 3))
            for moment in (each.cases[0].before, each.cases[0].after)
        ]
        for each in recorded_audit().nodes
    }
    assert numbers == {
        "worker-a": [(145, 100, 1.45, 0.592), (145, 100, 1.45, 0.592)],
        "worker-b": [(133, 20, 6.65, 0.869), (133, 20, 6.65, 0.869)],
        "worker-c": [(3788, 1024, 3.7, 0.787), (145, 100, 1.45, 0.592)],
    }


def test_a_mild_loss_that_is_sure_hides_no_grave_one_that_may_come(tmp_path: Path) -> None:
    """Of one workload: --fail-on high must not pass because another pod of it loses a little for sure."""
    (tmp_path / "to.yaml").write_text("- cgroup: v2\n- {match: {name: n1}, system_slice: 118}")
    pods = [
        pod(f"web-{n}", container("c", "1"), on=on, owner=("StatefulSet", "web")) for n, on in enumerate(("n1", "n2"))
    ]
    rules = "- {match: {name: n1}, cgroup: v2, runtimes: {default: runc 1.3.6}}\n"
    rules += "- {match: {name: n2}, runtimes: {default: runc 1.3.6}}"

    def loss(*objects: dict[str, Any]) -> tuple[str, str, bool]:
        (found,) = of_rule(audited(cluster(*objects), rules, str(tmp_path / "to.yaml")), "CGA201").values()
        return found.severity, found.when, "1 more of this workload is found by this rule" in found.seen

    assert loss(node("n1"), pods[0]) == ("low", "", False)
    assert loss(node("n2"), pods[1]) == ("high", "if cgroup v1", False)
    assert loss(node("n1"), node("n2"), *pods) == ("high", "if cgroup v1", True)


def test_findings_of_one_rule_that_say_the_same_stand_together() -> None:
    raws = [node(f"n{n}") for n in range(3)]
    for raw in raws:
        raw["status"]["runtimeHandlers"] = [{"name": "", "features": {"userNamespaces": False}}]
    pods = [pod(f"p{n}", container("c", "1"), on=f"n{n}") for n in range(3)]
    found = audited(cluster(*raws, *pods), "- {runtimes: {default: runc 1.3.6}}", "v2")
    titles = [each.title for each in found.findings if each.rule == "CGA102"]
    assert titles == ["evidence contradicts itself"] * 3 + ["node state not known"] * 3


@pytest.mark.parametrize("order", [1, -1])
def test_of_equal_losses_the_one_that_is_most_of_a_node_is_told_then_the_first_in_whatever_order_pods_come(
    order: int,
) -> None:
    tally = Tally(Pods(Source.__new__(Source)))
    places = [("p", "n2", -0.5, 0.4), ("q", "n1", -0.5, 0.4), ("r", "n1", -0.501, 0.7), ("s", "n3", -0.2, 0.1)]
    for pod_, on, change, after in places[::order]:
        worst = change, "", 4.0, 2.0
        rank = as_said(change), after - 0.8
        shifts = Shifts((), (), (), (), worst, rank, None, None, (change, 4.0, 2.0, 0.8, after), 1)
        tally.add(pod_, on, ("loses",), (), "certain", shifts)
    assert tally.sure_loss == (-0.5, "n1", 4.0, 2.0, 0.8, 0.4)
    assert tally.worst == ((-0.5, "", 4.0, 2.0), "p", "n2")


def test_what_workloads_are_called_by() -> None:
    bare = audited(cluster(node(), pod("p", container("c", "1"))), V2_LINEAR).coverage
    assert bare.workload_names == {
        "Deployment": "derived from the pod-template-hash",
        "CronJob": "derived from the Jobs' names",
    }
    tables = [{"kind": kind, "metadata": {"name": "x", "namespace": "default"}} for kind in ("ReplicaSet", "Job")]
    read = audited(cluster(node(), *tables), V2_LINEAR).coverage
    assert set(read.workload_names.values()) == {"read: top owners"}


def test_static_pods_of_a_node_are_each_a_workload() -> None:
    """The node that owns them is none: etcd and the scheduler of a control plane were one."""
    names = ("etcd-n1", "kube-scheduler-n1")
    static = [pod(name, container("c", "100m"), owner=("Node", "n1"), namespace="kube-system") for name in names]
    found = audited(cluster(node(), *static), V1)
    assert sorted((each.kind, each.name, each.pod_count) for each in found.workloads) == [
        ("Pod", name, 1) for name in names
    ]


def test_a_change_that_is_a_threshold_reaches_it() -> None:
    """10 of 19 and 1 of 2 are exactly 5% apart, and not in nine digits."""
    pods = pod("p", container("a", "10m"), container("b", "9m"))
    found = audited(cluster(node(), pods), V1, "v2")
    assert found.workloads[0].effects == ("loses", "moves", "nominal")
    assert [each.severity for each in of_rule(found, "CGA204").values()] == ["low"]
