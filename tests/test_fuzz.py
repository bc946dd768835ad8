"""Damaged inputs for every reader: a result or an error in words, in time, and nothing dropped in silence."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from kubectl_cgaudit.collect import live
from kubectl_cgaudit.collect.assemble import Assembly
from kubectl_cgaudit.collect.http import Answer
from kubectl_cgaudit.collect.kubeconfig import Connection
from kubectl_cgaudit.collect.progress import silent
from kubectl_cgaudit.collect.transport import Api
from kubectl_cgaudit.errors import ClusterError, InputError
from tools.fuzz import check, mutate, seeds
from tools.fuzz.__main__ import tasks, work
from tools.fuzz.check import Trouble, WrongError
from tools.fuzz.targets import TARGETS, Canned

INPUTS = 8000
SEED = 20


@pytest.fixture(scope="module")
def tally(request: pytest.FixtureRequest) -> Iterator[list[int]]:
    found: list[int] = []
    yield found
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\nfuzz: {sum(found)} damaged inputs")


@pytest.mark.parametrize("name", TARGETS)
def test_a_result_or_an_error_in_words(name: str, tally: list[int]) -> None:
    share = INPUTS * TARGETS[name][1] // 100
    came, inputs, results = [], 0, 0
    for task in tasks(share, SEED, name):
        _, number, had, troubles = work(task)
        inputs, results = inputs + number, results + had
        came += troubles
    tally.append(inputs)
    assert came == []
    assert inputs == share
    # Damage that nothing survives, or that nothing notices, would test nothing.
    assert 0 < results < inputs


def test_all_parts_make_a_whole() -> None:
    assert sum(part for _, part in TARGETS.values()) == 100
    assert sum(end - begin for _, _, begin, end in tasks(100_000, 1)) == 100_000


def test_the_same_seed_makes_the_same_inputs() -> None:
    def damaged(seed: int) -> list[bytes]:
        random = Random(seed)
        return [mutate.as_json(mutate.structure(random, seeds.pods())) for _ in range(20)]

    assert damaged(1) == damaged(1)
    assert damaged(1) != damaged(2)


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (ValueError("x"), "ValueError: x"),
        (WrongError("3 came and 2 are there"), "WrongError: 3 came and 2 are there"),
        (InputError(" "), "an error without words"),
        (InputError("no file; save it"), None),
    ],
)
def test_what_counts_as_handled(raised: Exception, said: str | None) -> None:
    def target(_random: Random) -> bool:
        raise raised

    assert check.run("x", target, 1, 2) == (Trouble("x", 1, 2, said) if said else False)


def test_an_input_without_an_end_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "SECONDS", 0.01)

    def forever(_random: Random) -> bool:
        while True:
            pass

    assert check.run("x", forever, 1, 2) == Trouble("x", 1, 2, "HangError: no end within 0.01 s")


def test_an_object_that_is_not_accounted_for_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    add = Assembly.add

    def careless(self: Assembly, kind: str, raw: Any, *more: Any) -> None:
        said = bytes(raw).decode(errors="replace") if isinstance(raw, msgspec.Raw) else repr(raw)
        if "waiting-for-gpu" not in said:
            add(self, kind, raw, *more)

    monkeypatch.setattr(Assembly, "add", careless)
    _, inputs, _, troubles = work(("page", SEED, 0, 100))
    assert inputs == 100
    said = [re.fullmatch(r"WrongError: (\d+) objects came and (\d+) are accounted for", each.said) for each in troubles]
    assert {int(found[1]) - int(found[2]) for found in said if found} == {1}
    assert None not in said


def page(*items: bytes) -> bytes:
    return b'{"kind":"PodList","metadata":{},"items":[' + b",".join(items) + b"]}"


@pytest.mark.parametrize(
    "damaged", [b'{"metadata":{"name":"a\xff"}}', b'{"metadata":{"name":"a","namespace":"\xc3("}}']
)
def test_text_that_is_no_utf8_is_an_error_that_counts(damaged: bytes) -> None:
    bodies = {
        "nodes": json.dumps({"kind": "NodeList", "items": seeds.nodes()}).encode(),
        "pods": page(damaged, damaged),
    }
    api = Canned(lambda path: Answer(200, bodies[path.partition("?")[0].rpartition("/")[2]]))
    assembly = Assembly(lambda _namespace, _labels: True, "")
    live.read_nodes(api, assembly, silent)
    live.read_pods(api, None, assembly, silent)
    with pytest.raises(
        InputError, match=r"Pod \(unnamed\): .*codec can't decode byte .* \(and 1 more object like it\)"
    ):
        assembly.cluster("test")


def test_tokens_that_go_round_in_a_circle_end() -> None:
    after = {"": b"a", "a": b"b", "b": b"a"}
    asked: list[str] = []

    def answer(path: str) -> Answer:
        asked.append(path.partition("continue=")[2])
        return Answer(200, b'{"kind":"PodList","metadata":{"continue":"' + after[asked[-1]] + b'"},"items":[]}')

    assembly = Assembly(lambda _namespace, _labels: True, "")
    with pytest.raises(ClusterError, match="Pods cannot be listed, the server repeats its continue token; try again"):
        live.read_pods(Canned(answer), None, assembly, silent)
    assert asked == ["", "a", "b"]


def test_more_that_nobody_can_ask_for_is_a_gap() -> None:
    bodies = {
        "nodes": json.dumps({"kind": "NodeList", "items": seeds.nodes()}).encode(),
        "pods": b'{"kind":"PodList","metadata":{"remainingItemCount":7},"items":[]}',
    }
    api = Canned(lambda path: Answer(200, bodies[path.partition("?")[0].rpartition("/")[2]]))
    assembly = Assembly(lambda _namespace, _labels: True, "")
    with pytest.raises(ClusterError, match="the server says that 7 more come and gives no continue token; try again"):
        live.read_pods(api, None, assembly, silent)


@pytest.mark.parametrize(
    ("section", "field", "value", "said"),
    [
        ("users", "as-groups", "admins", "as-groups in the kubeconfig is no list; correct its user entry"),
        (
            "users",
            "as-user-extra",
            "x",
            "as-user-extra in the kubeconfig is no mapping of lists; correct its user entry",
        ),
        ("users", "as-user-extra", {"k": "v"}, "as-user-extra in the kubeconfig is no list; correct its user entry"),
        (
            "clusters",
            "proxy-url",
            "http://[",
            "the proxy cannot be used: its URL names no host with a port from 1 to 65535; correct proxy-url or HTTPS_PROXY",
        ),
        ("clusters", "proxy-url", 5, None),
    ],
)
def test_a_kubeconfig_with_fields_of_other_types(
    section: str, field: str, value: Any, said: str | None, tmp_path: Path
) -> None:
    document = json.loads(json.dumps(seeds.KUBECONFIG))
    document[section][0][section[:-1]][field] = value
    path = tmp_path / "config"
    path.write_text(json.dumps(document))
    if said is None:
        with Api(Connection(kubeconfig=str(path))) as api:
            assert api.host == "127.0.0.1:6443"
        return
    with pytest.raises(ClusterError, match=f"^{re.escape(said)}$"):
        Api(Connection(kubeconfig=str(path)))
