"""Which node and which pod of the second audit stands for which of the first."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.audit.model import NodeRecord
from kubectl_cgaudit.compare.diff import match
from kubectl_cgaudit.compare.diff.build import diff
from kubectl_cgaudit.compare.diff.moments import PodCases, side
from tests.diff_support import N1, A, now_of, only
from tests.support import V1, V2_LINEAR, cluster, container, pod, saved


def first_node(rules: str = V1, **fields: Any) -> NodeRecord:
    """A node's audit; `fields` are of its only moment before."""
    (found,) = saved(cluster(N1, A), rules).audit.nodes
    (case,) = found.cases
    assert case.before is not None
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


def first_pod(*containers: dict[str, Any], qos: str = "Burstable", **spec: Any) -> PodCases:
    (workload,) = side(saved(cluster(N1, pod("a", *containers, qos=qos, **spec)), V1)).workloads
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


def audited_pod(raw: dict[str, Any]) -> PodCases:
    (workload,) = side(saved(cluster(N1, raw), V1)).workloads
    (found,) = workload.pods
    return found


def sized(name: str, milli: int, node: NodeRecord) -> NodeRecord:
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


def test_new_nodes_that_are_not_guessed_are_in_order_of_their_names() -> None:
    other, usual = first_node(cgroup="v2"), first_node()
    before = [
        sized(f"{kind}{size}", size, each) for size in (1000, 2000) for kind, each in (("a", usual), ("b", other))
    ]
    after = [sized("m3", 1000, usual), sized("m1", 2000, usual), sized("m2", 1000, usual)]
    assert match.nodes(before, after).ambiguous == ("m1", "m2", "m3")


def named(name: str, on: str, request: str = "1") -> PodCases:
    return replace(first_pod(container("app", request)), name=name, node=on)


def paired(before: list[PodCases], after: list[PodCases]) -> list[tuple[str, str]]:
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


def test_init_containers_are_not_what_a_pod_asks_for() -> None:
    before, after = starting("one", "100m"), starting("two", "200m", "2")
    found = diff(saved(cluster(N1, before), V2_LINEAR, "v2"), now_of(cluster(N1, after), V2_LINEAR))
    assert only(found).pods[0].because[0] == (
        "it asks for other CPU: app request 1000m limit none -> request 2000m limit none"
    )
