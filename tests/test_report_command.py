"""`report` writes what the first run would have written, and says what is no audit."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_cgaudit.audit.saved import load
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.collect.snapshot import encode, pack
from kubectl_cgaudit.errors import InputError
from kubectl_cgaudit.report.formats import FORMATS
from tests.hostile import HOSTILE, hand_made
from tests.pages_support import saved_audit
from tests.support import RECORDED_FLAGS, STATES, recorded, recorded_blind, rendered, saved


def _outputs(folder: Path) -> list[str]:
    folder.mkdir()
    return [word for name in FORMATS for word in ("-o", f"{name}={folder / name}")]


def test_every_format_is_the_same_byte_for_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert run([*RECORDED_FLAGS, *_outputs(tmp_path / "first")]) == 0
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert run(["report", str(tmp_path / "first" / "json"), *_outputs(tmp_path / "again")]) == 0
    for name in FORMATS:
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_strings_survive_the_json(name: str) -> None:
    audit = hand_made(name)
    assert load(rendered("json", saved_audit(audit)).encode(), "x").audit == audit


@pytest.mark.parametrize("known", [True, False], ids=["known", "blind"])
def test_a_real_audit_is_the_same_json_again(known: bool) -> None:
    text = rendered("json", saved(recorded(), STATES.read_text()) if known else saved(recorded_blind()))
    assert rendered("json", load(text.encode(), "x")) == text


def test_gzip_and_an_incomplete_audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(rendered("json", saved_audit(hand_made(complete=False))).encode()))
    assert run(["report", str(path)]) == 3
    assert "NOT ALL READ" in capsys.readouterr().out


def test_what_a_later_release_adds_is_left_out() -> None:
    text = rendered("json", saved(recorded(), STATES.read_text()))
    assert rendered("json", load(json.dumps(json.loads(text) | {"added": [1]}).encode(), "x")) == text


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", "x.json is empty; save an audit with: kubectl cgaudit -o audit=FILE.cgaudit"),
        (
            "{",
            "x.json is not valid JSON: Input data was truncated; save an audit with: kubectl cgaudit -o audit=FILE.cgaudit",
        ),
        (
            '{"kind": "List", "items": []}',
            "x.json holds no audit (it has no schema); save an audit with: kubectl cgaudit -o audit=FILE.cgaudit",
        ),
        ("[]", "x.json holds no audit (it has no schema); save an audit with: kubectl cgaudit -o audit=FILE.cgaudit"),
        (
            '{"schema": "cgaudit.audit/2"}',
            "x.json has schema cgaudit.audit/2, and this cgaudit reads cgaudit.audit/1; use the release that wrote it",
        ),
        (
            '{"schemaVersion": "2.0"}',
            "x.json was written by a development version before 0.1.0; audit again and save that",
        ),
        (
            '{"schema": "cgaudit.audit/1"}',
            "x.json is a damaged audit: Object missing required field `toolVersion`; save an audit with: "
            "kubectl cgaudit -o audit=FILE.cgaudit",
        ),
    ],
)
def test_what_is_no_audit(
    content: str, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.json").write_text(content)
    assert run(["report", "x.json"]) == 1
    assert capsys.readouterr().err == f"error: {error}\n"


@pytest.mark.parametrize("words", [["report", "s.json.gz"], [*RECORDED_FLAGS, "--baseline", "s.json.gz"]])
def test_a_snapshot_is_no_audit(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.json.gz").write_bytes(pack(encode(recorded())))
    assert run(words) == 1
    assert capsys.readouterr().err == (
        "error: s.json.gz is a snapshot of a cluster, not an audit; "
        "audit it with: kubectl cgaudit -f SNAPSHOT -o json=FILE\n"
    )


def test_no_such_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "none.json"]) == 1
    assert capsys.readouterr().err == "error: none.json cannot be read: No such file or directory; check the path\n"


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("known", {}, "of node worker-a it does not say cgroup"),
        ("cases", [], "node worker-a has no case"),
    ],
)
def test_a_node_of_which_nothing_is_said_is_an_error_and_no_traceback(field: str, value: Any, problem: str) -> None:
    written = json.loads(rendered("json", saved(recorded(), STATES.read_text())))
    written["nodes"][0][field] = value
    with pytest.raises(InputError, match=rf"^x is a damaged audit: {problem}; save an audit"):
        load(json.dumps(written).encode(), "x")


def test_numbers_that_no_cgroup_has_are_an_error_and_no_traceback() -> None:
    written = json.loads(rendered("json", saved(recorded(), STATES.read_text())))
    written["containers"][0]["before_value"] = 10**30
    with pytest.raises(InputError, match=r"^x is a damaged audit: "):
        load(json.dumps(written).encode(), "x")
