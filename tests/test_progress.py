"""The progress line: only for work over two seconds, only on a terminal, and gone at the end."""

import io
import itertools
import os
import sys
from pathlib import Path

import pytest

from kubectl_cgaudit.cli import progress
from kubectl_cgaudit.cli.main import run
from tests.support import Terminal, container, listed, node, pod


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setenv("TERM", "xterm")
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


def shown(steps: list[tuple[float, str, int, int | None]], clock: list[float], monkeypatch: pytest.MonkeyPatch) -> str:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    line = progress.Progress()
    for at, what, done, total in steps:
        clock[0] = at
        line(what, done, total)
    return screen.getvalue()


@pytest.mark.parametrize(
    ("steps", "last"),
    [
        # The pace of a list is its own: it began at 110, not at 100.
        ([(100.0, "nodes", 1, None), (110.0, "pods", 0, 400), (114.0, "pods", 100, 400)], "pods 100 of 400, 12 s left"),
        ([(110.0, "pods", 0, 400), (111.9, "pods", 100, 400)], "pods 100 of 400"),
        ([(110.0, "pods", 0, 120), (111.0, "pods", 1, 120)], "pods 1 of 120"),
        ([(110.0, "pods", 0, 25), (115.0, "pods", 1, 25)], "pods 1 of 25, 2 min left"),
        ([(110.0, "pods", 0, 120), (117.0, "pods", 7, 126)], "pods 7 of 126, 119 s left"),
        ([(110.0, "pods", 0, 120), (117.0, "pods", 0, 126)], "pods 0 of 126"),
    ],
)
def test_how_long_the_rest_takes(
    steps: list[tuple[float, str, int, int | None]], last: str, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown(steps, clock, monkeypatch).rpartition("reading ")[2] == last


def test_no_line_before_two_seconds_nor_twice_at_once(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown([(102.0, "pods", 1, None)], clock, monkeypatch) == ""
    clock[0] = 100.0
    assert shown([(103.0, "a", 1, None), (103.1, "a", 2, None)], clock, monkeypatch).count("reading") == 1


@pytest.mark.parametrize(
    ("wide", "encoding", "line"),
    [
        (0, "utf-8", "reading pods 1000 of 150000, 25 min left"),
        (41, "utf-8", "reading pods 1000 of 150000, 25 min left"),
        (40, "utf-8", "reading pods 1000 of 150000, 25 min le…"),
        (20, "utf-8", "reading pods 1000 …"),
        (20, "ascii", "reading pods 1000 ~"),
        (2, "utf-8", "…"),
        (1, "utf-8", "…"),
    ],
)
def test_the_line_is_no_wider_than_the_terminal(
    wide: int, encoding: str, line: str, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((wide, 24)))
    screen = Terminal(encoding=encoding)
    monkeypatch.setattr(screen, "fileno", lambda: 2, raising=False)
    monkeypatch.setattr(sys, "stderr", screen)
    shown = progress.Progress()
    shown("pods", 0, 150_000)
    clock[0] = 110.0
    shown("pods", 1000, 150_000)
    shown.close()
    assert screen.getvalue() == f"\r\x1b[K{line}\r\x1b[K"


def test_a_wide_name_is_cut_to_its_columns(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_width", lambda: 14)
    assert shown([(103.0, "優優優優", 1, None)], clock, monkeypatch) == "\r\x1b[Kreading 優優…"


def test_a_dumb_terminal_gets_spaces_and_no_escapes(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    widths = iter((80, 80, 20, 12))
    monkeypatch.setattr(progress, "_width", lambda: next(widths))
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    line = progress.Progress()
    for at, what, done in ((103.0, "a.json: MiB", 100), (104.0, "pods", 1), (105.0, "pods", 2000), (106.0, "jobs", 1)):
        clock[0] = at
        line(what, done, None)
    line.close()
    assert screen.getvalue().split("\r") == [
        "",
        "reading a.json: MiB 100",
        "reading pods 1         ",
        "reading pods 2000",
        "reading jo…",
        "           ",
        "",
    ]


def test_a_dumb_terminal_is_clear_when_nothing_was_shown(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    line = progress.Progress()
    line("pods", 1, None)
    line.close()
    assert screen.getvalue() == ""


@pytest.mark.parametrize("words", [["-f", "a.json"], ["diff", "a.json", "a.json"]], ids=lambda words: words[0])
def test_the_line_is_gone_before_anything_is_said(
    words: list[str], clock: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = [pod(f"p{number}", container("app", "1")) for number in range(1000)]
    (tmp_path / "a.json").write_text(listed(node(), *pods))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress.time, "monotonic", itertools.count(100.0, 3.0).__next__)
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    assert run([*words, "-o", "json=b.json"]) == 0
    assert [part for part in screen.getvalue().split("\r\x1b[K") if "wrote" in part] == ["wrote json to b.json\n"]
    assert screen.getvalue().count("reading ") >= len(words) - 1


@pytest.mark.parametrize(
    ("words", "then"),
    [
        (["-f", "a.json", "-o", "json=b.json"], ["judging actions", "writing records"]),
        # The line would stand in the middle of what a terminal shows.
        (["-f", "a.json", "-o", "csv=b.csv", "-o", "json"], ["judging actions"]),
        (["-f", "a.json", "-o", "csv=b.csv", "-o", "json=/dev/null"], ["judging actions"]),
        (["diff", "a.json", "a.json", "-o", "json"], ["judging nodes", "judging pods", "comparing workloads"]),
    ],
)
def test_work_after_the_reading_is_shown_too(
    words: list[str], then: list[str], clock: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json").write_text(listed(node(), pod("a", container("app", "1"))))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress.time, "monotonic", itertools.count(100.0, 3.0).__next__)
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    assert run(words) == 0
    lines = [" ".join(line.split()[:2]) for line in screen.getvalue().split("\r\x1b[K")]
    done = [line for line in lines if line.startswith(("judging", "writing", "comparing"))]
    first = ["judging nodes", "judging pods"]
    assert [line for line, _ in itertools.groupby(done)] == [*first, *then]
