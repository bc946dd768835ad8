"""Files that are written whole or not at all, by their owner alone."""

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_cgaudit.cli import files
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.errors import CgauditError
from tests.support import RECORDED_FLAGS, command


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("name", ["n" * 255, "優" * 85], ids=["letters", "of three bytes each"])
def test_a_file_is_its_owners_alone_whatever_was_there(name: str, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = tmp_path / name
        files.save(str(path), b"one")
        assert (mode(path), path.read_bytes()) == (0o600, b"one")
        path.chmod(0o666)
        files.save(str(path), b"two")
        assert (mode(path), path.read_bytes(), list(tmp_path.iterdir())) == (0o600, b"two", [path])
    finally:
        os.umask(before)


def test_a_file_is_on_the_disk_before_it_is_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    did: list[str] = []
    replace = Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: did.append(f"synced {os.fstat(handle).st_size}"))
    monkeypatch.setattr(Path, "replace", lambda self, to: did.append("placed") or replace(self, to))
    files.save(str(tmp_path / "f"), b"abc")
    assert did == ["synced 3", "placed"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError()])
def test_a_file_that_is_not_finished_is_not_there(error: BaseException, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")

    def write() -> None:
        with files.saving(str(path)) as file:
            file.write(b"new")
            raise error

    with pytest.raises((CgauditError, KeyboardInterrupt, ValueError)):
        write()
    assert ([each.name for each in tmp_path.iterdir()], path.read_bytes()) == (["f"], b"old")


def full(self: files._Leaving, data: Any) -> int:
    raise OSError(28, "No space left on device")


def test_what_cannot_be_written_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files._Leaving, "write", full)
    for path, why in (
        (tmp_path, "it is a directory"),
        (tmp_path / "none" / "f", "No such file or directory"),
        (tmp_path / "f", "No space left on device"),
    ):
        with pytest.raises(CgauditError, match=f"^{path} cannot be written: {why}; choose another path$"):
            files.save(str(path), b"x")
    assert list(tmp_path.iterdir()) == []
    assert str(files.unwritable("f", OSError("odd"))) == "f cannot be written: odd; choose another path"
    with pytest.raises(BrokenPipeError), files.saving(str(tmp_path / "f")):
        raise BrokenPipeError


# Never write to a device here: as root, code that is wrong would replace the machine's own.
def test_devices_are_written_to_and_not_replaced(tmp_path: Path) -> None:
    assert [files._is_device(path) for path in ("/dev/null", "/dev", "/nowhere")] == [True, False, False]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        files.save(str(pipe), b"x")
        assert (stat.S_ISFIFO(pipe.stat().st_mode), os.read(reading, 9)) == (True, b"x")
    finally:
        os.close(reading)


@pytest.mark.parametrize(
    ("path", "number"), [("/dev/stdin", 0), ("/dev/stdout", 1), ("/dev/stderr", 2), ("/dev/fd/12", 12)]
)
def test_which_descriptor_a_name_is_of(path: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def dup(descriptor: int) -> int:
        asked.append(descriptor)
        return os.open(tmp_path / "f", os.O_WRONLY | os.O_CREAT)

    monkeypatch.setattr(os, "dup", dup)
    files.save(path, b"x")
    assert (asked, (tmp_path / "f").read_bytes()) == ([number], b"x")


def test_a_descriptor_by_its_name_stays_open(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        log.write(b"before\n")
        log.flush()
        files.save(f"/dev/fd/{log.fileno()}", b"report\n")
        log.write(b"after\n")
    assert (tmp_path / "log").read_bytes() == b"before\nreport\nafter\n"


def test_a_failed_write_leaves_the_old_report_and_no_rubbish(
    tmp_path: Path, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "kept.json"
    old.write_text("old")
    assert run(["-f", str(small), "-o", f"json={old}", "-o", f"yaml={tmp_path}"]) == 1
    assert "cannot be written: it is a directory; choose another path" in capsys.readouterr().err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["kept.json", "small.json"]


def test_a_link_is_written_through(tmp_path: Path, small: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    assert run(["-f", str(small), "-o", f"json={link}"]) == 0
    assert link.is_symlink()
    assert json.loads(real.read_text())["schemaVersion"] == "1.1"


def test_a_closed_pipe_costs_no_report_file(tmp_path: Path) -> None:
    words = command(
        *RECORDED_FLAGS, "-o", "json", "-o", f"yaml={tmp_path / 'a.yaml'}", "-o", f"html={tmp_path / 'a.html'}"
    )
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        running.stdout.close()
        assert running.stderr is not None
        said = running.stderr.read()
    assert running.returncode == 141
    assert said == f"wrote yaml to {tmp_path / 'a.yaml'}\nwrote html to {tmp_path / 'a.html'}\n"
    assert yaml.safe_load((tmp_path / "a.yaml").read_text())["schemaVersion"] == "1.1"
    assert (tmp_path / "a.html").read_text().endswith("</html>\n")


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1"])
def test_a_report_to_standard_output_by_its_name_keeps_what_is_there(tmp_path: Path, name: str) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    with log.open("ab") as out:
        subprocess.run(
            command(*RECORDED_FLAGS, "-o", f"prometheus={name}"), stdout=out, stderr=subprocess.PIPE, check=True
        )
    assert log.read_text().startswith("before\n# HELP ")
