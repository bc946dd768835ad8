"""The sentence at the top, what it rests on, and the steps under it."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.collect.model import Gap
from kubectl_cgaudit.judge.condition import condition
from kubectl_cgaudit.text import percent
from tests.support import V1, V2_LINEAR, V2_QUADRATIC, audited, cluster, container, node, of_rule, pod


def test_what_the_numbers_rest_on() -> None:
    def stated(rules: str) -> str:
        return " ".join(audited(cluster(node(), pod("p", container("c", "1"))), rules, "v2").scenario.assumptions)

    system, beside, driver = "system.slice has its default", "Beside kubepods only system.slice", "The cgroup driver is"
    plain = stated("- {cgroup: v2, runtimes: {default: linear}}")
    assert (system in plain, beside in plain, driver in plain) == (True, True, True)
    told = stated(
        "- {cgroup: v2, driver: systemd, system_slice: 20, root: {other.slice: 50}, runtimes: {default: linear}}"
    )
    assert (system in told, beside in told, driver in told) == (False, False, False)
    two = cluster(node(), node("n2"), pod("p", container("c", "1")))
    half = " ".join(
        audited(
            two,
            "- {cgroup: v2, runtimes: {default: linear}}\n"
            "- {match: {name: n2}, driver: systemd, system_slice: 20, root: {other.slice: 50}}",
            "v2",
        ).scenario.assumptions
    )
    assert (system in half, beside in half, driver in half) == (True, True, True)


@pytest.mark.parametrize(
    ("kubelet", "to", "confidence", "said"),
    [
        ("v1.25.0", "v2", "likely", False),
        ("v1.37.9", "v2", "likely", False),
        ("v1.24.17", "v2", "probable", True),
        ("v1.38.0", "v2", "probable", True),
        ("", "v2", "probable", True),
        ("v1.33.13", "kubelet=1.38", "likely", True),
        ("v1.33.13", "kubelet=1.37", "likely", False),
    ],
)
def test_a_kubelet_that_nobody_looked_at_is_no_likely_one(kubelet: str, to: str, confidence: str, said: bool) -> None:
    found = audited(cluster(node(kubelet=kubelet), pod("p", container("c", "1"))), V2_LINEAR, to)
    assert found.nodes[0].known["kubelet"].confidence == confidence
    taken = "Kubelets before 1.25 and after 1.37, and of unknown version, are taken to use the linear formula; nobody looked."
    assert (taken in found.scenario.assumptions) is said


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
    assert condition([every[0], every[3]], every) == ("if cgroup v1, linear runtime or cgroup v2, quadratic runtime")


def sentence(rules: str, to: str, *objects: dict[str, Any], **coverage: Any) -> str:
    return audited(cluster(*objects), rules, to).verdict.sentence


def test_the_verdict_where_nobody_loses(tmp_path: Any) -> None:
    (tmp_path / "to.yaml").write_text("- {cgroup: v2, system_slice: 20}")
    to = str(tmp_path / "to.yaml")
    assert audited(cluster(node()), V2_LINEAR, "v2").verdict.sentence == (
        "No pod was audited: nothing can be said about workloads."
    )
    a, b = (pod(name, container("c", "1")) for name in ("a", "b"))
    assert sentence(V2_LINEAR, to, node(), a) == (
        "No workload loses 10% against system processes, and no container 5% of its part of its pod; 1 of 1 workload gains "
        "against system processes."
    )
    assert sentence(V2_LINEAR, to, node(), a, b) == (
        "No workload loses 10% against system processes, and no container 5% of its part of its pod; 2 of 2 workloads gain "
        "against system processes."
    )
    assert sentence(V2_LINEAR, "v2", node(), a) == (
        "Not affected: of 1 workload none loses 10% against system processes, and no container 5% of its part of its pod."
    )
    assert sentence(V2_LINEAR, "runtime", node(), a).endswith(
        " Another number in cpu.weight, and no CPU beyond these: 1 workload."
    )


def test_a_threshold_of_ones_own_is_in_the_verdict() -> None:
    found = audited(cluster(node(), pod("p", container("c", "1"))), V1, "v2", "system-loss=90%", "pod-move=7.5%")
    assert found.verdict.sentence == (
        "Not affected beyond the thresholds: of 1 workload none loses 90% against system processes, and no container 7.5% of "
        "its part of its pod. Another number in cpu.weight, and no CPU beyond these: 1 workload."
    )


def test_a_program_that_misreads_the_number_is_in_the_verdict() -> None:
    java = pod("p", container("c", "1", image="openjdk:11.0.16"))
    assert sentence(V2_LINEAR, "runtime", node(), java) == (
        "The shares of CPU are not affected: of 1 workload none loses 10% against system processes, and no container 5% of its "
        "part of its pod. But programs of 1 workload misread cpu.weight, or may (CGA401)."
    )


def test_contradictions_are_in_the_verdict() -> None:
    raw = node()
    raw["status"]["runtimeHandlers"] = [{"name": "", "features": {"userNamespaces": False}}]
    found = audited(cluster(raw, pod("p", container("c", "1"))), V2_QUADRATIC, "v2")
    assert found.verdict.sentence.endswith(" On 1 node the evidence contradicts itself (CGA102).")


def test_a_step_says_that_there_are_other_remedies() -> None:
    """Each node needs a weight of its own for system.slice."""
    pods = [pod(f"p{on}", container("c", "1"), on=on) for on in ("n1", "n2", "n3")]
    (step,) = audited(cluster(node("n1"), node("n2"), node("n3"), *pods), V1, "v2").verdict.next_steps
    assert step.startswith("CGA201 (default/pn1): Once n1 is on cgroup v2, not before, keep the ratio of now: ")
    assert step.endswith(" There are 2 more remedies of CGA201, for other nodes or workloads: -o json has all.")
    (alone,) = audited(cluster(node("n1"), pods[0]), V1, "v2").verdict.next_steps
    assert "more remed" not in alone


def test_of_nodes_not_known_the_step_says_where_like_ones_are_together() -> None:
    """A remedy a node was counted, however alike they are."""
    nodes = [node(f"n{number}") for number in (1, 2, 3)]
    told = "not known: `kubectl cgaudit nodes` says which are alike, and what settles them, cheapest first."
    for objects, more in ((nodes, f" 2 more nodes are {told}"), (nodes[:2], f" 1 more node is {told}")):
        first, *_ = audited(cluster(*objects, pod("p", container("c", "1"))), "", "v2").verdict.next_steps
        assert first.startswith("CGA102 (n1): Look on the node with ")
        assert first.endswith(f"cgroup: v1 or v2, runtimes: {{default: runc X.Y.Z}}}}`.{more}")


def test_what_was_not_read_is_the_first_step() -> None:
    """A namespace that was mistyped stood behind what to look for on nodes."""
    gaps = (Gap("pods that match namespace shpo", "there is none", "Correct -n"),)
    objects = cluster(node(), pod("p", container("c", "1")))
    objects = replace(objects, reading=replace(objects.reading, gaps=gaps))
    steps = audited(objects, "", "v2").verdict.next_steps
    assert [step.partition(": ")[0] for step in steps] == [
        "CGA001 (pods that match namespace shpo)",
        "CGA102 (n1)",
        "CGA201 (default/p)",
    ]


def test_what_may_not_start_comes_before_what_is_milder_and_sure() -> None:
    """A step for the kubelet after next stood before the one against containers that do not start."""
    objects = cluster(node(kubelet="v1.31.4"), pod("p", container("c", "15m", "15m"), qos="Guaranteed"))
    steps = audited(objects, "- {cgroup: v1, runtimes: {default: runc 1.1.12}}", "runc=1.3.3").verdict.next_steps
    assert [step.partition(": ")[0] for step in steps] == ["CGA301 (default/p)", "CGA101 (n1)"]
    assert steps[0].startswith("CGA301 (default/p): if the cgroup driver is systemd: Set the limit to 20m")


@pytest.mark.parametrize(
    ("rules", "said"), [(V1, "; worst is default/big on n1, from "), ("", "; at worst default/big loses 61% against ")]
)
def test_the_worst_that_is_named_is_the_first_in_the_list(rules: str, said: str) -> None:
    """Both lose 61%. That of the small one is greater by a tenth of a percent, and a tenth of the CPU."""
    small = pod("a-small", container("c", "155m", "155m"), qos="Guaranteed")
    audit = audited(cluster(node(cpu="8"), small, pod("big", container("c", "1"))), rules, "v2")
    assert [(each.name, percent(each.against_system.change)) for each in audit.workloads if each.against_system] == [
        ("big", "-61%"),
        ("a-small", "-61%"),
    ]
    assert said in audit.verdict.sentence


def test_what_does_not_come_back_is_named(tmp_path: Any) -> None:
    """With the workloads that have pods there."""
    pods = [pod(f"p{n}", container("c", "1"), on=f"n{n}") for n in range(5)]
    old = "".join(f"- {{match: {{name: n{n}}}, cgroup: v1}}\n" for n in range(4))
    rules = f"- {{cgroup: v2, runtimes: {{default: runc 1.1.15}}}}\n{old}"
    assert sentence(rules, "kubelet=1.35", *(node(f"n{n}") for n in range(5)), *pods) == (
        "4 nodes (n0, n1, n2 and 1 more) will not come back from the kubelet upgrade. 4 of 5 workloads have pods that do not "
        "run after the move."
    )


def test_what_part_of_the_cases_have_in_common_is_not_enough() -> None:
    every = ["a, x", "a, y", "a, z"]
    assert condition(every[:2], every) == "unless a, z"
    assert condition(every[:1], every) == "if a, x"
    assert condition(["a, x", "b, y"], ["a, x", "a, y", "b, x", "b, y"]) == "if a, x or b, y"


def test_an_incomplete_audit_that_found_nothing_says_so_once() -> None:
    found = audited(cluster(node(), pod("p", container("c", "1"))), V2_LINEAR, "v2")
    unread = replace(cluster(node(), pod("p", container("c", "1"))))
    assert found.verdict.sentence == (
        "Not affected: of 1 workload none loses 10% against system processes, and no container 5% of its part of its pod."
    )
    gap = Gap("pods of namespace b", "403", "ask for list")
    unread = replace(unread, reading=replace(unread.reading, gaps=(gap,)))
    assert audited(unread, V2_LINEAR, "v2").verdict.sentence == (
        "INCOMPLETE, so this is no pass: what could not be read is listed under coverage. Of what was read: "
        f"{found.verdict.sentence}"
    )


def test_a_step_says_on_what_it_depends_only_if_it_does() -> None:
    objects = cluster(node(), pod("p", container("app", "200m"), container("side", "20m")))
    sure = audited(objects, V1, "v2")
    (first, *_) = sure.verdict.next_steps
    finding = of_rule(sure, first.split(" ")[0])["default/p"]
    assert first == f"{finding.rule} (default/p): {finding.remedy}"
    open_ = audited(objects, "- {runtimes: {default: runc 1.1.15}}", "v2")
    depends = [each for each in open_.findings if each.when and each.severity != "low"]
    assert depends
    assert (
        f"{depends[0].rule} ({depends[0].subject.title}): {depends[0].when}: {depends[0].remedy}"
        in open_.verdict.next_steps
    )


def test_how_much_more_what_surely_loses_may_lose_is_said() -> None:
    """91 : 1 now. Set by the kubelet, system.slice has weight 2 against 157 after; by systemd, 4."""
    objects = cluster(node(), pod("p", container("c", "1")))
    said = audited(objects, "- {cgroup: v1, system_slice: 45}", "v2").verdict.sentence
    assert said.startswith(
        "1 of 1 workload loses CPU priority against system processes; worst is default/p on n1, from 91 to 78.5 times "
        "system.slice (-14%; from 98.9% to 98.7% of the full node); at worst, as the open questions turn out, default/p loses "
        "57% against system processes."
    )
