"""The sentence of the verdict: what it names first, as the worst, and as open."""

from pathlib import Path

import pytest

from tests.support import V1, V2_LINEAR, V2_QUADRATIC, audited, cluster, container, node, pod

ONE = pod("p", container("app", "200m"))


@pytest.mark.parametrize(
    ("rules", "to", "sentence"),
    [
        (
            V2_QUADRATIC,
            "v2+runtime",
            "Not affected: of 1 workload none loses 10% against system processes, and no container 5% of its part of its pod.",
        ),
        (
            V2_LINEAR,
            "runtime",
            "Not affected: of 1 workload none loses 10% against system processes, and no container 5% of its part of its pod. "
            "Another number in cpu.weight, and no CPU beyond these: 1 workload.",
        ),
        (
            V1,
            "v2",
            "1 of 1 workload loses CPU priority against system processes; worst is default/p on n1, from 4 to 1.57 "
            "times system.slice (-61%; from 80% to 61% of the full node).",
        ),
        (
            "",
            "v2",
            "For 1 workload it cannot be said what it gains or loses, because what its nodes run is not known; at worst "
            "default/p loses 61% against system processes.",
        ),
    ],
)
def test_the_verdict_answers_are_we_affected(rules: str, to: str, sentence: str) -> None:
    assert audited(cluster(node(), ONE), rules, to).verdict.sentence == sentence


STARTS = pod("p", container("c", "50m", "77m"))


@pytest.mark.parametrize(
    ("kubelet", "rules", "to", "effect", "sentence"),
    [
        ("v1.32.9", V1, "runtime", "may-stop", "1 workload (default/p) may have a container that does not start."),
        (
            "v1.33.13",
            V1,
            "kubelet=1.35",
            "stops",
            "1 node (n1) will not come back from the kubelet upgrade. 1 of 1 workload has pods",
        ),
        (
            "v1.32.9",
            "",
            "runtime",
            "may-stop",
            "1 workload (default/p) may have a container that does not start, if cgroup v1 and the runtime is runc and the "
            "cgroup driver is systemd.",
        ),
        (
            "v1.33.13",
            "",
            "kubelet=1.35",
            "unknown",
            "1 node (n1) may not come back from the kubelet upgrade, if cgroup v1. ",
        ),
        ("v1.36.2", V1, "kubelet=1.36.3", "none", "Not affected: "),
    ],
)
def test_what_stops_is_said_first_and_what_may_stop_apart(
    kubelet: str, rules: str, to: str, effect: str, sentence: str
) -> None:
    result = audited(cluster(node(kubelet=kubelet), STARTS), rules, to)
    assert result.workloads[0].effect == effect
    assert result.verdict.sentence.startswith(sentence)


def test_the_worst_loss_is_one_that_holds_in_every_case(tmp_path: Path) -> None:
    """n2's version is open: its -61% only may come, so n1's smaller sure loss is the worst."""
    (tmp_path / "to.yaml").write_text("- cgroup: v2\n- {match: {name: n1}, system_slice: 118}")
    objects = cluster(
        node("n1"),
        node("n2"),
        pod("a", container("c", "1")),
        pod("b", container("c", "1"), on="n2"),
    )
    rules = "- {match: {name: n1}, cgroup: v2, runtimes: {default: runc 1.3.6}}\n"
    rules += "- {match: {name: n2}, runtimes: {default: runc 1.3.6}}"
    result = audited(objects, rules, str(tmp_path / "to.yaml"))
    assert {w.name: w.effect for w in result.workloads} == {"a": "loses", "b": "unknown"}
    assert result.verdict.sentence == (
        "1 of 2 workloads loses CPU priority against system processes; worst is default/a on n1, from 1.57 to 1.33 times "
        "system.slice (-15%; from 61% to 57% of the full node). For 1 workload it cannot be said what it gains or loses, "
        "because what its nodes run is not known; at worst default/b loses 61% against system processes."
    )


def test_a_pod_that_was_not_read_hides_no_worst_case_of_the_others() -> None:
    twins = [pod(f"d-{on}", container("c", "1"), on=on, owner=("DaemonSet", "d")) for on in ("n1", "gone")]
    assert audited(cluster(node("n1"), *twins), "", "v2").verdict.sentence == (
        "For 1 workload it cannot be said what it gains or loses, because some of its nodes were not read; of what was read at "
        "worst default/d loses 61% against system processes. The audit is incomplete: what could not be read is listed under "
        "coverage."
    )
    # What is sure of it is said once, and of the node that was not read nothing.
    assert audited(cluster(node("n1"), *twins), V1, "v2").verdict.sentence == (
        "1 of 1 workload loses CPU priority against system processes; worst is default/d on n1, from 4 to 1.57 times "
        "system.slice (-61%; from 80% to 61% of the full node). For 1 workload, which also loses, it cannot be said of every "
        "pod what it gains or loses, because some of its nodes were not read. The audit is incomplete: what could not be read is "
        "listed under coverage."
    )


def test_a_workload_that_surely_loses_in_one_pod_is_named_as_such_where_another_pod_is_open() -> None:
    twins = [
        pod(f"d-{on}", container("c", "1"), on=on, owner=("StatefulSet", "d"), qos="Burstable") for on in ("n1", "n2")
    ]
    objects = cluster(node("n1"), node("n2"), *twins, pod("e", container("c", "1"), on="n2"))
    result = audited(objects, f"- {{match: {{name: n1}}, {V1[3:]}", "v2")
    assert {each.name: each.effects for each in result.workloads} == {
        "d": ("loses", "unknown", "nominal"),
        "e": ("unknown", "nominal"),
    }
    assert result.verdict.sentence == (
        "1 of 2 workloads loses CPU priority against system processes; worst is default/d on n1, from 4 to 1.57 times "
        "system.slice (-61%; from 80% to 61% of the full node). For 2 workloads, 1 of which also loses, it cannot be said "
        "of every pod what it gains or loses, because what their nodes run is not known; at worst default/e loses 61% against "
        "system processes."
    )


def test_next_steps_name_their_condition_and_ask_first() -> None:
    steps = audited(cluster(node(), ONE), "", "v2").verdict.next_steps
    assert [step.split(" ")[0] for step in steps] == ["CGA102", "CGA201"]
    assert steps[1].startswith(
        "CGA201 (default/p): if cgroup v1: Once n1 is on cgroup v2, not before, keep the ratio of now: "
    )


@pytest.mark.parametrize(
    ("rules", "to", "unmatched"),
    [
        (
            "- {cgroup: v2, runtimes: {default: crun 1.28}}",
            "runc=1.3.6",
            ("no node runs runc, so --to runc=1.3.6 changes nothing",),
        ),
        (
            "- {cgroup: v2, runtimes: {default: runc 1.3.6, defualt: runc 1.1.5}}",
            "v2",
            ("test rule 1 names the handler defualt, which no matching node has; there is default",),
        ),
        (
            "- {cgroup: v2, runtimes: {default: runc 1.3.6}}\n- {match: {name: x}, cgroup: v1}",
            "v2",
            ("test rule 2 matches no node",),
        ),
    ],
)
def test_what_speaks_of_nothing_is_said_in_the_verdict(rules: str, to: str, unmatched: tuple[str, ...]) -> None:
    result = audited(cluster(node(), ONE), rules, to)
    assert result.coverage.unmatched == unmatched
    assert result.verdict.sentence.endswith(f"Check what was said: {unmatched[0]}.")


TAKEN = "- {cgroup: v1, runtimes: {default: linear}}"
"""Nobody said that the runtime is runc and the driver systemd."""


def test_what_only_may_not_start_is_not_said_to_run_on_an_unknown_node() -> None:
    objects = cluster(node(kubelet="v1.33.1"), pod("p", container("c", "10m", "15m")))
    result = audited(objects, TAKEN, "runc=1.3.6")
    assert result.workloads[0].effects == ("may-stop",)
    assert result.verdict.sentence == (
        "1 workload (default/p) may have a container that does not start, if the runtime is runc and the cgroup driver is "
        "systemd."
    )


def test_a_runtime_without_a_name_is_an_open_question_though_its_formula_is_known() -> None:
    objects = cluster(node(), pod("p", container("c", "1"), container("d", "50m")))
    result = audited(objects, "- {cgroup: v2, driver: systemd, runtimes: {default: linear}}", "crun=1.23")
    (workload,) = result.workloads
    assert (workload.confidence, workload.possibilities, workload.effect) == ("likely", 2, "unknown")
    assert result.verdict.sentence == (
        "For 1 workload it cannot be said what it gains or loses, because what its nodes run is not known."
    )
