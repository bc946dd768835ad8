"""How a run ends: exit codes, and one sentence for each error."""

import fcntl
import io
import os
import signal
import subprocess
import sys
import termios
import time
from array import array
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any

import click
import pytest

from kubectl_cgaudit.cli import main, policy
from kubectl_cgaudit.cli.codes import FOUND, INCOMPLETE
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.errors import CgauditError, PipeClosedError, UsageError
from tests.support import RECORDED_FLAGS, audited, cluster, command, container, listed, node, pod, recorded_audit


@pytest.mark.parametrize(
    ("level", "code", "said"),
    [
        ("none", 0, ""),
        ("critical", 0, ""),
        ("high", FOUND, "--fail-on: 5 findings of severity high or worse\n"),
    ],
)
def test_what_fails_an_audit(level: str, code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert policy.exit_code(recorded_audit(), policy.read(None, None, level, "probable")) == code
    assert capsys.readouterr().err == said


def test_nothing_is_worse_than_critical(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_cgaudit.audit.standing.at_or_above", lambda findings, severity, certainty: (1, []))
    assert policy.exit_code(recorded_audit(), policy.read(None, None, "critical", "probable")) == FOUND
    assert capsys.readouterr().err == "--fail-on: 1 finding of severity critical\n"


def test_an_incomplete_audit_is_no_pass() -> None:
    half = audited(cluster(node(), pod("p", container("c", "1"), on="gone")))
    assert policy.exit_code(half, policy.read(None, None, "none", "probable")) == INCOMPLETE == 3


def raising(error: BaseException) -> Callable[..., None]:
    def call(*_: Any, **__: Any) -> None:
        raise error

    return call


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (CgauditError("a\x1b[31m"), 1, "a\\x1b[31m"),
        (UsageError("a"), 2, "a"),
        (click.UsageError("a."), 2, "a; see kubectl cgaudit --help"),
        (
            click.UsageError("a", click.Context(click.Command("x"), info_name="x y")),
            2,
            "a; see x y --help",
        ),
        (click.ClickException("a"), 1, "a"),
        (click.Abort(), 130, "interrupted; every file is whole or as it was"),
        (KeyboardInterrupt(), 130, "interrupted; every file is whole or as it was"),
        (
            OSError(24, "Too many open files", "/a/b"),
            1,
            "the system refuses something this needs: Too many open files (/a/b); see ulimit -a, and free what is used up",
        ),
        (OSError("odd"), 1, "the system refuses something this needs: odd; see ulimit -a, and free what is used up"),
        (
            RecursionError(),
            1,
            "the input is nested too deeply to be what kubectl prints; save it again with kubectl",
        ),
    ],
)
def test_how_every_error_ends(
    error: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(main.group, "main", raising(error))
    assert main.run([]) == code
    assert capsys.readouterr() == ("", f"error: {said}\n")
    monkeypatch.setattr(sys, "stderr", None)
    assert main.run([]) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [(PipeClosedError(), 141), (BrokenPipeError(), 141), (KeyboardInterrupt(), 130), (SystemExit(143), 143)],
    ids=["pipe", "broken", "Ctrl-C", "SIGTERM"],
)
def test_what_is_printed_after_the_end_goes_nowhere(
    error: BaseException,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(main.group, "main", raising(error))
    monkeypatch.setattr(main, "_clean_up_when_told_to_end", lambda: None)
    with (tmp_path / "out").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        with pytest.raises(SystemExit) as ended:
            main.main()
        # What is still to be flushed.
        out.write("late")
    assert ended.value.code == code
    assert (tmp_path / "out").read_text() == ""
    interrupted = "error: interrupted; every file is whole or as it was\n"
    assert capfd.readouterr() == ("", interrupted if code == 130 else "")


@pytest.mark.parametrize(("result", "code"), [(None, 0), ("text", 0), (0, 0), (3, 3), (4, 4)])
def test_the_exit_code_of_a_command(result: Any, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main.group, "main", lambda *_, **__: result)
    assert main.run([]) == code
    monkeypatch.setattr(sys, "stdout", None)
    assert main.run([]) == code


def test_standard_output_that_fails_at_the_last_moment_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(main.group, "main", lambda *_, **__: 0)
    monkeypatch.setattr(sys, "stdout", Full())
    assert main.run([]) == 1
    assert capsys.readouterr().err == (
        "error: standard output cannot be written: No space left on device; write elsewhere\n"
    )
    # The interpreter would complain again when it flushes at exit.
    assert sys.stdout is None


def test_a_pipe_that_is_closed_early_is_no_error_and_no_success() -> None:
    # More than a pipe holds, so that the last of it meets a closed one.
    script = (
        " ".join(f"'{word}'" for word in command(*RECORDED_FLAGS, "-o", "html"))
        + " | head -c 10 >/dev/null; exit ${PIPESTATUS[0]}"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")


def wait_until_full(pipe: IO[bytes], writer: "subprocess.Popen[bytes]") -> None:
    """Wait until a pipe holds something and no more comes: a signal just before a write would be heard after it."""
    held = before = array("i", [0])
    while held != before or not held[0]:
        assert writer.poll() is None
        before, held = held, array("i", [0])
        time.sleep(0.3)
        fcntl.ioctl(pipe, termios.FIONREAD, held)


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_run_that_is_told_to_end_cleans_up(
    tmp_path: Path, name: str, code: int, request: pytest.FixtureRequest
) -> None:
    number = getattr(signal, name)
    # Under nohup the run would inherit deafness, and go on as it should.
    request.addfinalizer(partial(signal.signal, number, signal.signal(number, signal.SIG_DFL)))
    words = command(*RECORDED_FLAGS, "-o", f"json={tmp_path / 'a.json'}", "-o", f"yaml={tmp_path / 'pipe'}")
    os.mkfifo(tmp_path / "pipe")
    # Opening the pipe lets it go on; it then waits until somebody reads.
    with (
        subprocess.Popen(words, stderr=subprocess.DEVNULL) as running,
        (tmp_path / "pipe").open("rb") as pipe,
    ):
        wait_until_full(pipe, running)
        assert [path.suffix for path in tmp_path.iterdir() if path.name != "pipe"] == [".tmp"]
        running.send_signal(number)
        assert running.wait(timeout=20) == code
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe"]


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize("words", [("-o", "json"), ("-o", "html"), ("-o", "json=/dev/stdout")], ids=" ".join)
def test_who_is_told_to_end_does_not_wait_for_who_reads(words: tuple[str, ...], name: str, code: int) -> None:
    """As behind `| less` that shows its first page."""
    with subprocess.Popen(
        command(*RECORDED_FLAGS, *words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as running:
        assert running.stdout
        wait_until_full(running.stdout, running)
        running.send_signal(getattr(signal, name))
        assert running.wait(timeout=20) == code


def test_ctrl_c_leaves_no_traceback() -> None:
    running = subprocess.Popen(
        command("-f", "-"), stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert running.stdin
    # More than a pipe holds: it is written once the program reads, and the program then waits for the end.
    running.stdin.write(" " * (1 << 20))
    running.stdin.flush()
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=20)
    assert (running.returncode, out, err) == (130, "", "error: interrupted; nothing was written\n")


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["convert", "--help"], ["convert", "250m"]])
def test_a_pipe_that_nobody_reads_has_one_exit_code(words: list[str]) -> None:
    """click prints help and versions itself."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command(*words), stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("words", [("tree",), ("tree", "n2"), ("explain", "default/p"), ("nodes",)], ids=" ".join)
@pytest.mark.parametrize(("states", "code"), [("- {cgroup: v2}", INCOMPLETE), ("- {cgroup: v2, system_slice: 100}", 0)])
def test_who_shows_shares_says_where_nobody_said_what_competes(
    words: tuple[str, ...], states: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The audit of the same nodes is incomplete."""
    objects = (node(osImage="Talos (v1.9.1)"), node("n2"), pod("p", container("c", "1")))
    path, said = tmp_path / "c.json", tmp_path / "states.yaml"
    path.write_text(listed(*objects))
    said.write_text(states)
    assert run([*words, "-f", str(path), "--states", str(said)]) == code
    line = (
        "incomplete: node n1: Talos has no system.slice: init, system and podruntime compete with pods at the root, and nobody "
        "said with what weight together. Say their sum with --states (system_slice: N), of what `talosctl cgroups --preset cpu` "
        "shows, and no root: of them.\n"
    )
    assert capsys.readouterr().err == (line if code else "")
