"""The command line as a user meets it: flags, exit codes, errors, files."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
import yaml

from kubectl_cgaudit.cli.main import as_kubectl_takes_them, run
from kubectl_cgaudit.report import schema
from kubectl_cgaudit.report.formats import FORMATS
from tests.support import GOLDEN, RECORDED_FLAGS, container, node, pod


def listed(*objects: dict[str, object]) -> str:
    return json.dumps({"kind": "List", "items": list(objects)})


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    path.write_text(
        listed(
            node(), pod("p", container("app", "1"), labels={"app": "web"}), pod("q", container("c", "1"), namespace="b")
        )
    )
    return path


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "kubectl_cgaudit", *words]


def test_help_speaks_of_kubectl_cgaudit() -> None:
    done = subprocess.run(command("--help"), capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: kubectl cgaudit [OPTIONS]")
    assert "kubectl get nodes,pods -A -o json | kubectl cgaudit -f -" in done.stdout


@pytest.mark.parametrize("name", ["nodes", "tree", "explain", "convert", "verify"])
def test_every_command_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: kubectl cgaudit {name} [OPTIONS]")
    assert f"Example: kubectl cgaudit {name} " in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == "kubectl cgaudit 0.1.0\n"


def test_the_table_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    for flags in (RECORDED_FLAGS, RECORDED_FLAGS[:-2]):
        assert run(flags) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if len(line) > 80] == []
        assert any(line.startswith("shop/checkout deploy") for line in lines)


def test_the_table_answers_first_and_lists_the_worst_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(RECORDED_FLAGS) == 0
    text = capsys.readouterr().out
    assert text.index("5 of 15 workloads lose CPU priority") < text.index("NODE ") < text.index("WORKLOAD ")
    rows = [line.split()[0] for line in text.splitlines() if " deploy " in line or " sts " in line or " ds " in line]
    assert rows[:5] == [
        "shop/checkout",
        "data/postgres",
        "shop/payments",
        "kube-system/kube-proxy",
        "platform/node-exporter",
    ]
    assert "worker-c  v1 -> v2  3.7 : 1 -> 1.45 : 1  79% -> 59%    assumed" in text
    assert "Pods without a node are not predicted: platform/waiting-for-gpu." in text


def test_wide_says_in_words_what_a_runtime_does_not_change(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*RECORDED_FLAGS, "-o", "wide"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "has weight 12 in the one and 40 in the other, but both pods have weight 14, so neither pod gets more CPU"
        in text
    )
    assert "a new runc or crun changes no pod's CPU, only the split inside it" in text
    assert (
        "Thresholds: system-loss 10%, system-gain 10%, pod-move 5.0%, outweighed 10, outweighed-reserve 5, divisible 5."
        in text
    )


def test_json_is_what_the_schema_says(capsys: pytest.CaptureFixture[str]) -> None:
    written = (Path(schema.__file__).parent / "audit.schema.json").read_text()
    assert written == schema.text(), "run `make schema`"
    for flags in (RECORDED_FLAGS, RECORDED_FLAGS[:-2]):
        assert run([*flags, "-o", "json"]) == 0
        data = json.loads(capsys.readouterr().out)
        jsonschema.validate(data, json.loads(written), cls=jsonschema.Draft202012Validator)
        assert [*data][:3] == ["schemaVersion", "toolVersion", "generatedAt"]
        assert data["schemaVersion"] == "1.1"
        assert {"scenario", "coverage", "nodes", "workloads", "findings"} <= set(data)


def test_the_schema_refuses_what_is_not_an_audit(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*RECORDED_FLAGS, "-o", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    data["workloads"][0]["effects"] = ["fine"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, json.loads(schema.text()))


def test_yaml_holds_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*RECORDED_FLAGS, "-o", "json"]) == 0
    as_json = json.loads(capsys.readouterr().out)
    assert run([*RECORDED_FLAGS, "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == as_json


def test_several_formats_in_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = {
        name: tmp_path / f"audit.{name}" for name in ("json", "yaml", "csv", "markdown", "html", "wide", "table")
    }
    flags = [word for name, path in outputs.items() for word in ("-o", f"{name}={path}")]
    assert run([*RECORDED_FLAGS, *flags]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [f"wrote {name} to {path}" for name, path in outputs.items()]
    for path in outputs.values():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert any(name in path.read_text() for name in ("shop/checkout", '"checkout"', ",checkout,"))
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(path.name for path in outputs.values())


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    runs = []
    for number, seed in enumerate(("1", "2")):
        paths = [tmp_path / f"{number}.{name}" for name in ("json", "html", "markdown", "table", "wide", "yaml", "csv")]
        flags = [word for path in paths for word in ("-o", f"{path.suffix[1:]}={path}")]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run(command(*RECORDED_FLAGS, *flags), check=True, env=environment, capture_output=True)
        runs.append([path.read_bytes() for path in paths])
    assert runs[0] == runs[1]


def test_a_date_only_with_source_date_epoch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795221560")
    assert run([*RECORDED_FLAGS, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["generatedAt"] == "2026-11-21T00:39:20Z"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    assert run([*RECORDED_FLAGS, "-o", "json"]) == 2
    assert (
        capsys.readouterr().err
        == "error: SOURCE_DATE_EPOCH is 'soon', which is neither a time in seconds nor the word now\n"
    )


@pytest.mark.parametrize("before", [True, False], ids=["before", "behind"])
def test_flags_count_before_and_behind_a_command(before: bool, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*RECORDED_FLAGS, "tree", "worker-b"] if before else ["tree", "worker-b", *RECORDED_FLAGS]
    assert run([*words, "-o", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["cgroups"]
    assert {row["node"] for row in rows} == {"worker-b"}
    assert [row["now"]["weight"] for row in rows if row["cgroup"] == "/system.slice"] == [20]


def test_a_tree_row_of_an_open_node_has_its_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tree", "worker-c", *RECORDED_FLAGS[:-2], "-o", "json", "--to", "v2"]) == 0
    rows = json.loads(capsys.readouterr().out)["cgroups"]
    kubepods = next(row for row in rows if row["level"] == "kubepods")
    assert kubepods["now"] == {
        "version": None,
        "shares": 3788,
        "weight": None,
        "quota_us": None,
        "period_us": 100000,
        "share": None,
    }
    assert kubepods["after"]["weight"] == 145
    assert [(case["when"], case["now"]["weight"]) for case in kubepods["cases"]] == [
        ("cgroup v1, linear runtime", None),
        ("cgroup v1, quadratic runtime", None),
        ("cgroup v2, linear runtime", 145),
        ("cgroup v2, quadratic runtime", 145),
    ]


def test_tree_draws_every_cgroup(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tree", "node/worker-b", *RECORDED_FLAGS]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "worker-b: cgroup v2 (assumed)"
    assert lines[1].split() == ["CGROUP", "WEIGHT", "CPU", "OF", "NODE", "QUOTA"]
    assert lines[2].split() == ["system.slice", "20", "13%"]
    assert "│  └─ exporter" in "\n".join(lines)
    assert next(line for line in lines if "exporter" in line and "node" not in line).split()[3:] == [
        "1",
        "->",
        "6",
        "0.7%",
        "->",
        "1.4%",
        "25m",
        "->",
        "30m",
    ]


def test_explain_shows_the_arithmetic(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["explain", "edge/legacy-gateway-315cc6eec-8cb1d", *RECORDED_FLAGS]) == 0
    text = capsys.readouterr().out
    for line in (
        "how sure: cgroup version certain, kubelet certain, runtime assumed, system.slice hint",
        "allocatable CPU 3700m -> 3700 * 1024 // 1000 = 3788 shares -> 1 + ((3788 - 2) * 9999) // 262142 = weight 145",
        "kubepods: 145 / (145 + system.slice 100) = 59% of the node",
        "requests of 8 active Burstable pods 2413m -> 2413 * 1024 // 1000 = 2470 shares",
        "request envoy 300m + ext-authz 50m = 350m -> 358 shares -> 1 + ((358 - 2) * 9999) // 262142 = weight 14",
        "now: envoy: 12 / (12 + ext-authz 2) = 86% of the pod",
        "L = log2(307) = 8.2621: weight 40",
        "now: limit 77m * 100000 us / 1000 = 7700 us: the quota",
        "after: limit 77m * 100000 us / 1000 = 7700 us, rounded up to 8000 us: the quota",
        "pod: 5.7% -> 5.7% of the node's CPU; 0.139 -> 0.139 times system.slice",
    ):
        assert line in text


def test_explain_of_what_needs_no_move_says_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "-n", "edge", "gateway-8a6b3c5e6-24ef2", *RECORDED_FLAGS]) == 0
    text = capsys.readouterr().out
    assert text.count("NOW, AND NOTHING CHANGES") == 1
    assert "AFTER" not in text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["250m"], {"shares": 256, "linear": 10, "quadratic": 35, "back": 237, "requests": [[233, 258], [250, 258]]}),
        (
            ["--shares", "1024"],
            {"shares": 1024, "linear": 39, "quadratic": 100, "back": 998, "requests": [[976, 1000], [989, 1000]]},
        ),
        (["1"], {"shares": 1024, "linear": 39, "quadratic": 100, "back": 998, "requests": [[976, 1000], [989, 1000]]}),
    ],
)
def test_convert(words: list[str], expected: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", *words, "-o", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    weights = {entry["formula"]: entry for entry in data["weights"]}
    assert {
        "shares": data["shares"],
        "linear": weights["linear"]["weight"],
        "quadratic": weights["quadratic"]["weight"],
        "back": data["read_back_shares"],
        "requests": [entry["requests_milli"] for entry in data["weights"]],
    } == expected


def test_convert_a_weight_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", "--weight", "39"]) == 0
    assert capsys.readouterr().out == (
        "linear      cpu.weight 39 (0.39 x the default 100): the weight of shares 999..1024, requests 976..1000m\n"
        "quadratic   cpu.weight 39 (0.39 x the default 100): the weight of shares 295..305, requests 289..298m\n"
        "inverse     998 shares: what the kubelet and cAdvisor read back from weight 39\n"
    )


def test_namespace_and_selector_choose_what_is_reported_not_what_competes(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["-f", str(small), "-o", "json"]) == 0
    everything = json.loads(capsys.readouterr().out)
    for flags in (["-n", "default"], ["-l", "app=web"], ["-l", "app in (web), !x"]):
        assert run(["-f", str(small), *flags, "-o", "json"]) == 0
        chosen = json.loads(capsys.readouterr().out)
        (workload,) = chosen["workloads"]
        assert workload == next(each for each in everything["workloads"] if each["name"] == "p")
        assert chosen["coverage"]["filter"] != ""
    assert run(["-f", str(small), "-n", "b", "-A", "-o", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["workloads"]) == 2


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
        (["--threshold", "loss=1"], 2, "--threshold: there is no 'loss'; there are system-loss, "),
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
        (["-o", "json=/nowhere/x"], 1, "/nowhere/x cannot be written: No such file or directory; choose another path"),
        (["tree", "n9"], 1, "there is no node 'n9'; there are n1"),
        (["explain", "default/none"], 1, "there is no pod default/none; kubectl get pods -n default lists them"),
        (["explain", "p"], 2, "'p' names no namespace; write NAMESPACE/POD, or give -n NAMESPACE"),
        (["convert"], 2, "convert takes one of a CPU request such as 250m, --shares or --weight"),
        (["convert", "banana"], 2, "'banana' is not a CPU quantity such as 250m or 2"),
        (["convert", "--weight", "0"], 2, "--weight 0 is out of range; it must be 1..10000"),
        (["frobnicate"], 2, "No such command 'frobnicate'"),
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
    assert "states.yaml rule 2 matches no node." in capsys.readouterr().out


def test_incomplete_exits_with_3_and_says_so_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nodes.json"
    path.write_text(listed(node()))
    for name in ("table", "wide", "json", "yaml", "markdown", "html"):
        assert run(["-f", str(path), "-o", name]) == 3
        text = capsys.readouterr().out
        assert "there is no Pod in the input" in text
        assert "CGA001" in text
    assert run(["tree", "-f", str(path)]) == 3


def test_a_failed_write_leaves_the_old_report_and_no_rubbish(
    tmp_path: Path, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "kept.json"
    old.write_text("old")
    assert run(["-f", str(small), "-o", f"json={old}", "-o", f"yaml={tmp_path}"]) == 1
    assert "cannot be written: it is a directory; choose another path" in capsys.readouterr().err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["kept.json", "small.json"]


def test_a_link_is_written_through(tmp_path: Path, small: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    assert run(["-f", str(small), "-o", f"json={link}"]) == 0
    assert link.is_symlink()
    assert json.loads(real.read_text())["schemaVersion"] == "1.1"


def test_a_closed_pipe_is_no_error() -> None:
    script = (
        " ".join(f"'{word}'" for word in command(*RECORDED_FLAGS, "-o", "json"))
        + " | head -c 10 >/dev/null; exit ${PIPESTATUS[0]}"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode in (0, 141), done.stderr) == (True, "")


def test_a_closed_pipe_costs_no_report_file(tmp_path: Path) -> None:
    words = command(
        *RECORDED_FLAGS, "-o", "json", "-o", f"yaml={tmp_path / 'a.yaml'}", "-o", f"html={tmp_path / 'a.html'}"
    )
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        running.stdout.close()
        assert running.stderr is not None
        said = running.stderr.read()
    assert running.returncode == 141
    assert said == f"wrote yaml to {tmp_path / 'a.yaml'}\nwrote html to {tmp_path / 'a.html'}\n"
    assert yaml.safe_load((tmp_path / "a.yaml").read_text())["schemaVersion"] == "1.1"
    assert (tmp_path / "a.html").read_text().endswith("</html>\n")


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1"])
def test_a_report_to_standard_output_by_its_name_keeps_what_is_there(tmp_path: Path, name: str) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    with log.open("ab") as out:
        subprocess.run(
            command(*RECORDED_FLAGS, "-o", f"prometheus={name}"), stdout=out, stderr=subprocess.PIPE, check=True
        )
    assert log.read_text().startswith("before\n# HELP ")


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_run_that_is_told_to_end_cleans_up(tmp_path: Path, name: str, code: int) -> None:
    words = command(*RECORDED_FLAGS, "-o", f"json={tmp_path / 'a.json'}", "-o", f"yaml={tmp_path / 'pipe'}")
    os.mkfifo(tmp_path / "pipe")
    # Opening the pipe lets it go on; it then waits until somebody reads.
    with (
        subprocess.Popen(words, stderr=subprocess.DEVNULL) as running,
        (tmp_path / "pipe").open("rb"),
    ):
        while not [path for path in tmp_path.iterdir() if path.suffix == ".tmp"]:
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(getattr(signal, name))
        assert running.wait() == code
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe"]


def test_ctrl_c_leaves_no_traceback() -> None:
    running = subprocess.Popen(
        command("-f", "-"), stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    time.sleep(3)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=20)
    assert (running.returncode, out, err) == (130, "", "error: interrupted; nothing was written\n")


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


def test_starting_up_does_not_import_the_client() -> None:
    script = (
        "import sys; from kubectl_cgaudit.cli.main import run; run(sys.argv[1:]); sys.exit('kubernetes' in sys.modules)"
    )
    for words in (["--help"], ["convert", "1"], RECORDED_FLAGS):
        done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, check=False)
        assert done.returncode == 0


def test_reports_are_current() -> None:
    reports = GOLDEN.parent.parent / "reports"
    for name in ("html", "markdown"):
        path = reports / f"recorded-cluster.{'md' if name == 'markdown' else name}"
        made = subprocess.run(command(*RECORDED_FLAGS, "-o", name), capture_output=True, check=True).stdout
        assert made == path.read_bytes(), "run `make reports`"


@pytest.mark.parametrize("name", FORMATS)
def test_what_programs_read_is_utf_8_on_every_machine(name: str, tmp_path: Path) -> None:
    objects = [node("größe"), pod("größe", container("c", "1"), on="größe")]
    (tmp_path / "c.json").write_text(json.dumps({"kind": "List", "items": objects}))
    flags = ["-f", str(tmp_path / "c.json"), "--to", "v2", "-o"]
    assert run([*flags, f"{name}={tmp_path / 'saved'}"]) == 0
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    printed = subprocess.run(command(*flags, name), capture_output=True, check=True, env=environment).stdout
    if name in ("table", "wide"):
        assert b"gr\\xf6\\xdfe" in printed
        assert printed.isascii()
    else:
        assert name == "prometheus" or "größe".encode() in printed  # It names nothing of the cluster.
        assert printed == (tmp_path / "saved").read_bytes()


def test_flags_before_a_command_and_behind_it_count_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes, pods = str(GOLDEN / "nodes.json"), str(GOLDEN / "pods.json")
    classes = ["-f", str(GOLDEN / "runtimeclasses.json")]
    assert run(["nodes", "-f", nodes, "-f", pods, *classes]) == 0
    expected = capsys.readouterr().out
    assert run(["-f", nodes, "-f", pods, "nodes", *classes]) == 0
    assert capsys.readouterr().out == expected
    data, text = (tmp_path / name for name in ("json", "text"))
    assert run(["-f", nodes, "-o", f"json={data}", "nodes", "-o", f"text={text}", "-f", pods, *classes]) == 0
    assert text.read_text() == expected
    assert len(json.loads(data.read_text())["nodes"]) == 3


@pytest.mark.parametrize("name", ["report", "diff", "convert", "version", "manifests"])
def test_what_reads_no_objects_takes_no_files_of_them(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-f", "x.json", name]) == 2
    assert capsys.readouterr().err == f"error: -f is no flag of {name}; leave it out\n"


KUBELETS = [*RECORDED_FLAGS[:-2], f"--kubelet=files:{GOLDEN}"]


def test_nodes_says_what_is_known_and_what_would_settle_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["nodes", *RECORDED_FLAGS[:-2], "--evidence"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == [
        "worker-a",
        "v2",
        "(certain)",
        "crun",
        "unknown",
        "v1.36.2",
        "linear",
        "(certain)",
        "weight",
        "100",
        "(hint)",
        "unknown",
    ]
    assert lines[3].split() == ["runc-old", "not", "quadratic", "(likely)"]
    piece = lines.index("  likely   runtime:runc-old is not quadratic: node.status.runtimeHandlers:")
    assert lines[piece + 1] == "           userNamespaces is false"
    advice = lines[lines.index("TO SETTLE THE UNKNOWNS, CHEAPEST FIRST") + 1 :]
    steps = " ".join(line.strip() for line in advice)
    assert [line[:2] for line in advice if line[0] != " "] == ["1.", "2.", "3."]
    assert steps.index("kubectl get events -A -o json") < steps.index("--states FILE") < steps.index("--kubelet=proxy")


def test_nodes_groups_equal_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "many.json"
    path.write_text(listed(*(node(f"n{number}") for number in range(9)), pod("p", container("c", "1"), on="n3")))
    states = tmp_path / "states.yaml"
    states.write_text("- {cgroup: v2, runtimes: {default: runc 1.3.6}}\n")
    assert run(["nodes", "-f", str(path), "--states", str(states)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:] == ["", "Of like nodes three are named: -o json names all."]
    assert lines[1].startswith("n0, n1, n2 and 6 more  v2 (assumed)  default  runc 1.3.6 (quadratic) (assumed)")


def test_the_kubelets_answers_settle_the_recorded_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["nodes", *KUBELETS, "-o", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {each["name"]: each["confidence"] for each in data["nodes"]} == {
        "worker-a": "certain",
        "worker-b": "certain",
        "worker-c": "unknown",
    }
    assert data["nodes"][1]["known"]["system_slice"] == {
        "value": "weight 20",
        "confidence": "certain",
        "source": "kubelet /configz: system-reserved-compressible is enforced on /system.slice with 500m CPU",
    }
    assert run([*KUBELETS]) == 0
    assert (
        "5 of 15 workloads lose CPU priority against system processes; worst is\n"
        "shop/checkout on worker-c, from 1.29 to 0.492 times system.slice (-62%; of the\n" in (capsys.readouterr().out)
    )


def test_verify_agrees_with_the_recorded_kubelets(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", *KUBELETS]) == 0
    assert capsys.readouterr().out == (
        "77 cgroups of 3 nodes compared with their kubelets: no difference.\n"
        "Kubelets do not show system.slice unless they are told to: its weight is not\n"
        "  verified.\n"
    )


def test_verify_exits_with_4_and_names_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    states = tmp_path / "states.yaml"
    states.write_text("- {match: {name: worker-a}, runtimes: {runc-old: runc 1.3.6}}\n")
    assert run(["verify", *KUBELETS, "--states", str(states)]) == 4
    text = capsys.readouterr().out
    assert text.startswith("77 cgroups of 3 nodes compared with their kubelets: 2 differences.\n")
    rows = [line.split() for line in text.splitlines() if "legacy-gateway" in line]
    assert rows == [
        ["worker-a", "container", "edge/legacy-gateway-315cc6eec-8cb1d/envoy", "40", "12"],
        ["worker-a", "container", "edge/legacy-gateway-315cc6eec-8cb1d/ext-authz", "11", "2"],
    ]
    assert run(["verify", *KUBELETS, "--states", str(states), "-o", "json"]) == 4
    assert len(json.loads(capsys.readouterr().out)["differences"]) == 2


def test_verify_compares_no_numbers_of_a_node_on_another_cgroup_version(
    capsys: pytest.CaptureFixture[str],
) -> None:
    states = str(GOLDEN.parent.parent / "docs" / "examples" / "wrong-states.yaml")
    assert run(["verify", *KUBELETS, "--states", states]) == 4
    assert capsys.readouterr().out == (
        "50 cgroups of 2 nodes compared with their kubelets: no difference.\n"
        "Kubelets do not show system.slice unless they are told to: its weight is not\n"
        "  verified.\n"
        "worker-b: cgroup v1 is predicted, its kubelet says v2. Nothing else of it is\n"
        "  compared; correct --states.\n"
    )
    assert run(["verify", *KUBELETS, "--states", states, "-o", "json"]) == 4
    data = json.loads(capsys.readouterr().out)
    assert data["contradicted"] == {"worker-b": "cgroup v1 is predicted, its kubelet says v2"}
    assert (data["differences"], data["notCompared"]) == ([], {})


@pytest.mark.parametrize(
    ("left", "code", "said"),
    [
        ((), 3, "worker-c: its kubelet showed 0 of 11 running containers. The others are not\n"),
        (
            ("app", "cart", "metrics", "shipper", "postgres"),
            3,
            "worker-c: its kubelet showed 5 of 11 running containers.",
        ),
        (("app", "cart", "metrics", "shipper", "postgres", "payments"), 0, "5 predicted cgroups were not shown: ended"),
    ],
)
def test_verify_takes_few_containers_for_no_proof_of_the_others(
    left: tuple[str, ...], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in GOLDEN.glob("worker-*.txt"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    cadvisor = tmp_path / "worker-c.metrics-cadvisor.txt"
    kept = [
        line
        for line in cadvisor.read_text().splitlines(keepends=True)
        if 'container=""' in line or "container=" not in line or any(f'container="{name}"' in line for name in left)
    ]
    cadvisor.write_text("".join(kept))
    assert run(["verify", *KUBELETS[:-1], f"--kubelet=files:{tmp_path}"]) == code
    text = capsys.readouterr().out
    assert said in text
    headline = text.splitlines()[0]
    assert headline.endswith("no difference in these." if code else "no difference.")


def test_a_kubelet_without_answers_makes_the_audit_incomplete_and_no_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in GOLDEN.glob("worker-[ab].*.txt"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert run([*RECORDED_FLAGS[:-2], f"--kubelet=files:{tmp_path}", "-o", "json"]) == 3
    data = json.loads(capsys.readouterr().out)
    assert [gap["what"] for gap in data["coverage"]["gaps"]] == ["kubelet of worker-c"]
    assert [each["confidence"] for each in data["nodes"]] == ["certain", "certain", "unknown"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ["verify"],
            2,
            "verify needs the kubelets' answers; with -f add --kubelet=files:DIR, or give a snapshot taken with --kubelet",
        ),
        (["--kubelet=ssh"], 2, "--kubelet: 'ssh' is not proxy, direct or files:DIR"),
        (
            ["--kubelet=proxy"],
            2,
            "-f reads files and --kubelet=proxy asks a cluster; save the answers and give --kubelet=files:DIR",
        ),
        (["--kubelet=files:/nowhere"], 1, "/nowhere cannot be read: No such file or directory; "),
    ],
)
def test_kubelet_flags_are_checked(
    words: list[str], code: int, message: str, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "-f", str(small)]) == code
    assert capsys.readouterr().err.startswith(f"error: {message}")


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (["-n=shop", "-l=app=web", "-o=csv"], ["-nshop", "-lapp=web", "-ocsv"]),
        (["-n", "shop", "--output=csv", "-f", "-"], ["-n", "shop", "--output=csv", "-f", "-"]),
        (["-n="], ["-n="]),
        (["--", "-n=shop"], ["--", "-n=shop"]),
    ],
)
def test_short_flags_with_an_equals_sign_as_kubectl_has_them(given: list[str], taken: list[str]) -> None:
    assert as_kubectl_takes_them(given) == taken


def test_a_namespace_behind_an_equals_sign_is_that_namespace(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*RECORDED_FLAGS, "-n=shop", "-o=csv"]) == 0
    first = capsys.readouterr().out
    assert run([*RECORDED_FLAGS, "-n", "shop", "-o", "csv"]) == 0
    assert capsys.readouterr().out == first
    assert first.count("\r\nshop,") == first.count("\r\n") - 1 > 10


@pytest.mark.parametrize("flags", [["-n", "shpo"], ["-l", "app=nope"]])
def test_a_filter_that_matches_nothing_is_no_pass(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*RECORDED_FLAGS, *flags, "-o", "json"]) == 3
    audit = json.loads(capsys.readouterr().out)
    (gap,) = audit["coverage"]["gaps"]
    assert gap["why"] == "there is none"
    assert [each["rule"] for each in audit["findings"] if each["rule"] == "CGA001"] == ["CGA001"]
    assert audit["verdict"]["sentence"].startswith("No pod was audited")
    assert run([*RECORDED_FLAGS, *flags, "--fail-on", "high"]) == 4


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
