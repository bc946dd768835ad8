"""What cannot be said of two moments."""

from typing import Any

import polars as pl
import pytest
from msgspec.structs import replace

from kubectl_cgaudit.audit.model import Audit, NodeRecord
from kubectl_cgaudit.audit.records import Containers
from kubectl_cgaudit.audit.saved import Saved
from kubectl_cgaudit.compare.diff.build import diff
from kubectl_cgaudit.compare.diff.nodes import same_ground
from kubectl_cgaudit.report import diff_content, diff_table
from tests.diff_support import BOTH, N1, N2, A, flat, now_of, of_nodes, only, told
from tests.support import V1, V2_LINEAR, V2_QUADRATIC, cluster, container, pod, saved


def first_node(rules: str = V1, **fields: Any) -> NodeRecord:
    """A node's audit; `fields` are of its only moment before."""
    (found,) = saved(cluster(N1, A), rules).audit.nodes
    (case,) = found.cases
    assert case.before is not None
    return replace(found, cases=(replace(case, before=replace(case.before, **fields)),))


def test_pods_that_could_not_be_read_leave_the_workload_open() -> None:
    before, after = saved(cluster(N1, A), V2_LINEAR, "v2"), now_of(cluster(N1, A), V2_LINEAR)
    assert only(diff(before, after)).outcome == "unchanged"

    def half_read(of: Saved) -> Saved:
        return told(of, workloads=tuple(replace(each, unpredicted_pods=1) for each in of.audit.workloads))

    assert only(diff(half_read(before), after)).outcome == "unknown"
    assert only(diff(before, half_read(after))).outcome == "unknown"
    assert only(diff(before, half_read(after))).unpredicted_pods == 1
    none = after._replace(containers=Containers(lambda: iter(())))
    assert only(diff(before, none)).outcome == "unknown"
    lone = diff(saved(cluster(N1), V1), half_read(after)).new_workloads
    assert [each.pod_count for each in lone] == [2]


def test_pods_that_could_not_be_read_are_not_called_all_of_the_workloads_pods() -> None:
    def of_set(name: str, on: str) -> dict[str, Any]:
        return pod(name, container("app", "1"), on=on, owner=("DaemonSet", "web"))

    def unread(before: Audit, after: Audit) -> tuple[str, str, list[str]]:
        found = diff(before, after)
        (row,) = [each for each in diff_content.workload_rows(found.workloads) if each.outcome == "unknown"]
        heads = [line for line in diff_table.render(found).splitlines() if line.startswith("default/web ds: unknown")]
        return diff_content.change(row), diff_content.pods(row), heads

    one, two = of_set("a", "n1"), [of_set(name, "gone") for name in ("b", "c")]
    half, whole = saved(cluster(N1, one, *two), V2_LINEAR, "v2"), saved(cluster(N1, one), V2_LINEAR, "v2")
    nothing = saved(cluster(N1, two[0]), V2_LINEAR, "v2")
    why = "cannot be compared: {} node, or what is needed of it, was not read"
    assert unread(half, whole) == (
        f"some pods it had {why.format('their')}",
        "0/1",
        ["default/web ds: unknown, 0/1 pods"],
    )
    assert unread(whole, half) == (f"2 pods {why.format('their')}", "0/1", ["default/web ds: unknown, 0/1 pods"])
    assert unread(whole, nothing) == (f"1 pod {why.format('its')}", "", ["default/web ds: unknown"])
    assert unread(nothing, whole) == (f"its pods {why.format('their')}", "", ["default/web ds: unknown"])


def incomplete(of: Saved) -> Saved:
    return told(of, coverage=replace(of.audit.coverage, complete=False))


def test_an_incomplete_side_is_named_and_makes_what_the_other_has_more_unsure() -> None:
    before, after = saved(cluster(N1, A), V2_LINEAR, "v2"), now_of(cluster(N1, A), V2_LINEAR)
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
    found = diff(saved(cluster(N1), V1, "runtime"), now_of(cluster(N1), V2_LINEAR))
    assert (found.workloads, found.summary.moved) == ((), True)
    assert "Nothing" not in found.summary.sentence


def test_a_handler_that_only_one_side_has_is_not_compared() -> None:
    before, after = saved(cluster(N1), V2_LINEAR, "v2"), now_of(cluster(N1), V2_LINEAR)

    def with_another(of: Saved) -> Saved:
        (found,) = of.audit.nodes
        (case,) = found.cases
        before, after = (
            each and replace(each, runtimes={**each.runtimes, "more": "runc 1.1.15 (linear)"})
            for each in (case.before, case.after)
        )
        return told(of, nodes=(replace(found, cases=(replace(case, before=before, after=after),)),))

    assert of_nodes(diff(with_another(before), after)) == of_nodes(diff(before, with_another(after))) == {}


def test_a_node_that_is_unknown_in_many_cases_still_says_what_all_agree_on() -> None:
    found = diff(saved(cluster(N1, A), V1, "runtime"), now_of(cluster(N1, A), "- {cgroup: v2}"))
    assert {key[1]: row[0] for key, row in of_nodes(found).items()}["cgroup"] == "unpredicted"


def test_what_is_at_the_root_is_the_same_ground_where_both_know_it_by_the_same_right() -> None:
    one = first_node()

    def knowing(what: str, confidence: str) -> NodeRecord:
        from kubectl_cgaudit.audit.model import Known

        return replace(one, known={**one.known, what: Known("x", confidence, "test")})

    for what in ("system_slice", "root"):
        bare = replace(one, known={})
        assert same_ground(bare, knowing(what, "probable")), what
        assert same_ground(bare, knowing(what, "unknown")), what
        assert not same_ground(
            replace(bare, known={}), replace(bare, known={what: knowing(what, "measured").known[what]})
        )


def test_weights_can_come_true_where_nothing_can_be_said_of_the_root() -> None:
    told = f"{V2_QUADRATIC}\n- {{system_slice: 20}}"
    found = diff(saved(cluster(N1, A), V2_LINEAR, "runtime"), now_of(cluster(N1, A), told))
    rows = {key[2:]: row[0] for key, row in flat(found).items()}
    assert rows["app", "weight"] == "came-true"
    assert {rows["", "share"], rows["", "against-system"]} == {"unknown"}


def test_a_node_whose_cgroups_are_untold_moved_nothing() -> None:
    after = now_of(cluster(N1, A), V2_LINEAR)
    untold = told(after, nodes=tuple(replace(each, confidence="unknown") for each in after.audit.nodes))
    found = diff(saved(cluster(N1, A), V1, "runtime"), untold)
    assert {row[0] for row in (*of_nodes(found).values(), *flat(found).values())} == {"unknown"}


def test_nothing_came_true_of_a_node_of_whose_cgroups_nothing_could_be_said() -> None:
    before = saved(cluster(N1, A), V2_LINEAR, "runtime")
    untold = told(before, nodes=tuple(replace(each, confidence="unknown") for each in before.audit.nodes))
    found = diff(untold, now_of(cluster(N1, A), V2_QUADRATIC))
    assert {row[0] for row in (*of_nodes(found).values(), *flat(found).values())} == {"unknown"}
    assert found.summary.notes[0] == "What ran before on n1 is not known, so what depends on it cannot be said."


def test_what_moved_whatever_ran_before_is_known_to_have_moved() -> None:
    """Of linear a change was predicted, of quadratic none; it is neither now."""
    found = diff(
        saved(cluster(N1, A), "- {cgroup: v2}", "runtime"),
        now_of(cluster(N1, A), "- {cgroup: v2, runtimes: {default: kata}}"),
    )
    assert of_nodes(found) == {
        ("n1", "runtime", "default"): ("otherwise", ("linear", "quadratic"), ("quadratic",), ("none",))
    }
    (row,) = diff_content.node_rows(found.nodes)
    assert diff_content.change(row) == "linear or quadratic -> none, not quadratic"
    assert flat(found)["default/a", "a", "app", "weight"][0] == "otherwise"
    assert (found.summary.moved, "Nothing" in found.summary.sentence) == (True, False)


def test_evidence_against_one_node_is_enough_to_doubt() -> None:
    before, after = saved(cluster(N1, N2, A), V2_LINEAR, "v2"), now_of(cluster(N1, N2, A), V2_LINEAR)
    first, second = after.audit.nodes
    found = diff(before, told(after, nodes=(first, replace(second, contradictions=("a but b",)))))
    assert found.summary.workloads["unchanged"] == 1
    assert found.summary.sentence.endswith("Nothing is known to have moved that nobody predicted.")


def test_one_workload_or_one_node_in_doubt_is_enough_to_say_so() -> None:
    doubt = "Nothing is known to have moved that nobody predicted."
    states = f"{V2_LINEAR}\n- {{system_slice: 20}}"
    found = diff(saved(cluster(N1), V2_LINEAR, "v2"), now_of(cluster(N1), states))
    assert found.summary.sentence.endswith(doubt)
    before, after = saved(cluster(N1, A), V2_LINEAR, "v2"), now_of(cluster(N1, A), V2_LINEAR)
    half = told(after, workloads=tuple(replace(each, unpredicted_pods=1) for each in after.audit.workloads))
    assert diff(before, half).summary.sentence.endswith(doubt)


@pytest.mark.parametrize("rules", ["", "- {cgroup: v2}", "- {runtimes: {default: runc 1.3.6}}"])
def test_what_is_not_known_never_came_true(rules: str) -> None:
    found = diff(saved(cluster(N1, A), V1), now_of(cluster(N1, A), rules))
    containers = list(only(found).pods[0].containers)
    assert {m.outcome for part in containers for m in part.measures} == {"unknown"}
    assert only(found).outcome == "unknown"
    assert only(found).pods[0].confidence == "unknown"
    assert found.summary.notes[-1].startswith("What runs now on n1 is not known, so what depends on it cannot be said")
    assert "Nothing is known to have moved that nobody predicted." in found.summary.sentence


def test_what_was_not_known_before_cannot_be_said() -> None:
    found = diff(saved(cluster(N1, A), ""), now_of(cluster(N1, A), BOTH))
    assert flat(found)["default/a", "a", "app", "weight"] == (
        "unknown",
        ("shares 1024", "weight 100", "weight 39"),
        ("weight 100",),
        ("weight 100",),
    )


def test_a_node_without_a_kubepods_tree_says_nothing() -> None:
    before, after = saved(cluster(N1, A), V1), now_of(cluster(N1, A), BOTH)
    untold = told(after, nodes=tuple(replace(each, confidence="unknown") for each in after.audit.nodes))
    unknown = [table.with_columns(confidence=pl.lit("unknown")) for table in after.containers.frames()]
    untold = untold._replace(containers=Containers(lambda: iter(unknown)))
    found = diff(before, untold)
    assert {row[0] for row in (*of_nodes(found).values(), *flat(found).values())} == {"unknown"}


def test_an_open_row_says_which_side_is_open() -> None:
    def weight_row(before: str, after: str) -> tuple[str, tuple[str, ...]]:
        found = diff(saved(cluster(N1, A), before, "runtime"), now_of(cluster(N1, A), after))
        (row,) = [row for row in diff_content.workload_rows(found.workloads) if row.what == "app weight"]
        return diff_content.change(row), row.because

    was, now = "what ran there before is not known", "what runs there now is not known"
    half = "- {cgroup: v2}"
    assert weight_row(half, BOTH) == ("? -> weight 100", (was,))
    assert weight_row(V2_LINEAR, half) == ("weight 39 -> ?", (now,))
    assert weight_row(half, half) == ("? -> ?", (was, now))
    # On v1 the formula decides nothing yet: what was is known, and what was predicted is not.
    two = cluster(N1, pod("a", container("app", "100m"), container("side", "50m")))
    (row,) = [
        row
        for row in diff_content.workload_rows(diff(saved(two, "- {cgroup: v1}", "v2"), now_of(two, V1)).workloads)
        if row.what == "app in pod"
    ]
    assert diff_content.change(row) == "67% -> 67%, said 61% or 67%"
    assert row.because == (f"{was}, and decides what was predicted",)
    found = diff(saved(cluster(N1, A), half, "runtime"), now_of(cluster(N1, A), BOTH))
    assert found.summary.notes[0] == "What ran before on n1 is not known, so what depends on it cannot be said."
    assert not [note for note in found.summary.notes if note.startswith("What runs now on n1 is not known")]


def test_what_came_true_by_the_states_file_alone_is_said_to_rest_on_it() -> None:
    """Whatever else is only likely of the node, as the kubelet's formula is."""
    objects = cluster(N1, A)
    before = saved(objects, V2_LINEAR, "runtime")
    found = diff(before, now_of(objects, V2_QUADRATIC))
    assert found.summary.workloads["came-true"] == 1
    assert found.summary.notes == (
        "What runs now on n1 is taken from the states file, not measured: what came true rests on it.",
    )
    same = diff(saved(objects, V2_QUADRATIC, "runtime"), now_of(objects, V2_QUADRATIC))
    assert same.summary.notes == ()
