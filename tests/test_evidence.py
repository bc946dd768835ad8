"""The evidence ladder on the recorded cluster, on made-up pieces, and where pieces disagree."""

from pathlib import Path

import msgspec
import pytest

from kubectl_cgaudit.cgroups.weights import linear, linear_inverse, quadratic
from kubectl_cgaudit.collect import files
from kubectl_cgaudit.collect.assemble import with_answers
from kubectl_cgaudit.collect.model import Cluster, KubeletAnswers
from kubectl_cgaudit.detect import measured, readback, states, warning
from kubectl_cgaudit.detect.evidence import Evidence
from kubectl_cgaudit.detect.settle import ladder
from kubectl_cgaudit.detect.state import CgroupVersion, State
from kubectl_cgaudit.judge.rules import jvm
from kubectl_cgaudit.judge.verify import verify
from kubectl_cgaudit.report import verify as report
from tests.support import (
    GOLDEN,
    RECORDED,
    V1,
    V2_LINEAR,
    audited,
    cluster,
    compared,
    container,
    golden_json,
    half_restarted,
    node,
    of_rule,
    other,
    pod,
    recorded,
    recorded_audit,
    with_kubelets,
)


def settled(objects: Cluster) -> dict[str, State]:
    return {each.node.name: each.state for each in compared(objects)}


def told(state: State) -> dict[str, tuple[str | None, str]]:
    found = {"cgroup": (state.cgroup, state.basis_of("cgroup").confidence)}
    for handler, run in state.runtimes:
        found[handler] = (run.formula, state.basis_of(f"runtime:{handler}").confidence)
    return found


def test_nodes_and_pods_alone_say_what_they_can_and_nothing_wrong() -> None:
    found = settled(recorded())
    assert told(found["worker-a"]) == {"cgroup": ("v2", "certain"), "runc-old": ("linear", "likely")}
    assert told(found["worker-b"]) == {
        "cgroup": (None, "unknown"),
        "default": ("linear", "likely"),
        "runc-old": ("linear", "likely"),
    }
    # Debian 12 starts with cgroup v2 by default; this node does not.
    assert told(found["worker-c"]) == {"cgroup": (None, "unknown")}
    assert (
        found["worker-c"]
        .hints[0]
        .endswith("Debian starts with cgroup v2 from 11 on unless told otherwise: probably v2")
    )


def test_an_unknown_version_is_predicted_both_ways_until_an_event_tells() -> None:
    cases = {each.node.name: [case.now.cgroup for case in each.cases] for each in compared(recorded())}
    assert cases["worker-c"] == ["v1", "v1", "v2", "v2"]
    events = files.read((*RECORDED, str(GOLDEN / "events.json")), lambda _n, _l: True, "")
    assert list(events.cgroup_v1_warnings or {}) == ["worker-c"]
    assert told(settled(events)["worker-c"]) == {"cgroup": ("v1", "likely")}


def test_the_kubelets_make_it_certain() -> None:
    found = settled(with_kubelets(recorded()))
    assert told(found["worker-a"]) == {
        "cgroup": ("v2", "certain"),
        "default": ("quadratic", "certain"),
        "crun": ("quadratic", "certain"),
        "runc-old": ("linear", "certain"),
    }
    assert told(found["worker-b"]) == {
        "cgroup": ("v2", "certain"),
        "default": ("linear", "certain"),
        "crun-old": ("linear", "certain"),
        "runc-old": ("linear", "likely"),
    }
    assert told(found["worker-c"]) == {"cgroup": ("v1", "certain")}
    for state in found.values():
        assert (state.driver, state.basis_of("driver").confidence) == ("systemd", "certain")
        assert state.basis_of("reserves").confidence == "certain"
        assert state.contradictions == ()
    assert [found[name].system_slice for name in ("worker-a", "worker-b", "worker-c")] == [None, 20, None]


def test_verify_finds_no_difference_on_any_recorded_cgroup() -> None:
    result = verify(with_kubelets(recorded()), ())
    assert (result.nodes, result.compared, result.unmeasured) == (("worker-a", "worker-b", "worker-c"), 77, 0)
    assert result.differences == ()
    levels = ("kubepods", "qos", "pod", "container")
    assert result.compared == sum(row["level"] in levels for row in golden_json("cgroups.json"))


def test_verify_finds_every_container_a_wrong_states_file_speaks_of() -> None:
    rules = states.parse("- {match: {name: worker-b}, runtimes: {default: runc 1.3.6}}", "s")
    differences = verify(with_kubelets(recorded()), rules).differences
    assert {each.node for each in differences} == {"worker-b"}
    assert {each.level for each in differences} == {"container"}
    default = [
        (each.name, c.name)
        for each in recorded().pods
        if each.node == "worker-b" and each.runtime_class is None
        for c in each.containers
        if c.presence == "running" and (c.request_milli or 0) > 2
    ]
    assert sorted((each.pod, each.container) for each in differences) == sorted(default)
    redis = next(each for each in differences if each.container == "redis")
    assert (redis.predicted, redis.measured) == ((59,), 20)


@pytest.mark.parametrize(("milli", "shown"), [(1000, 975), (220, 207), (1200, 1179), (350, 334), (250, 232)])
def test_read_back_of_a_linear_weight(milli: int, shown: int) -> None:
    assert readback.read_back(linear(milli * 1024 // 1000)) == shown


@pytest.mark.parametrize(
    ("allocated", "shown", "formula"),
    [("1", "975m", "linear"), ("1", "1", None), ("1", "900m", None), ("2m", "2m", None), ("1", None, None)],
)
def test_what_a_pods_status_proves(allocated: str, shown: str | None, formula: str | None) -> None:
    raw = pod("p", container("c", allocated))
    raw["status"] |= {
        "allocatedResources": {"cpu": allocated},
        "resources": {"requests": {"cpu": shown}} if shown else None,
    }
    assert readback.proven_formula(cluster(raw).pods[0]) == formula


def test_a_quadratic_kubelet_would_be_found() -> None:
    raw = pod("p", container("c", "1"))
    shown = readback.read_back(quadratic(1024))
    raw["status"] |= {"allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": f"{shown}m"}}}
    assert settled(cluster(node(), raw))["n1"].kubelet_formula == "quadratic"


@pytest.mark.parametrize(
    "change", [{"resize": "InProgress"}, {"conditions": [{"type": "PodResizePending", "status": "True"}]}]
)
def test_a_pod_that_is_being_resized_proves_nothing(change: dict[str, object]) -> None:
    raw = pod("p", container("c", "1"))
    raw["status"] |= {"allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "975m"}}, **change}
    assert readback.proven_formula(cluster(raw).pods[0]) is None


def test_every_weight_is_read_back_from_what_cadvisor_shows_and_nothing_else() -> None:
    assert [measured.weight_of_shown(linear_inverse(weight)) for weight in range(1, 10001)] == list(range(1, 10001))
    real = {linear_inverse(weight) for weight in range(1, 10001)}
    assert [x for x in range(3000) if x not in real and measured.weight_of_shown(x) is not None] == []


def piece(about: str, value: str, confidence: str) -> Evidence:
    return msgspec.convert(
        {"about": about, "value": value, "confidence": confidence, "source": confidence, "saw": "it"}, Evidence
    )


@pytest.mark.parametrize(
    ("pieces", "rules", "cgroup", "contradictions"),
    [
        ([("v2", "hint")], "", None, 0),
        ([("v2", "hint"), ("v1", "likely")], "", "v1", 0),
        ([("v2", "likely"), ("v1", "certain")], "", "v1", 1),
        ([("v2", "likely")], "- cgroup: v1", "v1", 1),
        ([("v2", "certain")], "- cgroup: v1", "v2", 1),
        ([("v2", "certain")], "- cgroup: v2", "v2", 0),
        ([("v2", "likely"), ("v1", "likely")], "", None, 1),
        ([("v2", "certain"), ("v1", "certain")], "", None, 1),
        ([("v2", "certain"), ("v2", "certain")], "", "v2", 0),
    ],
)
def test_the_strongest_wins_and_contradictions_show(
    pieces: list[tuple[str, str]], rules: str, cgroup: str | None, contradictions: int
) -> None:
    (each,) = cluster(node()).nodes
    said = tuple(piece("cgroup", value, confidence) for value, confidence in pieces)
    state = ladder(each, states.parse(rules, "s") if rules else (), said)
    assert state.cgroup == cgroup
    assert len(state.contradictions) == contradictions


@pytest.mark.parametrize(
    ("status", "weight", "quota"),
    [
        ({"allocatedResources": {"cpu": "1"}}, 39, 400_000),
        ({"allocatedResources": {"cpu": "1"}, "resources": {"limits": {"cpu": "2"}}}, 39, 200_000),
        ({"allocatedResources": {"cpu": "1"}, "conditions": []}, 79, 400_000),
        ({}, 79, 400_000),
    ],
)
def test_a_pod_level_resize_that_is_pending_counts_as_allocated(
    status: dict[str, object], weight: int, quota: int
) -> None:
    raw = pod("p", container("c"), resources={"requests": {"cpu": "2"}, "limits": {"cpu": "4"}})
    raw["status"] |= {"conditions": [{"type": "PodResizePending", "status": "True"}], **status}
    (comparison,) = compared(cluster(node(kubelet="v1.36.2"), raw), V2_LINEAR)
    tree = comparison.pod(0)[0].before
    assert (tree.cgroup.weight, tree.cgroup.quota_us) == (weight, quota)


def test_a_contradiction_is_a_finding() -> None:
    objects = cluster(node(), pod("p", container("c", "1")))
    raw = pod("p", container("c", "1"))
    raw["status"] |= {"allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "975m"}}}
    result = audited(cluster(node(), raw), "- {cgroup: v1, runtimes: {default: runc 1.1.5}}")
    assert of_rule(audited(objects, V2_LINEAR), "CGA102") == {}
    (finding,) = of_rule(result, "CGA102").values()
    assert finding.seen == (
        "n1: the evidence contradicts itself: cgroup: pod.status.resources says v2 (default/p shows 975m for 1000m), "
        "but test rule 1 says v1."
    )


def test_containers_that_were_not_restarted_are_found_named_and_predicted_as_they_are() -> None:
    objects = half_restarted()
    (comparison,) = compared(objects, "", "runtime")
    assert told(comparison.state)["default"] == ("quadratic", "certain")
    assert [(each.pod, each.container, each.weight) for each in comparison.state.leftovers] == [
        ("p3", "app", 20),
        ("p3", "side", 2),
        ("p4", "app", 20),
        ("p4", "side", 2),
    ]
    weights = {tree.pod.name: [c.weight for _, c in tree.containers] for tree in comparison.cases[0].before.pods}
    assert weights == {"p1": [59, 11], "p2": [59, 11], "p3": [20, 2], "p4": [20, 2]}
    after = {tree.pod.name: [c.weight for _, c in tree.containers] for tree in comparison.cases[0].after.pods}
    assert set(map(tuple, after.values())) == {(59, 11)}
    (finding,) = of_rule(audited(objects, "", "runtime"), "CGA103").values()
    assert finding.severity == "medium"
    assert finding.seen == (
        "n1: 4 running containers carry another formula than their handler writes now (default writes quadratic): "
        "default/p3 app (weight 20, linear), default/p3 side (weight 2, linear), default/p4 app (weight 20, linear), "
        "default/p4 side (weight 2, linear)."
    )


def test_verify_names_the_containers_that_still_carry_the_old_formula() -> None:
    differences = verify(half_restarted(), ()).differences
    assert [
        (each.pod, each.container, each.predicted, each.measured) for each in differences if each.level == "container"
    ] == [("p3", "app", (59,), 20), ("p3", "side", (11,), 2), ("p4", "app", (59,), 20), ("p4", "side", (11,), 2)]


def test_shares_made_from_the_spec_prove_nothing() -> None:
    objects = half_restarted()
    assert objects.kubelets is not None
    answers = msgspec.structs.replace(objects.kubelets["n1"], stats_from_spec=True)
    (comparison,) = compared(msgspec.structs.replace(objects, kubelets={"n1": answers}), "", "runtime")
    assert told(comparison.state) == {"cgroup": ("v2", "certain")}
    assert comparison.state.leftovers == ()


def test_confidence_is_that_of_the_weakest_ground() -> None:
    blind = {each.name: each.confidence for each in audited(recorded()).nodes}
    assert blind == {"worker-a": "unknown", "worker-b": "unknown", "worker-c": "unknown"}
    assert {each.confidence for each in recorded_audit().nodes} == {"assumed", "likely"} - {"likely"}
    sure = {each.name: each.confidence for each in audited(with_kubelets(recorded())).nodes}
    assert sure == {"worker-a": "certain", "worker-b": "certain", "worker-c": "unknown"}
    workloads = {each.title: each.confidence for each in audited(with_kubelets(recorded())).workloads}
    assert (workloads["edge/gateway"], workloads["shop/checkout"]) == ("certain", "unknown")


@pytest.mark.parametrize(
    ("image", "java", "fault"),
    [
        ("openjdk:8u292", "Java 8u292", "blind"),
        ("openjdk:8", None, None),
        ("openjdk:8u372", None, None),
        ("eclipse-temurin:11.0.15_10", "Java 11.0.15", "blind"),
        ("eclipse-temurin:11.0.16_8-jre", "Java 11.0.16", "misreads"),
        ("eclipse-temurin:11.0.17", None, None),
        ("docker.io/library/openjdk:17.0.4", "Java 17.0.4", "misreads"),
        ("eclipse-temurin:17.0.4.1_1-jre", "Java 17.0.4", "misreads"),
        ("eclipse-temurin:11.0.16.1_1-jdk", "Java 11.0.16", "misreads"),
        ("a/b:1-jre-18.0.1.1", "Java 18.0.1", "misreads"),
        ("openjdk:17", None, None),
        ("openjdk:21", None, None),
        ("amazoncorretto:15", "Java 15", "misreads"),
        ("amazoncorretto:8", None, None),
        ("registry:5000/openjdk", None, None),
        ("nginx:11.0.1", None, None),
        ("openjdk@sha256:abc", None, None),
        ("openjdk:16@sha256:abc", "Java 16", "misreads"),
        ("openjdk:13", "Java 13", "blind"),
        ("tomcat:9.0.85-jdk17", None, None),
        ("tomcat:9.0.85", None, None),
        ("jetty:12.0-jdk21", None, None),
        ("tomcat:9.0.60-jdk11.0.14", "Java 11.0.14", "blind"),
    ],
)
def test_401_old_jvms_are_told_by_their_tag(image: str, java: str | None, fault: str | None) -> None:
    assert jvm.old_jvm(image) == ((java, fault) if java else None)


@pytest.mark.parametrize(
    ("image", "rules", "to", "said"),
    [
        (
            "openjdk:16",
            V2_LINEAR,
            "runtime",
            "takes weight 100 for no shares set and sees every CPU of the host; now it counts 1 CPU from weight 39.",
        ),
        ("openjdk:16", V2_LINEAR, "v2", None),
        ("openjdk:13", V1, "v2", "knows no cgroup v2: it then sees every CPU and all memory of the host"),
        ("openjdk:13", V2_LINEAR, "runtime", None),
        ("openjdk:17.0.9", V2_LINEAR, "runtime", None),
    ],
)
def test_401_what_an_old_jvm_makes_of_the_move(image: str, rules: str, to: str, said: str | None) -> None:
    objects = cluster(node(), pod("p", container("c", "1", image=image)))
    found = of_rule(audited(objects, rules, to), "CGA401")
    assert list(found) == (["default/p"] if said else [])
    assert [said in each.seen for each in found.values() if said] == ([True] if said else [])


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/sys/fs/cgroup", True),
        ("/sys/fs/cgroup/", True),
        ("/sys/fs/cgroup/cpu", True),
        ("/sys", True),
        ("/", True),
        ("/sys/fs/cgroup-other", False),
        ("/var/lib", False),
    ],
)
def test_401_only_the_container_that_mounts_the_cgroups_is_named(path: str, seen: bool) -> None:
    agent = pod(
        "a",
        container("agent", "100m", volumeMounts=[{"name": "host"}]),
        container("other", "100m"),
        volumes=[{"name": "host", "hostPath": {"path": path}}],
    )
    found = of_rule(audited(cluster(node(), agent), V2_LINEAR, "runtime"), "CGA401")
    assert list(found) == (["default/a"] if seen else [])
    begins = "Container agent of default/a mounts the host's cgroup tree"
    assert [each.seen[: len(begins)] for each in found.values()] == ([begins] if seen else [])
    assert of_rule(audited(cluster(node(), agent), V2_LINEAR, "kubelet=1.34"), "CGA401") == {}


@pytest.mark.parametrize(
    ("version", "value", "cpus"),
    [
        ("v1", 2, 1),
        ("v1", 1022, 1),
        ("v1", 1024, None),
        ("v1", 1025, 2),
        ("v1", 2048, 2),
        ("v2", 1, 1),
        ("v2", 39, 1),
        ("v2", 47, 1),
        ("v2", 58, 1),
        ("v2", 59, 2),
        ("v2", 79, 2),
        ("v2", 100, None),
        ("v2", 174, 4),
        ("v2", 10000, 256),
    ],
)
def test_401_cpus_an_old_jvm_counts(version: CgroupVersion, value: int, cpus: int | None) -> None:
    assert jvm.cpus(version, value) == cpus


@pytest.mark.parametrize(
    ("request_", "limit", "rules", "to", "said"),
    [
        # Both numbers are the default, and read as not set.
        ("1", None, V1, "v2+runtime", None),
        # The linear inverse is right for a linear runtime: nothing changes,
        ("2", None, V1, "v2", None),
        ("500m", None, V1, "v2", None),
        # or the count becomes the right one.
        (
            "1",
            None,
            V1,
            "v2",
            (
                "low",
                "counts 1 CPU from weight 39; now it takes 1024 shares for no shares set and sees every CPU of the host.",
            ),
        ),
        # 47 stands for 1.2 CPUs: v1 rounds up, v2 to the nearest.
        ("1200m", None, V1, "v2", ("medium", "counts 1 CPU from weight 47; now it counts 2 CPUs from 1228 shares.")),
        (
            "2",
            None,
            V1,
            "v2+runtime",
            ("medium", "counts 4 CPUs from weight 174; now it counts 2 CPUs from 2048 shares."),
        ),
        (
            "2",
            None,
            V2_LINEAR,
            "runtime",
            ("medium", "counts 4 CPUs from weight 174; now it counts 2 CPUs from weight 79."),
        ),
        # Never more than the node has.
        (
            "3",
            None,
            V2_LINEAR,
            "runtime",
            ("medium", "counts 4 CPUs from weight 240; now it counts 3 CPUs from weight 118."),
        ),
        ("4", None, V2_LINEAR, "runtime", None),
        # With a limit it counts from the quota.
        ("1", "2", V2_LINEAR, "runtime", None),
    ],
)
def test_401_fires_where_the_count_changes(
    request_: str, limit: str | None, rules: str, to: str, said: tuple[str, str] | None
) -> None:
    objects = cluster(node(), pod("p", container("c", request_, limit, image="openjdk:17.0.4")))
    found = [(each.severity, each.seen) for each in of_rule(audited(objects, rules, to), "CGA401").values()]
    start = "Container c of default/p runs openjdk:17.0.4 (Java 17.0.4): after the move it "
    assert found == ([(said[0], start + said[1])] if said else [])


def test_401_and_203_name_the_same_jdk_releases() -> None:
    objects = cluster(node(), pod("p", container("c", "1", image="openjdk:17.0.4")))
    result = audited(objects, V2_LINEAR, "runtime")
    assert jvm.FIXED_IN == "11.0.17, 17.0.5, 18.0.2 or 19"
    assert [each.remedy for each in of_rule(result, "CGA401").values()] == [
        "Move to JDK 11.0.17, 17.0.5, 18.0.2 or 19, or set -XX:ActiveProcessorCount."
    ]
    assert [each.remedy for each in of_rule(result, "CGA203").values()] == [
        "Nothing for the CPU share. Check what reads the number: JVMs before 11.0.17, 17.0.5, 18.0.2 or 19 count CPUs from it "
        "(weight 100 reads as no shares set; set -XX:ActiveProcessorCount), and dashboards on container_spec_cpu_shares."
    ]


def test_401_a_jvm_that_knows_no_v2_is_at_home_on_v1(tmp_path: Path) -> None:
    back = tmp_path / "v1.yaml"
    back.write_text("- {cgroup: v1}\n")
    objects = cluster(node(), pod("p", container("c", "1", image="openjdk:13")))
    assert of_rule(audited(objects, V2_LINEAR, str(back)), "CGA401") == {}


def test_401_cadvisor() -> None:
    exporter = pod("b", container("cadvisor", "100m", image="gcr.io/cadvisor/cadvisor:v0.49.1"))
    (finding,) = of_rule(audited(cluster(node(), exporter), V2_LINEAR, "runtime"), "CGA401").values()
    assert "container_spec_cpu_shares" in finding.seen


def worker_b(objects: Cluster, **changes: object) -> Cluster:
    """The recorded cluster with another worker-b."""
    nodes = tuple(msgspec.structs.replace(n, **changes) if n.name == "worker-b" else n for n in objects.nodes)
    return msgspec.structs.replace(objects, nodes=nodes)


def test_an_upgraded_runtime_whose_containers_were_not_restarted_stays_open() -> None:
    """A verified rule says quadratic, every running container is linear: both may be true, until they are restarted."""
    k3s = worker_b(
        recorded(), kubelet_version="v1.33.6+k3s1", runtime_version="containerd://2.1.5-k3s1.33", handlers=()
    )
    alone = settled(k3s)["worker-b"]
    assert told(alone)["default"] == ("quadratic", "likely")
    state = settled(with_kubelets(k3s))["worker-b"]
    assert "default" not in told(state)
    assert state.basis_of("runtime:default").source == "the evidence contradicts itself"
    assert len([each for each in state.leftovers if each.handler == "default"]) == 12
    (comparison,) = [each for each in compared(with_kubelets(k3s), "", "v2") if each.node.name == "worker-b"]
    redis = [
        [[c.weight for _, c in t.containers] for t in tree.pods if t.pod.name == "redis-0"]
        for case in comparison.cases
        for tree in (case.before, case.after)
    ]
    assert redis == [[[20, 1]], [[20, 1]], [[20, 1]], [[59, 6]]]
    effects = {each.title: each.effects for each in audited(with_kubelets(k3s), "", "v2").workloads}
    assert "unknown" in effects["shop/payments"]


def test_a_states_file_holds_for_containers_created_from_now_on() -> None:
    rules = "- {match: {name: worker-b}, runtimes: {default: runc 1.3.6}}"
    (comparison,) = [each for each in compared(with_kubelets(recorded()), rules, "v2") if each.node.name == "worker-b"]
    assert str(comparison.state.runtime("default")) == "runc 1.3.6 (quadratic)"
    weights = {
        moment: [c.weight for _, c in next(t for t in tree.pods if t.pod.name == "redis-0").containers]
        for moment, tree in (("now", comparison.cases[0].before), ("after", comparison.cases[0].after))
    }
    assert weights == {"now": [20, 1], "after": [59, 6]}
    assert len(comparison.state.contradictions) == 2


def without_metrics(objects: Cluster, name: str) -> Cluster:
    """The node's /metrics could not be read, or it is of a kubelet before 1.31."""
    assert objects.kubelets is not None
    answers = msgspec.structs.replace(objects.kubelets[name], cgroup_version=None)
    return msgspec.structs.replace(objects, kubelets={**objects.kubelets, name: answers})


def test_reserves_and_weights_count_when_the_version_is_known_from_elsewhere() -> None:
    objects = without_metrics(with_kubelets(recorded()), "worker-b")
    (comparison,) = [
        each for each in compared(objects, "- {match: {name: worker-b}, cgroup: v2}") if each.node.name == "worker-b"
    ]
    assert (comparison.state.system_slice, comparison.state.basis_of("system_slice").confidence) == (20, "certain")
    assert told(comparison.state)["default"] == ("linear", "certain")


def test_shares_that_no_weight_gives_prove_v1_and_verify_compares_them_as_they_are() -> None:
    objects = without_metrics(with_kubelets(recorded()), "worker-c")
    assert told(settled(objects)["worker-c"]) == {"cgroup": ("v1", "certain")}
    assert verify(objects, ()).differences == ()
    told_v1 = states.parse("- {match: {name: worker-c}, cgroup: v1, runtimes: {default: runc 1.1.5}}", "s")
    assert verify(objects, told_v1).differences == ()


def test_values_at_the_root_are_left_out_when_their_version_is_overruled() -> None:
    rules = "- {match: {name: worker-a}, cgroup: v1, system_slice: 20000, root: {docker: 2048}}"
    (comparison,) = [each for each in compared(recorded(), rules) if each.node.name == "worker-a"]
    assert (comparison.state.cgroup, comparison.state.system_slice, comparison.state.root) == ("v2", None, ())
    assert comparison.state.contradictions[-1] == "root: values given for cgroup v1 are left out, as the node is on v2"


@pytest.mark.parametrize(
    ("warned", "confidence"),
    [
        ("2026-11-21T00:50:00Z", "likely"),
        ("2026-11-21T00:36:05Z", "likely"),
        ("2026-11-21T00:36:04Z", "hint"),
        ("2020-01-01T00:00:00Z", "hint"),
        ("", "hint"),
    ],
)
def test_a_warning_counts_only_for_the_current_start(warned: str, confidence: str) -> None:
    (each,) = [n for n in recorded().nodes if n.name == "worker-b"]
    assert each.ready_since == "2026-11-21T00:46:05Z"
    assert warning.evidence(each, warned).confidence == confidence


@pytest.mark.parametrize(
    ("handler", "said"), [("kata-qemu", "none"), ("gvisor", "linear"), ("runsc", "linear"), ("sysbox-runc", "linear")]
)
def test_a_handler_that_is_no_runc_is_not_upgraded_to_quadratic(handler: str, said: str) -> None:
    raw = node()
    raw["status"]["runtimeHandlers"] = [{"name": handler, "features": {"userNamespaces": False}}]
    objects = cluster(raw, pod("p", container("a", "300m"), container("b", "50m"), runtimeClassName=handler))
    (comparison,) = compared(objects, "- {cgroup: v2}", "runtime")
    assert told(comparison.state)[handler] == (said, "likely")
    assert of_rule(audited(objects, "- {cgroup: v2}", "runtime"), "CGA204") == {}


def test_a_pod_in_resize_is_not_measured() -> None:
    objects = half_restarted()
    pods = tuple(other(each, resizing=each.name == "p3") for each in objects.pods)
    state = settled(msgspec.structs.replace(objects, pods=pods))["n1"]
    assert {each.pod for each in state.leftovers} == {"p4"}
    assert {each.pod for each in verify(msgspec.structs.replace(objects, pods=pods), ()).differences} == {"p4"}


def test_a_pod_of_the_same_name_in_resize_hides_no_difference() -> None:
    objects = half_restarted()
    twin = other(next(p for p in objects.pods if p.name == "p3"), namespace="other", resizing=True, containers=())
    moved = msgspec.structs.replace(twin, uid="twin")
    result = verify(msgspec.structs.replace(objects, pods=(*objects.pods, moved)), ())
    assert {"p3", "p4"} <= {each.pod for each in result.differences}


def test_verify_names_what_it_could_not_compare() -> None:
    objects = half_restarted()
    assert objects.kubelets is not None
    problem = "shows shares from the spec (kubelet_metrics_provider cri): they prove nothing"
    answers = msgspec.structs.replace(objects.kubelets["n1"], stats_from_spec=True, problems=(problem,))
    result = verify(msgspec.structs.replace(objects, kubelets={"n1": answers}), ())
    assert (result.nodes, result.compared, result.not_compared) == ((), 0, {"n1": (problem,)})
    assert report.as_text(result) == (
        "Nothing could be compared.\nNot compared: n1: shows shares from the spec (kubelet_metrics_provider cri):\n"
        "  they prove nothing.\n"
    )


@pytest.mark.parametrize(
    ("path", "root"), [("/kubepods/x", {"/system": 20}), ("/kubepods.slice", {"/system.slice": 20})]
)
def test_a_reserved_cgroup_is_named_as_its_driver_names_it(path: str, root: dict[str, int]) -> None:
    kubelets = with_kubelets(recorded()).kubelets
    assert kubelets is not None
    assert kubelets["worker-b"].config is not None
    config = msgspec.structs.replace(kubelets["worker-b"].config, system_reserved_cgroup="/system")
    answers = KubeletAnswers("n1", "v2", False, {path: 2}, config, ())
    objects = with_answers(cluster(node(), pod("p", container("c", "1"))), {"n1": answers})
    before = compared(objects)[0].cases[0].before
    assert {c.path: c.weight for c in before.root} == {"/system.slice": 100, **root}


def test_settings_of_the_kubelet_change_the_prediction() -> None:
    objects = cluster(node(cpu="2"), pod("p", container("c", "500m", "1")))
    config = msgspec.convert(
        {
            "cgroup_driver": "systemd",
            "cgroups_per_qos": True,
            "enforce_node_allocatable": ["kube-reserved"],
            "system_reserved_cgroup": None,
            "kube_reserved_cgroup": "/podruntime.slice",
            "system_reserved_milli": None,
            "kube_reserved_milli": 500,
            "cpu_cfs_quota": False,
            "cpu_cfs_quota_period_us": 50_000,
            "cpu_manager_policy": "none",
            "fail_cgroup_v1": False,
        },
        type=type(with_kubelets(recorded()).kubelets["worker-a"].config),  # type: ignore[index]
    )
    small = msgspec.structs.replace(objects.nodes[0], allocatable_milli=1500)
    answers = KubeletAnswers("n1", "v2", False, {"/kubepods.slice": 2}, config, ())
    objects = with_answers(msgspec.structs.replace(objects, nodes=(small,)), {"n1": answers})
    before = compared(objects, "- {runtimes: {default: runc 1.3.6}}")[0].cases[0].before
    assert before.kubepods.shares == 2048
    assert [(c.path, c.weight) for c in before.root] == [("/system.slice", 100), ("/podruntime.slice", 20)]
    assert [(c.quota_us, c.period_us) for _, c in before.pods[0].containers] == [(None, 50_000)]


@pytest.mark.parametrize(("period", "quota"), [(100_000, 75_000), (50_000, 75_000), (10_000, 75_000)])
def test_the_audits_quota_is_of_the_usual_period(period: int, quota: int) -> None:
    config = (with_kubelets(recorded()).kubelets or {})["worker-a"].config
    assert config is not None
    answers = KubeletAnswers("n1", "v2", False, {}, msgspec.structs.replace(config, cpu_cfs_quota_period_us=period), ())
    objects = with_answers(cluster(node(), pod("p", container("c", "500m", "750m"))), {"n1": answers})
    audit = audited(objects, V2_LINEAR, "runtime")
    (container_,) = audit.workloads[0].pods[0].containers
    assert (container_.cases[0].before.quota_us, container_.cases[0].after.quota_us) == (quota, quota)


def test_a_node_without_a_kubepods_tree_is_never_taken_for_modelled() -> None:
    objects = cluster(node(), pod("p", container("c", "500m")))
    config = with_kubelets(recorded()).kubelets["worker-a"].config  # type: ignore[index]
    assert config is not None
    flat = msgspec.structs.replace(config, cgroups_per_qos=False, enforce_node_allocatable=())
    answers = KubeletAnswers("n1", "v2", False, {}, flat, ())
    objects = with_answers(objects, {"n1": answers})
    result = audited(objects, V2_LINEAR)
    (audited_node,) = result.nodes
    assert (audited_node.confidence, [each.confidence for each in result.workloads]) == ("unknown", ["unknown"])
    assert Evidence("kubepods", "none", "certain", "kubelet /configz", "cgroupsPerQOS is false") in (
        settled(objects)["n1"].evidence
    )
    assert not result.coverage.complete
    assert [(each.what, each.why, each.remedy) for each in result.coverage.gaps] == [
        (
            "node n1",
            "cgroupsPerQOS is false there, so there is no kubepods tree: the shares shown of its pods are not what they get",
            "Set cgroupsPerQOS to true, its default, or leave the numbers of these pods aside",
        )
    ]
    tree = msgspec.structs.replace(answers, config=config)
    sound = audited(msgspec.structs.replace(objects, kubelets={"n1": tree}), V2_LINEAR)
    assert (sound.nodes[0].confidence, sound.coverage.gaps) == ("likely", ())


def test_what_is_only_known_not_to_be_quadratic_is_linear_once_somebody_says_so() -> None:
    raw = node()
    raw["status"]["runtimeHandlers"] = [{"name": "", "features": {"userNamespaces": False}}]
    objects = cluster(raw, pod("p", container("c", "1")))
    values = {
        rules: audited(objects, rules).nodes[0].known["runtime:default"]
        for rules in ("- {cgroup: v2}", "- {cgroup: v2, runtimes: {default: linear}}")
    }
    assert [(each.value, each.confidence) for each in values.values()] == [
        ("not quadratic", "likely"),
        ("linear", "assumed"),
    ]


@pytest.mark.parametrize(("shown", "version"), [(0, None), (1, None), (2, None), (3, "v1"), (28, None), (1000, "v1")])
def test_shares_that_no_cgroup_has_prove_no_version(shown: int, version: str | None) -> None:
    answers = KubeletAnswers("n1", None, False, {"/kubepods.slice": shown}, None, ())
    assert measured.cgroup_version(answers) == version


@pytest.mark.parametrize(("gone", "few"), [(4, {}), (5, {"n1": (3, 8)})])
def test_half_of_the_containers_is_not_few(gone: int, few: dict[str, tuple[int, int]]) -> None:
    objects = half_restarted()
    answers = (objects.kubelets or {})["n1"]
    left = dict(
        sorted(answers.shares.items(), key=lambda each: "cri-containerd" in each[0])[: len(answers.shares) - gone]
    )
    partly = with_answers(objects, {"n1": msgspec.structs.replace(answers, shares=left)})
    assert verify(partly, ()).few_containers == few


@pytest.mark.parametrize(
    ("version", "shown_", "value"), [("v2", linear_inverse(39), 39), ("v1", 2048, 2048), ("v2", 1000, None)]
)
def test_a_system_slice_that_is_shown_is_measured(version: CgroupVersion, shown_: int, value: int | None) -> None:
    answers = KubeletAnswers("n1", version, False, {"/kubepods.slice": 2, "/system.slice": shown_}, None, ())
    state = settled(with_answers(cluster(node(), pod("p", container("c", "1"))), {"n1": answers}))["n1"]
    assert state.system_slice == value
    if value:
        assert state.basis_of("system_slice").confidence == "certain"
