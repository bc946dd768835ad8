"""`explain` as a drawing: the tree, its bars, and the arithmetic under each level."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_cgaudit.cgroups import paths
from kubectl_cgaudit.cgroups.weights import linear_inverse
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.collect.assemble import with_answers
from kubectl_cgaudit.collect.model import Cluster, KubeletAnswers
from kubectl_cgaudit.report import cgroups, explain
from kubectl_cgaudit.report.drawing import bar, below, branches
from kubectl_cgaudit.report.screen import PLAIN, Screen
from tests.support import (
    RECORDED_FLAGS,
    STATES,
    V1,
    V2_LINEAR,
    V2_QUADRATIC,
    cluster,
    compared,
    container,
    node,
    pod,
    recorded,
    with_kubelets,
)
from tests.test_table import HOSTILE, displayed

GATEWAY = """\
CGROUP                                       VALUE       AMONG SIBLINGS  OF NODE
system.slice                                 weight 100  ███░░░░░ 41%        41%
kubepods                                     weight 145  █████░░░ 59%        59%
│  all pods against system processes; written by the kubelet
│  allocatable CPU 3700m -> 3700 * 1024 // 1000 = 3788 shares -> 1 + ((3788 - 2)
│    * 9999) // 262142 = weight 145
│  kubepods: 145 / (145 + system.slice 100) = 59% of the node
├─ kubepods-besteffort                       weight 1    ░░░░░░░░ 0.7%      0.4%
├─ 1 Guaranteed pod                          weight 47   ███░░░░░ 33%        19%
└─ kubepods-burstable                        weight 95   █████░░░ 66%        39%
"""


def drawn(objects: Cluster, name: str, rules: str, screen: Screen, to: str = "v2+runtime") -> str:
    found = next(each for each in objects.pods if each.name == name)
    (comparison,) = [each for each in compared(objects, rules, to) if each.node.name == found.node]
    return explain.render(comparison, found, screen)


@pytest.mark.parametrize(
    ("part", "blocks"),
    [
        (0, "░░░░░░░░"),
        (0.06, "░░░░░░░░"),
        (0.0625, "█░░░░░░░"),
        (0.59, "█████░░░"),
        (0.93, "███████░"),
        (1, "████████"),
    ],
)
def test_bar(part: float, blocks: str) -> None:
    assert bar(part) == blocks


def test_branches_lead_to_rows_and_past_what_is_said_under_them() -> None:
    depths = [0, 0, 1, 2, 1, 2]
    assert [branches(depths, index) for index in range(6)] == ["", "", "├─ ", "│  └─ ", "└─ ", "   └─ "]
    assert [below(depths, index) for index in range(6)] == ["   ", "│  ", "│  │  ", "│        ", "   │  ", "         "]


def test_the_recorded_gateway() -> None:
    text = drawn(recorded(), "legacy-gateway-315cc6eec-8cb1d", STATES.read_text(), Screen())
    assert GATEWAY in text
    assert (
        "   ├─ 7 other Burstable pods                 weight 83   ███████░ 86%        34%\n"
        "   └─ edge/l…gateway-315cc6eec-8cb1d         weight 14   █░░░░░░░ 14%       5.7%\n"
    ) in text
    assert (
        "      ├─ envoy                        now    weight 12   ███████░ 86%       4.9%\n"
        "      │                               after  weight 40   ██████░░ 78%       4.5%\n"
    ) in text
    assert (
        "      │     now: envoy: 12 / (12 + ext-authz 2) = 86% of the pod = 4.9% of the\n      │       node\n" in text
    )
    assert text.endswith(
        "TOGETHER\n"
        "  pod: 5.7% -> 5.7% of the node's CPU; 0.139 -> 0.139 times system.slice\n"
        "  envoy: 4.9% -> 4.5% of the node's CPU; 0.119 -> 0.109 times system.slice\n"
        "  ext-authz: 0.8% -> 1.2% of the node's CPU; 0.0199 -> 0.03 times system.slice\n"
    )


def test_a_guaranteed_pod_lies_beside_the_slices() -> None:
    text = drawn(recorded(), "postgres-1", STATES.read_text(), Screen())
    assert (
        "├─ kubepods-burstable   now    shares 2009  █████░░░ 62%        49%\n"
        "│                       after  weight 77    █████░░░ 62%        36%\n"
        "├─ kubepods-besteffort  now    shares 2     ░░░░░░░░ 0.06%    0.05%\n"
        "│                       after  weight 1     ░░░░░░░░ 0.8%      0.5%\n"
        "└─ data/postgres-1      now    shares 1228  ███░░░░░ 38%        30%\n"
        "   │                    after  weight 47    ███░░░░░ 38%        22%\n"
        "   │  directly in kubepods, beside the slices; written by the kubelet\n"
    ) in text


def test_parts_of_siblings_make_a_whole() -> None:
    """What is summed up in `other` rows is neither lost nor counted twice."""
    many = [pod(f"p{number}", container("c", f"{number + 1}00m")) for number in range(12)]
    text = drawn(cluster(node(), *many), "p3", V2_LINEAR, Screen(200), to="runtime")
    assert "├─ 11 other Burstable pods" in text
    (row,) = [line for line in text.splitlines() if "11 other" in line]
    (own,) = [
        line for line in text.splitlines() if "default/p3 " in line and "weight" in line and "request" not in line
    ]
    assert (row.split()[-2], own.split()[-2]) == ("95%", "5.2%")
    assert "pod: 16 / (16 + default/p0 4 + " in text
    assert " + default/p6 28 + 3 others 107) = 5.2% of the Burstable slice" in text


def test_one_that_is_not_named_is_one_other() -> None:
    root = ", ".join(f"c{number}: 100" for number in range(8))
    rules = f"{V2_LINEAR}\n- {{root: {{{root}}}}}"
    text = drawn(cluster(node(), pod("p", container("c", "1"))), "p", rules, Screen(200), to="kubelet=1.36")
    assert [line.split()[:4] for line in text.splitlines() if line.startswith("1 ")] == [
        ["1", "other", "weight", "100"]
    ]
    assert " + c6 100 + 1 other 100) = " in text


def test_a_container_that_does_not_compete_has_no_bar() -> None:
    init = pod("p", container("c", "1"), initContainers=[container("i", "1")])
    init["status"]["initContainerStatuses"] = [{"name": "i", "state": {"running": {}}}]
    text = drawn(cluster(node(), init), "p", V1, Screen(), to="v2")
    lines = text.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.lstrip(" │├└─").startswith("i ")]
    assert lines[at].split()[-3:] == ["1024", "-", "-"]
    assert "runs before the others" in text


def test_nothing_changes_has_no_column_for_now_and_after() -> None:
    text = drawn(cluster(node(), pod("p", container("c", "1"))), "p", V2_LINEAR, Screen(), to="v2")
    assert "NOW, AND NOTHING CHANGES" in text
    assert "CGROUP                 VALUE       AMONG SIBLINGS  OF NODE\n" in text
    assert "after" not in text


@given(HOSTILE, st.sampled_from((80, 120, 200)), st.booleans())
@settings(max_examples=60, deadline=None)
def test_no_line_is_wider_than_the_screen(name: str, width: int, drawing: bool) -> None:
    objects = cluster(
        node(), pod(f"p{name}", container(f"c{name}", "1"), container(f"d{name}", "2m", "7m")), pod(f"q{name}")
    )
    screen = Screen(width, drawing=drawing)
    for text in (drawn(objects, f"p{name}", V1, screen), "".join(cgroups.as_text(compared(objects, V1), screen))):
        assert [line for line in text.splitlines() if displayed(line) > width] == []
        assert drawing or text.isascii()


def test_every_pod_of_the_recorded_cluster_fits_80_columns() -> None:
    objects = recorded()
    for comparison in compared(objects):
        for found, _ in comparison.pods():
            text = explain.render(comparison, found, Screen())
            assert [line for line in text.splitlines() if displayed(line) > 80] == []


def test_ascii() -> None:
    text = drawn(recorded(), "legacy-gateway-315cc6eec-8cb1d", STATES.read_text(), Screen(drawing=False))
    assert text.isascii()
    assert "   |- 7 other Burstable pods                 weight 83   #######. 86%        34%\n" in text
    assert "   `- edge/l~gateway-315cc6eec-8cb1d         weight 14   #....... 14%       5.7%\n" in text


def test_the_command_draws_for_its_screen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert run(["explain", "edge/legacy-gateway-315cc6eec-8cb1d", *RECORDED_FLAGS]) == 0
    drawing = drawn(recorded(), "legacy-gateway-315cc6eec-8cb1d", STATES.read_text(), Screen(120))
    assert capsys.readouterr().out == drawing


def test_the_tree_nests_each_pod_where_its_class_puts_it() -> None:
    objects = cluster(
        node("n1"),
        pod("g", container("app", "1", "1"), qos="Guaranteed"),
        pod("b", container("app", "500m"), container("log", "100m")),
        pod("e", container("app"), qos="BestEffort"),
    )
    text = "".join(cgroups.as_text(compared(objects, V1, "v2"), Screen()))
    assert [line.split("  ")[0] if line[0] not in "│├└ " else line[:30].rstrip() for line in text.splitlines()[2:]] == [
        "system.slice",
        "kubepods.slice",
        "├─ default/g",
        "│  └─ app",
        "├─ kubepods-burstable.slice",
        "│  └─ default/b",
        "│     ├─ app",
        "│     └─ log",
        "└─ kubepods-besteffort.slice",
        "   └─ default/e",
        "      └─ app",
    ]


def test_a_cgroup_that_only_the_target_has_stands_beside_nothing(tmp_path: Path) -> None:
    (tmp_path / "to.yaml").write_text("- {cgroup: v2, root: {docker: 100}}")
    objects, to = cluster(node(), pod("a", container("x", "1"))), str(tmp_path / "to.yaml")
    text = drawn(objects, "a", V1, Screen(), to)
    assert (
        "system.slice           now    shares 1024  ██░░░░░░ 20%        20%\n"
        "                       after  weight 100   ██░░░░░░ 28%        28%\n"
        "docker                 now    not there    -                     -\n"
        "                       after  weight 100   ██░░░░░░ 28%        28%\n"
        "kubepods               now    shares 4096  ██████░░ 80%        80%\n"
    ) in text
    wide = drawn(objects, "a", V1, Screen(200), to)
    assert "after: kubepods: 157 / (157 + system.slice 100 + docker 100) = 44% of the node" in wide
    comparisons = compared(objects, V1, to)
    assert "docker                        not there -> 100  - -> 28%" in "".join(cgroups.as_text(comparisons, Screen()))
    rows = {row["cgroup"]: row for row in cgroups.data(comparisons).rows}
    assert (rows["/docker"]["now"], rows["/docker"]["after"]["weight"]) == (None, 100)
    assert (rows["/system.slice"]["now"]["shares"], rows["/system.slice"]["after"]["weight"]) == (1024, 100)


def measured_as(objects: Cluster, shown: dict[str, int], **settings: Any) -> Cluster:
    """The cluster with what the kubelet of n1 answers."""
    config = (with_kubelets(recorded()).kubelets or {})["worker-a"].config
    assert config is not None
    answers = KubeletAnswers("n1", "v2", False, shown, replace(config, **settings), ())
    return with_answers(objects, {"n1": answers})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"cpu_cfs_quota": False}, ["limit 500m: no quota, as the kubelet's cpuCFSQuota is false"]),
        ({"cpu_cfs_quota": True}, ["limit 500m * 100000 us / 1000 = 50000 us: the quota"]),
        (
            {"enforce_node_allocatable": ()},
            ["capacity 4000m -> 4000 * 1024 // 1000 = 4096 shares -> 1 + ((4096 - 2) * 9999) // 262142 = weight 157"],
        ),
        (
            {},
            [
                "allocatable CPU 3500m -> 3500 * 1024 // 1000 = 3584 shares -> 1 + ((3584 - 2) * 9999) // 262142 = weight 137"
            ],
        ),
    ],
)
def test_the_kubelets_settings_are_in_the_arithmetic(settings: dict[str, Any], said: list[str]) -> None:
    raw = node()
    raw["status"]["allocatable"] = {"cpu": "3500m"}
    objects = measured_as(cluster(raw, pod("a", container("x", "1", "500m"))), {}, **settings)
    text = " ".join(drawn(objects, "a", V2_LINEAR, Screen(200), "runtime").split())
    assert [each for each in said if each not in text] == []
    assert "None" not in text


def test_a_weight_from_before_an_upgrade_is_not_explained_by_the_formula_of_now() -> None:
    raw = pod("a", container("x", "1"), container("y", "100m"))
    started = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    raw["status"]["containerStatuses"] = [
        {"name": name, "containerID": f"containerd://{name}", "state": started} for name in ("x", "y")
    ]
    objects = cluster(node(), raw)
    parent = paths.pod(objects.pods[0], "systemd")
    assert parent is not None
    shown = {parent: linear_inverse(43)}
    shown |= {
        str(paths.container(f"containerd://{n}", parent, "systemd")): linear_inverse(w)
        for n, w in (("x", 39), ("y", 4))
    }
    text = drawn(measured_as(objects, shown), "a", V2_QUADRATIC, Screen(200), "v2")
    assert (
        "now: request 1000m -> 1024 shares; weight 39 was measured, as the linear formula makes it: written before the "
        "runtime was changed"
    ) in text
    assert "after: request 1000m -> 1024 shares -> ceil(10 ** ((L*L + 125*L) / 612 - 7/34)), L = log2(1024)" in text


@pytest.mark.parametrize(
    ("cgroup", "heads"), [("", ["IF CGROUP V2", "IF CGROUP V1"]), ("cgroup: v2, ", ["THE SAME IN EVERY CASE"])]
)
def test_what_is_open_of_another_handler_is_not_drawn_twice(cgroup: str, heads: list[str]) -> None:
    """The handler default of the other pod may be linear or quadratic: that changes nothing here."""
    sandboxed = pod("p", container("a", "1"), runtimeClassName="kata")
    objects = cluster(node(), sandboxed, pod("q", container("c", "1")))
    lines = drawn(objects, "p", f"- {{{cgroup}runtimes: {{kata: kata}}}}", PLAIN).splitlines()
    assert [line for line in lines if line.startswith(("IF", "THE SAME"))] == heads


def test_what_sets_nothing_has_no_shares() -> None:
    text = drawn(
        cluster(node(), pod("a", container("x", "1"))), "a", "- {cgroup: v2, runtimes: {default: kata}}", Screen(200)
    )
    assert "request 1000m -> no shares and no weight: this runtime sets none on the host" in text


@pytest.mark.parametrize(
    ("cpu", "said"),
    [
        ("384", "384000 * 1024 // 1000 = 393216, at most 262144 shares"),
        ("1m", "1 * 1024 // 1000 = 1, at least 2 shares"),
        ("4", "4000 * 1024 // 1000 = 4096 shares"),
    ],
)
def test_shares_out_of_range_say_where_they_end(cpu: str, said: str) -> None:
    assert f"-> {said}" in drawn(cluster(node(cpu=cpu), pod("a", container("x", "1"))), "a", V1, Screen(200))


@pytest.mark.parametrize(
    ("rules", "to", "limit", "said"),
    [
        (
            V1,
            "kubelet=1.35",
            None,
            "AFTER THE MOVE IT DOES NOT RUN: kubelet 1.35.0 does not start on cgroup v1 (CGA101). ",
        ),
        (
            V1,
            "runc=1.3.6",
            "77m",
            "AFTER THE MOVE IT MAY NOT RUN: a container's limit is more than its pod's, and it may not ",
        ),
    ],
)
def test_a_pod_that_does_not_run_is_not_said_to_stay_as_it_is(
    rules: str, to: str, limit: str | None, said: str
) -> None:
    objects = cluster(node(kubelet="v1.33.5"), pod("p", container("c", "50m", limit)))
    (comparison,) = compared(objects, rules, to)
    text = explain.render(comparison, objects.pods[0], replace(PLAIN, width=1000))
    assert f"\n{said}" in text
    assert "NOTHING CHANGES" not in text
    (stays,) = compared(objects, rules, "kubelet=1.34")
    assert "DOES NOT RUN" not in explain.render(stays, objects.pods[0])
