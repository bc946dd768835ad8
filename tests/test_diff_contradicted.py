"""What two moments come to where the evidence contradicts what was said of one of them."""

import copy
import json
from typing import Any

import yaml
from markdown_it import MarkdownIt
from msgspec.structs import replace

from kubectl_cgaudit.audit.thresholds import Thresholds
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.compare.diff.build import diff
from kubectl_cgaudit.compare.diff.types import Diff
from kubectl_cgaudit.detect import states
from kubectl_cgaudit.detect import target as scenario
from kubectl_cgaudit.plain import as_json, as_yaml
from kubectl_cgaudit.report import diff_content, diff_html, diff_markdown, diff_table
from tests.diff_support import MOVED, N1, N2, A, after_rules, flat, now_of, of_nodes, only, told
from tests.support import (
    STATES,
    V1,
    V2_LINEAR,
    V2_QUADRATIC,
    cluster,
    container,
    node,
    pod,
    recorded,
    saved,
    with_kubelets,
)
from tests.support import audit_of as audit

SAYS = (
    "runtime:default: after.yaml rule 4 says quadratic, but node.status.runtimeHandlers says not quadratic "
    "(userNamespaces is false)"
)


def test_what_the_evidence_contradicted_before_never_came_true() -> None:
    """It may have been as it is now all along."""
    before = saved(cluster(N1, A), V2_LINEAR, "runtime")
    against = told(before, nodes=tuple(replace(each, contradictions=("a but b",)) for each in before.audit.nodes))
    found = diff(against, now_of(cluster(N1, A), V2_QUADRATIC))
    why = ("the evidence on n1 contradicts what was said: a but b",)
    assert {row[0] for row in (*of_nodes(found).values(), *flat(found).values())} == {"unknown"}
    assert ([each.because for each in found.nodes], only(found).pods[0].because) == ([why], why)
    # Another node took its place: its name is the one that is said.
    m1, moved = node("m1"), pod("a", container("app", "1"), container("side", "100m"), on="m1")
    replaced = diff(against, now_of(cluster(m1, moved), V2_QUADRATIC))
    assert ([each.because for each in replaced.nodes], only(replaced).pods[0].because) == ([why], why)
    rows = [*diff_content.node_rows(replaced.nodes), *diff_content.workload_rows(replaced.workloads)]
    assert {row.because for row in rows} == {("the evidence on n1 contradicts what was said: see the notes",)}


def contradicted_diff() -> Diff:
    before = audit(recorded(), states.load(str(STATES)), scenario.parse(str(MOVED)), Thresholds(), None)
    after = audit(recorded(), states.parse(after_rules(), "after.yaml"), scenario.parse("v2"), Thresholds(), None)
    return diff(before, after)


def test_what_the_evidence_contradicts_never_came_true() -> None:
    found = contradicted_diff()
    says = f"{SAYS}; {SAYS.replace('default', 'runc-old')}"
    why = f"the evidence on worker-b contradicts what was said: {says}"
    assert [(each.name, each.outcome, each.because) for each in found.nodes] == [
        ("worker-a", "unchanged", ()),
        ("worker-b", "unknown", (why,)),
        ("worker-c", "came-true", ()),
    ]
    pods = [(workload.title, each) for workload in found.workloads for each in workload.pods]
    on_b = {(each.outcome, each.because) for _, each in pods if each.now_node == "worker-b"}
    assert on_b == {("unknown", (why,)), ("unchanged", ())}
    assert {each.outcome for _, each in pods if each.now_node == "worker-c"} == {"came-true"}
    assert found.summary.sentence == (
        "Of 15 workloads in both: 8 cannot be said; 3 changed as predicted; 4 as before, as predicted. Of 3 nodes in "
        "both: 1 cannot be said; 1 changed as predicted; 1 as before, as predicted. Nothing is known to have moved that "
        "nobody predicted."
    )
    assert found.summary.notes[:2] == (
        f"Now, the evidence on worker-b contradicts what was said: {SAYS}.",
        f"Now, the evidence on worker-b contradicts what was said: {SAYS.replace('default', 'runc-old')}.",
    )


def test_what_moved_by_a_word_that_the_evidence_contradicts_is_not_known_to_have_moved() -> None:
    def outcomes(of: Cluster) -> tuple[dict[str, str], dict[str, str]]:
        """By handler of worker-b, and by container of a workload that runs there only."""
        before = audit(of, states.load(str(STATES)), scenario.parse("v2"), Thresholds(), None)
        after = audit(of, states.parse(after_rules(), "after.yaml"), scenario.parse("v2"), Thresholds(), None)
        found = diff(before, after)
        runtimes = {key[2]: row[0] for key, row in of_nodes(found).items() if key[:2] == ("worker-b", "runtime")}
        rows = {f"{key[2]} {key[3]}": row[0] for key, row in flat(found).items() if key[0] == "data/redis"}
        return runtimes, rows

    # Of crun-old nothing speaks against the file's word.
    assert outcomes(recorded()) == (
        {"crun-old": "unpredicted", "default": "unknown", "runc-old": "unknown"},
        {
            "redis weight": "unknown",
            "exporter weight": "unknown",
            "exporter quota-us": "unknown",
            "exporter share": "unknown",
            "exporter against-system": "unknown",
            "exporter in-pod": "unknown",
        },
    )
    # Measured weights are what they were, and with them the quotas of the release that wrote them.
    assert outcomes(with_kubelets(recorded())) == (
        {"crun-old": "unknown", "default": "unknown", "runc-old": "unknown"},
        {},
    )


def test_a_cgroup_version_that_the_evidence_contradicts_decides_nothing_on_its_node() -> None:
    warned = replace(cluster(N1, A), cgroup_v1_warnings={"n1": "2026-11-20T00:00:00Z"})
    # A CgroupV1 event speaks against v2, so neither that it moved nor how is known.
    found = diff(saved(warned, V1, "runtime"), now_of(warned, V2_LINEAR))
    assert {key[1]: row[0] for key, row in of_nodes(found).items()} == {
        "cgroup": "unknown",
        "kubepods": "unknown",
        "system-slice": "unknown",
        "pods-per-system": "unknown",
        "runtime": "as-before",
    }
    assert {row[0] for row in flat(found).values()} == {"unknown"}
    (n1,) = found.nodes
    assert n1.because[0].startswith("the evidence on n1 contradicts what was said: cgroup: test rule 1 says v2, but ")
    assert found.summary.sentence.endswith("Nothing is known to have moved that nobody predicted.")
    # Where the word and the evidence agree it is known.
    agreed = diff(saved(warned, V1, "v2"), now_of(warned, V1))
    assert {row[0] for row in (*of_nodes(agreed).values(), *flat(agreed).values())} == {"as-before"}


def test_what_stayed_by_a_word_that_the_evidence_contradicts_did_not_surely_stay() -> None:
    quiet = cluster(N1, A)
    warned, later = (replace(quiet, cgroup_v1_warnings={"n1": f"2026-11-{day}T00:00:00Z"}) for day in (20, 21))

    def outcomes(then: Cluster, now: Cluster) -> tuple[dict[str, str], set[str], int]:
        """Of the node's rows, of all rows of the pod, and how many workloads are as before."""
        found = diff(saved(then, V2_LINEAR, "v2"), now_of(now, V2_LINEAR))
        of_node = {key[1]: row[0] for key, row in of_nodes(found).items()}
        return of_node, {row[0] for row in flat(found).values()}, found.summary.workloads["unchanged"]

    open_ = dict.fromkeys(("cgroup", "kubepods", "system-slice", "pods-per-system"), "unknown")
    assert outcomes(quiet, quiet) == ({}, set(), 1)
    # The word is v2 both times, and the kubelet's is v1 of one: it may have moved.
    assert outcomes(quiet, warned) == outcomes(warned, quiet) == (open_, {"unknown"}, 0)
    # Whoever is right, was right both times.
    assert outcomes(warned, later) == ({}, set(), 1)


def test_a_runtime_that_stayed_by_a_word_that_the_evidence_contradicts_may_have_moved() -> None:
    silent = node("n1", containerRuntimeVersion="containerd://2.1.9")
    speaks = copy.deepcopy(silent)
    speaks["status"]["runtimeHandlers"] = [{"name": "", "features": {"userNamespaces": False}}]

    def outcomes(then: dict[str, Any], now: dict[str, Any], of: Any = A) -> tuple[dict[str, str], dict[str, str]]:
        """By what of the node, and by container and what."""
        found = diff(saved(cluster(then, of), V2_QUADRATIC, "v2"), now_of(cluster(now, of), V2_QUADRATIC))
        rows = {f"{key[2]} {key[3]}": row[0] for key, row in flat(found).items()}
        return {key[1]: row[0] for key, row in of_nodes(found).items()}, rows

    # Without a limit there is no quota, whatever runs.
    open_ = [f"{name} {what}" for name in ("app", "side") for what in ("weight", "share", "against-system", "in-pod")]
    assert outcomes(silent, speaks) == ({"runtime": "unknown"}, dict.fromkeys(open_, "unknown"))
    assert outcomes(speaks, silent) == outcomes(silent, speaks)
    assert outcomes(speaks, speaks) == ({}, {})
    # One container has all of its pod's CPU by any formula.
    alone = pod("b", container("app", "1", limit="1"))
    assert outcomes(silent, speaks, alone)[1] == {"app weight": "unknown", "app quota-us": "unknown"}


def test_the_contradictions_are_in_every_format() -> None:
    found = contradicted_diff()
    note = f"Now, the evidence on worker-b contradicts what was said: {SAYS}."
    assert note in " ".join(diff_table.render(found).split())
    assert note in json.loads(as_json(found))["summary"]["notes"]
    assert note in yaml.safe_load(as_yaml(found))["summary"]["notes"]
    rows = [*diff_content.node_rows(found.nodes), *diff_content.workload_rows(found.workloads)]
    assert {(row.outcome, row.because) for row in rows} == {
        ("came-true", ()),
        ("unknown", ("the evidence on worker-b contradicts what was said: see the notes",)),
    }
    assert f"<li>{note}</li>" in diff_html.render(found)
    # A zero-width space keeps `runtime:` from being taken for a link or an emoji.
    assert note.replace("runtime:", "runtime:\u200b") in MarkdownIt("gfm-like").render(diff_markdown.render(found))


def test_contradictions_of_both_sides_are_said_once_for_all_nodes_with_the_same() -> None:
    said = saved(cluster(N1, N2, A), V2_LINEAR, "v2")
    against = told(said, nodes=tuple(replace(each, contradictions=("a but b",)) for each in said.audit.nodes))
    assert diff(against, said).summary.notes[0] == "Before, the evidence on n1, n2 contradicts what was said: a but b."
    found = diff(said, against)
    assert found.summary.notes[0] == "Now, the evidence on n1, n2 contradicts what was said: a but b."
    assert found.summary.sentence.endswith("Nothing is known to have moved that nobody predicted.")
    saw = "cgroup: s.yaml rule 1 says v2, but Event CgroupV1 says v1 (the kubelet warned (once) at {})"
    at_times = [replace(each, contradictions=(saw.format(each.name), "a but b")) for each in said.audit.nodes]
    assert diff(said, told(said, nodes=tuple(at_times))).summary.notes[:2] == (
        "Now, the evidence on n1, n2 contradicts what was said: cgroup: s.yaml rule 1 says v2, but Event CgroupV1 says v1.",
        "Now, the evidence on n1, n2 contradicts what was said: a but b.",
    )
    many = tuple(f"{n:02} but b" for n in range(25))
    crowded = diff(said, told(said, nodes=tuple(replace(each, contradictions=many) for each in said.audit.nodes)))
    crowded = replace(crowded, after=replace(crowded.after, input="another"))
    table = " ".join(diff_table.render(crowded).split())
    assert ("19 but b." in table, "20 but b." in table) == (True, False)
    assert "5 more notes: -o json shows all." in table
