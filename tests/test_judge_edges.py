"""What tells one judgement from another by a single condition: paths, amounts, effects, verdicts, coverage."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kubectl_cgaudit.cgroups import paths
from kubectl_cgaudit.cgroups.pods import container_limit, pod_level_resources, pod_limit, pod_request
from kubectl_cgaudit.cgroups.version import KubeletVersion
from kubectl_cgaudit.collect.assemble import Assembly
from kubectl_cgaudit.collect.model import Gap
from kubectl_cgaudit.errors import UsageError
from kubectl_cgaudit.judge.audit import Audit, Finding
from kubectl_cgaudit.judge.condition import condition
from kubectl_cgaudit.judge.rules.rebalance import Balance, request_for
from kubectl_cgaudit.judge.saved import _problems
from tests.support import V1, V2_LINEAR, audited, cluster, compared, container, node, of_rule, pod
from tests.test_baseline import AUDIT, without
from tests.test_baseline import compared as against_baseline


def with_only(*findings: Finding) -> Audit:
    return replace(AUDIT, findings=findings)


def test_a_baseline_gives_each_finding_back_once() -> None:
    first = AUDIT.findings[0]
    found = against_baseline(with_only(first), with_only(first, replace(first, title="another")))
    assert (found.known, [each.title for each in found.findings]) == ((first,), ["another"])
    assert found.fixed == ()


def test_of_two_counterparts_the_one_of_the_same_title_is_taken() -> None:
    first = AUDIT.findings[0]
    second = replace(first, title="another")
    found = against_baseline(with_only(first, second), with_only(second))
    assert (found.known, found.fixed) == ((second,), (first,))


def test_one_that_got_worse_takes_one_of_the_baseline_with_it() -> None:
    first = replace(AUDIT.findings[0], severity="low")
    second = replace(first, title="another")
    worse = replace(first, severity="high")
    found = against_baseline(with_only(first, second), with_only(worse))
    assert (found.findings, len(found.fixed)) == ((worse,), 1)


def test_one_new_finding_is_said_in_the_singular() -> None:
    found = against_baseline(without(AUDIT, 0))
    assert "Against the baseline base.json 1 finding is new (1 high); 21 known from it are not counted." in (
        found.verdict.sentence
    )
    one = against_baseline(with_only(AUDIT.findings[0]), with_only(AUDIT.findings[0]))
    assert "nothing is new; 1 known from it is not counted." in one.verdict.sentence
    two = against_baseline(with_only(*AUDIT.findings[:2]), with_only(AUDIT.findings[0]))
    assert "; 1 of its findings is gone." in two.verdict.sentence


def test_the_filters_of_both_are_named() -> None:
    part, other = (replace(AUDIT, coverage=replace(AUDIT.coverage, filter=f"namespace {name}")) for name in ("a", "b"))
    found = against_baseline(part, other)
    assert found.baseline is not None
    assert found.baseline.notes == (
        "The baseline reports namespace a, this audit namespace b: what is gone cannot be told",
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


def test_one_or_many_nodes_that_nobody_read() -> None:
    one = gaps(node(), pod("p", container("c", "1"), on="gone"))
    assert one == {"node gone": "1 pod runs there, but the Node is not among what was read"}
    many = gaps(node(), *(pod(f"p{name}", container("c", "1"), on=f"m{name:02}") for name in range(30)))
    ((what, why),) = many.items()
    assert what.startswith("30 nodes (m00, m01, ")
    listed = what.count(", m") + 1
    assert what.endswith(f" and {30 - listed} more)")
    assert why == "30 pods run there, but the Node is not among what was read"


def test_what_the_numbers_rest_on() -> None:
    def assumed(rules: str) -> str:
        return " ".join(audited(cluster(node(), pod("p", container("c", "1"))), rules, "v2").scenario.assumptions)

    system, beside, driver = "system.slice has its default", "Beside kubepods only system.slice", "The cgroup driver is"
    plain = assumed("- {cgroup: v2, runtimes: {default: linear}}")
    assert (system in plain, beside in plain, driver in plain) == (True, True, True)
    told = assumed(
        "- {cgroup: v2, driver: systemd, system_slice: 20, root: {other.slice: 50}, runtimes: {default: linear}}"
    )
    assert (system in told, beside in told, driver in told) == (False, False, False)
    two = cluster(node(), node("n2"), pod("p", container("c", "1")))
    half = " ".join(
        audited(
            two,
            "- {cgroup: v2, runtimes: {default: linear}}\n"
            "- {match: {name: n2}, driver: systemd, system_slice: 20, root: {other.slice: 50}}",
            "v2",
        ).scenario.assumptions
    )
    assert (system in half, beside in half, driver in half) == (True, True, True)


def test_a_rule_for_a_node_is_matched_with_that_nodes_handlers_only() -> None:
    objects = cluster(node(), node("n2"), pod("p", container("c", "1"), on="n2", runtimeClassName="special"))
    rules = "- {cgroup: v2, runtimes: {default: linear}}\n- {match: {name: n1}, runtimes: {special: linear}}"
    assert audited(objects, rules, "v2").coverage.unmatched == (
        "test rule 2 names the handler special, which no matching node has",
    )
    nowhere = "- {cgroup: v2, runtimes: {default: linear}}\n- {match: {name: n9}, runtimes: {special: linear}}"
    assert audited(objects, nowhere, "v2").coverage.unmatched == ("test rule 2 matches no node",)


def test_conditions_in_words() -> None:
    every = [
        "cgroup v1, linear runtime",
        "cgroup v1, quadratic runtime",
        "cgroup v2, linear runtime",
        "cgroup v2, quadratic runtime",
    ]
    assert condition(every, every) == ""
    assert condition(every[:2], every) == "if cgroup v1"
    assert condition(every[:1], every) == "if cgroup v1, linear runtime"
    assert condition(every[:3], every) == "unless cgroup v2, quadratic runtime"
    assert condition([every[0], every[3]], every) == ("if cgroup v1, linear runtime or cgroup v2, quadratic runtime")


@pytest.mark.parametrize(
    ("qos", "driver", "path"),
    [
        ("Guaranteed", "systemd", "/kubepods.slice"),
        ("Burstable", "systemd", "/kubepods.slice/kubepods-burstable.slice"),
        ("BestEffort", "systemd", "/kubepods.slice/kubepods-besteffort.slice"),
        ("Guaranteed", "cgroupfs", "/kubepods"),
        ("Burstable", "cgroupfs", "/kubepods/burstable"),
        ("BestEffort", "cgroupfs", "/kubepods/besteffort"),
    ],
)
def test_paths_of_the_classes(qos: Any, driver: Any, path: str) -> None:
    assert paths.qos(qos, driver) == path


@pytest.mark.parametrize("args", [(None, "/p"), ("", "/p"), ("containerd://x", None), ("no-scheme", "/p")])
def test_a_container_without_an_id_or_a_pod_has_no_path(args: tuple[Any, Any]) -> None:
    assert paths.container(*args, "systemd") is None


def test_a_pod_without_a_uid_has_no_path() -> None:
    found = cluster(node(), pod("p", container("c", "1"))).pods[0]
    assert paths.pod(found, "systemd") is not None
    assert paths.pod(replace(found, uid=""), "systemd") is None


@pytest.mark.parametrize(
    ("version", "known"), [(None, True), ((1, 31, 9), False), ((1, 32, 0), True), ((1, 33, 0), True)]
)
def test_pod_level_resources_are_known_from_1_32_on(version: Any, known: bool) -> None:
    kubelet = KubeletVersion(*version) if version else None
    assert pod_level_resources(kubelet) is known
    found = cluster(
        node(), pod("p", container("c"), resources={"limits": {"cpu": "2"}, "requests": {"cpu": "1"}})
    ).pods[0]
    assert container_limit(found.containers[0], found, kubelet) == (2000 if known else None)
    assert pod_limit(found, kubelet) == (2000 if known else None)
    assert pod_request(found, kubelet) == (1000 if known else 0)
    bare = cluster(node(), pod("p", container("c"))).pods[0]
    assert container_limit(bare.containers[0], bare, kubelet) is None


def test_the_limit_of_a_pod_by_its_class() -> None:
    kubelet = KubeletVersion(1, 33, 0)

    def limit(*containers: dict[str, Any], **spec: Any) -> int | None:
        return pod_limit(cluster(node(), pod("p", *containers, **spec)).pods[0], kubelet)

    one = container("a", "1", "1")
    assert limit(one) == 1000
    assert limit(one, container("b", "1")) is None
    assert limit(one, container("b", "1"), qos="Guaranteed") == 1000
    assert limit(one, ephemeralContainers=[container("debug")]) == 1000
    assert limit(one, initContainers=[container("init", "1")]) is None
    assert limit(one, initContainers=[container("init", "3", "3")]) == 3000
    assert limit(one, initContainers=[container("init", "3", "3"), container("second", "1", "1")]) == 3000
    assert limit(container("a"), qos="BestEffort") is None
    assert limit(one, qos="BestEffort") is None
    assert limit(one, overhead={"cpu": "100m"}) == 1100


def test_the_request_of_a_pod_is_of_the_moment_that_asks_for_most() -> None:
    kubelet = KubeletVersion(1, 33, 0)

    def request(app: str, *inits: dict[str, Any]) -> int:
        return pod_request(cluster(node(), pod("p", container("a", app), initContainers=list(inits))).pods[0], kubelet)

    side = container("side", "300m", restartPolicy="Always")
    big, small = container("big", "900m"), container("small", "100m")
    assert request("100m", big, small) == 900
    assert request("100m", small, big) == 900
    assert request("100m", side, big) == 1200
    assert request("100m", big, side) == 900
    assert request("700m", side, small) == 1000


@pytest.mark.parametrize(
    ("wanted", "formula", "milli"),
    [
        (0.3, "linear", 2),
        (1, "linear", 2),
        (2, "linear", 29),
        (10000, "linear", 256000),
        (20000, "linear", 256000),
        (0.3, "quadratic", 2),
        (2, "quadratic", 3),
        (10000, "quadratic", 255972),
    ],
)
def test_the_request_for_a_weight_at_the_ends(wanted: float, formula: Any, milli: int) -> None:
    assert request_for(wanted, formula) == milli


def test_204_no_request_has_more_than_the_greatest_weight() -> None:
    assert Balance(4000, (256000,), (0.5,), "linear", 0.05).raised() == 256000


def test_204_of_two_losers_the_one_with_the_larger_part_is_told() -> None:
    small = [container(f"s{n}", "20m") for n in range(6)]
    finding = of_rule(
        audited(
            cluster(node(), pod("p", container("a", "230m"), container("b", "200m"), *small)), V2_LINEAR, "runtime"
        ),
        "CGA204",
    )["default/p"]
    assert ": a has " in finding.seen


def test_201_keeps_the_ratio_on_the_version_the_node_has(tmp_path: Any) -> None:
    """system.slice goes from 20 to its default on a node that is on v2 already."""
    (tmp_path / "to.yaml").write_text("- {system_slice: 100}")
    objects = cluster(node(), pod("p", container("app", "1")))
    finding = of_rule(audited(objects, f"{V2_LINEAR}\n- {{system_slice: 60}}", str(tmp_path / "to.yaml")), "CGA201")[
        "default/p"
    ]
    assert finding.remedy.startswith("On n1 keep the ratio of now: give system.slice weight 60 (pods : system ")


def test_201_a_pod_that_is_rounded_is_told_from_a_node_that_moves(tmp_path: Any) -> None:
    (tmp_path / "to.yaml").write_text("- {cgroup: v2, system_slice: 39}")
    others = [pod(f"q{n}", container("app", "29m")) for n in range(9)]
    objects = cluster(node(), pod("p", container("app", "26m")), *others)
    findings = of_rule(audited(objects, V1, str(tmp_path / "to.yaml")), "CGA201")
    assert {name: each.remedy.split(":")[0] for name, each in findings.items()} == {
        "default/p": "The node's ratio of pods to system processes hardly changes"
    }


def test_201_watches_from_the_limit_on() -> None:
    """4096 shares beside 1024."""
    objects = cluster(node(), pod("p", container("app", "1")))
    watch = "Pods have 4 times the weight of system.slice on n1 now, which is more than"
    assert of_rule(audited(objects, V1, "v2", "outweighed=4"), "CGA201")["default/p"].remedy.startswith(watch)
    assert not of_rule(audited(objects, V1, "v2", "outweighed=4.1"), "CGA201")["default/p"].remedy.startswith(watch)


def test_207_holds_only_from_v1_to_v2_and_for_more_than_besteffort_pods() -> None:
    objects = cluster(node(), pod("p", container("a", "1")), pod("q", container("c"), qos="BestEffort"))
    assert list(of_rule(audited(objects, V1, "v2"), "CGA207")) == ["n1"]
    assert of_rule(audited(objects, V2_LINEAR, "runtime"), "CGA207") == {}
    assert of_rule(audited(objects, V1, "runtime"), "CGA207") == {}


def test_the_worst_container_of_a_workload_is_told_whatever_its_place() -> None:
    pods = [
        pod(f"w-{n}", container("a", "1"), container("b", "2"), container("c", "500m"), owner=("StatefulSet", "w"))
        for n in range(2)
    ]
    finding = of_rule(audited(cluster(node(), *pods), V1, "v2"), "CGA203")["default/w"]
    assert finding.seen.startswith(
        "Container b of default/w-1: cpu.shares 2048 now, cpu.weight 79 after: 2.00 -> 0.79 times"
    )
    assert finding.seen.endswith(" 3 more of this workload are found by this rule.")


@pytest.mark.parametrize(
    ("target", "fits"),
    [
        ("- {cgroup: v2, system_slice: 10000}", True),
        ("- {cgroup: v2, system_slice: 10001}", False),
        ("- {cgroup: v1, system_slice: 2}", True),
        ("- {cgroup: v1, system_slice: 1}", False),
        ("- {cgroup: v1, system_slice: 262144}", True),
        ("- {cgroup: v1, root: {other: 1}}", False),
        ("- {cgroup: v2, root: {other: 10001}}", False),
    ],
)
@pytest.mark.parametrize("rules", [V1, V2_LINEAR])
def test_the_ends_of_a_value_at_the_root_after_the_move(target: str, fits: bool, rules: str, tmp_path: Any) -> None:
    (tmp_path / "to.yaml").write_text(target)
    objects = cluster(node(), pod("p", container("c", "1")))
    if fits:
        assert compared(objects, rules, str(tmp_path / "to.yaml"))
        return
    with pytest.raises(UsageError, match="out of range"):
        compared(objects, rules, str(tmp_path / "to.yaml"))


def sentence(rules: str, to: str, *objects: dict[str, Any], **coverage: Any) -> str:
    return audited(cluster(*objects), rules, to).verdict.sentence


def test_the_verdict_where_nobody_loses(tmp_path: Any) -> None:
    (tmp_path / "to.yaml").write_text("- {cgroup: v2, system_slice: 20}")
    to = str(tmp_path / "to.yaml")
    assert audited(cluster(node()), V2_LINEAR, "v2").verdict.sentence == (
        "No pod was audited: nothing can be said about workloads."
    )
    a, b = (pod(name, container("c", "1")) for name in ("a", "b"))
    assert sentence(V2_LINEAR, to, node(), a) == (
        "No workload loses CPU priority; 1 of 1 workload gains against system processes."
    )
    assert sentence(V2_LINEAR, to, node(), a, b) == (
        "No workload loses CPU priority; 2 of 2 workloads gain against system processes."
    )
    assert sentence(V2_LINEAR, "v2", node(), a) == (
        "Not affected: of 1 workload none loses 10% against system processes, and no container 5% of its part of its pod."
    )
    assert sentence(V2_LINEAR, "runtime", node(), a).endswith(
        " Another number in cpu.weight, which alone decides nothing: 1 workload."
    )


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


def test_a_damaged_audit_is_refused_where_any_of_its_numbers_is_of_a_pod_it_does_not_have() -> None:
    audit = AUDIT
    assert list(_problems(audit)) == []
    place = next(n for n, each in enumerate(audit.workloads) if each.inside_pod and each.against_system and each.share)
    workload = audit.workloads[place]
    for name in ("share", "against_system", "against_system_best", "inside_pod"):
        bad = replace(workload, **{name: replace(getattr(workload, name), pod="nobody")})
        workloads = (*audit.workloads[:place], bad, *audit.workloads[place + 1 :])
        assert list(_problems(replace(audit, workloads=workloads))) == [
            f"{workload.title} speaks of a pod that it does not have"
        ], name
    first = workload.pods[0]
    for pods in (
        replace(first, containers=(replace(first.containers[0], cases=()), *first.containers[1:])),
        replace(first, cases=()),
    ):
        bad = replace(workload, pods=(pods, *list(workload.pods)[1:]))
        workloads = (*audit.workloads[:place], bad, *audit.workloads[place + 1 :])
        assert list(_problems(replace(audit, workloads=workloads))) == [
            f"pod {workload.namespace}/{first.name} has other cases than its node"
        ]
    one = audit.nodes[0]
    case = one.cases[0]
    other = replace(case, after=replace(case.after, runtimes={"x": "runc 1.3.6 (quadratic)"}))
    damaged = replace(audit, nodes=(replace(one, cases=(other, case)), *audit.nodes[1:]))
    assert f"node {one.name} has other handlers in one case than in another, or before than after" in list(
        _problems(damaged)
    )


def test_what_part_of_the_cases_have_in_common_is_not_enough() -> None:
    every = ["a, x", "a, y", "a, z"]
    assert condition(every[:2], every) == "unless a, z"
    assert condition(every[:1], every) == "if a, x"
    assert condition(["a, x", "b, y"], ["a, x", "a, y", "b, x", "b, y"]) == "if a, x or b, y"


def test_what_workloads_are_called_by() -> None:
    bare = audited(cluster(node(), pod("p", container("c", "1"))), V2_LINEAR).coverage
    assert bare.workload_names == {
        "Deployment": "derived from the pod-template-hash",
        "CronJob": "derived from the Jobs' names",
    }
    tables = [{"kind": kind, "metadata": {"name": "x", "namespace": "default"}} for kind in ("ReplicaSet", "Job")]
    read = audited(cluster(node(), *tables), V2_LINEAR).coverage
    assert set(read.workload_names.values()) == {"read: top owners"}


def test_a_filter_that_matches_some_pods_leaves_no_gap() -> None:
    def found(namespace: str) -> list[str]:
        assembly = Assembly(lambda space, _labels: space == namespace, f"namespace {namespace}")
        pods = [pod(name, container("c", "1"), namespace=name) for name in ("x", "y")]
        for each in (node(), *pods):
            assembly.add(each["kind"], each, lambda raw, type_: msgspec.convert(raw, type=type_), "test")
        return [gap.what for gap in audited(assembly.cluster("test"), V2_LINEAR).coverage.gaps]

    assert found("x") == []
    assert found("z") == ["pods that match namespace z"]


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


def test_an_incomplete_audit_that_found_nothing_says_so_once() -> None:
    found = audited(cluster(node(), pod("p", container("c", "1"))), V2_LINEAR, "v2")
    unread = replace(cluster(node(), pod("p", container("c", "1"))))
    assert found.verdict.sentence == (
        "Not affected: of 1 workload none loses 10% against system processes, and no container 5% of its part of its pod."
    )
    gap = Gap("pods of namespace b", "403", "ask for list")
    unread = replace(unread, reading=replace(unread.reading, gaps=(gap,)))
    assert audited(unread, V2_LINEAR, "v2").verdict.sentence == (
        "INCOMPLETE, so this is no pass: what could not be read is listed under coverage. Of what was read: "
        f"{found.verdict.sentence}"
    )


def test_a_step_says_on_what_it_depends_only_if_it_does() -> None:
    objects = cluster(node(), pod("p", container("app", "200m"), container("side", "20m")))
    sure = audited(objects, V1, "v2")
    (first, *_) = sure.verdict.next_steps
    finding = of_rule(sure, first.split(" ")[0])["default/p"]
    assert first == f"{finding.rule} (default/p): {finding.remedy}"
    open_ = audited(objects, "- {runtimes: {default: runc 1.1.15}}", "v2")
    depends = [each for each in open_.findings if each.when and each.severity != "low"]
    assert depends
    assert (
        f"{depends[0].rule} ({depends[0].subject.title}): {depends[0].when}: {depends[0].remedy}"
        in open_.verdict.next_steps
    )
