"""Which pods, nodes and workloads of two moments are taken for the same."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.compare.diff.build import diff
from kubectl_cgaudit.errors import InputError
from kubectl_cgaudit.report import diff_content, diff_markdown
from tests.diff_support import BOTH, GONE, N1, N2, NEW, A, flat, now_of, of_nodes, only, told
from tests.support import V1, V2_LINEAR, V2_QUADRATIC, cluster, container, node, pod, saved


def test_a_prediction_that_did_not_come_true_and_a_new_and_a_gone_workload() -> None:
    on_n2 = pod("b", container("app", "1"), on="n2")
    before = saved(cluster(N1, N2, A, GONE, on_n2), V2_LINEAR, "runtime")
    after = now_of(
        cluster(N1, N2, A, NEW, on_n2), f"{V2_QUADRATIC}\n- {{match: {{name: n2}}, runtimes: {{default: runc 1.1.15}}}}"
    )
    found = diff(before, after)
    assert of_nodes(found) == {
        ("n1", "runtime", "default"): ("came-true", ("linear",), ("quadratic",), ("quadratic",)),
        ("n2", "runtime", "default"): ("as-before", ("linear",), ("quadratic",), ("linear",)),
    }
    rows = flat(found)
    assert {key: row for key, row in rows.items() if key[3] == "weight"} == {
        ("default/a", "a", "app", "weight"): ("came-true", ("weight 39",), ("weight 100",), ("weight 100",)),
        ("default/a", "a", "side", "weight"): ("came-true", ("weight 4",), ("weight 17",), ("weight 17",)),
        ("default/b", "b", "app", "weight"): ("as-before", ("weight 39",), ("weight 100",), ("weight 39",)),
    }
    # Fewer competitors on n1 now: the pod's part grew, which no runtime does, and the other pods explain it.
    assert rows["default/a", "a", "", "share"][0] == "other-cause"
    assert [(each.title, each.outcome) for each in found.workloads] == [
        ("default/b", "as-before"),
        ("default/a", "other-cause"),
    ]
    ((new,), (gone,)) = found.new_workloads, found.gone_workloads
    assert (new.title, new.pod_count, new.containers[0].name, new.containers[0].values) == (
        "default/new",
        1,
        "fresh",
        ("weight 29",),
    )
    assert (gone.title, gone.containers[0].name, gone.containers[0].values) == ("default/gone", "old", ("weight 20",))
    assert found.summary.sentence == (
        "Of 2 workloads in both: 1 still as before, though a change was predicted; 1 other than predicted for another "
        "reason. Of 2 nodes in both: 1 still as before, though a change was predicted; 1 changed as predicted. Nothing "
        "moved that nobody predicted. 1 workload is new, 1 workload is gone."
    )


def deployed(name: str, on: str, request: str = "1") -> dict[str, Any]:
    return pod(name, container("app", request), on=on, owner=("StatefulSet", "web"))


def test_replicas_are_matched_by_node_and_replaced_nodes_by_their_size() -> None:
    before = saved(cluster(N1, N2, deployed("w-1", "n1"), deployed("w-2", "n2")), V1, "v2+runtime")
    later = cluster(node("m1"), N2, deployed("w-9", "m1"), deployed("w-8", "n2"))
    found = diff(before, now_of(later, BOTH))
    assert [(each.name, each.replaces, each.outcome) for each in found.nodes] == [
        ("m1", "n1", "came-true"),
        ("n2", None, "came-true"),
    ]
    assert [(each.name, each.now_name, each.node, each.now_node, each.outcome) for each in only(found).pods] == [
        ("w-1", "w-9", "n1", "m1", "came-true"),
        ("w-2", "w-8", "n2", "n2", "came-true"),
    ]
    assert (found.new_nodes, found.gone_nodes) == ((), ())


@pytest.mark.parametrize(
    ("came", "replaced", "gone"),
    [
        (("m1", "m2"), {"m1": "n1", "m2": "n2"}, ()),
        (("m1", "m2", "m3"), {"m1": "n1", "m2": "n2", "m3": "n2"}, ()),
        (("m1",), {"m1": "n1"}, ("n2",)),
    ],
)
def test_replaced_nodes_stand_for_each_other_in_the_order_of_their_names(
    came: tuple[str, ...], replaced: dict[str, str], gone: tuple[str, ...]
) -> None:
    found = diff(saved(cluster(N1, node("n2")), V1, "v2"), now_of(cluster(*map(node, came)), V2_LINEAR))
    assert {each.name: each.replaces for each in found.nodes} == replaced
    assert tuple(each.name for each in found.gone_nodes) == gone


def test_new_nodes_that_could_stand_for_different_ones_are_not_guessed() -> None:
    before = saved(cluster(N1, node("n3"), A), f"{V1}\n- {{match: {{name: n3}}, cgroup: v2}}", "v2")
    found = diff(before, now_of(cluster(node("m1"), pod("a", container("app", "1"), on="m1")), V2_LINEAR))
    assert ([each.name for each in found.new_nodes], [each.name for each in found.gone_nodes]) == (["m1"], ["n1", "n3"])
    assert "They cannot be told apart" in found.summary.notes[-1]


def test_replicas_more_and_fewer() -> None:
    before = saved(cluster(N1, deployed("w-1", "n1"), deployed("w-2", "n1")), V2_LINEAR, "v2")
    fewer = diff(before, now_of(cluster(N1, deployed("w-2", "n1")), V2_LINEAR))
    assert (only(fewer).gone_pods, [each.name for each in only(fewer).pods]) == (("w-1",), ["w-2"])
    three = cluster(N1, *(deployed(name, "n1") for name in ("w-1", "w-2", "w-3")))
    assert only(diff(before, now_of(three, V2_LINEAR))).new_pods == ("w-3",)


def test_audits_of_different_parts_are_refused() -> None:
    first, second = saved(cluster(N1, A)), now_of(cluster(N1, A))
    narrow = told(second, coverage=replace(second.audit.coverage, filter="namespace x"))
    with pytest.raises(InputError, match=r"^the first reports everything and the second namespace x; make both with"):
        diff(first, narrow)


def test_a_node_of_another_size_now() -> None:
    small, large = cluster(N1, A), cluster(node("n1", cpu="8"), A)
    found = diff(saved(small, V2_LINEAR, "v2"), now_of(large, V2_LINEAR))
    (changed,) = found.nodes
    assert changed.because == ("its allocatable CPU was 4000m and is 8000m",)
    assert {key[1]: row[0] for key, row in of_nodes(found).items()} == {
        "kubepods": "other-cause",
        "pods-per-system": "other-cause",
    }
    assert only(found).pods[0].because == ("n1 has other pods now, or pods that ask for other CPU, or another size",)


def test_rows_of_a_workload_that_look_the_same_name_their_node() -> None:
    pair = cluster(N1, N2, deployed("w-1", "n1"), deployed("w-2", "n2"))
    before = saved(pair, V2_LINEAR, "runtime")
    found = diff(before, now_of(pair, f"{V2_QUADRATIC}\n- {{match: {{name: n2}}, runtimes: {{default: runc 1.1.15}}}}"))
    rows = [
        (row.outcome, row.what, row.before, row.now)
        for row in diff_content.workload_rows(found.workloads)
        if "weight" in row.what
    ]
    assert rows == [
        ("as-before", "app weight on n2", "weight 39", "weight 39"),
        ("came-true", "app weight on n1", "weight 39", "weight 100"),
    ]
    assert "app weight on n2" in diff_markdown.render(found)
    same = diff(before, now_of(pair, V2_QUADRATIC))
    assert [row.what for row in diff_content.workload_rows(same.workloads) if "weight" in row.what] == ["app weight"]


def test_a_container_called_pod_is_not_taken_for_the_pod() -> None:
    one = cluster(N1, pod("a", container("pod", "1")))
    found = diff(saved(one, V1, "v2"), now_of(one, V2_LINEAR))
    assert [(row.what, row.now, diff_content.pods(row)) for row in diff_content.workload_rows(found.workloads)] == [
        ("pod weight", "weight 39", "1/1"),
        ("pod vs system", "1.57", "1/1"),
        ("container pod weight", "weight 39", "1/1"),
    ]
