"""The evidence ladder on the recorded cluster, on made-up pieces, and where pieces disagree."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kubectl_cgaudit.cgroups import paths
from kubectl_cgaudit.cgroups.weights import linear, linear_inverse, quadratic
from kubectl_cgaudit.collect import files
from kubectl_cgaudit.collect.assemble import with_answers
from kubectl_cgaudit.collect.model import Cluster, KubeletAnswers
from kubectl_cgaudit.detect import measured, readback, states, warning
from kubectl_cgaudit.detect.evidence import Evidence
from kubectl_cgaudit.detect.handlers import handler
from kubectl_cgaudit.detect.settle import ladder
from tests.evidence_support import settled, told
from tests.support import (
    GOLDEN,
    RECORDED,
    V1,
    V2_LINEAR,
    audited,
    cluster,
    compared,
    container,
    half_restarted,
    node,
    of_rule,
    pod,
    recorded,
    recorded_audit,
    with_kubelets,
)


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
        .hints(["default"])[0]
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


def test_what_is_allocated_to_a_pod_has_its_overhead_in_it() -> None:
    """As `PodRequests` of the kubelet counts; so have the limits that it reads back from the pod's cgroup."""
    raw = pod(
        "p", container("c"), resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}, overhead={"cpu": "250m"}
    )
    raw["status"] |= {
        "conditions": [{"type": "PodResizePending", "status": "True"}],
        "allocatedResources": {"cpu": "750m"},
        "resources": {"limits": {"cpu": "1250m"}},
    }
    (comparison,) = compared(cluster(node(kubelet="v1.36.2"), raw), V1, "kubelet=1.36.3")
    tree = comparison.pod(0)[0].before
    assert (tree.cgroup.shares, tree.cgroup.quota_us) == (768, 125_000)
    raw["status"]["conditions"] = []
    (settled_,) = compared(cluster(node(kubelet="v1.36.2"), raw), V1, "kubelet=1.36.3")
    tree = settled_.pod(0)[0].before
    assert (tree.cgroup.shares, tree.cgroup.quota_us) == (1280, 225_000)


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


def test_confidence_is_that_of_the_weakest_ground() -> None:
    blind = {each.name: each.confidence for each in audited(recorded()).nodes}
    assert blind == {"worker-a": "unknown", "worker-b": "unknown", "worker-c": "unknown"}
    assert {each.confidence for each in recorded_audit().nodes} == {"assumed", "likely"} - {"likely"}
    sure = {each.name: each.confidence for each in audited(with_kubelets(recorded())).nodes}
    assert sure == {"worker-a": "certain", "worker-b": "certain", "worker-c": "unknown"}
    workloads = {each.title: each.confidence for each in audited(with_kubelets(recorded())).workloads}
    assert (workloads["edge/gateway"], workloads["shop/checkout"]) == ("certain", "unknown")


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
    ("handler", "said"), [("kata-qemu", "none"), ("gvisor", "none"), ("runsc", "none"), ("sysbox-runc", "linear")]
)
def test_a_handler_that_is_no_runc_is_not_upgraded_to_quadratic(handler: str, said: str) -> None:
    raw = node()
    raw["status"]["runtimeHandlers"] = [{"name": handler, "features": {"userNamespaces": False}}]
    objects = cluster(raw, pod("p", container("a", "300m"), container("b", "50m"), runtimeClassName=handler))
    (comparison,) = compared(objects, "- {cgroup: v2}", "runtime")
    assert told(comparison.state)[handler] == (said, "likely")
    assert of_rule(audited(objects, "- {cgroup: v2}", "runtime"), "CGA204") == {}


@pytest.mark.parametrize(("period", "quota"), [(100_000, 75_000), (50_000, 75_000), (10_000, 75_000)])
def test_the_audits_quota_is_of_the_usual_period(period: int, quota: int) -> None:
    config = (with_kubelets(recorded()).kubelets or {})["worker-a"].config
    assert config is not None
    answers = KubeletAnswers("n1", "v2", False, {}, msgspec.structs.replace(config, cpu_cfs_quota_period_us=period), ())
    objects = with_answers(cluster(node(), pod("p", container("c", "500m", "750m"))), {"n1": answers})
    audit = audited(objects, V2_LINEAR, "runtime")
    (container_,) = audit.workloads[0].pods[0].containers
    assert (container_.cases[0].before.quota_us, container_.cases[0].after.quota_us) == (quota, quota)


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


def of(name: str) -> str:
    return f"containerd://{name}"


@pytest.mark.parametrize(
    ("warned", "ready", "confidence", "saw"),
    [
        ("2026-11-02T00:00:00Z", None, "likely", "2026-11-02T00:00:00Z"),
        ("2026-11-02T00:00:00Z", "2026-11-02T00:10:00Z", "likely", "2026-11-02T00:00:00Z"),
        (
            "2026-11-02T00:00:00Z",
            "2026-11-02T00:10:01Z",
            "hint",
            "2026-11-02T00:00:00Z, before the node last became Ready",
        ),
        ("", None, "hint", "an unknown time"),
        ("", "2026-11-02T00:10:01Z", "hint", "an unknown time"),
        ("yesterday", "2026-11-02T00:10:01Z", "hint", "yesterday"),
    ],
)
def test_what_a_warning_saw(warned: str, ready: str | None, confidence: str, saw: str) -> None:
    one = replace(cluster(node()).nodes[0], ready_since=ready)
    found = warning.evidence(one, warned)
    assert (found.confidence, found.saw) == (confidence, f"the kubelet warned of cgroup v1 at {saw}")


def test_a_runtime_class_with_an_empty_handler_stands_for_the_default() -> None:
    def of(name: str) -> dict[str, Any]:
        return {"kind": "RuntimeClass", "metadata": {"name": name}, "handler": "" if name == "empty" else "crun"}

    found = cluster(node(), of("empty"), of("full"))
    assert [handler(name, found) for name in (None, "empty", "full", "unread")] == [
        "default",
        "default",
        "crun",
        "unread",
    ]


def test_every_contradiction_stays() -> None:
    objects = half_restarted()
    rules = "- {cgroup: v1, driver: cgroupfs, runtimes: {default: runc 1.3.6}}"
    (comparison,) = compared(objects, rules, "v2")
    assert [each.partition(":")[0] for each in comparison.state.contradictions] == ["cgroup", "driver"]


@pytest.mark.parametrize(
    ("handler", "weight", "known", "why"),
    [
        # Of gVisor and Kata the default is what nobody set.
        ("runsc", 100, "none", "likely"),
        ("kata", 100, "none", "likely"),
        ("fast", 100, "quadratic", "certain"),
        # What is seen outranks a handler's name.
        ("runsc", 39, "linear", "certain"),
        ("sysbox", 100, "quadratic", "certain"),
    ],
)
def test_what_the_containers_of_a_sandbox_prove(handler: str, weight: int, known: str, why: str) -> None:
    raw = pod("p", container("app", "1"), container("side", "100m"), runtimeClassName=handler)
    raw["status"]["containerStatuses"] = [
        {"name": "app", "containerID": "containerd://app", "state": {"running": {"startedAt": "2026-11-20T00:00:00Z"}}}
    ]
    objects = cluster(node(), raw)
    parent = paths.pod(objects.pods[0], "systemd")
    path = paths.container("containerd://app", parent, "systemd")
    assert path is not None
    answers = KubeletAnswers("n1", "v2", False, {path: linear_inverse(weight)}, None, ())
    measured_ = with_answers(objects, {"n1": answers})
    (comparison,) = compared(measured_, to="runtime")
    state = comparison.state
    assert state.contradictions == ()
    assert state.leftovers == ()
    assert state.basis_of(f"runtime:{handler}").confidence == why
    assert {case.now.runtime(handler).formula for case in comparison.cases} == {known}
    # A new runc changes nothing in a sandbox, nor where it is there already.
    assert list(of_rule(audited(measured_, to="runtime"), "CGA204")) == ["default/p"] * (known == "linear")


def test_containers_that_differ_and_have_the_default_alike_were_given_no_weight() -> None:
    """gVisor under a name that says nothing of it: 100 is the quadratic weight of 1 CPU, and of nothing else."""
    raw = pod("p", container("app", "1"), container("side", "100m"), runtimeClassName="secure")
    raw["status"]["containerStatuses"] = [
        {
            "name": name,
            "containerID": f"containerd://{name}",
            "state": {"running": {"startedAt": "2026-11-20T00:00:00Z"}},
        }
        for name in ("app", "side")
    ]
    objects = cluster(node(), raw)
    parent = paths.pod(objects.pods[0], "systemd")
    shown = {
        str(paths.container(f"containerd://{name}", parent, "systemd")): linear_inverse(100) for name in ("app", "side")
    }
    measured_ = with_answers(objects, {"n1": KubeletAnswers("n1", "v2", False, shown, None, ())})
    (comparison,) = compared(measured_, to="runtime")
    assert told(comparison.state)["secure"] == ("none", "certain")
    assert (comparison.state.contradictions, comparison.state.leftovers) == ((), ())
    (piece,) = [each for each in comparison.state.evidence if each.about == "runtime:secure"]
    assert (
        piece.saw == "all its containers have weight 100, for 102 and 1024 shares: no formula makes that, nobody set it"
    )
    assert [each.rule for each in audited(measured_, to="runtime").findings] == ["CGA001"]
    # One container alone may have been given it by hand.
    alone = {path: share for path, share in shown.items() if "side" in path}
    (open_,) = compared(with_answers(objects, {"n1": KubeletAnswers("n1", "v2", False, alone, None, ())}), to="runtime")
    assert told(open_.state).get("secure") is None
    # Who says so is not contradicted.
    (said,) = compared(measured_, "- {runtimes: {secure: runsc}}", "runtime")
    assert said.state.contradictions == ()


def test_false_features_of_a_handler_that_may_be_any_shim_are_a_hint() -> None:
    raw = node()
    raw["status"]["runtimeHandlers"] = [
        {"name": name, "features": {"userNamespaces": False}} for name in ("", "spin", "crun-old", "kata")
    ]
    found = settled(cluster(raw, pod("p", container("c", "1"), runtimeClassName="spin")))["n1"]
    assert {name: told(found).get(name) for name in ("default", "spin", "crun-old", "kata")} == {
        "default": ("linear", "likely"),
        "spin": None,
        "crun-old": ("linear", "likely"),
        "kata": ("none", "likely"),
    }
    assert found.hints(["spin"]) == ("userNamespaces is false: probably not quadratic",)


def test_youki_has_no_id_mapped_mounts_whatever_its_formula() -> None:
    raw = node()
    raw["status"]["runtimeHandlers"] = [{"name": "youki", "features": {"userNamespaces": False}}]
    objects = cluster(raw, pod("p", container("a", "1"), container("b", "20m"), runtimeClassName="youki"))
    (open_,) = compared(objects, "- {cgroup: v2}", "runtime")
    assert [case.now.runtime("youki").formula for case in open_.cases] == ["linear", "quadratic"]
    (told_,) = compared(objects, "- {cgroup: v2, runtimes: {youki: youki 0.5.7}}", "runtime")
    assert told_.state.contradictions == ()
