"""What the migration changes for every workload: one pass over all pods, of which none is kept."""

from collections import Counter
from collections.abc import Iterator, Sequence

from kubectl_cgaudit.collect.model import Pod
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
        self._pods_of_kind: Counter[int] = Counter()
        self._kinds: dict[int, Kind] = {}
        self._effects: dict[object, frozenset[Effect]] = {}
        kinds = Kinds(context, rules)
        judged: set[tuple[str, str]] = set()
        for place, comparison in enumerate(comparisons):
            self._node(place, comparison, kinds, judged)
        self._unpredicted(judged)

    def _node(self, place: int, comparison: Comparison, kinds: Kinds, judged: set[tuple[str, str]]) -> None:
        of_node = kinds.of(comparison)
        sure = {handler: of_handlers(comparison.state, [handler]) for handler in comparison.handlers}
        cases = comparison.cases
        systems = [(case.before.system.share, case.after.system.share) for case in cases]
        for index, (pod, used) in enumerate(comparison.placed):
            judged.add((pod.namespace, pod.name))
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
            self._pods_of_kind[kind.number] += 1
            self._kinds[kind.number] = kind

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

    def _unpredicted(self, judged: set[tuple[str, str]]) -> None:
        """Active pods on nodes that have or should have cgroups, and were not read."""
        cluster = self._context.cluster
        apart = {node.name for node in cluster.nodes if node.kind in ("windows", "virtual")}
        for pod in cluster.pods:
            wanted = pod.selected and pod.node is not None and not pod.finished and pod.node not in apart
            if wanted and (pod.namespace, pod.name) not in judged:
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
        counts: Counter[WeightCount] = Counter()
        for number, pods in self._pods_of_kind.items():
            for count, times in self._kinds[number].weights:
                counts[count] += times * pods
        ordered = sorted(counts.items(), key=lambda entry: _order(entry[0]))
        return tuple(
            WeightCount(each.request_milli, each.before_version, each.before, each.after_version, each.after, amount)
            for each, amount in ordered
        )

    def containers(self) -> int:
        """How many containers were audited."""
        return sum(self._kinds[number].containers * pods for number, pods in self._pods_of_kind.items())


def _append(places: list[Place], pod: Pod, when: str, node: str, values: tuple[float | None, float | None]) -> None:
    before, after = values
    change = relative(before, after)
    if change is not None and before is not None and after is not None:
        places.append((round(change, DIGITS), pod.name, when, node, before, after))


def _order(count: WeightCount) -> tuple[int, str, int, str, int]:
    def number(value: int | None) -> int:
        return -1 if value is None else value

    milli, before, after = (number(value) for value in (count.request_milli, count.before, count.after))
    return milli, count.before_version, before, count.after_version, after


def _badness(audit: WorkloadAudit) -> tuple[int, float, float, str, str, str]:
    system = audit.against_system.change if audit.against_system else 0.0
    inside = audit.inside_pod.change if audit.inside_pod else 0.0
    return EFFECTS.index(audit.effect), system, inside, audit.namespace, audit.name, audit.kind
