"""`explain` as a drawing: the tree, its bars, and the arithmetic under each level."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.detect.handlers import handler
from kubectl_cgaudit.report import cgroups, explain
from kubectl_cgaudit.report.drawing import bar, below, branches
from kubectl_cgaudit.report.screen import Screen
from tests.support import RECORDED_FLAGS, STATES, V1, V2_LINEAR, cluster, compared, container, node, pod, recorded
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
    return explain.render(comparison, found, handler(found.runtime_class, objects), screen)


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
    for text in (drawn(objects, f"p{name}", V1, screen), cgroups.as_text(compared(objects, V1), screen)):
        assert [line for line in text.splitlines() if displayed(line) > width] == []
        assert drawing or text.isascii()


def test_every_pod_of_the_recorded_cluster_fits_80_columns() -> None:
    objects = recorded()
    for comparison in compared(objects):
        for found, _ in comparison.pods():
            text = explain.render(comparison, found, handler(found.runtime_class, objects), Screen())
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
    text = cgroups.as_text(compared(objects, V1, "v2"), Screen())
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
