"""--fail-on: what counts, and which exit code wins."""

from pathlib import Path

import pytest

from kubectl_cgaudit.audit.standing import at_or_above
from kubectl_cgaudit.cli.main import run
from tests.support import (
    RECORDED_FLAGS,
    audited,
    cluster,
    container,
    node,
    pod,
    recorded_blind,
)

HALF = ["-f", "docs/examples/half-read.yaml", "--states", "docs/examples/half-read-states.yaml"]


@pytest.mark.parametrize(("level", "amount"), [("low", 22), ("medium", 7), ("high", 5), ("critical", 0)])
def test_fail_on(level: str, amount: int, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    saved = tmp_path / "a.json"
    assert run([*RECORDED_FLAGS, "--fail-on", level, "-o", f"json={saved}"]) == (4 if amount else 0)
    said = f"--fail-on: {amount} findings of severity {level} or worse\n" if amount else ""
    assert capsys.readouterr().err == f"wrote json to {saved}\n{said}"
    assert run(["report", str(saved), "--fail-on", level]) == (4 if amount else 0)
    assert run(["report", str(saved), "--fail-on", "none"]) == 0
    assert run(["report", str(saved)]) == 0


@pytest.mark.parametrize(("level", "code"), [("none", 3), ("low", 4), ("high", 4), ("critical", 3)])
def test_fail_on_wins_over_incomplete(level: str, code: int) -> None:
    assert run([*HALF, "--fail-on", level]) == code


def test_a_critical_finding_fails_critical() -> None:
    objects = cluster(node(kubelet="v1.34.0"), pod("p", container("c", "1")))
    found = audited(objects, "- {cgroup: v1, runtimes: {default: runc 1.1.5}}", "kubelet=1.35")
    assert [(each.rule, each.severity) for each in found.findings][:1] == [("CGA101", "critical")]
    assert at_or_above(found.findings, "critical") == (1, [])


def test_what_only_may_hold_is_undecided_unless_it_is_asked_for() -> None:
    blind = audited(recorded_blind())
    maybe = [each for each in blind.findings if 0 < len(each.cases) < len(each.detail["conditions"])]
    high = [each for each in maybe if each.severity == "high"]
    assert {each.rule for each in high} == {"CGA201", "CGA204"}
    assert {each.certainty for each in high} == {"possible"}
    assert at_or_above(maybe, "high") == (0, high)
    assert at_or_above(maybe, "high", "possible") == (12, [])


def test_fail_on_does_not_count_what_is_excepted(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("exceptions: [{rule: CGA201, reason: x}]")
    assert run([*RECORDED_FLAGS, "--policy", str(path), "--fail-on", "high"]) == 0
    assert run([*RECORDED_FLAGS, "--policy", str(path), "--fail-on", "medium"]) == 4
