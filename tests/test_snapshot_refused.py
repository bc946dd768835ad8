"""Snapshots: what they cannot be asked, and what is said of a damaged one."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.collect import snapshot
from kubectl_cgaudit.collect.model import KubeletAnswers
from kubectl_cgaudit.errors import InputError, UsageError
from tests.snapshot_support import everything, secretive
from tests.support import GOLDEN, STATES, recorded


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["-f", "a.json", "-l", "app=web"],
            "-l asks for labels of pods, and a snapshot keeps none; leave -l out, or choose a namespace with -n",
        ),
        (
            ["-f", "a.json", "-l", "!app"],
            "-l asks for labels of pods, and a snapshot keeps none; leave -l out, or choose a namespace with -n",
        ),
        (
            ["-f", "a.json", "-f", str(GOLDEN / "nodes.json")],
            "-f a.json is a snapshot, which holds a whole cluster; give it alone",
        ),
        (
            ["-f", str(GOLDEN / "nodes.json"), "-f", "a.json"],
            "-f a.json is a snapshot, which holds a whole cluster; give it alone",
        ),
        (
            ["snapshot", "-f", "a.json", "-n", "x", "-o", "b.json"],
            "a snapshot holds all pods, as all of them compete, and who reads it may give -n; leave -n out here",
        ),
        (
            ["snapshot", "-f", "a.json", "-l", "x", "-o", "b.json"],
            "a snapshot holds all pods, as all of them compete, and who reads it may give -n; leave -l out here",
        ),
        (
            ["snapshot", "-f", "a.json", "--states", str(STATES), "-o", "b.json"],
            "a snapshot holds what the cluster says; give --states to the command that reads it",
        ),
        (
            ["verify", "-f", "a.json"],
            "verify needs the kubelets' answers; with -f add --kubelet=files:DIR, or give a snapshot taken with --kubelet",
        ),
    ],
)
def test_what_a_snapshot_cannot_be_asked(
    arguments: list[str],
    error: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_bytes(snapshot.encode(recorded()))
    assert run(arguments) == 2
    assert capsys.readouterr().err == f"error: {error}\n"
    assert not Path("b.json").exists()


def test_labels_are_refused_however_they_are_asked() -> None:
    for ask in (lambda labels: labels.get("a") == "b", lambda labels: "a" in labels):
        with pytest.raises(UsageError, match=r"^-l asks for labels of pods"):
            snapshot.decode(snapshot.encode(recorded()), "x", lambda _, labels, ask=ask: ask(labels), "")


def _damaged(change: Any) -> bytes:
    data = json.loads(snapshot.encode(secretive()))
    change(data)
    return json.dumps(data).encode()


def answered(node: str, **fields: Any) -> Any:
    said = KubeletAnswers(node=node, cgroup_version="v2", stats_from_spec=False, shares={}, config=None, problems=())
    return msgspec.to_builtins(replace(said, **fields))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (
            lambda data: data.update(schemaVersion="2.0"),
            "x is a snapshot of version 2.0, and this cgaudit reads 1.0; use the release that wrote it",
        ),
        (
            lambda data: data["cluster"].pop("pods"),
            "x is a damaged snapshot: Object missing required field `pods` - at `$.cluster`",
        ),
        (
            lambda data: data["cluster"]["pods"][0].update(overhead_milli=-1),
            "x is a damaged snapshot: overhead_milli of web-5d is no amount",
        ),
        (
            lambda data: data["cluster"]["pods"][0]["containers"][0].update(request_milli=1 << 63),
            "x is a damaged snapshot: request_milli of app is no amount",
        ),
        (
            lambda data: data["cluster"].update(pods=data["cluster"]["pods"] * 2),
            "x is a damaged snapshot: its pods are not each there once, in order",
        ),
        (
            lambda data: data["cluster"].update(nodes=data["cluster"]["nodes"] * 2),
            "x is a damaged snapshot: its nodes are not each there once, in order",
        ),
        (
            lambda data: data["cluster"]["nodes"][0].update(name=""),
            "x is a damaged snapshot: its nodes are not each there once, in order",
        ),
        (
            lambda data: data["cluster"]["pods"].insert(0, data["cluster"]["pods"][0] | {"name": ""}),
            "x is a damaged snapshot: its pods are not each there once, in order",
        ),
        (
            lambda data: data["cluster"].update(kubelets={"n1": answered("n2")}),
            "x is a damaged snapshot: the kubelet answers of n1 are not what a kubelet says",
        ),
        (
            lambda data: data["cluster"].update(kubelets={"n1": answered("n1", shares={"/kubepods": -1})}),
            "x is a damaged snapshot: the kubelet answers of n1 are not what a kubelet says",
        ),
    ],
)
def test_a_damaged_snapshot_is_an_error_and_no_traceback(change: Any, error: str) -> None:
    with pytest.raises(InputError) as raised:
        snapshot.decode(_damaged(change), "x", everything, "")
    assert str(raised.value).removesuffix(f"; {snapshot.REMEDY}") == error


def test_a_cut_off_snapshot_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(snapshot.encode(recorded())[:-50])
    assert run(["-f", str(path)]) == 1
    assert capsys.readouterr().err == (
        f"error: {path} is a damaged snapshot: Input data was truncated; {snapshot.REMEDY}\n"
    )


def test_the_help_names_no_flag_that_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["snapshot", "--help"]) == 0
    named = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", capsys.readouterr().out, re.MULTILINE)
    assert not {"--states", "--namespace", "--all-namespaces", "--selector"} & set(named)
    assert {"--filename", "--kubelet", "--context", "--output"} <= set(named)
    assert run(["snapshot", "-n", "shop", "-o", "-"]) == 2
    assert "leave -n out here" in capsys.readouterr().err
