"""`-o sarif` against its schema, and with what code scanning needs beyond it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.judge.audit import Audit, Finding, Subject
from kubectl_cgaudit.report import sarif
from tests.hostile import HOSTILE, hand_made
from tests.support import RECORDED_FLAGS, audited, cluster, container, node, pod
from tests.test_table import BLIND, RECORDED

SCHEMA = json.loads((Path(__file__).parent / "schemas" / "sarif-2.1.0.json").read_text())
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
HALF_READ = audited(cluster(node(), pod("p", container("c", "1"), on="gone"), pod("q", container("c", "1"))))


def one_run(audit: Audit) -> dict[str, Any]:
    log = json.loads(sarif.render(audit))
    VALIDATOR.validate(log)
    (found,) = log["runs"]
    return dict(found)


def test_the_validator_refuses_what_is_wrong() -> None:
    log = json.loads(sarif.render(RECORDED))
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
        "system.slice CPUWeight=39`, which lasts and `systemctl revert system.slice` undoes; or enforce "
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
        "properties": {"severity": "high", "when": "", "confidence": "assumed"},
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
    assert rules[3]["shortDescription"] == {"text": "Node state not known; evidence contradicts itself."}
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
    assert results[0]["properties"] == {"severity": "high", "when": "if cgroup v1", "confidence": "unknown"}


def test_fingerprints_are_of_rule_and_subject_and_not_of_words() -> None:
    def prints(audit: Audit) -> list[str]:
        return [each["partialFingerprints"]["primaryLocationLineHash"] for each in one_run(audit)["results"]]

    other = tuple(replace(each, seen="else", remedy="else", severity="low") for each in RECORDED.findings)
    assert prints(replace(RECORDED, findings=other)) == prints(RECORDED)
    assert len(set(prints(RECORDED))) == len(RECORDED.findings) == 22
    twice = prints(replace(RECORDED, findings=RECORDED.findings[:1] * 2))
    assert [each.rpartition(":")[2] for each in twice] == ["1", "2"]
    assert len({each.rpartition(":")[0] for each in twice}) == 1


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
    assert text == sarif.render(replace(RECORDED, generated_at="2023-11-14T22:13:20Z"))
    assert json.loads(text)["runs"][0]["invocations"][0]["endTimeUtc"] == "2023-11-14T22:13:20Z"
