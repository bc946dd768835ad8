"""`check`: whether an audit may read what it needs, and how much that is."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_cgaudit.cli.main import run
from tests.simulator import Cluster, Fault, Simulator, Size, access


@pytest.fixture
def simulator(tmp_path: Path) -> Iterator[Simulator]:
    with Simulator(Cluster(Size(12, 600), 3)) as found:
        access.kubeconfig(tmp_path / "config", found.url, None, found.credentials, "token")
        yield found


def check(tmp_path: Path, *words: str) -> int:
    return run(["check", "--kubeconfig", str(tmp_path / "config"), *words])


def forbid(simulator: Simulator, *resources: str) -> None:
    simulator.faults.add(*(Fault("forbidden", resource=each, page=0, times=0) for each in resources))


def test_all_that_is_needed_may_be_read(
    simulator: Simulator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    answer = " ".join(lines[:2])
    assert re.fullmatch(
        r"An audit may read what it needs of cluster 127\.0\.0\.1:\d+ \(context simulator\)\. "
        r"It reads 7 pages, in about \d+ s\.",
        answer,
    )
    rows = [line.split() for line in lines[4:]]
    assert [row[:2] for row in rows] == [
        [name, "yes"] for name in ("Nodes", "Pods", "RuntimeClasses", "ReplicaSets", "Jobs", "Events")
    ]
    assert [row[2:] for row in rows[:2]] == [["12", "1"], ["600", "2"]]
    # One page of each list, and nothing else.
    asked = [each.path.partition("?")[0].rpartition("/")[2] for each in simulator.log]
    assert asked == ["nodes", "pods", "runtimeclasses", "replicasets", "jobs", "events"]


def test_a_list_that_is_not_needed_costs_names_only(
    simulator: Simulator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forbid(simulator, "replicasets")
    assert check(tmp_path) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "ReplicaSets no - -" in said
    assert "): without them Deployments are named from the pod-template-hash." in said


def test_without_pods_it_is_a_part(simulator: Simulator, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forbid(simulator, "pods")
    assert check(tmp_path, "-o", "json") == 3
    found = json.loads(capsys.readouterr().out)
    assert found["mayAudit"] == "in part"
    nodes, pods, *_ = found["lists"]
    assert nodes == {"list": "Nodes", "needed": True, "mayRead": True, "refused": "", "objects": 12, "pages": 1}
    assert (pods["mayRead"], pods["objects"], pods["pages"]) == (False, None, None)
    assert check(tmp_path) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("An audit may read a part of what it needs of cluster ")
    assert said.endswith(": ask for list on pods.")


def test_without_nodes_there_is_no_audit(
    simulator: Simulator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forbid(simulator, "nodes", "pods")
    assert check(tmp_path) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("An audit may not read what it needs of cluster ")


def test_files_are_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "-f", "nodes.json"]) == 2
    assert capsys.readouterr().err == "error: check asks a running cluster, and -f reads files; leave -f out\n"
