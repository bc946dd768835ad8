"""CGA204: CPU that moves between the containers of one pod, and the request that would undo it."""

from collections.abc import Iterator, Sequence

from kubectl_cgaudit.cgroups.weights import MAX_SHARES, Formula, milli_to_shares, shares_with_weight, weight_of
from kubectl_cgaudit.collect.model import Container, Pod
from kubectl_cgaudit.detect.handlers import handler
from kubectl_cgaudit.judge.audit import Finding
from kubectl_cgaudit.judge.compare import PodCase
from kubectl_cgaudit.judge.rules.catalogue import MOVES_INSIDE
from kubectl_cgaudit.judge.rules.context import Context, Hit, Look, by_workload, percent, pod_hits, steps
from kubectl_cgaudit.judge.workloads import relative
from kubectl_cgaudit.predict.tree import Cgroup

_Part = tuple[Container, Cgroup, Cgroup]
_ROUNDS = 10
_MOST_MILLI = MAX_SHARES * 1000 // 1024


def moves(context: Context) -> Iterator[Finding]:
    """CGA204, one finding a workload."""

    def hits() -> Iterator[Hit]:
        for comparison, pod, cases in context.pods():
            if len(cases[0].before.containers) > 1:
                looks = [(case, _move(context, comparison.node.name, pod, case)) for case in cases]
                yield from pod_hits(context, pod, "", looks)

    return by_workload(MOVES_INSIDE, hits(), steps((0.3, "high"), (0.1, "medium")))


def _move(context: Context, node: str, pod: Pod, case: PodCase) -> Look:
    parts = [
        (container, before, after, relative(_part(case, before, after=False), _part(case, after, after=True)))
        for (container, before), (_, after) in zip(case.before.containers, case.after.containers, strict=True)
    ]
    losers = [part for part in parts if part[3] is not None and part[3] <= -context.thresholds.pod_move]
    if not losers:
        return None
    # With several losers the one with the largest part of the pod is the app.
    container, before, after, change = max(losers, key=lambda part: (part[1].share or 0.0, part[0].name))
    gainers = [part for part in parts if (part[3] or 0.0) > 0]
    gains = " and ".join(
        f"{gainer.name} ({percent(_part(case, was, after=False) or 0)} -> {percent(_part(case, will, after=True) or 0)})"
        for gainer, was, will, _ in gainers
    )
    seen = (
        f"Pod {pod.namespace}/{pod.name} on {node}: {container.name} has "
        f"{percent(_part(case, before, after=False) or 0)} of its pod's CPU now and "
        f"{percent(_part(case, after, after=True) or 0)} after ({percent(change or 0)}); what it loses goes to {gains}. "
        f"Weights: {_weights(case)}."
    )
    formula = case.case.then.runtime(handler(pod, context.cluster)).formula
    return -(change or 0.0), seen, _remedy(formula, pod, container, before, [part[:3] for part in gainers])


def _part(case: PodCase, cgroup: Cgroup, *, after: bool) -> float | None:
    pod = (case.after if after else case.before).cgroup.share
    return cgroup.share / pod if cgroup.share is not None and pod else None


def _weights(case: PodCase) -> str:
    return ", ".join(
        f"{container.name} {before.value} -> {after.value}"
        for (container, before), (_, after) in zip(case.before.containers, case.after.containers, strict=True)
    )


def _remedy(formula: str, pod: Pod, loser: Container, before: Cgroup, gainers: list[_Part]) -> str:
    priced = [part for part in gainers if part[0].request_milli and part[1].value]
    if formula == "none" or not (before.value and loser.request_milli) or len(priced) != len(gainers):
        return (
            "Move some of the request of the containers that gain to the one that loses, until their weights have the old "
            "ratio; `kubectl cgaudit convert` shows the weight of a request."
        )
    curve: Formula = "linear" if formula == "linear" else "quadratic"
    ratios = [(was.value or 0) / before.value for _, was, _ in priced]
    olds = [gainer.request_milli or 0 for gainer, _, _ in priced]
    mine, theirs = shifted(loser.request_milli, olds, ratios, curve)
    if mine <= loser.request_milli:
        return "No shift of the request between them restores the old ratio."
    lowered = [f"{part[0].name} {old}m -> {new}m" for part, old, new in zip(priced, olds, theirs, strict=True)]
    weights = " : ".join(str(_weight(milli, curve)) for milli in (mine, *theirs))
    was = " : ".join(str(value) for value in (before.value, *(cgroup.value for _, cgroup, _ in priced)))
    raised = raised_alone(loser.request_milli, olds, ratios, curve)
    alone = f" Raising {loser.name} alone takes {raised}m, {raised - loser.request_milli}m more a pod to schedule."
    limits = " Their limits go with them, as the pod is Guaranteed." if pod.qos == "Guaranteed" else ""
    return (
        f"Shift the request inside the pod, which costs nothing to schedule and keeps the pod's weight: {loser.name} "
        f"{loser.request_milli}m -> {mine}m, {', '.join(lowered)}; weights {weights}, as {was} now.{limits}{alone}"
    )


def shifted(loser: int, gainers: Sequence[int], ratios: Sequence[float], formula: Formula) -> tuple[int, list[int]]:
    """Requests with the same sum whose weights have the wanted ratios to the loser's, as near as requests allow."""
    mine, theirs = loser, list(gainers)
    for _ in range(_ROUNDS):
        weight = _weight(mine, formula)
        lowered = [min(old, request_for(weight * part, formula)) for old, part in zip(gainers, ratios, strict=True)]
        grown = loser + sum(gainers) - sum(lowered)
        if (grown, lowered) == (mine, theirs):
            break
        mine, theirs = grown, lowered
    return mine, theirs


def raised_alone(loser: int, gainers: Sequence[int], ratios: Sequence[float], formula: Formula) -> int:
    """The loser's request that restores the wanted ratio to every gainer without touching theirs."""
    wanted = [_weight(old, formula) / part for old, part in zip(gainers, ratios, strict=True)]
    return max(loser, *(request_for(weight, formula) for weight in wanted))


def _weight(milli: int, formula: Formula) -> int:
    return weight_of(milli_to_shares(milli), formula)


def request_for(weight: float, formula: Formula) -> int:
    """The smallest request, in thousandths of a CPU, whose weight comes nearest to the wanted one."""
    wanted = max(1, round(weight))
    for distance in range(wanted + 1):
        for candidate in (wanted - distance, wanted + distance):
            found = shares_with_weight(candidate, formula) if 1 <= candidate <= 10000 else None
            if found:
                return min(_MOST_MILLI, max(1, -(-found[0] * 1000 // 1024)))
    return _MOST_MILLI
