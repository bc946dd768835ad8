"""What holds for every pod of a kind, whichever node it is on: seen once, by looking at one of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

from kubectl_cgaudit.collect.model import Container, Pod
from kubectl_cgaudit.detect.state import CgroupVersion, Setup
from kubectl_cgaudit.judge import weights
from kubectl_cgaudit.judge.audit import CERTAINTIES, Certainty, Effect, Severity
from kubectl_cgaudit.judge.compare import Case, Comparison
from kubectl_cgaudit.judge.confidence import rests_on_annotations, taken_for_granted
from kubectl_cgaudit.judge.figures import Fixed, fixed
from kubectl_cgaudit.judge.pods import fate, inside
from kubectl_cgaudit.judge.rounding import relative
from kubectl_cgaudit.judge.rules import readers
from kubectl_cgaudit.judge.rules.context import Context, Pairs, PodRule
from kubectl_cgaudit.predict.shape import PodShape, setup_key
from kubectl_cgaudit.same import Same


class Moved(Struct, frozen=True, gc=False):
    """A container's part of its pod, in one case."""

    container: int
    """Its place among those that are not gone."""
    when: str
    before: float
    after: float
    change: float


class Found(Struct, frozen=True, gc=False):
    """Where a rule holds: which of the rules, in which container, how grave and whether in every case, and how bad it is."""

    rule: int
    container: int | None
    """Its place in the pod; None for the pod itself."""
    severities: tuple[Severity | None, ...]
    """By case; None where it does not hold."""
    taken: Certainty
    """How sure what it rests on beside the cases is."""
    badness: float


class Numbers(Struct, frozen=True, gc=False):
    """A container's numbers now and after: cpu.shares on v1, cpu.weight on v2."""

    container: int
    """Its place among those that are not gone."""
    before_version: CgroupVersion
    before: int
    after_version: CgroupVersion
    after: int


PullChange = tuple[int, int, int, bool]
"""QoS class by its place, what the pod competes with before and after, and whether it does."""


class Kind(Struct, frozen=True, eq=False, gc=False):
    """Pods that are alike but for their share. Each is its own: two are never equal."""

    number: int
    """Its place among all kinds."""
    leading: tuple[bool, ...]
    """By case, whether it is a leading one."""
    effects: tuple[frozenset[Effect], ...]
    """By case, without those of the share."""
    pulls: tuple[PullChange, ...]
    """By case: with the node's sums, what decides the share."""
    moved: tuple[Moved, ...]
    """As the numbers and the weights, in the leading cases."""
    numbers: tuple[Numbers, ...]
    """Of every container that has a number now and after."""
    weights: tuple[tuple[weights.Combination, int], ...]
    """How many of the containers have which request and numbers."""
    containers: int
    found: tuple[Found, ...]


_Part = TypeVar("_Part")


class Kinds:
    """Looks at each kind of pod once."""

    def __init__(self, context: Context, rules: Sequence[PodRule]) -> None:
        self._context = context
        self._rules = [(place, rule) for place, rule in enumerate(rules) if rule.by_share is None]
        self.all: list[Kind] = []
        self._known: dict[object, Kind] = {}
        self._traits: dict[object, int] = {}
        self._same = Same()
        self._count_cpus: set[int] = set()
        """The traits of which a rule looks at the node's CPUs too."""
        self._by_identity: dict[int, int] = {}
        self._fixed: dict[tuple[int, CgroupVersion, int], tuple[Fixed, ...]] = {}

    def _all_same(self, parts: Iterable[_Part]) -> tuple[_Part, ...]:
        return self._same(tuple(map(self._same, parts)))

    def of(self, comparison: Comparison) -> Callable[[int], Kind]:
        """What gives the kind of a node's pods, by their place on it."""
        capacity = comparison.node.capacity_milli
        settings = {handler: id(self._same(_setting(comparison, handler))) for handler in comparison.handlers}
        outlines, placed = comparison.outlines, comparison.placed

        def kind(index: int) -> Kind:
            pod, used = placed[index]
            traits = self._by_identity.get(id(pod.containers))
            if traits is None:
                traits = self._look_at_traits(pod)
            key: object = settings[used], outlines[index], traits
            if traits in self._count_cpus:
                key = key, capacity
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = self._alike(comparison, index, key)
            return known

        return kind

    def _look_at_traits(self, pod: Pod) -> int:
        """A number for what the rules look at in a pod's containers, beside their amounts."""
        seen = tuple(readers.traits(container) for container in pod.containers)
        known = self._by_identity[id(pod.containers)] = self._traits.setdefault(seen, len(self._traits))
        if readers.count_cpus(pod.containers):
            self._count_cpus.add(known)
        return known

    def _alike(self, comparison: Comparison, index: int, key: object) -> Kind:
        """The kind of a pod. Nodes that give it the same shapes make no difference, but to limits and to who counts CPUs."""
        pod, used = comparison.placed[index]
        outline = comparison.outlines[index]
        traits = self._by_identity[id(pod.containers)]
        # Which kubelets count the limit of a pod itself decides more than its shapes.
        if not pod.limit_milli and traits not in self._count_cpus:
            trees = [tree.pods for case in comparison.cases for tree in (case.before, case.after)]
            limited = any(container.limit_milli for container in pod.containers)
            circumstances = id(self._same(_circumstances(comparison, used, limited=limited)))
            key = (circumstances, outline, traits, *[id(tree.shapes[outline]) for tree in trees])
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._look(comparison, index)
        return known

    def _held(self, shape: PodShape, setup: Setup) -> tuple[Fixed, ...]:
        """What a pod of this shape and its containers hold: all kinds need it, so all is kept while kinds are made."""
        key = id(shape), setup.cgroup, setup.period_us
        known = self._fixed.get(key)
        if known is None:
            known = self._fixed[key] = self._all_same(fixed(shape, setup))
        return known

    def _look(self, comparison: Comparison, index: int) -> Kind:
        pod, used = comparison.placed[index]
        cases, outline = comparison.cases, comparison.outlines[index]
        present = pod.present
        shapes = [(case.before.pods.shapes[outline], case.after.pods.shapes[outline]) for case in cases]
        pairs = [
            list(zip(self._held(before, case.now), self._held(after, case.then), strict=True))
            for case, (before, after) in zip(cases, shapes, strict=True)
        ]
        changes = [of_case[1:] for of_case in pairs]
        leading = comparison.leading[used]
        led = [of_case for of_case, leads in zip(changes, leading, strict=True) if leads]
        kind = Kind(
            number=len(self.all),
            leading=self._same(leading),
            effects=self._same(
                tuple(
                    fate(pod, used, case) | inside(() if case.lost else of_case, self._context.thresholds)
                    for case, of_case in zip(cases, changes, strict=True)
                )
            ),
            pulls=self._same(
                tuple((before.qos, before.value, after.value, before.wants_cpu) for before, after in shapes)
            ),
            moved=self._all_same(_moved([case for case, leads in zip(cases, leading, strict=True) if leads], led)),
            numbers=self._all_same(_numbers(led)),
            weights=self._all_same(Counter(_combinations(present, led)).items()),
            containers=len(present),
            found=self._all_same(self._found(comparison, index, [pair for of_case in pairs for pair in of_case])),
        )
        self.all.append(kind)
        return kind

    def _found(self, comparison: Comparison, index: int, pairs: Pairs) -> Iterator[Found]:
        placed = comparison.placed[index]
        pod, _ = placed
        may = [(place, rule) for place, rule in self._rules if rule.may(self._context, pod, pairs)]
        trees = comparison.pod(index) if may else ()
        least: Certainty = "probable" if rests_on_annotations(comparison, pod) else "certain"
        for place, rule in may:
            for hit in rule.hits(self._context, comparison, placed, trees):
                taken = max(hit.taken, least, key=CERTAINTIES.index)
                yield Found(place, hit.place, hit.severities, taken, hit.badness)


def _setting(comparison: Comparison, handler: str) -> object:
    """What of a node the rules look at in the pods of a handler, beside its name and capacity."""
    setups = [(setup_key(case.now, handler), setup_key(case.then, handler)) for case in comparison.cases]
    return _circumstances(comparison, handler, limited=False), *setups


def _circumstances(comparison: Comparison, handler: str, *, limited: bool) -> object:
    """What of that is not in the shapes of a pod that has no limit of its own, but of its containers if it is limited."""
    cases = [
        (case.when, leads, case.now.cgroup, case.then.cgroup, case.lost)
        for case, leads in zip(comparison.cases, comparison.leading[handler], strict=True)
    ]
    setups = [setup for case in comparison.cases for setup in (case.now, case.then)] if limited else []
    quotas = [(setup.driver, setup.cfs_quota, setup.period_us, setup.runtime(handler)) for setup in setups]
    return (*taken_for_granted(comparison.state, handler), *cases, *quotas)


_Changes = list[list[tuple[Fixed, Fixed]]]
"""By case: of each container before and after."""


def _by_container(changes: _Changes) -> Iterator[tuple[int, int, Fixed, Fixed]]:
    """Container, case, before and after: all cases of the first container first."""
    for place, of_container in enumerate(zip(*changes, strict=True)):
        for case, (before, after) in enumerate(of_container):
            yield place, case, before, after


def _moved(cases: Sequence[Case], changes: _Changes) -> Iterator[Moved]:
    for place, case, before, after in _by_container(changes):
        change = None if cases[case].lost else relative(before.in_pod, after.in_pod)
        if change is not None and before.in_pod is not None and after.in_pod is not None:
            yield Moved(place, cases[case].when, before.in_pod, after.in_pod, change)


def _numbers(changes: _Changes) -> Iterator[Numbers]:
    for place, _, before, after in _by_container(changes):
        if before.value is not None and after.value is not None:
            yield Numbers(place, before.version, before.value, after.version, after.value)


def _combinations(present: Sequence[Container], changes: _Changes) -> Iterator[weights.Combination]:
    # However many cases have the same numbers, a container counts once for them.
    for place, of_container in enumerate(zip(*changes, strict=True)):
        yield from {weights.combination(present[place], before, after) for before, after in of_container}
