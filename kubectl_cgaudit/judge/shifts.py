"""What the migration does to the share of pods that pull alike on one node."""

from collections.abc import Sequence

from msgspec import Struct

from kubectl_cgaudit.judge.audit import Effect
from kubectl_cgaudit.judge.compare import Comparison
from kubectl_cgaudit.judge.kinds import PullChange
from kubectl_cgaudit.judge.pods import NEITHER, by_share
from kubectl_cgaudit.judge.rounding import as_said, relative, shown
from kubectl_cgaudit.judge.thresholds import Thresholds

Shift = tuple[float, str, float, float]
"""A change in one case: how much, the case, before, after."""
_Change = tuple[float | None, float, float]
"""How much, None where there is nothing to compare; before, after."""


Sure = tuple[float, float, float, float, float]
"""The change against the system that holds in every leading case, before and after it, and the share of the node before and
after."""


class Shifts(Struct, frozen=True, gc=False):
    """Over the leading cases, where nothing else is said. None where there is nothing to compare."""

    changes: tuple[float | None, ...]
    """Against the system, in each case; None where the node does not come back, too."""
    effects: tuple[frozenset[Effect], ...]
    """What that comes to in each case."""
    moved: tuple[float, ...]
    """How much more of the node's CPU it has after, in each case."""
    keeps: tuple[bool, ...]
    """Whether it loses less of its share of the node than counts as a loss, in each case."""
    worst: Shift | None
    """Against the system."""
    rank: tuple[float, float]
    """How bad that is, the worst first: as it is said, and of equal losses by how much of the node's CPU it is."""
    best: Shift | None
    share: Shift | None
    """Of the node's CPU, where it changes most."""
    sure: Sure | None
    leading: int
    """How many leading cases there are."""


def shifts(
    comparison: Comparison,
    pulls: Sequence[PullChange],
    systems: Sequence[float],
    thresholds: Thresholds,
    leading: Sequence[bool],
) -> Shifts:
    """Return those of the pods of a node with these pulls. `systems` is the share of system.slice before and after in each
    case; `leading`, which cases are leading ones to these pods.
    """
    changes: list[float | None] = []
    moved: list[float] = []
    keeps: list[bool] = []
    effects = []
    system: list[Shift] = []
    shares: list[Shift] = []
    known: dict[tuple[float, ...], tuple[_Change, _Change]] = {}
    for place, (case, (qos, was, will, competes)) in enumerate(zip(comparison.cases, pulls, strict=True)):
        if case.lost:
            changes.append(None)
            effects.append(NEITHER)
            moved.append(0.0)
            keeps.append(False)
            continue
        before = case.before.pods.fraction(qos, was) if competes else 0.0
        after = case.after.pods.fraction(qos, will) if competes else 0.0
        ends = before, after, systems[2 * place], systems[2 * place + 1]
        both = known.get(ends)
        if both is None:
            # A runtime's formula makes no difference to a pod's share, so many cases have the same.
            both = known[ends] = _change(before / ends[2], after / ends[3]), _change(before, after)
        (against, times_before, times_after), (of_share, share_before, share_after) = both
        changes.append(against)
        effects.append(by_share(against, thresholds))
        moved.append(share_after - share_before)
        keeps.append(not thresholds.loses(of_share))
        if against is not None and leading[place]:
            system.append((against, case.when, times_before, times_after))
        if of_share is not None and leading[place]:
            shares.append((of_share, case.when, share_before, share_after))
    worst = min(system, default=None)
    return Shifts(
        changes=tuple(changes),
        effects=tuple(effects),
        moved=tuple(moved),
        keeps=tuple(keeps),
        worst=worst,
        rank=(as_said(worst[0]), moved[changes.index(worst[0])]) if worst else (0.0, 0.0),
        best=max(system, default=None),
        share=min(shares, key=lambda each: (-abs(each[0]), each), default=None),
        sure=_sure(max(system), shares) if system and len(system) == sum(leading) else None,
        leading=sum(leading),
    )


def _change(before: float, after: float) -> _Change:
    """As they are shown."""
    ends = shown(before), shown(after)
    return relative(*ends), *ends


def _sure(least: Shift, shares: Sequence[Shift]) -> Sure:
    change, when, before, after = least
    share = next((each for each in shares if each[1] == when), least)
    return change, before, after, share[2], share[3]
