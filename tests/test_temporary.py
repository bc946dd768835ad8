"""What a killed run left behind is removed by the next one, and nothing else is."""

import base64
import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from kubectl_cgaudit import temporary
from kubectl_cgaudit.cli import files
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.collect.credentials import log_in
from kubectl_cgaudit.collect.kubeconfig import Connection, choose
from tests.vcr_support import kubeconfig

ROOT = Path(__file__).parent.parent
NAME = ".cgaudit.abcd_123.tmp"
KEY = b"-----BEGIN PRIVATE KEY-----\nsecret\n"
# Writes a report and, told to on standard input, finishes it.
WRITER = """
import sys
from kubectl_cgaudit.cli import files
with files.saving(sys.argv[1]) as file:
    file.write(b"whole")
    file.flush()
    print("open", flush=True)
    sys.stdin.readline()
"""
# As a run does that logs in: keys in files, as long as it lives.
HOLDER = """
import sys
from kubectl_cgaudit.collect.credentials import log_in
from kubectl_cgaudit.collect.kubeconfig import Connection, choose
print(log_in(choose(Connection(kubeconfig=sys.argv[1]))).configuration.key_file, flush=True)
sys.stdin.readline()
"""
CROWD = """
import sys
from kubectl_cgaudit.cli import files
for number in range(60):
    files.save(f"{sys.argv[1]}/{sys.argv[2]}.{number % 3}", sys.argv[2].encode() * 1000)
"""


def started(program: str, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", program, *words],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def said(running: "subprocess.Popen[str]") -> str:
    assert running.stdout is not None
    return running.stdout.readline().strip()


def killed(running: "subprocess.Popen[str]") -> None:
    running.kill()
    running.communicate()
    assert running.returncode == -signal.SIGKILL


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.fixture
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of its own, for this process and those it starts."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(temporary, "_keys", None)
    return folder


def test_the_next_report_removes_what_a_killed_run_left_beside_it(tmp_path: Path) -> None:
    running = started(WRITER, str(tmp_path / "a.json"))
    assert said(running) == "open"
    (part,) = names(tmp_path)
    killed(running)
    assert names(tmp_path) == [part]
    files.save(str(tmp_path / "b.json"), b"x")
    assert names(tmp_path) == ["b.json"]


def test_the_check_of_a_path_removes_it_too(tmp_path: Path) -> None:
    (tmp_path / NAME).touch(mode=0o600)
    files.check(str(tmp_path / "a"))
    assert names(tmp_path) == []


def test_a_run_that_lives_keeps_its_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    running = started(WRITER, str(path))
    assert said(running) == "open"
    before = names(tmp_path)
    files.save(str(path), b"of the other run")
    files.check(str(path))
    assert names(tmp_path) == sorted([*before, "a.json"])
    running.communicate("go on\n", timeout=30)
    assert (running.returncode, path.read_bytes(), names(tmp_path)) == (0, b"whole", ["a.json"])


def test_many_runs_may_write_to_one_folder(tmp_path: Path) -> None:
    crowd = [started(CROWD, str(tmp_path), letter) for letter in "abcd"]
    assert [each.wait(60) for each in crowd] == [0] * 4
    for each in crowd:
        each.communicate()
    assert names(tmp_path) == [f"{letter}.{number}" for letter in "abcd" for number in range(3)]
    assert (tmp_path / "c.2").read_bytes() == b"c" * 1000


def test_what_is_not_surely_ours_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    for name in ("target", "twice", "notes.tmp", ".cgaudit.tmp", ".cgaudit.ABCD1234.tmp", f"{NAME}.bak", "readable"):
        (kept / name).touch(mode=0o600)
    (kept / "link").symlink_to("target")
    (kept / "link").rename(kept / ".cgaudit.symlink0.tmp")
    (kept / ".cgaudit.hardlink.tmp").hardlink_to(kept / "twice")
    (kept / "readable").chmod(0o644)
    (kept / "readable").rename(kept / ".cgaudit.readable.tmp")
    os.mkfifo(kept / ".cgaudit.pipe0000.tmp", 0o600)
    (kept / ".cgaudit.folder00.tmp").mkdir(mode=0o755)
    (kept / ".cgaudit.full0000.tmp").mkdir(mode=0o700)
    (kept / ".cgaudit.full0000.tmp" / "precious").touch(mode=0o600)
    before = names(kept)
    files.save(str(kept / "x"), b"x")
    assert names(kept) == sorted([*before, "x"])
    assert names(kept / ".cgaudit.full0000.tmp") == ["precious"]
    (kept / NAME).touch(mode=0o600)
    with monkeypatch.context() as patch:
        own = os.geteuid()
        patch.setattr(os, "geteuid", lambda: own + 1)
        files.save(str(kept / "x"), b"x")
    assert names(kept) == sorted([*before, "x", NAME])
    files.save(str(kept / "x"), b"x")
    assert names(kept) == sorted([*before, "x"])


def test_what_is_exchanged_while_it_is_looked_at_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / NAME).touch(mode=0o600)
    (tmp_path / "precious").touch(mode=0o600)
    lock = fcntl.flock

    def exchange(handle: int, how: int) -> None:
        lock(handle, how)
        if (tmp_path / "precious").exists():
            (tmp_path / "precious").replace(tmp_path / NAME)

    monkeypatch.setattr(fcntl, "flock", exchange)
    temporary._remove_abandoned(tmp_path, temporary._FILE)
    assert names(tmp_path) == [NAME]


def test_a_file_that_another_run_finds_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its making and its lock it looks abandoned: it may be locked by who removes it, or gone already."""
    lock, made = fcntl.flock, []

    def interrupted(handle: int, how: int) -> None:
        made.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        if len(made) == 1:
            Path(made[0]).unlink()
            raise BlockingIOError
        lock(handle, how)
        if len(made) == 2:
            Path(made[1]).unlink()

    monkeypatch.setattr(fcntl, "flock", interrupted)
    with temporary.new_file(tmp_path) as (handle, path):
        os.close(handle)
        assert (names(tmp_path), str(path), len(made)) == ([path.name], made[2], 3)


def test_without_locks_nothing_is_removed_and_everything_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    (tmp_path / NAME).touch(mode=0o600)
    files.save(str(tmp_path / "x"), b"x")
    assert names(tmp_path) == [NAME, "x"]


def embedding(path: Path) -> str:
    data = base64.b64encode(KEY).decode()
    return kubeconfig(path, "https://127.0.0.1:1", user={"client-certificate-data": data, "client-key-data": data})


def test_the_next_run_removes_the_keys_of_a_killed_one(
    home: Path, temporary_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = embedding(tmp_path / "config")
    first, second = started(HOLDER, config), started(HOLDER, config)
    keys = [Path(said(each)) for each in (first, second)]
    assert [each.read_bytes() for each in keys] == [KEY, KEY]
    assert [stat.S_IMODE(each.stat().st_mode) for key in keys for each in (key, key.parent)] == [0o600, 0o700] * 2
    assert {each.parent.parent for each in keys} == {temporary_folder}
    killed(first)
    assert keys[0].read_bytes() == KEY
    # Also one that has no keys itself.
    plain = kubeconfig(tmp_path / "plain", "https://127.0.0.1:1", user={"token": "t"})
    assert run(["--kubeconfig", plain]) == 1
    assert "connection refused" in capsys.readouterr().err
    assert (names(temporary_folder), keys[1].read_bytes()) == ([keys[1].parent.name], KEY)
    second.communicate("end\n", timeout=30)
    assert (second.returncode, names(temporary_folder)) == (0, [])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_keys_go_with_a_process_that_is_told_to_end(
    number: signal.Signals, home: Path, temporary_folder: Path, tmp_path: Path
) -> None:
    program = HOLDER.replace(
        "import sys\n", "import sys\nfrom kubectl_cgaudit.cli import main\nmain._clean_up_when_told_to_end()\n", 1
    )
    running = started(program, embedding(tmp_path / "config"))
    assert Path(said(running)).exists()
    running.send_signal(number)
    running.communicate(timeout=30)
    assert (running.returncode, names(temporary_folder)) == (128 + number, [])


def test_a_folder_for_keys_that_was_tidied_up_is_made_again(home: Path, temporary_folder: Path, tmp_path: Path) -> None:
    folder = temporary.key_folder()
    assert folder is not None
    assert temporary.key_folder() == folder
    folder.rmdir()
    # Somebody else's, of the same name.
    folder.mkdir()
    again = temporary.key_folder()
    assert again not in (None, folder)
    choice = choose(Connection(kubeconfig=embedding(tmp_path / "config")))
    assert choice is not None
    assert Path(log_in(choice).configuration.key_file).parent == again


def test_a_child_leaves_the_keys_to_its_parent(temporary_folder: Path) -> None:
    folder = temporary.key_folder()
    assert folder is not None
    assert temporary._keys is not None
    temporary._remove_keys(os.getpid() + 1, *temporary._keys)
    assert folder.exists()
    temporary._remove_keys(os.getpid(), *temporary._keys)
    assert not folder.exists()


def test_keys_of_others_stay(temporary_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "cgaudit-keys.abcd_123"
    (temporary_folder / name).mkdir(mode=0o700)
    (temporary_folder / "elsewhere").mkdir(mode=0o700)
    (temporary_folder / "elsewhere" / "key").touch(mode=0o600)
    (temporary_folder / "cgaudit-keys.symlink_").symlink_to("elsewhere")
    (temporary_folder / "cgaudit-keys.file0000").touch(mode=0o600)
    own = os.geteuid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: own + 1)
        temporary.remove_abandoned_keys()
    assert names(temporary_folder) == [name, "cgaudit-keys.file0000", "cgaudit-keys.symlink_", "elsewhere"]
    (temporary_folder / name / "link").symlink_to("../elsewhere/key")
    temporary.remove_abandoned_keys()
    assert names(temporary_folder) == ["cgaudit-keys.file0000", "cgaudit-keys.symlink_", "elsewhere"]
    assert (temporary_folder / "elsewhere" / "key").exists()


def test_a_temporary_folder_that_is_not_there_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
    temporary.remove_abandoned_keys()


def test_a_file_is_abandoned_as_soon_as_its_process_ends(tmp_path: Path) -> None:
    """No time has to pass: the lock alone counts."""
    running = started(WRITER, str(tmp_path / "a"))
    assert said(running) == "open"
    temporary._remove_abandoned(tmp_path, temporary._FILE)
    assert len(names(tmp_path)) == 1
    killed(running)
    began = time.monotonic()
    temporary._remove_abandoned(tmp_path, temporary._FILE)
    assert (names(tmp_path), time.monotonic() - began < 1) == ([], True)
