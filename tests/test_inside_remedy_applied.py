"""CGA204: a remedy that is applied, and audited again, does what it says."""

import re
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from tests.support import (
    V1,
    V2_LINEAR,
    V2_QUADRATIC,
    audited,
    cluster,
    container,
    node,
    of_rule,
    pod,
    requesting,
    the_finding,
)


@pytest.mark.parametrize("seed", range(4))
def test_204_what_the_remedy_advises_gives_the_loser_its_part_back(seed: int, tmp_path: Path) -> None:
    """Each remedy is applied, and audited again: the loser lacks less of its part of now than the threshold.

    What a shift takes, nobody lacks as much of instead who did not without it; whom raising takes as much from is named.
    """
    back = tmp_path / "back.yaml"
    back.write_text("- {cgroup: v1}\n")
    ways: list[tuple[str, str]] = [(V2_LINEAR, "runtime"), (V1, "v2"), (V1, "v2+runtime"), (V2_QUADRATIC, "runc=1.1.5")]
    random = Random(seed)
    shifts = raised = 0
    for rules, to in (*ways, (V2_QUADRATIC, str(back))):
        for _ in range(30):
            amounts = random.choices((0, 3, 10, 15, 20, 50, 100, 200, 500, 1000, 2000), k=random.choice((2, 3, 4)))
            requests = {f"c{n}": amount for n, amount in enumerate(amounts)}
            found = advised(requests, rules, to)
            if found is None:
                continue
            if found.shift:
                assert sum(found.shift.values()) == sum(amounts)
                lost = losses(found, found.shift, rules, to)
                without = losses(found, requests, rules, to)
                worse = {name for name, each in lost.items() if each >= 0.05 and each > without[name]}
                assert lost[found.loser] < 0.05, (requests, found.shift, lost)
                assert worse == set(), (requests, found.shift, lost)
                shifts += 1
            if found.raised:
                lost = losses(found, requests | found.raised, rules, to)
                assert lost[found.loser] < 0.05, (requests, found.raised)
                assert {name for name, each in lost.items() if each >= 0.05} == found.told, (requests, found.raised)
                raised += 1
    assert shifts > 20
    assert raised > 20


def losses(found: "Advised", requests: Mapping[str, int], rules: str, to: str) -> dict[str, float]:
    """The fraction that each container lacks of its part of now, with other requests after the move."""
    again = audited(requesting(requests), rules, to).workloads[0].pods[0]
    return {each.name: 1 - (each.cases[0].after.in_pod or 0.0) / found.now[each.name] for each in again.containers}


class Advised(NamedTuple):
    """Who loses, the parts of now, the requests that the remedy advises, and who is said to lack too much once one is raised."""

    loser: str
    now: dict[str, float]
    shift: dict[str, int]
    raised: dict[str, int]
    told: set[str]


def advised(requests: dict[str, int], rules: str, to: str) -> Advised | None:
    """What a remedy says; None where nothing is found, or nothing helps."""
    audit = audited(requesting(requests), rules, to)
    finding = of_rule(audit, "CGA204").get("default/p")
    if finding is None or finding.remedy == "No shift of the request between them restores the old ratio.":
        return None
    loser = re.findall(r": (c\d) has", finding.seen)[0]
    cases = {each.name: each.cases[0] for each in audit.workloads[0].pods[0].containers}
    now = {name: case.before.in_pod or 0.0 for name, case in cases.items()}
    shift, _, _ = finding.remedy.partition("; ")
    moved = {name: int(milli) for name, milli in re.findall(r"(c\d) (?:\d+m|no request) -> (\d+)m", shift)}
    alone = re.search(rf"Raising {loser} alone \w+:? (\d+)m", finding.remedy)
    raised = {loser: int(alone[1])} if alone else {}
    assert moved or raised, finding.remedy
    told = set(re.findall(r"c\d", finding.remedy.partition(" But then ")[2]))
    return Advised(loser, now, requests | moved if moved else {}, raised, told)


@pytest.mark.parametrize(
    ("asked", "rules", "to", "shift", "values"),
    [
        # 102 : 102 : 29 before, 17 : 17 : 7 after: a and b both lose 5.3%.
        (("100m", "100m", "29m"), V1, "v2+runtime", "b 100m -> 113m, c 29m -> 15m, a 100m -> 101m", "19 : 5 : 18"),
        # What neither gains nor loses enough gives, too: else what a large one wants back another would lack.
        (
            ("29m", "500m", "15m", "333m"),
            V1,
            "v2+runtime",
            "b 500m -> 545m, a 29m -> 10m, c 15m -> 3m, d 333m -> 319m",
            "63 : 4 : 2 : 42",
        ),
        (
            ("2", "20m", "200m", "20m"),
            V2_QUADRATIC,
            "runc=1.1.5",
            "c 200m -> 285m, a 2000m -> 1847m, b 20m -> 54m, d 20m -> 54m",
            "12 : 73 : 3 : 3",
        ),
        # One without a request keeps what it has, and the loser may have none.
        (
            ("105m", "100m", "15m", None),
            V2_LINEAR,
            "runtime",
            "d no request -> 10m, b 100m -> 85m, c 15m -> 10m, a 105m -> 115m",
            "4 : 16 : 4 : 19",
        ),
    ],
)
def test_204_of_several_that_lose_all_have_their_part_back_where_a_shift_gives_it(
    asked: tuple[str | None, ...], rules: str, to: str, shift: str, values: str
) -> None:
    containers = [container(name, milli) for name, milli in zip("abcd", asked, strict=False)]
    finding = the_finding("CGA204", rules, to, node(cpu="8"), pod("p", *containers))
    said, _, _ = finding.remedy.partition(" Raising ")
    first = "Shift the request inside the pod, which costs nothing to schedule and keeps the pod's weight: "
    assert said.startswith(f"{first}{shift}; weights ")
    assert f" = {values}, as " in said
    assert "lacks" not in said
    moved = dict(re.findall(r"(\w) (?:\d+m|no request) -> (\d+m)", shift))
    again = [container(name, moved.get(name, milli)) for name, milli in zip("abcd", asked, strict=False)]
    then, before = (
        audited(cluster(node(cpu="8"), pod("p", *each)), rules, to).workloads[0].pods[0].containers
        for each in (again, containers)
    )
    for own, was in zip(then, before, strict=True):
        assert 1 - (own.cases[0].after.in_pod or 0) / (was.cases[0].before.in_pod or 1) < 0.05
