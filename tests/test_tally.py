"""What is told of a workload: its worst pod, its surest, and which of equal ones."""

from typing import Any

from tests.support import V1, V2_LINEAR, audited, cluster, container, node, pod


def test_the_most_possibilities_and_the_least_confidence_of_any_pod_count() -> None:
    """n1 is known, n2 is not, in whatever order the pods come."""
    rules = "- {match: {name: known}, cgroup: v1, driver: systemd, runtimes: {default: runc 1.1.5}}"
    for first, second in (("known", "open"), ("open", "known")):
        pods = [
            pod(f"w-{n}", container("c", "1"), on=on, owner=("StatefulSet", "w"))
            for n, on in enumerate((first, second))
        ]
        (workload,) = audited(cluster(node("known"), node("open"), *pods), rules, "v2+runtime").workloads
        assert (workload.possibilities, workload.confidence) == (4, "unknown")


def test_of_pods_with_equal_changes_the_first_by_name_is_told_for_losses_and_the_last_for_gains() -> None:
    pods = [pod(f"w-{n}", container("c", "1"), on=f"n{n}", owner=("StatefulSet", "w")) for n in (2, 1, 3)]
    found = audited(cluster(*(node(f"n{n}") for n in (1, 2, 3)), *pods), V1, "v2")
    (workload,) = found.workloads
    assert workload.share is not None
    assert workload.against_system is not None
    assert workload.against_system_best is not None
    assert (workload.share.pod, workload.against_system.pod, workload.against_system_best.pod) == ("w-1", "w-1", "w-3")


def test_the_pod_whose_share_changes_most_either_way_is_told(tmp_path: Any) -> None:
    """One node gains, another loses more, and the gain of a third is as large as the loss."""
    (tmp_path / "to.yaml").write_text(
        "- {match: {name: n1}, system_slice: 50}\n- {match: {name: n2}, system_slice: 400}\n"
        "- {match: {name: n3}, system_slice: 90}"
    )
    pods = [pod(f"w-{n}", container("c", "1"), on=f"n{n}", owner=("StatefulSet", "w")) for n in (1, 2, 3)]
    (workload,) = audited(
        cluster(*(node(f"n{n}") for n in (1, 2, 3)), *pods), V2_LINEAR, str(tmp_path / "to.yaml")
    ).workloads
    assert workload.share is not None
    assert workload.against_system is not None
    assert workload.against_system_best is not None
    assert (workload.share.pod, workload.against_system.pod, workload.against_system_best.pod) == ("w-2", "w-2", "w-1")


def test_nominal_numbers_are_by_container_name_and_span_all_pods() -> None:
    pods = [
        pod("w-1", container("a", "1"), container("b", "100m"), owner=("StatefulSet", "w")),
        pod("w-2", container("a", "2"), container("b", "100m"), owner=("StatefulSet", "w")),
        pod("w-3", container("z", "1"), container("y", "100m"), owner=("StatefulSet", "w")),
    ]
    (workload,) = audited(cluster(node(), *pods), V1, "v2").workloads
    assert {
        each.container: (each.before.least, each.before.greatest, each.ratio_before.least, each.ratio_before.greatest)
        for each in workload.nominal
    } == {
        "a": (1024, 2048, 1.0, 2.0),
        "b": (102, 102, 0.099609375, 0.099609375),
        "z": (1024, 1024, 1.0, 1.0),
        "y": (102, 102, 0.099609375, 0.099609375),
    }
    assert {
        each.container: (each.after.least, each.after.greatest, each.ratio_after.greatest) for each in workload.nominal
    } == {
        "a": (39, 79, 0.79),
        "b": (4, 4, 0.04),
        "z": (39, 39, 0.39),
        "y": (4, 4, 0.04),
    }


def test_a_workload_gains_from_the_threshold_on(tmp_path: Any) -> None:
    """Weight 100 to 80 makes 1.25 times as much of it."""
    (tmp_path / "to.yaml").write_text("- {system_slice: 80}")
    objects = cluster(node(), pod("p", container("c", "1")))
    for threshold, effect in (("0.25", "gains"), ("0.2501", "none")):
        (workload,) = audited(objects, V2_LINEAR, str(tmp_path / "to.yaml"), f"system-gain={threshold}").workloads
        assert workload.effect == effect


def test_the_most_possibilities_count_whichever_node_comes_last() -> None:
    for known, open_ in (("n1", "n2"), ("n2", "n1")):
        rules = f"- {{match: {{name: {known}}}, cgroup: v1, driver: systemd, runtimes: {{default: runc 1.1.5}}}}"
        pods = [pod(f"w-{on}", container("c", "1"), on=on, owner=("StatefulSet", "w")) for on in (known, open_)]
        (workload,) = audited(cluster(node(known), node(open_), *pods), rules, "v2+runtime").workloads
        assert (workload.possibilities, workload.confidence) == (4, "unknown")


def test_of_pods_that_are_alike_the_first_by_name_is_told_whichever_node_comes_first() -> None:
    for first, second in (("n1", "n2"), ("n2", "n1")):
        pods = [
            pod(name, container("app", "200m"), container("side", "20m"), on=on, owner=("StatefulSet", "w"))
            for name, on in (("w-1", first), ("w-2", second))
        ]
        (workload,) = audited(cluster(node("n1"), node("n2"), *pods), V2_LINEAR, "runtime").workloads
        assert workload.inside_pod is not None
        assert workload.inside_pod_best is not None
        assert (workload.inside_pod.pod, workload.inside_pod.node) == ("w-1", first)
        assert (workload.inside_pod_best.pod, workload.inside_pod_best.node) == ("w-1", first)
