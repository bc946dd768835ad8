"""What every rule gets to see, and what a rule over pods is."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.collect.model import Cluster, Container, Pod
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.judge.audit import SEVERITIES, Severity
from kubectl_cgaudit.judge.compare import Comparison, PodCase
from kubectl_cgaudit.judge.condition import condition
from kubectl_cgaudit.judge.figures import Fixed
from kubectl_cgaudit.judge.rounding import as_said, shown
from kubectl_cgaudit.judge.rules.catalogue import Rule
from kubectl_cgaudit.judge.thresholds import Thresholds


class Context(Struct, frozen=True):
    """What is judged, and what to measure it by."""

    cluster: Cluster
    thresholds: Thresholds


Words = Callable[[], tuple[str, str]]
"""Gives what was seen and what to do. Mostly made when it is called: of many places only the worst is told."""


class Hit(Struct, frozen=True):
    """A rule that holds for a pod or one of its containers, in one case or in all."""

    place: int | None
    """The container's place in the pod; None for the pod itself."""
    when: str
    """The case, or empty if the rule holds in every case."""
    badness: float
    words: Words


Look = tuple[float, Words] | None
"""How bad it is, and what to say of it; None where the rule does not hold."""


def pod_hits(
    pod: Pod,
    container: Container | None,
    looks: Iterable[tuple[PodCase, Look]],
    severity: Callable[[float], Severity],
) -> Iterator[Hit]:
    """The worst hit of a rule over the cases of a pod, or of one of its containers.

    It holds for sure only where it is as severe in every case.
    """
    looked = list(looks)
    found = [(case.case.when, look) for case, look in looked if look is not None]
    if found:
        _, (badness, words) = max(found, key=lambda entry: (shown(entry[1][0]), entry[0]))
        every = [case.case.when for case, _ in looked]
        # What differs in the last digits only is equally bad: then the name decides.
        size = shown(badness)
        when = condition([when for when, (bad, _) in found if severity(shown(bad)) == severity(size)], every)
        if len(found) == len(every) and any(as_said(shown(bad)) != as_said(size) for _, (bad, _) in found):
            of_these = condition([when for when, (bad, _) in found if as_said(shown(bad)) == as_said(size)], every)
            words = _with_case(words, "" if when else of_these)
        place = next((place for place, each in enumerate(pod.containers) if each is container), None)
        yield Hit(place, when, size, words)


def _with_case(words: Words, case: str) -> Words:
    """The words of a rule that holds in every case, with other numbers in some; `case` is that of these numbers."""

    def told() -> tuple[str, str]:
        seen, remedy = words()
        lead = f"These numbers hold {case}; it" if case else "It"
        return f"{seen} {lead} is found in every other case too, with other numbers.", remedy

    return told


Pairs = Sequence[tuple[Fixed, Fixed]]
"""What a pod and each of its containers hold before and after, in every case."""


def _always(_context: Context, _pod: Pod, _pairs: Pairs) -> bool:
    return True


class PodRule(Struct, frozen=True):
    """A rule over pods, of which each workload gets one finding."""

    rule: Rule
    hits: Callable[[Context, Comparison, PlacedPod, tuple[PodCase, ...]], Iterator[Hit]]
    """Those of one pod."""
    severity: Callable[[float], Severity]
    may: Callable[[Context, Pod, Pairs], bool] = _always
    """A quick no: whether it can hold at all. Most rules hold for few pods, and the trees they look at cost the most."""
    by_share: Callable[[Thresholds, float], bool] | None = None
    """For a rule that looks at the pod's change against the system, and at nothing else: whether it holds for a change.

    Then how bad it is is the loss. Any other rule sees the same in all pods that are alike, on whatever node.
    """

    elsewhere: Callable[[Context, Sequence[Comparison]], str] | None = None
    """For such a rule: what to do on the other nodes where it holds, beside what is said of the worst."""

    def grade(self, badness: float) -> int:
        """To compare severities by: the graver, the greater."""
        return -SEVERITIES.index(self.severity(badness))


def narrowed(hit: Hit, conditions: Iterable[str]) -> Hit:
    """The hit, holding only under further conditions."""
    further = " and ".join(conditions)
    return replace(hit, when=f"{hit.when} and {further}" if hit.when else f"if {further}") if further else hit


def graded(*levels: tuple[float, Severity]) -> Callable[[float], Severity]:
    """A severity by size: the first level that is reached, else low."""
    return lambda badness: next((severity for least, severity in levels if badness >= least), "low")
