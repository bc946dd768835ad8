"""CGA204: CPU that moves between the containers of one pod."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from kubectl_cgaudit.collect.model import Container, Pod
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.state import Setup
from kubectl_cgaudit.judge.compare import Comparison, PodCase
from kubectl_cgaudit.judge.condition import condition
from kubectl_cgaudit.judge.rounding import relative, rounded, shown
from kubectl_cgaudit.judge.rules.catalogue import MOVES_INSIDE
from kubectl_cgaudit.judge.rules.context import Context, Hit, Pairs, PodRule, graded, pod_hits
from kubectl_cgaudit.judge.rules.inside_remedy import Part, advice
from kubectl_cgaudit.judge.rules.looks import Look, Words
from kubectl_cgaudit.text import capital, named, percent

_NAMED = 5
_GRADED = graded((0.3, "high"), (0.1, "medium"))


class _Move(NamedTuple):
    """The container that loses most in a case, and what to say of it."""

    loser: Container
    look: Look


def _moves(context: Context, comparison: Comparison, placed: PlacedPod, cases: tuple[PodCase, ...]) -> Iterator[Hit]:
    pod, used = placed
    splits = [_split(case, used) for case in cases]
    alike = dict(zip(splits, cases, strict=True))
    found = {split: _move(context, comparison.node.name, placed, case) for split, case in alike.items()}
    moves = [found[split] for split in splits]
    looks = [move.look if move else None for move in moves]
    every = [case.case.when for case in cases]
    losing = [(when, move) for when, move in zip(every, moves, strict=True) if move]
    for hit in pod_hits(pod, None, zip(cases, looks, strict=True), _GRADED):
        yield replace(hit, words=partial(_with_losers, hit.words, losing, every))


def _split(case: PodCase, used: str) -> object:
    """What a move depends on in a case: to a cgroup of the other version it is the same from whichever formula."""
    now, then = case.case.now, case.case.then
    formula = now.runtime(used).formula if now.cgroup == then.cgroup else None
    values = tuple([cgroup.value for _, cgroup in case.before.containers])
    return now.cgroup, formula, values, case.before.parts, id(case.after)


def _with_losers(words: Words, moves: Sequence[tuple[str, _Move]], every: Sequence[str]) -> tuple[str, str]:
    """The words of the worst case, with who loses in the others, where that is another container."""
    seen, remedy = words()
    by_loser: dict[str, dict[str, float]] = defaultdict(dict)
    for when, (loser, look) in sorted(moves, key=lambda each: (shown(each[1].look.badness), each[0]), reverse=True):
        by_loser[loser.name][when] = shown(look.badness)
    _, *others = by_loser.items()
    for name, losses in others:
        most = max(losses.values())
        worse = " at worst" if most > min(losses.values()) else ""
        seen += f" {capital(condition(list(losses), every))} {name} loses, {percent(-most)}{worse}."
    return seen, remedy


def _may_move(context: Context, _pod: Pod, pairs: Pairs) -> bool:
    return any(context.thresholds.moves(relative(before.in_pod, after.in_pod)) for before, after in pairs)


def _holds_for(worst: Comparison, told: PlacedPod, placed: Iterable[tuple[Comparison, PlacedPod]]) -> str:
    """Where other formulas split other pods of a workload: what restores the ratio in one may not there."""
    own = _formulas(worst, told)
    # What one pod carries from before an upgrade the others on its node need not.
    splits = {
        (each.node.name, used, pod.name if each.state.leftovers else ""): (each, (pod, used))
        for each, (pod, used) in placed
    }
    others = {name for (name, *_), split in splits.items() if _formulas(*split) not in (own, set())}
    if not others:
        return ""
    there = named(sorted(others), _NAMED)
    this, the_pod = (told[0].name, "others of its pods") if worst.node.name in others else (worst.node.name, "the pod")
    return (
        f" This is for {this}. On {there} another formula splits {the_pod}, or may, before or after the move: there, new "
        "requests may take CPU from a container."
    )


def _formulas(comparison: Comparison, placed: PlacedPod) -> set[tuple[str, str]]:
    """What splits a pod before and after, in every case in which it is split."""
    by = [[_split_by(each, placed) for each in (case.now, case.then)] for case in comparison.cases if not case.lost]
    return {(now, then) for now, then in by if "none" not in (now, then)}


def _split_by(setup: Setup, placed: PlacedPod) -> str:
    pod, used = placed
    formula = setup.runtime(used).formula
    if setup.cgroup == "v1" and formula != "none":
        return "shares"
    left = [setup.left_over(pod.namespace, pod.name, each.name) for each in pod.present]
    return next((each.formula for each in left if each), formula)


MOVES = PodRule(MOVES_INSIDE, _moves, _may_move, holds_for=_holds_for)
"""CGA204."""


def _parts(case: PodCase) -> Iterator[Part]:
    # Decided by the numbers that are shown: those behind them differ from node to node in their last digit.
    trees = zip(case.before.containers, case.after.containers, case.before.parts, case.after.parts, strict=True)
    for (container, before), (_, after), was, will in trees:
        now, then = rounded(was), rounded(will)
        yield Part(container, before, after, now or 0.0, then or 0.0, relative(now, then))


def _move(context: Context, node: str, placed: PlacedPod, case: PodCase) -> _Move | None:
    pod, _ = placed
    parts = list(_parts(case))
    losers = [part for part in parts if context.thresholds.moves(part.change)]
    if not losers:
        return None
    # With several losers the one with the largest part of the pod is the app; of equal parts it is who loses most.
    loser = max(losers, key=lambda part: (part.was, -(part.change or 0.0), part.container.name))
    badness = -(loser.change or 0.0)

    def words() -> tuple[str, str]:
        gainers = [part for part in parts if (part.change or 0.0) > 0]
        gains = " and ".join(
            f"{gainer.container.name} ({percent(gainer.was)} -> {percent(gainer.will)})" for gainer in gainers
        )
        seen = (
            f"Pod {pod.namespace}/{pod.name} on {node}: {loser.container.name} has {percent(loser.was)} of its pod's CPU now "
            f"and {percent(loser.will)} after ({percent(-badness)}){f'; what it loses goes to {gains}' if gains else ''}. "
            f"Weights: {_weights(case)}."
        )
        return seen, advice(case, placed, parts, loser, context.thresholds.pod_move)

    return _Move(loser.container, Look(badness, words))


def _weights(case: PodCase) -> str:
    return ", ".join(
        f"{container.name} {before.value} -> {after.value}"
        for (container, before), (_, after) in zip(case.before.containers, case.after.containers, strict=True)
    )
