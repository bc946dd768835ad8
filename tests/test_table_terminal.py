"""The table on a terminal, in a pipe and in a file."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.audit.model import Audit
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.report import table
from kubectl_cgaudit.report.screen import Screen
from tests.support import RECORDED_FLAGS, recorded_audit

UNDATED = "--reproducible"


@pytest.mark.parametrize(
    ("said", "width"), [("", 80), ("120", 120), ("50", 80), ("100000000000", 200), ("x", 80), ("0", 80), ("²", 80)]
)
def test_a_pipe_is_80_columns_unless_columns_says_otherwise(
    said: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", said)
    assert run([*RECORDED_FLAGS, UNDATED]) == 0
    assert capsys.readouterr().out == table.table(_named_by_files(), Screen(width))


def _named_by_files() -> Audit:
    source = "nodes.json, pods.json, workloads.json, runtimeclasses.json"
    found = recorded_audit()
    return replace(found, coverage=replace(found.coverage, source=source))


def test_a_file_is_80_columns_without_colour_always(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run([*RECORDED_FLAGS, UNDATED, "-o", f"table={tmp_path / 'x'}"]) == 0
    assert (tmp_path / "x").read_text() == table.table(_named_by_files(), Screen(80))


def in_a_terminal(words: list[str], width: int, **environment: str) -> str:
    """What the program writes to a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    clean = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")}
    running = subprocess.Popen(
        [sys.executable, "-m", "kubectl_cgaudit", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env={**clean, "TERM": "xterm-256color", **environment},
    )
    os.close(theirs)
    data = b""
    while True:
        try:
            some = os.read(ours, 65536)
        except OSError:  # Linux ends a terminal with EIO.
            break
        if not some:
            break
        data += some
    os.close(ours)
    assert running.wait() == 0
    return data.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_terminal_gets_its_width_and_colour(width: int) -> None:
    text = in_a_terminal([*RECORDED_FLAGS, UNDATED], width)
    assert text == table.table(_named_by_files(), Screen(width, colour=True, terminal=True))


def test_a_terminal_without_colour_or_unicode() -> None:
    assert in_a_terminal([*RECORDED_FLAGS, UNDATED], 300, NO_COLOR="1") == table.table(_named_by_files(), Screen(200))
    drawn = in_a_terminal(["tree", "worker-b", *RECORDED_FLAGS], 80, TERM="dumb", PYTHONIOENCODING="ascii")
    assert drawn.isascii()
    assert "|  `- exporter" in drawn
