"""Packed findings are what was found, the worst first."""

import random

import pytest

from kubectl_cgaudit.judge.audit import SEVERITIES, Finding, Subject
from kubectl_cgaudit.judge.findings import Findings, faces


def found(amount: int) -> list[Finding]:
    """Findings of all severities and of a few rules, in no order."""
    dice = random.Random(7)
    return [
        Finding(
            rule := dice.choice(("CGA101", "CGA201", "CGA206")),
            dice.choice(SEVERITIES),
            f"title of {rule}",
            dice.choice((Subject("node", f"n{place}"), Subject("workload", f"w{place}", "shop", "Deployment"))),
            dice.choice(("", "if cgroup v1")),
            f"seen \u2192 {place}",
            f"why {rule}",
            f"remedy {place % 3}",
        )
        for place in range(amount)
    ]


@pytest.mark.parametrize("amount", [0, 1, 30, 3000])
def test_they_are_all_there_the_worst_first(amount: int) -> None:
    made = found(amount)
    packed, ordered = Findings(made), tuple(sorted(made, key=lambda each: each.order))
    assert len(packed) == amount
    assert bool(packed) == bool(amount)
    assert tuple(packed) == ordered
    assert packed == ordered
    assert [packed[place] for place in range(amount)] == list(ordered)


def test_places_and_slices() -> None:
    made = found(3000)
    packed, ordered = Findings(made), sorted(made, key=lambda each: each.order)
    assert (packed[-1], packed[2999]) == (ordered[-1], ordered[-1])
    assert packed[255:259] == tuple(ordered[255:259])
    assert packed[::-700] == tuple(ordered[::-700])
    with pytest.raises(IndexError):
        packed[3000]
    assert packed != Findings(made[1:])
    assert hash(packed) == hash(Findings(ordered))


@pytest.mark.parametrize("amount", [0, 1, 30, 3000])
def test_what_they_have_in_common_is_known_without_reading_them(amount: int, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = Findings(found(amount))
    ordered = tuple(packed)
    monkeypatch.setattr(Findings, "_unpacked", None)
    counted = faces(packed)
    assert counted == faces(ordered)
    assert sum(count for _, count in counted) == amount
    assert len(counted) == len({face for face, _ in counted})
    if amount == 1:
        (only,) = ordered
        assert counted == [((only.severity, only.rule, only.title), 1)]
