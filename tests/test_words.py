"""Words that reports share: facts for a ticket, and changes."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.report.content import facts
from kubectl_cgaudit.report.words import signed
from tests.hostile import hand_made

OURS = hand_made("web")


@pytest.mark.parametrize(
    ("fields", "key", "said"),
    [
        ({"filter": ""}, "Read from", "web"),
        ({"filter": "namespace a"}, "Read from", "web, only namespace a"),
        ({"complete": True}, "Coverage", "complete"),
    ],
)
def test_what_a_change_ticket_asks_first(fields: dict[str, Any], key: str, said: str) -> None:
    assert dict(facts(replace(OURS, coverage=replace(OURS.coverage, **fields))))[key] == said


def test_nothing_found_is_said_in_words() -> None:
    empty = replace(OURS, verdict=replace(OURS.verdict, workloads={}, findings={}))
    found = dict(facts(empty))
    assert (found["Findings"], found["Workloads, each by its strongest effect"]) == ("none", "none")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (0.0, "0%"),
        (0.00049, "0%"),
        (0.0006, "+0.1%"),
        (-0.047, "-4.7%"),
        (0.099, "+9.9%"),
        (0.1, "+10%"),
        (-0.617, "-62%"),
    ],
)
def test_a_change_in_words(change: float, text: str) -> None:
    assert signed(change) == text
