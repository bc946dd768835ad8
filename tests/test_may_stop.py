"""Pods that stop in some cases only: in each of these nothing comes after, in no format."""

import csv as reader
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import Audit
from kubectl_cgaudit.judge.saved import load
from kubectl_cgaudit.report import appendix, cgroups, explain, html, markdown
from kubectl_cgaudit.report.closer import closer
from kubectl_cgaudit.report.screen import PLAIN
from tests.support import V1, audited, cluster, compared, container, node, pod, rendered

TWO = pod("p", container("app", "1"), container("side", "100m"))
LIMITED = pod("p", container("app", "10m", "15m"))
# On cgroup v1 the kubelet of after does not start; on v2 CPU may move inside the pod.
LOST = audited(cluster(node(kubelet="v1.34.1"), TWO), "", "runtime,kubelet=1.35")
# On cgroup v1 the container may not start (CGA301).
FAILS = audited(
    cluster(node(kubelet="v1.33.1"), LIMITED), "- {driver: systemd, runtimes: {default: runc 1.1.5}}", "runc=1.3.6"
)
STARTS_OR_NOT = audited(cluster(node(kubelet="v1.33.1"), LIMITED), V1, "runc=1.3.6")
STOPPED = audited(cluster(node(kubelet="v1.34.1"), LIMITED), V1, "kubelet=1.35")


def shown(audit: Audit) -> list[tuple[str, str, str, str]]:
    return [(row.container, row.when, row.share, row.times_system) for row in appendix.rows(audit.workloads)]


def test_every_container_says_in_which_cases_it_stops() -> None:
    assert shown(LOST) == [
        ("", "if cgroup v2", "61%", "1.57"),
        ("", "if cgroup v1", "80% -> stops", "4 -> stops"),
        ("app", "if cgroup v2, quadratic runtime", "52%", "1.34"),
        ("app", "if cgroup v2, linear runtime", "55% -> 52%", "1.42 -> 1.34"),
        ("app", "if cgroup v1", "73% -> stops", "3.64 -> stops"),
        ("side", "if cgroup v2, quadratic runtime", "8.9%", "0.228"),
        ("side", "if cgroup v2, linear runtime", "5.7% -> 8.9%", "0.146 -> 0.228"),
        ("side", "if cgroup v1", "7.2% -> stops", "0.362 -> stops"),
    ]


def test_what_may_not_start_keeps_the_numbers_it_has_if_it_starts() -> None:
    """CGA301 is a race (runc#4982, containerd#12496)."""
    assert shown(FAILS) == [
        ("", "if cgroup v2", "61%", "1.57"),
        ("", "if cgroup v1", "80%", "4"),
        ("app", "if cgroup v2", "61%", "1.57"),
        ("app", "if cgroup v1", "80%", "4"),
    ]
    assert shown(STARTS_OR_NOT) == [("", "", "80%", "4"), ("app", "", "80%", "4")]
    (workload,) = STARTS_OR_NOT.workloads
    assert (workload.may_stop, workload.effects, [pod.stops for pod in workload.pods]) == (
        False,
        ("may-stop",),
        [False],
    )
    (finding,) = [each for each in STARTS_OR_NOT.findings if each.rule == "CGA301"]
    assert (finding.severity, finding.title) == ("critical", "container may not start after the upgrade")
    # It depends on the cgroup version here: what may stop in a leading case may stop.
    assert FAILS.workloads[0].effects == ("may-stop", "nominal")


def test_what_does_not_come_back_keeps_a_prediction_too() -> None:
    (told,) = json.loads(rendered("json", audited(cluster(node(kubelet="v1.34.1"), TWO), V1, "v2,kubelet=1.35")))[
        "workloads"
    ]
    assert told["effects"] == ["loses", "nominal"]
    (lost,) = json.loads(rendered("json", audited(cluster(node(kubelet="v1.34.1"), TWO), V1, "kubelet=1.35")))[
        "workloads"
    ]
    assert lost["effects"] == ["stops"]
    assert (lost["pods"][0]["stops"], lost["pods"][0]["after"]["share"]) == (True, 0.8)


def test_the_worst_of_the_workload_is_that_it_stops() -> None:
    (workload,) = LOST.workloads
    assert (workload.may_stop, workload.effects) == (True, ("unknown", "nominal"))
    page = markdown.render(LOST)
    assert "| unknown | stops..0% | 80% → stops in the worst case |" in page
    (row,) = [line for line in rendered("wide", LOST).splitlines() if line.startswith("default/p ")]
    assert re.split("  +", row)[4:7] == ["stops..0%", "4 -> stops (p on n1)", "80% -> stops"]
    assert '<b>stops..0%</b><span class="also">4 × system.slice on n1</span>' in html.render(LOST)


def test_the_closer_look_is_at_the_case_in_which_it_stops() -> None:
    found = closer(LOST.workloads[0], {each.name: each for each in LOST.nodes}, {})
    assert found is not None
    assert found.when.startswith("cgroup v1")
    assert (found.after, {row[3] for row in found.rows}) == ((), {"stops"})
    assert found.why == "p does not run after the move: n1 does not come back (CGA101)."


def test_what_never_comes_is_in_no_range() -> None:
    rows = list(reader.DictReader(io.StringIO(rendered("csv", LOST), newline="")))
    records = [json.loads(line) for line in rendered("ndjson", LOST).splitlines()]
    assert [(row["cases"], row["cases_stopping"]) for row in rows] == [("4", "2"), ("4", "2")]
    assert [(row["before_version"], row["after_version"]) for row in rows] == [("v1;v2", "v2"), ("v1;v2", "v2")]
    app, side = records
    assert (app["before_share_greatest"], app["after_share_greatest"]) == (0.727531083, 0.522132429)
    assert (app["after_value_least"], app["after_value_greatest"], app["after_in_pod_greatest"]) == (
        100,
        100,
        0.854700855,
    )
    assert (side["after_against_system_least"], side["after_against_system_greatest"]) == (0.228119658, 0.228119658)
    numbers = [name for name in records[0] if name.endswith(("_least", "_greatest"))]
    assert len(numbers) == 26
    for row, record in zip(rows, records, strict=True):
        assert {name: row[name] for name in numbers} == {
            name: "" if record[name] is None else str(record[name]) for name in numbers
        }


def test_what_stops_in_every_case_has_nothing_after() -> None:
    (record,) = [json.loads(line) for line in rendered("ndjson", STOPPED).splitlines()]
    assert (record["cases"], record["cases_stopping"], record["before_share_least"]) == (1, 1, 0.8)
    nothing = [name for name, value in record.items() if value is None]
    assert nothing == [
        "generated_at",
        *[name for name in record if name.startswith(("after_", "change_", "pod_change_"))],
    ]
    (row,) = reader.DictReader(io.StringIO(rendered("csv", STOPPED), newline=""))
    assert {row[name] for name in nothing if name in row} == {""}


def test_the_json_says_it_of_each_case_and_of_no_other() -> None:
    written = json.loads(rendered("json", LOST))["workloads"][0]
    assert written["mayStop"] is True
    (of_pod,) = written["pods"]
    for told in (of_pod, *of_pod["containers"]):
        assert (told["when"], told["stops"]) == ("cgroup v2, quadratic runtime", False)
        assert [(case["when"], case["rank"], case["leading"], case.get("stops")) for case in told["cases"]] == [
            ("cgroup v2, linear runtime", 2, True, None),
            ("cgroup v1, quadratic runtime", 3, True, True),
            ("cgroup v1, linear runtime", 4, True, True),
        ]


@pytest.mark.parametrize(
    "audit", [LOST, FAILS, STARTS_OR_NOT, STOPPED], ids=["lost", "fails", "starts or not", "stopped"]
)
def test_a_saved_audit_says_the_same(audit: Audit) -> None:
    saved = load(rendered("json", audit).encode(), "x")
    assert shown(saved) == shown(audit)
    assert (rendered("csv", saved), rendered("ndjson", saved), markdown.render(saved)) == (
        rendered("csv", audit),
        rendered("ndjson", audit),
        markdown.render(audit),
    )


def test_the_tree_of_a_node_that_does_not_come_back_says_so() -> None:
    found = compared(
        cluster(node(kubelet="v1.34.1"), pod("p", container("app", "500m", "1"))), V1, "runtime,kubelet=1.35"
    )
    assert "".join(cgroups.as_text(found)).splitlines() == [
        "n1: cgroup v1 (how sure: likely): does not start after the move (CGA101)",
        "CGROUP                        SHARES         CPU OF NODE   QUOTA",
        "system.slice                  1024 -> stops  20% -> stops",
        "kubepods.slice                4096 -> stops  80% -> stops",
        "├─ kubepods-burstable.slice   512 -> stops   80% -> stops",
        "│  └─ default/p               512 -> stops   80% -> stops  1000m",
        "│     └─ app                  512 -> stops   80% -> stops  1000m",
        "└─ kubepods-besteffort.slice  2 -> stops     0% -> stops",
    ]
    rows = [*cgroups.data(found).rows]
    assert [row["stops"] for row in rows] == [True] * 6


def test_the_tree_does_not_show_as_there_what_a_target_adds_to_a_node_that_stops(tmp_path: Path) -> None:
    target = tmp_path / "target.yaml"
    target.write_text("- {kubelet: 1.35.0, root: {docker: 100}}\n")
    found = compared(cluster(node(kubelet="v1.34.1"), TWO), V1, str(target))
    (line,) = [each for each in "".join(cgroups.as_text(found)).splitlines() if each.startswith("docker ")]
    assert re.split("  +", line.rstrip()) == ["docker", "not there", "-"]


@pytest.mark.parametrize(
    ("states", "where"),
    [
        (V1, ""),
        ("- {cgroup: v1, runtimes: {default: linear}}", ", if the runtime is runc and the cgroup driver is systemd"),
    ],
)
def test_the_tree_says_which_pods_may_not_start(states: str, where: str) -> None:
    found = compared(
        cluster(node(kubelet="v1.33.1"), LIMITED, pod("q", container("c"), qos="BestEffort")), states, "runc=1.3.6"
    )
    lines = "".join(cgroups.as_text(found, replace(PLAIN, width=200))).splitlines()
    (line,) = [line for line in lines if "default/p  " in line]
    assert re.split("  +", line.strip("│ └─")) == ["default/p", "10", "67%", "15m"]
    assert lines[-1] == f"default/p may not run after the move: a container may not start{where} (CGA301)."
    rows = {row["pod"]: row["stops"] for row in cgroups.data(found).rows if row["level"] == "pod"}
    assert rows == {"p": None, "q": False}


FAILING, HELPER = container("app", "7m", "77m"), container("helper", "1m", "2m")


@pytest.mark.parametrize(
    ("before", "containers", "whole"),
    [
        ([], [FAILING, HELPER], "run as a whole"),
        ([HELPER | {"restartPolicy": "Always"}], [FAILING], "run as a whole"),
        ([FAILING | {"restartPolicy": "Always"}], [HELPER], "run"),
        ([FAILING], [HELPER], "run"),
        ([HELPER], [FAILING], "run"),
        ([], [FAILING], "run"),
    ],
)
def test_beside_a_container_that_may_not_start_others_may_run(
    before: list[dict[str, Any]], containers: list[dict[str, Any]], whole: str
) -> None:
    """A kubelet starts each container, but none before all init containers and sidecars have."""
    objects = cluster(node(kubelet="v1.33.1"), pod("p", *containers, initContainers=before))
    for states in (V1, "- {cgroup: v1, runtimes: {default: linear}}"):
        (found,) = compared(objects, states, "runc=1.3.6")
        text = "".join(cgroups.as_text([found], replace(PLAIN, width=200)))
        assert f"default/p may not {whole} after the move: a container may not start" in text
        explained = explain.render(found, objects.pods[0], replace(PLAIN, width=1000))
        assert f"\nAFTER THE MOVE IT MAY NOT {whole.upper()}: a container's limit is more" in explained


def test_the_json_of_the_tree_says_it_of_each_case() -> None:
    found = compared(cluster(node(kubelet="v1.34.1"), TWO), "", "runtime,kubelet=1.35")
    rows = [*cgroups.data(found).rows]
    assert {row["stops"] for row in rows} == {False}
    assert {tuple((case["when"], case["stops"]) for case in row["cases"]) for row in rows} == {
        (
            ("cgroup v2, linear runtime", False),
            ("cgroup v1, quadratic runtime", True),
            ("cgroup v1, linear runtime", True),
        )
    }
