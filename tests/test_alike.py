"""Nothing is worked out twice, and nothing is mixed up for it: a node's pods come out as if the cluster had no other node."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_cgaudit.judge.audit import Audit
from kubectl_cgaudit.judge.build import POD_RULES
from kubectl_cgaudit.judge.figures import fixed
from kubectl_cgaudit.judge.kinds import Kind, Kinds
from kubectl_cgaudit.judge.rules.context import Context
from kubectl_cgaudit.judge.rules.quota import FAILING_STARTS
from kubectl_cgaudit.judge.thresholds import parse as parse_thresholds
from tests.support import audited, cluster, compared, container, node, pod

KUBELETS = ("v1.30.4", "v1.32.9", "v1.33.5", "v1.33.13", "v1.34.1", "v1.35.0", "v1.36.2")
IMAGES = ("nginx:1.27", "openjdk:11.0.16-jre", "openjdk:8u300", "gcr.io/cadvisor/cadvisor:v0.49.1")
AMOUNTS = (None, "1m", "10m", "100m", "250m", "1", "3")
LIMITS = (None, None, "15m", "105m", "1", "4")
STATES = (
    "",
    "- {match: {name: n0}, cgroup: v1, runtimes: {default: linear, kata: kata}}",
    "- {match: {name: n1}, cgroup: v2, driver: cgroupfs, runtimes: {default: runc 1.3.6}}",
    "- {match: {name: n0}, cgroup: v1, driver: systemd, runtimes: {default: quadratic}, system_slice: 2048}\n"
    "- {match: {name: n2}, cgroup: v2, runtimes: {default: linear, crun: crun 1.20}, kubelet: 1.34.1}",
    "- {cgroup: v1}",
    "- {match: {name: n0}, cgroup: v1, runtimes: {default: runc 1.3.6}}\n"
    "- {match: {name: n1}, cgroup: v1, runtimes: {default: crun 1.23}}\n"
    "- {match: {name: n2}, cgroup: v1, driver: cgroupfs, runtimes: {default: runc 1.3.6}}",
)
TARGETS = ("kubelet=1.34.1", "v2+runtime", "v2", "runtime", "kubelet=1.35", "runc=1.3.6", "v2,kubelet=1.36")


@st.composite
def containers(draw: st.DrawFn) -> dict[str, Any]:
    made = container("c", draw(st.sampled_from(AMOUNTS)), draw(st.sampled_from(LIMITS)))
    return made | {"image": draw(st.sampled_from(IMAGES))}


@st.composite
def templates(draw: st.DrawFn) -> dict[str, Any]:
    """A pod without its node; two of three are like one another but for their names, images or limits."""
    found = draw(st.lists(containers(), min_size=1, max_size=3))
    names = draw(st.sampled_from(("abc", "xyz")))
    handler = draw(st.sampled_from((None, None, "crun", "kata")))
    first = [{**each, "name": "init"} for each in draw(st.lists(containers(), max_size=1))]
    whole = draw(st.sampled_from((None, None, None, "205m", "4")))
    asks = whole or any(each["resources"].get("requests") or each["resources"].get("limits") for each in found + first)
    more = {"runtimeClassName": handler, "initContainers": first, "resources": whole and {"limits": {"cpu": whole}}}
    return {
        "containers": [{**each, "name": name} for each, name in zip(found, names + "w", strict=False)],
        "qos": "Burstable" if asks else "BestEffort",
        "more": {name: value for name, value in more.items() if value},
    }


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Nodes that differ, and the same pods on most of them."""
    nodes = [
        node(f"n{number}", draw(st.sampled_from(("2", "4", "64"))), draw(st.sampled_from(KUBELETS)))
        for number in range(draw(st.integers(2, 4)))
    ]
    made = draw(st.lists(templates(), min_size=1, max_size=4))
    made += [
        {**each, "containers": [{**one, "image": draw(st.sampled_from(IMAGES))} for one in each["containers"]]}
        for each in made
    ]
    placed = [
        pod(f"p{number}-{place}", *each["containers"], qos=each["qos"], on=f"n{place}", **each["more"])
        for number, each in enumerate(made)
        for place in range(len(nodes))
        if draw(st.integers(0, 5))
    ]
    return nodes, placed


def of_pods(audit: Audit) -> tuple[dict[str, bytes], list[bytes]]:
    """Each workload, which here is a pod, and the findings about them."""
    found = sorted(msgspec.json.encode(each) for each in audit.findings if each.subject.kind == "workload")
    workloads = {
        each.name: msgspec.json.encode(msgspec.structs.replace(each, pods=tuple(each.pods))) for each in audit.workloads
    }
    return workloads, found


@settings(max_examples=150, deadline=None)
@given(clusters(), st.sampled_from(STATES), st.sampled_from(TARGETS))
def test_a_node_is_judged_as_if_it_were_alone(
    objects: tuple[list[dict[str, Any]], list[dict[str, Any]]], states: str, target: str
) -> None:
    nodes, placed = objects
    together = of_pods(audited(cluster(*nodes, *placed), states, target))
    workloads: dict[str, bytes] = {}
    findings: list[bytes] = []
    for each in nodes:
        mine = [one for one in placed if one["spec"]["nodeName"] == each["metadata"]["name"]]
        alone = of_pods(audited(cluster(each, *mine), states, target))
        workloads |= alone[0]
        findings += alone[1]
    assert together == (workloads, sorted(findings))
    assert len(workloads) == len(placed)


@settings(max_examples=150, deadline=None)
@given(clusters(), st.sampled_from(STATES), st.sampled_from(TARGETS))
def test_a_pod_is_of_the_kind_that_it_is_alone(
    objects: tuple[list[dict[str, Any]], list[dict[str, Any]]], states: str, target: str
) -> None:
    nodes, placed = objects
    read = cluster(*nodes, *placed)
    context = Context(read, parse_thresholds(()))
    shared = Kinds(context, POD_RULES)
    for comparison in compared(read, states, target):
        of = shared.of(comparison)
        for index in range(len(comparison.placed)):
            alone = Kinds(context, POD_RULES).of(comparison)(index)
            assert said(of(index)) == said(alone)


RUNC, CRUN = "{default: runc 1.3.6}", "{default: crun 1.23}"


@pytest.mark.parametrize(
    ("kubelets", "runtimes", "limit", "whole", "fails"),
    [
        # Of crun the kernel takes the raw quota of the init container, whose part in the shapes is that of the pod alone.
        (("v1.33.5", "v1.33.5"), (RUNC, CRUN), "105m", {}, ([0], [])),
        # From 1.34 on an init container without a limit has that of its pod.
        (("v1.33.5", "v1.34.1"), (RUNC, RUNC), None, {"resources": {"limits": {"cpu": "105m"}}}, ([1], [0, 1])),
    ],
)
def test_what_the_shapes_do_not_tell_of_limits_tells_kinds_apart(
    kubelets: tuple[str, str],
    runtimes: tuple[str, str],
    limit: str | None,
    whole: dict[str, Any],
    fails: tuple[list[int], list[int]],
) -> None:
    states = "".join(
        f"- {{match: {{name: n{place}}}, cgroup: v1, driver: systemd, runtimes: {each}}}\n"
        for place, each in enumerate(runtimes)
    )
    app, init = container("app", "1m", "105m" if whole else "100m"), container("init", None, limit)
    objects = [node(f"n{place}", "4", each) for place, each in enumerate(kubelets)]
    objects += [
        pod(f"p{place}", app, qos="Guaranteed", on=f"n{place}", initContainers=[init], **whole) for place in range(2)
    ]
    read = cluster(*objects)
    kinds = Kinds(Context(read, parse_thresholds(())), [FAILING_STARTS])
    one, other = (kinds.of(each)(0) for each in compared(read, states, "runtime"))
    assert one.numbers == other.numbers
    assert tuple([each.container for each in kind.found] for kind in (one, other)) == fails


def said(kind: Kind) -> dict[str, object]:
    return {name: value for name, value in msgspec.structs.asdict(kind).items() if name != "number"}


@settings(max_examples=150, deadline=None)
@given(clusters(), st.sampled_from(STATES), st.sampled_from(TARGETS))
def test_no_rule_is_left_out_that_would_hold(
    objects: tuple[list[dict[str, Any]], list[dict[str, Any]]], states: str, target: str
) -> None:
    nodes, placed = objects
    read = cluster(*nodes, *placed)
    context = Context(read, parse_thresholds(()))
    for comparison in compared(read, states, target):
        for index, each in enumerate(comparison.placed):
            pairs = [
                pair
                for case in comparison.cases
                for pair in zip(
                    fixed(case.before.pods.shapes[comparison.outlines[index]], case.now),
                    fixed(case.after.pods.shapes[comparison.outlines[index]], case.then),
                    strict=True,
                )
            ]
            for rule in POD_RULES:
                if list(rule.hits(context, comparison, each, comparison.pod(index))):
                    assert rule.may(context, each[0], pairs), rule.rule.id


def test_what_a_jvm_counts_is_looked_at_on_every_size_of_node() -> None:
    jvm = container("app", "3") | {"image": "openjdk:11.0.16-jre"}
    pods_ = [pod(f"p{number}", jvm, on=f"n{number}") for number in range(3)]
    for sizes in (("2", "64", "2"), ("64", "2", "64")):
        nodes = [node(f"n{number}", cpu) for number, cpu in enumerate(sizes)]
        rules = "- {cgroup: v1, runtimes: {default: linear}}"
        found = audited(cluster(*nodes, *pods_), rules).findings
        large = [f"p{number}" for number, cpu in enumerate(sizes) if cpu == "64"]
        assert sorted(each.subject.name for each in found if each.rule == "CGA401") == large


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        ("35m", "55m", ["p0", "p1"]),
        ("20m", "55m", ["p0", "p1"]),
        ("110m", "15m", ["p0", "p1"]),
        # Of numbers with nine digits this is a hair less.
        ("110m", "55m", []),
    ],
)
def test_a_change_that_is_the_threshold_is_one_thing_on_every_node(first: str, second: str, names: list[str]) -> None:
    """Their change is -5%, the threshold: what is decided must not hang on the last digit of a share."""
    rules = "- {cgroup: v2, runtimes: {default: runc 1.3.6}}"
    inside = [container("x", first), container("y", second)]
    for sizes in (("31467m", "62069m"), ("56740m", "3484m"), ("3484m", "56740m"), ("7001m", "3m")):
        nodes = [node(f"n{number}", cpu) for number, cpu in enumerate(sizes)]
        pods_ = [pod(f"p{number}", *inside, on=f"n{number}") for number in range(len(sizes))]
        audit = audited(cluster(*nodes, *pods_), rules, "runc=1.2.0")
        moving = [each.name for each in audit.workloads if "moves" in each.effects]
        found = sorted(each.subject.name for each in audit.findings if each.rule == "CGA204")
        assert found == sorted(moving) == names


def test_containers_of_one_name_do_not_end_the_audit() -> None:
    """No API server takes such a pod, but a file may hold one."""
    placed = [
        pod("a", container("x", "2"), container("x", "5m")),
        pod("b", container("x", "2"), container("y", "5m")),
    ]
    found = [each for each in audited(cluster(node(), *placed), "", "v2").findings if each.rule == "CGA205"]
    assert sorted(each.subject.name for each in found) == ["a", "b"]
