"""Mistakes on the command line: one sentence, an exit code, and no traceback."""

import json
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest
import yaml

from kubectl_cgaudit.cli.main import run
from tests.support import RECORDED_FLAGS, command

EACH = "name each file by itself (-f may be repeated)"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--to", "bananas"], 2, "--to: 'bananas' is neither a target nor a file; write v2, runtime, "),
        (["-o", "pdf"], 2, "-o: there is no format 'pdf'; there are table, wide, json, yaml, csv, markdown, html"),
        (["-o", "json="], 2, "-o json=: the path is missing; write json=FILE"),
        (
            ["-o", "json", "-o", "yaml"],
            2,
            "-o: two formats cannot share standard output; write all but one as FORMAT=FILE",
        ),
        (["-o", "json=x", "-o", "yaml=./x"], 2, "-o: two formats go to the same file; give each its own"),
        (["--threshold", "loss=1"], 2, "--threshold: there is no 'loss'; there are divisible, "),
        (
            ["--threshold", "system-loss=x"],
            2,
            "--threshold: system-loss: 'x' is not a positive part such as 0.1 or 10%",
        ),
        (
            ["--threshold", "outweighed=0"],
            2,
            "--threshold: outweighed: '0' is not a positive number such as 0.1, 10% or 5",
        ),
        (
            ["--threshold", "system-loss=15"],
            2,
            "--threshold: system-loss: nothing loses 1500% of what it has; write a part such as 0.1 or 10%",
        ),
        (
            ["--threshold", "pod-move=100%"],
            2,
            "--threshold: pod-move: nothing loses 100% of what it has; write a part such as 0.1 or 10%",
        ),
        (["-l", "a=(b"], 2, "-l: 'a=(b' is not a label selector; write it as in app=web,tier!=db,env in (a,b),!legacy"),
        (["--request-timeout", "soon"], 2, "--request-timeout: 'soon' is not a time such as 30s or 1m"),
        (["--context", "c"], 2, "-f reads files and --context speaks of a cluster; give one of them"),
        (["--sates", "x"], 2, "No such option '--sates'"),
        (
            ["--states", "none.yaml"],
            2,
            "the states file none.yaml cannot be read: No such file or directory; check the path",
        ),
        (["-f", "none.json"], 1, "none.json cannot be read: No such file or directory; check the path"),
        (["-f", "."], 1, f". is a directory; {EACH}"),
        (["-f", ""], 2, "-f is empty; give the path of a file, or leave the flag out"),
        (["--states", ""], 2, "--states is empty; give the path of a file, or leave the flag out"),
        (["nodes", "--states="], 2, "--states is empty; give the path of a file, or leave the flag out"),
        (["--policy="], 2, "--policy is empty; give the path of a file, or leave the flag out"),
        (["--baseline", ""], 2, "--baseline is empty; give the path of a file, or leave the flag out"),
        (
            ["-f", "no*.json"],
            1,
            f"there is no file no*.json, and a pattern is not looked up; {EACH}",
        ),
        (["-f", "y" * 300], 1, "y" * 300 + " cannot be read: File name too long; check the path"),
        (
            ["y" * 300],
            2,
            f"there is no command '{'y' * 300}'; see kubectl cgaudit --help; there are check, convert, diff, ",
        ),
        ([__file__], 2, f"{__file__} is a file and no command; give each file with its own -f"),
        (["-o", "json=/nowhere/x"], 1, "/nowhere/x cannot be written: No such file or directory; choose another path"),
        (["tree", "n9"], 1, "there is no node 'n9'; there are n1"),
        (["explain", "default/none"], 1, "there is no pod default/none; namespace default has p"),
        (["explain", "shop/"], 2, "'shop/' names no pod; write NAMESPACE/POD, or give -n NAMESPACE"),
        (["explain", "p"], 2, "'p' names no namespace; write NAMESPACE/POD, or give -n NAMESPACE"),
        (["convert"], 2, "convert takes one of a CPU request such as 250m, --shares or --weight"),
        (
            ["convert", "shares=256"],
            2,
            "'shares=256' is not a CPU quantity such as 250m or 2; for shares or a weight write --shares N or --weight N\n",
        ),
        (["convert", "--weight", "0"], 2, "--weight 0 is out of range; it must be 1..10000"),
        (["nodse"], 2, "there is no command 'nodse'; did you mean nodes?\n"),
        (
            ["get"],
            2,
            "there is no command 'get'; see kubectl cgaudit --help; there are check, convert, diff, explain, ",
        ),
    ],
)
def test_a_mistake_is_one_sentence_and_an_exit_code(
    words: list[str], code: int, message: str, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = [] if words[0] == "convert" else ["-f", str(small)]
    assert run([*source, *words]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"error: {message}")
    assert said.err.count("\n") == 1


def test_a_typo_in_the_states_file_exits_with_2(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    states = tmp_path / "states.yaml"
    states.write_text("- {cgruop: v2}\n")
    assert run(["-f", str(small), "--states", str(states)]) == 2
    assert capsys.readouterr().err == "error: states.yaml rule 1: there is no key 'cgruop'; did you mean cgroup?\n"


def test_a_rule_that_matches_no_node_is_noted(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    states = tmp_path / "states.yaml"
    states.write_text("- {cgroup: v2}\n- {match: {name: worker-*}, cgroup: v1}\n")
    assert run(["-f", str(small), "--states", str(states)]) == 0
    assert "states.yaml rule 2 matches no node" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["nodes"], ["nodes", "-o", "json"], ["tree"], ["explain", "default/p"]])
def test_the_other_commands_note_it_too(
    words: list[str], small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    states = tmp_path / "states.yaml"
    states.write_text("- {cgroup: v2, runtimes: {crnu: runc 1.3.6}}\n- {match: {name: worker-*}, cgroup: v1}\n")
    assert run([*words, "-f", str(small), "--states", str(states)]) == 0
    assert capsys.readouterr().err == (
        "check what was said: states.yaml rule 1 names the handler crnu, which no matching node has; there is default\n"
        "check what was said: states.yaml rule 2 matches no node\n"
    )


def test_without_a_kubeconfig_the_next_step_is_named(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KUBE")} | {"HOME": str(tmp_path)}
    done = subprocess.run(command(), capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1
    assert done.stderr.startswith("error: no kubeconfig found")
    assert "-f FILE" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_unreachable_server_is_reported_within_10_seconds(
    tmp_path: Path, pauses: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        config = tmp_path / "config"
        config.write_text(
            yaml.safe_dump(
                {
                    "current-context": "c",
                    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                    "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{port}"}}],
                    "users": [{"name": "u", "user": {"token": "t"}}],
                }
            )
        )
        assert run(["--kubeconfig", str(config)]) == 1
    # The port refuses at once, so that all the time it takes is what is waited between attempts.
    assert sum(pauses) < 10
    said = capsys.readouterr().err
    assert said.startswith(f"error: 127.0.0.1:{port} cannot be asked: connection refused; ")
    assert said.count("\n") == 1
    other = subprocess.run(
        command("--kubeconfig", str(config), "--context", "none"), capture_output=True, text=True, check=False
    )
    assert other.returncode == 1
    assert other.stderr == (
        "error: there is no context 'none' in the kubeconfig (there are: c); choose another with --context NAME\n"
    )


@pytest.mark.parametrize("name", ["report", "diff", "convert", "version", "manifests"])
def test_what_reads_no_objects_takes_no_files_of_them(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-f", "x.json", name]) == 2
    assert capsys.readouterr().err == f"error: -f is no flag of {name}; leave it out\n"


def test_a_flag_that_a_command_takes_itself_is_written_behind_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-o", "x.json.gz", "snapshot"]) == 2
    assert capsys.readouterr().err == "error: -o is written behind snapshot, not before it\n"


@pytest.mark.parametrize("flags", [["-n", "shpo"], ["-l", "app=nope"]])
def test_a_filter_that_matches_nothing_is_no_pass(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*RECORDED_FLAGS, *flags, "-o", "json"]) == 3
    audit = json.loads(capsys.readouterr().out)
    (gap,) = audit["coverage"]["gaps"]
    assert gap["why"] == "no pod does"
    assert [each["rule"] for each in audit["findings"] if each["rule"] == "CGA001"] == ["CGA001"]
    assert audit["verdict"]["sentence"].startswith("No pod was audited")
    assert run([*RECORDED_FLAGS, *flags, "--fail-on", "high"]) == 4


@pytest.mark.parametrize("words", [["nodes"], ["tree"], ["explain", "shop/checkout-d5491e7e7-37202"]])
def test_labels_choose_no_nodes(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """`nodes -l pool=blue` showed all nodes, and nothing said that the pool was not heeded."""
    assert run([*words, *RECORDED_FLAGS, "-l", "pool=blue"]) == 2
    assert capsys.readouterr().err == (
        "error: -l chooses the pods that an audit reports, not nodes, and would change nothing here; leave it out\n"
    )
    assert run([words[0], "--help"]) == 0
    assert "--selector" not in capsys.readouterr().out


def test_an_argument_that_is_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    """A file name in another encoding: no report could name it."""
    for arguments in (
        ["-f", "c\udcff.json"],
        [*RECORDED_FLAGS, "--kubelet=files:d\udcff"],
        ["report", "\udcff", "-o", "json"],
    ):
        assert run(arguments) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert re.fullmatch(
            r"error: the argument .*\\.* is not UTF-8; rename the file, or correct the name\n", said.err
        )
