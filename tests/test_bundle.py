"""`-o bundle=FILE.zip`: what is attached to a change ticket."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from kubectl_cgaudit.cli.main import run
from tests.support import RECORDED_FLAGS

NAMES = ["audit.html", "audit.md", "snapshot.json.gz", "SHA256SUMS"]


def test_it_holds_the_reports_the_snapshot_and_their_checksums(tmp_path: Path) -> None:
    bundle, html, markdown = (str(tmp_path / name) for name in ("audit.zip", "audit.html", "audit.md"))
    assert run([*RECORDED_FLAGS, "-o", f"bundle={bundle}", "-o", f"html={html}", "-o", f"markdown={markdown}"]) == 0
    assert Path(bundle).stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(bundle) as archive:
        assert archive.namelist() == NAMES
        parts = {name: archive.read(name) for name in NAMES}
    assert parts["audit.html"] == Path(html).read_bytes()
    assert parts["audit.md"] == Path(markdown).read_bytes()
    assert parts["SHA256SUMS"].decode() == "".join(
        f"{hashlib.sha256(parts[name]).hexdigest()}  {name}\n" for name in NAMES[:-1]
    )
    # The snapshot is the one that `snapshot` saves.
    flags = RECORDED_FLAGS[: RECORDED_FLAGS.index("--states")]
    assert run(["snapshot", *flags, "-o", str(tmp_path / "snapshot.json.gz")]) == 0
    assert parts["snapshot.json.gz"] == (tmp_path / "snapshot.json.gz").read_bytes()


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    made = []
    for name in ("one.zip", "two.zip"):
        assert run([*RECORDED_FLAGS, "--reproducible", "-o", f"bundle={tmp_path / name}"]) == 0
        made.append((tmp_path / name).read_bytes())
    assert made[0] == made[1]


def test_a_saved_audit_has_no_snapshot_to_put_into_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = str(tmp_path / "a.json")
    assert run([*RECORDED_FLAGS, "-o", f"json={saved}"]) == 0
    capsys.readouterr()
    assert run(["report", saved, "-o", f"bundle={tmp_path / 'b.zip'}"]) == 2
    assert "bundle" in capsys.readouterr().err
    assert not (tmp_path / "b.zip").exists()
