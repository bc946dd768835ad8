"""All there is to say of a cluster's pods, each made when it is asked for: all at once would fill the memory."""

from array import array
from collections.abc import Iterator, Sequence

from kubectl_cgaudit.collect.model import Pod
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.state import CgroupVersion, Setup
from kubectl_cgaudit.judge.audit import Confidence, Effect, PodAudit
from kubectl_cgaudit.judge.compare import Comparison
from kubectl_cgaudit.judge.confidence import of_pod
from kubectl_cgaudit.judge.figures import Figures, Fixed, Form, Named, Pull, fixed, of_audit, shares
from kubectl_cgaudit.judge.pods import NEITHER, audited, by_share, effects
from kubectl_cgaudit.judge.rounding import relative
from kubectl_cgaudit.judge.thresholds import Thresholds
from kubectl_cgaudit.lazy import Lazy
from kubectl_cgaudit.predict.shape import PodShape
from kubectl_cgaudit.predict.tree import PodTrees

_BITS = 32
_MOST_FORMS = 2048
ByCase = tuple[frozenset[Effect], ...]


class Source:
    """The pods of all nodes, by the place of their node among the comparisons and their own on the node."""

    def __init__(self, comparisons: Sequence[Comparison], thresholds: Thresholds) -> None:
        self.comparisons = comparisons
        self.of_kinds: list[ByCase] = []
        """What holds of the pods of each kind whatever their share, by the number of the kind."""
        self._thresholds = thresholds
        self._sure: dict[tuple[int, str], Confidence] = {}
        self._effects: dict[tuple[ByCase, ByCase, tuple[bool, ...]], tuple[Effect, ...]] = {}
        self._of_nodes: dict[int, tuple[tuple[PodTrees, float], ...]] = {}
        self._names: dict[int, tuple[Named, ...]] = {}
        self._same: dict[tuple[Named, ...], tuple[Named, ...]] = {}
        self._forms: dict[tuple[int, int], tuple[Form, tuple[Pull, ...]]] = {}
        self._held: dict[tuple[int, CgroupVersion, int], tuple[Fixed, ...]] = {}

    def confidence(self, node: int, pod: Pod, used: str) -> Confidence:
        """What the numbers of a node's pod with this handler rest on."""
        if pod.annotations:
            return of_pod(self.comparisons[node], pod, used)
        known = self._sure.get((node, used))
        if known is None:
            known = self._sure[node, used] = of_pod(self.comparisons[node], pod, used)
        return known

    def effects(self, of_kind: ByCase, of_share: ByCase, leading: tuple[bool, ...]) -> tuple[Effect, ...]:
        """Return what holds of a pod in the leading cases, from what its kind and its share come to in each case."""
        known = self._effects.get((of_kind, of_share, leading))
        if known is None:
            every = zip(of_kind, of_share, leading, strict=True)
            known = effects([inside | share for inside, share, leads in every if leads])
            self._effects[of_kind, of_share, leading] = known
        return known

    def audited(self, node: int, index: int) -> PodAudit:
        """The pod as the audit has it."""
        return audited(self.comparisons[node], index, self._thresholds)

    def name(self, node: int, index: int) -> str:
        """The name of a pod."""
        return self.comparisons[node].placed[index][0].name

    def figures(self, node: int, index: int, kind: int) -> Figures:
        """The pod in rows of numbers: what `audited` says, for a fraction of the work."""
        comparison = self.comparisons[node]
        pod, used = comparison.placed[index]
        form, pulls = self._form(comparison, index, pod, kind)
        values = shares(self._moments(node), pulls)
        of_share = tuple(
            [
                NEITHER if case.lost else by_share(relative(values[at + 1], values[at + 3]), self._thresholds)
                for case, at in zip(comparison.cases, range(0, 2 * len(pulls), 4), strict=True)
            ]
        )
        return Figures(
            pod.name,
            comparison.node.name,
            pod.qos,
            used,
            self.confidence(node, pod, used),
            self.effects(self.of_kinds[kind], of_share, comparison.leading[used]),
            form,
            values,
        )

    def systems(self, node: int) -> tuple[float, ...]:
        """The share of system.slice before and after in each case."""
        return tuple([system for _, system in self._moments(node)])

    def _moments(self, node: int) -> tuple[tuple[PodTrees, float], ...]:
        """Before and after in each case: the node's pods, and the share of system.slice."""
        known = self._of_nodes.get(node)
        if known is None:
            cases = self.comparisons[node].cases
            known = tuple([(tree.pods, tree.system_share) for case in cases for tree in (case.before, case.after)])
            self._of_nodes[node] = known
        return known

    def _form(self, comparison: Comparison, index: int, pod: Pod, kind: int) -> tuple[Form, tuple[Pull, ...]]:
        """What equal pods have in common: what is said of them, and what they pull with before and after in each case."""
        names = self._names.get(id(pod.containers))
        if names is None:
            named = tuple(Named(each.name, each.role, each.request_milli, each.limit_milli) for each in pod.present)
            names = self._names[id(pod.containers)] = self._same.setdefault(named, named)
        key = kind, id(names)
        known = self._forms.get(key)
        if known is None:
            if len(self._forms) >= _MOST_FORMS:
                self._forms.clear()
            outline = comparison.outlines[index]
            trees = [tree for case in comparison.cases for tree in (case.before, case.after)]
            shapes = [tree.pods.shapes[outline] for tree in trees]
            every = 1 + len(names)
            form = Form(
                names,
                (comparison.whens,) * every,
                tuple(zip(*map(self._fixed, shapes, [tree.setup for tree in trees]), strict=True)),
                (tuple(["stops" in here for here in self.of_kinds[kind]]),) * every,
                comparison.leading[comparison.placed[index][1]],
            )
            pulls = tuple([(shape.qos, shape.value if shape.wants_cpu else None, shape.part) for shape in shapes])
            known = self._forms[key] = form, pulls
        return known

    def _fixed(self, shape: PodShape, setup: Setup) -> tuple[Fixed, ...]:
        # Lives as long as reports are written, so unlike that of the kinds it is bounded.
        key = id(shape), setup.cgroup, setup.period_us
        known = self._held.get(key)
        if known is None:
            if len(self._held) >= 2 * _MOST_FORMS:
                self._held.clear()
            known = self._held[key] = fixed(shape, setup)
        return known


class Pods(Lazy[PodAudit]):
    """The pods of a workload."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._places = array("Q")
        self._kinds = array("L")

    def add(self, node: int, index: int, kind: int) -> None:
        """Take in a pod, with the number of its kind."""
        self._places.append(node << _BITS | index)
        self._kinds.append(kind)

    def __len__(self) -> int:
        return len(self._places)

    def _at(self, index: int) -> PodAudit:
        return self._source.audited(*_where(self._places[index]))

    def named(self, name: str) -> PodAudit | None:
        """The pod of that name, without making the others."""
        found = next((place for place in self._places if self._source.name(*_where(place)) == name), None)
        return None if found is None else self._source.audited(*_where(found))

    def figures(self) -> Iterator[Figures]:
        """Those of each pod."""
        for place, kind in zip(self._places, self._kinds, strict=True):
            yield self._source.figures(*_where(place), kind)

    def placed(self) -> Iterator[tuple[Comparison, PlacedPod]]:
        """The node of each pod, and the pod with its handler there."""
        for node, index in map(_where, self._places):
            comparison = self._source.comparisons[node]
            yield comparison, comparison.placed[index]

    def seen(self) -> Iterator[tuple[int, Pod, str]]:
        """The number of each pod's kind, the pod as it was read, and its node."""
        for place, kind in zip(self._places, self._kinds, strict=True):
            node, index = _where(place)
            comparison = self._source.comparisons[node]
            yield kind, comparison.placed[index][0], comparison.node.name


def _where(place: int) -> tuple[int, int]:
    return place >> _BITS, place & ((1 << _BITS) - 1)


def named(pods: Sequence[PodAudit], name: str) -> PodAudit | None:
    """The pod of that name."""
    if isinstance(pods, Pods):
        return pods.named(name)
    return next((pod for pod in pods if pod.name == name), None)


def figures(pods: Sequence[PodAudit]) -> Iterator[Figures]:
    """Those of pods just judged, or of an audit that was saved."""
    return pods.figures() if isinstance(pods, Pods) else map(of_audit, pods)
