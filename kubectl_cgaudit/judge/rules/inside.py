"""CGA204: CPU that moves between the containers of one pod, and the request that would undo it."""

from collections.abc import Iterator

from kubectl_cgaudit.collect.model import Container, Pod
from kubectl_cgaudit.detect.handlers import handler
from kubectl_cgaudit.judge.audit import Finding
from kubectl_cgaudit.judge.compare import PodCase
from kubectl_cgaudit.judge.rules.catalogue import MOVES_INSIDE
from kubectl_cgaudit.judge.rules.context import Context, Hit, Look, by_workload, percent, pod_hits, steps
from kubectl_cgaudit.judge.workloads import relative
from kubectl_cgaudit.predict.kubelet import milli_to_shares
from kubectl_cgaudit.predict.tree import Cgroup
from kubectl_cgaudit.weights import MAX_SHARES, Formula, shares_with_weight, weight_of

_Part = tuple[Container, Cgroup, Cgroup]
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
    return -(change or 0.0), seen, _remedy(formula, container, (before, after), [part[:3] for part in gainers])


def _part(case: PodCase, cgroup: Cgroup, *, after: bool) -> float | None:
    pod = (case.after if after else case.before).cgroup.share
    return cgroup.share / pod if cgroup.share is not None and pod else None


def _weights(case: PodCase) -> str:
    return ", ".join(
        f"{container.name} {before.value} -> {after.value}"
        for (container, before), (_, after) in zip(case.before.containers, case.after.containers, strict=True)
    )


def _remedy(formula: str, loser: Container, weights: tuple[Cgroup, Cgroup], gainers: list[_Part]) -> str:
    before, after = weights
    priced = [part for part in gainers if part[0].request_milli and part[1].value and part[2].weight]
    if formula == "none" or not (before.value and after.weight and loser.request_milli) or len(priced) != len(gainers):
        return (
            "Lower the requests of the containers that gain, or raise that of the one that loses, until their weights "
            "have the old ratio; `kubectl cgaudit convert` shows the weight of a request."
        )
    curve: Formula = "linear" if formula == "linear" else "quadratic"
    lowered, freed = [], 0
    for gainer, was, _ in priced:
        old, new = gainer.request_milli or 0, request_for(after.weight * (was.value or 0) / before.value, curve)
        if new < old:
            lowered.append(f"{gainer.name}'s request from {old}m to {new}m (weight {_weight(new, curve)})")
            freed += old - new
    choices = [f"lower {' and '.join(lowered)}, which frees {freed}m a pod to schedule"] if lowered else []
    if len(priced) == 1:
        wanted = (priced[0][2].weight or 0) * before.value / (priced[0][1].value or 1)
        raised = request_for(wanted, curve)
        if raised > loser.request_milli:
            cost = raised - loser.request_milli
            choices.append(
                f"raise {loser.name}'s from {loser.request_milli}m to {raised}m (weight {_weight(raised, curve)}), "
                f"which costs {cost}m a pod"
            )
    ratio = " : ".join([f"{before.value}", *(f"{was.value}" for _, was, _ in priced)])
    names = " : ".join([loser.name, *(gainer.name for gainer, _, _ in priced)])
    return (
        f"To keep {names} near {ratio}, {'; or '.join(choices)}." if choices else "No request restores the old ratio."
    )


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
