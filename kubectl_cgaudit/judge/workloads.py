"""What the migration changes for every workload: one pass over all pods, of which none is kept."""

from collections import Counter
from collections.abc import Iterator, Sequence

from kubectl_cgaudit.collect.model import Pod
from kubectl_cgaudit.judge import weights
from kubectl_cgaudit.judge.audit import EFFECTS, Effect, Finding, NominalChange, WeightCount, WorkloadAudit
from kubectl_cgaudit.judge.compare import Comparison
from kubectl_cgaudit.judge.confidence import of_handlers
from kubectl_cgaudit.judge.found import FoundInPods
from kubectl_cgaudit.judge.key import Key, key
from kubectl_cgaudit.judge.kinds import Kind, Kinds
from kubectl_cgaudit.judge.pods import DIGITS, Pods, by_share, effects, relative, rounded
from kubectl_cgaudit.judge.rules.context import Context, PodRule
from kubectl_cgaudit.judge.tally import Place, SureLoss, Tally


class Judged:
    """The workloads and what was found in their pods."""

    def __init__(self, context: Context, comparisons: Sequence[Comparison], rules: Sequence[PodRule]) -> None:
        self._context = context
        self._comparisons = comparisons
        self._tallies: dict[Key, Tally] = {}
        self._found = FoundInPods(context, rules)
        self._kinds: Counter[Kind] = Counter()
        """How many pods are of each."""
        self._effects: dict[object, frozenset[Effect]] = {}
        kinds = Kinds(context, rules)
        for place, comparison in enumerate(comparisons):
            self._node(place, comparison, kinds)
        self._unpredicted()

    def _node(self, place: int, comparison: Comparison, kinds: Kinds) -> None:
        of_node = kinds.of(comparison)
        sure = {handler: of_handlers(comparison.state, [handler]) for handler in comparison.handlers}
        cases = comparison.cases
        systems = [(case.before.system.share, case.after.system.share) for case in cases]
        for index, (pod, used) in enumerate(comparison.placed):
            if not pod.selected:
                continue
            kind = of_node[index]
            system: list[Place] = []
            shares: list[Place] = []
            exact: list[float | None] = []
            found: list[frozenset[Effect]] = []
            for case, (system_before, system_after), fixed in zip(cases, systems, kind.effects, strict=True):
                before = case.before.pods.share(index)
                after = case.after.pods.share(index)
                times = (
                    before / system_before if system_before else None,
                    after / system_after if system_after else None,
                )
                exact.append(relative(*times))
                shown = rounded(times[0]), rounded(times[1])
                change = relative(*shown)
                found.append(fixed | by_share(change, self._context.thresholds))
                _append(system, pod, case.when, comparison.node.name, shown)
                _append(shares, pod, case.when, comparison.node.name, (rounded(before), rounded(after)))
            own = key(pod, self._context.cluster)
            tally = self._tally(own)
            tally.pods.add(place, index)
            all_of = self._together(tuple(found))
            tally.add(kind, pod, comparison.node.name, all_of, sure[used], system, shares)
            self._found.add(own, comparison, index, kind, exact)
            self._kinds[kind] += 1

    def _together(self, found: tuple[frozenset[Effect], ...]) -> frozenset[Effect]:
        known = self._effects.get(found)
        if known is None:
            known = self._effects[found] = frozenset(effects([set(each) for each in found]))
        return known

    def _tally(self, own: Key) -> Tally:
        tally = self._tallies.get(own)
        if tally is None:
            tally = self._tallies[own] = Tally(Pods(self._comparisons, self._context.thresholds))
        return tally

    def _unpredicted(self) -> None:
        """Active pods on nodes that have or should have cgroups, and were not read."""
        cluster = self._context.cluster
        settled = {node.name for node in cluster.nodes if node.kind in ("windows", "virtual")}
        settled |= {comparison.node.name for comparison in self._comparisons}
        for pod in cluster.pods:
            if pod.selected and not pod.finished and pod.node is not None and pod.node not in settled:
                self._tally(key(pod, cluster)).unpredicted += 1

    def workloads(self) -> tuple[WorkloadAudit, ...]:
        """Every selected workload, the worst first. What was kept for them is let go of on the way."""
        same: dict[NominalChange, NominalChange] = {}
        found = []
        while self._tallies:
            own, tally = self._tallies.popitem()
            found.append(tally.audit(own, same))
        return tuple(sorted(found, key=_badness))

    def findings(self) -> Iterator[Finding]:
        """Those of the rules over pods."""
        return self._found.findings()

    def sure_losses(self) -> dict[Key, SureLoss]:
        """Of each workload that loses, the greatest loss that holds in every case."""
        return {own: tally.sure_loss for own, tally in self._tallies.items() if "loses" in tally.effects}

    def weights(self) -> tuple[WeightCount, ...]:
        """How many containers have which request and numbers."""
        containers: Counter[weights.Combination] = Counter()
        for kind, pods in self._kinds.items():
            for combination, times in kind.weights:
                containers[combination] += times * pods
        return weights.counts(containers)

    def containers(self) -> int:
        """How many containers were audited."""
        return sum(kind.containers * pods for kind, pods in self._kinds.items())


def _append(places: list[Place], pod: Pod, when: str, node: str, values: tuple[float | None, float | None]) -> None:
    before, after = values
    change = relative(before, after)
    if change is not None and before is not None and after is not None:
        places.append((round(change, DIGITS), pod.name, when, node, before, after))


def _badness(audit: WorkloadAudit) -> tuple[int, float, float, str, str, str]:
    system = audit.against_system.change if audit.against_system else 0.0
    inside = audit.inside_pod.change if audit.inside_pod else 0.0
    return EFFECTS.index(audit.effect), system, inside, audit.namespace, audit.name, audit.kind
