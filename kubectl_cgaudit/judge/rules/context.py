"""What every rule gets to see, and what a rule over pods is."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.collect.model import Cluster, Container, Pod
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.judge.audit import SEVERITIES, Severity
from kubectl_cgaudit.judge.compare import Comparison, PodCase
from kubectl_cgaudit.judge.condition import condition
from kubectl_cgaudit.judge.figures import Fixed
from kubectl_cgaudit.judge.rounding import shown
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
    """The cases in which it is that severe, or empty if it is in every case."""
    badness: float
    words: Words
    holds: bool
    """Whether the rule holds in every case, if in some less severely."""


class Look(NamedTuple):
    """What a rule sees in one case."""

    badness: float
    words: Words
    so_now: str = ""
    """What to add if nothing changes by the move: `it is so now, too.`"""


def pod_hits(
    pod: Pod,
    container: Container | None,
    looks: Iterable[tuple[PodCase, Look | None]],
    severity: Callable[[float], Severity],
) -> Iterator[Hit]:
    """The worst hit of a rule over the cases of a pod, or of one of its containers.

    It holds for sure only where it is as severe in every case.
    """
    looked = list(looks)
    found = {case.case.when: look for case, look in looked if look is not None}
    if found:
        # What differs in the last digits only is equally bad: then the name decides.
        worst = max(found, key=lambda when: (shown(found[when].badness), when))
        size = shown(found[worst].badness)
        every = [case.case.when for case, _ in looked]
        alike = [when for when, look in found.items() if severity(shown(look.badness)) == severity(size)]
        place = next((place for place, each in enumerate(pod.containers) if each is container), None)
        words = (
            found[worst].words
            if len(every) == 1 and not found[worst].so_now
            else partial(_told, worst, found, alike, every)
        )
        yield Hit(place, condition(alike, every), size, words, len(found) == len(every))


def _told(worst: str, found: Mapping[str, Look], alike: Sequence[str], every: Sequence[str]) -> tuple[str, str]:
    """The words of the worst case, and for which of the cases they stand."""
    seen, remedy = found[worst].words()
    same = [when for when, look in found.items() if look.words()[0] == seen]
    these = condition(same, every) if len(same) < len(alike) else ""
    said = [seen, _now_too(found, every)]
    if len(found) < len(every):
        said.append(f"These numbers hold {these}; in its other cases they differ." if these else "")
    elif len(same) < len(every):
        said.append(
            f"{f'These numbers hold {these}; it' if these else 'It'} is found in every other case too, with other numbers."
        )
    return " ".join(filter(None, said)), remedy


def _now_too(found: Mapping[str, Look], every: Sequence[str]) -> str:
    """In which of the cases found nothing changes by the move."""
    now = {when: look.so_now for when, look in found.items() if look.so_now}
    words = next(iter(now.values()), "")
    lead = condition(list(now), every) if words and len(now) < len(found) else ""
    said = f"{lead} {words}" if lead else words
    return f"{said[:1].upper()}{said[1:]}"


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

    elsewhere: Callable[[Context, Comparison], str] | None = None
    """For such a rule: in a few words, what to do on another node where it holds than that of the worst."""

    def grade(self, badness: float) -> int:
        """To compare severities by: the graver, the greater."""
        return -SEVERITIES.index(self.severity(badness))


def narrowed(hit: Hit, conditions: Iterable[str]) -> Hit:
    """The hit, holding only under further conditions."""
    further = " and ".join(conditions)
    return (
        replace(hit, when=f"{hit.when} and {further}" if hit.when else f"if {further}", holds=False) if further else hit
    )


def graded(*levels: tuple[float, Severity]) -> Callable[[float], Severity]:
    """A severity by size: the first level that is reached, else low."""
    return lambda badness: next((severity for least, severity in levels if badness >= least), "low")
