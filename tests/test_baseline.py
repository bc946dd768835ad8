"""--baseline: what is known, what is new, what is gone."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.audit.model import Audit, Finding, Subject
from kubectl_cgaudit.audit.policy import apply, parse
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.errors import UsageError
from kubectl_cgaudit.report.formats import FORMATS
from tests.baseline_support import AUDIT, compared, ids, shown, without
from tests.support import RECORDED_FLAGS, STATES, audited, recorded, recorded_audit, recorded_blind

NONE = {"critical": 0, "high": 0, "medium": 0, "low": 0}


@pytest.mark.parametrize(("to", "amount"), [("v2+runtime", 22), ("runtime", 16), ("v2", 27)])
def test_the_same_audit_has_nothing_new(to: str, amount: int) -> None:
    audit = recorded_audit(to)
    found = compared(audit, audit)
    assert (found.findings, found.fixed, len(found.known)) == ((), (), amount)
    assert found.known == audit.findings
    assert found.verdict.findings == NONE
    assert found.baseline is not None
    assert (found.baseline.source, found.baseline.notes) == ("base.json", ())
    assert f"Against the baseline base.json: 0 new, {amount} known" in " ".join(shown("table", found).split())


def test_a_workload_that_loses_still_loses_and_is_marked() -> None:
    found = compared(AUDIT)
    assert found.verdict.workloads == AUDIT.verdict.workloads
    assert [each.effects for each in found.workloads] == [each.effects for each in AUDIT.workloads]
    assert [each.title for each in found.workloads if each.standing == "known"] == [
        "shop/checkout",
        "data/postgres",
        "shop/payments",
        "kube-system/kube-proxy",
        "platform/node-exporter",
        "edge/canary-gateway",
        "edge/legacy-gateway",
        "data/redis",
        "batch/index-rebuild",
        "platform/debug-shell",
    ]


def test_what_the_baseline_does_not_have_is_new_and_what_only_it_has_is_gone() -> None:
    found = compared(without(AUDIT, 0, 5), without(AUDIT, 1, 21))
    assert ids(found.findings) == [("CGA201", "shop/checkout"), ("CGA204", "shop/payments")]
    assert ids(found.fixed) == [("CGA201", "data/postgres"), ("CGA302", "platform/debug-shell")]
    assert len(found.known) == 18
    assert found.verdict.findings == {**NONE, "high": 1, "medium": 1}
    assert "Against the baseline base.json: 2 new, 18 known, 2 " in " ".join(shown("table", found).split())
    assert found.verdict.sentence.startswith("5 of 15 workloads lose")
    standing = {each.title: each.standing for each in found.workloads}
    assert (standing["shop/checkout"], standing["data/postgres"], standing["kube-system/kube-proxy"]) == (
        "",
        "",
        "known",
    )


def test_what_cannot_be_told_now_is_not_gone() -> None:
    incomplete = replace(without(AUDIT, 0), coverage=replace(AUDIT.coverage, complete=False))
    unread = compared(AUDIT, incomplete)
    assert (unread.fixed, unread.baseline and unread.baseline.notes) == (
        (),
        ("This audit is incomplete: what is gone cannot be told",),
    )
    worker_a = AUDIT.nodes[0]
    assert (AUDIT.findings[0].subject.title, worker_a.name) == ("shop/checkout", "worker-a")
    about_a = next(place for place, each in enumerate(AUDIT.findings) if each.subject.title == "worker-a")
    open_ = replace(
        without(AUDIT, 0, 1, about_a),
        nodes=(replace(worker_a, confidence="unknown"), *AUDIT.nodes[1:]),
        workloads=tuple(
            replace(each, effects=("loses", "unknown")) if each.name == "checkout" else each for each in AUDIT.workloads
        ),
    )
    found = compared(AUDIT, open_)
    assert ids(found.fixed) == [("CGA201", AUDIT.findings[1].subject.title)]
    assert found.baseline is not None
    assert found.baseline.notes == (
        "Of 2 findings of the baseline it cannot be told whether they are gone: something of their nodes is unknown now, "
        "pods wait for one, a threshold finds less, or owners were read of one audit only",
    )


def changed(**fields: Any) -> Audit:
    return replace(AUDIT, findings=(replace(AUDIT.findings[0], **fields), *AUDIT.findings[1:]))


@pytest.mark.parametrize(
    ("then", "new"),
    [
        ({"severity": "medium"}, True),
        ({"severity": "critical"}, False),
        ({"certainty": "possible"}, True),
        ({"certainty": "probable"}, True),
        ({"certainty": "certain"}, False),
        ({"certainty": "possible", "severity": "critical"}, True),
        ({"message": "other words", "title": "another title", "measures": (), "actions": ()}, False),
    ],
)
def test_what_is_worse_than_it_was_or_now_holds_for_sure_is_new_and_not_gone(then: dict[str, Any], new: bool) -> None:
    found = compared(changed(**then))
    assert ids(found.findings) == ([("CGA201", "shop/checkout")] if new else [])
    assert found.fixed == ()
    assert len(found.known) == (21 if new else 22)


def test_what_is_milder_or_only_may_hold_now_is_known() -> None:
    assert compared(AUDIT, changed(severity="low")).findings == ()
    assert compared(AUDIT, changed(certainty="possible")).findings == ()
    both = compared(changed(certainty="possible", severity="critical"), changed(certainty="probable"))
    assert (both.findings, len(both.known)) == ((), 22)


@pytest.mark.parametrize(
    ("then", "now", "new"),
    [
        ({"unknown": ["cgroup"]}, {"unknown": ["runtime:default"]}, False),
        ({"unknown": ["cgroup"]}, {"contradictions": ["it is both"]}, True),
        ({"unknown": ["cgroup"]}, {"unknown": ["cgroup"], "contradictions": ["it is both"]}, True),
        ({"contradictions": ["it is both"]}, {"unknown": ["cgroup"]}, True),
        ({"contradictions": ["it is both"]}, {"contradictions": ["it is neither"]}, False),
    ],
)
def test_what_contradicts_itself_now_was_only_not_known_then(
    then: dict[str, list[str]], now: dict[str, list[str]], new: bool
) -> None:
    """CGA102 says both of a node."""
    unsettled = replace(
        AUDIT.findings[0],
        id="CGA102:n",
        rule="CGA102",
        severity="medium",
        certainty="certain",
        subject=Subject("node", "n"),
    )
    earlier, audit = (replace(AUDIT, findings=(replace(unsettled, detail=detail),)) for detail in (then, now))
    found = compared(earlier, audit)
    assert (len(found.findings), len(found.known), found.fixed) == ((1, 0, ()) if new else (0, 1, ()))


def test_a_policy_comes_first_and_what_it_excepts_is_not_gone() -> None:
    policy = parse("{severities: {CGA302: high}, exceptions: [{rule: CGA201, reason: x}]}", "p.yaml")
    found = compared(without(AUDIT, 0), apply(policy, AUDIT, None))
    assert (found.findings, found.fixed, len(found.known)) == ((), (), 17)
    assert [each.in_baseline for each in found.excepted] == [False, True, True, True, True]
    results = json.loads(shown("sarif", found))["runs"][0]["results"]
    assert [each["baselineState"] for each in results if each["suppressions"]] == ["new", *["unchanged"] * 4]


def test_what_the_baseline_excepted_is_new_when_the_exception_ends_and_what_it_knew_is_known() -> None:
    policy = parse("exceptions: [{rule: CGA101, reason: x}]", "p.yaml")
    assert ids(compared(apply(policy, AUDIT, None)).findings) == [("CGA101", "worker-c")]
    assert compared(compared(AUDIT)).findings == ()


def test_a_target_written_another_way_is_the_same() -> None:
    assert compared(recorded_audit("v2,runtime")).findings == ()


def test_another_target_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        compared(recorded_audit("runtime"))
    assert str(caught.value) == (
        "--baseline base.json was audited with --to runtime, and this is --to v2+runtime; compare audits of the same target"
    )


def test_a_target_file_that_says_something_else_now_is_refused_and_one_with_another_comment_is_not(
    tmp_path: Path,
) -> None:
    target = tmp_path / "moved.yaml"

    def audit_to(text: str) -> Audit:
        target.write_text(text)
        return audited(recorded(), STATES.read_text(), str(target))

    earlier = audit_to("- {match: {name: worker-c}, cgroup: v2}")
    assert compared(audit_to("# ticket 7\n- cgroup: v2\n  match: {name: worker-c}"), earlier).findings == ()
    other = audit_to("- {match: {name: worker-c}, cgroup: v1}")
    with pytest.raises(UsageError) as caught:
        compared(other, earlier)
    assert str(caught.value) == (
        "--baseline base.json was audited with another moved.yaml: the file said something else then; make the baseline anew"
    )
    # An audit of an earlier release does not say what the file said.
    before_it_was_kept = replace(earlier, target=replace(earlier.target, rules=None))
    assert compared(other, before_it_was_kept).baseline is not None


def test_another_filter_other_thresholds_and_what_is_incomplete_are_noted() -> None:
    part = replace(AUDIT, coverage=replace(AUDIT.coverage, filter="namespace shop", complete=False))
    stricter = audited(recorded(), STATES.read_text(), "v2+runtime", "system-loss=5%")
    found = compared(stricter, without(part, 0))
    assert found.fixed == ()
    assert found.baseline is not None
    assert found.baseline.notes == (
        "The baseline reports everything, this audit namespace shop: what is gone cannot be told",
        "The thresholds differ from the baseline's: system-loss 0.05 -> 0.1",
    )
    gone = compared(part, without(replace(part, coverage=replace(part.coverage)), 0))
    assert gone.baseline is not None
    assert gone.baseline.notes == (
        "The baseline is incomplete: what is new may only have been unread then",
        "This audit is incomplete: what is gone cannot be told",
    )


@pytest.mark.parametrize(
    ("threshold", "stricter", "rule", "untold"),
    [
        ("system-loss=90%", "system-loss=1%", "CGA201", 5),
        ("pod-move=90%", "pod-move=1%", "CGA204", 5),
        ("outweighed-reserve=100", "outweighed-reserve=2", "CGA202", 1),
        ("outweighed=100", "outweighed=2", "CGA202", 1),
        ("divisible=1", "divisible=6", "CGA206", 2),
    ],
)
def test_what_another_threshold_does_not_find_is_not_gone(
    threshold: str, stricter: str, rule: str, untold: int
) -> None:
    def at(*thresholds: str) -> Audit:
        found = audited(recorded(), STATES.read_text(), "v2+runtime", *thresholds)
        return replace(found, findings=tuple(each for each in found.findings if each.rule != rule))

    assert sum(each.rule == rule for each in AUDIT.findings) == untold
    found = compared(AUDIT, at(threshold))
    assert (found.fixed, found.baseline and found.baseline.notes[0].startswith(f"Of {untold} finding")) == ((), True)
    # One that finds more, or as much, and not this: it is gone.
    assert {each.rule for each in compared(AUDIT, at(stricter)).fixed} == {rule}
    assert {each.rule for each in compared(AUDIT, at()).fixed} == {rule}


def test_a_workload_whose_owner_was_read_of_one_audit_only_is_not_gone() -> None:
    derived = replace(AUDIT.coverage, workload_names={**AUDIT.coverage.workload_names, "Deployment": "derived"})
    fewer = replace(AUDIT, findings=())
    told = {each.subject.workload_kind for each in compared(AUDIT, replace(fewer, coverage=derived)).fixed}
    assert told == {None, "StatefulSet", "DaemonSet", "Pod"}
    assert {each.subject.workload_kind for each in compared(AUDIT, fewer).fixed} > told


def test_of_nodes_nobody_knows_what_is_open_stays_open() -> None:
    blind = audited(recorded_blind())
    found = compared(blind, blind)
    assert found.findings == ()
    assert found.verdict.workloads["unknown"] == blind.verdict.workloads["unknown"] == 15
    assert shown("junit", found).count('<error type="unknown"') > 0


def test_every_format_says_what_is_new_known_and_gone() -> None:
    found = compared(without(AUDIT, 0), without(AUDIT, 1))
    screen = " ".join(shown("table", found).split())
    assert "Against the baseline base.json: 1 new, 20 known, 1 " in screen
    ticket = shown("markdown", found)
    assert "20 findings are in the baseline base.json too." in ticket
    assert "1 finding of the baseline is gone." in ticket
    assert "| Findings | 1 high; not counted: 20 known from base.json, 1 of it gone |" in ticket
    page = shown("html", found)
    assert "20 findings are in the baseline base.json too." in page
    assert "nothing new against the baseline" in page
    results = json.loads(shown("sarif", found))["runs"][0]["results"]
    assert [each["baselineState"] for each in results] == ["new", *["unchanged"] * 20]
    lines = shown("prometheus", found).splitlines()
    assert [line for line in lines if line.startswith("cgaudit_findings_state")] == [
        'cgaudit_findings_state{state="counted",to="v2+runtime"} 1',
        'cgaudit_findings_state{state="known",to="v2+runtime"} 20',
        'cgaudit_findings_state{state="excepted",to="v2+runtime"} 0',
        'cgaudit_findings_state{state="fixed",to="v2+runtime"} 1',
    ]
    assert shown("junit", found).count("<failure") == 1
    assert shown("junit", found).count("known from the baseline: ") == 20


def test_the_command_and_its_saved_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    base, first, again = tmp_path / "base.json.gz", tmp_path / "first", tmp_path / "again"
    base.write_bytes(gzip.compress(shown("json", without(AUDIT, 0)).encode()))
    for folder in (first, again):
        folder.mkdir()
    wanted = [[w for name in FORMATS for w in ("-o", f"{name}={folder / name}")] for folder in (first, again)]
    assert run([*RECORDED_FLAGS, "--baseline", str(base), "--fail-on", "high", *wanted[0]]) == 4
    assert capsys.readouterr().err.endswith("--fail-on: 1 finding of severity high or worse\n")
    assert run(["report", str(first / "json"), "--fail-on", "critical", *wanted[1]]) == 0
    assert [(again / name).read_bytes() == (first / name).read_bytes() for name in FORMATS] == [True] * len(FORMATS)
    assert run(["report", str(first / "json"), "--baseline", str(base)]) == 2
    assert capsys.readouterr().err.endswith(
        f"error: {first / 'json'} was made with --baseline base.json.gz already; leave --baseline out\n"
    )
    plain = tmp_path / "plain.json"
    plain.write_text(shown("json", AUDIT))
    assert run(["report", str(plain), "--baseline", str(plain), "--fail-on", "low"]) == 0
    assert run([*RECORDED_FLAGS, "--to", "runtime", "--baseline", str(plain)]) == 2
    assert run([*RECORDED_FLAGS, "--baseline", str(STATES)]) == 1


def with_only(*findings: Finding) -> Audit:
    return replace(AUDIT, findings=findings)


def test_one_that_got_worse_takes_that_of_the_baseline_with_it() -> None:
    first = replace(AUDIT.findings[0], severity="low")
    worse = replace(first, severity="high")
    found = compared(with_only(first), with_only(worse))
    assert (found.findings, found.fixed) == ((worse,), ())


def test_the_filters_of_both_are_named() -> None:
    part, other = (replace(AUDIT, coverage=replace(AUDIT.coverage, filter=f"namespace {name}")) for name in ("a", "b"))
    found = compared(part, other)
    assert found.baseline is not None
    assert found.baseline.notes == (
        "The baseline reports namespace a, this audit namespace b: what is gone cannot be told",
    )


def test_of_a_workload_whose_pods_wait_for_a_node_nothing_is_gone() -> None:
    waiting = replace(AUDIT.coverage, pods_without_node=("data/postgres-0",))
    kept = tuple(each for each in AUDIT.findings if each.subject.name != "postgres")
    gone = [each.subject.name for each in AUDIT.findings if each.subject.name == "postgres"]
    assert [each.subject.name for each in compared(AUDIT, replace(AUDIT, findings=kept)).fixed] == gone
    assert compared(AUDIT, replace(AUDIT, findings=kept, coverage=waiting)).fixed == ()
