"""What is kept of a workload while its pods go by."""

from collections.abc import Sequence
from typing import cast

from kubectl_cgaudit.collect.model import Container, Pod
from kubectl_cgaudit.detect.state import CgroupVersion, default_root_value, unit_of
from kubectl_cgaudit.judge.audit import (
    CONFIDENCES,
    EFFECTS,
    Change,
    Confidence,
    Effect,
    NominalChange,
    PodAudit,
    Span,
    WorkloadAudit,
)
from kubectl_cgaudit.judge.key import Key
from kubectl_cgaudit.judge.kinds import Kind
from kubectl_cgaudit.judge.pods import DIGITS, Pods

Place = tuple[float, str, str, str, float, float]
"""A change of a pod: how much, pod, case, node, before, after. The first three decide between two."""


SureLoss = tuple[float, str, float, float]
"""A loss against the system that holds in every case: how much, on which node, share of the node before and after."""


class Tally:
    """A workload's pods so far."""

    __slots__ = (
        "best",
        "confidence",
        "effects",
        "kinds",
        "pods",
        "possibilities",
        "share",
        "sure_loss",
        "unpredicted",
        "worst",
    )

    def __init__(self, pods: Pods) -> None:
        self.pods = pods
        self.effects: frozenset[Effect] = frozenset()
        self.confidence: Confidence = "certain"
        self.possibilities = 0
        self.unpredicted = 0
        self.share: Place | None = None
        self.worst: Place | None = None
        self.best: Place | None = None
        self.sure_loss: SureLoss = (0.0, "", 0.0, 0.0)
        """The greatest loss against the system that holds in every case."""
        self.kinds: dict[tuple[Kind, int], tuple[Pod, str]] = {}
        """Each kind of pod and its containers, with the first pod by name and its node."""

    def add(
        self,
        kind: Kind,
        pod: Pod,
        node: str,
        effects: frozenset[Effect],
        confidence: Confidence,
        system: Sequence[Place],
        shares: Sequence[Place],
    ) -> None:
        """Take in a pod, with its changes against the system and of its share by case."""
        if effects != self.effects:
            self.effects |= effects
        if CONFIDENCES.index(confidence) > CONFIDENCES.index(self.confidence):
            self.confidence = confidence
        self.possibilities = max(self.possibilities, len(kind.effects))
        for place in system:
            if self.worst is None or place[:3] < self.worst[:3]:
                self.worst = place
            if self.best is None or place[:3] > self.best[:3]:
                self.best = place
        for place in shares:
            if self.share is None or (-abs(place[0]), place[:3]) < (-abs(self.share[0]), self.share[:3]):
                self.share = place
        if system:
            least = max(system)
            share = next((place for place in shares if place[2] == least[2]), least)
            self.sure_loss = min(self.sure_loss, (least[0], node, share[4], share[5]))
        # Pods of one kind may call their containers differently.
        own = kind, id(pod.containers)
        known = self.kinds.get(own)
        if known is None or pod.name < known[0].name:
            self.kinds[own] = (pod, node)

    def audit(self, key: Key, same: dict[NominalChange, NominalChange]) -> WorkloadAudit:
        """The workload, with all its pods taken in; `same` holds what other workloads have too."""
        namespace, owner = key
        effects = self.effects | ({"unknown"} if self.unpredicted else set())
        worst, best = self._inside()
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
            nominal=tuple(same.setdefault(change, change) for change in self._nominal()),
            # Any sequence will do for who reads it.
            pods=cast("tuple[PodAudit, ...]", self.pods),
            inside_pod_best=best,
            possibilities=self.possibilities,
        )

    def _inside(self) -> tuple[Change | None, Change | None]:
        """The container that loses most of its pod, and where that container loses least or gains most."""
        moved = [
            (each.change, pod.name, each.when, node, each, _present(pod)[each.container].name)
            for (kind, _), (pod, node) in self.kinds.items()
            for each in kind.moved
        ]
        if not moved:
            return None, None
        worst = min(moved, key=lambda entry: entry[:3])
        best = max((entry for entry in moved if entry[5] == worst[5]), key=lambda entry: entry[:3])
        first, last = (
            Change(pod, container, node, when, each.before, each.after, change)
            for change, pod, when, node, each, container in (worst, best)
        )
        return first, last

    def _nominal(self) -> tuple[NominalChange, ...]:
        spans: dict[tuple[str, CgroupVersion, CgroupVersion], tuple[list[int], list[int]]] = {}
        for (kind, _), (pod, _) in self.kinds.items():
            present = _present(pod)
            for each in kind.numbers:
                own = present[each.container].name, each.before_version, each.after_version
                values = spans.setdefault(own, ([], []))
                values[0].append(each.before)
                values[1].append(each.after)
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


def _span(values: Sequence[int], unit: int) -> Span:
    return Span(round(min(values) / unit, DIGITS), round(max(values) / unit, DIGITS))


def _present(pod: Pod) -> list[Container]:
    return [container for container in pod.containers if container.presence != "gone"]


def _change(place: Place | None) -> Change | None:
    if place is None:
        return None
    change, pod, when, node, before, after = place
    return Change(pod, None, node, when, before, after, change)
