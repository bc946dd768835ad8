"""Where reports go, and what a terminal, a pipe and a file get."""

import gzip
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from kubectl_cgaudit.cli import files, main, output, terminal
from kubectl_cgaudit.cli.output import Output
from kubectl_cgaudit.errors import CgauditError, PipeClosedError, UsageError
from kubectl_cgaudit.report.screen import NARROWEST, PLAIN, WIDEST
from tests.support import RECORDED_FLAGS, STATES, Terminal, recorded, saved


def raising(error: BaseException) -> Callable[..., None]:
    def call(*_: Any, **__: Any) -> None:
        raise error

    return call


def full(self: files._Leaving, data: Any) -> int:
    raise OSError(28, "No space left on device")


FORMATS = ("table", "json", "yaml", "html")


@pytest.mark.parametrize(
    ("values", "outputs"),
    [
        ((), (Output("table", None),)),
        (("json",), (Output("json", None),)),
        (("json=-",), (Output("json", None),)),
        (("json=a=b",), (Output("json", "a=b"),)),
        (("json=a", "yaml=b", "html"), (Output("json", "a"), Output("yaml", "b"), Output("html", None))),
    ],
)
def test_where_formats_go(values: tuple[str, ...], outputs: tuple[Output, ...]) -> None:
    assert output.parse(values, FORMATS) == outputs


@pytest.mark.parametrize(
    ("values", "error"),
    [
        (("xml",), "there is no format 'xml'; there are table, json, yaml, html"),
        (("json=",), "-o json=: the path is missing; write json=FILE"),
        (("json", "yaml"), "two formats cannot share standard output"),
        (("json=-", "yaml"), "two formats cannot share standard output"),
        (("json=a", "yaml=./a"), "two formats go to the same file"),
        (("json=a", "json=a"), "two formats go to the same file"),
    ],
)
def test_outputs_that_are_refused(values: tuple[str, ...], error: str) -> None:
    with pytest.raises(UsageError) as caught:
        output.parse(values, FORMATS)
    assert error in str(caught.value)


def test_standard_input_is_no_file_that_could_be_replaced() -> None:
    assert output.parse(("json=./-",), FORMATS, ("-",)) == (Output("json", "./-"),)
    with pytest.raises(UsageError, match=r"^-o \./x would replace what is read from there; choose another path$"):
        output.parse(("json=./x",), FORMATS, ("-", "x"))


def test_a_folder_that_was_removed_is_not_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert main.run([*RECORDED_FLAGS, "-o", "json=x"]) == 1
    assert capsys.readouterr() == (
        "",
        "error: x is nowhere: the folder this runs in was removed; go to one that is there\n",
    )


@pytest.mark.parametrize(
    ("said", "width"),
    [
        ("120", 120),
        ("0", 99),
        ("", 99),
        ("x", 99),
        ("-5", 99),
        ("٣٣٣", 99),
        ("1", NARROWEST),
        (str(WIDEST + 1), WIDEST),
        ("9" * 5000, WIDEST),
    ],
)
def test_the_width_of_the_screen(said: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((99, 9)))
    monkeypatch.setenv("COLUMNS", said)
    assert terminal.width(terminal=True) == width
    assert terminal.width(terminal=False) == (NARROWEST if width == 99 else width)


@pytest.mark.parametrize(
    ("variables", "on_a_terminal", "in_a_pipe"),
    [
        ({}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"FORCE_COLOR": ""}, True, False),
        ({"CLICOLOR_FORCE": "1", "TERM": "dumb"}, True, True),
    ],
)
def test_colour(
    variables: dict[str, str], on_a_terminal: bool, in_a_pipe: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (terminal.colour(terminal=True), terminal.colour(terminal=False)) == (on_a_terminal, in_a_pipe)


def test_files_are_plain_and_a_terminal_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert output.screen(Output("table", "f")) == PLAIN
    shown = output.screen(Output("table", None))
    assert (shown.colour, shown.drawing, shown.terminal) == (True, True, True)
    monkeypatch.setattr(sys, "stdout", Terminal(terminal=False, encoding="ascii"))
    shown = output.screen(Output("table", None))
    assert (shown.colour, shown.drawing, shown.terminal) == (True, False, False)
    monkeypatch.setattr(sys, "stdout", None)
    assert output.screen(Output("table", None)) == PLAIN


def test_a_closed_or_full_standard_output_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(CgauditError, match=r"^standard output is closed; write to a file with -o FORMAT=FILE$"):
        output.show("x")
    for error, why in ((OSError(28, "No space left on device"), "No space left on device"), (OSError("odd"), "odd")):
        monkeypatch.setattr(sys, "stdout", io.StringIO())
        monkeypatch.setattr(click, "echo", raising(error))
        with pytest.raises(CgauditError, match=f"^standard output cannot be written: {why}; write to a file with "):
            output.show("x")
        # The interpreter would complain again when it flushes at exit.
        assert sys.stdout is None


def test_a_reader_that_goes_costs_no_file_and_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []

    def gone(text: str) -> None:
        told.append(text)
        raise PipeClosedError

    monkeypatch.setattr(output, "_shower", lambda _: gone)
    path = tmp_path / "a.json"
    with pytest.raises(PipeClosedError):
        output.deliver_audit(saved(recorded(), STATES.read_text()), [Output("csv", None), Output("json", str(path))])
    assert path.read_text().endswith("}\n")
    assert (len(told), capsys.readouterr().err) == (1, f"wrote json to {path}\n")
    with pytest.raises(PipeClosedError):
        output.deliver_audit(saved(recorded(), STATES.read_text()), [Output("csv", None)])
    assert len(told) == 2


def test_a_name_that_ends_with_gz_gets_gzip_which_is_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, once, twice = tmp_path / "a.json", tmp_path / "a.json.gz", tmp_path / "b.gz"
    words = [f"-ojson={path}" for path in (plain, once, twice)]
    assert main.run([*RECORDED_FLAGS, *words, f"-ohtml={tmp_path / 'a.html.gz'}"]) == 0
    packed = once.read_bytes()
    assert (gzip.decompress(packed), packed == twice.read_bytes()) == (plain.read_bytes(), True)
    # No name (flags 0), and no time.
    assert packed[:8] == b"\x1f\x8b\x08\0\0\0\0\0"
    assert len(packed) * 5 < plain.stat().st_size
    assert once.stat().st_mode & 0o777 == 0o600
    assert gzip.decompress((tmp_path / "a.html.gz").read_bytes()).startswith(b"<!doctype html>")
    assert main.run(["report", str(once), "-o", f"json={twice}"]) == 0
    assert twice.read_bytes() == packed
    capsys.readouterr()
    assert main.run([*RECORDED_FLAGS, "--baseline", str(once), "--fail-on", "low"]) == 0
    assert "Against the baseline a.json.gz: 0 new, 22 known, 0 gone." in capsys.readouterr().out


def test_what_is_written_at_once_is_packed_too(tmp_path: Path) -> None:
    path = tmp_path / "tree.gz"
    output.deliver([(Output("text", str(path)), "worker-a\n")])
    assert gzip.decompress(path.read_bytes()) == b"worker-a\n"


def test_gzip_is_written_while_the_report_is_made(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    with output._sink(Output("json", str(path))) as write:
        for number in range(200_000):
            write(f"{number * number:x}\n")
        (part,) = tmp_path.iterdir()
        assert (part != path, part.stat().st_size > files._BUFFER) == (True, True)
    assert gzip.decompress(path.read_bytes()).endswith(f"\n{199_999**2:x}\n".encode())


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError()])
def test_gzip_that_is_not_finished_is_not_there(error: BaseException, tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(b"old")

    def write() -> None:
        with output._sink(Output("json", str(path))) as sink:
            sink("new")
            raise error

    with pytest.raises((CgauditError, KeyboardInterrupt, ValueError)):
        write()
    assert ([each.name for each in tmp_path.iterdir()], path.read_bytes()) == (["a.gz"], b"old")


def test_gzip_on_a_full_disk_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(files._Leaving, "write", full)
    path = tmp_path / "a.json.gz"
    assert main.run([*RECORDED_FLAGS, "-o", f"json={path}"]) == 1
    said = capsys.readouterr().err
    assert said == f"error: {path} cannot be written: No space left on device; choose another path\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("buffer", [1, files._BUFFER], ids=["while it is written", "at its end"])
def test_of_several_files_the_one_that_fails_is_named(
    buffer: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(files, "_BUFFER", buffer)
    whole = files._Leaving.write

    def write(self: files._Leaving, data: Any) -> int:
        # One of them is on a disk that is full.
        return full(self, data) if b"<html" in bytes(data)[:400] else whole(self, data)

    monkeypatch.setattr(files._Leaving, "write", write)
    written, failing = tmp_path / "a.json", tmp_path / "a.html"
    assert main.run([*RECORDED_FLAGS, "-o", f"html={failing}", "-o", f"json={written}"]) == 1
    said = capsys.readouterr().err
    why = "No space left on device; choose another path"
    assert said == f"wrote json to {written}\nerror: {failing} cannot be written: {why}\n"
    # Neither it nor a part of it is there, and the other is.
    assert list(tmp_path.iterdir()) == [written]
