"""The findings of rules over pods: one a workload, of its worst pod."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kubectl_cgaudit.judge.audit import Finding, Subject
from kubectl_cgaudit.judge.compare import Comparison
from kubectl_cgaudit.judge.key import Key
from kubectl_cgaudit.judge.kinds import Kind
from kubectl_cgaudit.judge.rounding import shown
from kubectl_cgaudit.judge.rules.context import Context, PodRule


class _Worst(Struct, gc=False):
    """The worst place of a rule in a workload, and how many places there are. There are many: it holds no tuples."""

    grade: int
    sure: bool
    badness: float
    pod: str
    container: str
    """The first five decide between two: what is sure hides nothing graver that only may hold."""
    place: int | None
    """The container's place in its pod; None for the pod itself."""
    comparison: Comparison
    index: int
    count: int = 1


class FoundInPods:
    """Keeps of each rule and workload the worst place; its words are made at the end, for that one alone."""

    def __init__(self, context: Context, rules: Sequence[PodRule]) -> None:
        self._context = context
        self._rules = rules
        self._worst: list[dict[Key, _Worst]] = [{} for _ in rules]
        self._by_share = [(place, rule, rule.by_share) for place, rule in enumerate(rules) if rule.by_share]

    def add(self, key: Key, comparison: Comparison, index: int, kind: Kind, changes: Sequence[float | None]) -> None:
        """Take in a pod: its kind, and its change against the system in each case."""
        pod = comparison.placed[index][0]
        name = pod.name
        for found in kind.found:
            container = "" if found.container is None else pod.containers[found.container].name
            rank = found.grade, found.sure, found.badness, name, container
            self._take(found.rule, key, rank, found.container, comparison, index)
        for place, rule, holds in self._by_share:
            hit = [each for each in changes if each is not None and holds(self._context.thresholds, each)]
            if hit:
                sure, badness = len(hit) == len(changes), shown(-min(hit))
                self._take(place, key, (rule.grade(badness), sure, badness, name, ""), None, comparison, index)

    def _take(
        self,
        rule: int,
        key: Key,
        rank: tuple[int, bool, float, str, str],
        place: int | None,
        comparison: Comparison,
        index: int,
    ) -> None:
        worst = self._worst[rule].get(key)
        if worst is None:
            self._worst[rule][key] = _Worst(*rank, place, comparison, index)
            return
        worst.count += 1
        if rank > (worst.grade, worst.sure, worst.badness, worst.pod, worst.container):
            worst.grade, worst.sure, worst.badness, worst.pod, worst.container = rank
            worst.place, worst.comparison, worst.index = place, comparison, index

    def findings(self) -> Iterator[Finding]:
        """One finding a workload and rule, the worst first."""
        for rule, worst in zip(self._rules, self._worst, strict=True):
            for key in sorted(worst, key=lambda key: (-worst[key].badness, key)):
                yield self._finding(rule, key, worst.pop(key))

    def _finding(self, rule: PodRule, key: Key, worst: _Worst) -> Finding:
        placed, cases = worst.comparison.placed[worst.index], worst.comparison.pod(worst.index)
        hits = rule.hits(self._context, worst.comparison, placed, cases)
        hit = next(hit for hit in hits if hit.place == worst.place)
        others = worst.count - 1
        are = "is" if others == 1 else "are"
        more = f" {others} more of this workload {are} found by this rule." if others else ""
        namespace, owner = key
        subject = Subject("workload", owner.name, namespace, owner.kind)
        seen, remedy = hit.words()
        return rule.rule.finding(rule.severity(hit.badness), subject, hit.when, seen + more, remedy)
