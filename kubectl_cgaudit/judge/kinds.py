"""What holds for every pod of a kind, whichever node it is on: seen once, by looking at one of them."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.collect.model import Pod
from kubectl_cgaudit.judge import weights
from kubectl_cgaudit.judge.audit import Effect, PodAudit
from kubectl_cgaudit.judge.compare import Comparison
from kubectl_cgaudit.judge.confidence import taken_for_granted
from kubectl_cgaudit.judge.pods import audited, inside, relative, rounded, stops
from kubectl_cgaudit.judge.rules import readers
from kubectl_cgaudit.judge.rules.context import Context, PodRule
from kubectl_cgaudit.predict.shape import setup_key


class Moved(Struct, frozen=True, gc=False):
    """A container's part of its pod, in one case."""

    container: int
    """Its place among those that are not gone."""
    when: str
    before: float
    after: float
    change: float


class Found(Struct, frozen=True, gc=False):
    """Where a rule holds: which of the rules, in which container, whether in every case, and how bad it is."""

    rule: int
    container: int | None
    """Its place in the pod; None for the pod itself."""
    sure: bool
    badness: float


class Numbers(Struct, frozen=True, gc=False):
    """A container's numbers now and after: cpu.shares on v1, cpu.weight on v2."""

    container: int
    """Its place among those that are not gone."""
    before_version: Literal["v1", "v2"]
    before: int
    after_version: Literal["v1", "v2"]
    after: int


class Kind(Struct, frozen=True, eq=False, gc=False):
    """Pods that are alike but for their share. Each is its own: two are never equal."""

    effects: tuple[frozenset[Effect], ...]
    """By case, without those of the share."""
    moved: tuple[Moved, ...]
    numbers: tuple[Numbers, ...]
    """Of every container that has a number now and after."""
    weights: tuple[tuple[weights.Combination, int], ...]
    """How many of the containers have which request and numbers."""
    containers: int
    found: tuple[Found, ...]


_Parts = TypeVar("_Parts")


class Kinds:
    """Looks at each kind of pod once."""

    def __init__(self, context: Context, rules: Sequence[PodRule]) -> None:
        self._context = replace(context, words=False)
        self._rules = [(place, rule) for place, rule in enumerate(rules) if rule.by_share is None]
        self._known: dict[object, Kind] = {}
        self._traits: dict[object, int] = {}
        self._parts: dict[object, object] = {}
        self._by_identity: dict[int, int] = {}

    def _same(self, parts: _Parts) -> _Parts:
        """The same parts of another kind, if one has them."""
        return cast("_Parts", self._parts.setdefault(parts, parts))

    def of(self, comparison: Comparison) -> "KindsOfNode":
        """The kinds of a node's pods."""
        return KindsOfNode(self, comparison)

    def traits(self, pod: Pod) -> int:
        """A number for what the rules look at in a pod's containers beside their amounts."""
        known = self._by_identity.get(id(pod.containers))
        if known is None:
            seen = tuple(readers.traits(container) for container in pod.containers)
            known = self._traits.setdefault(seen, len(self._traits))
            self._by_identity[id(pod.containers)] = known
        return known

    def find(self, key: object, comparison: Comparison, index: int) -> Kind:
        """The kind of a pod; `key` is what makes it one, None for a pod of no other's kind."""
        kind = self._known.get(key) if key is not None else None
        if kind is None:
            kind = self._look(comparison, index)
            if key is not None:
                self._known[key] = kind
        return kind

    def _look(self, comparison: Comparison, index: int) -> Kind:
        pod, used = placed = comparison.placed[index]
        cases = comparison.pod(index)
        seen = audited(comparison, index, self._context.thresholds)
        surely = not taken_for_granted(comparison.state, used)
        return Kind(
            effects=tuple(
                frozenset(
                    inside([each.cases[place] for each in seen.containers], self._context.thresholds)
                    | stops(pod, used, case, surely=surely)
                )
                for place, case in enumerate(cases)
            ),
            moved=self._same(tuple(_moved(seen))),
            numbers=self._same(_numbers(seen)),
            weights=self._same(tuple(Counter(weights.combinations(seen)).items())),
            containers=len(seen.containers),
            found=self._same(
                tuple(
                    Found(place, _place(pod, hit.where[1]), hit.when == "", hit.badness)
                    for place, rule in self._rules
                    for hit in rule.hits(self._context, comparison, placed, cases)
                )
            ),
        )


class KindsOfNode:
    """The kinds of one node's pods."""

    def __init__(self, kinds: Kinds, comparison: Comparison) -> None:
        self._kinds = kinds
        self._comparison = comparison
        special = comparison.state.leftovers or any(case.now.leftovers for case in comparison.cases)
        self._node = None if special else _node_key(comparison)
        self._shapes = comparison.cases[0].before.pods.shapes

    def __getitem__(self, index: int) -> Kind:
        pod, used = self._comparison.placed[index]
        key = None if self._node is None else (self._node, self._shapes.key(pod, used), self._kinds.traits(pod))
        return self._kinds.find(key, self._comparison, index)


def _node_key(comparison: Comparison) -> object:
    """What of a node the rules look at, beside its name."""
    return (
        tuple((case.when, setup_key(case.now), setup_key(case.then)) for case in comparison.cases),
        comparison.node.capacity_milli,
        tuple((handler, *taken_for_granted(comparison.state, handler)) for handler in comparison.handlers),
    )


def _place(pod: Pod, container: str) -> int | None:
    return next((place for place, each in enumerate(pod.containers) if each.name == container), None)


def _moved(pod: PodAudit) -> list[Moved]:
    found = []
    for place, container in enumerate(pod.containers):
        for case in container.cases:
            before, after = case.before.in_pod, case.after.in_pod
            change = rounded(relative(before, after))
            if change is not None and before is not None and after is not None:
                found.append(Moved(place, case.when, before, after, change))
    return found


def _numbers(pod: PodAudit) -> tuple[Numbers, ...]:
    found = []
    for place, container in enumerate(pod.containers):
        for case in container.cases:
            before, after = case.before, case.after
            if before.value is not None and after.value is not None:
                found.append(Numbers(place, before.version, before.value, after.version, after.value))
    return tuple(found)
