"""The progress line: only for work over two seconds, only on a terminal, and gone at the end."""

import io

import pytest

from kubectl_cgaudit.cli import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_line_that_replaces_itself_after_two_seconds(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    line = progress.Progress()
    for at, text in ((101.9, "pods 500"), (102.1, "pods 1000"), (102.2, "pods 1500"), (102.4, "pods \x1b[31m")):
        clock[0] = at
        line(text)
    line.close()
    assert screen.getvalue() == "\r\x1b[Kreading pods 1000\r\x1b[Kreading pods \\x1b[31m\r\x1b[K"


def test_silent_where_nobody_watches(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    line = progress.Progress()
    clock[0] = 200.0
    line("pods 500")
    line.close()
    assert screen.getvalue() == ""
