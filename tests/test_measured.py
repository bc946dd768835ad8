"""What a kubelet's configuration and metrics prove, and what they leave open."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.cgroups import paths
from kubectl_cgaudit.cgroups.version import KubeletVersion
from kubectl_cgaudit.cgroups.weights import linear_inverse, quadratic
from kubectl_cgaudit.collect import metrics
from kubectl_cgaudit.collect.assemble import with_answers
from kubectl_cgaudit.collect.model import KubeletAnswers, KubeletConfig
from kubectl_cgaudit.detect import measured, readback
from kubectl_cgaudit.detect.handlers import placed_pods
from kubectl_cgaudit.detect.measured import ContainerFormula
from tests.kubelet_support import CONFIG as SAID
from tests.support import audited, cluster, compared, container, half_restarted, node, of_rule, pod

CONFIG = metrics.config(SAID)


def answers(
    shares: dict[str, int] | None = None, *, config: KubeletConfig | None = CONFIG, **more: Any
) -> KubeletAnswers:
    usual: dict[str, Any] = {"cgroup_version": "v2", "stats_from_spec": False}
    return KubeletAnswers("n1", shares=shares or {}, config=config, problems=(), **{**usual, **more})


def says(found: KubeletAnswers, kubelet: KubeletVersion | None = None, known: Any = None) -> dict[str, tuple[str, str]]:
    """Value and confidence by what it is about."""
    return {each.about: (each.value, each.confidence) for each in measured.evidence(found, (), kubelet, known)}


def test_what_a_usual_configz_says_and_no_more() -> None:
    assert says(answers()) == {
        "cgroup": ("v2", "certain"),
        "driver": ("systemd", "hint"),
        "reserves": ("pods", "certain"),
        "kubepods": ("allocatable", "certain"),
    }


@pytest.mark.parametrize(
    ("changed", "about", "said"),
    [
        ({"cpu_cfs_quota": False}, "quota", ("off", "certain")),
        ({"cpu_cfs_quota_period_us": 50_000}, "period", ("50000", "certain")),
        ({"enforce_node_allocatable": ()}, "kubepods", ("capacity", "certain")),
        ({"enforce_node_allocatable": ()}, "reserves", ("nothing", "certain")),
        ({"cgroups_per_qos": False}, "kubepods", ("none", "certain")),
        ({"cgroup_driver": "cgroupfs"}, "driver", ("cgroupfs", "hint")),
        ({"cgroup_driver": "other"}, "driver", None),
        ({"cgroup_driver": None}, "driver", None),
    ],
)
def test_what_each_field_of_configz_says(changed: dict[str, Any], about: str, said: tuple[str, str] | None) -> None:
    assert says(answers(config=replace(CONFIG, **changed))).get(about) == said


@pytest.mark.parametrize(
    ("kubelet", "confidence"),
    [(None, "hint"), ((1, 34, 9), "hint"), ((1, 35, 0), "certain"), ((1, 35, 1), "certain")],
)
def test_the_driver_of_configz_is_certain_from_1_35_on(kubelet: tuple[int, int, int] | None, confidence: str) -> None:
    assert says(answers(), KubeletVersion(*kubelet) if kubelet else None)["driver"] == ("systemd", confidence)


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
    assert measured.cgroup_version(answers(shares, **{"cgroup_version": None, **more})) == version


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"system_reserved_cgroup": "/system.slice", "system_reserved_milli": 500}, {}),
        (
            {
                "enforce_node_allocatable": ("pods", "system-reserved"),
                "system_reserved_cgroup": "/system",
                "system_reserved_milli": 500,
            },
            {"system_slice": ("20", "certain")},
        ),
        (
            {
                "enforce_node_allocatable": ("pods", "kube-reserved-compressible"),
                "kube_reserved_cgroup": "/kube.slice",
                "kube_reserved_milli": 500,
            },
            {"root:kube.slice": ("20", "certain")},
        ),
        ({"enforce_node_allocatable": ("system-reserved",), "system_reserved_cgroup": "/system"}, {}),
        (
            {
                "enforce_node_allocatable": ("system-reserved",),
                "system_reserved_cgroup": "/a/b",
                "system_reserved_milli": 500,
            },
            {},
        ),
        (
            {
                "enforce_node_allocatable": ("system-reserved",),
                "system_reserved_cgroup": "/",
                "system_reserved_milli": 500,
            },
            {},
        ),
    ],
)
def test_what_is_enforced_on_the_cgroups_of_the_system(changed: dict[str, Any], found: dict[str, Any]) -> None:
    said = says(answers(config=replace(CONFIG, **changed)))
    assert {key: value for key, value in said.items() if key == "system_slice" or key.startswith("root:")} == found
    on_v1 = says(answers(config=replace(CONFIG, **changed), cgroup_version="v1"))
    assert {
        key: value for key, value in on_v1.items() if key == "system_slice" or key.startswith("root:")
    } == dict.fromkeys(found, ("512", "certain"))


def shown(weights: dict[str, int], **fields: Any) -> list[ContainerFormula]:
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


def formula(name: str, formula: Any, started: str, handler: str = "default") -> ContainerFormula:
    return ContainerFormula("default", name, "app", handler, formula, 59, 512, started)


def test_the_container_created_last_says_what_a_handler_uses_now() -> None:
    old, new = "2026-11-01T00:00:00Z", "2026-11-20T00:00:00Z"
    assert measured.current_formula([formula("a", "linear", old), formula("b", "quadratic", new)]) == "quadratic"
    assert measured.current_formula([formula("a", "quadratic", old), formula("b", "linear", new)]) == "linear"
    assert measured.current_formula([formula("a", "quadratic", old), formula("b", "linear", old)]) == "quadratic"
    assert measured.current_formula([formula("a", "linear", old), formula("b", "neither", new)]) == "linear"
    assert measured.current_formula([formula("a", "neither", new)]) is None
    assert measured.decide(512, None) is None
    assert measured.decide(2, 1) is None


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
    assert finding.seen == (
        "n1: 1 running container carries another formula than their handler writes now (default writes quadratic): "
        "default/p3 app (weight 20, linear)."
    )
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
