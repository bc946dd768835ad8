"""What was said not to run after the move, or that it may not, and runs."""

from typing import Any

import pytest

from kubectl_cgaudit.compare.diff.build import diff
from kubectl_cgaudit.compare.diff.types import Diff
from kubectl_cgaudit.report import diff_content
from tests.diff_support import A, flat, now_of, of_nodes, only
from tests.support import V1, V2_LINEAR, V2_QUADRATIC, cluster, container, node, pod, saved


def fates(found: Diff) -> list[tuple[Any, ...]]:
    return [
        (each.outcome, measure.outcome, measure.predicted, each.because)
        for each in only(found).pods
        for measure in each.measures
        if measure.what == "fate"
    ]


LIMITED = pod("a", container("app", "10m", "15m"))
OLD = node(kubelet="v1.33.1")


def test_what_was_said_that_it_may_not_start_did_not_come_true_by_running() -> None:
    """A container that may not start may start (CGA301)."""
    before = saved(cluster(OLD, LIMITED), V1.replace("driver: systemd, ", ""), "runc=1.3.6")
    found = diff(before, now_of(cluster(OLD, LIMITED), V1.replace("1.1.5", "1.3.6")))
    assert fates(found) == [("unknown", "unknown", ("runs", "stops"), ())]
    (row,) = [row for row in diff_content.workload_rows(found.workloads) if row.what == "pod after the move"]
    assert diff_content.change(row) == "runs -> runs, said runs or stops"
    assert row.because == ("it was uncertain whether it would run",)
    assert found.summary.sentence.endswith("Nothing is known to have moved that nobody predicted.")


def test_what_stops_in_some_cases_only_may_not_have_been_said_to_run() -> None:
    two = pod("a", container("app", "1"), container("side", "100m"))
    before = saved(cluster(node(kubelet="v1.34.1"), two), V2_LINEAR.replace("cgroup: v2, ", ""), "kubelet=1.35")
    found = diff(before, now_of(cluster(node(kubelet="v1.35.0"), two), V2_LINEAR))
    assert fates(found) == [("unknown", "unknown", ("runs", "stops"), ())]
    assert flat(found)["default/a", "a", "app", "weight"] == (
        "unknown",
        ("shares 1024", "weight 39"),
        ("stops", "weight 39"),
        ("weight 39",),
    )


def test_nothing_came_true_of_what_was_never_to_be_reached() -> None:
    before = saved(cluster(node(kubelet="v1.34.1"), A), V1, "runtime,kubelet=1.35")
    found = diff(before, now_of(cluster(node(kubelet="v1.35.0"), A), V1.replace("1.1.5", "1.3.6")))
    assert of_nodes(found) == {
        ("n1", "runtime", "default"): ("otherwise", ("linear",), ("stops",), ("quadratic",)),
        ("n1", "fate", ""): ("as-before", ("runs",), ("stops",), ("runs",)),
    }
    (row, _) = diff_content.node_rows(found.nodes)
    assert diff_content.change(row) == "linear -> quadratic, not stops"
    moved = diff(before, now_of(cluster(node(kubelet="v1.35.0"), A), V2_LINEAR))
    assert flat(moved)["default/a", "a", "", "against-system"] == ("otherwise", (4.0,), ("stops",), (1.57,))
    assert flat(moved)["default/a", "a", "app", "weight"] == ("otherwise", ("shares 1024",), ("stops",), ("weight 39",))


def test_what_may_not_start_is_unknown_also_where_its_limit_was_corrected() -> None:
    before = saved(cluster(OLD, LIMITED), V1, "runc=1.3.6")
    corrected = pod("a", container("app", "10m", "20m"))
    found = diff(before, now_of(cluster(OLD, corrected), V1.replace("1.1.5", "1.3.6")))
    why = "it asks for other CPU: app request 10m limit 15m -> request 10m limit 20m"
    assert fates(found) == [("unknown", "unknown", ("runs", "stops"), (why,))]
    # A node that was said not to come back, and did, is not explained by what a pod on it asks for.
    lost = saved(cluster(OLD, LIMITED), V1, "kubelet=1.35")
    runs = diff(lost, now_of(cluster(node(kubelet="v1.35.0"), corrected), V1))
    assert [each[1] for each in fates(runs)] == ["as-before"]


@pytest.mark.parametrize(("kubelet", "rules"), [("v1.36.0", V2_QUADRATIC), ("v1.35.0", V1)])
def test_another_node_explains_that_a_pod_runs_whose_own_was_said_not_to_come_back(kubelet: str, rules: str) -> None:
    """The second differs in nothing else than that it runs the kubelet of after already."""
    old, other = node(kubelet="v1.34.1"), node("n2", kubelet=kubelet)
    told = f"{V1}\n{rules.replace('{cgroup', '{match: {name: n2}, cgroup')}"
    web = [pod(f"w-{on}", container("app", "1"), on=on, owner=("StatefulSet", "web")) for on in ("n1", "n2")]
    before = saved(cluster(old, other, web[0]), told, "kubelet=1.35")
    found = diff(before, now_of(cluster(other, web[1]), told))
    why = "it was on n1 and is on n2, for which something else or nothing was predicted"
    assert fates(found) == [("other-cause", "other-cause", ("stops",), (why,))]
    assert ([each.name for each in found.gone_nodes], found.summary.moved) == (["n1"], False)
