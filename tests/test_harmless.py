"""Whatever a cluster calls things: no byte of any format acts on a terminal, nor on a CI runner that reads the log."""

import csv
import gzip
import io
import json
import os
import pty
import re
import shlex
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from kubectl_cgaudit.audit.saved import load
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.cli.terminal import WithoutCommands
from kubectl_cgaudit.plain import as_json, as_yaml
from kubectl_cgaudit.report.formats import BINARY, FORMATS
from tests.support import audited_with_actions, cluster, command, container, half_restarted, listed, node, pod

# A window title, a link, C1, DEL, bidi, zero-width, tag and other invisible characters, and commands of CI runners.
ACTING = (
    "\x1b]0;title\x07\x1b]8;;http://evil.example\x1b\\\x9b2J\x7f\u202e\u2066\u200b\ufeff\U000e0041\ue000\U0010ffff\ufe0f\u3164"
    "##[add-mask]x##vso[task.setvariable]y\n::error::z\r\n\u3000::set-output name=a::b"
)
NAMES = (f"::error::{ACTING}", f" \t\u00a0::add-mask::{ACTING}", ACTING)
FILE = "::error::\x1b[31m\u202e.json"
OTHER = f"other{FILE}"
"""The same with one pod less: of one state twice `diff` says one line."""
ROOT = Path(__file__).parent.parent
DATA = ("json", "yaml", "ndjson", "sarif")
VIEWS = ("text", "json", "yaml")
WORDS = {
    "audit": (FORMATS, ()),
    "nodes": (VIEWS, ("nodes",)),
    "tree": (VIEWS, ("tree",)),
    "explain": (VIEWS, ("explain", "owned", "-n", "SPACE")),
    "verify": (VIEWS, ("verify", "--kubelet=files:.")),
    "diff": (("table", "markdown", "json", "html", "yaml"), ("diff", OTHER, FILE)),
    "report": (FORMATS, ("report", "saved.json")),
}
CASES = [(name, each) for name, (formats, _) in WORDS.items() for each in formats if each not in BINARY]
TEXTS = [each for each in FORMATS if each not in BINARY]


def hostile(name: str, *, pods: int = 3) -> str:
    more = {
        "osImage": name,
        "kernelVersion": name,
        "containerRuntimeVersion": name,
        "labels": {name: name, "kubernetes.io/os": "linux"},
    }
    node_ = node(name, **more)
    node_["status"]["runtimeHandlers"] = [{"name": name, "features": {"userNamespaces": False}}]
    java = container(name, "1", "77m", image=f"openjdk:8-{name}")
    every = (
        pod(name, java, container("b", "50m"), on=name, namespace=name, runtimeClassName=name),
        pod("owned", container("c", "1"), on=name, namespace=name, owner=(f"Kind{name}", name)),
        pod("elsewhere", container("c", "1"), on=f"gone{name}", namespace=name),
    )
    return listed(
        node_,
        *every[:pods],
        {"kind": f"Other{name}", "metadata": {"name": name}},
    )


@pytest.fixture(params=NAMES, ids=["command", "command after blanks", "text"])
def name(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of everything in a hostile cluster. It lies in the current folder with its saved audit."""
    monkeypatch.chdir(tmp_path)
    name: str = request.param
    Path(FILE).write_text(hostile(name))
    Path(OTHER).write_text(hostile(name, pods=2))
    run(["-f", FILE, "-o", "json=saved.json"])
    return name


def words(command_: str, space: str, *more: str) -> list[str]:
    given = [word.replace("SPACE", space) for word in WORDS[command_][1]]
    return [*given, *(() if command_ in ("diff", "report") else ("-f", FILE)), *more]


def acting(text: str) -> set[str]:
    """What of a text acts: characters but for line breaks, and commands."""
    found = {each for each in text if unicodedata.category(each) in {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}}
    found |= {each for each in text if each in "\ufe0f\u3164"}
    return (found - {"\n"}) | {*re.findall(r"##[a-z]*\[", text)}


@pytest.mark.parametrize(("command_", "format_"), CASES)
def test_a_file_is_harmless_to_whoever_prints_it(
    command_: str, format_: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(words(command_, name, "-o", f"{format_}=out")) in (0, 3)
    said = capsys.readouterr()
    # What is said beside the report is harmless too.
    assert (said.out, acting(said.err)) == ("", set())
    text = Path("out").read_bytes().decode()
    assert acting(text.replace("\r\n", "\n") if format_ == "csv" else text) == set()
    # No cluster chooses what verify or Prometheus' metrics show of one that answers nothing.
    assert "title" in text or format_ == "prometheus" or command_ == "verify"


def test_data_is_what_it_was(name: str) -> None:
    for format_ in DATA:
        run(words("audit", name, "-o", f"{format_}=out.{format_}"))
    read = {each: Path(f"out.{each}").read_text() for each in DATA}
    audit = json.loads(read["json"])
    for loader in (yaml.SafeLoader, yaml.CSafeLoader):
        assert yaml.load(read["yaml"], Loader=loader) == audit
    assert [(each["name"], each["osImage"]) for each in audit["nodes"]] == [(name, name)]
    assert {each["namespace"] for each in audit["workloads"]} == {name}
    assert {json.loads(line)["namespace"] for line in read["ndjson"].splitlines()} == {name}
    results = json.loads(read["sarif"])["runs"][0]["results"]
    places = [place["logicalLocations"][0]["properties"] for each in results for place in each["locations"]]
    assert {each["namespace"] for each in places if "namespace" in each} == {name}
    for view in ("nodes", "tree", "explain"):
        for format_ in ("json", "yaml"):
            run(words(view, name, "-o", f"{format_}={view}.{format_}"))
        assert yaml.safe_load(Path(f"{view}.yaml").read_text()) == json.loads(Path(f"{view}.json").read_text())


def test_a_snapshot_is_harmless_and_what_it_was(name: str) -> None:
    run(["snapshot", "-f", FILE, "-o", "s.json"])
    run(["snapshot", "-f", FILE, "-o", "s.json.gz"])
    text = Path("s.json").read_text()
    assert (acting(text), gzip.decompress(Path("s.json.gz").read_bytes()).decode()) == (set(), text)
    assert [each["name"] for each in json.loads(text)["cluster"]["nodes"]] == [name]


@pytest.mark.parametrize(("command_", "format_"), CASES)
def test_no_line_of_a_log_is_a_command_to_a_runner(
    command_: str, format_: str, name: str, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run(words(command_, name, "-o", format_))
    usual = capsysbinary.readouterr().out.decode()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    run(words(command_, name, "-o", format_))
    written = [each.decode() for each in capsysbinary.readouterr()]
    for text in written:
        assert [line for line in text.splitlines() if line.strip().startswith("::")] == []
        assert re.findall(r"##[a-z]*\[", text) == []
    if format_ in DATA:
        assert written[0] == usual


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/stderr", "pipe"])
def test_what_leads_to_the_log_has_no_commands_either(path: str, name: str) -> None:
    flags = words("audit", name, "-o", f"wide={path}")
    if path == "pipe":
        os.mkfifo("pipe")
        flags = ["bash", "-c", 'cat pipe & "$@"; wait', "bash", *command(*flags)]
    else:
        flags = command(*flags)
    environment = {**os.environ, "GITHUB_ACTIONS": "true", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(flags, env=environment, capture_output=True, text=True, check=False)
    assert "title" in (done.stderr if path == "/dev/stderr" else done.stdout)
    assert [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip().startswith("::")] == []


def test_commands_to_copy_hold_names_as_one_word() -> None:
    """No name of an object runs anything in the shell of who pastes a command."""
    name = "n; $(reboot) `x` 'y'"
    found = audited_with_actions(cluster(node(name), pod("p", container("c", "1"), on=name)), "", "v2")
    said = [each.command for question in found.questions for each in question.commands]
    debug = [each for each in said if each.startswith("kubectl debug ")]
    assert debug
    assert {shlex.split(each)[2] for each in debug} == {f"node/{name}"}
    # Pods that an earlier runtime created are to be deleted.
    (action,) = audited_with_actions(half_restarted(namespace=name), "- {cgroup: v2}", "v2").actions
    assert [shlex.split(line) for line in action.run] == [
        ["kubectl", "delete", "pod", "-n", name, each] for each in ("p3", "p4")
    ]


TEXT = "a\n ::error::b\n:\n::x\n\t\n::::\ny::z"


@pytest.mark.parametrize("length", range(1, len(TEXT)))
def test_a_command_may_come_in_pieces(length: int) -> None:
    written: list[str] = []
    write = WithoutCommands(written.append)
    for at in range(0, len(TEXT), length):
        write(TEXT[at : at + length])
    text = "".join(written)
    assert [line for line in text.splitlines() if line.strip().startswith("::")] == []
    assert text.replace("\\x3a", ":") == TEXT


@pytest.fixture
def terminal() -> Iterator[tuple[str, list[bytes]]]:
    """A terminal by its path, and what was written there."""
    ours, theirs = pty.openpty()
    written: list[bytes] = []

    def read() -> None:
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                return
            if not piece:
                return
            written.append(piece)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    yield os.ttyname(theirs), written
    os.close(theirs)
    reader.join(10)
    os.close(ours)


@pytest.mark.parametrize("format_", TEXTS)
def test_a_terminal_by_another_name_is_still_one(format_: str, name: str, terminal: tuple[str, list[bytes]]) -> None:
    """As /dev/tty is: nothing but line breaks acts there."""
    path, written = terminal
    Path("link").symlink_to(path)
    run(words("audit", name, "-o", f"{format_}={path}"))
    run(words("audit", name, "-o", "prometheus=link"))
    while b"cgaudit_findings{" not in b"".join(written):
        time.sleep(0.01)
    text = b"".join(written).decode().replace("\r", "")
    assert acting(text) == set()
    assert "title" in text or format_ == "prometheus"


@pytest.mark.parametrize("format_", BINARY)
def test_a_format_that_is_no_text_goes_to_no_terminal_and_no_log(
    format_: str,
    name: str,
    terminal: tuple[str, list[bytes]],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Names stand in it as they are: nothing can be written as an escape."""
    path, written = terminal
    Path("link").symlink_to(path)
    for each in (path, "link"):
        assert run(words("audit", name, "-o", f"{format_}={each}")) == 1
        said = f"error: {each} is a terminal, and {format_} is not for one; choose another path\n"
        assert (capfd.readouterr(), written) == (("", said), [])
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for where, log in ((format_, "standard output"), (f"{format_}=/dev/stderr", "/dev/stderr")):
        done = subprocess.run(
            command(*words("audit", name, "-o", where)),
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=False,
        )
        instead = "write to a file with -o FORMAT=FILE" if log == "standard output" else "choose another path"
        said = f"error: {format_} is no text, and {log} may be the log of this job; {instead}\n"
        assert (done.returncode, done.stdout, done.stderr.decode()) == (1, b"", said)
    assert run(words("audit", name, "-o", f"{format_}=out")) == 3
    assert Path("out").stat().st_size > 0


def test_formats_that_are_no_text_hold_what_the_cluster_says(name: str) -> None:
    run(words("audit", name, "-o", "parquet=out.parquet", "-o", "audit=out.cgaudit", "-o", "ndjson=out.ndjson"))
    table = pl.read_parquet("out.parquet")
    assert table.to_dicts() == [json.loads(line) for line in Path("out.ndjson").read_text().splitlines()]
    assert {*table["namespace"], *table["node"], *table["handler"]} == {name, "default"}
    assert {*table["pod"], *table["workload"], *table["workload_kind"]} == {name, "owned", "Pod", f"Kind{name}"}
    # What is made of these names is as harmless as of any other cluster.
    loaded = load(Path("out.cgaudit").read_bytes(), "out.cgaudit")
    assert [(each.name, each.os_image) for each in loaded.audit.nodes] == [(name, name)]
    for format_ in TEXTS:
        assert run(["report", "out.cgaudit", "-o", f"{format_}=out.{format_}"]) == 3
        text = Path(f"out.{format_}").read_bytes().decode()
        assert acting(text.replace("\r\n", "\n") if format_ == "csv" else text) == set(), format_


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (("snapshot", "-o", "{}"), 2, "a snapshot is not for a terminal; write it to a file with -o FILE.json.gz"),
        (
            ("snapshot", "-o", "link.json"),
            2,
            "a snapshot is not for a terminal; write it to a file with -o FILE.json.gz",
        ),
        (("-o", "json=link.json.gz"), 1, "link.json.gz is a terminal, and gzip is not for one; choose another path"),
    ],
)
def test_gzip_is_not_for_a_terminal(
    flags: tuple[str, ...],
    code: int,
    said: str,
    small: Path,
    tmp_path: Path,
    terminal: tuple[str, list[bytes]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path, written = terminal
    for name in ("link.json", "link.json.gz"):
        Path(name).symlink_to(path)
    assert run([*(word.format(path) for word in flags), "-f", str(small)]) == code
    assert (capsys.readouterr(), written) == (("", f"error: {said}\n"), [])


def test_standard_output_by_its_name_is_a_terminal_too(small: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        flags = [sys.executable, "-m", "kubectl_cgaudit", "snapshot", "-f", str(small), "-o", name]
        done = subprocess.run(flags, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False)
        why = "a snapshot is not for a terminal; write it to a file with -o FILE.json.gz"
        assert (done.returncode, done.stderr) == (2, f"error: {why}\n")
    os.close(theirs)
    os.close(ours)


def test_yaml_folds_no_text_and_quotes_what_begins_with_a_colon() -> None:
    long = "word " * 30 + "::error::x " + "word " * 30
    value: dict[str, Any] = {"::a": "::b", "c": long, "d": "line\n::error::x", ":e": [":f", "g:h"]}
    text = as_yaml(value)
    assert [line for line in text.splitlines() if line.strip(" -").startswith(":")] == []
    assert yaml.safe_load(text) == json.loads(as_json(value)) == value


def test_csv_rows_begin_with_no_command(name: str) -> None:
    run(words("audit", name, "-o", "csv=out.csv"))
    with io.StringIO(Path("out.csv").read_bytes().decode(), newline="") as text:
        rows = list(csv.reader(text))
    assert len(rows) > 3
    assert [row for row in rows if row[0].strip().startswith("::")] == []
