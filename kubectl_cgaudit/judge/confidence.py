"""How sure a number or a finding is: as sure as the weakest thing it rests on."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct

from kubectl_cgaudit.cgroups import crio
from kubectl_cgaudit.collect.model import Pod
from kubectl_cgaudit.detect.measured import without_kubepods
from kubectl_cgaudit.detect.state import NAME, State
from kubectl_cgaudit.judge.audit import CERTAINTIES, CONFIDENCES, SEVERITIES, AtLeast, Certainty, Confidence, Severity
from kubectl_cgaudit.judge.compare import Comparison

_OF_STATE = ("cgroup", "reserve", "burstable")


def weakest(confidences: Iterable[Confidence]) -> Confidence:
    """Return the least sure of them; certain if there are none."""
    return max(confidences, key=CONFIDENCES.index, default="certain")


def of_handlers(comparison: Comparison, handlers: Iterable[str]) -> Confidence:
    """Return what a node's numbers rest on: its cgroup version, the kubelet's formula, and the runtimes of these handlers.

    Where the target speaks of runtimes by name, their names too. Without a kubepods tree the predicted one is not the node's,
    whatever else is known.
    """
    handlers = list(handlers)
    open_ = []
    for question in comparison.questions:
        if question.about == "runtime":
            open_ += [question.open_for(handler) for handler in handlers]
        elif question.about in _OF_STATE:
            open_.append(question.confidence)
    return weakest([_of_settled(comparison, handlers), *(each for each in open_ if each)])


def of_pod(comparison: Comparison, pod: Pod, used: str) -> Confidence:
    """Return what a pod's numbers rest on: those of its handler, and whether CRI-O heeds its annotations."""
    found = of_handlers(comparison, [used])
    return weakest([found, "probable"]) if rests_on_annotations(comparison, pod) else found


def rests_on_annotations(comparison: Comparison, pod: Pod) -> bool:
    """Return whether annotations decide a pod's numbers, and nothing shows that CRI-O heeds them."""
    asked = crio.asked(pod)
    decide = bool(asked.shares or asked.weights or asked.unlimited)
    return decide and comparison.state.crio and not comparison.cases[0].now.measured


def _of_settled(comparison: Comparison, handlers: Iterable[str]) -> Confidence:
    """Return the weakest confidence of what is known of a node and is not open."""
    state = comparison.state
    if without_kubepods(state.evidence):
        return "unknown"
    asked = ["cgroup", "kubelet"]
    for handler in handlers:
        asked.append(f"runtime:{handler}")
        if comparison.by_name and f"{NAME}{handler}" in state.basis:
            asked.append(f"{NAME}{handler}")
    return weakest(state.basis_of(about).confidence for about in asked if not state.is_open(about))


def certainty(comparison: Comparison, handler: str | None) -> Certainty:
    """Return how sure a finding is that holds in every case, of a pod of this handler or of the node."""
    found = _of_settled(comparison, () if handler is None else (handler,))
    return "possible" if found == "unknown" else found


class Held(Struct, frozen=True, gc=False):
    """How a rule holds at one place, over all cases."""

    severity: Severity
    """The worst in the leading cases; in the others, where it holds in none of these."""
    leads: bool
    """Whether it holds in a leading case."""
    certainty: Certainty
    """How surely it is as severe as that."""
    at_least: tuple[AtLeast, ...]
    """How surely it is as severe as this or worse, by severity, the worst first."""
    gravest: Severity


@lru_cache(maxsize=65536)
def held(severities: tuple[Severity | None, ...], leading: tuple[bool, ...], sure: Certainty) -> Held:
    """Return how a rule holds that has these severities by case; `sure` is how surely what holds in every case does.

    It holds in one case at the least.
    """
    found = [(SEVERITIES.index(each), leads) for each, leads in zip(severities, leading, strict=True) if each]
    in_leading = [grade for grade, leads in found if leads]
    told = min(in_leading or [grade for grade, _ in found])
    gravest = min(grade for grade, _ in found)
    at_least = tuple(
        AtLeast(severity, _sure(grade, severities, leading, sure))
        for grade, severity in enumerate(SEVERITIES)
        if grade >= gravest
    )
    return Held(
        severity=SEVERITIES[told],
        leads=bool(in_leading),
        certainty=at_least[told - gravest].certainty,
        at_least=at_least,
        gravest=SEVERITIES[gravest],
    )


def _sure(grade: int, severities: Sequence[Severity | None], leading: Sequence[bool], sure: Certainty) -> Certainty:
    holds = [each is not None and SEVERITIES.index(each) <= grade for each in severities]
    if all(holds):
        return sure
    if any(leading) and all(here for here, leads in zip(holds, leading, strict=True) if leads):
        return max(sure, "probable", key=CERTAINTIES.index)
    return "possible"


def taken_for_granted(state: State, used: str) -> list[str]:
    """Return what a failing start rests on and nobody said: that the runtime is runc, and the driver systemd."""
    runtime = state.runtime(used)
    taken = [] if runtime and runtime.version else ["the runtime is runc"]
    if state.basis_of("driver").confidence == "probable":
        taken.append("the cgroup driver is systemd")
    return taken
