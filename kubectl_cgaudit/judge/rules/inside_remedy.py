"""What to do about CGA204: requests that give a container its part of its pod back, in words."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from kubectl_cgaudit.cgroups.pods import container_limit
from kubectl_cgaudit.collect.model import Container, Pod
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.state import Setup
from kubectl_cgaudit.judge.compare import PodCase
from kubectl_cgaudit.judge.rules.rebalance import Balance, Measure, Requests, restored, spread
from kubectl_cgaudit.judge.rules.requests import PodRequest, limits
from kubectl_cgaudit.predict.tree import Cgroup
from kubectl_cgaudit.text import percent


class Part(Struct, frozen=True):
    """A container before and after, with its fraction of its pod's CPU and the change of that."""

    container: Container
    before: Cgroup
    after: Cgroup
    was: float
    will: float
    change: float | None


def advice(case: PodCase, placed: PlacedPod, parts: Sequence[Part], losing: Part, most_lost: float) -> str:
    """What gives the loser of a pod in one case its part back. `most_lost` is the fraction (0..1) it may lack."""
    pod, used = placed
    gainers = [part for part in parts if (part.change or 0.0) > 0]
    rest = [part for part in parts if part is not losing and part.change is not None and part.change <= 0]
    now, then = case.case.now, case.case.then
    balance = _balance(losing, gainers, rest, placed, then, most_lost)
    if any(_of_pods_limit(part.container, pod, then) for part in (losing, *gainers)):
        return _lowered(case, placed, losing, gainers, rest, balance)
    shifted, raised = restored(balance)
    loser = losing.container
    pods = PodRequest(pod, then)
    raise_to = pods.after({loser.name: raised})
    late = _late(now, then, used)
    enough = balance.enough((raised, balance.gainers))
    others = [part.container.name for part in (*gainers, *rest)]
    cost = _who_lacks(balance, (raised, balance.gainers), others, "But then {} lacks")
    with_limits = cost + limits(pod, [(loser, raised)], raise_to) + pods.named_then({loser.name: raised}, used)
    if enough and raise_to == pods.now:
        # An init container, or the pod itself, asks for more than the containers together: up to there requests are free.
        values = _row(balance.values((raised, balance.gainers)))
        return (
            f"Raise the request, which costs nothing to schedule and keeps the pod's weight, as the pod's request stays "
            f"{pods.now}m: {_asked(loser, balance.loser)} -> {raised}m; {_values(then)} {_order((losing, *gainers))} = {values}, "
            f"against {_was((losing, *gainers))} now.{with_limits}{late}"
        )
    more = f"{raised}m, {raise_to - pods.now}m more a pod to schedule.{with_limits}{late}"
    plan = _plan(_Plan(balance, shifted, gainers, rest), placed, losing, then)
    if not plan:
        none = "No shift of the request between them restores the old ratio."
        return f"{none} Raising {loser.name} alone does: {more}" if enough else none
    alone = f" Raising {loser.name} alone takes {more}" if enough else late
    return f"Shift the request inside the pod{_shift(plan, pods, losing, used)}{alone}"


class _Plan(NamedTuple):
    """A shift of requests inside a pod: `gainers` are those that may change beside the loser, `rest` keeps what it has."""

    balance: Balance
    requests: Requests
    gainers: Sequence[Part]
    rest: Sequence[Part]


def _plan(between: _Plan, placed: PlacedPod, losing: Part, then: Setup) -> _Plan | None:
    """The shift to advise: over all containers where the one between the loser and those that gain leaves others short.

    None where neither helps.
    """
    balance, shifted, gainers, rest = between
    if any(map(balance.too_much, balance.lacking(shifted))):
        asking = [part for part in (*gainers, *rest) if _asks_itself(part.container)]
        # What asks for nothing has nothing to give, and keeps what it has.
        silent = [part for part in (*gainers, *rest) if part not in asking]
        every = _balance(losing, asking, silent, placed, then, balance.most_lost)
        if found := spread(every):
            return _Plan(every, found, asking, silent)
    return between if shifted[0] > balance.loser else None


def _shift(plan: _Plan, pods: PodRequest, losing: Part, used: str) -> str:
    """What a shift changes and comes to, and what it takes with it."""
    balance, (mine, theirs), gainers, rest = plan
    parts = (losing, *gainers)
    asked = [
        (part.container, old, new)
        for part, old, new in zip(parts, (balance.loser, *balance.gainers), (mine, *theirs), strict=True)
        if old != new
    ]
    changed = [f"{_asked(container, old)} -> {new}m" for container, old, new in asked]
    requests = {container.name: new for container, _, new in asked}
    to = pods.after(requests)
    others = [part.container.name for part in (*gainers, *rest)]
    free = ", which costs nothing to schedule and keeps the pod's weight" if to == pods.now else ""
    return (
        f"{free}: {', '.join(changed)}; {_values(pods.setup)} {_order(parts)} = {_row(balance.values(plan.requests))}, as "
        f"{_was(parts)} now.{_who_lacks(balance, plan.requests, others, 'Then {} still lacks')}"
        f"{limits(pods.pod, [(container, new) for container, _, new in asked], to)}"
        f"{pods.named_then(requests, used)}{'' if free else f' {pods.changes(to)}'}"
    )


def _asked(container: Container, milli: int) -> str:
    return f"{container.name} {milli}m" if milli else f"{container.name} no request"


def _balance(
    losing: Part, gainers: Sequence[Part], rest: Sequence[Part], placed: PlacedPod, then: Setup, most_lost: float
) -> Balance:
    """What to weigh: requests of `gainers` may change, those of `rest` do not. Who competes has a value."""
    pod, used = placed
    return Balance(
        loser=_asks(losing.container, pod, then),
        gainers=tuple(_asks(part.container, pod, then) for part in gainers),
        ratios=tuple(_ratio(part, losing) for part in gainers),
        measure=_measure(then, used),
        most_lost=most_lost,
        rest=tuple(part.after.value or 0 for part in rest),
        rest_ratios=tuple(_ratio(part, losing) for part in rest),
    )


def _order(parts: Sequence[Part]) -> str:
    return " : ".join(part.container.name for part in parts)


def _was(parts: Sequence[Part]) -> str:
    return " : ".join(str(part.before.value) for part in parts)


def _asks_itself(container: Container) -> bool:
    """Whether a container asks for CPU, by its own request or, without one, its own limit."""
    return bool(container.request_milli if container.request_milli is not None else container.limit_milli)


def _lowered(
    case: PodCase, placed: PlacedPod, losing: Part, gainers: list[Part], rest: list[Part], balance: Balance
) -> str:
    """Where a container has its weight from the limit of the pod: requests of the others that give it its part back."""
    pod, used = placed
    then = case.case.then
    lowered = balance.lowered(balance.loser)
    changed = [
        f"{part.container.name} {old}m{' (the limit of the pod)' * _of_pods_limit(part.container, pod, then)} -> {new}m"
        for part, old, new in zip(gainers, balance.gainers, lowered, strict=True)
        if old != new
    ]
    if not changed or not balance.fair((balance.loser, lowered)):
        return "No smaller request of those that gain restores the old ratio."
    was = _was((losing, *gainers))
    values = f"{_values(then)} {_order((losing, *gainers))} = {_row(balance.values((balance.loser, lowered)))}"
    pods = PodRequest(pod, then)
    names = [part.container.name for part in gainers]
    requests = dict(zip(names, lowered, strict=True))
    after = pods.after(requests)
    # What had its weight from the limit of the pod asked for nothing.
    free = "" if after > pods.now else ", which costs nothing to schedule"
    others = [*names, *(part.container.name for part in rest)]
    still = _who_lacks(balance, (balance.loser, lowered), others, "Then {} still lacks")
    other = "" if after == pods.now else f" {pods.changes(after)}"
    return (
        f"Give those that gain a smaller request{free}: {', '.join(changed)}; {values}, against {was} now."
        f"{still}{limits(pod, (), after)}{pods.named_then(requests, used)}{other}{_late(case.case.now, then, used)}"
    )


def _ratio(part: Part, losing: Part) -> float:
    """What a container had over what the loser had."""
    return (part.before.value or 0) / (losing.before.value or 1)


def _who_lacks(balance: Balance, requests: Requests, names: Sequence[str], begin: str) -> str:
    """Who but the loser lacks too much with these requests: values are whole, and beside a larger one all others count less."""
    _, *lacking = balance.lacking(requests)
    less = [(name, lacks) for name, lacks in zip(names, lacking, strict=True) if balance.too_much(lacks)]
    if not less:
        return ""
    (first, most), *others = less
    also = "".join(f", {name} {percent(lacks)}" for name, lacks in others)
    return f" {begin.format(first)} {percent(most)} of its part of now{also}."


def _measure(setup: Setup, used: str) -> Measure:
    if setup.cgroup == "v1":
        return "shares"
    return "linear" if setup.runtime(used).formula == "linear" else "quadratic"


def _values(setup: Setup) -> str:
    return "shares" if setup.cgroup == "v1" else "weights"


def _late(now: Setup, then: Setup, used: str) -> str:
    """The runtime, or the kubelet, of now would split by the new requests in the old way."""
    if now.cgroup != then.cgroup:
        # It may be the one of now: where that is open, the two cases are told as one.
        return f" Not before the node is on cgroup {then.cgroup}, with the runtime it has then."
    if now.runtime(used).formula != then.runtime(used).formula:
        return " Not before the new runtime creates the containers."
    return ""


def _of_pods_limit(container: Container, pod: Pod, setup: Setup) -> bool:
    """Whether a container has its shares from the limit of its pod."""
    own = container.request_milli is not None or container.limit_milli
    return not own and container_limit(container, pod, setup.kubelet_version) is not None


def _asks(container: Container, pod: Pod, setup: Setup) -> int:
    """Its request, for which a limit alone stands, or that of its pod."""
    if container.request_milli is not None:
        return container.request_milli
    return container_limit(container, pod, setup.kubelet_version) or 0


def _row(weights: Sequence[int]) -> str:
    return " : ".join(map(str, weights))
