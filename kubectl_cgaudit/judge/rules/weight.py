"""CGA203, CGA205, CGA206, CGA207: what the numbers themselves come to."""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kubectl_cgaudit.cgroups.pods import pod_request
from kubectl_cgaudit.cgroups.weights import MAX_WEIGHT, MIN_SHARES, Formula, linear, milli_to_shares, quadratic
from kubectl_cgaudit.collect.model import COMPETING, Container, Pod
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.runtime import ContainerFormula
from kubectl_cgaudit.detect.state import Setup
from kubectl_cgaudit.judge.audit import Finding
from kubectl_cgaudit.judge.compare import Comparison, PodCase
from kubectl_cgaudit.judge.figures import Fixed
from kubectl_cgaudit.judge.rounding import relative, rounded
from kubectl_cgaudit.judge.rules.catalogue import BESTEFFORT_GAIN, CROSSES_DEFAULT, NOT_DIVISIBLE, SAME_WEIGHT, Rule
from kubectl_cgaudit.judge.rules.context import Context, Hit, Pairs, PodRule, graded, node_finding, pod_hits
from kubectl_cgaudit.judge.rules.jvm import FIXED_IN
from kubectl_cgaudit.judge.rules.looks import Look, worst
from kubectl_cgaudit.judge.rules.rebalance import request_for
from kubectl_cgaudit.judge.rules.requests import PodRequest, limits, limits_of_all
from kubectl_cgaudit.judge.thresholds import reached
from kubectl_cgaudit.predict.tree import Cgroup, NodeTree
from kubectl_cgaudit.text import number, percent, percents

_ALWAYS_LOW = graded()
_GAINS = graded((0.01, "medium"))
_SO_NOW = "it is so now, too."


class _Seen(NamedTuple):
    """The cgroup of a pod, or of one of its containers, before and after, and what then writes it, by which formula."""

    pod: Pod
    container: Container | None
    before: Cgroup
    after: Cgroup
    then: Setup
    formula: ContainerFormula
    parts: tuple[float | None, float | None] = None, None
    """The fraction of its pod's CPU that a container has before and after."""

    @property
    def curve(self) -> Formula:
        """The formula, of those that make weights."""
        return "quadratic" if self.formula == "quadratic" else "linear"

    def larger(self, milli: int) -> str:
        """What a larger request, in thousandths of a CPU, takes with it."""
        if self.container is None:
            return limits_of_all(self.pod, milli, self.then)
        whole = PodRequest(self.pod, self.then).after({self.container.name: milli})
        return limits(self.pod, [(self.container, milli)], whole)


Judge = Callable[[Context, _Seen], Look | None]
May = Callable[[Context, Fixed, Fixed], bool]


def _each_cgroup(rule: Rule, judge: Judge, may: May, *, pods: bool) -> PodRule:
    """A rule over every container, and over the pods too where asked."""

    def hits(context: Context, _comparison: Comparison, placed: PlacedPod, cases: tuple[PodCase, ...]) -> Iterator[Hit]:
        pod, used = placed
        if pods:
            thens = [(each.case.then, each.case.then.kubelet_formula) for each in cases]
            seen = [_Seen(pod, None, c.before.cgroup, c.after.cgroup, *by) for c, by in zip(cases, thens, strict=True)]
            yield from pod_hits(
                pod, None, zip(cases, [judge(context, each) for each in seen], strict=True), _ALWAYS_LOW
            )
        by_handler = [(each.case.then, each.case.then.runtime(used).formula) for each in cases]
        for index, (container, _) in enumerate(cases[0].before.containers):
            trees = [(case.before, case.after) for case in cases]
            pairs = [(before.containers[index][1], after.containers[index][1]) for before, after in trees]
            parts = [(before.parts[index], after.parts[index]) for before, after in trees]
            all_of = zip(pairs, by_handler, parts, strict=True)
            seen = [_Seen(pod, container, *pair, *by, part) for pair, by, part in all_of]
            yield from pod_hits(
                pod, container, zip(cases, [judge(context, each) for each in seen], strict=True), _ALWAYS_LOW
            )

    def any_may(context: Context, _pod: Pod, pairs: Pairs) -> bool:
        return any(may(context, before, after) for before, after in pairs)

    return PodRule(rule, hits, any_may)


def _crossing(_context: Context, subject: _Seen) -> Look | None:
    pod, container, before, after, *_ = subject
    was, will = before.nominal_ratio, after.nominal_ratio
    if was is None or will is None or container is None or (was >= 1) == (will >= 1):
        return None

    def words() -> tuple[str, str]:
        seen = (
            f"Container {container.name} of {pod.namespace}/{pod.name}: {_file(before)} now, {_file(after)} after: "
            f"{_times(was, will)} times the default for {_asked(pod, container, after)}. The "
            "pod's share against other pods does not follow it."
        )
        remedy = (
            f"Nothing for the CPU share. Check what reads the number: JVMs before {FIXED_IN} count CPUs from it (weight 100 "
            "reads as no shares set; set -XX:ActiveProcessorCount), and dashboards on container_spec_cpu_shares."
        )
        return seen, remedy

    return Look(abs(will - was), words)


def _times(was: float, will: float) -> str:
    """Both with the digits that tell them apart."""
    digits = 2 if f"{was:.2f}" != f"{will:.2f}" else 4
    return f"{was:.{digits}f} -> {will:.{digits}f}"


def _asked(pod: Pod, container: Container, cgroup: Cgroup) -> str:
    if container.request_milli is not None:
        return f"a request of {container.request_milli}m"
    if container.limit_milli:
        return f"a limit of {container.limit_milli}m"
    of_pod = pod.limit_milli
    return (
        f"the pod's limit of {of_pod}m"
        if of_pod and milli_to_shares(of_pod) == cgroup.shares
        else f"{cgroup.shares} shares"
    )


def _file(cgroup: Cgroup) -> str:
    return f"cpu.shares {cgroup.shares}" if cgroup.version == "v1" else f"cpu.weight {cgroup.weight}"


def _collision(context: Context, subject: _Seen) -> Look | None:
    pod, container, before, after, *_ = subject
    # A lone container has no siblings: its weight decides nothing, the pod's does.
    siblings = [each for each in pod.present if each.role in COMPETING]
    alone = container is not None and (len(siblings) < 2 or container not in siblings)
    milli = (container.request_milli or 0) if container else pod_request(pod, None)
    if after.weight != 1 or after.shares is None or milli == 0 or alone or pod.qos == "BestEffort":
        return None
    shares, least = after.shares, request_for(2, subject.curve)
    badness = (0.0 if before.weight == 1 else 1.0) + shares / MIN_SHARES / 100

    def words() -> tuple[str, str]:
        whose = f"{pod.namespace}/{pod.name}"
        what = f"Container {container.name} of {whose}" if container else f"Pod {whose}"
        seen = (
            f"{what} asks for {milli}m ({shares} shares) and gets weight 1, the least there is: no more than a sibling "
            "that asks for 1m, or for nothing."
        )
        if milli_to_shares(milli) != shares:
            # Only of a pod as a whole the kubelet may not read what it asks for.
            unread = f"{seen} Its kubelet does not read what a pod asks for as a whole."
            read = linear(milli_to_shares(milli)) > 1
            own = f"Give its containers requests of their own, of {least}m together or more"
            return unread, f"{own}{', or the node a kubelet from 1.34 on' if read else ''}.{subject.larger(least)}"
        remedy = f"Raise the request to {least}m, the least that gets weight 2, or more.{subject.larger(least)}"
        if container and subject.formula == "linear" and quadratic(shares) > 1:
            remedy += " A runtime with the quadratic formula tells them apart inside the pod."
        return seen, remedy + _grows(subject.parts, context.thresholds.pod_move)

    return Look(badness, words, _SO_NOW if before.weight == 1 else "")


def _grows(parts: tuple[float | None, float | None], least: float) -> str:
    """What speaks against a larger request: weight 1 may be more than a container had. From this fraction of its part on."""
    was, will = map(rounded, parts)
    if not reached(relative(was, will) or 0.0, least):
        return ""
    return f" As it is, it has more of its pod's CPU after the move than now ({' -> '.join(percents(was or 0, will or 0))})."


def _indivisible(context: Context, subject: _Seen) -> Look | None:
    pod, container, before, after, *_ = subject
    least = context.thresholds.divisible
    weight = after.weight
    if container is None or not container.request_milli or weight is None or weight >= least:
        return None
    badness = (0.0 if before.weight == weight else 1.0) + 1 / weight

    def words() -> tuple[str, str]:
        seen = (
            f"Container {container.name} of {pod.namespace}/{pod.name} ({container.request_milli}m) has weight {weight} "
            f"after the move, under {number(least)}."
        )
        if least > MAX_WEIGHT:
            return seen, "No weight is as large as that: judge by another --threshold."
        enough = math.ceil(least)
        milli = request_for(enough, subject.curve)
        other = after.shares is not None and quadratic(after.shares) >= least
        remedy = (
            f"Only if it creates child cgroups: raise its request to {milli}m (weight {enough}) or more"
            f"{', or use a runtime with the quadratic formula' if other else ''}.{subject.larger(milli)}"
        )
        return seen, remedy

    return Look(badness, words, _SO_NOW if before.weight == weight else "")


def _may_cross(_context: Context, before: Fixed, after: Fixed) -> bool:
    was, will = before.nominal_ratio, after.nominal_ratio
    return was is not None and will is not None and (was >= 1) != (will >= 1)


def _may_collide(_context: Context, _before: Fixed, after: Fixed) -> bool:
    return after.value == 1


def _may_not_divide(context: Context, _before: Fixed, after: Fixed) -> bool:
    return after.version == "v2" and after.value is not None and after.value < context.thresholds.divisible


CROSSINGS = _each_cgroup(CROSSES_DEFAULT, _crossing, _may_cross, pods=False)
"""CGA203."""
COLLISIONS = _each_cgroup(SAME_WEIGHT, _collision, _may_collide, pods=True)
"""CGA205."""
INDIVISIBLE = _each_cgroup(NOT_DIVISIBLE, _indivisible, _may_not_divide, pods=False)
"""CGA206."""


def besteffort(_context: Context, comparison: Comparison) -> Iterator[Finding]:
    """CGA207, one finding a node with BestEffort pods and others."""
    count = sum(pod.qos == "BestEffort" for pod, _ in comparison.placed)
    looks = [(case.when, _besteffort(comparison, case.before, case.after, count)) for case in comparison.cases]
    if found := worst(looks, comparison.leading[None], _GAINS):
        yield node_finding(BESTEFFORT_GAIN, comparison, found)


def _besteffort(comparison: Comparison, before: NodeTree, after: NodeTree, count: int) -> Look | None:
    was, will = before.besteffort.share or 0.0, after.besteffort.share or 0.0
    moved = before.besteffort.version == "v1" and after.besteffort.version == "v2"
    if not moved or will <= was or count == len(comparison.placed):
        return None
    pods = f"{count} BestEffort pods together" if count > 1 else "BestEffort pod"
    parts = [
        round((tree.besteffort.value or 0) * tree.kubepods_share / (tree.besteffort.share or 1))
        for tree in (before, after)
    ]
    seen = (
        f"{comparison.node.name}: its {pods} can take {percent(was)} of the node's CPU now and {percent(will)} after, "
        f"{number(will / was)} times as much, when everything wants CPU: {before.besteffort.shares} of {parts[0]} shares in "
        f"kubepods now, {after.besteffort.weight} of {parts[1]} weight after."
    )
    remedy = (
        "Keep BestEffort pods off nodes that run full. A CPU request does not take it back: each pod that has one has weight 1 "
        "or more in the Burstable slice, about what all BestEffort pods have together; but the scheduler then leaves room for it."
    )
    return Look(will - was, lambda: (seen, remedy))
