"""The evidence ladder on the recorded cluster, on made-up pieces, and where pieces disagree."""

import msgspec
import pytest
from msgspec.structs import replace

from kubectl_cgaudit.cgroups.weights import linear, linear_inverse, quadratic
from kubectl_cgaudit.collect import files
from kubectl_cgaudit.collect.assemble import with_answers
from kubectl_cgaudit.collect.model import KubeletAnswers
from kubectl_cgaudit.detect import measured, readback, states, warning
from kubectl_cgaudit.detect.evidence import Evidence
from kubectl_cgaudit.detect.settle import ladder
from tests.evidence_support import settled, told
from tests.support import (
    GOLDEN,
    RECORDED,
    V2_LINEAR,
    audited,
    cluster,
    compared,
    container,
    half_restarted,
    node,
    of_rule,
    pod,
    pod_values,
    recorded,
    recorded_audit,
    saved,
    with_kubelets,
)


def test_nodes_and_pods_alone_say_what_they_can_and_nothing_wrong() -> None:
    found = settled(recorded())
    assert told(found["worker-a"]) == {"cgroup": ("v2", "certain"), "runc-old": ("linear", "likely")}
    assert told(found["worker-b"]) == {
        "cgroup": ("v2", "probable"),
        "default": ("linear", "likely"),
        "runc-old": ("linear", "likely"),
    }
    # Debian 12 starts with cgroup v2 by default; on this node somebody overrode that.
    assert told(found["worker-c"]) == {"cgroup": ("v2", "probable"), "default": ("linear", "probable")}
    assert found["worker-c"].basis_of("cgroup").override == (
        "systemd.unified_cgroup_hierarchy in the node's kernel command line"
    )


def test_an_unknown_version_is_predicted_both_ways_until_an_event_tells() -> None:
    cases = {each.node.name: [case.before.cgroup for case in each.cases] for each in compared(recorded())}
    assert cases["worker-c"] == ["v2", "v2", "v1", "v1"]
    events = files.read((*RECORDED, str(GOLDEN / "events.json")), lambda _n, _l: True, "")
    assert list(events.cgroup_v1_warnings or {}) == ["worker-c"]
    assert told(settled(events)["worker-c"]) == {"cgroup": ("v1", "likely"), "default": ("linear", "probable")}


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
    assert told(found["worker-c"]) == {"cgroup": ("v1", "certain"), "default": ("linear", "probable")}
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


def piece(about: str, value: str, strength: str) -> Evidence:
    return msgspec.convert(
        {"about": about, "value": value, "strength": strength, "source": strength, "saw": "it"}, Evidence
    )


@pytest.mark.parametrize(
    ("pieces", "rules", "cgroup", "contradictions"),
    [
        ([("v2", "hint")], "", None, 0),
        ([("v2", "probable")], "", "v2", 0),
        ([("v2", "probable"), ("v1", "hint")], "", "v2", 0),
        ([("v2", "probable"), ("v1", "probable")], "", None, 0),
        ([("v2", "probable"), ("v1", "likely")], "", "v1", 0),
        ([("v2", "probable"), ("v1", "certain")], "", "v1", 0),
        ([("v2", "probable")], "- cgroup: v1", "v1", 0),
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


def test_a_contradiction_is_a_finding() -> None:
    objects = cluster(node(), pod("p", container("c", "1")))
    raw = pod("p", container("c", "1"))
    raw["status"] |= {"allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "975m"}}}
    result = audited(cluster(node(), raw), "- {cgroup: v1, runtimes: {default: runc 1.1.5}}")
    assert of_rule(audited(objects, V2_LINEAR), "CGA102") == {}
    (finding,) = of_rule(result, "CGA102").values()
    assert finding.detail["contradictions"] == [
        "cgroup: pod.status.resources says v2 (default/p shows 975m for 1000m), but test rule 1 says v1"
    ]


def test_confidence_is_that_of_the_weakest_ground() -> None:
    blind = {each.name: each.confidence for each in audited(recorded()).nodes}
    assert blind == {"worker-a": "unknown", "worker-b": "unknown", "worker-c": "probable"}
    assert {each.confidence for each in recorded_audit().nodes} == {"stated", "likely"} - {"likely"}
    sure = {each.name: each.confidence for each in audited(with_kubelets(recorded())).nodes}
    assert sure == {"worker-a": "certain", "worker-b": "certain", "worker-c": "probable"}
    workloads = {each.title: each.confidence for each in audited(with_kubelets(recorded())).workloads}
    assert (workloads["edge/gateway"], workloads["shop/checkout"]) == ("certain", "probable")


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
    assert warning.evidence(each, warned).strength == confidence


@pytest.mark.parametrize(("period", "quota"), [(100_000, 75_000), (50_000, 75_000), (10_000, 75_000)])
def test_the_audits_quota_is_of_the_usual_period(period: int, quota: int) -> None:
    config = (with_kubelets(recorded()).kubelets or {})["worker-a"].config
    assert config is not None
    answers = KubeletAnswers("n1", "v2", False, {}, msgspec.structs.replace(config, cpu_cfs_quota_period_us=period), ())
    objects = with_answers(cluster(node(), pod("p", container("c", "500m", "750m"))), {"n1": answers})
    found = saved(objects, V2_LINEAR, "runtime")
    assert pod_values(found, ["before_quota_us", "after_quota_us"]) == {"p": [(quota, quota)]}


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
        ("2026-11-02T00:00:00Z", "0001-01-01T00:00:00Z", "likely", "2026-11-02T00:00:00Z"),
        ("", None, "hint", "an unknown time"),
        ("", "2026-11-02T00:10:01Z", "hint", "an unknown time"),
        ("yesterday", "2026-11-02T00:10:01Z", "hint", "yesterday"),
    ],
)
def test_what_a_warning_saw(warned: str, ready: str | None, confidence: str, saw: str) -> None:
    one = replace(cluster(node()).nodes[0], ready_since=ready)
    found = warning.evidence(one, warned)
    assert (found.strength, found.saw) == (confidence, f"the kubelet warned of cgroup v1 at {saw}")


def test_every_contradiction_stays() -> None:
    objects = half_restarted()
    rules = "- {cgroup: v1, driver: cgroupfs, runtimes: {default: runc 1.3.6}}"
    (comparison,) = compared(objects, rules, "v2")
    assert [each.partition(":")[0] for each in comparison.state.contradictions] == ["cgroup", "driver"]
