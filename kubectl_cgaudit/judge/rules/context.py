"""What every rule gets to see, and what a rule over pods is."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.collect.model import Cluster, Container, Pod
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.judge.audit import Finding, FindingCase, Graver, Severity, Subject
from kubectl_cgaudit.judge.compare import Comparison, PodCase
from kubectl_cgaudit.judge.condition import condition
from kubectl_cgaudit.judge.confidence import Held, certainty, held
from kubectl_cgaudit.judge.figures import Fixed
from kubectl_cgaudit.judge.rules.catalogue import Rule
from kubectl_cgaudit.judge.rules.looks import Look, Worst, worst
from kubectl_cgaudit.judge.thresholds import Thresholds


class Context(Struct, frozen=True):
    """What is judged, and what to measure it by."""

    cluster: Cluster
    thresholds: Thresholds


class Hit(Worst, frozen=True):
    """A rule that holds for a pod or one of its containers, in one case or in all."""

    place: int | None = None
    """The container's place in the pod; None for the pod itself."""


def pod_hits(
    pod: Pod,
    container: Container | None,
    looks: Iterable[tuple[PodCase, Look | None]],
    severity: Callable[[float], Severity],
) -> Iterator[Hit]:
    """Yield the worst hit of a rule over the cases of a pod, or of one of its containers.

    Where the node does not come back nothing else is to be said.
    """
    looked = list(looks)
    by_case = [(case.case.when, None if case.case.lost else look) for case, look in looked]
    if found := worst(by_case, [case.leads for case, _ in looked], severity):
        place = next((place for place, each in enumerate(pod.containers) if each is container), None)
        yield Hit(found.when, found.badness, found.words, found.severities, found.severity, found.taken, place)


Pairs = Sequence[tuple[Fixed, Fixed]]
"""What a pod and each of its containers hold before and after, in every case."""


def _always(_context: Context, _pod: Pod, _pairs: Pairs) -> bool:
    return True


class PodRule(Struct, frozen=True):
    """A rule over pods, of which each workload gets one finding."""

    rule: Rule
    hits: Callable[[Context, Comparison, PlacedPod, tuple[PodCase, ...]], Iterator[Hit]]
    """Those of one pod."""
    may: Callable[[Context, Pod, Pairs], bool] = _always
    """A quick no: whether it can hold at all. Most rules hold for few pods, and the trees they look at cost the most."""
    by_share: Callable[[Thresholds, float, bool], Severity | None] | None = None
    """For a rule that looks at the changes of the pod's share, and at nothing else: its severity where it holds, by the change
    against the system and whether the pod keeps its share of the node.

    Then how bad it is is the loss. Any other rule sees the same in all pods that are alike, on whatever node.
    """

    elsewhere: Callable[[Context, Comparison], tuple[str, float | None]] | None = None
    """For such a rule: in a few words, what to do on another node where it holds than that of the worst, and what a pod then has
    over what it would have without; None where nobody can say."""

    why: Callable[[Comparison], str] | None = None
    """For a rule whose reason names what is on the node of the worst; else the rule's own stands."""

    holds_for: Callable[[Comparison, PlacedPod, Iterable[tuple[Comparison, PlacedPod]]], str] | None = None
    """For a rule that says what to write into a spec, which all pods of a workload have: of which of them it is not said, in a
    sentence. From the node of the worst and that pod, and those of every pod."""


def narrowed(hit: Hit, conditions: Iterable[str]) -> Hit:
    """Return the hit, holding only under further conditions, which are defaults."""
    further = " and ".join(conditions)
    if not further:
        return hit
    return replace(hit, when=f"{hit.when} and {further}" if hit.when else f"if {further}", taken="probable")


def node_finding(rule: Rule, comparison: Comparison, found: Worst, why: str = "") -> Finding:
    """Return the finding of a rule over nodes, with its words; `why` stands for the rule's own where it is given."""
    leading = comparison.leading[None]
    here = held(found.severities, leading, certainty(comparison, None))
    seen, remedy = found.words()
    finding = rule.finding(found.severity, Subject("node", comparison.node.name), found.when, seen, remedy)
    return replace(
        finding,
        why=why or rule.why,
        certainty=here.certainty,
        cases=finding_cases(comparison, found.severities, leading),
        graver=graver(comparison, found.severities, here),
        at_least=here.at_least,
    )


def finding_cases(
    comparison: Comparison, severities: Sequence[Severity | None], leading: Sequence[bool]
) -> tuple[FindingCase, ...]:
    """Return the cases in which a finding holds, by rank."""
    return tuple(
        FindingCase(when, rank, leads, severity)
        for rank, (when, leads, severity) in enumerate(zip(comparison.whens, leading, severities, strict=True), start=1)
        if severity
    )


def graver(comparison: Comparison, severities: Sequence[Severity | None], here: Held) -> Graver | None:
    """Return in which cases a finding is worse than what it tells; None where it never is."""
    if here.gravest == here.severity:
        return None
    whens = [when for when, severity in zip(comparison.whens, severities, strict=True) if severity == here.gravest]
    return Graver(here.gravest, condition(whens, comparison.whens))


def graded(*levels: tuple[float, Severity]) -> Callable[[float], Severity]:
    """A severity by size: the first level that is reached, else low."""

    def severity(badness: float) -> Severity:
        for least, level in levels:
            if badness >= least:
                return level
        return "low"

    return severity
