"""What the migration changes for every workload: one pass over all pods, of which none is kept."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter

from kubectl_cgaudit.collect.model import Pod
from kubectl_cgaudit.collect.progress import Progress, silent
from kubectl_cgaudit.judge import weights
from kubectl_cgaudit.judge.audit import EFFECTS, Finding, NominalChange, OtherEffects, WeightCount, WorkloadAudit
from kubectl_cgaudit.judge.compare import Comparison
from kubectl_cgaudit.judge.found import FoundInPods
from kubectl_cgaudit.judge.key import Key, key
from kubectl_cgaudit.judge.kinds import Kind, Kinds
from kubectl_cgaudit.judge.pods import other_effects
from kubectl_cgaudit.judge.questions import differing
from kubectl_cgaudit.judge.rules.context import Context, PodRule
from kubectl_cgaudit.judge.shifts import Shifts, shifts
from kubectl_cgaudit.judge.source import Pods, Source
from kubectl_cgaudit.judge.tally import SureLoss, Tally


class Judged:
    """The workloads and what was found in their pods."""

    def __init__(
        self,
        context: Context,
        comparisons: Sequence[Comparison],
        rules: Sequence[PodRule],
        progress: Progress = silent,
    ) -> None:
        self._context = context
        self._comparisons = comparisons
        self._tallies: dict[Key, Tally] = {}
        self._by_owner: dict[tuple[str, int, str | None], tuple[Key, Tally]] = {}
        self._pods: dict[Key, Pods] = {}
        self._found = FoundInPods(context, rules, self._pods)
        self._pods_of_kind: Counter[int] = Counter()
        self._source = Source(comparisons, context.thresholds)
        self.decided: list[set[str]] = []
        """Of each node, the questions that decide what happens to one of its pods, or what is found in it."""
        kinds = Kinds(context, rules)
        for place, comparison in enumerate(comparisons):
            progress("nodes", place, len(comparisons))
            self._node(place, comparison, kinds.of(comparison))
        self._by_owner.clear()
        self._kinds = kinds.all
        self._source.of_kinds += (kind.effects for kind in self._kinds)
        self._unpredicted()

    def _node(self, place: int, comparison: Comparison, kind_of: Callable[[int], Kind]) -> None:
        known: dict[tuple[int, str], Shifts] = {}
        others: dict[tuple[int, int], tuple[OtherEffects, ...]] = {}
        systems, name = self._source.systems(place), comparison.node.name
        open_ = len(comparison.cases) > 1
        decided: set[str] = set()
        self.decided.append(decided)
        for index, (pod, used) in enumerate(comparison.placed):
            if not pod.selected:
                continue
            kind = kind_of(index)
            leading = comparison.leading[used]
            moved = known.get((id(kind.pulls), used))
            if moved is None:
                limits = self._context.thresholds
                moved = known[id(kind.pulls), used] = shifts(comparison, kind.pulls, systems, limits, leading)
            own, tally = self._of(pod)
            tally.pods.add(place, index, kind.number)
            effects = self._source.effects(kind.effects, moved.effects, leading)
            other: tuple[OtherEffects, ...] = ()
            if open_:
                both = id(kind), id(moved)
                known_other = others.get(both)
                if known_other is None:
                    by_case = self._found.by_case(kind, moved)
                    decided |= differing(comparison, by_case)
                    known_other = others[both] = _others(comparison, leading, kind, moved)
                other = known_other
            tally.add(pod.name, name, effects, other, self._source.confidence(place, pod, used), moved)
            self._found.add(own, comparison, index, kind, moved)
            self._pods_of_kind[kind.number] += 1

    def _of(self, pod: Pod) -> tuple[Key, Tally]:
        """The workload of a pod. Pods with one controller have one, and mostly the same object says so; a node is none."""
        if pod.controller is None or pod.controller.kind == "Node":
            return self._tally(key(pod, self._context.cluster))
        own = pod.namespace, id(pod.controller), pod.template_hash
        known = self._by_owner.get(own)
        if known is None:
            known = self._by_owner[own] = self._tally(key(pod, self._context.cluster))
        return known

    def _tally(self, own: Key) -> tuple[Key, Tally]:
        tally = self._tallies.get(own)
        if tally is None:
            pods = self._pods[own] = Pods(self._source)
            tally = self._tallies[own] = Tally(pods)
        return own, tally

    def _unpredicted(self) -> None:
        """Active pods on nodes that have or should have cgroups, and were not read."""
        cluster = self._context.cluster
        settled = {node.name for node in cluster.nodes if node.kind in ("windows", "virtual")}
        settled |= {comparison.node.name for comparison in self._comparisons}
        for pod in cluster.pods:
            if pod.selected and not pod.finished and pod.node is not None and pod.node not in settled:
                self._tally(key(pod, cluster))[1].unpredicted += 1

    def workloads(self) -> tuple[WorkloadAudit, ...]:
        """Every selected workload, the worst first. What was kept for them is let go of on the way."""
        same: dict[NominalChange, NominalChange] = {}
        found = []
        while self._tallies:
            own, tally = self._tallies.popitem()
            audit = tally.audit(own, self._kinds, same)
            found.append((_badness(audit, tally.rank), audit))
        found.sort(key=itemgetter(0))
        return tuple(audit for _, audit in found)

    def findings(self, progress: Progress = silent) -> Iterator[Finding]:
        """Those of the rules over pods."""
        return self._found.findings(progress)

    def sure_losses(self) -> dict[Key, SureLoss]:
        """Of each workload that loses, the greatest loss that holds in every case."""
        return {own: tally.sure_loss for own, tally in self._tallies.items() if "loses" in tally.effects}

    def weights(self) -> tuple[WeightCount, ...]:
        """How many containers have which request and numbers."""
        containers: Counter[weights.Combination] = Counter()
        for kind in self._kinds:
            for combination, times in kind.weights:
                containers[combination] += times * self._pods_of_kind[kind.number]
        return weights.counts(containers)

    def containers(self) -> int:
        """How many containers were audited."""
        return sum(kind.containers * self._pods_of_kind[kind.number] for kind in self._kinds)


def _badness(audit: WorkloadAudit, rank: tuple[float, float]) -> tuple[int, float, float, float, str, str, str]:
    """To sort by, the worst first; of losses that read the same the one of most CPU, which the verdict names too."""
    inside = audit.inside_pod.change if audit.inside_pod else 0.0
    return EFFECTS.index(audit.effect), *rank, inside, audit.namespace, audit.name, audit.kind


def _others(comparison: Comparison, leading: Sequence[bool], kind: Kind, moved: Shifts) -> tuple[OtherEffects, ...]:
    both = [inside | share for inside, share in zip(kind.effects, moved.effects, strict=True)]
    return other_effects(comparison, leading, both, moved.changes)
