"""`--what-if`: a change made after the move, in the audit, in `tree` and in `explain`."""

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_cgaudit.cli.main import run
from tests.support import RECORDED_FLAGS

WEIGHT = "system-weight:worker-c"
REQUEST = "request:shop/Deployment/payments"
FILE = """\
- {match: {name: worker-c}, system_slice: 39}
- workload: shop/Deployment/payments
  requests: {payments: 349m}
"""


def audit(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    assert run([*RECORDED_FLAGS, "-o", "json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    assert run([words[0], *words[1:], *RECORDED_FLAGS, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_weight_prevents_all_losses_and_what_it_costs_others(capsys: pytest.CaptureFixture[str]) -> None:
    without, with_it = audit(capsys), audit(capsys, "--what-if", WEIGHT)
    assert without["verdict"]["findings"] == {"critical": 0, "high": 5, "medium": 2, "low": 15}
    assert with_it["verdict"]["findings"] == {"critical": 0, "high": 0, "medium": 2, "low": 15}
    assert with_it["target"]["whatIf"] == [WEIGHT]
    assert with_it["verdict"]["sentence"].startswith(f"With --what-if {WEIGHT}: In 5 workloads ")
    # What the move gives to those who ask for little, it still does: log-shipper and cart get less of that gain.
    of_node = {
        what: {each["name"]: each["share"]["after"] for each in found["workloads"] if each["share"]}
        for what, found in (("without", without), ("with", with_it))
    }
    assert {name: (of_node["without"][name], of_node["with"][name]) for name in ("log-shipper", "cart")} == {
        "log-shipper": (0.002367347, 0.003152174),
        "cart": (0.002367347, 0.003152174),
    }
    assert WEIGHT not in [each["id"] for each in with_it["actions"]]
    # What is now is untouched.
    moments = [[case["before"] for node in found["nodes"] for case in node["cases"]] for found in (without, with_it)]
    assert moments[0] == moments[1]


def test_a_number_an_id_and_a_file_say_the_same(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "changes.yaml").write_text(FILE)
    by_number = audit(capsys, "--what-if", "1", "--what-if", "2")
    by_id = audit(capsys, "--what-if", WEIGHT, "--what-if", REQUEST)
    by_file = audit(capsys, "--what-if", str(tmp_path / "changes.yaml"))
    assert by_number == by_id
    assert by_file["target"].pop("whatIf") == ["changes.yaml"]
    assert by_id["target"].pop("whatIf") == [WEIGHT, REQUEST]
    assert [by_file[part] for part in ("nodes", "workloads", "containers")] == [
        by_id[part] for part in ("nodes", "workloads", "containers")
    ]
    assert (
        by_file["verdict"]["findings"]
        == by_id["verdict"]["findings"]
        == {
            "critical": 0,
            "high": 0,
            "medium": 1,
            "low": 15,
        }
    )


def test_the_tree_shows_the_changed_node(capsys: pytest.CaptureFixture[str]) -> None:
    trees = [shown(capsys, "tree", "worker-c", *more)["cgroups"] for more in ((), ("--what-if", "1"))]
    without, with_it = ({row["cgroup"]: row for row in rows} for rows in trees)
    system = [row["/system.slice"] for row in (without, with_it)]
    assert [(each["now"]["shares"], each["after"]["weight"]) for each in system] == [(1024, 100), (1024, 39)]
    pods = [row["/kubepods.slice"]["after"]["share"] for row in (without, with_it)]
    assert pods == [0.591836735, 0.788043478]


def test_the_explanation_has_the_changed_request(capsys: pytest.CaptureFixture[str]) -> None:
    pod = "shop/payments-40c477020-f77be"
    assert run(["explain", pod, *RECORDED_FLAGS, "--what-if", REQUEST]) == 0
    said = capsys.readouterr().out
    assert "now: request 200m -> 204 shares" in said
    assert "after: request 349m -> 357 shares -> " in said


@pytest.mark.parametrize(
    ("said", "file", "error"),
    [
        (
            "9",
            "",
            "--what-if 9 is no action and no file; there are system-weight:worker-c, request:shop/Deployment/payments, "
            "limit:edge/Deployment/legacy-gateway",
        ),
        ("0", "", "--what-if 0 is no action and no file; there are system-weight:worker-c, "),
        ("FILE", "{}", "--what-if FILE is no list of rules; write: - {match: {name: worker-*}, system_slice: 39}"),
        ("FILE", "- {match: {name: gone}, cgroup: v2}", "FILE rule 1 matches no node; there are worker-a, worker-b, worker-c"),
        ("FILE", "- {workload: payments, requests: {a: 1}}", "FILE rule 1: there is no workload payments; did you mean shop/De"),
        ("FILE", "- {workload: shop/Deployment/payments}", "FILE rule 1 changes nothing; add requests or limits: {CONTAINER: "),
        (
            "FILE",
            "- {workload: shop/Deployment/payments, requests: {app: 1}}",
            "FILE rule 1: shop/Deployment/payments has no container app; it has metrics, migrate, payments, vault-agent",
        ),
        (
            "FILE",
            "- {workload: shop/Deployment/payments, requests: {payments: many}}",
            "FILE rule 1: requests: payments: ",
        ),
        ("FILE", "- {workload: shop/Deployment/payments, request: {payments: 1}}", "FILE rule 1: there is no key 'request'; did"),
    ],
)  # fmt: skip
def test_what_is_neither_is_an_error_in_words(
    said: str, file: str, error: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "FILE").write_text(file)
    assert run([*RECORDED_FLAGS, "--what-if", str(tmp_path / said) if file else said]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.startswith(f"error: {error}")
    assert found.err.count("\n") == 1


def test_an_inspection_changes_nothing_that_is_predicted(capsys: pytest.CaptureFixture[str]) -> None:
    flags = RECORDED_FLAGS[: RECORDED_FLAGS.index("--states")]
    assert run([*flags, "--what-if", "1"]) == 2
    assert capsys.readouterr().err == (
        "error: --what-if 1: what inspect:cgroup:worker-b finds or does is not predicted; name another action\n"
    )


def test_it_is_no_baseline_of_an_audit_without(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    saved = str(tmp_path / "changed.json")
    assert run([*RECORDED_FLAGS, "--what-if", "1", "-o", f"json={saved}"]) == 0
    assert run([*RECORDED_FLAGS, "--baseline", saved]) == 2
    assert "was audited with another --what-if than this" in capsys.readouterr().err


def test_no_report_takes_the_place_of_its_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "changes.yaml"
    path.write_text(FILE)
    assert run([*RECORDED_FLAGS, "--what-if", str(path), "-o", f"json={path}"]) == 2
    assert path.read_text() == FILE
