"""What a single condition decides on the command line: exit codes, what is refused, files that are whole, the screen."""

import io
import os
import stat
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
import pytest

from kubectl_cgaudit.cli import completion, files, main, names, options, output, policy, progress
from kubectl_cgaudit.cli.codes import FOUND, INCOMPLETE
from kubectl_cgaudit.cli.output import Output
from kubectl_cgaudit.collect import live
from kubectl_cgaudit.collect.door import Answer
from kubectl_cgaudit.errors import CgauditError, PipeClosedError, UsageError
from kubectl_cgaudit.report.screen import NARROWEST, PLAIN, WIDEST
from tests.support import RECORDED_FLAGS, audited, cluster, container, node, pod, recorded_audit

NONE: dict[str, Any] = {
    "files": (),
    "states": None,
    "namespace": None,
    "all_namespaces": False,
    "selector": None,
    "kubeconfig": None,
    "context": None,
    "cluster": None,
    "user": None,
    "as_user": None,
    "as_groups": (),
    "request_timeout": "0",
    "kubelet": None,
    "kubelet_insecure_tls": False,
}


def source(**flags: Any) -> options.Source:
    return options.source(NONE | flags)


@pytest.mark.parametrize(
    ("flag", "value", "shown"),
    [
        ("kubeconfig", "x", "--kubeconfig"),
        ("context", "x", "--context"),
        ("cluster", "x", "--cluster"),
        ("user", "x", "--user"),
        ("as_user", "x", "--as"),
        ("as_groups", ("x",), "--as-group"),
    ],
)
def test_files_and_a_cluster_are_not_read_together(flag: str, value: Any, shown: str) -> None:
    with pytest.raises(UsageError, match=f"^-f reads files and {shown} speaks of a cluster; give one of them$"):
        source(files=("f",), **{flag: value})
    assert getattr(source(**{flag: value}), flag) == value


def test_standard_input_is_read_once() -> None:
    assert source(files=("-", "f")).files == ("-", "f")
    with pytest.raises(UsageError, match=r"^-f - can be given once: there is one standard input$"):
        source(files=("-", "f", "-"))


def test_an_empty_namespace_or_selector_is_none() -> None:
    found = source(namespace="", selector="")
    assert (found.namespace, found.selector) == (None, None)
    assert source(namespace="a", all_namespaces=True).namespace is None
    assert source(namespace="a").namespace == "a"


@pytest.mark.parametrize(
    ("kubelet", "flags", "refused"),
    [
        ("proxy", {}, ""),
        ("direct", {}, ""),
        ("files:d", {"files": ("f",)}, ""),
        ("files:d", {"as_user": "me"}, ""),
        ("proxy", {"as_user": "me", "as_groups": ("g",)}, ""),
        ("files:", {}, "'files:' is not proxy, direct or files:DIR"),
        ("folder", {}, "'folder' is not proxy, direct or files:DIR"),
        ("a-long-word", {}, "'a-long-word' is not proxy, direct or files:DIR"),
        ("", {}, "'' is not proxy, direct or files:DIR"),
        ("proxy", {"files": ("f",)}, "--kubelet=proxy asks a cluster"),
        ("direct", {"files": ("f",)}, "--kubelet=direct asks a cluster"),
        ("direct", {"as_user": "me"}, "asks as yourself"),
        ("direct", {"as_groups": ("g",)}, "asks as yourself"),
    ],
)
def test_how_kubelets_may_be_asked(kubelet: str, flags: dict[str, Any], refused: str) -> None:
    if not refused:
        assert source(kubelet=kubelet, **flags).kubelet == kubelet
        return
    with pytest.raises(UsageError) as error:
        source(kubelet=kubelet, **flags)
    assert refused in str(error.value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", None),
        ("0s", None),
        ("7", 7.0),
        ("9999999", 9_999_999.0),
        ("30s", 30.0),
        ("0.5s", 0.5),
        ("2m", 120.0),
        ("1h", 3600.0),
        ("1h2m3s", 3723.0),
    ],
)
def test_a_request_timeout_in_seconds(text: str, seconds: float | None) -> None:
    assert source(request_timeout=text).timeout_seconds == seconds


@pytest.mark.parametrize("text", ["", "10000000", "٣", "1.5", "-1", "1d", "s", "3s1m"])
def test_a_request_timeout_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--request-timeout: '.*' is not a time such as 30s or 1m$"):
        source(request_timeout=text)


@pytest.mark.parametrize(
    ("kubelet", "insecure", "asked"),
    [
        (None, False, None),
        ("files:d", False, None),
        ("proxy", False, live.Kubelets(direct=False, insecure=False, seconds=7.0)),
        ("direct", False, live.Kubelets(direct=True, insecure=False, seconds=7.0)),
        ("direct", True, live.Kubelets(direct=True, insecure=True, seconds=7.0)),
    ],
)
def test_what_the_flags_make_of_a_live_cluster(
    kubelet: str | None, insecure: bool, asked: live.Kubelets | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    found = cluster(node(), pod("p", container("c")))
    monkeypatch.setattr(live, "read", lambda *words, **more: given.append((words, more)) or found)
    monkeypatch.setattr(options, "_with_saved", lambda read, chosen: read)
    flags = {"kubeconfig": "k", "context": "c", "cluster": "l", "user": "u", "as_user": "a", "as_groups": ("g",)}
    chosen = source(
        kubelet=kubelet,
        kubelet_insecure_tls=insecure,
        request_timeout="7",
        namespace="shop",
        selector="app=web",
        **{} if kubelet == "direct" else flags,
    )
    assert options.collect(chosen, lambda what, done, total: None, measured=False) is found
    (((connection, namespace, selects, words, _, kubelets), more),) = given
    if kubelet != "direct":
        assert connection == live.Connection("k", "c", "l", "u", "a", ("g",), 7.0)
    assert (namespace, words, kubelets) == ("shop", "namespace shop, pods with app=web", asked)
    # What the answers of kubelets are compared with is kept wherever there are any.
    assert more == {"measured": kubelet is not None}
    assert [selects(where, {"app": what}) for where in ("shop", "b") for what in ("web", "db")] == [
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("flags", "words", "chosen"),
    [({}, "", [1, 1]), ({"namespace": "a"}, "namespace a", [1, 0]), ({"selector": "x"}, "pods with x", [0, 0])],
)
def test_what_is_selected(flags: dict[str, Any], words: str, chosen: list[int]) -> None:
    selects, said = options._selection(source(**flags))
    assert (said, [selects(namespace, {}) for namespace in ("a", "b")]) == (words, chosen)


@pytest.mark.parametrize("flag", ["policy", "baseline"])
def test_no_second_reader_of_standard_input(flag: str) -> None:
    with pytest.raises(UsageError, match=f"^--{flag} - would share standard input; give the path of a file$"):
        policy.read("-" if flag == "policy" else None, "-" if flag == "baseline" else None, "none")


@pytest.mark.parametrize("said", ["x", "1e5", "9" * 12, "9" * 30, "-" + "9" * 30, "9" * 5000])
def test_a_time_that_is_none_is_wrong_usage(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", said)
    with pytest.raises(UsageError, match=r"which is neither a time in seconds nor the word now$"):
        policy.epoch()


def test_the_time_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "")
    assert policy.epoch() is None
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert policy.epoch() == datetime(1970, 1, 1, tzinfo=timezone.utc)
    assert str(policy._today()) == "1970-01-01"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "now")
    now = policy.epoch()
    assert now is not None
    assert (now.microsecond, now.tzinfo) == (0, timezone.utc)
    assert abs((datetime.now(timezone.utc) - now).total_seconds()) < 60


@pytest.mark.parametrize(
    ("level", "code", "said"),
    [
        ("none", 0, ""),
        ("critical", 0, ""),
        ("high", FOUND, "--fail-on: 5 findings of severity high or worse\n"),
    ],
)
def test_what_fails_an_audit(level: str, code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert policy.exit_code(recorded_audit(), policy.read(None, None, level)) == code
    assert capsys.readouterr().err == said


def test_nothing_is_worse_than_critical(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_cgaudit.judge.standing.at_or_above", lambda findings, severity: 1)
    assert policy.exit_code(recorded_audit(), policy.read(None, None, "critical")) == FOUND
    assert capsys.readouterr().err == "--fail-on: 1 finding of severity critical\n"


def test_an_incomplete_audit_is_no_pass() -> None:
    half = audited(cluster(node(), pod("p", container("c", "1"), on="gone")))
    assert policy.exit_code(half, policy.read(None, None, "none")) == INCOMPLETE == 3


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
            OSError(28, "No space left on device"),
            1,
            "standard output cannot be written: No space left on device; write to a file with -o FORMAT=FILE",
        ),
        (OSError("odd"), 1, "standard output cannot be written: odd; write to a file with -o FORMAT=FILE"),
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


@pytest.mark.parametrize("error", [PipeClosedError(), BrokenPipeError()])
def test_a_reader_that_is_gone_ends_the_run_in_silence(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(main.group, "main", raising(error))
    with (tmp_path / "out").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert main.run([]) == 141
        # What is still to be flushed goes nowhere.
        out.write("late")
    assert (tmp_path / "out").read_text() == ""
    assert capfd.readouterr() == ("", "")


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
    assert "standard output cannot be written: No space left on device" in capsys.readouterr().err


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_its_owners_alone_whatever_was_there(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = tmp_path / ("n" * 240)
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


def test_a_descriptor_by_its_name_stays_open(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        log.write(b"before\n")
        log.flush()
        files.save(f"/dev/fd/{log.fileno()}", b"report\n")
        log.write(b"after\n")
    assert (tmp_path / "log").read_bytes() == b"before\nreport\nafter\n"


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


class Terminal(io.StringIO):
    encoding = "utf-8"  # type: ignore[assignment]

    def __init__(self, *, terminal: bool = True, encoding: str = "utf-8") -> None:
        super().__init__()
        self._terminal, self.encoding = terminal, encoding

    def isatty(self) -> bool:
        return self._terminal


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
    assert output._width(terminal=True) == width
    assert output._width(terminal=False) == (NARROWEST if width == 99 else width)


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
    assert (output._colour(terminal=True), output._colour(terminal=False)) == (on_a_terminal, in_a_pipe)


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
        output.deliver_audit(recorded_audit(), [Output("csv", None), Output("json", str(path))])
    assert path.read_text().endswith("}\n")
    assert (len(told), capsys.readouterr().err) == (1, f"wrote json to {path}\n")
    with pytest.raises(PipeClosedError):
        output.deliver_audit(recorded_audit(), [Output("csv", None)])
    assert len(told) == 2


def test_of_several_files_the_one_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = files._Leaving.write

    def write(self: files._Leaving, data: Any) -> int:
        # One of them is on a disk that is full.
        return full(self, data) if b"<html" in bytes(data)[:400] else whole(self, data)

    monkeypatch.setattr(files._Leaving, "write", write)
    written, failing = tmp_path / "a.json", tmp_path / "a.html"
    assert main.run([*RECORDED_FLAGS, "-o", f"html={failing}", "-o", f"json={written}"]) == 1
    said = capsys.readouterr().err
    assert said == f"error: {failing} cannot be written: No space left on device; choose another path\n"
    # Neither it nor a part of it is there.
    assert [path for path in tmp_path.iterdir() if path != written] == []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


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
    ("words", "printed"),
    [
        (("--to", "ru"), "runc=\nruntime\n:4\n"),
        (("--to", "runc"), "runc=\n:6\n"),
        (("--to", "v2,k"), "v2,kubelet=\n:6\n"),
        (("--to", "v2,kubelet=1.35,k"), "v2,kubelet=1.35,kubelet=\n:6\n"),
        (("--to", "./"), ":0\n"),
        (("--states", ""), ":0\n"),
        (("--kubelet", ""), "direct\nfiles:\nproxy\n:4\n"),
        (("--kubelet", "f"), "files:\n:6\n"),
        (("-o", "json=./"), ":0\n"),
        (("-o", "jso"), "json\n:4\n"),
    ],
)
def test_what_tab_offers(words: tuple[str, ...], printed: str) -> None:
    assert completion.complete(words) == printed


def test_no_candidate_brings_a_line_or_a_colour_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "of_kubeconfig", lambda given, section: ["ok", "two\nlines", "\x1b[31m"])
    assert completion.complete(("--context", "")) == "ok\n:4\n"
    monkeypatch.setattr(names, "of_kubeconfig", raising(CgauditError("no")))
    assert completion.complete(("--context", "")) == ":4\n"


def test_names_of_pods_are_asked_for_where_their_namespace_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "listed", lambda given, path: [path])
    assert list(names.pods({}, "sh")) == ["/api/v1/namespaces/"]
    assert list(names.pods({}, "a b/x/y")) == ["a b//api/v1/namespaces/a%20b/pods"]
    assert list(names.pods({"namespace": "a b"}, "x")) == ["/api/v1/namespaces/a%20b/pods"]


def test_names_are_those_of_the_list_and_none_where_files_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{"kind": "NodeList", "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]}'
    assert (names._names(Answer(200, body)), names._names(Answer(200, b"{}"))) == (["a", "b"], [])
    monkeypatch.setattr(names, "_ask", lambda given, path: ["x"])
    assert (names.listed({}, "/x"), names.listed({"files": ("f",)}, "/x")) == (["x"], [])
    monkeypatch.setattr(names, "_ask", raising(ValueError()))
    assert names.listed({}, "/x") == []
