"""Tab completion as kubectl asks for it: an executable, its arguments, its output."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from kubectl_cgaudit.cli import completion, names
from kubectl_cgaudit.cli.commands import COMMANDS, hidden, load
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.collect.http import Answer
from kubectl_cgaudit.errors import CgauditError
from kubectl_cgaudit.report.formats import OF_AN_AUDIT
from tests.vcr_support import Reply, a_list, a_status, kubeconfig, serve

ROOT = Path(__file__).parent.parent
CANDIDATE = re.compile(r"[^\t\n]+(\t[^\t\n]+)?")


def ask(*words: str, home: Path, path: str = "") -> tuple[list[str], str]:
    """Candidates without their descriptions, and the directive, from a process of its own."""
    environment = {"HOME": str(home), "PATH": path or os.environ["PATH"]}
    command = [sys.executable, "-c", "from kubectl_cgaudit.cli.completion import main; main()", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=30, check=True)
    assert done.stderr == ""
    *candidates, directive = done.stdout.splitlines()
    assert all(CANDIDATE.fullmatch(each) for each in candidates)
    return [each.partition("\t")[0] for each in candidates], directive


def press_again(*words: str, home: Path) -> tuple[list[str], str]:
    """What somebody sees who presses Tab until there is something: on a busy machine two seconds are too few at first."""
    for _ in range(10):
        found = ask(*words, home=home)
        if found[0]:
            break
    return found


def api(path: str) -> Reply:
    listed = {
        "/api/v1/namespaces": ("Namespace", ["shop", "batch", "shop-test"]),
        "/api/v1/nodes": ("Node", ["worker-b", "worker-a", "bad\x1b[31mname"]),
        "/api/v1/namespaces/shop/pods": ("Pod", ["checkout-1", "cart-2"]),
    }
    kind, found = listed[path.partition("?")[0]]
    return a_list(kind, *({"metadata": {"name": name}} for name in found))


def test_commands_and_flags(tmp_path: Path) -> None:
    commands, directive = ask("", home=tmp_path)
    assert commands == sorted(name for name in COMMANDS if not hidden(name))
    assert directive == ":4"
    assert ask("no", home=tmp_path) == (["nodes"], ":4")
    assert ask("nodes", "--ev", home=tmp_path) == (["--evidence"], ":4")
    assert ask("--request", home=tmp_path) == (["--request-timeout"], ":4")


@pytest.mark.parametrize(
    "words",
    [
        ("-f", ""),
        ("--states", "st"),
        ("--to", "./"),
        ("--kubeconfig", ""),
        ("diff", ""),
        ("diff", "a.json", ""),
        ("diff", "--states-after", ""),
        ("snapshot", "-o", ""),
        ("-o", "json="),
        ("-o", "json=rep"),
        ("report", ""),
    ],
)
def test_every_place_of_a_file_is_left_to_the_shell(words: tuple[str, ...], tmp_path: Path) -> None:
    assert ask(*words, home=tmp_path) == ([], ":0")


@pytest.mark.parametrize("shell", [">/dev/full", ">&-", "| true; exit ${PIPESTATUS[0]}"])
def test_where_nothing_can_be_printed_nothing_is_said(shell: str) -> None:
    script = f"{sys.executable} -c 'from kubectl_cgaudit.cli.completion import main; main()' no {shell}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_values_that_are_known_beforehand(tmp_path: Path) -> None:
    assert ask("-o", "", home=tmp_path) == (sorted(OF_AN_AUDIT), ":4")
    assert ask("tree", "-o", "j", home=tmp_path) == (["json"], ":4")
    assert ask("--to", "v2,k", home=tmp_path) == (["v2,kubelet="], ":6")
    assert ask("nodes", "--kubelet", "", home=tmp_path) == (["direct", "files:", "proxy"], ":4")
    assert ask("manifests", "--kubelet", "", home=tmp_path) == (["direct"], ":4")
    assert ask("manifests", "--sink", "", home=tmp_path) == (["none", "pvc"], ":4")
    assert ask("manifests", "--to", "./", home=tmp_path) == ([], ":4")
    assert ask("--threshold", "out", home=tmp_path) == (["outweighed-reserve=", "outweighed="], ":6")


def test_contexts_of_the_kubeconfig(tmp_path: Path) -> None:
    entries = [
        {"name": name, "context": {"cluster": "c"}} for name in ("prod", "arn:aws:eks:eu:1:cluster/x", "new\nline")
    ]
    config = tmp_path / "config"
    config.write_text(
        yaml.safe_dump({"contexts": entries, "clusters": [{"name": "c", "cluster": {"server": "https://c"}}]})
    )
    assert ask("--kubeconfig", str(config), "--context", "", home=tmp_path) == (
        ["arn:aws:eks:eu:1:cluster/x", "prod"],
        ":4",
    )
    assert ask("nodes", "--kubeconfig", str(config), "--cluster", "", home=tmp_path) == (["c"], ":4")


def test_names_of_the_cluster(tmp_path: Path) -> None:
    with serve(api) as server:
        config = kubeconfig(tmp_path / "config", server.url)
        flag = ("--kubeconfig", config)
        assert press_again(*flag, "-n", "sh", home=tmp_path) == (["shop", "shop-test"], ":4")
        assert press_again("tree", *flag, "", home=tmp_path) == (["worker-a", "worker-b"], ":4")
        assert press_again("explain", *flag, "sho", home=tmp_path) == (["shop-test/", "shop/"], ":6")
        assert press_again("explain", *flag, "shop/c", home=tmp_path) == (["shop/cart-2", "shop/checkout-1"], ":4")
        # A flag before the command is a flag of the command.
        assert press_again(*flag, "explain", "shop/ch", home=tmp_path) == (["shop/checkout-1"], ":4")
        # Who reads files does not mean the cluster.
        assert ask(*flag, "-f", "x.json", "-n", "sh", home=tmp_path) == ([], ":4")


def test_no_access_and_no_cluster_give_nothing(tmp_path: Path) -> None:
    with serve(lambda _: a_status(403, "forbidden")) as server:
        config = kubeconfig(tmp_path / "config", server.url)
        assert ask("tree", "--kubeconfig", config, "", home=tmp_path) == ([], ":4")
    assert ask("tree", "--kubeconfig", config, "", home=tmp_path) == ([], ":4")
    assert ask("tree", "", home=tmp_path) == ([], ":4")
    (tmp_path / "broken").write_text("{")
    assert ask("--kubeconfig", str(tmp_path / "broken"), "--context", "", home=tmp_path) == ([], ":4")
    assert ask("no-such-command", "", home=tmp_path)[1] in (":0", ":4")


def test_a_cluster_that_never_answers_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(path: str) -> Reply:
        time.sleep(1.5)
        return api(path)

    monkeypatch.setattr(names, "SECONDS", 0.1)
    with serve(never) as server:
        assert names.listed({"kubeconfig": kubeconfig(tmp_path / "config", server.url)}, "/api/v1/nodes") == []


def test_every_format_that_is_offered_is_taken(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    checked = []
    for name, command in {name: load(name) for name in COMMANDS}.items():
        if not any(parameter.name == "outputs" for parameter in command.params):
            continue
        offered, _ = ask(name, "-o", "", home=tmp_path)
        arguments = ["x" for each in command.params if isinstance(each, click.Argument) and each.required]
        assert run([name, *arguments, "-o", "nonsense"]) == 2
        said = capsys.readouterr().err.partition("there are ")[2].strip()
        assert sorted(said.split(", ")) == offered
        checked.append(name)
    assert sorted(checked) == sorted({*COMMANDS} - {"__complete", "snapshot"})


def test_the_script_for_kubectl_asks_the_plugin(tmp_path: Path) -> None:
    plugin = tmp_path / "kubectl-cgaudit"
    plugin.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kubectl_cgaudit "$@"\n')
    plugin.chmod(0o755)
    environment = {"HOME": str(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin"}
    command = [str(ROOT / "kubectl_complete-cgaudit"), "nodes", "--evi"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=30, check=True)
    assert done.stdout == "--evidence\tShow every piece of evidence.\n:4\n"


def raising(error: BaseException) -> Callable[..., None]:
    def call(*_: Any, **__: Any) -> None:
        raise error

    return call


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
