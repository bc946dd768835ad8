"""What came of the predictions for a node."""

from collections.abc import Callable

from msgspec.structs import replace

from kubectl_cgaudit.audit.model import NodeMoment, NodeRecord
from kubectl_cgaudit.cgroups.weights import linear
from kubectl_cgaudit.compare.diff.match import formula
from kubectl_cgaudit.compare.diff.outcome import (
    STOPS,
    Limit,
    against_evidence,
    in_doubt,
    listed,
    of_fate,
    of_numbers,
    of_words,
    worst,
)
from kubectl_cgaudit.compare.diff.types import LoneNode, Measure, NodeDiff, Value, What, contradicted, said_to_stop
from kubectl_cgaudit.detect.state import CgroupVersion, unit_of

_OF_THE_ROOT: tuple[What, ...] = ("system-slice", "pods-per-system")
_OF_ITS_CPU: tuple[What, ...] = ("kubepods", "pods-per-system")


def compare(before: NodeRecord, after: NodeRecord, limit: Limit) -> NodeDiff:
    """The node before and what stands in its place now."""
    measures = [
        _words("cgroup", before, after, lambda moment: moment.cgroup),
        _words("kubepods", before, after, lambda moment: in_unit(moment.cgroup, moment.kubepods)),
        _words("system-slice", before, after, lambda moment: in_unit(moment.cgroup, moment.system_slice)),
        of_numbers(
            "pods-per-system",
            [
                (case.before.pods_per_system, STOPS if case.stops else case.after.pods_per_system)
                for case in before.cases
            ],
            [case.before.pods_per_system for case in after.cases],
            limit,
        ),
    ]
    handlers = set(before.cases[0].before.runtimes) & set(after.cases[0].before.runtimes)
    measures += [_runtime(handler, before, after) for handler in sorted(handlers)]
    if untold(before, after):
        measures = [in_doubt(measure, all_of_it=True) for measure in measures]
    if not same_ground(before, after):
        measures = [in_doubt(each, all_of_it=True) if each.what in _OF_THE_ROOT else each for each in measures]
    because: list[str] = []
    if contradictions := against(before, after):
        said, same = contested(before, after, measured=True), same_evidence(before, after)
        deciding = [f"runtime:{each.of}" if each.of else "cgroup" for each in measures]
        doubted = [
            against_evidence(each, contested=about in said, same_evidence=about in same)
            for each, about in zip(measures, deciding, strict=True)
        ]
        if doubted != measures:
            because += contradictions
        measures = doubted
    if before.allocatable_milli != after.allocatable_milli:
        changed = [_excused(measure) for measure in measures]
        if changed != measures:
            because.append(f"its allocatable CPU was {before.allocatable_milli}m and is {after.allocatable_milli}m")
        measures = changed
    replaces = before.name if before.name != after.name else None
    # Another node in its place does not say that it came back.
    fate = of_fate(case.stops and replaces is None for case in before.cases)
    if fate.outcome == "as-before":
        because.append(said_to_stop(before.kubelet_version, after.kubelet_version))
    measures.append(fate)
    return NodeDiff(
        name=after.name,
        replaces=replaces,
        outcome=worst(measure.outcome for measure in measures),
        confidence=after.confidence,
        because=tuple(because),
        measures=listed(measures),
    )


def untold(*nodes: NodeRecord) -> bool:
    """Whether nothing can be said of the cgroups of one of them: one case only, and still unknown (it has no kubepods tree)."""
    return any(node.confidence == "unknown" and len(node.cases) == 1 for node in nodes)


def against(before: NodeRecord, after: NodeRecord) -> tuple[str, ...]:
    """What the evidence says against what was said of either; once, if it says the same of both."""
    both = [contradicted(node.name) + "; ".join(node.contradictions) for node in (before, after) if node.contradictions]
    return tuple(dict.fromkeys(both))


def contested(*nodes: NodeRecord, measured: bool) -> frozenset[str]:
    """What is taken from a states file though the evidence on one of the nodes contradicts it: `cgroup`, `runtime:default`.

    `measured`: also where that evidence is the weights of running containers, which stand whatever runs next.
    """
    return frozenset(
        about
        for node in nodes
        for about, known in node.known.items()
        if known.confidence == "stated"
        and any(words.startswith(f"{about}: ") for words in node.contradictions)
        and (measured or all(each.about != about or each.strength != "certain" for each in node.evidence))
    )


def same_evidence(before: NodeRecord, after: NodeRecord) -> frozenset[str]:
    """What the evidence on both nodes says the same of."""
    was, now = _evidence(before), _evidence(after)
    return frozenset(about for about in was if was[about] == now.get(about))


def _evidence(node: NodeRecord) -> dict[str, set[tuple[str, str]]]:
    """Who says what, without what was seen, which has moments and pods in it."""
    found: dict[str, set[tuple[str, str]]] = {}
    for piece in node.evidence:
        found.setdefault(piece.about, set()).add((piece.source, piece.value))
    return found


def as_many(before: NodeRecord, after: NodeRecord) -> bool:
    """Whether the pods of each QoS class may be the same: as many, asking for as much. Of pods that are not reported no more
    is known.
    """
    now = [case.before for case in after.cases if case.before.qos]
    was = [moment for case in before.cases for moment in (case.before, case.after) if moment.qos]
    if not now or not was:
        return True
    same = [(one, other) for one in was for other in now if one.cgroup == other.cgroup]
    if same:
        return any(_classes(one) == _classes(other) for one, other in same)
    return _across_versions(was[0]) == _across_versions(now[0])


def _across_versions(moment: NodeMoment) -> dict[str, tuple[int, int]]:
    """As `_classes`, as far as shares can be held against weights: of the Burstable slice, as every kubelet makes its weight."""
    of_slice = linear if moment.cgroup == "v1" else int
    return {
        name: (each.pods, of_slice(each.value) if name == "Burstable" and each.pods else 0)
        for name, each in moment.qos.items()
    }


def _classes(moment: NodeMoment) -> dict[str, tuple[int, int]]:
    return {name: (each.pods, each.value) for name, each in moment.qos.items()}


def same_ground(before: NodeRecord, after: NodeRecord) -> bool:
    """Whether what is at the root is a default in both, or known in both: else a difference may be of the knowledge only."""
    return all(_is_default(before, what) == _is_default(after, what) for what in ("system_slice", "root"))


def driver_known(*nodes: NodeRecord) -> bool:
    """Whether the cgroup driver of all of them is known, and not taken to be the default."""
    return not any(_is_default(node, "driver") for node in nodes)


def unnamed(node: NodeRecord) -> frozenset[str]:
    """The runtime handlers of which only the formula is known."""
    found = [case.before.runtimes.items() for case in node.cases]
    return frozenset(handler for runtimes in found for handler, runtime in runtimes if runtime == formula(runtime))


def _is_default(node: NodeRecord, what: str) -> bool:
    return what not in node.known or node.known[what].confidence in ("probable", "unknown")


def alone(node: NodeRecord, *, sure: bool) -> LoneNode:
    """A node that is in one audit only."""
    versions: set[Value] = {case.before.cgroup for case in node.cases}
    return LoneNode(node.name, node.allocatable_milli, node.pods, sure, tuple(sorted(versions, key=str)))


def in_unit(version: CgroupVersion, value: int | None) -> str:
    """`shares 1024` on v1, `weight 39` on v2, `no weight` where the runtime sets none."""
    unit = unit_of(version)
    return f"no {unit}" if value is None else f"{unit} {value}"


def _words(
    what: What, before: NodeRecord, after: NodeRecord, read: Callable[[NodeMoment], str], of: str = ""
) -> Measure:
    was = [(read(case.before), STOPS if case.stops else read(case.after)) for case in before.cases]
    return of_words(what, of, was, [read(case.before) for case in after.cases])


def _runtime(handler: str, before: NodeRecord, after: NodeRecord) -> Measure:
    return _words("runtime", before, after, lambda moment: formula(moment.runtimes[handler]), handler)


def _excused(measure: Measure) -> Measure:
    if measure.what in _OF_ITS_CPU and measure.outcome in ("unpredicted", "otherwise", "as-before"):
        return replace(measure, outcome="other-cause")
    return measure
