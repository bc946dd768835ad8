"""Colour is a second signal: off where it is not wanted, and never in the way of alignment or escaping."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.judge.audit import GapRecord
from kubectl_cgaudit.report import table
from kubectl_cgaudit.report.colour import paint
from kubectl_cgaudit.report.screen import Screen
from tests.support import RECORDED_FLAGS, audited, cluster, container, node, pod, rendered
from tests.test_table import BLIND, HOSTILE, RECORDED, renamed

ANSI = re.compile("\x1b\\[[0-9;]*m")
OURS = {"\x1b[1;31m", "\x1b[1;33m", "\x1b[34m", "\x1b[35m", "\x1b[0m"}


@pytest.mark.parametrize(
    ("text", "painted"),
    [
        ("stops", "\x1b[1;31mstops\x1b[0m"),
        ("loses, moves", "\x1b[1;31mloses\x1b[0m, \x1b[34mmoves\x1b[0m"),
        ("unknown", "\x1b[1;33munknown\x1b[0m"),
        ("gains", "\x1b[35mgains\x1b[0m"),
        ("critical", "\x1b[1;31mcritical\x1b[0m"),
        ("high", "\x1b[1;31mhigh\x1b[0m"),
        ("medium", "\x1b[1;33mmedium\x1b[0m"),
        ("none", "none"),
        ("low", "low"),
        ("stated", "stated"),
        ("unkno…", "unkno…"),
    ],
)
def test_paint(text: str, painted: str) -> None:
    assert paint(text, colour=True) == painted
    assert paint(text, colour=False) == text


@pytest.mark.parametrize("width", [80, 120, 200])
def test_without_its_colours_a_report_is_the_plain_one(width: int) -> None:
    for audit in (RECORDED, BLIND):
        for name in ("table", "wide"):
            coloured, plain = (rendered(name, audit, Screen(width, colour=colour)) for colour in (True, False))
            assert coloured != plain
            assert ANSI.sub("", coloured) == plain


def test_what_is_coloured() -> None:
    lines = table.render(RECORDED, Screen(colour=True)).splitlines()
    (row,) = [line for line in lines if line.startswith("shop/checkout d")]
    assert row == "shop/checkout deploy           3  \x1b[1;31mloses\x1b[0m, \x1b[34mmoves\x1b[0m  -62%..0%   app -6.0%"
    assert "\x1b[1;31mhigh\x1b[0m     CGA201 loses priority against system processes: 5 workloads" in lines
    assert "\x1b[1;33mmedium\x1b[0m   CGA204 CPU moves between containers of one pod: 2 workloads" in lines
    assert "low      CGA101 cgroup v1 node: 1 node" in lines


def test_what_is_missing_is_coloured() -> None:
    coverage = replace(RECORDED.coverage, gaps=(GapRecord("pods", "forbidden", "Ask for list"),))
    text = table.render(replace(RECORDED, coverage=coverage), Screen(colour=True))
    assert "\n\x1b[1;33mINCOMPLETE\x1b[0m: pods: forbidden. Ask for list.\n" in text


@given(HOSTILE)
@settings(max_examples=60, deadline=None)
def test_a_hostile_name_brings_no_escape(name: str) -> None:
    text = table.render(renamed(BLIND, lambda old: f"{old}\x1b[5m{name}\x1b]0;x\x07"), Screen(200, colour=True))
    assert set(ANSI.findall(text)) <= OURS
    assert "\x1b" not in ANSI.sub("", text)
    assert "\x07" not in text


@given(st.sampled_from(("loses", "unknown high", "gains")))
def test_a_name_that_is_an_effect_is_not_coloured(name: str) -> None:
    result = audited(cluster(node(), pod("p", container(name, "1"))))
    text = table.render(renamed(result, lambda _: name), Screen(120, colour=True))
    (row,) = [line for line in text.splitlines() if line.startswith(f"{name}/")]
    assert row.startswith(f"{name}/{name} {name}")


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"CLICOLOR_FORCE": "1"}, True),
        ({"FORCE_COLOR": "0"}, False),
        ({"FORCE_COLOR": ""}, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": ""}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "0"}, False),
    ],
)
def test_a_pipe_has_colour_only_if_forced(
    environment: dict[str, str],
    coloured: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert run(RECORDED_FLAGS) == 0
    assert ("\x1b[1;31mloses\x1b[0m" in capsys.readouterr().out) is coloured
