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
    for at, what, done in ((101.9, "pods", 500), (102.1, "pods", 1000), (102.2, "pods", 1500), (102.4, "x\x1b[31m", 1)):
        clock[0] = at
        line(what, done, None)
    line.close()
    assert screen.getvalue() == "\r\x1b[Kreading pods 1000\r\x1b[Kreading x\\x1b[31m 1\r\x1b[K"
    assert line.last == "x\x1b[31m 1"


@pytest.mark.parametrize(
    ("at", "done", "total", "shown"),
    [
        (103.0, 1000, 4000, "pods 1000 of 4000, 9 s left"),
        (110.0, 1000, 150_000, "pods 1000 of 150000, 25 min left"),
        (110.0, 4000, 4000, "pods 4000 of 4000, 0 s left"),
        (110.0, 4000, None, "pods 4000"),
    ],
)
def test_it_says_how_long_the_rest_takes(
    at: float, done: int, total: int | None, shown: str, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    line = progress.Progress()
    line("pods", 0, total)
    clock[0] = at
    line("pods", done, total)
    assert screen.getvalue() == f"\r\x1b[Kreading {shown}"


def test_silent_where_nobody_watches(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    line = progress.Progress()
    clock[0] = 200.0
    line("pods", 500, 1000)
    line.close()
    assert screen.getvalue() == ""
