"""CGA204: CPU that moves between the containers of one pod, and the request that would undo it."""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from kubectl_cgaudit.cgroups.pods import pod_request
from kubectl_cgaudit.cgroups.weights import MAX_WEIGHT, Formula, milli_to_shares, shares_with_weight, weight_of
from kubectl_cgaudit.collect.model import Container, Pod
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.state import Setup, unit_of
from kubectl_cgaudit.judge.compare import Comparison, PodCase
from kubectl_cgaudit.judge.rounding import relative, rounded
from kubectl_cgaudit.judge.rules.catalogue import MOVES_INSIDE
from kubectl_cgaudit.judge.rules.context import Context, Hit, Look, Pairs, PodRule, graded, pod_hits
from kubectl_cgaudit.predict.shape import kubelet_value
from kubectl_cgaudit.predict.tree import Cgroup
from kubectl_cgaudit.text import percent


class _Part(NamedTuple):
    """A container before and after, with its fraction of its pod's CPU and the change of that."""

    container: Container
    before: Cgroup
    after: Cgroup
    was: float
    will: float
    change: float | None


def _moves(context: Context, comparison: Comparison, placed: PlacedPod, cases: tuple[PodCase, ...]) -> Iterator[Hit]:
    pod, _ = placed
    if len(cases[0].before.containers) > 1:
        looks = [(case, _move(context, comparison.node.name, placed, case)) for case in cases]
        yield from pod_hits(pod, None, looks)


def _may_move(context: Context, _pod: Pod, pairs: Pairs) -> bool:
    return any(_loses(context, relative(before.in_pod, after.in_pod)) for before, after in pairs)


def _loses(context: Context, change: float | None) -> bool:
    return (change or 0.0) <= -context.thresholds.pod_move


MOVES = PodRule(MOVES_INSIDE, _moves, graded((0.3, "high"), (0.1, "medium")), _may_move)
"""CGA204."""


def _parts(case: PodCase) -> Iterator[_Part]:
    # Decided by the numbers that are shown: those behind them differ from node to node in their last digit.
    trees = zip(case.before.containers, case.after.containers, case.before.parts, case.after.parts, strict=True)
    for (container, before), (_, after), was, will in trees:
        now, then = rounded(was), rounded(will)
        yield _Part(container, before, after, now or 0.0, then or 0.0, relative(now, then))


def _move(context: Context, node: str, placed: PlacedPod, case: PodCase) -> Look:
    pod, _ = placed
    parts = list(_parts(case))
    losers = [part for part in parts if _loses(context, part.change)]
    if not losers:
        return None
    # With several losers the one with the largest part of the pod is the app.
    loser = max(losers, key=lambda part: (part.was, part.container.name))
    badness = -(loser.change or 0.0)
    if not context.words:
        return badness, "", ""
    gainers = [part for part in parts if (part.change or 0.0) > 0]
    gains = " and ".join(
        f"{gainer.container.name} ({percent(gainer.was)} -> {percent(gainer.will)})" for gainer in gainers
    )
    seen = (
        f"Pod {pod.namespace}/{pod.name} on {node}: {loser.container.name} has {percent(loser.was)} of its pod's CPU now and "
        f"{percent(loser.will)} after ({percent(-badness)}); what it loses goes to {gains}. Weights: {_weights(case)}."
    )
    return badness, seen, _remedy(case, placed, loser, gainers, context.thresholds.pod_move)


def _weights(case: PodCase) -> str:
    return ", ".join(
        f"{container.name} {before.value} -> {after.value}"
        for (container, before), (_, after) in zip(case.before.containers, case.after.containers, strict=True)
    )


def _remedy(case: PodCase, placed: PlacedPod, losing: _Part, gainers: list[_Part], most_lost: float) -> str:
    pod, used = placed
    loser, before = losing.container, losing.before
    now, then = case.case.now, case.case.then
    formula = then.runtime(used).formula
    # Who loses and gains competes, so each has a value and its runtime a formula.
    curve: Formula = "linear" if formula == "linear" else "quadratic"
    ratios = [(part.before.value or 0) / (before.value or 1) for part in gainers]
    own, *olds = [_asks(container) for container in (loser, *(part.container for part in gainers))]
    mine, theirs = shifted(own, olds, ratios, curve, most_lost) if all(olds) else (own, olds)
    raised = raised_alone(own, olds, ratios, curve, most_lost)
    names = [part.container.name for part in gainers]
    lowered = [f"{name} {old}m -> {new}m" for name, old, new in zip(names, olds, theirs, strict=True) if old != new]
    was = " : ".join(str(value) for value in (before.value, *(part.before.value for part in gainers)))
    order = " : ".join([loser.name, *names])
    has = f"{loser.name} {own}m" if own else f"{loser.name} no request"
    shift = f"{has} -> {mine}m, {', '.join(lowered)}; weights {order} = {_row(mine, theirs, curve)}"
    pods = _PodRequest(pod, then)
    shift_to = pods.after({loser.name: mine, **dict(zip(names, theirs, strict=True))})
    raise_to = pods.after({loser.name: raised})
    # The runtime of now would split by the new requests with the old formula.
    moved = now.cgroup != then.cgroup
    where = f" on cgroup {then.cgroup}" if moved else ""
    changed = moved or now.runtime(used).formula != formula
    late = f" Not before the new runtime creates the containers{where}." if changed else ""
    limits = _limits(pod, loser, mine, shift_to)
    also = _limits(pod, loser, raised, raise_to) + late
    enough = _lost(raised, olds, ratios, curve) < most_lost
    if enough and raised > own and raise_to == pods.now:
        # An init container, or the pod itself, asks for more than the containers together: up to there requests are free.
        return (
            f"Raise the request, which costs nothing to schedule and keeps the pod's weight, as the pod's request stays "
            f"{pods.now}m: {has} -> {raised}m; weights {order} = {_row(raised, olds, curve)}, "
            f"against {was} now.{also}"
        )
    more = f"{raised}m, {raise_to - pods.now}m more a pod to schedule.{also}"
    if mine <= own or _lost(mine, theirs, ratios, curve) >= most_lost:
        none = "No shift of the request between them restores the old ratio."
        return f"{none} Raising {loser.name} alone does: {more}" if enough else none
    alone = f" Raising {loser.name} alone takes {more}" if enough else limits + late
    if shift_to == pods.now:
        free = "Shift the request inside the pod, which costs nothing to schedule and keeps the pod's weight"
        return f"{free}: {shift}, as {was} now.{alone}"
    return f"Shift the request inside the pod: {shift}, as {was} now. {pods.changes(shift_to)}{alone}"


def _asks(container: Container) -> int:
    """Its request, for which a limit alone stands."""
    return container.request_milli if container.request_milli is not None else container.limit_milli or 0


def _limits(pod: Pod, loser: Container, milli: int, whole: int) -> str:
    """Which limits a request of the loser, and `whole` of its pod, take with them: no API server takes one below its request."""
    if pod.qos == "Guaranteed" and loser.limit_milli:
        return " Their limits go with them, as the pod is Guaranteed."
    named = ((loser.name, loser.limit_milli, milli), ("the pod", pod.limit_milli, whole))
    over = [f"{name} ({limit}m)" for name, limit, request in named if limit and request > limit]
    return f" The limit of {' and of '.join(over)} must go up with it." if over else ""


class _PodRequest:
    """A pod's request (thousandths of a CPU) and its weight, now and with other requests of its containers."""

    def __init__(self, pod: Pod, setup: Setup) -> None:
        self.pod = pod
        self.setup = setup
        self.now = self.after({})

    def after(self, requests: dict[str, int]) -> int:
        """The pod's request with these requests of containers. One of the pod itself is never less than their sum."""
        containers = tuple(
            replace(each, request_milli=requests.get(each.name, each.request_milli)) for each in self.pod.containers
        )
        alike = replace(self.pod.alike, containers=containers)
        pod, unsaid = (replace(self.pod, alike=each) for each in (alike, replace(alike, request_milli=None)))
        version = self.setup.kubelet_version
        return max(pod_request(pod, version), pod_request(unsaid, version))

    def changes(self, milli: int) -> str:
        """What another request means for the pod, in words."""
        now, then = (kubelet_value(milli_to_shares(each), self.setup) for each in (self.now, milli))
        unit = unit_of(self.setup.cgroup)
        weight = f"its {unit} stays {now}" if now == then else f"its {unit} from {now} to {then}"
        return f"The pod's request, of which init containers are a part, goes from {self.now}m to {milli}m, {weight}."


def _row(loser: int, gainers: Sequence[int], formula: Formula) -> str:
    return " : ".join(str(_weight(milli, formula)) for milli in (loser, *gainers))


def shifted(
    loser: int, gainers: Sequence[int], ratios: Sequence[float], formula: Formula, most_lost: float
) -> tuple[int, list[int]]:
    """Requests with the same sum that give the loser its part back, as near as whole weights allow.

    Where the nearest still lacks `most_lost` of the part or more, the first that lacks nothing. The more it has, the
    less it lacks: bisected, as weighing the two sides against each other in turn need not settle.
    """
    whole = loser + sum(gainers)

    def split(mine: int) -> tuple[int, list[int]]:
        weight = _weight(mine, formula)
        theirs = [min(old, request_for(weight * part, formula)) for old, part in zip(gainers, ratios, strict=True)]
        left = whole - mine - sum(theirs)
        for place in sorted(range(len(theirs)), key=lambda place: -gainers[place]):
            given = max(1, min(gainers[place], theirs[place] + left))
            left -= given - theirs[place]
            theirs[place] = given
        return mine, theirs

    def lacks(requests: tuple[int, list[int]]) -> float:
        return _lost(*requests, ratios, formula)

    least, most = loser, whole - len(gainers)
    while least < most:
        middle = (least + most) // 2
        if lacks(split(middle)) > 0:
            least = middle + 1
        else:
            most = middle
    near = min((split(mine) for mine in (least - 1, least) if mine >= loser), key=lambda each: abs(lacks(each)))
    return near if lacks(near) < most_lost else split(least)


def raised_alone(
    loser: int, gainers: Sequence[int], ratios: Sequence[float], formula: Formula, most_lost: float
) -> int:
    """The loser's request that gives it back its part beside the gainers, without touching theirs.

    The nearest weight, or the next one where that still lacks `most_lost` of the part or more.
    """
    wanted = sum(_weight(old, formula) for old in gainers) / sum(ratios)
    near = max(loser, request_for(wanted, formula))
    if _lost(near, gainers, ratios, formula) < most_lost:
        return near
    return max(loser, request_for(math.ceil(wanted), formula))


def _lost(loser: int, gainers: Sequence[int], ratios: Sequence[float], formula: Formula) -> float:
    """The fraction of its part that the loser still lacks with these requests: weights are whole, and 1 is the least."""
    own = _weight(loser, formula)
    part = own / (own + sum(_weight(milli, formula) for milli in gainers))
    return 1 - part * (1 + sum(ratios))


@lru_cache(maxsize=4096)
def _weight(milli: int, formula: Formula) -> int:
    return weight_of(milli_to_shares(milli), formula)


def request_for(weight: float, formula: Formula) -> int:
    """The smallest request, in thousandths of a CPU, whose weight comes nearest to the wanted one."""
    return _least_request(max(1, min(MAX_WEIGHT, round(weight))), formula)


@lru_cache(maxsize=4096)
def _least_request(weight: int, formula: Formula) -> int:
    shares = shares_with_weight(weight, formula)
    assert shares is not None  # Both formulas reach every weight.
    return -(-shares[0] * 1000 // 1024)
