"""What every rule gets to see, and what a rule over pods is."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.collect.model import Cluster, Container, Pod
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.judge.audit import SEVERITIES, Severity
from kubectl_cgaudit.judge.compare import Comparison, PodCase
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

    place: int | None
    """The container's place in the pod; None for the pod itself."""


def pod_hits(
    pod: Pod,
    container: Container | None,
    looks: Iterable[tuple[PodCase, Look | None]],
    severity: Callable[[float], Severity],
) -> Iterator[Hit]:
    """The worst hit of a rule over the cases of a pod, or of one of its containers.

    It holds for sure only where it is as severe in every case. Where the node does not come back nothing else is to be said.
    """
    looked = [(case.case.when, None if case.case.lost else look) for case, look in looks]
    if found := worst(looked, severity):
        place = next((place for place, each in enumerate(pod.containers) if each is container), None)
        yield Hit(found.when, found.badness, found.words, found.holds, found.severity, place)


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

    holds_for: Callable[[Comparison, PlacedPod, Iterable[tuple[Comparison, PlacedPod]]], str] | None = None
    """For a rule that says what to write into a spec, which all pods of a workload have: of which of them it is not said, in a
    sentence. From the node of the worst and that pod, and those of every pod."""


def grade(severity: Severity) -> int:
    """To compare severities by: the graver, the greater."""
    return -SEVERITIES.index(severity)


def narrowed(hit: Hit, conditions: Iterable[str]) -> Hit:
    """The hit, holding only under further conditions."""
    further = " and ".join(conditions)
    return (
        replace(hit, when=f"{hit.when} and {further}" if hit.when else f"if {further}", holds=False) if further else hit
    )


def graded(*levels: tuple[float, Severity]) -> Callable[[float], Severity]:
    """A severity by size: the first level that is reached, else low."""

    def severity(badness: float) -> Severity:
        for least, level in levels:
            if badness >= least:
                return level
        return "low"

    return severity
