"""The closer look at a workload: what it says decides, decides."""

import io
from csv import DictReader
from pathlib import Path

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import Change
from kubectl_cgaudit.report import appendix
from kubectl_cgaudit.report.closer import closer, deciding
from kubectl_cgaudit.report.words import against_system
from tests.support import V1, audited, cluster, container, node, pod, rendered


@pytest.mark.parametrize(
    ("name", "why"),
    [
        # All pods together lose at the root; that the BestEffort one gains all the same is decided among the pods.
        ("b", "Inside kubepods its part goes 0.02% -> 0.3%, because n1 goes from cgroup v1 to v2: "),
        (
            "p",
            "At the root of the tree pods : system.slice goes 16 : 1 -> 6.25 : 1 (16384 : 1024 -> 625 : 100), because n1 ",
        ),
    ],
)
def test_the_closer_look_names_the_level_that_decides(name: str, why: str) -> None:
    besteffort = pod("b", container("c"), qos="BestEffort")
    audit = audited(cluster(node(cpu="16"), besteffort, pod("p", container("app", "10"))), V1, "v2")
    (workload,) = [each for each in audit.workloads if each.name == name]
    found = closer(workload, {each.name: each for each in audit.nodes}, {})
    assert found is not None
    assert found.why.startswith(why), found.why


def test_of_several_pods_it_says_why_this_one(tmp_path: Path) -> None:
    """The others may change more, the other way."""
    placed = [pod(f"p{n}", container("app", "1"), on=f"n{n}", owner=("StatefulSet", "s")) for n in (1, 2)]
    rules = f"{V1}\n- {{match: {{name: n2}}, system_slice: 8192}}"
    (tmp_path / "to.yaml").write_text(
        "- {match: {name: n1}, cgroup: v2}\n- {match: {name: n2}, cgroup: v2, system_slice: 10}"
    )
    audit = audited(cluster(node("n1", "8"), node("n2", "8"), *placed), rules, str(tmp_path / "to.yaml"))
    (workload,) = audit.workloads
    nodes = {each.name: each for each in audit.nodes}
    found = closer(workload, nodes, {})
    assert found is not None
    assert found.pod.name == "p1"
    assert found.others == "Of its 2 pods this is the one that loses most against system processes."
    gaining = closer(replace(workload, effects=("gains",)), nodes, {})
    assert gaining is not None
    assert gaining.pod.name == "p2"
    assert gaining.others == "Of its 2 pods this is the one that gains most against system processes."
    inside = Change("p1", "app", "n1", "", 0.9, 0.8, -0.1)
    moving = closer(replace(workload, effects=("moves",), inside_pod=inside), nodes, {})
    assert moving is not None
    assert moving.others == "Of its 2 pods this is the one in which app loses most."


def test_what_does_not_run_is_not_said_to_keep_its_cpu() -> None:
    audit = audited(cluster(node(), pod("p", container("app", "1"))), V1, "kubelet=1.35")
    found = closer(audit.workloads[0], {each.name: each for each in audit.nodes}, {})
    assert audit.workloads[0].effect == "stops"
    assert found is not None
    assert found.why == "p does not run after the move: n1 does not come back (CGA101)."


def test_of_a_workload_that_stops_the_pod_that_stops_is_shown() -> None:
    twins = [pod(f"w-{on}", container("c", "1"), on=on, owner=("StatefulSet", "w")) for on in ("a", "b", "c")]
    nodes = [node("a", kubelet="v1.36.2"), node("b"), node("c")]
    rules = f"{V1}\n- {{match: {{name: a}}, cgroup: v2}}"
    audit = audited(cluster(*nodes, *twins), rules, "kubelet=1.35")
    found = closer(audit.workloads[0], {each.name: each for each in audit.nodes}, {})
    assert found is not None
    assert (found.pod.name, found.others) == (
        "w-b",
        "Of its 3 pods this is the one that does not run after the move, or the first of these.",
    )
    assert found.after == ()
    assert {row[3] for row in found.rows} == {"stops"}
    shown = {row.where: row.share for row in appendix.rows(audit.workloads) if not row.container}
    assert shown == {"w-a on a": "61%", "2 pods, such as w-b, on 2 nodes": "80% -> stops"}
    effects = {row["pod"]: row["pod_effects"] for row in DictReader(io.StringIO(rendered("csv", audit)))}
    assert effects == {"w-a": "", "w-b": "stops", "w-c": "stops"}


def test_what_only_may_change_is_shown_where_it_changes() -> None:
    """Against the system nothing can change; which of the cases moves CPU inside the pod is what matters."""
    placed = pod("p", container("app", "1"), container("side", "100m"))
    audit = audited(cluster(node(), placed), "- {cgroup: v2}", "runc=1.3.6")
    (workload,) = audit.workloads
    found = closer(workload, {each.name: each for each in audit.nodes}, {})
    assert workload.effect == "unknown"
    assert found is not None
    assert found.when == "linear runtime"
    assert "Inside the pod app goes from 91% to 85% (-5.8%)" in found.why


def test_what_may_gain_is_shown_where_it_gains() -> None:
    """Not where nothing changes: an unknown that may gain five times its CPU was said to keep it."""
    placed = (pod("idle", container("a"), qos="BestEffort"), pod("app", container("app", "3")))
    audit = audited(cluster(node(), *placed), to="v2")
    (workload,) = [each for each in audit.workloads if each.name == "idle"]
    found = closer(workload, {each.name: each for each in audit.nodes}, {})
    assert (workload.effect, against_system(workload)) == ("unknown", "0%..+407%")
    assert found is not None
    assert found.when == "cgroup v1, quadratic runtime"
    change = deciding(workload)
    assert change is not None
    assert (change.when, f"{change.change:.2f}") == ("cgroup v1, quadratic runtime", "4.07")
    assert found.why.startswith("Inside kubepods its part goes")
