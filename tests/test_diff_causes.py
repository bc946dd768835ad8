"""What explains a difference that nobody predicted: other pods, another node, another request."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.compare.diff.build import diff
from kubectl_cgaudit.compare.diff.types import Diff, Measure, PodDiff
from tests.diff_support import GONE, N1, NEW, A, flat, now_of, of_nodes, only, told
from tests.support import V1, V2_LINEAR, V2_QUADRATIC, cluster, container, node, pod, saved


def test_other_pods_on_a_node_are_noticed_though_they_are_as_many() -> None:
    """What explains a share that moved: other pods, another request of a neighbour, another size; and nothing else."""

    def share(before: tuple[Any, ...], after: tuple[Any, ...], rules: str = V2_LINEAR) -> tuple[str, tuple[str, ...]]:
        found = diff(saved(cluster(N1, *before), V2_LINEAR, "runtime"), now_of(cluster(N1, *after), rules))
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
    before = saved(cluster(N1, n3, pod("a", container("app", "1"))), rules, "runtime")
    found = diff(before, now_of(cluster(N1, n3, pod("a", container("app", "1"), on="n3")), rules))
    (moved,) = only(found).pods
    assert (moved.outcome, moved.because[0]) == (
        "other-cause",
        "it was on n1 and is on n3, for which something else or nothing was predicted",
    )
    same = saved(cluster(N1, n3, pod("a", container("app", "1"))), V2_LINEAR, "runtime")
    stayed = diff(same, now_of(cluster(N1, n3, pod("a", container("app", "1"), on="n3")), V1))
    assert only(stayed).outcome == "unpredicted"


def test_the_limit_of_a_quota_is_compared_too() -> None:
    one, two = (pod("a", container("app", "1", limit), qos="Burstable") for limit in ("2", "3"))
    none = pod("a", container("app", "1"), qos="Burstable")

    def quota(before: dict[str, Any], after: dict[str, Any]) -> tuple[Any, ...] | None:
        found = diff(saved(cluster(N1, before), V2_LINEAR, "v2"), now_of(cluster(N1, after), V2_LINEAR))
        return flat(found).get(("default/a", "a", "app", "quota-us"))

    assert quota(one, one) is None
    assert quota(one, two) == ("other-cause", (200000,), (200000,), (300000,))
    assert quota(one, none) == ("other-cause", (200000,), (200000,), ("none",))
    assert quota(none, one) == ("other-cause", ("none",), ("none",), (200000,))


def test_a_neighbour_in_the_pod_that_asks_for_more_explains_a_part_and_no_weight() -> None:
    before = pod("a", container("app", "1"), container("side", "100m"))
    after = pod("a", container("app", "1"), container("side", "2"))
    found = diff(saved(cluster(N1, before), V2_LINEAR, "v2"), now_of(cluster(N1, after), V2_QUADRATIC))
    rows = {key[2:]: row[0] for key, row in flat(found).items()}
    assert rows["app", "weight"] == "unpredicted"
    assert rows["app", "in-pod"] == "other-cause"
    assert rows["side", "weight"] == "other-cause"
    (changed,) = only(found).pods
    assert changed.because[0] == ("it asks for other CPU: side request 100m limit none -> request 2000m limit none")
    gone = diff(
        saved(cluster(N1, before), V2_LINEAR, "v2"), now_of(cluster(N1, pod("a", container("app", "1"))), V2_LINEAR)
    )
    assert only(gone).pods[0].because[0] == "it asks for other CPU: side request 100m limit none -> not there"
    came = diff(
        saved(cluster(N1, pod("a", container("app", "1"))), V2_LINEAR, "v2"), now_of(cluster(N1, before), V2_LINEAR)
    )
    assert only(came).pods[0].because[0] == "it asks for other CPU: side not there -> request 100m limit none"


def test_the_worst_of_a_pod_may_be_its_own_and_containers_that_stayed_are_left_out() -> None:
    found = diff(saved(cluster(N1, A, GONE), V2_LINEAR, "v2"), now_of(cluster(N1, A), V2_LINEAR))
    (each,) = only(found).pods
    assert (each.outcome, {m.outcome for m in each.measures}) == ("other-cause", {"other-cause"})
    stayed = diff(saved(cluster(N1, A), V2_LINEAR, "v2"), now_of(cluster(N1, A), V2_LINEAR))
    assert only(stayed).pods[0].containers == ()


def test_a_node_of_another_size_that_came_true_or_cannot_be_said_keeps_its_outcome() -> None:
    found = diff(saved(cluster(N1), V1, "v2"), now_of(cluster(node("n1", cpu="4100m")), V2_LINEAR))
    (changed,) = found.nodes
    assert {key[1]: row[0] for key, row in of_nodes(found).items()} == {
        "cgroup": "came-true",
        "kubepods": "other-cause",
        "system-slice": "came-true",
        "pods-per-system": "came-true",
    }
    assert changed.because == ("its allocatable CPU was 4000m and is 4100m",)
    slight = diff(saved(cluster(N1), V2_LINEAR, "v2"), now_of(cluster(node("n1", cpu="4001m")), V2_LINEAR))
    assert [(each.outcome, each.because) for each in slight.nodes] == [("unchanged", ())]
    against = now_of(cluster(N1), V2_LINEAR)
    against = told(against, nodes=tuple(replace(each, contradictions=("a but b",)) for each in against.audit.nodes))
    stayed = diff(saved(cluster(N1), V2_LINEAR, "v2"), against)
    assert [(each.outcome, each.because) for each in stayed.nodes] == [("unchanged", ())]
    as_before = diff(saved(cluster(N1), V1, "v2"), now_of(cluster(node("n1", cpu="8")), V1))
    assert {key[1]: row[0] for key, row in of_nodes(as_before).items()} == {
        "cgroup": "as-before",
        "kubepods": "other-cause",
        "system-slice": "as-before",
        "pods-per-system": "other-cause",
    }


def test_a_container_that_is_gone_did_not_stay_as_predicted() -> None:
    old, new = pod("a", container("old", "1")), pod("a", container("new", "1"))
    found = diff(saved(cluster(N1, old), V2_LINEAR, "runtime"), now_of(cluster(N1, new), V2_QUADRATIC))
    assert flat(found) == {
        ("default/a", "a", "old", "weight"): ("other-cause", ("weight 39",), ("weight 100",), ("not there",))
    }
    why = "it asks for other CPU: new not there -> request 1000m limit none, old request 1000m limit none -> not there"
    assert (only(found).outcome, only(found).pods[0].because) == ("other-cause", (why,))
    # Nothing was to change of it.
    stays = diff(saved(cluster(N1, old), V2_LINEAR, "v2"), now_of(cluster(N1, new), V2_LINEAR))
    assert only(stays).outcome == "unchanged"


def test_another_limit_does_not_explain_a_weight_that_came_true() -> None:
    one, two = (pod("a", container("app", "1", limit)) for limit in ("2", "3"))
    found = diff(saved(cluster(N1, one), V1, "v2"), now_of(cluster(N1, two), V2_LINEAR))
    rows = {key[2:]: row[0] for key, row in flat(found).items()}
    assert (rows["app", "weight"], rows["app", "quota-us"]) == ("came-true", "other-cause")


def test_a_share_that_moved_with_the_same_pods_has_no_other_cause() -> None:
    small, large = (f"{V2_LINEAR}\n- {{system_slice: {weight}}}" for weight in (20, 500))
    found = diff(saved(cluster(N1, A), small, "v2"), now_of(cluster(N1, A), large))
    (each,) = only(found).pods
    assert {m.what: m.outcome for m in each.measures} == {"share": "unpredicted", "against-system": "unpredicted"}
    assert each.because == ()


def test_pods_that_are_not_reported_explain_a_share_too() -> None:
    """The audit is of namespace default; what else runs on the node is counted, not named."""
    before, after = saved(cluster(N1, A), V2_LINEAR, "v2"), now_of(cluster(N1, A, NEW, GONE), V2_LINEAR)
    filtered = told(after, workloads=tuple(each for each in after.audit.workloads if each.name == "a"))
    (each,) = only(diff(before, filtered)).pods
    assert {m.outcome for m in each.measures} == {"other-cause"}
    assert each.because == ("n1 has other pods now, or pods that ask for other CPU, or another size",)


def test_a_share_that_stayed_because_others_came_has_their_cause() -> None:
    """All of it was migrated: it is not as before."""
    small = pod("b", container("app", "1"))
    before = saved(cluster(N1, pod("a", container("app", "1")), small), V1, "v2")
    gone = diff(before, now_of(cluster(N1, pod("a", container("app", "1"))), V2_LINEAR))
    (mine,) = only_of(gone, "a")
    assert {measure.what: measure.outcome for measure in mine.measures} == {
        "weight": "came-true",
        "share": "other-cause",
        "against-system": "other-cause",
    }


def only_of(found: Diff, name: str) -> tuple[PodDiff, ...]:
    return next(each.pods for each in found.workloads if each.name == name)


def test_another_handler_is_another_request() -> None:
    classes = [{"kind": "RuntimeClass", "apiVersion": "node.k8s.io/v1", "metadata": {"name": "old"}, "handler": "old"}]
    rules = "- {cgroup: v2, runtimes: {default: runc 1.3.6, old: runc 1.1.5}}"
    two = container("app", "1"), container("side", "100m")
    before = saved(cluster(N1, *classes, pod("a", *two)), rules, "runtime")
    found = diff(before, now_of(cluster(N1, *classes, pod("a", *two, runtimeClassName="old")), rules))
    (mine,) = only(found).pods
    assert (mine.outcome, mine.because) == ("other-cause", ("it asks for other CPU: handler default -> old",))


@pytest.mark.parametrize(
    ("now", "kubelet"), [("v1.35.0", "was v1.33.13 and is v1.35.0"), ("v1.33.13", "is still v1.33.13")]
)
def test_a_pod_that_was_said_not_to_run_and_runs_is_as_before(now: str, kubelet: str) -> None:
    """No number of it changes: that was shown as predicted. The kubelet tells whether the move was made at all."""
    before = saved(cluster(N1, pod("a", container("app", "1"))), V1, "kubelet=1.35")
    found = diff(before, now_of(cluster(node(kubelet=now), pod("a", container("app", "1"))), V1))
    (mine,) = only(found).pods
    assert (mine.outcome, mine.because) == (
        "as-before",
        (f"it was said not to run after the move, and it runs; its kubelet {kubelet}",),
    )
    measure = Measure("fate", "", "as-before", ("runs",), ("stops",), ("runs",))
    assert mine.measures == (measure,)
    (machine,) = found.nodes
    assert (machine.outcome, machine.because, machine.measures) == ("as-before", mine.because, (measure,))
    assert found.summary.sentence == (
        "Of 1 workload in both: 1 still as before, though a change was predicted. "
        "Of 1 node in both: 1 still as before, though a change was predicted. Nothing moved that nobody predicted."
    )


def test_whether_a_node_that_may_stop_was_said_to_stop_is_open_and_another_in_its_place_did_not_come_back() -> None:
    a = pod("a", container("app", "1"))
    rules = V1.replace("cgroup: v1, ", "")
    open_ = diff(saved(cluster(N1, a), rules, "kubelet=1.35"), now_of(cluster(N1, a), V1))
    (machine,) = open_.nodes
    assert of_nodes(open_)["n1", "fate", ""] == ("unknown", ("runs",), ("runs", "stops"), ("runs",))
    assert (machine.outcome, machine.because) == ("unknown", ())
    stops = saved(cluster(N1, a), V1, "kubelet=1.35")
    other = diff(stops, now_of(cluster(node("n7"), pod("a", container("app", "1"), on="n7")), V1))
    assert [(each.replaces, each.outcome, each.measures) for each in other.nodes] == [("n1", "unchanged", ())]


def test_a_workload_whose_pods_wait_for_a_node_is_not_surely_gone() -> None:
    pods = [pod("a", container("app", "1")), pod("b", container("app", "1"))]
    before = saved(cluster(N1, *pods), V1, "v2")
    found = diff(
        before, now_of(cluster(N1, pods[0], pod("b", container("app", "1"), on=None, phase="Pending")), V2_LINEAR)
    )
    assert [(each.name, each.sure) for each in found.gone_workloads] == [("b", False)]
    assert found.summary.sentence.endswith("1 workload may be gone.")
    other = diff(
        before, now_of(cluster(N1, pods[0], pod("b2", container("app", "1"), on=None, phase="Pending")), V2_LINEAR)
    )
    assert [(each.name, each.sure) for each in other.gone_workloads] == [("b", True)]
    assert "1 workload is gone" in other.summary.sentence
    assert (
        "As pods wait for a node, or owners were read of one moment only, it cannot be said whether all that is shown as new "
        "or gone really is." in found.summary.notes
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"initContainers": [container("init", "1")]},
        {"overhead": {"cpu": "900m"}},
        {"resources": {"requests": {"cpu": "1"}}},
    ],
    ids=["init container", "overhead", "the pod's own request"],
)
def test_what_a_pod_asks_for_beside_its_containers_explains_it_and_its_neighbours(changed: dict[str, Any]) -> None:
    new = node(kubelet="v1.34.1")
    beside = pod("b", container("app", "500m"))
    before = saved(cluster(new, pod("a", container("app", "100m")), beside), V2_LINEAR, "runtime")
    found = diff(before, now_of(cluster(new, pod("a", container("app", "100m"), **changed), beside), V2_QUADRATIC))
    said = {each.name: (each.outcome, each.pods[0].because) for each in found.workloads}
    assert said == {
        "a": ("other-cause", ("it asks for other CPU: all of it, weight 4 -> 39",)),
        "b": ("other-cause", ("n1 has other pods now, or pods that ask for other CPU, or another size",)),
    }
    assert not found.summary.moved
