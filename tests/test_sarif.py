"""`-o sarif` against its schema, and with what code scanning needs beyond it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.judge.audit import Audit, ExceptedFinding, Finding, Subject
from kubectl_cgaudit.report import sarif
from tests.hostile import HOSTILE, hand_made
from tests.support import RECORDED_FLAGS, V2_LINEAR, audited, cluster, container, node, pod, rendered
from tests.test_table import BLIND, RECORDED

SCHEMA = json.loads((Path(__file__).parent / "schemas" / "sarif-2.1.0.json").read_text())
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
HALF_READ = audited(cluster(node(), pod("p", container("c", "1"), on="gone"), pod("q", container("c", "1"))))


def one_run(audit: Audit) -> dict[str, Any]:
    log = json.loads(rendered("sarif", audit))
    VALIDATOR.validate(log)
    (found,) = log["runs"]
    return dict(found)


def test_the_validator_refuses_what_is_wrong() -> None:
    log = json.loads(rendered("sarif", RECORDED))
    log["runs"][0]["results"][0]["level"] = "bad"
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(log)


def test_the_recorded_cluster() -> None:
    found = one_run(RECORDED)
    assert Counter(each["level"] for each in found["results"]) == {"error": 5, "warning": 2, "note": 15}
    assert found["automationDetails"] == {"id": "cgaudit/v2+runtime/"}
    assert found["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]
    first = found["results"][0]
    assert first.pop("message")["text"].startswith(
        "Pod shop/checkout-d5491e7e7-22276 on worker-c: 1.29 times the CPU of system.slice now, 0.492 times after (-62%); "
        "27% of the node's CPU now, 20% after, when everything wants CPU. Once worker-c is on cgroup v2, not "
        "before, keep the ratio of now: give system.slice weight 39 (pods : system 3.72 : 1) with `systemctl set-property "
        "system.slice CPUWeight=39`, which lasts as long as the node's /etc (a new node needs it again) and `systemctl revert "
        "system.slice` undoes; or enforce "
    )
    assert first == {
        "ruleId": "CGA201",
        "ruleIndex": 5,
        "level": "error",
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "cluster/namespaces/shop/Deployment/checkout"},
                    "region": {"startLine": 1},
                },
                "logicalLocations": [
                    {
                        "name": "checkout",
                        "fullyQualifiedName": "shop/Deployment/checkout",
                        "kind": "resource",
                        "properties": {"kind": "Deployment", "namespace": "shop", "name": "checkout"},
                    }
                ],
            }
        ],
        "partialFingerprints": {
            "primaryLocationLineHash": "2890d1f3d52373f5:1",
            "ruleAndSubject/v1": "2890d1f3d52373f5:1",
        },
        "properties": {"severity": "high", "when": "", "confidence": "stated", "certainty": "stated"},
    }


def test_every_rule_is_there_once_and_results_point_to_it() -> None:
    found = one_run(RECORDED)
    rules = found["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [
        "CGA001",
        "CGA002",
        *(f"CGA10{n}" for n in (1, 2, 3)),
        *(f"CGA20{n}" for n in range(1, 8)),
        "CGA301",
        "CGA302",
        "CGA401",
    ]
    assert rules[3]["shortDescription"] == {
        "text": "Node state not known; node state probable, not checked; not known who set a value at the root; evidence "
        "contradicts itself; a default was overridden."
    }
    assert rules[3]["helpUri"].endswith("/docs/findings/CGA102.md")
    for audit in (RECORDED, BLIND, HALF_READ):
        found = one_run(audit)
        for result in found["results"]:
            assert found["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


@pytest.mark.parametrize("audit", [RECORDED, BLIND, HALF_READ], ids=["known", "open", "incomplete"])
def test_no_result_is_worse_than_its_rule_says(audit: Audit) -> None:
    found, order = one_run(audit), ["note", "warning", "error"]
    assert len(found["results"]) == len(audit.findings) > 0
    for result in found["results"]:
        most = found["tool"]["driver"]["rules"][result["ruleIndex"]]["defaultConfiguration"]["level"]
        assert order.index(result["level"]) <= order.index(most), result["ruleId"]


def test_a_condition_comes_first() -> None:
    results = [each for each in one_run(BLIND)["results"] if each["ruleId"] == "CGA201"]
    assert results[0]["message"]["text"].startswith("If cgroup v1: Pod shop/checkout-")
    assert results[0]["properties"] == {
        "severity": "high",
        "when": "if cgroup v1",
        "confidence": "unknown",
        "certainty": "possible",
    }


def test_fingerprints_are_of_rule_and_subject_and_not_of_words() -> None:
    def prints(audit: Audit) -> list[str]:
        return [each["partialFingerprints"]["primaryLocationLineHash"] for each in one_run(audit)["results"]]

    other = tuple(replace(each, seen="else", remedy="else", severity="low") for each in RECORDED.findings)
    assert prints(replace(RECORDED, findings=other)) == prints(RECORDED)
    assert len(set(prints(RECORDED))) == len(RECORDED.findings) == 22
    twice = prints(replace(RECORDED, findings=RECORDED.findings[:1] * 2))
    assert [each.rpartition(":")[2] for each in twice] == ["1", "2"]
    assert len({each.rpartition(":")[0] for each in twice}) == 1


def test_the_fingerprint_of_a_gap_has_what_its_name_leaves_out() -> None:
    def print_(*names: str) -> str:
        pods = [pod(f"p{place}", container("c", "1"), on=name) for place, name in enumerate(names)]
        results = one_run(audited(cluster(node(), *pods), V2_LINEAR))["results"]
        (found,) = [each for each in results if each["ruleId"] == "CGA001"]
        return str(found["partialFingerprints"]["ruleAndSubject/v1"])

    first = ("a0", "a1", "a2", "a3", "a4")
    assert print_(*first, "a5") == print_("a5", "a5", *first)
    assert len({print_(*first), print_(*first, "a5"), print_(*first, "b9"), print_(*first, "a5", "b9")}) == 4
    assert print_("gone") == "810df434cc5d222d:1"


def test_an_incomplete_audit_is_no_successful_run() -> None:
    found = one_run(HALF_READ)
    assert found["invocations"] == [
        {
            "executionSuccessful": False,
            "toolExecutionNotifications": [
                {
                    "level": "error",
                    "message": {
                        "text": "node gone: 1 pod runs there, but the Node is not among what was read. "
                        "Read all nodes together with the pods."
                    },
                    "associatedRule": {"id": "CGA001", "index": 0},
                }
            ],
        }
    ]
    assert [each["level"] for each in found["results"] if each["ruleId"] == "CGA001"] == ["error"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names(name: str) -> None:
    found = one_run(hand_made(name, complete=False))
    (result,) = found["results"]
    (location,) = result["locations"]
    uri = location["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.count("/") == 4
    assert uri.isascii()
    assert uri.isprintable()
    assert location["logicalLocations"][0]["properties"] == {"kind": name, "namespace": name, "name": name}
    for text in (
        result["message"]["text"],
        found["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"],
    ):
        assert text.isprintable()
        assert "](" not in text


@pytest.mark.parametrize(("name", "path"), [("..", "_.."), (".", "_."), ("a/../b", "a%2F..%2Fb"), ("", "_")])
def test_a_name_is_one_part_of_the_path(name: str, path: str) -> None:
    finding = Finding("X", "low", "", Subject("node", name), "", "", "", "")
    found = one_run(replace(hand_made(), findings=(finding,)))
    location = found["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"] == {"uri": f"cluster/nodes/{path}"}
    rule = found["tool"]["driver"]["rules"][found["results"][0]["ruleIndex"]]
    assert rule["id"] == "X"
    assert "helpUri" not in rule


def test_on_the_command_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert run([*RECORDED_FLAGS, "-o", "sarif"]) == 0
    text = capsys.readouterr().out
    assert text == rendered("sarif", replace(RECORDED, generated_at="2023-11-14T22:13:20Z"))
    assert json.loads(text)["runs"][0]["invocations"][0]["endTimeUtc"] == "2023-11-14T22:13:20Z"


OURS = hand_made("web")


(FOUND,) = OURS.findings


def other(**fields: Any) -> Finding:
    return replace(FOUND, **fields)


def run_of(audit: Any) -> Any:
    return json.loads(rendered("sarif", audit))["runs"][0]


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
    sure, maybe = other(seen="Sure."), other(seen="Maybe.", when="if cgroup v1", certainty="possible")
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


def test_rules_are_in_the_order_of_their_names() -> None:
    rules = run_of(replace(OURS, findings=(other(rule="X1"), other(rule="A1"))))["tool"]["driver"]["rules"]
    assert [rules[0]["id"], rules[1]["id"], rules[-1]["id"]] == ["A1", "CGA001", "X1"]


def test_our_rules_have_our_words_whatever_a_finding_says() -> None:
    usual = run_of(OURS)["tool"]["driver"]["rules"]
    odd = run_of(replace(OURS, findings=(other(title="odd", why="Odd."),)))["tool"]["driver"]["rules"]
    assert odd == usual


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


@pytest.mark.parametrize(
    ("subject", "title", "kind"),
    [
        (Subject("audit", "node gone"), "audit/node gone", "audit"),
        (Subject("node", "n1"), "node/n1", "node"),
        (Subject("workload", "w", "n", "Deployment"), "n/Deployment/w", "Deployment"),
    ],
)
def test_what_a_result_is_about(subject: Subject, title: str, kind: str) -> None:
    (result,) = run_of(replace(OURS, findings=(other(subject=subject),)))["results"]
    (about,) = result["locations"][0]["logicalLocations"]
    properties = {"kind": kind, "name": subject.name} | ({"namespace": "n"} if subject.namespace else {})
    assert about == {"name": subject.name, "fullyQualifiedName": title, "kind": "resource", "properties": properties}


def test_a_target_that_is_no_url_is_quoted_in_the_runs_name() -> None:
    to = "v2+runtime,kubelet=1.35 /?#\ud800"
    audit = replace(OURS, scenario=replace(OURS.scenario, to=to))
    name = next(iter(sarif._text(replace(audit, scenario=replace(audit.scenario, to=to[:-1])))))
    assert '"id": "cgaudit/v2+runtime,kubelet=1.35%20%2F%3F%23/"' in name
