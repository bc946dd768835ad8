"""What a kubelet's metrics prove, and what they leave open."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kubectl_cgaudit.cgroups import paths
from kubectl_cgaudit.cgroups.pods import pod_shares
from kubectl_cgaudit.cgroups.version import KubeletVersion
from kubectl_cgaudit.cgroups.weights import linear, linear_inverse, quadratic
from kubectl_cgaudit.collect.assemble import with_answers
from kubectl_cgaudit.collect.model import Cluster, KubeletAnswers
from kubectl_cgaudit.compare.verify import verify
from kubectl_cgaudit.detect import measured, readback, states
from kubectl_cgaudit.detect.evidence import Evidence
from kubectl_cgaudit.detect.handlers import placed_pods
from kubectl_cgaudit.detect.measured import WeighedContainer
from kubectl_cgaudit.detect.state import CgroupVersion
from tests.evidence_support import settled, told
from tests.measured_support import answers, says
from tests.support import (
    V2_LINEAR,
    audited,
    cluster,
    compared,
    container,
    half_restarted,
    node,
    of_rule,
    other,
    pod,
    pod_values,
    recorded,
    saved,
    with_kubelets,
)


@pytest.mark.parametrize(
    ("shares", "driver"),
    [
        ({"/kubepods.slice/x": 2, "/other": 2}, "systemd"),
        ({"/kubepods/x": 2, "/other": 2}, "cgroupfs"),
        ({"/other": 2}, None),
    ],
)
def test_the_driver_by_the_paths_of_the_rows(shares: dict[str, int], driver: str | None) -> None:
    found = says(answers(shares))["driver"]
    assert found == ((driver, "certain") if driver else ("systemd", "hint"))


@pytest.mark.parametrize(
    ("shares", "more", "version"),
    [
        ({"/kubepods/x": 3}, {}, "v1"),
        ({"/kubepods/x": 2}, {}, None),
        ({"/kubepods/x": 28}, {}, None),
        ({"/other": 3}, {}, None),
        ({"/kubepods/x": 3}, {"stats_from_spec": True}, None),
        ({"/kubepods/x": 3}, {"stats_from_spec": None}, None),
        ({}, {}, None),
        ({"/kubepods/x": 3}, {"cgroup_version": "v2"}, "v2"),
        ({"/kubepods/x": 3}, {"cgroup_version": "v2", "stats_from_spec": True}, "v2"),
    ],
)
def test_shares_that_no_weight_gives_are_of_v1(
    shares: dict[str, int], more: dict[str, Any], version: str | None
) -> None:
    found = measured.cgroup_version(answers(shares, **{"cgroup_version": None, **more}))
    assert (found[0] if found else None) == version


def shown(weights: dict[str, int], **fields: Any) -> list[WeighedContainer]:
    """The formulas of the containers of pod p (app asks for 500m, side for 50m) that have these weights."""
    raw = pod("p", container("app", "500m"), container("side", "50m"))
    raw["status"]["containerStatuses"] = [
        {
            "name": name,
            "containerID": f"containerd://{name}",
            "state": {"running": {"startedAt": "2026-11-20T00:00:00Z"}},
        }
        for name in ("app", "side")
    ]
    raw["status"] |= fields.pop("status", {})
    objects = cluster(node(), raw)
    parent = paths.pod(objects.pods[0], "systemd")
    below = fields.pop("below", "")
    rows = {
        f"{paths.container(name, parent, 'systemd')}{below}": linear_inverse(weight) for name, weight in weights.items()
    }
    found = answers(
        {"/kubepods.slice": 2, **{path.replace("/cri-containerd-", "/cri-containerd-"): v for path, v in rows.items()}},
        **fields,
    )
    return measured.container_formulas(found, placed_pods(objects)["n1"], None)


def of(name: str) -> str:
    return f"containerd://{name}"


def test_the_formula_of_each_container_whose_weight_decides_it() -> None:
    found = shown({of("app"): 59, of("side"): 2})
    assert [(each.container, each.formula, each.weight, each.started) for each in found] == [
        ("app", "quadratic", 59, "2026-11-20T00:00:00Z"),
        ("side", "linear", 2, "2026-11-20T00:00:00Z"),
    ]
    assert [(each.container, each.formula) for each in shown({of("app"): 58})] == [("app", "neither")]
    # crun runs the container one cgroup below.
    assert [each.formula for each in shown({of("app"): 20}, below="/container")] == ["linear"]
    assert shown({of("app"): 59}, stats_from_spec=True) == []
    resizing = {"conditions": [{"type": "PodResizeInProgress", "status": "True"}]}
    assert shown({of("app"): 59}, status=resizing) == []


def formula(name: str, formula: Any, started: str, handler: str = "default") -> WeighedContainer:
    return WeighedContainer("default", name, "app", handler, formula, 59, 512, started)


K132 = KubeletVersion(1, 32, 0)


def test_the_container_created_last_says_what_a_handler_uses_now() -> None:
    old, new = "2026-11-01T00:00:00Z", "2026-11-20T00:00:00Z"
    assert measured.current_formula([formula("a", "linear", old), formula("b", "quadratic", new)], K132) == "quadratic"
    assert measured.current_formula([formula("a", "quadratic", old), formula("b", "linear", new)], K132) == "linear"
    # One of them was resized since, or created in the same second: which it is nobody knows.
    assert measured.current_formula([formula("a", "quadratic", old), formula("b", "linear", old)], K132) is None
    mixed = [formula("a", "quadratic", old), formula("b", "linear", new), formula("c", "quadratic", new)]
    assert measured.current_formula(mixed, K132) is None
    assert measured.current_formula([formula("a", "linear", old), formula("b", "neither", new)], K132) == "linear"
    assert measured.current_formula([formula("a", "neither", new)], K132) is None
    # From 1.33 on the older one may have been resized under the newer release.
    downgraded = [formula("a", "quadratic", old), formula("b", "linear", new)]
    assert [measured.current_formula(downgraded, each) for each in (KubeletVersion(1, 33, 0), None)] == [None, None]
    upgraded = [formula("a", "linear", old), formula("b", "quadratic", new)]
    assert measured.current_formula(upgraded, KubeletVersion(1, 33, 0)) == "quadratic"
    assert measured.decide(512, None) is None
    assert measured.decide(2, 1) is None
    assert measured.decide(2, 100) == "neither"


def test_how_many_more_say_the_same() -> None:
    (comparison,) = compared(half_restarted(), "", "runtime")
    saw = {each.about: each.saw for each in comparison.state.evidence if each.source == "kubelet /metrics/cadvisor"}
    assert saw["runtime:default"] == "container app of default/p1 has weight 59 for 512 shares, and 3 more like it"
    assert saw["kubelet"] == "pod default/p1 has weight 22, and 3 more like it"


def test_103_one_container_is_left_over() -> None:
    objects = half_restarted()
    assert objects.kubelets is not None
    shares = dict(objects.kubelets["n1"].shares)
    for each in objects.pods[2:]:
        parent = paths.pod(each, "systemd")
        for c, milli in zip(each.containers, (512, 51), strict=True):
            path = paths.container(c.runtime_id, parent, "systemd")
            assert path is not None
            if (each.name, c.name) != ("p3", "app"):
                shares[path] = linear_inverse(quadratic(milli))
    one = with_answers(objects, {"n1": replace(objects.kubelets["n1"], shares=shares)})
    (finding,) = of_rule(audited(one, "", "runtime"), "CGA103").values()
    print(finding)
    by_hand = "- {cgroup: v2, runtimes: {default: runc 1.3.6}}"
    del by_hand


def test_a_value_between_the_formulas_proves_nothing() -> None:
    def proven(allocated: str, read: str, **more: Any) -> str | None:
        raw = pod("p", container("c", allocated), **more)
        raw["status"] |= {"allocatedResources": {"cpu": allocated}, "resources": {"requests": {"cpu": read}}}
        return readback.proven_formula(cluster(node(), raw).pods[0])

    assert proven("1", "975m") == "linear"
    assert proven("1", "1") is None
    assert proven("1", "974m") is None
    assert proven("1", "975m", phase="Succeeded") is None


def test_rows_made_from_the_spec_say_nothing_of_the_kubelet_and_a_resize_neither() -> None:
    objects = half_restarted()
    assert objects.kubelets is not None
    said = objects.kubelets["n1"]
    placed = placed_pods(objects)["n1"]

    def abouts(found: KubeletAnswers, pods: Any) -> set[str]:
        return {each.about for each in measured.evidence(found, pods, None, None)}

    assert abouts(said, placed) == {"cgroup", "driver", "kubelet", "runtime:default"}
    assert abouts(replace(said, stats_from_spec=True), placed) == {"cgroup", "driver"}
    resizing = [(replace(each, alike=replace(each.alike, resizing=True)), handler) for each, handler in placed]
    assert abouts(said, resizing) == {"cgroup", "driver"}


def test_shares_made_from_the_spec_prove_nothing() -> None:
    objects = half_restarted()
    assert objects.kubelets is not None
    answers = msgspec.structs.replace(objects.kubelets["n1"], stats_from_spec=True)
    (comparison,) = compared(msgspec.structs.replace(objects, kubelets={"n1": answers}), "", "runtime")
    assert told(comparison.state) == {"cgroup": ("v2", "certain")}
    assert comparison.state.leftovers == ()


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
    assert told(settled(objects)["worker-c"]) == {"cgroup": ("v1", "certain"), "default": ("linear", "probable")}
    assert verify(objects, ()).differences == ()
    told_v1 = states.parse("- {match: {name: worker-c}, cgroup: v1, runtimes: {default: runc 1.1.5}}", "s")
    assert verify(objects, told_v1).differences == ()


def test_values_at_the_root_are_left_out_when_their_version_is_overruled() -> None:
    rules = "- {match: {name: worker-a}, cgroup: v1, system_slice: 20000, root: {docker: 2048}}"
    (comparison,) = [each for each in compared(recorded(), rules) if each.node.name == "worker-a"]
    assert (comparison.state.cgroup, comparison.state.system_slice, comparison.state.root) == ("v2", None, ())
    assert comparison.state.contradictions[-1] == "root: values given for cgroup v1 are left out, as the node is on v2"
    assert comparison.state.basis_of("system_slice").confidence == "probable"


def test_a_pod_in_resize_is_not_measured() -> None:
    objects = half_restarted()
    pods = tuple(other(each, resizing=each.name == "p3") for each in objects.pods)
    state = settled(msgspec.structs.replace(objects, pods=pods))["n1"]
    assert {each.pod for each in state.leftovers} == {"p4"}
    assert {each.pod for each in verify(msgspec.structs.replace(objects, pods=pods), ()).differences} == {"p4"}


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


@pytest.mark.parametrize(("shown", "version"), [(0, None), (1, None), (2, None), (3, "v1"), (28, None), (1000, "v1")])
def test_shares_that_no_cgroup_has_prove_no_version(shown: int, version: str | None) -> None:
    answers = KubeletAnswers("n1", None, False, {"/kubepods.slice": shown}, None, ())
    assert measured.cgroup_version(answers) == (
        (version, "it shows shares that no cgroup v2 weight gives") if version else None
    )


@pytest.mark.parametrize(
    ("version", "shown_", "value"), [("v2", linear_inverse(39), 39), ("v1", 2048, 2048), ("v2", 1000, None)]
)
def test_a_system_slice_that_is_shown_is_measured(version: CgroupVersion, shown_: int, value: int | None) -> None:
    answers = KubeletAnswers("n1", version, False, {"/kubepods.slice": 2, "/system.slice": shown_}, None, ())
    state = settled(with_answers(cluster(node(), pod("p", container("c", "1"))), {"n1": answers}))["n1"]
    assert state.system_slice == value
    if value:
        assert state.basis_of("system_slice").confidence == "certain"


def said_by(pods: dict[str, int]) -> dict[str, tuple[str, str]]:
    """What is said of a node before kubelet 1.31 whose pods, by what they ask for, show these shares."""
    objects = cluster(node(), *(pod(f"p{milli}", container("c", milli)) for milli in pods))
    shares = {paths.pod(each, "systemd") or "": shown for each, shown in zip(objects.pods, pods.values(), strict=True)}
    found = measured.evidence(answers(shares, cgroup_version=None), placed_pods(objects)["n1"], None, None)
    return {each.about: (each.value, each.strength) for each in found if each.about == "cgroup"}


def test_before_1_31_the_pods_own_shares_tell_the_cgroup_version() -> None:
    assert said_by({"1100m": 1103, "500m": 500}) == {"cgroup": ("v2", "certain")}
    # 1024 is the weight 40 too, but not that of a pod that asks for 1 CPU.
    assert said_by({"1": 1024}) == {"cgroup": ("v1", "certain")}
    # Neither what the pod asks for nor its weight, and both.
    assert said_by({"1": 2597}) == {}
    assert said_by({"0": 2}) == {}
    # They contradict each other.
    assert said_by({"1": 1024, "1100m": 1103}) == {}


def test_a_container_without_a_request_shows_that_nobody_set_its_weight() -> None:
    """gVisor under a handler that does not say so: no formula makes weight 100 of 2 shares."""
    found = [
        WeighedContainer("default", "p", name, "secure", measured.decide(shares, 100) or "linear", 100, shares, "")
        for name, shares in (("a", 1024), ("b", 2))
    ]
    (said,) = measured._of_handlers(found, K132)
    assert (said.about, said.value, said.strength) == ("runtime:secure", "none", "certain")


def test_a_pod_that_was_recreated_has_not_the_weight_of_one_that_was_not() -> None:
    """Whichever comes first: the one left over stood for all pods like it."""
    objects = half_restarted([("linear", 1), ("quadratic", 20), ("linear", 2), ("quadratic", 21)])
    values = pod_values(saved(objects, "", "runtime"), ["before_value"])
    assert values == {"p1": [(20,), (2,)], "p2": [(59,), (11,)], "p3": [(20,), (2,)], "p4": [(59,), (11,)]}


@pytest.mark.parametrize(
    ("kubelet", "gate", "decides"),
    [("v1.33.13", True, False), ("v1.33.13", None, False), ("v1.33.13", False, True), ("v1.36.2", True, True)],
)
def test_a_pod_with_its_own_resources_decides_nothing_where_a_gate_is_open(
    kubelet: str, gate: bool | None, decides: bool
) -> None:
    """Weight 17 is linear of the pod's own 430m and no formula's of its containers' 100m, and 4 of those."""
    asks = {"resources": {"requests": {"cpu": "430m"}}}
    raw = pod("p", container("app", "100m"), **asks)
    raw["status"]["containerStatuses"] = [{"name": "app", "containerID": "containerd://app", "state": {"running": {}}}]
    objects = cluster(node(kubelet=kubelet), raw)
    parent = paths.pod(objects.pods[0], "systemd")
    assert parent is not None
    version = KubeletVersion.parse(kubelet)
    pods = linear(pod_shares(objects.pods[0], version))
    found = answers(
        {parent: linear_inverse(pods), f"{parent}/cri-containerd-app.scope": linear_inverse(17)}, pod_level=gate
    )
    said = {each.about for each in measured.evidence(found, placed_pods(objects)["n1"], version, None)}
    assert said & {"kubelet", "runtime:default"} == ({"kubelet", "runtime:default"} if decides else set())
