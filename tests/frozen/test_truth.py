"""The columnar core against what the object model before it answered: every number, effect, finding and exit code.

Three things are told otherwise than then, and are brought to one form here. A node of which several things are open could have
several findings CGA102, and has one. What a workload may also have was listed by conditions that were put together, and is
listed by case. Where nothing changes for any pod of a workload, another of them is shown.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_cgaudit.cli.main import run
from tests.frozen.inputs import HERE, names, words

TRUTH: dict[str, Any] = json.loads(gzip.decompress((HERE / "truth.json.gz").read_bytes()))
_MOMENT = ("version", "value", "share", "against_system", "in_pod", "quota_us")
_POD = ("version", "pod_value", "pod_share", "pod_against_system", None, "pod_quota_us")
_CHANGE = ("before", "after", "change")
_WEIGHT = ("requestMilli", "beforeVersion", "before", "afterVersion", "after", "containers")


def _moment(of: dict[str, Any], when: str, fields: tuple[str | None, ...]) -> list[Any] | None:
    return None if of[f"{when}_version"] is None else [field and of[f"{when}_{field}"] for field in fields]


def _cases(of: dict[str, Any], fields: tuple[str | None, ...]) -> list[Any]:
    return [
        [case["when"], _moment(case, "before", fields), _moment(case, "after", fields)] for case in (of, *of["cases"])
    ]


def _node_moment(of: dict[str, Any] | None) -> list[Any] | None:
    if of is None:
        return None
    fields = ("cgroup", "kubepods", "systemSlice", "podsPerSystem", "podsShare", "systemShare", "root")
    qos = {name: [each["pods"], each["value"], each["share"]] for name, each in of["qos"].items()}
    return [*(of[field] for field in fields), qos, of["runtimes"]]


def _change(of: dict[str, Any] | None) -> list[float] | None:
    return of and [of[field] for field in _CHANGE]


def _finding(of: dict[str, Any]) -> list[Any]:
    subject = [of["subject"][field] for field in ("kind", "namespace", "workloadKind", "name")]
    cases = [[case["when"], case["rank"], case["severity"]] for case in of["cases"]]
    return [of["rule"], of["severity"], of["certainty"], subject, cases]


def _short(of: dict[str, Any]) -> list[str]:
    return [of["rule"], of["severity"], of["subject"]["name"]]


def _sorted(of: Any) -> list[Any]:
    return sorted(of, key=json.dumps)


def canonical(audit: dict[str, Any]) -> dict[str, Any]:
    """The parts of `-o json` that were frozen, in the form they were frozen in."""
    return {
        "nodes": {
            node["name"]: {
                "confidence": node["confidence"],
                "pods": node["pods"],
                "known": {about: [known["value"], known["confidence"]] for about, known in node["known"].items()},
                "cases": [
                    [case["when"], _node_moment(case["before"]), _node_moment(case["after"])] for case in node["cases"]
                ],
            }
            for node in audit["nodes"]
        },
        "containers": {
            f"{of['namespace']}/{of['workload_kind']}/{of['workload']} "
            f"{of['pod']}/{of['container']} {of['role']} on {of['node']}": [
                of["confidence"],
                of["request_milli"],
                of["limit_milli"],
                _cases(of, _POD),
                _cases(of, _MOMENT),
            ]
            for of in audit["containers"]
        },
        "workloads": {
            f"{of['namespace']}/{of['kind']}/{of['name']}": [
                of["effects"],
                [[other["effects"], other["loss"]] for other in of["otherEffects"]],
                *(of[field] for field in ("confidence", "pods", "unpredictedPods", "cases", "standing")),
                *(_change(of[field]) for field in ("share", "againstSystem", "againstSystemBest")),
                of["split"] and of["split"]["change"],
            ]
            for of in audit["workloads"]
        },
        "findings": _sorted(map(_finding, audit["findings"])),
        "excepted": _sorted(_short(of["finding"]) for of in audit["excepted"]),
        "baseline": audit["baseline"] and [_sorted(map(_short, audit[field])) for field in ("known", "fixed")],
        "verdict": [audit["verdict"]["workloads"], audit["verdict"]["findings"]],
        "weights": _sorted([of[field] for field in _WEIGHT] for of in audit["weights"]),
        "complete": audit["coverage"]["complete"],
    }


def one_form(part: str, of: Any) -> Any:
    """A part of the truth as it is told now, and of what is told now without what it does not repeat."""
    if part == "workloads":
        shown = {name: [_or_nothing(each) for each in told[2:]] for name, told in of.items()}
        return {name: [told[0], _sorted(_told(told[1])), *shown[name]] for name, told in of.items()}
    if part == "findings":
        first = {json.dumps(each[3]): each for each in reversed(_gravest_first(of)) if each[0] == "CGA102"}
        return [each for each in of if each[0] != "CGA102" or first[json.dumps(each[3])] is each]
    return of


def _or_nothing(of: Any) -> Any:
    """A change of nothing is one, whoever it is shown of."""
    return 0.0 if isinstance(of, list) and of[-1:] == [0.0] else of


def _gravest_first(findings: list[Any]) -> list[Any]:
    return sorted(findings, key=lambda each: ("critical", "high", "medium", "low").index(each[1]))


def _told(others: list[Any]) -> list[Any]:
    found = [[each["effects"], each["againstSystem"]] if isinstance(each, dict) else each for each in others]
    return [each for place, each in enumerate(found) if each not in found[:place]]


@pytest.mark.parametrize("name", list(names()))
def test_the_answer_is_the_frozen_one(name: str, tmp_path: Path) -> None:
    *first, last = words(name, tmp_path)
    for command in first:
        run([*command, "-o", f"json={tmp_path / 'first.json'}"])
    code = run([*last, "-o", f"json={tmp_path / 'last.json'}"])
    found = canonical(json.loads((tmp_path / "last.json").read_text()))
    wanted = {part: one_form(part, of) for part, of in TRUTH[name].items()}
    if wanted["baseline"]:  # So has a node that was left with one.
        wanted["baseline"] = [
            [each for each in part if each != ["CGA102", "low", "worker-b"]] for part in wanted["baseline"]
        ]
    for severity in {each[1] for each in wanted["findings"]}:
        wanted["verdict"][1][severity] = sum(each[1] == severity for each in wanted["findings"])
    assert code == wanted.pop("exit")
    assert {part for part in wanted if wanted[part] != one_form(part, found[part])} == set()
