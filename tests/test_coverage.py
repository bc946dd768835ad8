"""What was not read, in words: one or many, and what is no gap."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kubectl_cgaudit.audit.coverage import cover
from kubectl_cgaudit.audit.saved import Saved
from kubectl_cgaudit.collect.assemble import Assembly, with_answers
from kubectl_cgaudit.collect.model import KubeletAnswers
from kubectl_cgaudit.compare.diff.build import diff
from kubectl_cgaudit.report.diff_content import side
from tests.measured_support import CONFIG, answers
from tests.support import (
    STATES,
    V2_LINEAR,
    audited,
    cluster,
    container,
    node,
    pod,
    pod_values,
    recorded,
    rendered,
    saved,
)


def gaps(*objects: dict[str, Any]) -> dict[str, str]:
    return {each.what: each.why for each in audited(cluster(*objects), V2_LINEAR).coverage.gaps}


def test_one_or_many_classes_that_nobody_read() -> None:
    def of(*names: str) -> dict[str, str]:
        pods = [pod(f"p{name}", container("c", "1"), runtimeClassName=name) for name in names]
        return gaps(node(), *pods)

    assert of("a") == {"RuntimeClass a": "pods name it, and it was not read: the name is taken for the handler's"}
    assert of("a", "b") == {
        "2 RuntimeClasses (a, b)": "pods name them, and they were not read: the name is taken for the handler's"
    }


def test_classes_of_pods_that_have_no_cgroup_are_none() -> None:
    nodes = (node(), node("w", operatingSystem="windows"), node("v", labels={"type": "virtual-kubelet"}))
    pods = [pod(f"p{on}", container("c", "1"), on=on, runtimeClassName=f"of-{on}") for on in ("n1", "w", "v", "gone")]
    assert list(gaps(*nodes, *pods)) == ["node gone", "2 RuntimeClasses (of-gone, of-n1)"]


def test_classes_that_are_not_among_those_that_were_read() -> None:
    other = {"kind": "RuntimeClass", "apiVersion": "node.k8s.io/v1", "metadata": {"name": "other"}, "handler": "crun"}

    def of(*names: str) -> list[tuple[str, str, str]]:
        pods = [pod(f"p{name}", container("c", "1"), runtimeClassName=name) for name in ("other", *names)]
        found = audited(cluster(node(), other, *pods), V2_LINEAR).coverage.gaps
        return [(each.what, each.why, each.remedy) for each in found]

    assert of() == []
    assert of("a") == [
        (
            "RuntimeClass a",
            "pods name it, and it is not among the RuntimeClasses that were read: the name is taken for the handler's",
            "See kubectl get runtimeclasses: without it such pods cannot be created anew; if it is there, read all of them",
        )
    ]
    assert of("a", "b") == [
        (
            "2 RuntimeClasses (a, b)",
            "pods name them, and they are not among the RuntimeClasses that were read: the name is taken for the handler's",
            "See kubectl get runtimeclasses: without them such pods cannot be created anew; if they are there, read all of them",
        )
    ]


def test_one_or_many_nodes_that_nobody_read() -> None:
    one = gaps(node(), pod("p", container("c", "1"), on="gone"))
    assert one == {"node gone": "1 pod runs there, but the Node is not among what was read"}
    many = gaps(node(), *(pod(f"p{name}", container("c", "1"), on=f"m{name:02}") for name in range(30)))
    ((what, why),) = many.items()
    assert what.startswith("30 nodes (m00, m01, ")
    listed = what.count(", m") + 1
    assert what.endswith(f" and {30 - listed} more)")
    assert why == "30 pods run there, but the Node is not among what was read"


def test_a_gap_has_all_of_a_list_of_which_its_name_has_the_first() -> None:
    names = tuple(f"m{number}" for number in range(7))

    def listed(rules: str, *objects: dict[str, Any], **config: Any) -> list[tuple[str, str, tuple[str, ...]]]:
        pods = [pod(f"p{name}", container("c", "1"), on=name) for name in names]
        kubelets = {name: replace(answers(), node=name, **config) for name in names} if config else {}
        found = audited(with_answers(cluster(node(), *objects, *pods), kubelets), rules).coverage.gaps
        return [(each.what, each.kind, each.members) for each in found]

    what = "7 nodes (m0, m1, m2, m3, m4 and 2 more)"
    rules, old = "- {cgroup: v2, runtimes: {default: linear}}", [node(name, kubelet="v1.33.13") for name in names]
    assert listed(rules) == [(what, "node not read", names)]
    unusable = [node(name) for name in names]
    for each in unusable:
        each["status"] |= {"capacity": {}, "allocatable": {}}
    assert listed(rules, *unusable) == [(what, "node without CPU", names)]
    talos = [node(name, osImage="Talos (v1.11.2)") for name in names]
    assert listed(rules, *talos) == [(what, "node without system.slice", names)]
    flat = replace(CONFIG, cgroups_per_qos=False, enforce_node_allocatable=())
    assert listed(rules, *old, config=flat) == [(what, "node without kubepods", names)]
    own = [pod(f"o{name}", container("c"), on=name, resources={"requests": {"cpu": "2"}}) for name in names]
    assert listed(rules, *old, *own, pod_level=True) == [(what, "node with another PodLevelResources", names)]
    classes = [pod(f"c{name}", container("c", "1"), runtimeClassName=name) for name in names]
    assert listed(rules, *old, *classes) == [
        ("7 RuntimeClasses (m0, m1, m2, m3, m4 and 2 more)", "RuntimeClass not read", names)
    ]


def chosen(spaces: Iterable[str], namespace: str | None, words: str) -> list[tuple[str, str, str]]:
    """The gaps of a cluster with a pod in each of these namespaces, of which no pod has the labels that are asked for."""
    assembly = Assembly(lambda space, _labels: space == namespace and "label" not in words, words)
    pods = [pod(f"p{number}", container("c", "1"), namespace=name) for number, name in enumerate(spaces)]
    for each in (node(), *pods):
        assembly.add(each["kind"], each, lambda raw, type_: msgspec.convert(raw, type=type_), "test")
    return [(gap.what, gap.why, gap.remedy) for gap in audited(assembly.cluster("test"), V2_LINEAR).coverage.gaps]


@pytest.mark.parametrize(
    ("spaces", "namespace", "words", "remedy"),
    [
        (("shop", "data"), "z", "namespace z", "Correct -n: there are pods in data, shop"),
        (
            ("shop", "data"),
            "shpo",
            "namespace shpo, label app=x",
            "Correct -n, perhaps to shop: there are pods in data, shop",
        ),
        (
            [f"n{number:02}" for number in range(12)],
            "z",
            "namespace z",
            "Correct -n: there are pods in n00, n01, n02, n03, n04, n05, n06, n07, n08, n09 and 2 more",
        ),
        (("a", "b"), "a,b", "namespace a,b", "Run once for each namespace: -n takes one, as kubectl's does"),
        (("a", "b", "a"), "a", "namespace a, label x", "Correct -l: of 2 pods of namespace a none has such labels"),
        (("a",), None, "label namespace x", "Correct -l: of 1 pod none has such labels"),
    ],
)
def test_a_filter_that_matches_nothing_is_a_gap_that_says_what_there_is(
    spaces: Iterable[str], namespace: str | None, words: str, remedy: str
) -> None:
    assert chosen(spaces, namespace, words) == [(f"pods that match {words}", "no pod does", remedy)]


def test_a_filter_reads_well_wherever_it_is_said() -> None:
    before = saved(recorded(), STATES.read_text())
    words = "namespace shop, label app=web"
    audit = replace(before.audit, coverage=replace(before.audit.coverage, filter=words))
    found = Saved(audit, before.containers)
    assert f"; only {words}" in " ".join(rendered("table", found).split())
    assert f"| Only | {words} |" in rendered("markdown", found)
    assert f"<li>Only: {words}</li>" in rendered("html", found)
    assert side("before", diff(found, found).before) == (
        "before: nodes.json, pods.json, workloads.json, runtimeclasses.json: 3 nodes, 15 workloads, "
        f"only what matches {words}"
    )


def test_a_filter_that_matches_some_pods_leaves_no_gap() -> None:
    assert chosen(("x", "y"), "x", "namespace x") == []


def test_talos_has_no_system_slice_to_compare_with() -> None:
    """Its own cgroups stand beside kubepods: until somebody says with what weight, nothing of it is a pass or can be set."""
    talos = node("t", cpu="64", osImage="Talos (v1.11.2)")
    rules = "- {cgroup: v1, runtimes: {default: linear}}"
    objects = cluster(talos, pod("p", container("c", "40"), on="t"))
    result = audited(objects, rules, "v2")
    assert [(each.what, each.why) for each in result.coverage.gaps] == [
        (
            "node t",
            "Talos has no system.slice: init, system and podruntime compete with pods at the root, and nobody said with what "
            "weight together",
        )
    ]
    # Named beside a system.slice that is not there, they would not be all there is.
    named = audited(objects, f"{rules[:-1]}, root: {{init: 512, system: 512, podruntime: 1024}}}}", "v2")
    assert named.coverage.gaps == result.coverage.gaps
    # Together they pull as one cgroup with the sum of their shares would: 65536 : 2048.
    said = audited(objects, f"{rules[:-1]}, system_slice: 2048}}", "v2")
    assert said.coverage.gaps == ()
    assert said.nodes[0].cases[0].before.pods_share == 0.96969697
    (gap,) = result.coverage.gaps
    assert "--states" in gap.remedy
    # There is nothing to set by hand.
    for audit in (result, said):
        assert {each.rule for each in audit.findings} >= {"CGA201", "CGA202"}
        assert [each.id for each in audit.actions if each.id.startswith("system-weight:")] == []


def standing(name: str, ready: str | None, *, deleted: bool = False) -> dict[str, Any]:
    """A node with a Ready condition, or none."""
    made = node(name)
    made["status"]["conditions"] = [
        {"type": "DiskPressure", "status": "False"},
        *([{"type": "Ready", "status": ready}] if ready else []),
    ]
    if deleted:
        made["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    return made


@pytest.mark.parametrize(
    ("nodes", "notes"),
    [
        ([standing("a", "True"), standing("b", None)], ()),
        (
            [standing("a", "False"), standing("b", "True")],
            ("Node a is not Ready: what was read of it, and of its pods, is from before that",),
        ),
        (
            [standing("a", "False"), standing("b", "Unknown")],
            ("2 nodes (a, b) are not Ready: what was read of them, and of their pods, is from before that",),
        ),
        (
            [standing("a", "Unknown", deleted=True), standing("b", "False")],
            (
                "Node b is not Ready: what was read of it, and of its pods, is from before that",
                "Node a is being deleted: its pods will run elsewhere",
            ),
        ),
    ],
)
def test_nodes_that_may_not_be_there_for_long_are_told(nodes: list[dict[str, Any]], notes: tuple[str, ...]) -> None:
    coverage = audited(cluster(*nodes, pod("p", container("c", "1"), on="a")), V2_LINEAR).coverage
    assert (coverage.notes, coverage.complete) == (notes, True)


@pytest.mark.parametrize(("policies", "nodes"), [("ns", "node b"), ("ss", "2 nodes (a, b)"), ("nn", "")])
def test_a_static_cpu_manager_is_told(policies: str, nodes: str) -> None:
    said = {"n": "none", "s": "static"}
    configs = {name: replace(CONFIG, cpu_manager_policy=said[each]) for name, each in zip("ab", policies, strict=True)}
    kubelets = {name: replace(answers(config=config), node=name) for name, config in configs.items()}
    objects = with_answers(cluster(node("a"), node("b"), pod("p", container("c", "1"), on="a")), kubelets)
    notes = audited(objects, V2_LINEAR).coverage.notes
    assert notes == (
        (
            f"The CPU manager of {nodes} is static: containers with CPUs of their own compete for no others, and the rest for "
            "what is left, but shares are shown of all of the node's CPU",
        )
        if nodes
        else ()
    )


@pytest.mark.parametrize(
    ("kubelet", "told", "weight"),
    [("v1.31.9", False, 1), ("v1.32.0", True, 1), ("v1.33.13", True, 1), ("v1.34.0", False, 79)],
)
def test_what_a_gate_that_is_off_by_default_leaves_out_is_told(kubelet: str, told: bool, weight: int) -> None:
    own = pod("p", container("app"), resources={"requests": {"cpu": "2"}})
    found = saved(cluster(node(kubelet=kubelet), own, pod("q", container("app", "1"))), V2_LINEAR)
    assert [
        bool(note.startswith("Pod default/p on kubelets 1.32 or 1.33: its own")) for note in found.audit.coverage.notes
    ] == [True] * told
    assert pod_values(found, ("before_pod_value",))["p"] == [(weight,)]


@pytest.mark.parametrize(
    ("kubelet", "gate", "gap"),
    [
        ("v1.31.9", None, False),
        ("v1.33.13", False, False),
        ("v1.33.13", True, True),
        ("v1.34.0", True, False),
        ("v1.34.0", False, True),
    ],
)
def test_a_kubelet_with_another_gate_than_its_version_has_is_a_gap(kubelet: str, gate: bool | None, gap: bool) -> None:
    own = pod("p", container("app"), resources={"requests": {"cpu": "2"}})
    objects = cluster(
        node(kubelet=kubelet), node("other", kubelet=kubelet), own, pod("q", container("app", "1"), on="other")
    )
    said = {name: replace(answers(pod_level=gate), node=name) for name in ("n1", "other")}
    coverage = audited(with_answers(objects, said), V2_LINEAR).coverage
    assert [note for note in coverage.notes if "PodLevelResources" in note] == []
    assert coverage.complete is not gap
    assert [(each.what, each.why) for each in coverage.gaps] == [
        (
            "node n1",
            "the feature gate PodLevelResources is not there what it is by default (on from 1.34): the shares shown of now are "
            "not those of pod default/p, nor of what competes with it",
        )
    ] * gap


def test_an_answer_takes_away_what_a_snapshot_says_was_not_answered() -> None:
    silent = {"n1": KubeletAnswers("n1", None, None, {}, None, ("no saved answers in x",))}
    first = with_answers(cluster(node(), pod("p", container("c", "1"))), silent)
    assert [gap.what for gap in cover(first).gaps] == ["kubelet of n1"]
    assert cover(with_answers(first, {"n1": KubeletAnswers("n1", "v2", False, {}, None, ())})).gaps == ()
