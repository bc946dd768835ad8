"""The verdict: at most 80 words that say what changes, for whom, where, how bad, what prevents it, and how sure."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.audit.condition import condition
from kubectl_cgaudit.collect.model import Gap
from tests.reference.clusters import KINDS
from tests.support import (
    V1,
    V2_LINEAR,
    V2_QUADRATIC,
    audited_with_actions,
    cluster,
    container,
    node,
    pod,
    random_audit,
    recorded,
    recorded_audit,
)

A, B = (pod(name, container("c", "1")) for name in ("a", "b"))
LOSES_61 = (
    "1 of 1 workload loses CPU to system services (system.slice), on n1. When n1 is full, its pods get less of its CPU: "
    "80% -> 61%; default/a falls from 80% to 61%. On a node with CPU to spare, no workload loses. Give system.slice weight 39 on "
    "n1: prevents the loss."
)
CALM = "No workload loses 10% of its CPU to system services, and no container 5.0% of its pod's CPU ({} audited)."
ONE = CALM.format("1 workload")


def verdict(rules: str, to: str, *objects: dict[str, Any], thresholds: tuple[str, ...] = ()) -> str:
    return audited_with_actions(cluster(*objects), rules, to, *thresholds).verdict.sentence


def test_of_the_recorded_cluster() -> None:
    assert recorded_audit().verdict.sentence == (
        "5 of 15 workloads lose CPU to system services (system.slice), all on worker-c, the only node that moves to cgroup v2. "
        "When worker-c is full, its pods get less of its CPU: 79% -> 59%; data/postgres falls from 30% to 22%. On a node with "
        "CPU to spare, no workload loses. In 5 workloads the new runtime also shifts CPU between containers of a pod. Give "
        "system.slice weight 39 on worker-c: prevents all 5 losses."
    )


def test_of_the_recorded_cluster_of_which_only_nodes_and_pods_are_known() -> None:
    """It begins with what is probable, names what was assumed, and ends with the command that settles it."""
    assert audited_with_actions(recorded()).verdict.sentence == (
        "Probably the new runtime shifts CPU between containers of a pod in 4 workloads. For 4 workloads the outcome depends on "
        "what their nodes run, which is unknown. Assumed, not checked: worker-b, worker-c on their platform's default. If cgroup "
        "v1 after all, 9 workloads lose CPU on a full node. Check first: `stat -fc %T /sys/fs/cgroup` on worker-b and worker-c."
    )


@pytest.mark.parametrize(
    ("rules", "to", "objects", "expected"),
    [
        (V2_LINEAR, "v2", [], "No pod was audited."),
        (V2_LINEAR, "v2", [A], ONE),
        (V2_QUADRATIC, "v2+runtime", [A], ONE),
        (V2_LINEAR, "runtime", [A], f"{ONE} In 1 only the number in cpu.weight changes."),
        (V1, "v2", [A], LOSES_61),
        (
            "",
            "v2",
            [A],
            "For 1 workload the outcome depends on what its nodes run, which is unknown; at worst default/a gets 61% less "
            "against system services. Check first: `stat -fc %T /sys/fs/cgroup` on n1.",
        ),
        (
            V2_LINEAR,
            "runtime",
            [pod("p", container("c", "1", image="openjdk:11.0.16"))],
            f"{ONE} In 1 only the number in cpu.weight changes. Programs of 1 workload may misread cpu.weight (CGA401). "
            "Update Java in default/p (c) to 11.0.17, 17.0.5, 18.0.2 or 19: clears 1 finding.",
        ),
        (
            "- {cgroup: v2, driver: systemd, runtimes: {default: linear}}",
            "crun=1.23",
            [pod("p", container("c", "1"), container("d", "50m"))],
            "For 1 workload the outcome depends on what its nodes run, which is unknown.",
        ),
    ],
    ids=["no pods", "nothing", "all is there", "number", "loses", "blind", "misread", "unnamed runtime"],
)
def test_of_one_node(rules: str, to: str, objects: list[dict[str, Any]], expected: str) -> None:
    assert verdict(rules, to, node(), *objects) == expected


def test_gains_are_counted(tmp_path: Any) -> None:
    (tmp_path / "to.yaml").write_text("- {cgroup: v2, system_slice: 20}")
    assert verdict(V2_LINEAR, str(tmp_path / "to.yaml"), node(), A, B) == f"{CALM.format('2 workloads')} 2 get more."


def test_a_threshold_of_ones_own_is_named() -> None:
    assert verdict(V1, "v2", node(), A, thresholds=("system-loss=90%", "pod-move=7.5%")).startswith(
        "No workload loses 90% of its CPU to system services, and no container 7.5% of its pod's CPU (1 workload audited)."
    )


def test_evidence_that_contradicts_itself_is_named() -> None:
    raw = node()
    raw["status"]["runtimeHandlers"] = [{"name": "", "features": {"userNamespaces": False}}]
    assert verdict(V2_QUADRATIC, "v2", raw, A) == f"{ONE} The evidence contradicts itself on n1 (CGA102)."


STARTS = pod("p", container("c", "50m", "77m"))


@pytest.mark.parametrize(
    ("kubelet", "rules", "to", "effect", "first"),
    [
        ("v1.32.9", V1, "runtime", "may-stop", "1 workload has a container that may not start (default/p)."),
        (
            "v1.33.13",
            V1,
            "kubelet=1.35",
            "stops",
            "1 node (n1) does not come back: the new kubelet refuses cgroup v1. 1 workload has pods there.",
        ),
        ("v1.32.9", "", "runtime", "may-stop", "1 workload has a container that may not start (default/p)."),
        (
            "v1.33.13",
            "",
            "kubelet=1.35",
            "unknown",
            "1 node (n1) may not come back from the kubelet upgrade, if cgroup v1. For 1 workload the outcome depends on ",
        ),
        ("v1.36.2", V1, "kubelet=1.36.3", "none", ONE),
    ],
)
def test_what_stops_is_said_first(kubelet: str, rules: str, to: str, effect: str, first: str) -> None:
    found = audited_with_actions(cluster(node(kubelet=kubelet), STARTS), rules, to)
    assert found.workloads[0].effect == effect
    assert found.verdict.sentence.startswith(first)


def test_nodes_that_do_not_come_back_are_named() -> None:
    pods = [pod(f"p{n}", container("c", "1"), on=f"n{n}") for n in range(5)]
    old = "".join(f"- {{match: {{name: n{n}}}, cgroup: v1}}\n" for n in range(4))
    rules = f"- {{cgroup: v2, runtimes: {{default: runc 1.1.15}}}}\n{old}"
    assert verdict(rules, "kubelet=1.35", *(node(f"n{n}") for n in range(5)), *pods).startswith(
        "4 nodes (n0, n1, n2 and 1 more) do not come back: the new kubelet refuses cgroup v1. 4 workloads have pods there."
    )


def test_a_loss_that_is_sure_is_named_before_a_greater_one_that_is_open(tmp_path: Any) -> None:
    (tmp_path / "to.yaml").write_text("- cgroup: v2\n- {match: {name: n1}, system_slice: 118}")
    rules = "- {match: {name: n1}, cgroup: v2, runtimes: {default: runc 1.3.6}}\n"
    rules += "- {match: {name: n2}, runtimes: {default: runc 1.3.6}}"
    objects = node("n1"), node("n2"), A, pod("b", container("c", "1"), on="n2")
    assert verdict(rules, str(tmp_path / "to.yaml"), *objects) == (
        "1 of 2 workloads loses CPU to system services (system.slice), on n1. When n1 is full, its pods get less of its CPU: "
        "61% -> 57%; default/a falls from 61% to 57%. On a node with CPU to spare, no workload loses. For 1 workload the outcome "
        "depends on what its nodes run, which is unknown; at worst default/b gets 61% less against system services. Check first: "
        "`stat -fc %T /sys/fs/cgroup` on n2."
    )


def test_a_node_of_which_the_loss_is_open_is_not_named_for_one_that_is_sure() -> None:
    twins = [
        pod(f"d-{on}", container("c", "1"), on=on, owner=("StatefulSet", "d"), qos="Burstable") for on in ("n1", "n2")
    ]
    objects = node("n1"), node("n2"), *twins, pod("e", container("c", "1"), on="n2")
    assert verdict(f"- {{match: {{name: n1}}, {V1[3:]}", "v2", *objects).startswith(
        "1 of 2 workloads loses CPU to system services (system.slice), on n1. "
    )


def test_what_was_not_read_is_no_pass() -> None:
    twins = [pod(f"d-{on}", container("c", "1"), on=on, owner=("DaemonSet", "d")) for on in ("n1", "gone")]
    assert verdict(V2_LINEAR, "v2", node("n1"), *twins) == (
        "Incomplete, so this is no pass: not everything could be read. "
        "For 1 workload the outcome depends on nodes that could not be read."
    )
    objects = cluster(node(), A)
    unread = replace(
        objects, reading=replace(objects.reading, gaps=(Gap("pods of namespace b", "403", "ask for list"),))
    )
    assert (
        audited_with_actions(unread, V2_LINEAR, "v2").verdict.sentence
        == f"Incomplete, so this is no pass: not everything could be read. {ONE}"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_it_has_at_most_80_words_of_its_own(kind: str) -> None:
    """Names of the cluster aside: there are at most three of a kind."""
    longest = max(len(random_audit(kind, seed).verdict.sentence.split()) for seed in range(25))
    assert longest <= 110


def test_conditions_in_words() -> None:
    every = [
        "cgroup v1, linear runtime",
        "cgroup v1, quadratic runtime",
        "cgroup v2, linear runtime",
        "cgroup v2, quadratic runtime",
    ]
    assert condition(every, every) == ""
    assert condition(every[:2], every) == "if cgroup v1"
    assert condition(every[:1], every) == "if cgroup v1, linear runtime"
    assert condition(every[:3], every) == "unless cgroup v2, quadratic runtime"
    assert condition([every[0], every[3]], every) == "if cgroup v1, linear runtime or cgroup v2, quadratic runtime"
    every = ["a, x", "a, y", "a, z"]
    assert condition(every[:2], every) == "unless a, z"
    assert condition(every[:1], every) == "if a, x"
    assert condition(["a, x", "b, y"], ["a, x", "a, y", "b, x", "b, y"]) == "if a, x or b, y"
