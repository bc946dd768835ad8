"""Inputs and surroundings that have ended the program before, or could."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kubectl_cgaudit.audit.saved import load
from kubectl_cgaudit.cli import main, reading
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.cli.output import Output, parse
from kubectl_cgaudit.collect.advice import SAVE
from kubectl_cgaudit.detect import states
from kubectl_cgaudit.errors import UsageError
from tests.support import RECORDED_FLAGS, V1, V2_LINEAR, audited_with_actions, cluster, container, node, of_rule, pod


def cgaudit(*words: str, shell: str = "") -> "subprocess.CompletedProcess[str]":
    quoted = " ".join(f"'{word}'" for word in (sys.executable, "-m", "kubectl_cgaudit", *words))
    return subprocess.run(["bash", "-c", f"{quoted} {shell}"], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_yaml_is_refused_in_words(opening: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.yaml"
    path.write_text("kind: " + opening * 50_000)
    done = cgaudit("-f", str(path))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"error: {path} is ")


def test_deep_json_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text('{"kind": "List", "items": ' + "[" * 100_000)
    done = cgaudit("-f", str(path))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


@pytest.mark.parametrize(
    ("words", "shell", "message"),
    [
        (
            RECORDED_FLAGS,
            ">/dev/full",
            "error: standard output cannot be written: No space left on device; write to a file with -o FORMAT=FILE\n",
        ),
        (
            ["--help"],
            ">/dev/full",
            "error: standard output cannot be written: No space left on device; write elsewhere\n",
        ),
        (RECORDED_FLAGS, ">&-", "error: standard output is closed; write to a file with -o FORMAT=FILE\n"),
        (["-f", "-"], "<&-", "error: standard input is closed; give a file, or pipe one in\n"),
    ],
)
def test_closed_and_full_streams_are_one_sentence(words: list[str], shell: str, message: str) -> None:
    done = cgaudit(*words, shell=shell)
    assert (done.returncode, done.stderr) == (1, message)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("name", ["html", "json", "table"])
def test_a_report_that_fits_in_part_is_no_success(name: str, unbuffered: str, tmp_path: Path) -> None:
    flags = " ".join(f"'{word}'" for word in (*RECORDED_FLAGS, "-o", name))
    run = f"ulimit -f 1; PYTHONUNBUFFERED={unbuffered} exec '{sys.executable}' -m kubectl_cgaudit {flags} > {tmp_path / 'x'}"
    done = subprocess.run(["bash", "-c", run], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        "error: standard output cannot be written: File too large; write to a file with -o FORMAT=FILE\n",
    )


def test_damaged_gzip(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x04\x00\x00\x00\x00\x00\x01\x00\x00\x00")
    assert cgaudit("-f", str(path)).stderr == f"error: {path} is a damaged gzip file; {SAVE}\n"


@pytest.mark.parametrize("text", ["- {cgroup: v1, cgroup: v2}", "- {runtimes: {default: linear, default: quadratic}}"])
def test_a_key_that_stands_twice_is_a_typo(text: str) -> None:
    with pytest.raises(UsageError, match="stands twice"):
        states.parse(text, "s.yaml")


def test_an_unknown_kubelet_is_not_taken_for_a_safe_one() -> None:
    objects = cluster(node(kubelet=""), pod("p", container("c", "50m", "77m")))
    (finding,) = of_rule(audited_with_actions(objects, V1, "runtime"), "CGA301").values()
    limit, quota = finding.measures
    assert (finding.severity, limit.after, quota.before, quota.after) == ("critical", 77, 8000, 7700)


def test_301_is_proven_of_runc_only() -> None:
    objects = cluster(node(kubelet="v1.32.9"), pod("p", container("c", "50m", "77m")))
    assert (
        of_rule(audited_with_actions(objects, "- {cgroup: v1, runtimes: {default: youki 0.5.6}}", "runtime"), "CGA301")
        == {}
    )


def test_302_counts_the_smaller_of_both_quotas() -> None:
    """kubelet 1.34 leaves the pod's quota at 77m, and a child cannot use more than its parent."""
    objects = cluster(node(kubelet="v1.34.1"), pod("p", container("c", "50m", "77m")))
    assert of_rule(audited_with_actions(objects, V2_LINEAR, "runtime"), "CGA302") == {}
    (finding,) = of_rule(audited_with_actions(objects, V2_LINEAR, "runtime,kubelet=1.35"), "CGA302").values()
    limit, quota = finding.measures
    assert (limit.after, quota.before, quota.after) == (77, 7700, 8000)


def test_a_target_file_needs_the_version_for_values_at_the_root(tmp_path: Path) -> None:
    target = tmp_path / "after+now,x=1.yaml"
    target.write_text("- {system_slice: 39}\n")
    objects = cluster(node(), pod("p", container("c", "1")))
    with pytest.raises(UsageError, match="not its cgroup version"):
        audited_with_actions(objects, "", str(target))
    assert audited_with_actions(objects, V2_LINEAR, str(target)).nodes[0].cases[0].after.system_slice == 39


@pytest.mark.parametrize(
    ("kubelet", "version", "severity"),
    [
        ("v1.36.2", "1.36.2", "medium"),
        ("v1.33.1", "1.33.1", "medium"),
    ],
)
def test_101_speaks_of_the_node_as_it_is(kubelet: str, version: str, severity: str) -> None:
    (finding,) = of_rule(audited_with_actions(cluster(node(kubelet=kubelet)), V1, "runtime"), "CGA101").values()
    assert (finding.severity, finding.today, finding.detail["comesBack"]) == (severity, True, True)
    assert (finding.detail["kubeletBefore"], finding.detail["kubeletAfter"]) == (version, version)


def test_201_and_202_do_not_contradict_each_other() -> None:
    result = audited_with_actions(cluster(node(cpu="64"), pod("p", container("c", "1"))), V1, "v2")
    (loss,) = of_rule(result, "CGA201").values()
    (weight,) = of_rule(result, "CGA202").values()
    # Pods lose some of what is too much: that protects the node.
    assert (loss.severity, loss.actions) == ("low", ())
    (action,) = result.actions
    assert (action.id, action.change, action.clears) == (
        "system-weight:n1",
        {"systemSlice": 251, "cgroup": "v2"},
        (weight.id,),
    )
    assert weight.actions == (action.id,)
    assert action.effect is not None
    assert (action.effect.cleared, action.effect.caused) == (1, 0)


@pytest.mark.parametrize(
    ("kubelet", "cpu", "key"),
    [
        ("v1.31.9", "4", "system-reserved on"),
        ("v1.33.1", "4", "system-reserved-compressible on"),
        ("v1.33.1", "1", None),
    ],
)
def test_a_reserve_is_only_proposed_where_it_exists_and_is_affordable(kubelet: str, cpu: str, key: str | None) -> None:
    found = audited_with_actions(cluster(node(cpu=cpu, kubelet=kubelet), pod("p", container("c", "100m"))), V1, "v2")
    (finding,) = of_rule(found, "CGA201").values()
    (action,) = [each for each in found.actions if each.id in finding.actions]
    assert [f"enforce {key} system.slice with 780m CPU " in each for each in action.alternatives] == (
        [True] if key else []
    )


@pytest.mark.parametrize(
    ("rules", "spec", "certainty", "taken"),
    [
        ("- {cgroup: v1, driver: systemd, runtimes: {default: runc 1.1.5}}", {}, "likely", []),
        (
            "- {cgroup: v1, runtimes: {default: runc 1.1.5}}",
            {},
            "probable",
            ["the cgroup driver is systemd"],
        ),
        (
            "- {cgroup: v1, driver: systemd, runtimes: {default: linear}}",
            {},
            "probable",
            ["the runtime is runc"],
        ),
        (
            "- {cgroup: v1, driver: systemd, runtimes: {default: linear, runc-old: linear}}",
            {"runtimeClassName": "runc-old"},
            "probable",
            ["the runtime is runc"],
        ),
    ],
)
def test_301_names_what_it_takes_for_granted(
    rules: str, spec: dict[str, str], certainty: str, taken: list[str]
) -> None:
    objects = cluster(node(kubelet="v1.32.9"), pod("p", container("c", "50m", "77m"), **spec))
    result = audited_with_actions(objects, rules, "runtime")
    (finding,) = of_rule(result, "CGA301").values()
    assert (finding.certainty, finding.detail["takenForGranted"]) == (certainty, taken)
    assert finding.message.endswith("of its pod." if not taken else f"This holds if {taken[0]}.")
    assert result.workloads[0].effects[0] == "may-stop"
    assert "container that may not start" in result.verdict.sentence


@pytest.mark.parametrize("shell", ["2>&-", "2>/dev/full"])
def test_what_cannot_be_said_on_standard_error_costs_no_report(shell: str, tmp_path: Path) -> None:
    usual = cgaudit(*RECORDED_FLAGS)
    done = cgaudit(*RECORDED_FLAGS, shell=shell)
    assert (done.returncode, done.stdout) == (0, usual.stdout)
    saved = cgaudit(*RECORDED_FLAGS, "-o", f"json={tmp_path / 'a.json'}", shell=shell)
    assert saved.returncode == 0
    assert load((tmp_path / "a.json").read_bytes(), "a.json").audit.findings
    assert cgaudit(*RECORDED_FLAGS, "--fail-on", "low", shell=shell).returncode == 4
    assert cgaudit("-f", "none.json", shell=shell).returncode == 1


def test_a_snapshot_that_did_not_fit_is_not_said_to_be_saved(small: Path) -> None:
    done = cgaudit("snapshot", "-f", str(small), "-o", "-", shell=">/dev/full")
    why = "No space left on device; write it to a file with -o FILE.json.gz"
    assert (done.returncode, done.stderr) == (1, f"error: standard output cannot be written: {why}\n")


@pytest.mark.parametrize(
    "words",
    [
        ("-f", "c.json", "-o", "json=./c.json"),
        ("nodes", "-f", "c.json", "-o", "json=c.json"),
        ("tree", "-f", "c.json", "-o", "text=c.json"),
        ("verify", "-f", "c.json", "-o", "json=c.json"),
        ("diff", "c.json", "d.json", "-o", "html=c.json"),
        ("snapshot", "-f", "c.json", "-o", "c.json"),
        ("report", "c.json", "-o", "html=c.json"),
        ("report", "a.json", "--policy", "c.json", "-o", "html=c.json"),
        ("-f", "a.json", "--states", "c.json", "-o", "json=c.json"),
        ("-f", "a.json", "--policy", "c.json", "-o", "json=c.json"),
        ("nodes", "-f", "a.json", "--states", "c.json", "-o", "json=c.json"),
        ("diff", "a.json", "b.json", "--states", "c.json", "-o", "json=c.json"),
        ("diff", "a.json", "b.json", "--states-after", "c.json", "-o", "json=c.json"),
        ("-f", "a.json", "--to", "to.yaml", "-o", "json=to.yaml"),
        ("tree", "-f", "a.json", "--to", "to.yaml", "-o", "json=./to.yaml"),
        ("diff", "a.json", "b.json", "--to", "to.yaml", "-o", "json=to.yaml"),
        ("-f", "a.json", "--baseline", "c.json", "-o", "html=c.json"),
        ("report", "a.json", "--baseline", "c.json", "-o", "yaml=c.json"),
    ],
    ids=" ".join,
)
def test_a_report_does_not_take_the_place_of_what_it_is_made_of(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.json").write_text(json.dumps({"kind": "List", "items": [node(), pod("p", container("c", "1"))]}))
    Path("to.yaml").write_text("- {cgroup: v2}\n")
    path = words[-1].rpartition("=")[2]
    before = Path(path).read_bytes()
    done = cgaudit(*words)
    assert done.returncode == 2
    assert done.stderr == f"error: -o {path} would replace what is read from there; choose another path\n"
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize(
    "words",
    [
        "-f - -o json=c.json",
        "-f - -o json=./link.json -o html=h.html",
        "-f - -o yaml=hard.json",
        "-f - -o json=/dev/stdin",
        "-f - -o json=/proc/self/fd/0",
        "nodes -f - -o json=c.json",
        "tree -f - -o text=c.json",
        "explain default/p -f - -o yaml=c.json",
        "verify -f - -o json=c.json",
        "snapshot -f - -o c.json",
        "report - -o html=c.json",
        "diff - d.json -o html=c.json",
        "diff d.json - -o json=link.json",
    ],
)
def test_standard_input_is_not_replaced_either(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.json").write_text(json.dumps({"kind": "List", "items": [node(), pod("p", container("c", "1"))]}))
    Path("link.json").symlink_to("c.json")
    Path("hard.json").hardlink_to("c.json")
    before = Path("c.json").read_bytes()
    path = words.rpartition("=")[2].split()[-1] if "h.html" not in words else "./link.json"
    # Open for writing too: `<>` is how standard input itself could be written to.
    done = cgaudit(*words.split(), shell="<> c.json")
    assert done.stderr == f"error: -o {path} would replace what is read from there; choose another path\n"
    assert (done.returncode, done.stdout, Path("c.json").read_bytes()) == (2, "", before)


def test_a_report_may_lie_beside_standard_input(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for shell in (f"< {small}", f"< <(cat {small})"):
        done = cgaudit("-f", "-", "-o", "json=a.json", shell=shell)
        assert (done.returncode, done.stderr) == (0, "wrote json to a.json\n")
    # Standard input is a file, and nothing is read from it.
    done = cgaudit("-f", str(small), "-o", "json=a.json", shell="< a.json")
    assert (done.returncode, done.stderr) == (0, "wrote json to a.json\n")


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        (("--kubeconfig", "k", "snapshot", "-o", "k"), ""),
        (("snapshot", "--kubeconfig", "./k", "-o", "link"), ""),
        (("-o", "json=k"), "none:k"),
        (("-o", "yaml=ca"), "k"),
        (("nodes", "--kubeconfig", "k", "-o", "json=./key"), ""),
        (("tree", "--kubeconfig", "link", "-o", "json=token"), ""),
        (("-o", "html=home/.kube/config"), ""),
        (("-f", "c.json", "-o", "html=home/./.kube/config"), "k"),
        (("snapshot", "-f", "c.json", "-o", "home/.kube/config"), ""),
        (("diff", "c.json", "c.json", "-o", "html=k"), "k"),
        (("report", "c.json", "-o", "html=k"), "k"),
        (("convert", "1", "-o", "json=k"), "k"),
        (("manifests", "-o", "yaml=link"), "k"),
        (("-f", "c.json", "--kubelet=files:gold", "-o", "prometheus=gold/worker-a.metrics.txt"), ""),
        (("verify", "-f", "c.json", "--kubelet=files:./gold/", "-o", "json=gold/../gold/a.configz.txt"), ""),
        (("snapshot", "-f", "c.json", "--kubelet=files:gold", "-o", "elsewhere"), ""),
    ],
    ids=str,
)
def test_a_report_takes_the_place_of_no_kubeconfig_nor_saved_answer(
    words: tuple[str, ...], listed: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", listed)
    (home / ".kube").mkdir()
    Path("k").write_text(
        "clusters: [{name: c, cluster: {server: 'https://x', certificate-authority: ca}}]\n"
        "users: [{name: u, user: {client-key: key, tokenFile: token}}]\n"
    )
    Path("link").symlink_to("k")
    Path("gold").mkdir()
    Path("gold/b.metrics-cadvisor.txt").symlink_to("../elsewhere")
    read = ("ca", "key", "token", "elsewhere", "home/.kube/config", "gold/worker-a.metrics.txt", "gold/a.configz.txt")
    for each in read:
        Path(each).write_text("kept")
    Path("c.json").write_text(json.dumps({"kind": "List", "items": [node(), pod("p", container("c", "1"))]}))
    path = words[-1].rpartition("=")[2]
    before = Path(path).read_bytes()
    done = cgaudit(*words)
    assert done.stderr == f"error: -o {path} would replace what is read from there; choose another path\n"
    assert (done.returncode, done.stdout, Path(path).read_bytes()) == (2, "", before)


def test_a_report_may_lie_beside_saved_answers_and_go_where_there_is_no_kubeconfig(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", "/dev/null:none")
    Path("n1.json").write_text("old")
    assert parse(("json=/dev/null",), ("json",)) == (Output("json", "/dev/null"),)
    for path in ("n1.json", "n2.metrics.txt", "none"):
        done = cgaudit("-f", str(small), "--kubelet=files:.", "-o", f"json={path}")
        assert (done.returncode, done.stderr) == (3, f"wrote json to {path}\n")


def test_json_may_take_the_place_of_the_baseline_and_of_a_file_named_like_a_target(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (("-o", "json=v2"), ("--baseline", "v2", "-o", "json=v2")):
        done = cgaudit("-f", str(small), "--to", "v2", *words)
        assert (done.returncode, done.stderr) == (0, "wrote json to v2\n")
    assert json.loads(Path("v2").read_bytes())["baseline"]["source"] == "v2"


def test_an_image_that_is_empty_is_none() -> None:
    done = cgaudit("manifests", "--image", "")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: --image is empty; give the image with this tool, or leave the flag out\n"


@pytest.mark.parametrize("while_importing", ["click", "kubectl_cgaudit.cli.audit"])
def test_ctrl_c_while_the_program_is_still_being_read_is_no_traceback(while_importing: str) -> None:
    program = (
        "import runpy, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {while_importing!r}:\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "runpy.run_module('kubectl_cgaudit', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted before anything was done\n")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (MemoryError(), "no memory is left"),
        (RuntimeError("can't start new thread"), "no thread can be started"),
        (OSError(24, "Too many open files", "/x"), "Too many open files (/x)"),
        (OSError(24, "Too many open files"), "Too many open files"),
    ],
)
def test_what_the_system_refuses_is_one_sentence(
    error: Exception, why: str, small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_args: object, **_more: object) -> None:
        raise error

    monkeypatch.setattr(reading, "collect", refuse)
    assert run(["nodes", "-f", str(small)]) == 1
    assert capsys.readouterr() == (
        "",
        f"error: the system refuses something this needs: {why}; see ulimit -a, and free what is used up\n",
    )


def test_a_bug_is_no_refusal_of_the_system(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object, **_more: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(reading, "collect", fail)
    with pytest.raises(RuntimeError, match=r"^a bug$"):
        run(["nodes", "-f", str(small)])


def test_that_python_says_so_where_no_thread_can_be_started() -> None:
    limited = (
        "import resource, threading; threading.stack_size(1 << 30); resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29));"
        "threading.Thread(target=print).start()"
    )
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == f"RuntimeError: {main._NO_THREAD}"
