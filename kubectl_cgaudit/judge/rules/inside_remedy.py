"""What to do about CGA204: requests that give a container its part of its pod back, in words."""

from collections.abc import Sequence
from typing import NamedTuple

from kubectl_cgaudit.cgroups.pods import container_limit
from kubectl_cgaudit.collect.model import Container, Pod
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.state import Setup
from kubectl_cgaudit.judge.compare import PodCase
from kubectl_cgaudit.judge.rules.rebalance import Balance, Measure, Requests, restored, spread
from kubectl_cgaudit.judge.rules.requests import PodRequest, limits
from kubectl_cgaudit.predict.tree import Cgroup
from kubectl_cgaudit.text import percent


class Part(NamedTuple):
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
    loser, names = losing.container, [part.container.name for part in gainers]
    pods = PodRequest(pod, then)
    raise_to = pods.after({loser.name: raised})
    late = _late(now, then, used)
    enough = raised > balance.loser and balance.enough((raised, balance.gainers))
    has = f"{loser.name} {balance.loser}m" if balance.loser else f"{loser.name} no request"
    others = [*names, *(part.container.name for part in rest)]
    cost = _who_lacks(balance, (raised, balance.gainers), others, "But then {} lacks")
    with_limits = cost + limits(pod, [(loser, raised)], raise_to)
    if enough and raise_to == pods.now:
        # An init container, or the pod itself, asks for more than the containers together: up to there requests are free.
        values = _row(balance.values((raised, balance.gainers)))
        return (
            f"Raise the request, which costs nothing to schedule and keeps the pod's weight, as the pod's request stays "
            f"{pods.now}m: {has} -> {raised}m; {_values(then)} {_order(losing, gainers)} = {values}, against "
            f"{_was(losing, gainers)} now.{with_limits}{late}"
        )
    more = f"{raised}m, {raise_to - pods.now}m more a pod to schedule.{with_limits}{late}"
    helps = shifted[0] > balance.loser
    if any(map(balance.too_much, balance.lacking(shifted))):
        asking = [part for part in (*gainers, *rest) if _asks_itself(part.container)]
        # What asks for nothing has nothing to give, and keeps what it has.
        silent = [part for part in (*gainers, *rest) if part not in asking]
        every = _balance(losing, asking, silent, placed, then, most_lost)
        found = spread(every)
        if found:
            helps, balance, shifted, gainers, rest = True, every, found, asking, silent
    if not helps:
        none = "No shift of the request between them restores the old ratio."
        return f"{none} Raising {loser.name} alone does: {more}" if enough else none
    asked = [(part.container, old, new) for part, old, new in zip(gainers, balance.gainers, shifted[1], strict=True)]
    shift_to = pods.after({loser.name: shifted[0], **{container.name: new for container, _, new in asked}})
    changed = [f"{has} -> {shifted[0]}m"] * (shifted[0] != balance.loser)
    changed += [f"{container.name} {old}m -> {new}m" for container, old, new in asked if old != new]
    larger = [(loser, shifted[0]), *((container, new) for container, old, new in asked if new > old)]
    others = [part.container.name for part in (*gainers, *rest)]
    shift = (
        f"{', '.join(changed)}; {_values(then)} {_order(losing, gainers)} = "
        f"{_row(balance.values(shifted))}, as {_was(losing, gainers)} now."
        f"{_who_lacks(balance, shifted, others, 'Then {} still lacks')}{limits(pod, larger, shift_to)}"
    )
    alone = f" Raising {loser.name} alone takes {more}" if enough else late
    if shift_to == pods.now:
        return f"Shift the request inside the pod, which costs nothing to schedule and keeps the pod's weight: {shift}{alone}"
    return f"Shift the request inside the pod: {shift} {pods.changes(shift_to)}{alone}"


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


def _order(losing: Part, gainers: Sequence[Part]) -> str:
    return " : ".join(part.container.name for part in (losing, *gainers))


def _was(losing: Part, gainers: Sequence[Part]) -> str:
    return " : ".join(str(part.before.value) for part in (losing, *gainers))


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
    was = _was(losing, gainers)
    values = f"{_values(then)} {_order(losing, gainers)} = {_row(balance.values((balance.loser, lowered)))}"
    pods = PodRequest(pod, then)
    names = [part.container.name for part in gainers]
    after = pods.after(dict(zip(names, lowered, strict=True)))
    # What had its weight from the limit of the pod asked for nothing.
    free = "" if after > pods.now else ", which costs nothing to schedule"
    others = [*names, *(part.container.name for part in rest)]
    still = _who_lacks(balance, (balance.loser, lowered), others, "Then {} still lacks")
    other = "" if after == pods.now else f" {pods.changes(after)}"
    return (
        f"Give those that gain a smaller request{free}: {', '.join(changed)}; {values}, against {was} now."
        f"{still}{limits(pod, (), after)}{other}{_late(case.case.now, then, used)}"
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
        return f" Not before the runtime of then creates the containers on cgroup {then.cgroup}."
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
