"""What a single condition decides in the formats for programs: no text that acts, no number of another, nothing left out."""

import csv as reader
import io
import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import EvidenceRecord, ExceptedFinding, Finding, Known, NodeAudit, Subject
from kubectl_cgaudit.report import csv, junit, ndjson, nodes, prometheus, ranges, sarif
from kubectl_cgaudit.report.content import facts
from kubectl_cgaudit.report.escape import markdown, prose, shorten, visible
from kubectl_cgaudit.report.screen import PLAIN, Screen
from kubectl_cgaudit.report.words import signed
from tests.hostile import hand_made
from tests.support import audited, cluster, container, node, pod
from tests.test_table import RECORDED

OURS = hand_made("web")
(FOUND,) = OURS.findings
WEB = FOUND.subject


def other(**fields: Any) -> Finding:
    return replace(FOUND, **fields)


def cases(audit: Any) -> dict[tuple[str, str], ElementTree.Element]:
    root = ElementTree.fromstring(junit.render(audit))
    return {(each.get("classname", ""), each.get("name", "")): each for each in root.iter("testcase")}


def run_of(audit: Any) -> Any:
    return json.loads(sarif.render(audit))["runs"][0]


@pytest.mark.parametrize("sign", [*"=+-@\t\r\n'", "＝", "＋", "－", "＠"])
def test_no_cell_of_a_spreadsheet_is_a_formula(sign: str) -> None:
    text = csv.render(hand_made(f"{sign}1+1"))
    (row, *_) = reader.DictReader(io.StringIO(text, newline=""))
    for column in ("namespace", "pod", "node", "handler", "container"):
        assert row[column] == f"'{sign}1+1", column
    # Only its first sign makes a formula: a name that merely has one is as it was.
    (row, *_) = reader.DictReader(io.StringIO(csv.render(hand_made(f"a{sign}")), newline=""))
    assert row["pod"] == f"a{sign}"


def test_a_terminal_gets_no_control_character_of_a_cell_and_a_file_the_text() -> None:
    audit = hand_made("\x1b[31m")
    assert "\x1b" in csv.render(audit, PLAIN)
    on_a_terminal = csv.render(audit, Screen(80, False, True, True))
    assert ("\x1b" in on_a_terminal, "\\x1b[31m" in on_a_terminal) == (False, True)


def test_every_row_has_every_column() -> None:
    half = audited(cluster(node(), pod("none"), pod("p", container("c", "1"), on="gone"), pod("q", container("c"))))
    rows = list(reader.reader(io.StringIO(csv.render(half), newline="")))
    assert {len(row) for row in rows} == {len(csv.COLUMNS)}
    assert "null" not in csv.render(half)


@pytest.mark.parametrize(
    ("values", "least_and_greatest"),
    [
        ([1], (1, 1)),
        ([None], (None, None)),
        ([3, 1, 2], (1, 3)),
        ([3, None], (None, None)),
        ([None, None], (None, None)),
        ([0.0, -1.5], (-1.5, 0.0)),
        ([], (None, None)),
    ],
)
def test_least_and_greatest(values: list[float | None], least_and_greatest: tuple[float | None, float | None]) -> None:
    assert ranges.ends(values) == least_and_greatest


def test_shares_and_weights_are_no_range() -> None:
    name: Any = None
    mixed = (name, (("v1", 1024, 5), ("v2", 39, 5), ("v2", 100, 7), ("v2", 39, 6)))
    assert ranges.held(mixed, after=False) == ((None, None), (5, 7))
    assert ranges.held(mixed, after=True) == ((39, 39), (5, 6))
    assert (ranges.versions(mixed, after=False), ranges.versions(mixed, after=True)) == ("v1;v2", "v2")


def test_each_container_has_its_own_numbers_and_its_pods() -> None:
    two = audited(
        cluster(node(), pod("p", container("a", "1"), container("b", "3")), pod("q", container("c", "1"))),
        "- {cgroup: v1, driver: systemd, runtimes: {default: runc 1.1.5}}",
    )
    records = {each["container"]: each for each in map(json.loads, ndjson.render(two).splitlines())}
    found = {
        container_.name: (pod_.cases[0], container_.cases[0])
        for workload in two.workloads
        for pod_ in workload.pods
        for container_ in pod_.containers
    }
    assert set(records) == set(found) == {"a", "b", "c"}
    for name, (of_pod, own) in found.items():
        record = records[name]
        for time, moment in (("before", own.before), ("after", own.after)):
            for end in ("least", "greatest"):
                assert record[f"{time}_value_{end}"] == moment.value
                assert record[f"{time}_share_{end}"] == moment.share
                assert record[f"{time}_against_system_{end}"] == moment.against_system
                assert record[f"{time}_in_pod_{end}"] == moment.in_pod
        assert of_pod.before.against_system is not None
        assert of_pod.after.against_system is not None
        change = of_pod.after.against_system / of_pod.before.against_system - 1
        assert record["pod_change_against_system_least"] == pytest.approx(change, abs=1e-6)
    assert records["a"]["before_share_least"] < records["b"]["before_share_least"]


def test_all_that_a_rule_says_of_one_workload_is_in_its_test_case() -> None:
    low, high = other(severity="low", seen="First."), other(severity="high", seen="Second.", when="if cgroup v1")
    case = cases(replace(OURS, findings=(low, high)))["CGA201.web", "web web"]
    (failure,) = case
    assert (failure.tag, failure.get("type"), failure.get("message")) == ("failure", "high", "if cgroup v1: Second.")
    assert failure.text is not None
    assert ["First." in failure.text, "Second." in failure.text] == [True, True]
    apart = replace(
        OURS,
        findings=(),
        known=(low,),
        excepted=(ExceptedFinding(high, "agreed", None, "p.yaml exception 1"),),
    )
    (said,) = cases(apart)["CGA201.web", "web web"]
    assert said.tag == "system-out"
    assert said.text is not None
    assert "known from the baseline: low CGA201: First." in said.text
    assert "excepted (p.yaml exception 1: agreed): high CGA201: if cgroup v1: Second." in said.text


def test_what_is_open_is_no_pass_under_a_rule_of_another_kind() -> None:
    """A rule about workloads that speaks of a node of which nothing is known, and the other way round."""
    low = other(severity="low", subject=Subject("node", "n1"))
    blind = replace(OURS, nodes=tuple(replace(each, name="n1", confidence="unknown") for each in OURS.nodes))
    about_node = cases(replace(blind, findings=(low,)))["CGA201.node", "n1"]
    assert [each.tag for each in about_node] == ["error"]
    stranger = replace(low, subject=Subject("node", "n2"))
    assert [each.tag for each in cases(replace(blind, findings=(stranger,)))["CGA201.node", "n2"]] == ["system-out"]
    workload = OURS.workloads[0]
    open_ = replace(OURS, workloads=(replace(workload, effects=("unknown",)),))
    subject = Subject("workload", workload.name, workload.namespace, workload.kind)
    about_workload = cases(replace(open_, findings=(other(rule="CGA101", severity="low", subject=subject),)))
    key = ("CGA101.web", f"{workload.kind} {workload.name}")
    assert [each.tag for each in about_workload[key]] == ["error"]


@pytest.mark.parametrize(("unpredicted", "tags"), [(0, []), (1, ["error"]), (2, ["error"])])
def test_a_workload_of_which_a_pod_was_not_read_passes_nothing(unpredicted: int, tags: list[str]) -> None:
    workload = replace(OURS.workloads[0], unpredicted_pods=unpredicted)
    case = cases(replace(OURS, workloads=(workload,), findings=()))["CGA301.web", f"{workload.kind} {workload.name}"]
    assert [each.tag for each in case] == tags


def test_exceptions_that_match_nothing_are_said() -> None:
    about = Subject("audit", "exception 1")
    unused = other(rule="CGA002", severity="low", subject=about)
    found = cases(replace(OURS, findings=(unused,)))
    assert [each.tag for each in found["CGA002.audit", "exception 1"]] == ["system-out"]
    assert ("CGA002.audit", "exceptions") not in found


def test_rules_of_others_are_one_beside_ours() -> None:
    mixed = replace(RECORDED, findings=(*RECORDED.findings[:3], replace(RECORDED.findings[0], rule="X1")))
    text = prometheus.render(mixed)
    assert f'cgaudit_findings{{rule="other",severity="{mixed.findings[3].severity}",to="v2+runtime"}} 1\n' in text
    assert "X1" not in text


@pytest.mark.parametrize(
    ("target", "label"), [('a"b', 'a\\"b'), ("a\\b", "a\\\\b"), ("a\nb", "a\\\\x0ab"), ('\\"', '\\\\\\"')]
)
def test_no_label_ends_before_its_end(target: str, label: str) -> None:
    text = prometheus.render(replace(RECORDED, scenario=replace(RECORDED.scenario, to=target)))
    assert f'cgaudit_nodes_read{{to="{label}"}} 3\n' in text


def test_sarif_tells_of_every_gap_doubt_and_note() -> None:
    told = replace(
        OURS.coverage,
        complete=False,
        unmatched=("states [x](y) matches no node",),
        notes=("Jobs may not be listed",),
    )
    (invocation,) = run_of(replace(OURS, coverage=told))["invocations"]
    assert invocation["executionSuccessful"] is False
    notes = [(each["level"], each["message"]["text"]) for each in invocation["toolExecutionNotifications"]]
    assert notes == [("warning", "states [x] (y) matches no node."), ("note", "Jobs may not be listed.")]


@pytest.mark.parametrize(
    ("reason", "expires", "said"),
    [
        ("agreed", None, "agreed. p.yaml 1"),
        ("agreed.", None, "agreed. p.yaml 1"),
        (".hidden", None, ".hidden. p.yaml 1"),
        ("agreed", "2026-12-31", "agreed. Until 2026-12-31. p.yaml 1"),
    ],
)
def test_why_a_result_is_suppressed(reason: str, expires: str | None, said: str) -> None:
    excepted = ExceptedFinding(FOUND, reason, expires, "p.yaml 1")
    (result,) = run_of(replace(OURS, findings=(), excepted=(excepted,)))["results"]
    assert [each["justification"] for each in result["suppressions"]] == [said]


@pytest.mark.parametrize("apart", ["known", "excepted"])
def test_a_finding_that_is_set_apart_keeps_its_place_and_fingerprint(apart: str) -> None:
    sure, maybe = other(seen="Sure."), other(seen="Maybe.", when="if cgroup v1")
    both = run_of(replace(OURS, findings=(sure, maybe)))["results"]
    set_apart: Any = ExceptedFinding(sure, "agreed", None, "p") if apart == "excepted" else sure
    one = run_of(replace(OURS, findings=(maybe,), **{apart: (set_apart,)}))["results"]
    assert [each["partialFingerprints"] for each in one] == [each["partialFingerprints"] for each in both]
    assert [each["message"]["text"] for each in one] == [each["message"]["text"] for each in both]
    assert len({each["partialFingerprints"]["ruleAndSubject/v1"] for each in both}) == 2


def test_rules_that_are_none_of_ours_have_their_own_words_and_no_page() -> None:
    strange = [other(rule="X1", title="???", why="Why."), other(rule="X1", title="odd", why="Why.")]
    run = run_of(replace(OURS, findings=tuple(strange), nodes=(), workloads=()))
    rules = {each["id"]: each for each in run["tool"]["driver"]["rules"]}
    assert rules["X1"]["shortDescription"]["text"] == "???; odd."
    assert (rules["X1"]["name"], rules["X1"]["fullDescription"]["text"]) == ("Odd", "Why.")
    assert ("helpUri" in rules["X1"], "markdown" in rules["X1"]["help"]) == (False, False)
    assert ("helpUri" in rules["CGA201"], "markdown" in rules["CGA201"]["help"]) == (True, True)
    assert [each["ruleId"] for each in run["results"]] == ["X1", "X1"]
    # Of what is not among the nodes and workloads nobody knows how sure it is.
    assert "confidence" not in run["results"][0]["properties"]
    unnamed = run_of(replace(OURS, findings=(other(rule="X1", title="???"),)))["tool"]["driver"]["rules"]
    assert [each["name"] for each in unnamed if each["id"] == "X1"] == ["Unnamed"]


@pytest.mark.parametrize(
    ("subject", "path"),
    [
        (Subject("audit", "node gone"), "cluster/audit"),
        (Subject("node", "a/b"), "cluster/nodes/a%2Fb"),
        (Subject("node", ".."), "cluster/nodes/_.."),
        (Subject("node", ""), "cluster/nodes/_"),
        (Subject("workload", "w", "n", "Deployment"), "cluster/namespaces/n/Deployment/w"),
        (Subject("workload", "w", "n"), "cluster/namespaces/n/_/w"),
        (Subject("workload", "w"), "cluster/namespaces/_/_/w"),
    ],
)
def test_where_a_result_is(subject: Subject, path: str) -> None:
    (result,) = run_of(replace(OURS, findings=(other(subject=subject),)))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == path


def test_a_target_that_is_no_url_is_quoted_in_the_runs_name() -> None:
    to = "v2+runtime,kubelet=1.35 /?#\ud800"
    audit = replace(OURS, scenario=replace(OURS.scenario, to=to))
    name = next(iter(sarif._text(replace(audit, scenario=replace(audit.scenario, to=to[:-1])))))
    assert '"id": "cgaudit/v2+runtime,kubelet=1.35%20%2F%3F%23/"' in name


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x7f\x80\xff", "\\x7f\\x80ÿ"),
        ("\u200b\u202e\ufeff", "\\u200b\\u202e\\ufeff"),
        ("\U000e0001\U0010ffff", "\\U000e0001\\U0010ffff"),
        ("größe 日本 😀", "größe 日本 😀"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" a `b` c ", "a `b` c"),
        ("`*a*` *b*", "`*a*` \\*b\\*"),
        ("a `b", "a \\`b"),
        ("a `` b ``", "a \\`\\` b \\`\\`"),
        ("`a` or `b`", "`a` or `b`"),
        ("`a`", "`a`"),
        ("a ` ` b", "a \\` \\` b"),
    ],
)
def test_code_in_a_sentence(text: str, shown: str) -> None:
    assert prose(text) == shown


@pytest.mark.parametrize("text", ["- a", "1. a", "12) a", "= a", "+", "-", "--- a"])
def test_no_text_begins_a_list_a_heading_or_a_rule(text: str) -> None:
    assert "\\" in markdown(text)


@pytest.mark.parametrize(("most", "shown"), [(3, "abc"), (2, "a…"), (1, "…"), (4, "abc")])
def test_a_cut_is_marked(most: int, shown: str) -> None:
    assert shorten("abc", most) == shown


@pytest.mark.parametrize(
    ("fields", "key", "said"),
    [
        ({"filter": ""}, "Read from", "web"),
        ({"filter": "namespace a"}, "Read from", "web, only namespace a"),
        ({"complete": True}, "Coverage", "complete"),
    ],
)
def test_what_a_change_ticket_asks_first(fields: dict[str, Any], key: str, said: str) -> None:
    assert dict(facts(replace(OURS, coverage=replace(OURS.coverage, **fields))))[key] == said


def test_nothing_found_is_said_in_words() -> None:
    empty = replace(OURS, verdict=replace(OURS.verdict, workloads={}, findings={}))
    found = dict(facts(empty))
    assert (found["Findings"], found["Workloads, each by its strongest effect"]) == ("none", "none")


SURE, OPEN = Known("v1", "certain", ""), Known(None, "unknown", "")
RUNC = Known("runc 1.3.6", "likely", "")


def of_node(name: str, cgroup: Known = SURE, runtime: Known | None = RUNC, **fields: Any) -> NodeAudit:
    known = {"cgroup": cgroup, "kubelet": RUNC, "system_slice": SURE}
    known |= {} if runtime is None else {"runtime:default": runtime}
    return replace(OURS.nodes[0], name=name, known=known, **fields)


def of_nodes(*shown: NodeAudit, evidence: bool = False) -> str:
    return nodes.as_text(shown, evidence=evidence, events_read=True, screen=replace(PLAIN, width=1000))


def test_what_of_a_node_does_not_fit_together_is_said() -> None:
    text = of_nodes(of_node("a", contradictions=("cgroup is v1 and v2",), problems=("timed out",)), of_node("b"))
    assert "\nCONTRADICTIONS\na: cgroup is v1 and v2\n" in text
    assert "\nKUBELETS THAT DID NOT ANSWER\na: timed out\n" in text
    assert "TO SETTLE" not in text
    assert "CONTRADICTIONS" not in of_nodes(of_node("a"))


def test_only_nodes_of_which_the_same_is_known_share_a_row() -> None:
    def rows(*shown: NodeAudit) -> int:
        return of_nodes(*shown).partition("\n\n")[0].count("\n")

    alike = (of_node("a"), of_node("b"))
    assert rows(*alike) == rows(of_node("a"))
    for other_ in (
        of_node("b", replace(SURE, value="v2")),
        of_node("b", replace(SURE, confidence="assumed")),
        of_node("b", kubelet_version="v9"),
        of_node("b", runtime=replace(RUNC, value="crun 1.28")),
    ):
        assert rows(of_node("a"), other_) == rows(*alike) + 1
    assert "Of like nodes" not in of_nodes(*(of_node(name) for name in "abc"))
    assert "Of like nodes three are named" in of_nodes(*(of_node(name) for name in "abcd"), of_node("e", OPEN))


def test_a_node_without_a_pod_has_a_row() -> None:
    (row,) = [line for line in of_nodes(of_node("lonely", runtime=None)).splitlines() if line.startswith("lonely")]
    assert "no pod" in row


def test_evidence_is_called_what_it_is() -> None:
    hint = EvidenceRecord("cgroup", "v1", "hint", "image", "old")
    text = of_nodes(of_node("a", evidence=(hint, replace(hint, confidence="certain"))), of_node("b"), evidence=True)
    assert "  hint     cgroup is probably v1: image: old\n  certain  cgroup is v1: image: old\n" in text
    assert "EVIDENCE OF b\n  none beyond the defaults and the states file\n" in of_nodes(
        of_node("b", evidence=()), evidence=True
    )


EVENTS, LOOK, MEASURE = "Cgroup version of ", "Look on one node of ", "Measure it: "


@pytest.mark.parametrize(
    ("cgroup", "runtime", "events_read", "measured", "steps"),
    [
        (SURE, RUNC, False, False, []),
        (OPEN, RUNC, False, False, [EVENTS, LOOK, MEASURE]),
        (OPEN, RUNC, True, False, [LOOK, MEASURE]),
        (SURE, OPEN, False, False, [LOOK, MEASURE]),
        (SURE, OPEN, False, True, [LOOK]),
        (OPEN, OPEN, False, True, [EVENTS, LOOK]),
    ],
)
def test_what_would_settle_what_is_open(
    cgroup: Known, runtime: Known, events_read: bool, measured: bool, steps: list[str]
) -> None:
    evidence = (EvidenceRecord("cgroup", "v1", "hint", "kubelet /metrics", ""),) if measured else ()
    one = of_node("a", cgroup, runtime, evidence=evidence)
    found = nodes.settle([one, of_node("settled")], events_read=events_read)
    assert [each[: len(step)] for each, step in zip(found, steps, strict=True)] == steps
    looks = "".join(found)
    assert ("stat -fc" in looks, "runc --version" in looks) == (cgroup is OPEN, runtime is OPEN)
    assert "settled" not in looks
    # One node that was not measured is enough to say how it can be.
    both = nodes.settle([one, of_node("b", OPEN)], events_read=True)
    assert both[-1].startswith(MEASURE)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (0.0, "0%"),
        (0.00049, "0%"),
        (0.0006, "+0.1%"),
        (-0.047, "-4.7%"),
        (0.099, "+9.9%"),
        (0.1, "+10%"),
        (-0.617, "-62%"),
    ],
)
def test_a_change_in_words(change: float, text: str) -> None:
    assert signed(change) == text
