"""What is said of the whole comparison of two moments."""

from msgspec.structs import replace

from kubectl_cgaudit.compare.diff import build
from kubectl_cgaudit.compare.diff.build import diff
from kubectl_cgaudit.compare.diff.moments import side
from kubectl_cgaudit.compare.diff.outcome import Limit
from kubectl_cgaudit.compare.diff.pods import Limits
from kubectl_cgaudit.report import diff_html, diff_markdown
from tests.diff_support import N1, N2, NEW, A, now_of, told
from tests.support import V1, V2_LINEAR, V2_QUADRATIC, cluster, container, node, pod, saved


def test_the_limits_are_those_of_the_first_audit() -> None:
    """Without thresholds in it, those of the program."""
    before = saved(cluster(N1, A), V1, "v2")
    bare = told(before, target=replace(before.audit.target, thresholds={"other": 1.0}))
    after = now_of(cluster(N1, A), V2_LINEAR)
    found = diff(bare, after)
    assert (found.nodes, found.workloads) == (diff(before, after).nodes, diff(before, after).workloads)
    assert found.thresholds == {}
    assert set(diff(before, after).thresholds) == {"system-loss", "system-gain", "pod-move"}


def test_each_limit_is_the_threshold_of_its_name() -> None:
    own = saved(cluster(N1, A), V1, "v2", "system-loss=30%", "system-gain=40%", "pod-move=20%")
    usual = saved(cluster(N1, A), V1, "v2")
    assert build._Comparison(side(own), side(usual)).limits == Limits(Limit(0.3, 0.4), Limit(0.2, 0.2))
    assert build._Comparison(side(usual), side(own)).limits == Limits(Limit(0.1, 0.1), Limit(0.05, 0.05))


def test_workloads_are_in_order_of_outcome_namespace_name_and_kind() -> None:
    owners = [("StatefulSet", "b"), ("DaemonSet", "b"), ("StatefulSet", "a")]
    pods = [
        pod(f"p{n}-{namespace}", container("app", "1"), owner=owner, namespace=namespace)
        for n, owner in enumerate(owners)
        for namespace in ("y", "x")
    ]
    found = cluster(N1, *pods)
    same = diff(saved(found, V1, "v2"), now_of(found, V2_LINEAR))
    in_order = [
        ("x", "a", "StatefulSet"),
        ("x", "b", "DaemonSet"),
        ("x", "b", "StatefulSet"),
        ("y", "a", "StatefulSet"),
        ("y", "b", "DaemonSet"),
        ("y", "b", "StatefulSet"),
    ]
    assert [(each.namespace, each.name, each.kind) for each in same.workloads] == in_order
    nothing, all_of_it = saved(cluster(N1), V1, "v2"), saved(found, V1, "v2")
    gone, new = diff(all_of_it, nothing), diff(nothing, all_of_it)
    for lone in (gone.gone_workloads, new.new_workloads):
        assert [(each.namespace, each.name, each.kind) for each in lone] == in_order
    assert (gone.workloads, new.workloads) == ((), ())


def test_the_values_of_a_lone_workload_are_each_said_once_by_container() -> None:
    pair = cluster(
        N1,
        N2,
        pod("w-1", container("app", "1"), container("side", "100m"), on="n1", owner=("StatefulSet", "web")),
        pod("w-2", container("app", "1"), container("side", "100m"), on="n2", owner=("StatefulSet", "web")),
        pod("w-3", container("app", "1"), container("side", "100m"), on="n2", owner=("StatefulSet", "web")),
    )
    rules = f"{V2_QUADRATIC}\n- {{match: {{name: n2}}, runtimes: {{default: runc 1.1.15}}}}"
    (new,) = diff(saved(cluster(N1, N2), rules), now_of(pair, rules)).new_workloads
    assert (new.pod_count, [(each.name, each.values) for each in new.containers]) == (
        3,
        [("app", ("weight 100", "weight 39")), ("side", ("weight 17", "weight 4"))],
    )


def test_lone_nodes_and_more_than_one_of_each_are_counted() -> None:
    two = [pod(name, container("app", "1")) for name in ("g1", "g2")]
    before = saved(cluster(N1, N2, *two), V1, "v2")
    found = diff(before, now_of(cluster(node("m1", cpu="16"), NEW | {"spec": NEW["spec"] | {"nodeName": "m1"}})))
    assert found.summary.sentence == (
        "No workload is in both. No node is in both. Nothing is known to have moved that nobody predicted. 1 workload is "
        "new, 2 workloads are gone, 1 node is new, 2 nodes are gone."
    )
    assert "No node and no workload is in both: these are two clusters, or nothing of the first is left." in (
        found.summary.notes
    )
    partly = diff(before, now_of(cluster(N1, N2), V1))
    assert not [note for note in partly.summary.notes if note.startswith("No node and")]
    other = diff(
        before,
        now_of(cluster(node("m1", cpu="16"), *(each | {"spec": each["spec"] | {"nodeName": "m1"}} for each in two))),
    )
    assert not [note for note in other.summary.notes if note.startswith("No node and")]
    (new,) = diff(saved(cluster(), ""), now_of(cluster(N1), "")).new_nodes
    assert (new.name, new.allocatable_milli, new.pod_count, new.sure, new.cgroup) == ("n1", 4000, 0, True, ("v1", "v2"))


def test_where_nothing_is_in_both_it_is_not_said_that_nothing_changed() -> None:
    stayed, no_node, no_workload = (
        "Nothing was to change, and nothing did.",
        "No node is in both.",
        "No workload is in both.",
    )
    large = node("m1", cpu="16")
    before = saved(cluster(N1, A), V2_LINEAR, "v2")
    for objects, said in (
        ((N1, A), [stayed, stayed]),
        ((N1,), [stayed, no_workload]),
        ((large,), [no_node, no_workload]),
    ):
        found = diff(before, now_of(cluster(*objects), V2_LINEAR))
        lines = diff_markdown.render(found).splitlines()
        assert [lines[lines.index(heading) + 2] for heading in ("## Nodes", "## Workloads")] == said
        lines = diff_html.render(found).splitlines()
        assert [line for line in lines if line in {f"<p>{words}</p>" for words in said}] == [
            f"<p>{words}</p>" for words in said
        ]
