"""CGA201, CGA202: pods against system processes."""

import math
from collections.abc import Iterator

from kubectl_cgaudit.collect.model import Pod
from kubectl_cgaudit.detect.state import default_root_value
from kubectl_cgaudit.judge.audit import Finding, Subject
from kubectl_cgaudit.judge.compare import Case, Comparison, PodCase
from kubectl_cgaudit.judge.condition import condition
from kubectl_cgaudit.judge.rules.catalogue import SYSTEM_LOSS, SYSTEM_OUTWEIGHED
from kubectl_cgaudit.judge.rules.context import (
    Context,
    Hit,
    Look,
    by_workload,
    percent,
    pod_hits,
    ratio,
    steps,
)
from kubectl_cgaudit.judge.workloads import relative
from kubectl_cgaudit.weights import MAX_SHARES, MAX_WEIGHT, linear, shares_with_weight

_MEDIUM_RATIO, _HIGH_RATIO = 2.0, 5.0


def losses(context: Context) -> Iterator[Finding]:
    """CGA201, one finding a workload."""

    def hits() -> Iterator[Hit]:
        for comparison, pod, cases in context.pods():
            looks = [(case, _loss(context, comparison, pod, case)) for case in cases]
            yield from pod_hits(context, pod, "", looks)

    return by_workload(SYSTEM_LOSS, hits(), steps((0.5, "high"), (0.2, "medium")))


def _loss(context: Context, comparison: Comparison, pod: Pod, case: PodCase) -> Look:
    before = case.against_system(case.before.cgroup, after=False)
    after = case.against_system(case.after.cgroup, after=True)
    change = relative(before, after)
    if before is None or after is None or change is None or change > -context.thresholds.system_loss:
        return None
    seen = (
        f"Pod {pod.namespace}/{pod.name} on {comparison.node.name}: {ratio(before)} times the CPU of system.slice now, "
        f"{ratio(after)} times after ({percent(change)}); {percent(case.before.cgroup.share or 0)} of the node's CPU now, "
        f"{percent(case.after.cgroup.share or 0)} after, when everything wants CPU."
    )
    return -change, seen, _loss_remedy(case.case, comparison.node.name, change)


def _loss_remedy(case: Case, node: str, change: float) -> str:
    before, after = case.before, case.after
    of_node = relative(
        (before.kubepods.value or 0) / (before.system.value or 1),
        (after.kubepods.value or 0) / (after.system.value or 1),
    )
    if of_node is None or of_node > change / 2:
        return (
            "The node's ratio of pods to system processes hardly changes: this pod's own weight, or those of its "
            "siblings, are rounded. Raise its CPU request; `kubectl cgaudit explain` shows each level."
        )
    return keep_ratio(case, node)


def keep_ratio(case: Case, node: str) -> str:
    """The system.slice weight that keeps the ratio of now, and the two ways to set it."""
    kubepods = case.after.kubepods.value or 1
    wanted = kubepods * (case.before.system.value or 1) / (case.before.kubepods.value or 1)
    weight = max(1, min(MAX_WEIGHT, round(wanted)))
    reserve = shares_with_weight(weight, "linear")
    milli = math.ceil(reserve[0] * 1000 / 1024) if reserve else 0
    return (
        f"To keep the ratio of now on {node}, give system.slice weight {weight} (pods : system "
        f"{ratio(kubepods / weight)} : 1): `systemctl set-property system.slice CPUWeight={weight}`, or enforce "
        f"system-reserved-compressible with {milli}m CPU reserved (which is no longer allocatable)."
    )


def outweighed(context: Context) -> Iterator[Finding]:
    """CGA202, one finding a node."""
    for comparison in context.comparisons:
        found = [(case, hit) for case in comparison.cases if (hit := _outweighed(context, comparison, case))]
        if not found:
            continue
        _, (_, seen, remedy, excess) = max(found, key=lambda entry: entry[1][0])
        when = condition([case.when for case, _ in found], [case.when for case in comparison.cases])
        severity = steps((_HIGH_RATIO, "high"), (_MEDIUM_RATIO, "medium"))(excess)
        yield SYSTEM_OUTWEIGHED.finding(severity, Subject("node", comparison.node.name), when, seen, remedy)


def _outweighed(context: Context, comparison: Comparison, case: Case) -> tuple[float, str, str, float] | None:
    kubepods, system = case.after.kubepods.value or 0, case.after.system.value or 1
    lowered = system < default_root_value(case.then.cgroup)
    limit = context.thresholds.outweighed_reserve if lowered else context.thresholds.outweighed
    now = (case.before.kubepods.value or 0) / (case.before.system.value or 1)
    after = kubepods / system
    if after < limit:
        return None
    unit = "shares" if case.then.cgroup == "v1" else "weight"
    cause = f", below its default of {default_root_value(case.then.cgroup)}" if lowered else ""
    seen = (
        f"{comparison.node.name}: kubepods has {unit} {kubepods}, system.slice {system}{cause}: pods : system is "
        f"{ratio(after)} : 1 after the move ({ratio(now)} : 1 now), so system processes keep "
        f"{percent(case.after.system.share or 0)} of the node's CPU when everything wants it."
    )
    return (
        after,
        seen,
        _raise_system(case, limit, lowered=lowered, milli=comparison.node.allocatable_milli),
        after / limit,
    )


def _raise_system(case: Case, limit: float, *, lowered: bool, milli: int) -> str:
    wanted = math.ceil((case.after.kubepods.value or 0) / limit)
    if case.then.cgroup == "v1":
        shares = min(MAX_SHARES, wanted)
        return f"`systemctl set-property system.slice CPUShares={shares}` brings it under {ratio(limit)} : 1."
    reserve = shares_with_weight(min(MAX_WEIGHT, wanted), "linear")
    cpu = math.ceil(reserve[0] * 1000 / 1024) if reserve else milli
    first = "Raise the enforced reserve" if lowered else "Enforce system-reserved-compressible with a reserve"
    check = linear(cpu * 1024 // 1000)
    return (
        f"{first} to {cpu}m CPU (weight {check}), or `systemctl set-property system.slice CPUWeight={wanted}`; "
        f"either brings it under {ratio(limit)} : 1."
    )
