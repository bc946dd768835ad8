"""Files that are written whole or not at all, by their owner alone."""

import contextlib
import json
import os
import re
import select
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_cgaudit.cli import files, output
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.cli.outlet import Outlet
from kubectl_cgaudit.cli.output import Output
from kubectl_cgaudit.errors import CgauditError, PipeClosedError
from tests.support import RECORDED_FLAGS, command, container, listed, node, pod
from tests.vcr_support import kubeconfig, serve


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
    gone = BrokenPipeError(32, "Broken pipe")
    with pytest.raises(CgauditError, match=r"^/dev/fd/12 cannot be written: Broken pipe; choose another path$"):
        raise files.unwritable("/dev/fd/12", gone)
    for path in ("/dev/stdout", "/dev/fd/1"):
        assert isinstance(files.unwritable(path, gone), PipeClosedError)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (".", "it is a directory"),
        ("none/f", "No such file or directory"),
        ("file/f", "Not a directory"),
        ("n" * 256, "File name too long"),
        ("/proc/f", "No such file or directory"),
        ("/dev/fd/999", "Bad file descriptor"),
    ],
)
@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ((), "-oyaml="),
        (("nodes",), "-ojson="),
        (("tree",), "-ojson="),
        (("verify", "--kubelet=files:."), "-ojson="),
        (("snapshot",), "-o"),
    ],
    ids=str,
)
def test_that_a_file_cannot_be_written_is_said_before_the_cluster_is_asked(
    words: tuple[str, ...],
    flag: str,
    path: str,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    with serve() as server:
        config = kubeconfig(tmp_path / "config", server=server.url)
        others = ("-ojson=a.json", "-ohtml=/dev/stderr") if not words else ()
        assert run([*words, "--kubeconfig", config, *others, f"{flag}{path}"]) == 1
        assert server.requests == []
    assert capsys.readouterr() == ("", f"error: {path} cannot be written: {why}; choose another path\n")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["config", "file"]


@pytest.mark.parametrize("words", [("report", "none.json"), ("diff", "none.json", "none.json")], ids=" ".join)
def test_it_is_said_before_a_file_is_read(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words, "-o", "html=/nowhere/f"]) == 1
    said = capsys.readouterr().err
    assert said == "error: /nowhere/f cannot be written: No such file or directory; choose another path\n"


@pytest.mark.parametrize("command_", ["nodes", "snapshot", "verify"])
def test_a_folder_of_answers_that_is_not_there_is_named_before_the_cluster_is_asked(
    command_: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "/nowhere cannot be read: No such file or directory; name a folder of saved kubelet answers"
    with serve() as server:
        config = kubeconfig(tmp_path / "config", server=server.url)
        words = [command_, "--kubeconfig", config, "--kubelet=files:/nowhere"]
        assert run([*words, "-o-"] if command_ == "snapshot" else words) == 1
        assert server.requests == []
    assert capsys.readouterr() == ("", f"error: {said}\n")


def test_what_is_no_file_is_not_touched_by_the_check(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        for path in (str(pipe), "/dev/null", "/dev/stdout", f"/dev/fd/{reading}"):
            files.check(path)
        # Who had opened it would have been told of its end.
        assert select.select([reading], [], [], 0) == ([], [], [])
    finally:
        os.close(reading)
    assert list(tmp_path.iterdir()) == [pipe]


# Never write to a device here: as root, code that is wrong would replace the machine's own.
def test_devices_are_written_to_and_not_replaced(tmp_path: Path) -> None:
    assert [files.is_device(path) for path in ("/dev/null", "/dev", "/nowhere")] == [True, False, False]
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
    assert json.loads(real.read_text())["schema"] == "cgaudit.audit/1"


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
    assert yaml.safe_load((tmp_path / "a.yaml").read_text())["schema"] == "cgaudit.audit/1"
    assert (tmp_path / "a.html").read_text().endswith("</html>\n")


LEAVES = ">(head -c 1 >/dev/null)"
ELSEWHERE, TO_A_FILE = "choose another path", "write to a file with -o FORMAT=FILE"
GONE = f"error: /dev/fd/N cannot be written: Broken pipe; {ELSEWHERE}\n"
FULL = f"error: standard output cannot be written: No space left on device; {TO_A_FILE}\n"
WROTE = "wrote html to f\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (f"-o json={LEAVES} -o html=f", 1, WROTE + GONE),
        (f"-o html=f -o json={LEAVES} -o csv | head -c 1", 1, WROTE + GONE),
        (f"-o json={LEAVES} -o csv={LEAVES} -o html=f", 1, WROTE + GONE + GONE),
        ("-o table -o html=f >/dev/full", 1, WROTE + FULL),
        ("-o json -o html=f >&-", 1, WROTE + f"error: standard output is closed; {TO_A_FILE}\n"),
        ("-o html=f -o json | head -c 1", 141, WROTE),
        ("-o json=/dev/stdout -o html=f | head -c 1", 141, WROTE),
    ],
)
def test_a_report_that_fails_costs_no_other_and_is_named(words: str, code: int, said: str, tmp_path: Path) -> None:
    # Larger than a pipe holds: who left is noticed.
    (tmp_path / "c.json").write_text(listed(node(), *(pod(f"p{number}", container("c", "1")) for number in range(500))))
    program = f"{' '.join(command())} -f c.json {words}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (re.sub(r"/dev/fd/\d+", "/dev/fd/N", done.stderr), done.returncode) == (said, code)
    assert (tmp_path / "f").read_text().endswith("</html>\n")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["c.json", "f"]


@pytest.fixture
def left() -> Iterator[str]:
    """A pipe whose reader has left."""
    reading, writing = os.pipe()
    os.close(reading)
    yield f"/dev/fd/{writing}"
    os.close(writing)


def test_a_text_that_fails_costs_no_other_and_is_named(
    left: str, small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "f"
    assert run(["tree", "-f", str(small), "-o", f"text={left}", "-o", f"json={path}"]) == 1
    assert (
        capsys.readouterr().err == f"wrote json to {path}\nerror: {left} cannot be written: Broken pipe; {ELSEWHERE}\n"
    )
    assert list(json.loads(path.read_text())) == ["cgroups"]


def test_a_report_that_fails_leaves_its_room_to_the_others_at_once(tmp_path: Path) -> None:
    failures: list[Exception] = []

    @contextlib.contextmanager
    def filling() -> Iterator[Callable[[str], None]]:
        with files.saving(str(tmp_path / "f")) as file:

            def write(text: str) -> None:
                file.write(text.encode())
                raise CgauditError("no space")

            yield write

    with Outlet(filling(), failures) as outlet:
        outlet("x" * (1 << 20))
        assert list(tmp_path.iterdir()) == []
        outlet("y")
    assert [str(each) for each in failures] == ["no space"]
    assert list(tmp_path.iterdir()) == []


def test_a_text_in_pieces_is_made_no_further_than_somebody_reads(left: str) -> None:
    made: list[int] = []

    def pieces() -> Iterator[str]:
        for number in range(9):
            made.append(number)
            yield "x" * (1 << 17)

    with pytest.raises(CgauditError, match=r"cannot be written: Broken pipe"):
        output.deliver([(Output("text", left), pieces())])
    assert made == [0]


def test_a_snapshot_whose_reader_leaves_is_no_success(
    left: str, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["snapshot", "-f", str(small), "-o", left]) == 1
    assert capsys.readouterr().err == f"error: {left} cannot be written: Broken pipe; {ELSEWHERE}\n"


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_a_report_to_standard_output_by_its_name_keeps_what_is_there(tmp_path: Path, name: str) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    with log.open("ab") as out:
        subprocess.run(
            command(*RECORDED_FLAGS, "-o", f"prometheus={name}"), stdout=out, stderr=subprocess.PIPE, check=True
        )
    assert log.read_text().startswith("before\n# HELP ")


def test_every_name_of_a_descriptor_is_known() -> None:
    found = [files._number(path) for path in ("/proc/self/fd/7", "/dev/fd/8", "/dev/stdin", "/dev/stderr")]
    assert found == [7, 8, 0, 2]
    assert [files._number(path) for path in ("/proc/1/fd/7", "/dev/fd/", "/dev/fd/x", "/proc/self/fd")] == [None] * 4
