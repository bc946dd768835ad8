"""What tells one comparison from another by a single condition: pairs, facts, outcomes, notes."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import Audit, NodeAudit, PodAudit
from kubectl_cgaudit.judge.diff import match
from kubectl_cgaudit.judge.diff.build import diff
from kubectl_cgaudit.judge.diff.nodes import same_ground
from kubectl_cgaudit.judge.diff.outcome import Limit, consistent, of_numbers, of_words, within, worst
from kubectl_cgaudit.judge.diff.types import Measure
from tests.support import V1, V2_LINEAR, V2_QUADRATIC, audited, cluster, container, node, pod
from tests.test_diff import GONE, N1, N2, NEW, A, flat, now_of, of_nodes, only


def first_node(rules: str = V1, **fields: Any) -> NodeAudit:
    """A node's audit; `fields` are of its only moment before."""
    (found,) = audited(cluster(N1, A), rules).nodes
    (case,) = found.cases
    return replace(found, cases=(replace(case, before=replace(case.before, **fields)),))


@pytest.mark.parametrize(
    "fields",
    [
        {"cgroup": "v2"},
        {"kubepods": 1},
        {"system_slice": 1},
        {"pods_share": 0.25},
        {"runtimes": {"default": "runc 1.3.6 (quadratic)"}},
        {"runtimes": {"other": "runc 1.1.5 (linear)"}},
    ],
    ids=str,
)
def test_nodes_of_which_something_else_is_predicted_have_other_facts(fields: dict[str, Any]) -> None:
    assert match.facts(first_node(**fields)) != match.facts(first_node())


def test_facts_are_of_what_decides_the_prediction() -> None:
    one = first_node(runtimes={"a": "runc 1.1.5 (linear)", "b": "crun 1.8 (linear)"}, pods_share=0.7)
    same = first_node(runtimes={"b": "crun 1.9 (linear)", "a": "runc 1.1.4 (linear)"}, pods_share=0.7000000001)
    assert match.facts(one) == match.facts(replace(same, name="other"))
    assert match.facts(replace(one, allocatable_milli=4001)) != match.facts(one)


def first_pod(*containers: dict[str, Any], qos: str = "Burstable", **spec: Any) -> PodAudit:
    (workload,) = audited(cluster(N1, pod("a", *containers, qos=qos, **spec)), V1).workloads
    (found,) = workload.pods
    return found


def test_what_a_pod_asks_for_is_its_class_and_what_its_containers_do_that_stay() -> None:
    usual = match.spec(first_pod(container("app", "1", "2")))
    for other in (
        first_pod(container("app", "1", "2"), qos="Guaranteed"),
        first_pod(container("web", "1", "2")),
        first_pod(container("app", "2", "2")),
        first_pod(container("app", "1", "3")),
        first_pod(initContainers=[container("app", "1", "2", restartPolicy="Always")]),
    ):
        assert match.spec(other) != usual
    waits = audited_pod(starting("init", "200m"))
    assert {each.role for each in waits.containers} == {"app", "init", "ephemeral"}
    assert match.spec(waits) == match.spec(audited_pod(pod("a", container("app", "1"))))


def starting(init: str, request: str, app: str = "1") -> dict[str, Any]:
    """A pod with an init and an ephemeral container that run."""
    found = pod(
        "a",
        container("app", app),
        initContainers=[container(init, request)],
        ephemeralContainers=[container(f"debug-{init}")],
    )
    runs = {"state": {"running": {"startedAt": "2024-01-01T00:00:00Z"}}}
    found["status"] |= {
        "initContainerStatuses": [{"name": init, **runs}],
        "ephemeralContainerStatuses": [{"name": f"debug-{init}", **runs}],
    }
    return found


def audited_pod(raw: dict[str, Any]) -> PodAudit:
    (workload,) = audited(cluster(N1, raw), V1).workloads
    (found,) = workload.pods
    return found


def sized(name: str, milli: int, node: NodeAudit) -> NodeAudit:
    return replace(node, name=name, allocatable_milli=milli)


def test_which_node_stands_for_which() -> None:
    other, usual = first_node(cgroup="v2"), first_node()
    before = [
        sized("both", 1000, usual),
        sized("b2", 2000, usual),
        sized("b1", 2000, usual),
        sized("c1", 3000, usual),
        sized("d2", 4000, other),
        sized("d1", 4000, usual),
        sized("e2", 5000, usual),
        sized("e1", 5000, usual),
        sized("f1", 6000, usual),
    ]
    after = [
        sized("both", 9000, usual),
        sized("new-b", 2000, usual),
        sized("new-c3", 3000, usual),
        sized("new-c2", 3000, other),
        sized("new-d", 4000, usual),
        sized("new-e2", 5000, usual),
        sized("new-e1", 5000, usual),
        sized("new-g", 7000, usual),
    ]
    found = match.nodes(before, after)
    assert [(old.name, new.name) for old, new in found.pairs] == [
        ("both", "both"),
        ("b1", "new-b"),
        ("c1", "new-c2"),
        ("c1", "new-c3"),
        ("e1", "new-e1"),
        ("e2", "new-e2"),
    ]
    assert [each.name for each in found.new] == ["new-d", "new-g"]
    assert [each.name for each in found.gone] == ["b2", "d1", "d2", "f1"]
    assert found.ambiguous == ("new-d",)


def named(name: str, on: str, request: str = "1") -> PodAudit:
    return replace(first_pod(container("app", request)), name=name, node=on)


def paired(before: list[PodAudit], after: list[PodAudit]) -> list[tuple[str, str]]:
    facts = {"n1": "small", "n2": "small", "n3": "large"}.get
    stood = {"m1": "n1", "m2": "n2", "m3": "n3"}
    found = match.pods(before, after, facts, lambda name: facts(stood.get(name, "")), stood.get)
    return sorted((old.name, new.name) for old, new in found.pairs)


def test_which_pod_stands_for_which() -> None:
    # In order of their names, whatever order they come in.
    before = [named("b", "n1"), named("a", "n1")]
    assert paired(before, [named("y", "m1"), named("x", "m1")]) == [("a", "x"), ("b", "y")]
    # First by node and request.
    before = [named("a", "n2"), named("b", "n1")]
    assert paired(before, [named("x", "m1"), named("y", "m2")]) == [("a", "y"), ("b", "x")]
    before = [named("a", "n1", "2"), named("b", "n1")]
    assert paired(before, [named("x", "m1"), named("y", "m1", "2")]) == [("a", "y"), ("b", "x")]
    # Then by nodes with equal facts, and request.
    before = [named("a", "n3"), named("b", "n1")]
    assert paired(before, [named("x", "m2"), named("y", "m9")]) == [("a", "y"), ("b", "x")]
    before = [named("a", "n1", "2"), named("b", "n1")]
    assert paired(before, [named("x", "m2"), named("y", "m2", "2")]) == [("a", "y"), ("b", "x")]
    # Then by request alone.
    before = [named("a", "n1", "2"), named("b", "n1")]
    assert paired(before, [named("x", "m3"), named("y", "m3", "2")]) == [("a", "y"), ("b", "x")]


def test_the_limits_are_those_of_the_first_audit() -> None:
    """Without thresholds in it, those of the program."""
    before = audited(cluster(N1, A), V1, "v2")
    bare = replace(before, scenario=replace(before.scenario, thresholds={"other": 1.0}))
    after = now_of(cluster(N1, A), V2_LINEAR)
    found = diff(bare, after)
    assert (found.nodes, found.workloads) == (diff(before, after).nodes, diff(before, after).workloads)
    assert found.thresholds == {}
    assert set(diff(before, after).thresholds) == {"system-loss", "system-gain", "pod-move"}


def test_workloads_are_in_order_of_outcome_namespace_name_and_kind() -> None:
    owners = [("StatefulSet", "b"), ("DaemonSet", "b"), ("StatefulSet", "a")]
    pods = [
        pod(f"p{n}-{namespace}", container("app", "1"), owner=owner, namespace=namespace)
        for n, owner in enumerate(owners)
        for namespace in ("y", "x")
    ]
    found = cluster(N1, *pods)
    same = diff(audited(found, V1, "v2"), now_of(found, V2_LINEAR))
    in_order = [
        ("x", "a", "StatefulSet"),
        ("x", "b", "DaemonSet"),
        ("x", "b", "StatefulSet"),
        ("y", "a", "StatefulSet"),
        ("y", "b", "DaemonSet"),
        ("y", "b", "StatefulSet"),
    ]
    assert [(each.namespace, each.name, each.kind) for each in same.workloads] == in_order
    nothing, all_of_it = audited(cluster(N1), V1, "v2"), audited(found, V1, "v2")
    gone, new = diff(all_of_it, nothing), diff(nothing, all_of_it)
    for lone in (gone.gone_workloads, new.new_workloads):
        assert [(each.namespace, each.name, each.kind) for each in lone] == in_order
    assert (gone.workloads, new.workloads) == ((), ())


def test_pods_that_could_not_be_read_leave_the_workload_open() -> None:
    before, after = audited(cluster(N1, A), V2_LINEAR, "v2"), now_of(cluster(N1, A), V2_LINEAR)
    assert only(diff(before, after)).outcome == "unchanged"

    def half_read(of: Audit) -> Audit:
        return replace(of, workloads=tuple(replace(each, unpredicted_pods=1) for each in of.workloads))

    assert only(diff(half_read(before), after)).outcome == "unknown"
    assert only(diff(before, half_read(after))).outcome == "unknown"
    assert only(diff(before, half_read(after))).unpredicted_pods == 1
    none = replace(after, workloads=tuple(replace(each, pods=()) for each in after.workloads))
    assert only(diff(before, none)).outcome == "unknown"
    lone = diff(audited(cluster(N1), V1), half_read(after)).new_workloads
    assert [each.pod_count for each in lone] == [2]


def test_the_values_of_a_lone_workload_are_each_said_once_by_container() -> None:
    pair = cluster(
        N1,
        N2,
        pod("w-1", container("app", "1"), container("side", "100m"), on="n1", owner=("StatefulSet", "web")),
        pod("w-2", container("app", "1"), container("side", "100m"), on="n2", owner=("StatefulSet", "web")),
        pod("w-3", container("app", "1"), container("side", "100m"), on="n2", owner=("StatefulSet", "web")),
    )
    rules = f"{V2_QUADRATIC}\n- {{match: {{name: n2}}, runtimes: {{default: runc 1.1.15}}}}"
    (new,) = diff(audited(cluster(N1, N2), rules), now_of(pair, rules)).new_workloads
    assert (new.pod_count, [(each.name, each.values) for each in new.containers]) == (
        3,
        [("app", ("weight 100", "weight 39")), ("side", ("weight 17", "weight 4"))],
    )


def test_other_pods_on_a_node_are_noticed_though_they_are_as_many() -> None:
    """What explains a share that moved: other pods, another request of a neighbour, another size; and nothing else."""

    def share(before: tuple[Any, ...], after: tuple[Any, ...], rules: str = V2_LINEAR) -> tuple[str, tuple[str, ...]]:
        found = diff(audited(cluster(N1, *before), V2_LINEAR, "runtime"), now_of(cluster(N1, *after), rules))
        (mine,) = [each for each in found.workloads if each.name == "a"]
        (each,) = mine.pods
        return next((m.outcome for m in each.measures if m.what == "share"), "unchanged"), each.because

    a = pod("a", container("app", "1"))
    why = ("n1 has other pods now, or pods that ask for other CPU, or another size",)
    small, large = pod("b", container("app", "100m")), pod("b", container("app", "2"))
    assert share((a, small), (a, large)) == ("other-cause", why)
    assert share((a, small), (a, pod("c", container("app", "2")))) == ("other-cause", why)
    assert share((a, small), (a, small, pod("c", container("app", "2")))) == ("other-cause", why)
    # The same pods: a runtime that nobody spoke of moved it.
    idle = pod("b", container("app", "10m"), qos="Burstable")
    assert share((a, idle), (a, idle)) == ("unchanged", ())


def test_a_pod_that_went_to_another_kind_of_node_says_so() -> None:
    rules = f"{V2_LINEAR}\n- {{match: {{name: n3}}, cgroup: v1}}"
    n3 = node("n3")
    before = audited(cluster(N1, n3, pod("a", container("app", "1"))), rules, "runtime")
    found = diff(before, now_of(cluster(N1, n3, pod("a", container("app", "1"), on="n3")), rules))
    (moved,) = only(found).pods
    assert (moved.outcome, moved.because[0]) == (
        "other-cause",
        "it was on n1 and is on n3, which is another kind of node",
    )
    same = audited(cluster(N1, n3, pod("a", container("app", "1"))), V2_LINEAR, "runtime")
    stayed = diff(same, now_of(cluster(N1, n3, pod("a", container("app", "1"), on="n3")), V1))
    assert only(stayed).outcome == "unpredicted"


def test_halves_of_a_measure() -> None:
    limit = Limit(0.1, 0.2)
    assert [limit.moved(1.0, now) for now in (0.9, 0.91, 1.19, 1.2)] == [True, False, False, True]
    assert [limit.moved(-1.0, now) for now in (-1.1, -1.09, -0.81, -0.8)] == [True, False, False, True]
    assert within(None, 1.0, 1.0, limit) == "unknown"
    assert within(1.0, 0.5, 1.5, limit) == "otherwise"
    assert within(1.0, 2.0, 1.95, limit) == "came-true"
    assert within(1.0, 2.0, 1.05, limit) == "as-before"
    assert worst([]) == "unchanged"
    words = of_words("weight", "", [("none", "none"), (5, 5)], ["none", 4])
    assert (words.outcome, words.before, words.now) == ("unknown", (5, "none"), (4, "none"))
    numbers = of_numbers("share", [(None, 0.5), (0.25, None)], [None, 0.5], limit)
    assert (numbers.before, numbers.predicted, numbers.now) == ((0.25,), (0.5,), (0.5,))


def test_the_limit_of_a_quota_is_compared_too() -> None:
    one, two = (pod("a", container("app", "1", limit), qos="Burstable") for limit in ("2", "3"))
    none = pod("a", container("app", "1"), qos="Burstable")

    def quota(before: dict[str, Any], after: dict[str, Any]) -> tuple[Any, ...] | None:
        found = diff(audited(cluster(N1, before), V2_LINEAR, "v2"), now_of(cluster(N1, after), V2_LINEAR))
        return flat(found).get(("default/a", "a", "app", "quota-us"))

    assert quota(one, one) is None
    assert quota(one, two) == ("other-cause", (200000,), (200000,), (300000,))
    assert quota(one, none) == ("other-cause", (200000,), (200000,), ("none",))
    assert quota(none, one) == ("other-cause", ("none",), ("none",), (200000,))


def test_a_neighbour_in_the_pod_that_asks_for_more_explains_a_part_and_no_weight() -> None:
    before = pod("a", container("app", "1"), container("side", "100m"))
    after = pod("a", container("app", "1"), container("side", "2"))
    found = diff(audited(cluster(N1, before), V2_LINEAR, "v2"), now_of(cluster(N1, after), V2_QUADRATIC))
    rows = {key[2:]: row[0] for key, row in flat(found).items()}
    assert rows["app", "weight"] == "unpredicted"
    assert rows["app", "in-pod"] == "other-cause"
    assert rows["side", "weight"] == "other-cause"
    (changed,) = only(found).pods
    assert changed.because[0] == ("it asks for other CPU: side request 100m limit none -> request 2000m limit none")
    gone = diff(
        audited(cluster(N1, before), V2_LINEAR, "v2"), now_of(cluster(N1, pod("a", container("app", "1"))), V2_LINEAR)
    )
    assert only(gone).pods[0].because[0] == "it asks for other CPU: side request 100m limit none -> not there"
    came = diff(
        audited(cluster(N1, pod("a", container("app", "1"))), V2_LINEAR, "v2"), now_of(cluster(N1, before), V2_LINEAR)
    )
    assert only(came).pods[0].because[0] == "it asks for other CPU: side not there -> request 100m limit none"


def test_init_containers_are_not_what_a_pod_asks_for() -> None:
    before, after = starting("one", "100m"), starting("two", "200m", "2")
    found = diff(audited(cluster(N1, before), V2_LINEAR, "v2"), now_of(cluster(N1, after), V2_LINEAR))
    assert only(found).pods[0].because[0] == (
        "it asks for other CPU: app request 1000m limit none -> request 2000m limit none"
    )


def test_the_worst_of_a_pod_may_be_its_own_and_containers_that_stayed_are_left_out() -> None:
    found = diff(audited(cluster(N1, A, GONE), V2_LINEAR, "v2"), now_of(cluster(N1, A), V2_LINEAR))
    (each,) = only(found).pods
    assert (each.outcome, {m.outcome for m in each.measures}) == ("other-cause", {"other-cause"})
    stayed = diff(audited(cluster(N1, A), V2_LINEAR, "v2"), now_of(cluster(N1, A), V2_LINEAR))
    assert only(stayed).pods[0].containers == ()


def test_lone_nodes_and_more_than_one_of_each_are_counted() -> None:
    two = [pod(name, container("app", "1")) for name in ("g1", "g2")]
    before = audited(cluster(N1, N2, *two), V1, "v2")
    found = diff(before, now_of(cluster(node("m1", cpu="16"), NEW | {"spec": NEW["spec"] | {"nodeName": "m1"}})))
    assert found.summary.sentence == (
        "No workload is in both. No node is in both. Nothing moved that nobody predicted. 1 workload is new, 2 workloads "
        "are gone, 1 node is new, 2 nodes are gone."
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
    (new,) = diff(audited(cluster(), ""), now_of(cluster(N1), "")).new_nodes
    assert (new.name, new.allocatable_milli, new.pod_count, new.sure, new.cgroup) == ("n1", 4000, 0, True, ("v1", "v2"))


def incomplete(of: Audit) -> Audit:
    return replace(of, coverage=replace(of.coverage, complete=False))


def test_an_incomplete_side_is_named_and_makes_what_the_other_has_more_unsure() -> None:
    before, after = audited(cluster(N1, A), V2_LINEAR, "v2"), now_of(cluster(N1, A), V2_LINEAR)
    sure, doubt = "Nothing moved that nobody predicted.", "Nothing is known to have moved that nobody predicted."
    assert diff(before, after).summary.sentence.endswith(sure)
    for first, second, name in ((incomplete(before), after, "before"), (before, incomplete(after), "after")):
        summary = diff(first, second).summary
        assert summary.sentence.endswith(doubt)
        assert summary.notes[0].startswith(f"The audit {name} is incomplete: ")
        assert len([note for note in summary.notes if note.startswith("Because of that")]) == 0
    more = now_of(cluster(N1, N2, A), V2_LINEAR)
    for first, second in ((incomplete(before), more), (more, incomplete(before))):
        summary = diff(first, second).summary
        assert len([note for note in summary.notes if note.startswith("Because of that")]) == 1
    for first, second in ((before, incomplete(more)), (incomplete(more), before)):
        summary = diff(first, second).summary
        assert len([note for note in summary.notes if note.startswith("Because of that")]) == 0


def test_what_moved_on_a_node_alone_counts_as_moved_and_is_not_called_nothing() -> None:
    found = diff(audited(cluster(N1), V1, "runtime"), now_of(cluster(N1), V2_LINEAR))
    assert (found.workloads, found.summary.moved) == ((), True)
    assert "Nothing" not in found.summary.sentence


def test_a_node_of_another_size_that_came_true_or_cannot_be_said_keeps_its_outcome() -> None:
    found = diff(audited(cluster(N1), V1, "v2"), now_of(cluster(node("n1", cpu="4100m")), V2_LINEAR))
    (changed,) = found.nodes
    assert {key[1]: row[0] for key, row in of_nodes(found).items()} == {
        "cgroup": "came-true",
        "kubepods": "other-cause",
        "system-slice": "came-true",
        "pods-per-system": "came-true",
    }
    assert changed.because == ("its allocatable CPU was 4000m and is 4100m",)
    slight = diff(audited(cluster(N1), V2_LINEAR, "v2"), now_of(cluster(node("n1", cpu="4001m")), V2_LINEAR))
    assert [(each.outcome, each.because) for each in slight.nodes] == [("unchanged", ())]
    against = now_of(cluster(N1), V2_LINEAR)
    against = replace(against, nodes=tuple(replace(each, contradictions=("a but b",)) for each in against.nodes))
    stayed = diff(audited(cluster(N1), V2_LINEAR, "v2"), against)
    assert [(each.outcome, each.because) for each in stayed.nodes] == [("unchanged", ())]
    as_before = diff(audited(cluster(N1), V1, "v2"), now_of(cluster(node("n1", cpu="8")), V1))
    assert {key[1]: row[0] for key, row in of_nodes(as_before).items()} == {
        "cgroup": "as-before",
        "kubepods": "other-cause",
        "system-slice": "as-before",
        "pods-per-system": "other-cause",
    }


def test_a_handler_that_only_one_side_has_is_not_compared() -> None:
    before, after = audited(cluster(N1), V2_LINEAR, "v2"), now_of(cluster(N1), V2_LINEAR)

    def with_another(of: Audit) -> Audit:
        (found,) = of.nodes
        (case,) = found.cases
        moments = [
            replace(each, runtimes={**each.runtimes, "more": "runc 1.1.15 (linear)"})
            for each in (case.before, case.after)
        ]
        return replace(of, nodes=(replace(found, cases=(replace(case, before=moments[0], after=moments[1]),)),))

    assert of_nodes(diff(with_another(before), after)) == of_nodes(diff(before, with_another(after))) == {}


def test_a_node_that_is_unknown_in_many_cases_still_says_what_all_agree_on() -> None:
    found = diff(audited(cluster(N1, A), V1, "runtime"), now_of(cluster(N1, A), "- {cgroup: v2}"))
    assert {key[1]: row[0] for key, row in of_nodes(found).items()}["cgroup"] == "unpredicted"


def test_what_is_at_the_root_is_the_same_ground_where_both_know_it_by_the_same_right() -> None:
    one = first_node()

    def knowing(what: str, confidence: str) -> NodeAudit:
        from kubectl_cgaudit.judge.audit import Known

        return replace(one, known={**one.known, what: Known("x", confidence, "test")})

    for what in ("system_slice", "root"):
        bare = replace(one, known={})
        assert same_ground(bare, knowing(what, "hint")), what
        assert same_ground(bare, knowing(what, "unknown")), what
        assert not same_ground(
            replace(bare, known={}), replace(bare, known={what: knowing(what, "measured").known[what]})
        )


def test_a_number_that_moved_only_from_what_was_predicted_is_unchanged() -> None:
    assert within(1.0, 0.92, 1.02, Limit(0.10, 0.10)) == "unchanged"


def test_many_numbers_are_in_order() -> None:
    numbers = [3.0, 0.75, 2.0, 0.5, 0.25, 1.0]
    found = of_numbers("share", [(each, each) for each in numbers], numbers, Limit(0.1, 0.1))
    assert found.before == found.predicted == found.now == (0.25, 0.5, 0.75, 1.0, 2.0, 3.0)


def test_where_a_change_was_predicted_nothing_of_the_same_cgroup_moved_unpredicted() -> None:
    changed = Measure("weight", "", "came-true", ("a",), ("b",), ("b",))
    moved = Measure("quota-us", "", "unpredicted", (1,), (1,), (2,))
    stayed = Measure("share", "", "unchanged", (1.0,), (1.0,), (1.0,))
    assert [each.outcome for each in consistent([changed, moved, stayed])] == ["came-true", "otherwise", "unchanged"]
    assert [each.outcome for each in consistent([moved, stayed])] == ["unpredicted", "unchanged"]


def test_weights_can_come_true_where_nothing_can_be_said_of_the_root() -> None:
    told = f"{V2_QUADRATIC}\n- {{system_slice: 20}}"
    found = diff(audited(cluster(N1, A), V2_LINEAR, "runtime"), now_of(cluster(N1, A), told))
    rows = {key[2:]: row[0] for key, row in flat(found).items()}
    assert rows["app", "weight"] == "came-true"
    assert {rows["", "share"], rows["", "against-system"]} == {"unknown"}


def test_a_node_whose_cgroups_are_untold_moved_nothing() -> None:
    after = now_of(cluster(N1, A), V2_LINEAR)
    untold = replace(after, nodes=tuple(replace(each, confidence="unknown") for each in after.nodes))
    found = diff(audited(cluster(N1, A), V1, "runtime"), untold)
    assert {row[0] for row in (*of_nodes(found).values(), *flat(found).values())} == {"unknown"}


def test_another_limit_does_not_explain_a_weight_that_came_true() -> None:
    one, two = (pod("a", container("app", "1", limit)) for limit in ("2", "3"))
    found = diff(audited(cluster(N1, one), V1, "v2"), now_of(cluster(N1, two), V2_LINEAR))
    rows = {key[2:]: row[0] for key, row in flat(found).items()}
    assert (rows["app", "weight"], rows["app", "quota-us"]) == ("came-true", "other-cause")


def test_a_share_that_moved_with_the_same_pods_has_no_other_cause() -> None:
    small, large = (f"{V2_LINEAR}\n- {{system_slice: {weight}}}" for weight in (20, 500))
    found = diff(audited(cluster(N1, A), small, "v2"), now_of(cluster(N1, A), large))
    (each,) = only(found).pods
    assert {m.what: m.outcome for m in each.measures} == {"share": "unpredicted", "against-system": "unpredicted"}
    assert each.because == ()


def test_pods_that_are_not_reported_explain_a_share_too() -> None:
    """The audit is of namespace default; what else runs on the node is counted, not named."""
    before, after = audited(cluster(N1, A), V2_LINEAR, "v2"), now_of(cluster(N1, A, NEW, GONE), V2_LINEAR)
    filtered = replace(after, workloads=tuple(each for each in after.workloads if each.name == "a"))
    (each,) = only(diff(before, filtered)).pods
    assert {m.outcome for m in each.measures} == {"other-cause"}
    assert each.because == ("n1 has other pods now, or pods that ask for other CPU, or another size",)


def test_one_workload_or_one_node_in_doubt_is_enough_to_say_so() -> None:
    doubt = "Nothing is known to have moved that nobody predicted."
    told = f"{V2_LINEAR}\n- {{system_slice: 20}}"
    found = diff(audited(cluster(N1), V2_LINEAR, "v2"), now_of(cluster(N1), told))
    assert found.summary.sentence.endswith(doubt)
    before, after = audited(cluster(N1, A), V2_LINEAR, "v2"), now_of(cluster(N1, A), V2_LINEAR)
    half = replace(after, workloads=tuple(replace(each, unpredicted_pods=1) for each in after.workloads))
    assert diff(before, half).summary.sentence.endswith(doubt)
