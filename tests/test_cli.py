"""The command line as a user meets it: flags, exit codes, errors, files."""

import json
import os
import re
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest
import yaml
from msgspec.structs import replace

from kubectl_cgaudit.audit.model import Change
from kubectl_cgaudit.cli.main import as_kubectl_takes_them, run
from kubectl_cgaudit.plain import as_yaml
from kubectl_cgaudit.report.formats import FORMATS
from kubectl_cgaudit.report.records import audit_schema, record_schema
from tests.hostile import hand_made
from tests.pages_support import saved_audit
from tests.support import (
    GOLDEN,
    RECORDED_FLAGS,
    cluster,
    command,
    container,
    listed,
    node,
    pod,
    rendered,
    saved,
)


def test_help_speaks_of_kubectl_cgaudit() -> None:
    done = subprocess.run(command("--help"), capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: kubectl cgaudit [OPTIONS]")
    assert "kubectl get nodes,pods -A -o json | kubectl cgaudit -f -" in done.stdout


@pytest.mark.parametrize("name", ["nodes", "tree", "explain", "convert", "verify"])
def test_every_command_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: kubectl cgaudit {name} [OPTIONS]")
    assert re.search(rf"Examples?:\s+kubectl cgaudit {name} ", text)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == "kubectl cgaudit 0.1.0\n"


def test_the_table_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    for flags in (RECORDED_FLAGS, RECORDED_FLAGS[:-2]):
        assert run(flags) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if len(line) > 80] == []
        assert any("shop/checkout deploy" in line for line in lines)


def test_the_table_answers_first_and_lists_the_worst_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert run(RECORDED_FLAGS) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    first = "\n".join(lines[:10])
    for words in (
        "5 of 15",
        "worker-c",
        "79% -> 59%",
        "systemctl set-property system.slice CPUWeight=39",
        "CPU to spare",
    ):
        assert words in first
    assert len(lines) <= 60
    assert text.index("RESULT ") < text.index("WORKLOAD ") < text.index("ACTIONS") < text.index("\nNODE ")
    rows = [line.split()[:2] for line in lines if line.startswith(("- ", "~ ", "+ "))]
    assert rows[:9] == [
        ["-", "shop/checkout"],
        ["-", "data/postgres"],
        ["-", "shop/payments"],
        ["-", "kube-system/kube-proxy"],
        ["-", "platform/node-exporter"],
        ["~", "edge/canary-gateway"],
        ["~", "edge/legacy-gateway"],
        ["+", "platform/log-shipper"],
        ["+", "shop/cart"],
    ]
    assert "- shop/checkout deploy        1 of 3    worker-c  27% -> 20%        -62%    app 91% -> 85%" in lines
    assert "worker-c  v1 -> v2  79% -> 59%    3.7 -> 1.45    stated     stated" in lines


def test_wide_has_every_workload_and_finding(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run([*RECORDED_FLAGS, "-o", "wide"]) == 0
    wide = capsys.readouterr().out
    assert run([*RECORDED_FLAGS, "-o", "json"]) == 0
    audit = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in audit["workloads"] if f"{each['namespace']}/{each['name']} " not in wide] == []
    lines = wide.splitlines()
    for severity, count in audit["verdict"]["findings"].items():
        assert sum(line.startswith(f"{severity} CGA") for line in lines) == count


def test_json_is_what_the_schema_says(capsys: pytest.CaptureFixture[str]) -> None:
    docs = Path(__file__).parent.parent / "docs"
    for name, made in (("audit", audit_schema()), ("container", record_schema())):
        assert json.loads((docs / f"{name}.schema.json").read_text()) == json.loads(json.dumps(made)), (
            "run `make schema`"
        )
    for flags in (RECORDED_FLAGS, RECORDED_FLAGS[:-2]):
        assert run([*flags, "-o", "json"]) == 0
        data = json.loads(capsys.readouterr().out)
        jsonschema.validate(data, audit_schema(), cls=jsonschema.Draft202012Validator)
        assert [*data][:3] == ["schema", "toolVersion", "time"]
        assert data["schema"] == "cgaudit.audit/1"


def test_the_schema_refuses_what_is_not_an_audit(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*RECORDED_FLAGS, "-o", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    data["workloads"][0]["effects"] = ["fine"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, audit_schema())


def test_yaml_holds_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*RECORDED_FLAGS, "-o", "json"]) == 0
    as_json = json.loads(capsys.readouterr().out)
    assert run([*RECORDED_FLAGS, "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == as_json


@pytest.mark.parametrize("name", ["h" * 1030, "\U0001f600" * 300, '"\\' * 300, "\x85" * 300])
def test_yaml_holds_a_handler_of_any_name(name: str) -> None:
    audit = saved(cluster(node(), pod("p", container("c", "1"), runtimeClassName=name)))
    as_json = json.loads(rendered("json", audit))
    assert [*as_json["nodes"][0]["cases"][0]["before"]["runtimes"]] == [name]
    assert yaml.safe_load(rendered("yaml", audit)) == as_json


def test_yaml_has_numbers_as_yaml_1_1_takes_them_and_leaves_text_alone() -> None:
    audit = hand_made('":1e-8,"')
    tiny = Change('":1e-8,"', '":1e-8,"', None, "", 1e-8, -2.5e16, 3e16)
    audit = saved_audit(replace(audit, workloads=(replace(audit.workloads[0], against_system=tiny),)))
    text = rendered("yaml", audit)
    assert '"before":1.0e-8,"after":-2.5e+16,"change":3.0e+16}' in text
    assert yaml.safe_load(text) == json.loads(rendered("json", audit))


@pytest.mark.parametrize("name", ["1e3", "1.5E-3", ".5e3", "1_0e3", "0o17", "y", "N"])
def test_what_another_parser_takes_for_no_string_is_quoted_in_yaml(name: str) -> None:
    assert as_yaml({"source": name}) == f"source: '{name}'\n"


@pytest.mark.parametrize("name", ["1e3x", "0.1.0", "e3", "node", "0o8"])
def test_what_all_take_for_a_string_is_as_it_is(name: str) -> None:
    assert as_yaml({"source": name}) == f"source: {name}\n"


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
        assert any(name in path.read_text() for name in ("shop/checkout", '"checkout"', ",checkout,", "name: checkout"))
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


def test_every_report_carries_the_time_unless_it_is_to_be_reproducible(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795221560")
    assert run([*RECORDED_FLAGS, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["time"] == "2026-11-21T00:39:20Z"
    assert run([*RECORDED_FLAGS, "-o", "json", "--reproducible"]) == 0
    assert json.loads(capsys.readouterr().out)["time"] is None
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert run([*RECORDED_FLAGS, "-o", "json"]) == 0
    moment = datetime.fromisoformat(json.loads(capsys.readouterr().out)["time"])
    assert abs((datetime.now(UTC) - moment).total_seconds()) < 60
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
    for flags, amount in (["-A"], 2), (["-A=true"], 2), (["--all-namespaces=false"], 1):
        assert run(["-f", str(small), "-n", "b", *flags, "-o", "json"]) == 0
        assert len(json.loads(capsys.readouterr().out)["workloads"]) == amount
    assert run(["-f", str(small), "-A=maybe"]) == 2
    assert capsys.readouterr().err == (
        "error: Option '--all-namespaces' does not take a value; see kubectl cgaudit --help\n"
    )


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


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (["-n=shop", "-l=app=web", "-o=csv"], ["-nshop", "-lapp=web", "-ocsv"]),
        (["-n", "shop", "--output=csv", "-f", "-"], ["-n", "shop", "--output=csv", "-f", "-"]),
        (["-n="], ["-n="]),
        (["--", "-n=shop"], ["--", "-n=shop"]),
        (["-A=true", "--all-namespaces=1"], ["--all-namespaces", "--all-namespaces"]),
        (["-A=false", "-n=b", "--all-namespaces=F"], ["-nb"]),
        (["-A", "nodes", "--all-namespaces", "-A=true", "-A=false"], ["nodes"]),
        (["-A=false", "-A"], ["-A"]),
        (["-A=maybe", "-A=false"], ["--all-namespaces=maybe"]),
        (["-A=maybe", "--", "-A=true"], ["--all-namespaces=maybe", "--", "-A=true"]),
    ],
)
def test_short_flags_with_an_equals_sign_as_kubectl_has_them(given: list[str], taken: list[str]) -> None:
    assert as_kubectl_takes_them(given) == taken


def test_a_namespace_behind_an_equals_sign_is_that_namespace(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*RECORDED_FLAGS, "-n=shop", "-o=csv"]) == 0
    first = capsys.readouterr().out
    assert run([*RECORDED_FLAGS, "-n", "shop", "-o", "csv"]) == 0
    assert capsys.readouterr().out == first
    assert first.count(",shop,Deployment,") == first.count("\r\n") - 1 > 10
