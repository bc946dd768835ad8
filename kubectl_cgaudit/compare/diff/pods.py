"""What came of the predictions for a pod and its containers."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.collect.model import COMPETING
from kubectl_cgaudit.compare.diff.match import spec, weight
from kubectl_cgaudit.compare.diff.moments import CaseChange, ContainerCases, Moment, PodCases
from kubectl_cgaudit.compare.diff.nodes import in_unit
from kubectl_cgaudit.compare.diff.outcome import (
    STOPS,
    Limit,
    Number,
    Prediction,
    against_evidence,
    consistent,
    in_doubt,
    listed,
    of_fate,
    of_numbers,
    of_words,
    worst,
)
from kubectl_cgaudit.compare.diff.types import (
    ContainerDiff,
    Measure,
    Outcome,
    PodDiff,
    What,
    said_to_stop,
)

_OF_THE_NODE: tuple[What, ...] = ("share", "against-system")
_NO_QUOTA = "none"
_MOVED: tuple[Outcome, ...] = ("unpredicted", "otherwise")
_NOT_AS_PREDICTED: tuple[Outcome, ...] = (*_MOVED, "as-before")


class Limits(Struct, frozen=True):
    """From where on a number has moved."""

    system: Limit
    inside: Limit


class Around(Struct, frozen=True):
    """What is around a pod that explains a difference."""

    other_node: bool
    """Its node now does not stand for the one it was on, and other things were predicted for that one."""
    other_pods: bool
    """Its node has other pods now, or pods that ask for something else, or another allocatable CPU."""
    unseen: bool
    """Whether what competes on its nodes, as they were or as they are, may not all be known."""
    version_known: bool
    """Whether the cgroup version of its node now is settled."""
    untold: bool
    """Whether nothing can be said of its node's cgroups, as it was or as it is."""
    same_ground: bool
    """Whether of both nodes as much is known of what competes with pods at the root."""
    driver_known: bool
    """Whether the cgroup driver is known of both nodes, and not taken to be the default: it decides how quotas are rounded."""
    unnamed: frozenset[str]
    """Runtime handlers of which only the formula is known on one of the nodes: their quotas are taken for those of runc."""
    contradictions: tuple[str, ...]
    """What the evidence on its nodes says against what was said of them."""
    contested: frozenset[str]
    """Of what that is where it was not believed, as `nodes.contested` names it."""
    guessed: frozenset[str]
    """The same without what was measured of running containers: their weights are known."""
    same_evidence: frozenset[str]
    """What the evidence on both nodes says the same of, as `nodes.same_evidence` names it."""
    lost: bool
    """Whether the node it was on was said not to come back, if only in some case."""
    kubelets: tuple[str, str]
    """Release of the kubelet it was on, and of the one it is on."""


def compare(before: PodCases, after: PodCases, around: Around, limits: Limits, *, may_fail: bool) -> PodDiff:
    """A pod before, and itself or the replica that took its place now. `may_fail`: its workload was said to have containers
    that may not start (CGA301).
    """
    why = _Why(before, after, around)
    mine = [why.fate(of_fate(_stops(before, may_fail=may_fail)))]
    mine += [
        why.judged(
            measure,
            respecified=why.respecified,
            known=around.version_known,
            rounded=why.rounded and not around.driver_known,
            deciding={"cgroup"},
        )
        for measure in consistent(_measures(before.cases, after.cases, limits))
    ]
    names = {each.name: each for each in after.containers}
    containers = [
        _container(each, names[each.name], why, limits) if each.name in names else _gone(each, why)
        for each in before.containers
    ]
    outcomes = [*(m.outcome for m in mine), *(each.outcome for each in containers)]
    return PodDiff(
        name=before.name,
        now_name=after.name,
        node=before.node,
        now_node=after.node,
        outcome=worst(outcomes),
        confidence=after.confidence,
        because=why.said(),
        measures=listed(mine),
        containers=tuple(each for each in containers if each.measures),
    )


def _stops(pod: PodCases, *, may_fail: bool) -> Iterator[bool | None]:
    """In each case whether it was said not to run; None where that could not be said."""
    for case in pod.cases:
        # Only on v1 the kernel refuses a quota.
        open_ = may_fail and "may-stop" in pod.effects and case.after.version == "v1"
        yield True if case.stops else None if open_ else False


def _container(before: ContainerCases, after: ContainerCases, why: "_Why", limits: Limits) -> ContainerDiff:
    changed = (before.request_milli, before.limit_milli) != (after.request_milli, after.limit_milli)
    changed = changed or why.before.handler != why.after.handler
    rounded = (_is_rounded(before) or _is_rounded(after)) and why.taken_for_runc
    runtimes = {f"runtime:{why.before.handler}", f"runtime:{why.after.handler}"}
    # One that has all of its pod's CPU has the pod's share, which no runtime decides.
    alone = all(each.in_pod == 1 for case in (*before.cases, *after.cases) for each in (case.before, case.after))
    measures = []
    for measure in consistent(_measures(before.cases, after.cases, limits)):
        respecified = changed or (why.respecified and measure.what not in ("weight", "quota-us"))
        measures.append(
            why.judged(
                measure,
                respecified=respecified,
                known=why.after.confidence != "unknown",
                rounded=rounded,
                deciding={"cgroup"} if alone and measure.what in _OF_THE_NODE else {"cgroup", *runtimes},
            )
        )
    return ContainerDiff(before.name, worst(measure.outcome for measure in measures), listed(measures))


def _gone(container: ContainerCases, why: "_Why") -> ContainerDiff:
    """A container that the pod has no more: what was predicted of it did not come true, for that reason."""
    was = [(_weight(case.before), _weight(case.after)) for case in container.cases]
    if container.role not in COMPETING or all(before == predicted for before, predicted in was):
        return ContainerDiff(container.name, "unchanged", ())
    found = replace(of_words("weight", "", was, ["not there"]), outcome="otherwise")
    measure = why.judged(found, respecified=True, known=True, rounded=False, deciding=())
    return ContainerDiff(container.name, measure.outcome, (measure,))


def _weight(moment: Moment) -> str:
    return in_unit(moment.version, moment.value)


def _is_rounded(container: ContainerCases) -> bool:
    """Whether systemd may round its quota: it knows steps of 10m. Without a limit of its own it may have the pod's."""
    return container.limit_milli is None or container.limit_milli % 10 != 0


def _measures(before: Sequence[CaseChange], after: Sequence[CaseChange], limits: Limits) -> list[Measure]:
    """Every number of a cgroup. What comes after a case that stops is never reached: no number was predicted there."""
    now = [case.before for case in after]

    def words(what: What, read: Callable[[Moment], str | int]) -> Measure:
        was = [(read(case.before), STOPS if case.stops else read(case.after)) for case in before]
        return of_words(what, "", was, [read(each) for each in now])

    def numbers(what: What, read: Callable[[Moment], Number], limit: Limit) -> Measure:
        was: list[tuple[Number, Prediction]]
        was = [(read(case.before), STOPS if case.stops else read(case.after)) for case in before]
        return of_numbers(what, was, [read(each) for each in now], limit)

    return [
        words("weight", _weight),
        words("quota-us", lambda each: _NO_QUOTA if each.quota_us is None else each.quota_us),
        numbers("share", lambda each: each.share, limits.system),
        numbers("against-system", lambda each: each.against_system, limits.system),
        numbers("in-pod", lambda each: each.in_pod, limits.inside),
    ]


class _Why:
    """Other causes than the migration, and which of them were needed."""

    def __init__(self, before: PodCases, after: PodCases, around: Around) -> None:
        self.before = before
        self.after = after
        self.around = around
        self.respecified = spec(before) != spec(after)
        self.rounded = any(map(_is_rounded, (*before.containers, *after.containers)))
        self.taken_for_runc = not around.driver_known or not around.unnamed.isdisjoint({before.handler, after.handler})
        self._needed: set[str] = set()

    def fate(self, measure: Measure) -> Measure:
        """The measure of what runs, where another node or another limit explains it: of these it was not said."""
        if measure.outcome != "as-before":
            return measure
        cause = "node" if self.around.other_node else "spec" if self.respecified and not self.around.lost else "stops"
        self._needed.add(cause)
        return measure if cause == "stops" else replace(measure, outcome="other-cause")

    def judged(
        self, measure: Measure, *, respecified: bool, known: bool, rounded: bool, deciding: Collection[str]
    ) -> Measure:
        """The measure, where something else explains it or the state now is not known. `rounded`: how a quota was or is rounded
        is taken for granted. `deciding`: what of its nodes decides it, in the words of `nodes.contested`.
        """
        all_of_it = self.around.untold or self._is_open(measure, respecified=respecified, rounded=rounded)
        if not known or all_of_it:
            measure = in_doubt(measure, all_of_it=all_of_it)
        cause = self._cause(measure, respecified=respecified)
        if cause is not None:
            self._needed.add(cause)
            return replace(measure, outcome="other-cause")
        if not self.around.contradictions or _is_given(measure):
            return measure
        said = self.around.contested if measure.what == "quota-us" else self.around.guessed
        against = said.intersection(deciding)
        doubted = against_evidence(measure, contested=bool(against), same_evidence=against <= self.around.same_evidence)
        if doubted != measure:
            self._needed.add("evidence")
        return doubted

    def _is_open(self, measure: Measure, *, respecified: bool, rounded: bool) -> bool:
        """Whether what its number rests on is not known of one moment, so that a difference may be of the knowledge only."""
        if measure.what in _OF_THE_NODE:
            return not self.around.same_ground or (self.around.unseen and measure.outcome != "unchanged")
        if measure.what != "quota-us" or not rounded or (respecified and measure.outcome in _NOT_AS_PREDICTED):
            return False
        return _NO_QUOTA not in (*measure.before, *measure.predicted, *measure.now)

    def _cause(self, measure: Measure, *, respecified: bool) -> str | None:
        if respecified and measure.outcome in _NOT_AS_PREDICTED:
            return "spec"
        # What others there ask for may also keep a share where it was.
        moved = _NOT_AS_PREDICTED if measure.what in _OF_THE_NODE else _MOVED
        if measure.outcome in moved and self.around.other_node:
            return "node"
        return "pods" if measure.outcome in moved and measure.what in _OF_THE_NODE and self.around.other_pods else None

    def said(self) -> tuple[str, ...]:
        """The causes, and the evidence against what was said, in words."""
        words = {
            "stops": said_to_stop(*self.around.kubelets),
            "spec": f"it asks for other CPU: {', '.join(_changes(self.before, self.after))}",
            "node": f"it was on {self.before.node} and is on {self.after.node}, "
            "for which something else or nothing was predicted",
            "pods": f"{self.after.node} has other pods now, or pods that ask for other CPU, or another size",
        }
        causes = (text for cause, text in words.items() if cause in self._needed)
        return (*causes, *(self.around.contradictions if "evidence" in self._needed else ()))


def _is_given(measure: Measure) -> bool:
    """Whether it is so whatever its node runs: without a limit there is no quota, and one container has all of its pod."""
    values = {*measure.before, *measure.predicted, *measure.now}
    return (measure.what == "quota-us" and values == {_NO_QUOTA}) or (measure.what == "in-pod" and values == {1})


def _changes(before: PodCases, after: PodCases) -> Iterable[str]:
    """What is not the same of what it asks for. Of its own weight, if nothing else tells why that is another."""
    found = []
    if before.qos != after.qos:
        found.append(f"QoS class {before.qos} -> {after.qos}")
    if before.handler != after.handler:
        found.append(f"handler {before.handler} -> {after.handler}")
    was, now = ({c.name: c for c in pod.containers if c.role in COMPETING} for pod in (before, after))
    for name in sorted({*was, *now}):
        old, new = (_asked(each[name]) if name in each else "not there" for each in (was, now))
        if old != new:
            found.append(f"{name} {old} -> {new}")
    return found or [f"all of it, weight {weight(before)} -> {weight(after)}"]


def _asked(container: ContainerCases) -> str:
    amounts = (container.request_milli, container.limit_milli)
    request, limit = ("none" if amount is None else f"{amount}m" for amount in amounts)
    return f"request {request} limit {limit}"
