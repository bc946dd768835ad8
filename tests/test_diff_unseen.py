"""What one of two moments did not see: pods of others, namespaces, nodes."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kubectl_cgaudit.audit.model import GapRecord
from kubectl_cgaudit.audit.saved import Saved
from kubectl_cgaudit.collect.assemble import Assembly
from kubectl_cgaudit.collect.model import Cluster, Gap
from kubectl_cgaudit.compare.diff.build import diff
from kubectl_cgaudit.compare.diff.types import Diff
from kubectl_cgaudit.compare.diff.unseen import Unseen
from tests.diff_support import N1, flat, now_of, of_nodes, only, told
from tests.support import V1, V2_LINEAR, cluster, container, node, pod, saved

MINE = pod("a", container("app", "1"))


def reported(*objects: dict[str, Any]) -> Cluster:
    """The cluster with -n default."""
    assembly = Assembly(lambda namespace, _labels: namespace == "default", "namespace default")
    for each in objects:
        assembly.add(each["kind"], each, lambda raw, type_: msgspec.convert(raw, type=type_), "test")
    return assembly.cluster("test")


def other(request: str, name: str = "b", qos: str = "Burstable") -> dict[str, Any]:
    limit = request if qos == "Guaranteed" else None
    return pod(name, container("app", request, limit), namespace="other", qos=qos)


def shares(found: Diff) -> tuple[str, tuple[str, ...]]:
    """The outcome of the pod's share, and why it is another."""
    return flat(found).get(("default/a", "a", "", "share"), ("unchanged",))[0], only(found).pods[0].because


OTHERS = ("n1 has other pods now, or pods that ask for other CPU, or another size",)


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        ((other("100m"),), (other("3"),), ("other-cause", OTHERS)),
        ((other("100m", qos="Guaranteed"),), (other("3", qos="Guaranteed"),), ("other-cause", OTHERS)),
        # Another name is no other neighbour.
        ((other("100m"),), (other("100m", "c"),), ("unchanged", ())),
    ],
)
def test_pods_that_are_not_reported_are_known_by_what_their_classes_ask_for(
    was: tuple[dict[str, Any], ...], now: tuple[dict[str, Any], ...], expected: tuple[str, tuple[str, ...]]
) -> None:
    before = saved(reported(N1, MINE, *was), V2_LINEAR, "v2")
    found = diff(before, now_of(reported(N1, MINE, *now), V2_LINEAR))
    assert (shares(found), found.summary.moved) == (expected, False)


@pytest.mark.parametrize("to", ["v2", "runtime"])
def test_what_classes_ask_for_is_compared_on_one_cgroup_version(to: str) -> None:
    """Shares of a class and its weight are other numbers of the same pods."""
    objects = reported(N1, MINE, other("3"), other("1", "g", qos="Guaranteed"))
    found = diff(saved(objects, V1, to), now_of(objects, V2_LINEAR))
    assert shares(found) == ({"v2": "came-true", "runtime": "unpredicted"}[to], ())
    more = reported(N1, MINE, other("300m"), other("1", "g", qos="Guaranteed"))
    assert shares(diff(saved(objects, V1, to), now_of(more, V2_LINEAR))) == ("other-cause", OTHERS)


def test_of_pods_that_an_audit_only_counts_nothing_is_known() -> None:
    def bare(of: Saved) -> Saved:
        (found,) = of.audit.nodes
        (case,) = found.cases
        assert case.before is not None
        assert case.after is not None
        case = replace(case, before=replace(case.before, qos={}), after=replace(case.after, qos={}))
        return told(of, nodes=(replace(found, cases=(case,)),))

    before = saved(reported(N1, MINE, other("100m")), V2_LINEAR, "v2")
    after = now_of(reported(N1, MINE, other("3")), V2_LINEAR)
    for first, second in ((bare(before), after), (before, bare(after))):
        assert shares(diff(first, second)) == ("unknown", ())
    alone = saved(cluster(N1, MINE), V1, "v2")
    assert shares(diff(bare(alone), bare(now_of(cluster(N1, MINE), V2_LINEAR)))) == ("came-true", ())


def unread(found: Cluster) -> Cluster:
    gap = Gap("pods of 1 namespace: other", "403", "ask", "namespace whose pods were not read", ("other",))
    return replace(found, reading=replace(found.reading, gaps=(gap,)))


def test_where_pods_were_not_read_no_share_came_true_and_none_has_another_cause() -> None:
    part, whole = unread(cluster(N1, MINE)), cluster(N1, MINE, other("3"))
    note = (
        "On n1 something may compete with pods that was not read or is not modelled, before or now: whether CPU that moved "
        "between pods there moved as predicted cannot be said."
    )
    for was, now in ((part, whole), (whole, part), (part, part)):
        found = diff(saved(was, V1, "v2"), now_of(now, V2_LINEAR))
        rows = {key[2:]: row[0] for key, row in flat(found).items()}
        assert rows == {
            ("", "weight"): "came-true",
            ("", "share"): "unknown",
            ("", "against-system"): "unknown",
            ("app", "weight"): "came-true",
            ("app", "share"): "unknown",
            ("app", "against-system"): "unknown",
        }
        assert (only(found).outcome, only(found).pods[0].because, note in found.summary.notes) == ("unknown", (), True)
        assert of_nodes(found)["n1", "pods-per-system", ""][0] == "came-true"
    stayed = diff(saved(part, V2_LINEAR, "v2"), now_of(part, V2_LINEAR))
    assert only(stayed).outcome == "unchanged"


def test_nothing_takes_the_place_of_a_node_that_may_be_there_unread() -> None:
    n1, n2, m1 = node("n1"), node("n2"), node("m1")
    elsewhere = pod("b", container("app", "1"), on="m1")
    before, after = cluster(n1, n2, MINE), cluster(m1, n2, MINE, elsewhere)
    found = diff(saved(before, V1, "v2"), now_of(after, V2_LINEAR))
    assert after.reading.gaps == ()
    assert [(each.name, each.replaces) for each in found.nodes] == [("n2", None)]
    assert [(each.name, each.sure) for each in found.gone_nodes] == [("n1", False)]
    assert [each.name for each in found.new_nodes] == ["m1"]
    # The other way round: the node that is new now has pods before.
    back = diff(saved(after, V1, "v2"), now_of(before, V2_LINEAR))
    assert ([each.name for each in back.gone_nodes], [each.name for each in back.new_nodes]) == (["m1"], ["n1"])
    # A gap that hides no node of that name leaves them to stand for each other.
    seen = diff(saved(cluster(n1, n2), V1, "v2"), now_of(unread(cluster(m1, n2)), V2_LINEAR))
    assert [(each.name, each.replaces) for each in seen.nodes] == [("m1", "n1"), ("n2", None)]


def test_a_node_that_may_be_there_leaves_the_others_of_its_size_to_be_replaced() -> None:
    nodes = [node(name) for name in ("n1", "n2")]
    after = now_of(cluster(node("m1"), node("m2"), MINE), V2_LINEAR)
    found = diff(saved(cluster(*nodes), V1, "v2"), after)
    assert [(each.name, each.replaces) for each in found.nodes] == [("m1", "n2"), ("m2", "n2")]
    assert ([each.name for each in found.gone_nodes], found.new_nodes) == (["n1"], ())


@pytest.mark.parametrize(
    ("what", "kind", "members", "hides"),
    [
        ("kubelet of n1", "", (), (False, False)),
        ("RuntimeClass x", "RuntimeClass not read", ("x",), (False, False)),
        ("Job a/x", "Job that cannot be read", ("a/x",), (False, False)),
        ("node n1", "node not read", ("n1",), (True, False)),
        ("node n1", "node without CPU", ("n1",), (True, False)),
        ("Node n1", "Node that cannot be read", ("n1",), (True, False)),
        ("node n1", "node without kubepods", ("n1",), (False, True)),
        ("node n1", "node without system.slice", ("n1",), (False, True)),
        ("node n1", "node with another PodLevelResources", ("n1",), (False, True)),
        ("node n2", "node not read", ("n2",), (False, False)),
        ("node n2", "node without kubepods", ("n2",), (False, False)),
        ("Pod a/x", "Pod that cannot be read on n1", ("a/x",), (False, True)),
        ("Pod a/x", "Pod that cannot be read on n2", ("a/x",), (False, False)),
        ("Pod a/x", "Pod that cannot be read on no node", ("a/x",), (False, False)),
        ("Pod a/x", "Pod that cannot be read", ("a/x",), (False, True)),
        ("pods of the other namespaces", "", (), (False, True)),
        ("pods of 1 namespace: a", "namespace whose pods were not read", ("a",), (False, True)),
        ("nodes", "", (), (True, True)),
        ("3 objects", "object that is not alike", ("x",), (True, True)),
        # Of an audit that kept no kinds, or of a later release.
        ("node n2", "", (), (True, True)),
        ("node n2", "node of another kind", ("n2",), (True, True)),
    ],
)
def test_what_a_gap_may_hide(what: str, kind: str, members: tuple[str, ...], hides: tuple[bool, bool]) -> None:
    found = Unseen([GapRecord(what, "why", "remedy", kind, members)])
    assert (found.node("n1"), found.shares("n1")) == hides


def test_owners_that_were_read_of_one_moment_only_make_no_workload_new_or_gone() -> None:
    labels = {"pod-template-hash": "abc"}
    mine = pod("web-abc-x", container("app", "1"), owner=("ReplicaSet", "web-abc"), labels=labels)
    stays = pod("db-0", container("app", "1"), owner=("StatefulSet", "db"))
    owner = {"kind": "Rollout", "name": "web", "controller": True}
    read = {
        "kind": "ReplicaSet",
        "apiVersion": "apps/v1",
        "metadata": {"name": "web-abc", "namespace": "default", "ownerReferences": [owner]},
    }
    found = diff(saved(cluster(N1, mine, read, stays), V1, "v2"), now_of(cluster(N1, mine), V2_LINEAR))
    assert [(each.kind, each.name, each.sure) for each in found.new_workloads] == [("Deployment", "web", False)]
    assert [(each.kind, each.name, each.sure) for each in found.gone_workloads] == [
        ("StatefulSet", "db", True),
        ("Rollout", "web", False),
    ]
    assert (
        "As pods wait for a node, or owners were read of one moment only, it cannot be said whether all that is shown as new "
        "or gone really is."
    ) in found.summary.notes
    same = diff(saved(cluster(N1, stays, mine), V1, "v2"), now_of(cluster(N1, stays), V2_LINEAR))
    assert [(each.name, each.sure) for each in same.gone_workloads] == [("web", True)]
