"""What is kept of a workload while its pods go by."""

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from kubectl_cgaudit.collect.model import Pod
from kubectl_cgaudit.detect.state import CgroupVersion, default_root_value, unit_of
from kubectl_cgaudit.judge.audit import (
    CONFIDENCES,
    EFFECTS,
    Change,
    Confidence,
    Effect,
    NominalChange,
    OtherEffects,
    PodAudit,
    Span,
    WorkloadAudit,
)
from kubectl_cgaudit.judge.key import Key
from kubectl_cgaudit.judge.kinds import Kind
from kubectl_cgaudit.judge.rounding import as_said, shown
from kubectl_cgaudit.judge.shifts import Shift, Shifts
from kubectl_cgaudit.judge.source import Pods

Place = tuple[Shift, str, str]
"""A change of a pod's share, the pod and its node."""


SureLoss = tuple[float, str, float, float, float, float]
"""A loss against the system that holds in every case: how much, on which node, before and after, share of the node before
and after."""


class Tally:
    """A workload's pods so far."""

    __slots__ = (
        "best",
        "confidence",
        "effects",
        "others",
        "pods",
        "possibilities",
        "rank",
        "share",
        "sure_loss",
        "unpredicted",
        "worst",
    )

    def __init__(self, pods: Pods) -> None:
        self.pods = pods
        self.effects: frozenset[Effect] = frozenset()
        self.others: dict[str, OtherEffects] = {}
        """What holds where a default is overridden, by the words for where that is."""
        self.confidence: Confidence = "certain"
        self.possibilities = 0
        self.unpredicted = 0
        self.share: Place | None = None
        self.worst: Place | None = None
        self.rank = (0.0, 0.0)
        self.best: Place | None = None
        self.sure_loss: SureLoss = (0.0, "", 0.0, 0.0, 0.0, 0.0)
        """The greatest loss against the system that holds in every case."""

    def add(
        self,
        pod: str,
        node: str,
        effects: tuple[Effect, ...],
        others: Sequence[OtherEffects],
        confidence: Confidence,
        shifts: Shifts,
    ) -> None:
        """Take in a pod: what holds of it, also where a default is overridden, how surely, and the changes of its share."""
        self.effects = _both(self.effects, effects)
        for each in others:
            known = self.others.get(each.when)
            if known is not each:
                self.others[each.when] = each if known is None else _together(known, each)
        if confidence != self.confidence and CONFIDENCES.index(confidence) > CONFIDENCES.index(self.confidence):
            self.confidence = confidence
        self.possibilities = max(self.possibilities, shifts.leading)
        worst, best, share, sure = shifts.worst, shifts.best, shifts.share, shifts.sure
        # Of equal changes the pod's name decides.
        if worst and (self.worst is None or (shifts.rank, pod) < (self.rank, self.worst[1])):
            self.worst, self.rank = (worst, pod, node), shifts.rank
        if best and (self.best is None or (best[0], pod) > (self.best[0][0], self.best[1])):
            self.best = best, pod, node
        if share and (self.share is None or _rank(share, pod) < _rank(self.share[0], self.share[1])):
            self.share = share, pod, node
        if sure and sure[0] < 0:
            self.sure_loss = min(self.sure_loss, (sure[0], node, *sure[1:]), key=loss_rank)

    def audit(self, key: Key, all_kinds: Sequence[Kind], same: dict[NominalChange, NominalChange]) -> WorkloadAudit:
        """The workload, with all its pods taken in; `same` holds what other workloads have too."""
        namespace, owner = key
        effects = self.effects | ({"unknown"} if self.unpredicted else set())
        kinds = _first(self.pods, all_kinds)
        worst, best = _inside(kinds)
        return WorkloadAudit(
            kind=owner.kind,
            namespace=namespace,
            name=owner.name,
            effects=tuple(effect for effect in EFFECTS if effect in effects),
            confidence="unknown" if self.unpredicted else self.confidence,
            pod_count=len(self.pods),
            unpredicted_pods=self.unpredicted,
            share=_change(self.share),
            against_system=_change(self.worst),
            against_system_best=_change(self.best),
            inside_pod=worst,
            nominal=tuple(same.setdefault(change, change) for change in _nominal(kinds)),
            # Any sequence will do for who reads it.
            pods=cast("tuple[PodAudit, ...]", self.pods),
            inside_pod_best=best,
            possibilities=self.possibilities,
            may_stop=any(
                "stops" in here
                for kind, _, _ in kinds
                for here, leads in zip(kind.effects, kind.leading, strict=True)
                if leads
            ),
            other_effects=tuple(self.others[when] for when in sorted(self.others)),
        )


@lru_cache(maxsize=4096)
def _together(one: OtherEffects, other: OtherEffects) -> OtherEffects:
    """Return what holds of two pods where the same default is overridden."""
    losses = [each.against_system for each in (one, other) if each.against_system is not None]
    found = {*one.effects, *other.effects}
    return OtherEffects(one.when, tuple(effect for effect in EFFECTS if effect in found), min(losses, default=None))


def loss_rank(loss: SureLoss) -> tuple[float, float, str]:
    """To sort losses by, the worst first: as they are said, then by how much of the node's CPU they are, then by node."""
    change, node, _, _, before, after = loss
    return as_said(change), after - before, node


@lru_cache
def _both(known: frozenset[Effect], more: tuple[Effect, ...]) -> frozenset[Effect]:
    # Of all workloads together there are few: each is held once.
    return known.union(more)


def _rank(share: Shift, pod: str) -> tuple[float, float, str]:
    return -abs(share[0]), share[0], pod


_Kinds = Sequence[tuple[Kind, Pod, str]]


def _first(pods: Pods, all_kinds: Sequence[Kind]) -> _Kinds:
    """Each kind of pod, with the first pod by name and its node. Pods of one kind may call their containers differently."""
    found: dict[tuple[int, int], tuple[int, Pod, str]] = {}
    for each in pods.seen():
        kind, pod, _ = each
        own = kind, id(pod.containers)
        known = found.get(own)
        if known is None or pod.name < known[1].name:
            found[own] = each
    return [(all_kinds[kind], pod, node) for kind, pod, node in found.values()]


def _inside(kinds: _Kinds) -> tuple[Change | None, Change | None]:
    """The container that loses most of its pod, and where that container loses least or gains most.

    Of equal ones the first pod and case by name: how pods fall into kinds is not to be seen.
    """
    moved = [
        (each.change, pod.name, each.when, node, each, pod.present[each.container].name)
        for kind, pod, node in kinds
        for each in kind.moved
    ]
    if not moved:
        return None, None
    worst = min(moved, key=lambda entry: entry[:3])
    best = min((entry for entry in moved if entry[5] == worst[5]), key=lambda entry: (-entry[0], *entry[1:3]))
    first, last = (
        Change(pod, container, node, when, each.before, each.after, change)
        for change, pod, when, node, each, container in (worst, best)
    )
    return first, last


def _nominal(kinds: _Kinds) -> tuple[NominalChange, ...]:
    spans: dict[tuple[str, CgroupVersion, CgroupVersion], tuple[set[int], set[int]]] = {}
    for kind, pod, _ in kinds:
        present = pod.present
        for each in kind.numbers:
            own = present[each.container].name, each.before_version, each.after_version
            was, will = spans.setdefault(own, (set(), set()))
            was.add(each.before)
            will.add(each.after)
    return tuple(
        NominalChange(
            name,
            _span(was, 1),
            _span(will, 1),
            _span(was, default_root_value(before)),
            _span(will, default_root_value(after)),
            unit_of(before),
            unit_of(after),
        )
        for (name, before, after), (was, will) in spans.items()
    )


def _span(values: set[int], unit: int) -> Span:
    return Span(shown(min(values) / unit), shown(max(values) / unit))


def _change(place: Place | None) -> Change | None:
    if place is None:
        return None
    (change, when, before, after), pod, node = place
    return Change(pod, None, node, when, before, after, change)
