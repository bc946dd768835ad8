"""The findings of rules over pods: one a workload, of its worst pod."""

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_cgaudit.collect.progress import Progress, silent
from kubectl_cgaudit.judge.audit import CERTAINTIES, SEVERITIES, AtLeast, Certainty, Finding, Graver, Severity, Subject
from kubectl_cgaudit.judge.compare import Comparison
from kubectl_cgaudit.judge.confidence import Held, certainty, held
from kubectl_cgaudit.judge.key import Key
from kubectl_cgaudit.judge.kinds import Kind
from kubectl_cgaudit.judge.rounding import as_said
from kubectl_cgaudit.judge.rules.context import Context, PodRule, finding_cases, graver
from kubectl_cgaudit.judge.rules.requests import more_cpu
from kubectl_cgaudit.judge.shifts import Shifts
from kubectl_cgaudit.judge.source import Pods
from kubectl_cgaudit.judge.thresholds import Thresholds
from kubectl_cgaudit.text import named, percent

_NAMED = 5
_OfShare = Callable[[Thresholds, float, bool], Severity | None]


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
    """The worst place of a rule in a workload, and how many places there are. There are many: it holds few tuples."""

    held: Held
    badness: float
    moved: float
    """How much of the node's CPU the pod loses, where that is what the rule is about; else 0."""
    pod: str
    container: str
    """What holds where no default is overridden comes first, then what is graver, surer and worse; then the names decide."""
    place: int | None
    """The container's place in its pod; None for the pod itself."""
    severities: tuple[Severity | None, ...]
    """By case."""
    comparison: Comparison
    index: int
    levels: tuple[AtLeast, ...]
    """How surely there is a place where it is as severe as this or worse, the worst first."""
    gravest: Graver
    """The gravest that it may be anywhere."""
    count: int = 1
    surely: int = 0
    """How many of these hold in every case."""
    elsewhere: _Elsewhere | None = None
    """Where else it holds, for a rule that says what to do there; the place's own is among them."""

    @property
    def rank(self) -> tuple[bool, int, int, float, float]:
        """To find the worst by: the greatest."""
        return *_grade(self.held), self.badness, self.moved


def _grade(held: Held) -> tuple[bool, int, int]:
    return held.leads, -SEVERITIES.index(held.severity), -CERTAINTIES.index(held.certainty)


class FoundInPods:
    """Keeps of each rule and workload the worst place; its words are made at the end, for that one alone."""

    def __init__(self, context: Context, rules: Sequence[PodRule], pods: Mapping[Key, Pods]) -> None:
        self._context = context
        self._rules = rules
        self._pods = pods
        self._worst: list[dict[Key, _Worst]] = [{} for _ in rules]
        self._said: dict[tuple[object, int], tuple[str, float | None, Comparison]] = {}
        """By the identity of a node's comparison, which is kept so that no other gets its number."""
        self._sure: dict[tuple[int, str], Certainty] = {}
        self._by_share = [(place, rule, rule.by_share) for place, rule in enumerate(rules) if rule.by_share]

    def by_case(self, kind: Kind, shifts: Shifts) -> list[object]:
        """Return what happens to a pod in each case, and how severe what is found in it is there."""
        severities = [found.severities for found in kind.found]
        severities += [self._of_share(severity_of, shifts) for _, _, severity_of in self._by_share]
        return list(zip(kind.effects, shifts.effects, *severities, strict=True))

    def _of_share(self, severity_of: _OfShare, shifts: Shifts) -> tuple[Severity | None, ...]:
        """Return the severity of a rule over changes of the share, by case."""
        limits = self._context.thresholds
        return tuple(
            [
                None if change is None else severity_of(limits, change, keeps)
                for keeps, change in zip(shifts.keeps, shifts.changes, strict=True)
            ]
        )

    def add(self, key: Key, comparison: Comparison, index: int, kind: Kind, shifts: Shifts) -> None:
        """Take in a pod: its kind, and the changes of its share."""
        pod, handler = comparison.placed[index]
        name, leading, sure = pod.name, kind.leading, self._certainty(comparison, handler)
        for found in kind.found:
            container = "" if found.container is None else pod.containers[found.container].name
            taken = max(sure, found.taken, key=CERTAINTIES.index)
            here = held(found.severities, leading, taken)
            place = _Place(here, found.severities, found.container, (name, container), found.badness, 0.0)
            self._take(found.rule, key, place, comparison, index)
        for rule_place, rule, severity_of in self._by_share:
            severities = self._of_share(severity_of, shifts)
            if any(severities):
                here = held(severities, leading, sure)
                hit = [
                    (keeps, change, moved)
                    for keeps, change, moved, severity, leads in zip(
                        shifts.keeps, shifts.changes, shifts.moved, severities, leading, strict=True
                    )
                    if change is not None and severity and leads == here.leads
                ]
                _, change, moved = min(hit)
                place = _Place(here, severities, None, (name, ""), -as_said(change), -moved)
                self._take(rule_place, key, place, comparison, index)
                if rule.elsewhere:
                    worst = self._worst[rule_place][key]
                    worst.elsewhere = worst.elsewhere or _Elsewhere()
                    worst.elsewhere.add(comparison, change)

    def _certainty(self, comparison: Comparison, handler: str) -> Certainty:
        """Return how sure a finding of the node's pods with this handler is that holds in every case."""
        known = self._sure.get((id(comparison), handler))
        if known is None:
            known = self._sure[id(comparison), handler] = certainty(comparison, handler)
        return known

    def _take(self, rule: int, key: Key, place: "_Place", comparison: Comparison, index: int) -> None:
        here = place.held
        worst = self._worst[rule].get(key)
        holds = all(place.severities)
        gravest = graver(comparison, place.severities, here) or Graver(here.severity, "")
        if worst is None:
            self._worst[rule][key] = _Worst(
                here,
                place.badness,
                place.moved,
                *place.names,
                place.container,
                place.severities,
                comparison,
                index,
                here.at_least,
                gravest,
                surely=holds,
            )
            return
        worst.count += 1
        worst.surely += holds
        worst.levels = _surest(worst.levels, here.at_least)
        worst.gravest = min(worst.gravest, gravest, key=_gravest_first)
        rank = *_grade(here), place.badness, place.moved
        if rank > worst.rank or (rank == worst.rank and place.names < (worst.pod, worst.container)):
            worst.held, worst.badness, worst.moved = here, place.badness, place.moved
            worst.pod, worst.container = place.names
            worst.place, worst.severities = place.container, place.severities
            worst.comparison, worst.index = comparison, index

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
        told = all(worst.severities)
        sure = _how_many(worst.surely - told, others, told=told)
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
        finding = rule.rule.finding(hit.severity, subject, hit.when, seen + more, remedy)
        worse = SEVERITIES.index(worst.gravest.severity) < SEVERITIES.index(worst.held.severity)
        return replace(
            finding,
            why=rule.why(worst.comparison) if rule.why else finding.why,
            certainty=worst.held.certainty,
            cases=finding_cases(worst.comparison, worst.severities, worst.comparison.leading[placed[1]]),
            graver=worst.gravest if worse else None,
            at_least=worst.levels,
        )

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


class _Place(Struct, frozen=True, gc=False):
    """A pod, or a container of it, for which a rule holds."""

    held: Held
    severities: tuple[Severity | None, ...]
    container: int | None
    """Its place in the pod; None for the pod itself."""
    names: tuple[str, str]
    """Of the pod and the container."""
    badness: float
    moved: float


@lru_cache(maxsize=4096)
def _surest(one: tuple[AtLeast, ...], other: tuple[AtLeast, ...]) -> tuple[AtLeast, ...]:
    """Return how surely there is a place that is as severe, of two that say it."""
    both: dict[Severity, Certainty] = {}
    for each in (*one, *other):
        both[each.severity] = min(both.get(each.severity, each.certainty), each.certainty, key=CERTAINTIES.index)
    return tuple(AtLeast(severity, both[severity]) for severity in SEVERITIES if severity in both)


def _gravest_first(graver: Graver) -> tuple[int, str]:
    return SEVERITIES.index(graver.severity), graver.when


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
