"""What a kubelet's /configz says of its node."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kubectl_cgaudit.cgroups.version import KubeletVersion
from kubectl_cgaudit.cgroups.weights import linear_inverse
from kubectl_cgaudit.collect.assemble import with_answers
from kubectl_cgaudit.collect.model import KubeletAnswers, KubeletConfig
from tests.measured_support import CONFIG, answers, says
from tests.support import (
    ONE,
    audited,
    cluster,
    container,
    node,
    pod,
    recorded,
    viewed,
    with_kubelets,
)


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
    ("changed", "found"),
    [
        ({"system_reserved_cgroup": "/system.slice", "system_reserved_milli": 500}, {}),
        (
            {
                "enforce_node_allocatable": ("pods", "system-reserved"),
                "system_reserved_cgroup": "/system",
                "system_reserved_milli": 500,
            },
            {"system_slice": ("20", "likely")},
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
                "system_reserved_cgroup": "/a/b.slice",
                "system_reserved_milli": 500,
            },
            # The kubelet takes the last part for a unit.
            {"root:b.slice": ("20", "certain")},
        ),
        (
            {
                "enforce_node_allocatable": ("system-reserved",),
                "system_reserved_cgroup": "/system.slice",
                "system_reserved_milli": 0,
            },
            {"system_slice": ("1", "certain")},
        ),
        (
            {
                "enforce_node_allocatable": ("pods", "system-reserved", "kube-reserved"),
                "system_reserved_cgroup": "/system.slice",
                "system_reserved_milli": 1000,
                "kube_reserved_cgroup": "/system.slice",
                "kube_reserved_milli": 500,
            },
            # What is written last stays.
            {"system_slice": ("20", "certain")},
        ),
        (
            {
                "enforce_node_allocatable": ("pods", "system-reserved-compressible", "kube-reserved"),
                "system_reserved_cgroup": "/system.slice",
                "system_reserved_milli": 500,
                "kube_reserved_cgroup": "/system.slice",
                "kube_reserved_milli": 1000,
            },
            {"system_slice": ("20", "certain")},
        ),
        # It lies within system.slice, and changes nothing beside it.
        (
            {
                "enforce_node_allocatable": ("pods", "kube-reserved"),
                "kube_reserved_cgroup": "/system-kubelet.slice",
                "kube_reserved_milli": 500,
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
    assert {key: value for key, value in on_v1.items() if key == "system_slice" or key.startswith("root:")} == {
        key: ({"20": "512", "1": "2"}[weight], sure) for key, (weight, sure) in found.items()
    }


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
    before = viewed(objects)[0].cases[0].before
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
        },
        type=type(with_kubelets(recorded()).kubelets["worker-a"].config),  # type: ignore[index]
    )
    small = msgspec.structs.replace(objects.nodes[0], allocatable_milli=1500)
    answers = KubeletAnswers("n1", "v2", False, {"/kubepods.slice": 2}, config, ())
    objects = with_answers(msgspec.structs.replace(objects, nodes=(small,)), {"n1": answers})
    before = viewed(objects, "- {runtimes: {default: runc 1.3.6}}")[0].cases[0].before
    assert before.kubepods.shares == 2048
    assert [(c.path, c.weight) for c in before.root] == [("/system.slice", 100), ("/podruntime.slice", 20)]
    assert [(c.quota_us, c.period_us) for _, c in before.pods()[0].containers] == [(None, 50_000)]


def test_what_is_measured_of_a_cgroup_at_the_root_is_shown_as_measured() -> None:
    enforced = replace(
        CONFIG,
        enforce_node_allocatable=("pods", "kube-reserved"),
        kube_reserved_cgroup="/podruntime.slice",
        kube_reserved_milli=500,
        system_reserved_cgroup=None,
        system_reserved_milli=None,
    )
    objects = with_answers(cluster(node(), ONE), {"n1": answers(config=enforced)})
    known = audited(objects).nodes[0].known["root"]
    assert (known.value, known.confidence) == ("podruntime.slice (weight 20)", "certain")
    (said,) = audited(objects, "- {cgroup: v2, root: {podruntime.slice: 100}}").nodes
    assert said.known["root"].value == "podruntime.slice (weight 20)"
    assert said.contradictions == (
        "root:podruntime.slice: kubelet /configz says 20 (kube-reserved is enforced on /podruntime.slice with 500m CPU), but "
        "test rule 1 says 100",
    )


def test_each_cgroup_at_the_root_is_as_sure_as_what_is_said_of_it() -> None:
    both = replace(
        CONFIG,
        enforce_node_allocatable=("pods", "kube-reserved", "system-reserved"),
        kube_reserved_cgroup="/b.slice",
        kube_reserved_milli=500,
        system_reserved_cgroup="/a.slice",
        system_reserved_milli=250,
    )
    objects = with_answers(cluster(node(), ONE), {"n1": answers(config=both)})
    (measured,) = audited(objects).nodes
    root = measured.known["root"]
    assert (root.value, root.confidence) == ("a.slice (weight 10), b.slice (weight 20)", "certain")
    # Each that the states file says otherwise is told, and what nothing measures is no surer than who says it.
    (said,) = audited(objects, "- {cgroup: v2, root: {a.slice: 7, b.slice: 8, user.slice: 90}}").nodes
    root = said.known["root"]
    assert root.value == "a.slice (weight 10), b.slice (weight 20), user.slice (weight 90)"
    assert (root.confidence, root.source) == ("stated", "test rule 1")
    assert [each.split(" (")[0] for each in said.contradictions] == [
        "root:a.slice: kubelet /configz says 10",
        "root:b.slice: kubelet /configz says 20",
    ]


@pytest.mark.parametrize(("kubelet", "about"), [((1, 35, 0), "root:system"), ((1, 34, 0), "system_slice")])
def test_a_driver_that_only_configz_tells_names_the_cgroups(kubelet: tuple[int, int, int], about: str) -> None:
    cgroupfs = replace(
        CONFIG,
        cgroup_driver="cgroupfs",
        enforce_node_allocatable=("system-reserved",),
        system_reserved_cgroup="/system",
        system_reserved_milli=500,
    )
    found = says(answers(config=cgroupfs), KubeletVersion(*kubelet))
    # Without the cgroup driver it is not sure which cgroup is meant.
    sure = "certain" if about == "root:system" else "likely"
    assert {name: said for name, said in found.items() if said[0] == "20"} == {about: ("20", sure)}


def reserving(cgroup: str, milli: int = 500) -> KubeletConfig:
    return replace(
        CONFIG,
        enforce_node_allocatable=("pods", "kube-reserved"),
        kube_reserved_cgroup=cgroup,
        kube_reserved_milli=milli,
        system_reserved_cgroup=None,
        system_reserved_milli=None,
    )


def test_a_dash_in_the_name_of_a_reserved_cgroup_is_a_slice_within_another() -> None:
    """systemd keeps kube-reserved.slice in kube.slice: that is what stands beside kubepods, at its default."""
    objects = cluster(node(), ONE)
    (found,) = viewed(
        with_answers(objects, {"n1": answers({"/kubepods.slice": 2}, config=reserving("/kube-reserved.slice"))})
    )
    assert [(c.path, c.weight) for c in found.cases[0].before.root] == [("/system.slice", 100), ("/kube.slice", 100)]
    assert found.state.basis_of("root:kube.slice").confidence == "likely"
    (piece,) = [each for each in found.state.evidence if each.about == "root:kube.slice"]
    assert piece.saw == (
        "kube-reserved is enforced on /kube-reserved.slice with 500m CPU, which systemd keeps in kube.slice"
    )
    # cgroupfs knows no slices.
    by_path = answers({"/kubepods": 2}, config=reserving("/kube-reserved"))
    assert says(by_path)["root:kube-reserved"] == ("20", "certain")
    assert not [
        about for about in says(answers({"/kubepods": 2}, config=reserving("/a/b"))) if about.startswith("root")
    ]


def test_a_reserve_counts_in_each_version_while_that_is_open() -> None:
    """Only /configz could be read: nothing says the version, and its 500m are 512 shares or weight 20."""
    only = KubeletAnswers("n1", None, None, {}, reserving("/system.slice"), ())
    objects = with_answers(cluster(node(), ONE), {"n1": only})
    (found,) = viewed(objects, "", "v2")
    now = {
        (case.before.setup.cgroup, case.before.setup.system_slice, case.before.setup.enforced) for case in found.cases
    }
    assert now == {("v1", 512, ("system.slice",)), ("v2", 20, ("system.slice",))}
    assert {case.after.setup.system_slice for case in found.cases} == {20}
    known = audited(objects).nodes[0].known["system_slice"]
    assert (known.value, known.confidence, known.source) == (
        "shares 512 on v1, weight 20 on v2",
        "certain",
        "kubelet /configz: kube-reserved is enforced on /system.slice with 500m CPU",
    )
    others = replace(only, config=reserving("/kube.slice"))
    (found,) = viewed(with_answers(cluster(node(), ONE), {"n1": others}), "", "v2")
    assert {(case.before.setup.cgroup, case.before.setup.root) for case in found.cases} == {
        ("v1", (("kube.slice", 512),)),
        ("v2", (("kube.slice", 20),)),
    }
    held = audited(with_answers(cluster(node(), ONE), {"n1": replace(only, config=reserving("/kube-x.slice"))}))
    root = held.nodes[0].known["root"]
    assert (root.value, root.confidence) == ("kube.slice (shares 1024 on v1, weight 100 on v2)", "likely")


def test_what_the_kernel_shows_of_system_slice_outranks_a_reserve_that_is_not_written_yet() -> None:
    shown = {"/kubepods.slice": 2, "/system.slice": linear_inverse(39)}
    (found,) = viewed(
        with_answers(cluster(node(), ONE), {"n1": answers(shown, config=reserving("/system.slice"))}), "", "v2"
    )
    assert (found.state.system_slice, found.state.contradictions) == (39, ())
    assert [(each.value, each.strength) for each in found.state.evidence if each.about == "system_slice"] == [
        ("20", "hint"),
        ("39", "certain"),
    ]
    # Where both agree the kubelet is known to write it.
    same = answers(shown, config=reserving("/system.slice", milli=1000))
    (found,) = viewed(with_answers(cluster(node(), ONE), {"n1": same}), "", "v2")
    assert (found.state.system_slice, found.cases[0].before.setup.enforced) == (39, ("system.slice",))
