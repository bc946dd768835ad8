"""Snapshots: what is in them, what is not, and that every command takes one for the cluster it was made of."""

import gzip
import json
import stat
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from polars import DataFrame

from kubectl_cgaudit.audit.saved import Saved
from kubectl_cgaudit.audit.thresholds import Thresholds
from kubectl_cgaudit.cli import snapshot as commands
from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.collect import snapshot
from kubectl_cgaudit.collect.model import Cluster, Gap, Owner
from kubectl_cgaudit.collect.quantity import LARGEST_MILLI
from kubectl_cgaudit.detect import states
from kubectl_cgaudit.detect import target as scenario
from tests.snapshot_support import everything, secretive
from tests.support import GOLDEN, RECORDED_FLAGS, STATES, Terminal, cluster, container, node, pod, recorded
from tests.support import audit_of as audit

FILES = RECORDED_FLAGS[: RECORDED_FLAGS.index("--states")]
SECRETS = (
    "s3cr3t-env",
    "s3cr3t-from",
    "s3cr3t-annotation",
    "s3cr3t-arg",
    "s3cr3t-command",
    "s3cr3t-label",
    "s3cr3t-volume",
    "s3cr3t-node",
    "10.9.8.7",
    "kubelet-host",
)


def again(found: Cluster, path: str = "x.json") -> Cluster:
    return snapshot.decode(snapshot.encode(found), path, everything, "")


def judged(found: Cluster) -> Saved:
    rules = states.load(str(STATES))
    return audit(found, rules, scenario.parse("v2+runtime"), Thresholds(), None)


def test_no_secret_is_in_the_bytes_and_what_an_audit_needs_is() -> None:
    text = snapshot.encode(secretive()).decode()
    assert [secret for secret in SECRETS if secret in text] == []
    assert [
        word for word in ("registry.example/app:1", '"pool":"blue"', '"web-5d"', "uid-web-5d") if word not in text
    ] == []
    found = again(secretive())
    assert found.replicasets == {("default", "web-5d"): Owner("Deployment", "web")}
    assert (found.nodes[0].address, found.nodes[0].kubelet_port, found.pods[0].template_hash) == (None, 0, "5d")


def test_the_fields_are_those_of_version_1_0() -> None:
    """A field that is added to the model needs a default, or snapshots of older releases no longer read."""
    data = json.loads(snapshot.encode(secretive()))
    assert [*data] == ["kind", "schemaVersion", "toolVersion", "cluster"]
    assert (data["kind"], data["schemaVersion"]) == ("CgauditSnapshot", "1.0")
    saved = data["cluster"]
    assert [*saved] == [
        "nodes",
        "pods",
        "replicasets",
        "jobs",
        "runtime_classes",
        "cgroup_v1_warnings",
        "kubelets",
        "reading",
    ]
    assert " ".join(saved["nodes"][0]) == (
        "name kind labels capacity_milli allocatable_milli kubelet_version runtime_version os_image kernel handlers address "
        "kubelet_port ready_since standing provider"
    )
    assert " ".join(saved["pods"][0]) == (
        "namespace name uid node qos finished selected runtime_class overhead_milli request_milli limit_milli containers "
        "controller template_hash read_back_milli allocated_milli resizing spec_request_milli annotations annotations_left_out"
    )
    assert " ".join(saved["pods"][0]["containers"][0]) == (
        "name role request_milli limit_milli presence runtime_id image sees_cgroups started spec_request_milli"
    )
    assert [*saved["reading"]] == ["source", "gaps", "notes", "ignored", "duplicates", "filter", "named"]


def test_the_audit_of_a_snapshot_is_the_audit_of_the_cluster() -> None:
    direct, saved = judged(recorded()), judged(again(recorded(), "a/before.json.gz"))
    source = "before.json.gz (snapshot of nodes.json, pods.json, workloads.json, runtimeclasses.json)"
    assert saved.audit.coverage.source == source
    assert saved.audit == replace(direct.audit, coverage=replace(direct.audit.coverage, source=source))
    assert [*map(DataFrame.rows, saved.containers.frames())] == [*map(DataFrame.rows, direct.containers.frames())]


def test_the_largest_amount_that_is_read_comes_back() -> None:
    found = cluster(node(), pod("p", container("c", "9223372036854775807m", "10T")))
    assert [(each.request_milli, each.limit_milli) for each in again(found).pods[0].containers] == [
        (LARGEST_MILLI, 10**16)
    ]


def test_an_incomplete_reading_stays_incomplete() -> None:
    gap = Gap("2 Pods: a, b", "403", "ask", "Pod that cannot be read", ("a", "b"))
    found = recorded()
    kept = again(replace(found, reading=replace(found.reading, gaps=(gap,)), jobs=None))
    assert (kept.reading.gaps, kept.jobs, judged(kept).audit.coverage.complete) == ((gap,), None, False)


def test_the_file_is_the_same_bytes_for_its_owner_only_and_without_time_or_name(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json.gz", tmp_path / "b.json.gz"
    for path in (first, second):
        assert run(["snapshot", *FILES, "-o", str(path)]) == 0
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes()[:10] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    assert run(["snapshot", *FILES, "-o", str(tmp_path / "c.json")]) == 0
    assert (tmp_path / "c.json").read_bytes() == gzip.decompress(first.read_bytes())


def test_what_came_in_another_order_is_the_same_bytes() -> None:
    classes = [{"kind": "RuntimeClass", "metadata": {"name": name}, "handler": name} for name in ("gvisor", "crun")]
    warnings = [
        {"kind": "Event", "reason": "CgroupV1", "involvedObject": {"kind": "Node", "name": name}}
        for name in ("n2", "n1")
    ]
    one = cluster(node(labels={"a": "1", "b": "2"}), *classes, *warnings)
    other = cluster(node(labels={"b": "2", "a": "1"}), *classes[::-1], *warnings[::-1])
    assert one == other
    assert snapshot.encode(one) == snapshot.encode(other)


def test_it_says_what_it_saved_and_what_it_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.json.gz"
    assert run(["snapshot", *FILES, f"--kubelet=files:{GOLDEN}", "-o", str(path)]) == 0
    saved, kept, left_out = capsys.readouterr().err.splitlines()
    assert saved == (
        "saved 3 nodes, 29 pods, 8 owners of ReplicaSets, 2 owners of Jobs, 3 RuntimeClasses, 3 kubelets' answers "
        f"(cgroup paths, shares) to {path}"
    )
    assert kept.startswith("kept: of nodes their name, labels, CPU,")
    assert left_out.startswith("left out: environment variables, commands, arguments, volumes, secrets, annotations (")


def test_what_is_saved_is_counted_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = replace(
        cluster(node(), pod("p", container("c", "1"))),
        replicasets={("n", "r"): None},
        jobs={},
        runtime_classes={"kata": "kata"},
        cgroup_v1_warnings={"n1": "old"},
    )
    assert commands._amounts(one) == (
        "1 node, 1 pod, 1 owner of ReplicaSets, 0 owners of Jobs, 1 RuntimeClass, 1 node's warning of cgroup v1"
    )
    assert commands._amounts(replace(one, runtime_classes={}, cgroup_v1_warnings={"n1": "old", "n2": "old"})) == (
        "1 node, 1 pod, 1 owner of ReplicaSets, 0 owners of Jobs, 0 RuntimeClasses, 2 nodes' warnings of cgroup v1"
    )
    path = tmp_path / "a\x1b[31m.json"
    assert run(["snapshot", *FILES, "-o", str(path)]) == 0
    assert capsys.readouterr().err.splitlines()[0].endswith(f" to {tmp_path}/a\\x1b[31m.json")


def test_standard_output_gets_the_same_bytes(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(["snapshot", *FILES, "-o", str(tmp_path / "a.json.gz")]) == 0
    capsysbinary.readouterr()
    assert run(["snapshot", *FILES, "-o", "-"]) == 0
    said = capsysbinary.readouterr()
    assert said.out == (tmp_path / "a.json.gz").read_bytes()
    assert said.err.splitlines()[0].endswith(b" to standard output")


@pytest.mark.parametrize(
    ("path", "stdout", "code", "error"),
    [
        ("-", Terminal(), 2, "a snapshot is not for a terminal; write it to a file with -o FILE.json.gz"),
        ("-", None, 1, "standard output is closed; write it to a file with -o FILE.json.gz"),
        ("json", None, 2, "-o takes a file here, not a format ('json'); write -o FILE.json.gz"),
        (
            "html=a.json",
            None,
            2,
            "-o takes a file here, not a format ('html=a.json'); write -o FILE.json.gz",
        ),
        ("./json.gz", Terminal(), 0, None),
        ("a.json.gz", Terminal(), 0, None),
        ("a.json.gz", None, 0, None),
        (None, Terminal(), 2, "Missing option '-o' / '--output'; see kubectl cgaudit snapshot --help"),
    ],
)
def test_where_a_snapshot_can_go(
    path: str | None,
    stdout: Terminal | None,
    code: int,
    error: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdout", stdout)
    assert run(["snapshot", *FILES, *(["-o", path] if path else [])]) == code
    said = capsys.readouterr().err
    assert said.startswith(f"error: {error}\n" if error else "saved 3 nodes, 29 pods, ")
    assert [each.name for each in tmp_path.iterdir()] == ([] if error else [Path(path or "").name])


@pytest.mark.parametrize(
    "command",
    [
        ["-o", "json"],
        ["tree", "-o", "json"],
        ["nodes", "-o", "json"],
        ["explain", "shop/checkout-d5491e7e7-22276"],
        ["verify", "-o", "json"],
    ],
    ids=lambda command: command[0],
)
def test_every_command_takes_it(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.json.gz"
    kubelet = f"--kubelet=files:{GOLDEN}"
    assert run(["snapshot", *FILES, kubelet, "-o", str(path)]) == 0
    capsys.readouterr()
    assert run([*command, *RECORDED_FLAGS, kubelet]) == 0
    direct = capsys.readouterr().out
    assert run([*command, "-f", str(path), "--states", str(STATES)]) == 0
    source = "nodes.json, pods.json, workloads.json, runtimeclasses.json"
    assert capsys.readouterr().out.replace(f"a.json.gz (snapshot of {source})", source) == direct


def test_a_namespace_is_chosen_when_it_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.json.gz"
    assert run(["snapshot", *FILES, "-o", str(path)]) == 0
    capsys.readouterr()
    assert run(["-f", str(path), "-n", "data", "-o", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {each["namespace"] for each in data["workloads"]} == {"data"}
    assert data["coverage"]["filter"] == "namespace data"


def test_hostile_names_come_back_as_they_were() -> None:
    found = cluster(node("n1"), pod('<b>\x1b[31m"\u202e', container("a|b\n", "1")))
    assert again(found).pods == found.pods
    assert msgspec.json.decode(snapshot.encode(found))["cluster"]["pods"][0]["name"] == '<b>\x1b[31m"\u202e'
