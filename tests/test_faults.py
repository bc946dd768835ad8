"""Under every fault of an API server the audit is the undisturbed one, or says what is missing."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.collect import live
from kubectl_cgaudit.collect.live import Kubelets
from kubectl_cgaudit.collect.model import Gap
from tests.simulator import Fault
from tests.simulator.faults import KINDS
from tests.support import audited
from tools.fuzz import faults
from tools.fuzz.faults import (
    SLOW,
    Outcome,
    World,
    alone,
    bursts,
    chance,
    fault,
    shown,
    unanswered_nodes,
    wrong,
    wrong_answers,
)

REFUSING = {"unauthorized", "expire"}
SAME = ("verdict", "nodes", "workloads", "findings", "target")


class Tally:
    def __init__(self, world: World) -> None:
        self.world = world
        self.tried = 0
        self.wrong: list[str] = []

    def ask(self, *these: Fault) -> Outcome:
        self.tried += 1
        came = self.world.ask(these)
        problem = wrong(self.world.right, came, these)
        self.wrong += [f"{shown(these)}: {problem}"] if problem else []
        return came


@pytest.fixture(scope="module")
def tally(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Tally]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        with faults.world(tmp_path_factory.mktemp("world")) as world:
            found = Tally(world)
            yield found
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\nfaults: {found.tried} audits disturbed, {len(found.wrong)} wrong")


def gaps(came: Outcome) -> tuple[Gap, ...]:
    assert came.cluster, came.error
    return came.cluster.reading.gaps


def answerless(came: Outcome) -> list[str]:
    assert came.cluster, came.error
    return unanswered_nodes(came.cluster)


def notes(came: Outcome) -> tuple[str, ...]:
    assert came.cluster, came.error
    return came.cluster.reading.notes


def test_the_undisturbed_audit(tally: Tally) -> None:
    right = tally.world.ask([])
    assert right == tally.world.right
    assert right.cluster
    assert (len(right.cluster.nodes), len(right.cluster.pods), right.cluster.reading.gaps) == (12, 230, ())
    asked = [seen.path.partition("?")[0].rpartition("/")[2] for seen in tally.world.simulator.log[-15:]]
    assert {name: asked.count(name) for name in faults.LISTS} == {"nodes": 3, "pods": 5, "replicasets": 3, "jobs": 2}


@pytest.mark.parametrize("kind", sorted(set(KINDS) - set(SLOW)))
def test_a_fault_at_any_page(kind: str, tally: Tally) -> None:
    planned = alone(kind, ("nodes", "pods")) + alone(kind, ("replicasets", "jobs"), ("middle",))
    assert len(planned) == 16
    before = len(tally.wrong)
    for each in planned:
        tally.ask(each)
    assert tally.wrong[before:] == []


@pytest.mark.parametrize("kind", SLOW)
def test_a_server_that_takes_for_ever(kind: str, tally: Tally) -> None:
    before = len(tally.wrong)
    for each in alone(kind, ("pods",)):
        tally.ask(each)
    assert tally.wrong[before:] == []


def test_errors_in_a_row(tally: Tally) -> None:
    before = len(tally.wrong)
    for each in bursts():
        tally.ask(each)
    assert tally.wrong[before:] == []


@settings(derandomize=True, max_examples=60, deadline=None, database=None)
@given(number=st.integers(0, 10**9))
def test_faults_together(number: int, tally: Tally) -> None:
    these = [each for each in chance(Random(number)) if each.kind not in SLOW]
    before = len(tally.wrong)
    tally.ask(*these)
    assert tally.wrong[before:] == []


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_lasting_fault_at_a_later_page_is_told_with_what_was_read(kind: str, tally: Tally) -> None:
    """The second of five pages, and from then on every time."""
    told = gaps(tally.ask(fault(kind, "pods", 1, times=0)))
    if kind == "duplicate":
        assert told == ()
    elif kind == "vanish":
        why = "the server announced 3 more than it sent: something between filters or loses them"
        assert told == (Gap("pods", why, "Run the audit again, past any proxy"),)
    elif kind == "repeat":
        why = "the list broke off after 92 pods (the server repeats its continue token)"
        assert told == (Gap("pods", why, "Run the audit again"),)
    else:
        (gap,) = told
        assert gap.what == "pods"
        assert gap.why.startswith("the list broke off after 46 pods (")


def test_lists_that_are_short_of_what_was_announced(tally: Tally) -> None:
    why = "the server announced 2 more than it sent: something between filters or loses them"
    told = gaps(tally.ask(fault("vanish", "nodes", "last")))
    assert told == (Gap("nodes", why, "Run the audit again, past any proxy"),)
    came = tally.ask(fault("vanish", "replicasets", "last"))
    short = "ReplicaSets could not be listed (the server announced 3 more than it sent)"
    assert notes(came) == (f"{short}: Deployments are named from the pod-template-hash",)
    assert gaps(came) == ()


def test_namespace_by_namespace(tally: Tally) -> None:
    refused = Fault("forbidden", "pods", times=0, namespaces=tuple(faults.CLUSTER.namespaces))
    assert gaps(tally.ask(refused)) == ()
    some = Fault("forbidden", "pods", times=0, namespaces=tuple(faults.CLUSTER.namespaces[:2]))
    assert [gap.what[:8] for gap in gaps(tally.ask(some))] == ["pods of "]
    (gap,) = gaps(tally.ask(Fault("forbidden", "pods", times=0), Fault("forbidden", "namespaces", times=0)))
    assert gap.why == "pods may not be listed cluster-wide or in namespace default (403)"
    came = tally.ask(refused, fault("vanish", "namespaces", 1))
    assert [gap.what for gap in gaps(came)] == ["pods of the other namespaces"]
    assert notes(came) == (
        "Namespaces could not be listed (the server announced 3 more than it sent): only one was tried",
    )


PROXY = Kubelets(direct=False, insecure=False, seconds=None)
SPOILING = sorted(set(KINDS) - set(SLOW) - {"gone", "gone-fresh", "duplicate", "vanish", "repeat"})


@pytest.mark.parametrize("kind", SPOILING)
def test_faults_of_kubelets(kind: str, tally: Tally) -> None:
    right = tally.world.ask([], PROXY)
    assert right.cluster
    assert right.cluster.kubelets
    assert (len(right.cluster.kubelets), gaps(right), answerless(right)) == (12, (), [])
    for endpoint in ("configz", "metrics", "metrics/cadvisor"):
        for times in (1, 0):
            these = fault(kind, endpoint, "any", times=times)
            came = tally.world.ask([these], PROXY)
            tally.tried += 1
            assert wrong_answers(right, came) == ""
            # What is busy is asked again, and credentials are renewed once.
            harmless = kind in {"busy", *REFUSING} and times == 1
            assert len(answerless(came)) == (0 if harmless else times or 12), kind


def test_every_audit_was_right(tally: Tally) -> None:
    assert tally.wrong == []


def commanded(tally: Tally, path: Path, *these: Fault) -> tuple[int, Any]:
    tally.tried += 1
    tally.world.simulator.faults.clear()
    tally.world.simulator.faults.add(*these)
    path.unlink(missing_ok=True)
    code = run(["--kubeconfig", str(tally.world.config), "--request-timeout=2s", "-o", f"json={path}"])
    return code, json.loads(path.read_text()) if path.exists() else None


@pytest.mark.parametrize("kind", sorted(set(KINDS) - set(SLOW)))
def test_the_command_under_faults(kind: str, tally: Tally, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = commanded(tally, tmp_path / "a.json")
    assert whole[0] == 0
    for times in (1, 0):
        capsys.readouterr()
        code, audit = commanded(tally, tmp_path / "a.json", fault(kind, "pods", "middle", times=times))
        said = capsys.readouterr().err
        assert "Traceback" not in said
        if code == 0:
            assert {part: audit[part] for part in SAME} == {part: whole[1][part] for part in SAME}
        elif code == 3:
            assert [gap["what"] for gap in audit["coverage"]["gaps"]] == ["pods"]
            assert audit["verdict"]["sentence"].startswith(
                "Incomplete, so this is no pass: not everything could be read. "
            )
            assert [each["rule"] for each in audit["findings"]].count("CGA001") == 1
            assert audit["coverage"]["podsRead"] < 230 or kind in ("gone", "gone-fresh", "repeat")
        else:
            assert (code, audit, said.count("\n"), said[:7]) == (1, None, 1, "error: ")
        expected = {1: 3 if kind in ("forbidden", "repeat", "vanish") else 0, 0: 3}[times]
        if times == 0 and kind == "duplicate":
            expected = 0
        assert code == expected


@pytest.mark.parametrize(
    ("careless", "these", "noticed"),
    [
        ("_note_end", fault("garbage", "pods", 2, times=0), "138 pods are missing in silence"),
        ("_note_doubts", fault("vanish", "pods", "last"), "3 pods are missing in silence"),
        ("_short", fault("vanish", "replicasets", "last"), "ReplicaSets are not what they are in the cluster"),
    ],
)
def test_silence_would_be_noticed(
    careless: str, these: Fault, noticed: str, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, careless, lambda *_: None)
    assert wrong(tally.world.right, tally.world.ask([these]), [these]) == noticed


ALL_NEW = "- {cgroup: v2, kubelet: quadratic, runtimes: {default: runc 1.3.6, runc: runc 1.3.6, crun: crun 1.28}}"


def test_what_was_not_read_is_not_called_unaffected(tally: Tally) -> None:
    whole = tally.ask().cluster
    half = tally.ask(fault("garbage", "pods", "middle", times=0)).cluster
    assert whole
    assert half
    assert audited(whole, ALL_NEW).verdict.sentence.startswith("No workload loses ")
    assert audited(half, ALL_NEW).verdict.sentence.startswith(
        "Incomplete, so this is no pass: not everything could be read. No workload loses "
    )
