"""The policy file: what it sets, what it excepts, what it refuses; and --fail-on."""

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.audit.model import Audit, Finding
from kubectl_cgaudit.audit.policy import apply, load, parse
from kubectl_cgaudit.audit.saved import Saved, load_audit
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.errors import UsageError
from kubectl_cgaudit.report.findings import described
from kubectl_cgaudit.report.formats import FORMATS
from tests.support import (
    RECORDED_FLAGS,
    STATES,
    V2_LINEAR,
    audited,
    cluster,
    container,
    node,
    pod,
    recorded,
    rendered,
    saved,
)

SAVED = saved(recorded(), STATES.read_text())
AUDIT = SAVED.audit
DAY = date(2026, 6, 1)
FULL = """
severities: {CGA203: off, CGA302: medium}
exceptions:
  - rule: [CGA201, CGA204]
    match: {namespace: shop, kind: Deployment, name: check*}
    reason: agreed in CHG-123
    expires: 2026-12-31
"""


def under(text: str, audit: Audit = AUDIT, today: date | None = DAY) -> Audit:
    return described(apply(parse(text, "p.yaml"), audit, today))


def shown(name: str, audit: Audit) -> str:
    return rendered(name, Saved(audit, SAVED.containers))


def about_exceptions(audit: Audit) -> list[dict[str, Any]]:
    """What the findings about exceptions saw."""
    return [each.detail for each in audit.findings if each.rule == "CGA002"]


def subjects(findings: tuple[Finding, ...], rule: str) -> list[str]:
    return [each.subject.title for each in findings if each.rule == rule]


def test_what_is_excepted_is_set_apart_with_its_reason() -> None:
    found = under(FULL)
    assert [
        (each.finding.rule, each.finding.severity, each.finding.subject.title, each.reason, each.expires, each.source)
        for each in found.excepted
    ] == [
        ("CGA201", "high", "shop/checkout", "agreed in CHG-123", "2026-12-31", "p.yaml exception 1"),
        ("CGA203", "low", "shop/checkout", "p.yaml sets the severity of CGA203 to off", None, "p.yaml severities"),
        ("CGA204", "low", "shop/checkout", "agreed in CHG-123", "2026-12-31", "p.yaml exception 1"),
    ]
    assert AUDIT.verdict.findings == {"critical": 0, "high": 5, "medium": 2, "low": 15}
    # checkout's three are gone, and the three of CGA302 are medium.
    assert found.verdict.findings == {"critical": 0, "high": 4, "medium": 5, "low": 10}
    assert [each.severity for each in found.findings] == ["high"] * 4 + ["medium"] * 5 + ["low"] * 10
    assert subjects(found.findings, "CGA201") == [
        "data/postgres",
        "shop/payments",
        "kube-system/kube-proxy",
        "platform/node-exporter",
    ]


def test_a_gap_has_the_name_that_the_report_gives_it() -> None:
    half = audited(cluster(node(), pod("p", container("c", "1"), runtimeClassName="a")), V2_LINEAR)
    for name, amount in ("RuntimeClass a", 1), ("RuntimeClass*", 1), ("runtimeclass*", 0), ("a", 0):
        found = under(f"exceptions: [{{rule: CGA001, match: {{name: {name}}}, reason: r}}]", half)
        assert [each.finding.rule for each in found.excepted] == ["CGA001"] * amount
        assert found.coverage.complete is False


def test_what_workloads_gain_and_lose_stays() -> None:
    found = under(FULL)
    assert found.verdict.workloads == AUDIT.verdict.workloads
    losing = AUDIT.verdict.sentence.partition(" In 5 workloads")[0]
    assert losing.startswith("5 of 15 workloads lose CPU")
    assert found.verdict.sentence.startswith(losing)
    assert "3 findings excepted by the policy" in " ".join(shown("table", found).split())
    assert {each.title: each.standing for each in found.workloads if each.standing} == {"shop/checkout": "excepted"}
    assert [replace(each, standing="") for each in found.workloads] == list(AUDIT.workloads)


@pytest.mark.parametrize(("today", "holds"), [("2026-12-30", True), ("2026-12-31", True), ("2027-01-01", False)])
def test_an_exception_holds_until_the_end_of_its_last_day(today: str, holds: bool) -> None:
    found = under(FULL, today=date.fromisoformat(today))
    assert ("shop/checkout" in subjects(found.findings, "CGA201")) is not holds
    assert len(found.excepted) == (3 if holds else 1)
    expired = {
        "where": "p.yaml exception 1",
        "reason": "agreed in CHG-123",
        "speaksOf": 2,
        "state": "expired",
        "expires": "2026-12-31",
        "countsAgain": 2,
    }
    assert about_exceptions(found) == ([] if holds else [expired])


def test_an_unused_exception_is_a_finding_of_low_severity() -> None:
    found = under("exceptions: [{rule: CGA101, match: {node: other*}, reason: gone}]")
    (finding,) = (each for each in found.findings if each.rule == "CGA002")
    assert (finding.severity, finding.subject.title) == ("low", "exception of CGA101 (node other*)")
    assert finding.detail == {
        "where": "p.yaml exception 1",
        "reason": "gone",
        "speaksOf": 0,
        "state": "unused",
        "complete": True,
    }
    assert found.verdict.findings["low"] == 16


def test_with_a_filter_nobody_knows_what_is_unused_and_an_incomplete_audit_says_so() -> None:
    text = "exceptions: [{rule: CGA301, reason: x}]"
    filtered = replace(AUDIT, coverage=replace(AUDIT.coverage, filter="namespace shop"))
    assert subjects(under(text, filtered).findings, "CGA002") == []
    incomplete = under(text, replace(AUDIT, coverage=replace(AUDIT.coverage, complete=False)))
    (detail,) = about_exceptions(incomplete)
    assert (detail["state"], detail["complete"]) == ("unused", False)
    assert any("it may speak of what could not be read" in each.message for each in incomplete.findings)


def test_an_exception_that_another_covers_is_not_unused_and_the_first_gives_the_reason() -> None:
    found = under("exceptions: [{rule: CGA201, reason: all}, {rule: CGA201, match: {namespace: shop}, reason: some}]")
    assert [each.reason for each in found.excepted] == ["all"] * 5
    assert subjects(found.findings, "CGA002") == []


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ("{node: worker-c}", ["worker-c"]),
        ("{node: 'worker-?'}", ["worker-c"]),
        ("{node: Worker-c}", []),
        ("{name: worker-c}", []),
        ("{namespace: '*'}", []),
    ],
)
def test_a_node_is_matched_by_node_alone(match: str, expected: list[str]) -> None:
    found = under(f"exceptions: [{{rule: CGA101, match: {match}, reason: x}}]")
    assert [each.finding.subject.title for each in found.excepted] == expected


def test_off_on_the_findings_about_exceptions_is_said() -> None:
    found = under("{severities: {CGA002: off}, exceptions: [{rule: CGA301, reason: x}]}")
    assert [(each.finding.rule, each.source) for each in found.excepted] == [("CGA002", "p.yaml severities")]
    assert found.findings == AUDIT.findings


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "p.yaml is empty; add one of thresholds, severities, exceptions"),
        ("# nothing\n", "p.yaml is empty; add one of thresholds, severities, exceptions"),
        ("text", "p.yaml must hold thresholds, severities, exceptions, not 'text'"),
        (
            "- {match: {name: worker-*}, cgroup: v2}",
            "p.yaml is a list, as a states file is; give that with --states, or write a policy with "
            "thresholds, severities, exceptions",
        ),
        ("{}", "p.yaml says nothing; add one of thresholds, severities, exceptions"),
        ("a: [", "p.yaml is not valid YAML at line 1: did not find expected node content; correct it there"),
        ("exception: []", "p.yaml: there is no key 'exception'; did you mean exceptions?"),
        ("severities: {CGA203: hihg}", "p.yaml: severities: CGA203: there is no severity 'hihg'; did you mean high?"),
        (
            "severities: {CGA203: none}",
            "p.yaml: severities: CGA203: there is no severity 'none'; it may be critical, high, medium, low, off",
        ),
        ("severities: {cga204: low}", "p.yaml: severities: there is no rule 'cga204'; did you mean CGA204?"),
        (
            "thresholds: {system-los: 15%}",
            "p.yaml: thresholds: there is no key 'system-los'; did you mean system-loss?",
        ),
        (
            "thresholds: {system-loss: much}",
            "p.yaml: thresholds: system-loss: 'much' is not a positive part such as 0.1 or 10%",
        ),
        (
            "exceptions: {rule: CGA201}",
            "p.yaml: exceptions must be a list, such as: - {rule: CGA201, reason: agreed in CHG-123}",
        ),
        ("exceptions: [{rule: CGA201}]", "p.yaml exception 1 has no reason; add one"),
        ("exceptions: [{reason: x}]", "p.yaml exception 1 has no rule; add one"),
        (
            "exceptions: [{rule: CGA201, reason: ' '}]",
            "p.yaml exception 1: reason is empty; say who agreed to it, and why",
        ),
        (
            "exceptions: [{rule: CGA201, reason: x}, {rule: CGA201, reason: x, expire: 2026-01-01}]",
            "p.yaml exception 2: there is no key 'expire'; did you mean expires?",
        ),
        (
            "exceptions: [{rule: CGA201, reason: x, expires: 2026-02-30}]",
            "p.yaml exception 1: expires: '2026-02-30' is not a day such as 2026-12-31",
        ),
        (
            "exceptions: [{rule: CGA201, reason: x, expires: tomorrow}]",
            "p.yaml exception 1: expires: 'tomorrow' is not a day such as 2026-12-31",
        ),
        (
            "exceptions: [{rule: CGA201, reason: x, match: {}}]",
            "p.yaml exception 1: match is empty; leave it out to except every finding of the rule",
        ),
        (
            "exceptions: [{rule: CGA201, reason: x, match: {node: a, name: b}}]",
            "p.yaml exception 1: match: node stands alone, as a node has no namespace, kind or workload; split it",
        ),
        (
            "exceptions: [{rule: CGA201, reason: x, match: {namespac: a}}]",
            "p.yaml exception 1: match: there is no key 'namespac'; did you mean namespace?",
        ),
        (
            "exceptions: [{rule: CGA002, reason: x}]",
            "p.yaml exception 1: rule: CGA002 speaks of the exceptions themselves; mend or remove the exception",
        ),
    ],
)
def test_what_is_refused(text: str, error: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, "p.yaml")
    assert str(caught.value) == error


def test_no_such_file() -> None:
    with pytest.raises(UsageError) as caught:
        load("none.yaml")
    assert str(caught.value) == "the policy file none.yaml cannot be read: No such file or directory; check the path"


def test_a_flag_wins_over_the_policys_threshold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("thresholds: {system-loss: 15%, pod-move: 20%}")
    assert run([*RECORDED_FLAGS, "--policy", str(path), "--threshold", "system-loss=30%", "-o", "json"]) == 0
    limits = json.loads(capsys.readouterr().out)["target"]["thresholds"]
    assert (limits["system-loss"], limits["pod-move"], limits["system-gain"]) == (0.3, 0.2, 0.1)


@pytest.mark.parametrize(("epoch", "amount"), [("1798675200", 1), ("1798761600", 0)])  # 2026-12-31, 2027-01-01
def test_the_day_is_that_of_source_date_epoch(
    epoch: str, amount: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    path = tmp_path / "p.yaml"
    path.write_text("exceptions: [{rule: CGA101, reason: x, expires: 2026-12-31}]")
    assert run([*RECORDED_FLAGS, "--policy", str(path), "-o", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["excepted"]) == amount


def test_report_is_byte_for_byte_the_same_and_takes_a_policy_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(FULL.replace("2026-12-31", "2199-12-31"))
    plain, first, again = (tmp_path / name for name in ("plain", "first", "again"))
    for folder in (first, again):
        folder.mkdir()
    assert run([*RECORDED_FLAGS, "-o", f"json={plain}"]) == 0
    wanted = [[w for name in FORMATS for w in ("-o", f"{name}={folder / name}")] for folder in (first, again)]
    assert run([*RECORDED_FLAGS, "--policy", str(path), *wanted[0]]) == 0
    assert run(["report", str(first / "json"), *wanted[1]]) == 0
    assert [(again / name).read_bytes() == (first / name).read_bytes() for name in FORMATS] == [True] * len(FORMATS)
    assert run(["report", str(plain), "--policy", str(path), *wanted[1]]) == 0
    assert [(again / name).read_bytes() == (first / name).read_bytes() for name in FORMATS] == [True] * len(FORMATS)
    capsys.readouterr()
    assert run(["report", str(first / "json"), "--policy", str(path)]) == 2
    assert capsys.readouterr().err == (
        f"error: {first / 'json'} was made with --policy p.yaml already; leave --policy out\n"
    )
    path.write_text("thresholds: {system-loss: 15%}")
    assert run(["report", str(plain), "--policy", str(path)]) == 2
    assert capsys.readouterr().err == (
        f"error: {plain} was audited with another threshold system-loss than the policy sets; audit anew with --policy\n"
    )
    path.write_text("thresholds: {system-loss: 10%}")
    assert run(["report", str(plain), "--policy", str(path)]) == 0


def test_flags_that_share_standard_input_and_flags_of_other_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*RECORDED_FLAGS, "--policy", "-"]) == 2
    assert capsys.readouterr().err == "error: --policy - would share standard input; give the path of a file\n"
    assert run(["--fail-on", "high", "tree"]) == 2
    assert capsys.readouterr().err == "error: --fail-on is no flag of tree; leave it out\n"


def test_sarif_suppresses_what_is_excepted() -> None:
    results = json.loads(shown("sarif", under(FULL)))["runs"][0]["results"]
    assert len(results) == 22
    assert next((each["ruleId"], each["suppressions"]) for each in results if each["suppressions"]) == (
        "CGA201",
        [
            {
                "kind": "external",
                "status": "accepted",
                "justification": "agreed in CHG-123. Until 2026-12-31. p.yaml exception 1",
            }
        ],
    )
    assert sum(each["suppressions"] == [] for each in results) == 19
    assert not any("baselineState" in each for each in results)

    def prints(audit: Audit) -> list[Any]:
        return sorted(
            each["partialFingerprints"]["ruleAndSubject/v1"]
            for each in json.loads(shown("sarif", audit))["runs"][0]["results"]
        )

    assert prints(under(FULL)) == prints(AUDIT)


def test_junit_passes_what_is_excepted_and_says_so() -> None:
    text = shown("junit", under(FULL))
    case = text[text.index('<testcase classname="CGA201.shop" name="Deployment checkout"') :].split("</testcase>")[0]
    assert "<failure" not in case
    assert (
        "<system-out>excepted (p.yaml exception 1: agreed in CHG-123, until 2026-12-31): high CGA201 (stated): " in case
    )
    assert '<testcase classname="CGA002.audit" name="exceptions" time="0"/>' in text
    assert "CGA002" not in shown("junit", AUDIT)


def test_hostile_reasons_are_escaped_everywhere() -> None:
    found = under('exceptions: [{rule: CGA101, reason: "<script>x</script> \\e[31m [a](http://b)"}]')
    assert found.excepted[0].reason == "<script>x</script> \x1b[31m [a](http://b)"
    page, ticket, screen = (shown(name, found) for name in ("html", "markdown", "wide"))
    results = json.loads(shown("sarif", found))["runs"][0]["results"]
    (said,) = [each["justification"] for result in results for each in result["suppressions"]]
    assert "<script>x" not in page
    assert "&lt;script&gt;x" in page
    assert "<script>x" not in ticket
    assert "](http://b)" not in ticket
    assert "\x1b" not in page + ticket + screen + said + shown("junit", found)
    assert said.startswith("<script>x</script> ")


def test_an_audit_without_a_policy_has_none_of_it() -> None:
    found = json.loads(shown("json", AUDIT))
    assert [found[key] for key in ("policy", "excepted", "baseline", "known", "fixed")] == [None, [], None, [], []]
    assert load_audit(shown("json", under(FULL)).encode(), "a.json").excepted == under(FULL).excepted


def test_a_policy_comes_before_a_baseline_and_not_after(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, compared_, policy = (str(tmp_path / name) for name in ("first.json", "compared.json", "p.yaml"))
    Path(policy).write_text("thresholds: {system-loss: 10%}")
    assert run([*RECORDED_FLAGS, "-o", f"json={first}"]) == 0
    assert run([*RECORDED_FLAGS, "--baseline", first, "-o", f"json={compared_}"]) == 0
    capsys.readouterr()
    assert run(["report", compared_, "--policy", policy]) == 2
    assert capsys.readouterr().err == (
        f"error: {compared_} was compared with a baseline, and a policy comes before that; audit anew with both\n"
    )


def test_an_exception_that_is_over_and_matches_nothing_says_both() -> None:
    over = "exceptions: [{rule: CGA101, match: {node: other*}, reason: gone, expires: 2026-05-31}]"
    (detail,) = about_exceptions(under(over))
    assert (detail["state"], detail["expires"], detail["speaksOf"], detail["countsAgain"]) == (
        "expired",
        "2026-05-31",
        0,
        0,
    )
    one = "exceptions: [{rule: CGA202, reason: x, expires: 2026-05-31}]"
    (detail,) = about_exceptions(under(one))
    assert (detail["state"], detail["speaksOf"], detail["countsAgain"]) == ("expired", 1, 1)


def test_what_is_excepted_is_counted_and_changes_nothing_else_that_is_said() -> None:
    assert under("severities: {CGA302: medium}").verdict.sentence == AUDIT.verdict.sentence
    one = under("exceptions: [{rule: CGA202, reason: x}]")
    assert one.verdict.sentence == AUDIT.verdict.sentence
    for name in ("table", "markdown", "html"):
        assert re.search(
            "1 finding(</b>)? excepted by the policy|excepts 1 finding|1 excepted by p.yaml", shown(name, one)
        )


def test_without_a_day_an_exception_that_expires_still_holds() -> None:
    found = under("exceptions: [{rule: CGA202, reason: x, expires: 2020-01-01}]", today=None)
    assert subjects(found.findings, "CGA202") == []


def test_severities_are_recorded_in_the_order_of_the_rules() -> None:
    found = under("severities: {CGA302: medium, CGA203: off}").policy
    assert found is not None
    assert list(found.severities.items()) == [("CGA203", "off"), ("CGA302", "medium")]


@pytest.mark.parametrize(
    "text",
    [
        "exceptions: [{rule: [], reason: x}]",
        "exceptions: [{rule: CGA101, reason: x, expires: '20261231'}]",
    ],
)
def test_more_that_a_policy_refuses(text: str) -> None:
    with pytest.raises(UsageError):
        parse(text, "p.yaml")


def test_of_an_exception_that_is_over_only_what_nothing_else_excepts_counts_again() -> None:
    over = "{rule: CGA201, reason: old, expires: 2026-05-31}"

    def said(policy: str) -> tuple[int, int]:
        (detail,) = about_exceptions(under(policy))
        return detail["speaksOf"], detail["countsAgain"]

    assert said(f"exceptions: [{over}]") == (5, 5)
    assert said(f"exceptions: [{over}, {{rule: CGA201, match: {{namespace: shop}}, reason: new}}]") == (5, 3)
    assert said(f"exceptions: [{over}, {{rule: CGA201, reason: new, expires: 2199-12-31}}]") == (5, 0)
    assert said(f"exceptions: [{over}]\nseverities: {{CGA201: off}}") == (5, 0)
