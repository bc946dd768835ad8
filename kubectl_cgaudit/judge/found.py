"""The findings of rules over pods: one a workload, of its worst pod."""

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from kubectl_cgaudit.collect.progress import Progress, silent
from kubectl_cgaudit.judge.audit import Finding, Subject
from kubectl_cgaudit.judge.compare import Comparison
from kubectl_cgaudit.judge.key import Key
from kubectl_cgaudit.judge.kinds import Kind
from kubectl_cgaudit.judge.rounding import as_said
from kubectl_cgaudit.judge.rules.context import Context, PodRule, grade
from kubectl_cgaudit.judge.rules.requests import more_cpu
from kubectl_cgaudit.judge.shifts import Shifts
from kubectl_cgaudit.judge.source import Pods
from kubectl_cgaudit.text import named, percent

_NAMED = 5


class _Elsewhere(Struct, gc=False):
    """The nodes where a rule holds of a workload, and the worst change on each. There are many: an array holds no objects."""

    nodes: list[Comparison] = []
    changes: "array[float]" = field(default_factory=lambda: array("d"))

    def add(self, node: Comparison, change: float) -> None:
        """Take in a pod; those of a node come one after the other."""
        if self.nodes and self.nodes[-1] is node:
            self.changes[-1] = min(self.changes[-1], change)
        else:
            self.nodes.append(node)
            self.changes.append(change)

    def but(self, node: Comparison) -> list[tuple[Comparison, float]]:
        """All but one of them."""
        return [pair for pair in zip(self.nodes, self.changes, strict=True) if pair[0] is not node]


class _Worst(Struct, gc=False):
    """The worst place of a rule in a workload, and how many places there are. There are many: it holds no tuples."""

    grade: int
    sure: bool
    badness: float
    moved: float
    """How much of the node's CPU the pod loses, where that is what the rule is about; else 0."""
    pod: str
    container: str
    """The first four decide between two, then the names: what is sure hides nothing graver that only may hold."""
    place: int | None
    """The container's place in its pod; None for the pod itself."""
    comparison: Comparison
    index: int
    holds: bool
    """Whether it holds in every case, if less gravely in some."""
    count: int = 1
    surely: int = 0
    """How many of these hold in every case."""
    elsewhere: _Elsewhere | None = None
    """Where else it holds, for a rule that says what to do there; the place's own is among them."""


class FoundInPods:
    """Keeps of each rule and workload the worst place; its words are made at the end, for that one alone."""

    def __init__(self, context: Context, rules: Sequence[PodRule], pods: Mapping[Key, Pods]) -> None:
        self._context = context
        self._rules = rules
        self._pods = pods
        self._worst: list[dict[Key, _Worst]] = [{} for _ in rules]
        self._said: dict[tuple[object, int], tuple[str, float | None, Comparison]] = {}
        """By the identity of a node's comparison, which is kept so that no other gets its number."""
        self._by_share = [(place, rule, rule.by_share) for place, rule in enumerate(rules) if rule.by_share]

    def add(self, key: Key, comparison: Comparison, index: int, kind: Kind, shifts: Shifts) -> None:
        """Take in a pod: its kind, and the changes of its share."""
        pod = comparison.placed[index][0]
        name = pod.name
        for found in kind.found:
            container = "" if found.container is None else pod.containers[found.container].name
            rank = found.grade, found.sure, found.badness, 0.0
            self._take(found.rule, key, rank, (name, container), found.container, comparison, index, holds=found.holds)
        for place, rule, severity_of in self._by_share:
            hit = [
                (keeps, change, moved, severity)
                for keeps, change, moved in zip(shifts.keeps, shifts.changes, shifts.moved, strict=True)
                if change is not None and (severity := severity_of(self._context.thresholds, change, keeps))
            ]
            if hit:
                _, change, moved, severity = min(hit)
                alike = sum(each == severity for *_, each in hit)
                rank = grade(severity), alike == len(shifts.changes), -as_said(change), -moved
                self._take(place, key, rank, (name, ""), None, comparison, index, holds=len(hit) == len(shifts.changes))
                if rule.elsewhere:
                    worst = self._worst[place][key]
                    worst.elsewhere = worst.elsewhere or _Elsewhere()
                    worst.elsewhere.add(comparison, change)

    def _take(
        self,
        rule: int,
        key: Key,
        rank: tuple[int, bool, float, float],
        names: tuple[str, str],
        place: int | None,
        comparison: Comparison,
        index: int,
        *,
        holds: bool,
    ) -> None:
        worst = self._worst[rule].get(key)
        if worst is None:
            self._worst[rule][key] = _Worst(*rank, *names, place, comparison, index, holds, surely=holds)
            return
        worst.count += 1
        worst.surely += holds
        known = worst.grade, worst.sure, worst.badness, worst.moved
        if rank > known or (rank == known and names < (worst.pod, worst.container)):
            worst.grade, worst.sure, worst.badness, worst.moved = rank
            worst.pod, worst.container = names
            worst.place, worst.comparison, worst.index, worst.holds = place, comparison, index, holds

    def findings(self, progress: Progress = silent) -> Iterator[Finding]:
        """One finding a workload and rule, the worst first."""
        total, done = sum(map(len, self._worst)), 0
        for rule, worst in zip(self._rules, self._worst, strict=True):
            for key in sorted(worst, key=lambda key: (-worst[key].badness, -worst[key].moved, key)):
                progress("findings", done, total)
                yield self._finding(rule, key, worst.pop(key))
                done += 1

    def _finding(self, rule: PodRule, key: Key, worst: _Worst) -> Finding:
        placed, cases = worst.comparison.placed[worst.index], worst.comparison.pod(worst.index)
        hits = rule.hits(self._context, worst.comparison, placed, cases)
        hit = next(hit for hit in hits if hit.place == worst.place)
        others = worst.count - 1
        are = "is" if others == 1 else "are"
        sure = _how_many(worst.surely - worst.holds, others, told=worst.holds)
        more = f" {others} more of this workload {are} found by this rule{sure}." if others else ""
        namespace, owner = key
        subject = Subject("workload", owner.name, namespace, owner.kind)
        seen, remedy = hit.words()
        elsewhere = worst.elsewhere.but(worst.comparison) if worst.elsewhere else []
        if rule.elsewhere and elsewhere:
            raising = more_cpu(placed[0], cases[0].case.then.kubelet_version)
            remedy += self._elsewhere(rule.elsewhere, elsewhere, raising)
        if rule.holds_for:
            remedy += rule.holds_for(worst.comparison, placed, self._pods[key].placed())
        return rule.rule.finding(hit.severity, subject, hit.when, seen + more, remedy)

    def _elsewhere(
        self,
        words: Callable[[Context, Comparison], tuple[str, float | None]],
        nodes: Sequence[tuple[Comparison, float]],
        raising: str,
    ) -> str:
        """What to do on the other nodes: what fits one of another size may be wrong there. Said of many pods, made once.

        `raising` gives a pod more weight.
        """
        found: dict[str, list[str]] = defaultdict(list)
        losses: dict[str, float] = {}
        for node, change in nodes:
            key = words, id(node)
            if key not in self._said:
                self._said[key] = *words(self._context, node), node
            said, factor, _ = self._said[key]
            found[said].append(node.node.name)
            left = 0.0 if factor is None else (1 + change) * factor - 1
            if self._context.thresholds.loses(left):
                losses[node.node.name] = left
        parts = [f"{what} on {named(names, _NAMED)}" for what, names in found.items()]
        return f" Its other nodes: {'; '.join(parts)}.{_still_lost(losses, raising)}"


def _still_lost(losses: Mapping[str, float], raising: str) -> str:
    """What a workload loses on other nodes, by their names, in spite of what is done there."""
    if not losses:
        return ""
    most = f"{'up to ' if len(losses) > 1 else ''}{percent(-min(losses.values()))}"
    return f" It still loses {most} then on {named(losses, _NAMED)}, as weights are rounded: {raising} too."


def _how_many(surely: int, others: int, *, told: bool) -> str:
    """For how many of the others it is sure that the rule holds, where that is not what is told of the worst."""
    if surely == (others if told else 0):
        return ""
    if others == 1:
        return ", for sure" if surely else ", not for sure"
    return f", {'all' if surely == others else surely or 'none'} of them for sure"
