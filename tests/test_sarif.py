"""`-o sarif` against its schema, and with what code scanning needs beyond it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from kubectl_cgaudit.audit.model import Audit, BaselineRecord, ExceptedFinding, Subject
from kubectl_cgaudit.report import sarif
from tests.hostile import HOSTILE, everywhere, hand_made
from tests.pages_support import blind, recorded, small
from tests.support import container, node, pod

SCHEMA = json.loads((Path(__file__).parent / "schemas" / "sarif-2.1.0.json").read_text())
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
OURS = hand_made()
FOUND = OURS.findings[0]


def half_read() -> Audit:
    return small(node(), pod("p", container("c", "1"), on="gone"), pod("q", container("c", "1")))


def run_of(audit: Audit) -> Any:
    log = json.loads(sarif.render(audit))
    VALIDATOR.validate(log)
    (found,) = log["runs"]
    return found


def test_the_validator_refuses_what_is_wrong() -> None:
    log = json.loads(sarif.render(recorded()))
    log["runs"][0]["results"][0]["level"] = "bad"
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(log)


def test_the_recorded_cluster() -> None:
    found = run_of(recorded())
    assert Counter(each["level"] for each in found["results"]) == {"error": 5, "warning": 2, "note": 15}
    assert found["automationDetails"] == {"id": "cgaudit/v2+runtime/"}
    assert found["invocations"] == [
        {"executionSuccessful": True, "endTimeUtc": "2026-01-30T12:00:00Z", "toolExecutionNotifications": []}
    ]
    first = found["results"][0]
    assert 0 < len(first.pop("message")["text"]) < 400
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
        "properties": {
            "id": "CGA201:shop/Deployment/checkout",
            "severity": "high",
            "certainty": "stated",
            "when": "",
            "confidence": "stated",
            "actions": ["system-weight:worker-c"],
        },
    }


def test_rules_have_short_names_and_the_actions_in_their_help() -> None:
    rules = {rule["id"]: rule for rule in run_of(recorded())["tool"]["driver"]["rules"]}
    assert list(rules) == [
        "CGA001",
        "CGA002",
        *(f"CGA10{n}" for n in (1, 2, 3)),
        *(f"CGA20{n}" for n in range(1, 8)),
        "CGA301",
        "CGA302",
        "CGA401",
    ]
    assert max(len(rule["name"]) for rule in rules.values()) <= 45
    loss = rules["CGA201"]
    assert loss["name"] == "WorkloadLosesCPUToSystemServices"
    assert loss["shortDescription"] == {"text": "Workload loses CPU to system services."}
    assert "Action 1: Give system.slice weight 39 on worker-c. Run: systemctl set-property" in loss["help"]["text"]
    assert loss["helpUri"].endswith("/docs/findings/CGA201.md")
    assert "Action 2: Raise the CPU request of payments" in rules["CGA204"]["help"]["text"]
    assert "Action" not in rules["CGA103"]["help"]["text"]


@pytest.mark.parametrize("audit", [recorded(), blind(), half_read()], ids=["known", "open", "incomplete"])
def test_no_result_is_worse_than_its_rule_says(audit: Audit) -> None:
    found, order = run_of(audit), ["note", "warning", "error"]
    assert len(found["results"]) == len(audit.findings) > 0
    for result in found["results"]:
        rule = found["tool"]["driver"]["rules"][result["ruleIndex"]]
        assert rule["id"] == result["ruleId"]
        assert order.index(result["level"]) <= order.index(rule["defaultConfiguration"]["level"]), result["ruleId"]


def test_fingerprints_are_of_rule_and_subject_and_not_of_words() -> None:
    def prints(audit: Audit) -> list[str]:
        return [each["partialFingerprints"]["primaryLocationLineHash"] for each in run_of(audit)["results"]]

    audit = recorded()
    other = tuple(replace(each, message="else", title="else", severity="low") for each in audit.findings)
    assert prints(replace(audit, findings=other)) == prints(audit)
    assert len(set(prints(audit))) == len(audit.findings) == 22
    twice = prints(replace(audit, findings=audit.findings[:1] * 2))
    assert [each.rpartition(":")[2] for each in twice] == ["1", "2"]


def test_the_fingerprint_of_a_gap_has_what_its_name_leaves_out() -> None:
    def print_(*names: str) -> str:
        pods = [pod(f"p{place}", container("c", "1"), on=name) for place, name in enumerate(names)]
        results = run_of(small(node(), *pods))["results"]
        (found,) = [each for each in results if each["ruleId"] == "CGA001"]
        return str(found["partialFingerprints"]["ruleAndSubject/v1"])

    first = ("a0", "a1", "a2", "a3", "a4")
    assert len({print_(*first), print_(*first, "a5"), print_(*first, "b9"), print_(*first, "a5", "b9")}) == 4
    assert print_("gone") == "810df434cc5d222d:1"


def test_an_incomplete_audit_is_no_successful_run() -> None:
    found = run_of(half_read())
    (invocation,) = found["invocations"]
    assert invocation["executionSuccessful"] is False
    (told,) = invocation["toolExecutionNotifications"]
    assert (told["level"], told["associatedRule"]) == ("error", {"id": "CGA001", "index": 0})
    assert told["message"]["text"].startswith("node gone: 1 pod runs there")
    assert [each["level"] for each in found["results"] if each["ruleId"] == "CGA001"] == ["error"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names(name: str) -> None:
    found = run_of(hand_made(name, complete=False))
    for result in found["results"]:
        (location,) = result["locations"]
        uri = location["physicalLocation"]["artifactLocation"]["uri"]
        assert uri.count("/") == 4
        assert uri.isascii()
        assert uri.isprintable()
        assert location["logicalLocations"][0]["properties"] == {"kind": name, "namespace": name, "name": name}
    rules = found["tool"]["driver"]["rules"]
    texts = [result["message"]["text"] for result in found["results"]]
    texts += [each["message"]["text"] for each in found["invocations"][0]["toolExecutionNotifications"]]
    texts += [rule["help"]["text"] for rule in rules]
    assert all(text.isprintable() and "](" not in text for text in texts)
    help_ = next(rule["help"]["markdown"] for rule in rules if rule["id"] == "CGA201")
    assert "<" not in help_.replace("<details>", "")
    assert help_.count("](") == 1
    run_of(everywhere(hand_made(complete=False), name))


@pytest.mark.parametrize(
    ("subject", "path", "title"),
    [
        (Subject("audit", "node gone"), "cluster/audit", "audit/node gone"),
        (Subject("node", "a/b"), "cluster/nodes/a%2Fb", "node/a/b"),
        (Subject("node", ".."), "cluster/nodes/_..", "node/.."),
        (Subject("node", ""), "cluster/nodes/_", "node"),
        (Subject("workload", "w", "n", "Deployment"), "cluster/namespaces/n/Deployment/w", "n/Deployment/w"),
        (Subject("workload", "w"), "cluster/namespaces/_/_/w", "workload/w"),
    ],
)
def test_where_a_result_is(subject: Subject, path: str, title: str) -> None:
    (result,) = run_of(replace(OURS, findings=(replace(FOUND, subject=subject),), excepted=()))["results"]
    (location,) = result["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == path
    assert location["logicalLocations"][0]["fullyQualifiedName"] == title


def test_rules_that_are_none_of_ours_have_their_own_words_and_no_page() -> None:
    strange = (replace(FOUND, rule="X1", title="odd thing"), replace(FOUND, rule="A1", title="???"))
    run = run_of(replace(OURS, findings=strange))
    rules = run["tool"]["driver"]["rules"]
    assert [rules[0]["id"], rules[1]["id"], rules[-1]["id"]] == ["A1", "CGA001", "X1"]
    assert (rules[-1]["name"], rules[-1]["shortDescription"]["text"]) == ("OddThing", "odd thing.")
    assert rules[0]["name"] == "Unnamed"
    assert "helpUri" not in rules[-1]
    assert "markdown" not in rules[-1]["help"]


@pytest.mark.parametrize(
    ("reason", "expires", "said"),
    [
        ("agreed", None, "agreed. p.yaml 1"),
        ("agreed.", None, "agreed. p.yaml 1"),
        ("agreed", "2026-12-31", "agreed. Until 2026-12-31. p.yaml 1"),
    ],
)
def test_why_a_result_is_suppressed(reason: str, expires: str | None, said: str) -> None:
    excepted = (ExceptedFinding(FOUND, reason, expires, "p.yaml 1"),)
    (result,) = run_of(replace(OURS, findings=(), excepted=excepted))["results"]
    assert [each["justification"] for each in result["suppressions"]] == [said]


def test_baseline_states() -> None:
    audit = replace(
        OURS, excepted=(), known=(replace(FOUND, rule="CGA204"),), baseline=BaselineRecord("b.json", "0.1.0", None, ())
    )
    found = run_of(replace(audit, findings=OURS.findings[:1]))
    assert [(each["ruleId"], each["baselineState"]) for each in found["results"]] == [
        ("CGA201", "new"),
        ("CGA204", "unchanged"),
    ]


def test_a_target_that_is_no_url_is_quoted_in_the_runs_name() -> None:
    to = "v2+runtime,kubelet=1.35 /?#"
    found = run_of(replace(OURS, target=replace(OURS.target, to=to)))
    assert found["automationDetails"]["id"] == "cgaudit/v2+runtime,kubelet=1.35%20%2F%3F%23/"
