"""What a report of a comparison says, the same in every format: rows and words, not escaped yet."""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from kubectl_cgaudit.compare.diff.types import (
    OUTCOMES,
    SAID_TO_STOP,
    Diff,
    LoneNode,
    LoneWorkload,
    Measure,
    NodeDiff,
    Outcome,
    PodDiff,
    Side,
    Value,
    What,
    WorkloadDiff,
    contradicted,
)
from kubectl_cgaudit.report.words import number, percent, with_kind
from kubectl_cgaudit.text import counted, named

IN_FULL = "all of it: `-o json=FILE` in the same run"
OUTCOME_WORDS: dict[Outcome, str] = {
    "unpredicted": "moved, and no change was predicted",
    "otherwise": "moved, but not as predicted",
    "as-before": "a change was predicted, and it is still as before",
    "unknown": "cannot be said: what ran there before or runs there now is not known (?), or is in doubt: see the notes",
    "other-cause": "not as predicted, and something else explains it: other requests, another node, other pods there",
    "came-true": "changed as predicted",
    "unchanged": "no change was predicted, and none came",
}
CHANGE_WORDS = {
    ", not ": "X, not Y: it is X now, and Y was predicted.",
    "said ": "said Y: Y was predicted.",
}
"""What `change` may have in it, in words."""
_WHAT: dict[What, str] = {
    "cgroup": "cgroup",
    "kubepods": "kubepods",
    "system-slice": "system.slice",
    "pods-per-system": "pods : system",
    "runtime": "runtime",
    "weight": "weight",
    "quota-us": "quota",
    "share": "of node",
    "against-system": "vs system",
    "in-pod": "in pod",
    "fate": "after the move",
}
_FRACTIONS: tuple[What, ...] = ("share", "in-pod")
_ALLOWED = 3
_NAMED = 4
_NODES = 2
_POD = "pod"
OPEN_BEFORE = "what ran there before is not known"
OPEN_PREDICTED = "what ran there before is not known, and decides what was predicted"
OPEN_FATE = "it was uncertain whether it would run"
OPEN_NOW = "what runs there now is not known"


class Row(Struct, frozen=True):
    """One number that moved, or should have: of a node, or of as many pods of a workload as have the same row."""

    outcome: Outcome
    subject: str
    """The node; or the workload and its kind."""
    what: str
    before: str
    predicted: str
    now: str
    pods: int
    of: int
    """How many pods of the workload are in both."""
    because: tuple[str, ...]


def node_rows(nodes: Sequence[NodeDiff]) -> list[Row]:
    """What wants attention first, then by name."""
    rows = [
        _row(
            measure,
            f"{node.name} (was {node.replaces})" if node.replaces else node.name,
            _label("", measure),
            (0, 0),
            _reasons(measure, [((node.name, node.replaces or node.name), node.because)]),
        )
        for node in nodes
        for measure in node.measures
    ]
    return sorted(rows, key=_attention)


def workload_rows(workloads: Sequence[WorkloadDiff]) -> list[Row]:
    """What wants attention first; then workload by workload, and the pod before its containers."""
    return sorted((row for workload in workloads for row in _of_workload(workload)), key=_attention)


def _attention(row: Row) -> int:
    return OUTCOMES.index(row.outcome)


def _of_workload(workload: WorkloadDiff) -> Iterator[Row]:
    found: dict[tuple[str | None, Measure], list[PodDiff]] = {}
    for pod in workload.pods:
        for measure in pod.measures:
            found.setdefault((None, measure), []).append(pod)
        for container in pod.containers:
            for measure in container.measures:
                found.setdefault((container.name, measure), []).append(pod)
    said = {measure.outcome for name, measure in found if not _follows(name, measure)}
    shown = [(name, measure) for name, measure in found if measure.outcome not in said or not _follows(name, measure)]
    ordered = sorted(shown, key=lambda each: OUTCOMES.index(each[1].outcome))
    labels = Counter(_label(name, measure) for name, measure in ordered)
    for name, measure in ordered:
        alike, label = found[name, measure], _label(name, measure)
        if labels[label] > 1:
            label = f"{label} on {named(sorted({pod.now_node for pod in alike}), _NODES)}"
        because = _reasons(measure, [((pod.node, pod.now_node), pod.because) for pod in alike])
        yield _row(measure, subject(workload), label, (len(alike), len(workload.pods)), because)
    if workload.outcome == "unknown" and not any(measure.outcome == "unknown" for _, measure in ordered):
        why = (f"{_unread(workload)} node, or what is needed of it, was not read",)
        yield Row("unknown", subject(workload), "pods", "", "", "", 0, len(workload.pods), why)


def _unread(workload: WorkloadDiff) -> str:
    """Which pods are not compared; where none is unread now, some were before."""
    amount = workload.unpredicted_pods
    which = counted(amount, "pod") if amount else "some pods it had" if workload.pods else "its pods"
    return f"{which} cannot be compared: {'its' if amount == 1 else 'their'}"


def _follows(name: str | None, measure: Measure) -> bool:
    """Whether it follows from other rows: a part of the node from the pod's against the system and the part of the pod."""
    return measure.what == "share" or (name is not None and measure.what == "against-system")


def _label(name: str | None, measure: Measure) -> str:
    """No name is the pod's own; a container may be called like that."""
    name = _POD if name is None else f"container {name}" if name == _POD else name
    return " ".join(part for part in (name, _WHAT[measure.what], measure.of) if part)


def _reasons(measure: Measure, found: Sequence[tuple[Sequence[str], Sequence[str]]]) -> tuple[str, ...]:
    """Why it is not as predicted, or what leaves it open; `found` are the nodes, before and now, and what is said of each."""
    if measure.what == "fate" and measure.outcome == "as-before":
        return tuple(dict.fromkeys(text for _, because in found for text in because if text.startswith(SAID_TO_STOP)))
    if measure.outcome not in ("other-cause", "unknown"):
        return ()
    against = {node for nodes, because in found for node in nodes for text in because if _is_against(node, text)}
    if measure.outcome == "unknown":
        # In full once, in the notes: every row of a node would repeat it.
        nodes = named(sorted(against), _NAMED)
        return (*_open(measure), *([f"{contradicted(nodes)}see the notes"] if against else []))
    others = (
        text
        for nodes, because in found
        for text in because
        if not text.startswith(SAID_TO_STOP) and not any(_is_against(node, text) for node in nodes)
    )
    return tuple(dict.fromkeys(others))


def _is_against(node: str, text: str) -> bool:
    return text.startswith(contradicted(node))


def _open(measure: Measure) -> Iterator[str]:
    """The sides that allow several values, or none."""
    if measure.what == "fate":
        yield OPEN_FATE
        return
    if len(measure.before) != 1:
        yield OPEN_BEFORE
    elif len(measure.predicted) != 1:
        yield OPEN_PREDICTED
    if len(measure.now) != 1:
        yield OPEN_NOW


def _row(measure: Measure, subject: str, what: str, pods: tuple[int, int], because: tuple[str, ...]) -> Row:
    before, predicted, now = (_values(measure, each) for each in (measure.before, measure.predicted, measure.now))
    return Row(measure.outcome, subject, what, before, predicted, now, *pods, because)


def _values(measure: Measure, values: Sequence[Value]) -> str:
    shown = list(dict.fromkeys(_value(measure.what, value) for value in values))
    more = [f"{len(shown) - _ALLOWED} more"] if len(shown) > _ALLOWED else []
    brief = [_after_unit(shown[index - 1], each) if index else each for index, each in enumerate(shown[:_ALLOWED])]
    return " or ".join([*brief, *more]) or "?"


def _value(what: What, value: Value) -> str:
    if isinstance(value, str):
        return value
    if what in _FRACTIONS:
        return percent(value)
    return f"{value:.0f} us" if what == "quota-us" else f"{number(value)}{' : 1' if what == 'pods-per-system' else ''}"


def change(row: Row) -> str:
    """What was, is and was predicted, in as few words as the outcome allows; a unit is said once."""
    if row.outcome == "unpredicted":
        return f"{row.before} -> {_after_unit(row.before, row.now)}"
    if row.outcome == "came-true":
        close = "" if row.now == row.predicted else f" (said {_after_unit(row.now, row.predicted)})"
        return f"{row.before} -> {_after_unit(row.before, row.now)}{close}"
    if row.outcome == "as-before":
        return f"{row.now}, not {_after_unit(row.now, row.predicted)}"
    if row.outcome == "unknown":
        return _unknown(row) if row.now else "; ".join(row.because)
    return f"{row.before} -> {_after_unit(row.before, row.now)}, not {_after_unit(row.now, row.predicted)}"


def _unknown(row: Row) -> str:
    """`?` stands for the side that is not known."""
    if not {OPEN_BEFORE, OPEN_PREDICTED, OPEN_FATE, OPEN_NOW} & {*row.because}:
        return f"now {row.now}, in doubt"
    was = "?" if OPEN_BEFORE in row.because else row.before
    now = "?" if OPEN_NOW in row.because else _after_unit(was, row.now)
    said = f", said {_after_unit(was, row.predicted)}" if {OPEN_PREDICTED, OPEN_FATE} & {*row.because} else ""
    return f"{was} -> {now}{said}"


def _after_unit(first: str, second: str) -> str:
    unit = first.partition(" ")[0]
    return second.removeprefix(f"{unit} ") if unit in ("weight", "shares") else second


def subject(workload: WorkloadDiff | LoneWorkload) -> str:
    """`shop/checkout deploy`."""
    return with_kind(workload.title, workload.kind)


def pods(row: Row) -> str:
    """`2/3`; nothing for nodes."""
    return f"{row.pods}/{row.of}" if row.of else ""


def lone(diff: Diff) -> Iterator[tuple[str, str, str]]:
    """Whether it is new or gone, what, and what it has or had."""
    for word, workloads in (("new", diff.new_workloads), ("gone", diff.gone_workloads)):
        yield from ((_unsure(word, each), subject(each), _had(each)) for each in workloads)
    for word, nodes in (("new", diff.new_nodes), ("gone", diff.gone_nodes)):
        for node in nodes:
            versions = " or ".join(map(str, node.cgroup))
            size = f"{node.allocatable_milli}m allocatable, {counted(node.pod_count, 'pod')}"
            yield _unsure(word, node), f"node {node.name}", f"cgroup {versions}, {size}"


def _unsure(word: str, each: LoneWorkload | LoneNode) -> str:
    return word if each.sure else f"{word}?"


def _had(workload: LoneWorkload) -> str:
    containers = [f"{each.name} {' or '.join(map(str, each.values)) or '?'}" for each in workload.containers]
    return f"{counted(workload.pod_count, 'pod')}: {named(containers, _NAMED)}" if containers else "not read"


def side(name: str, each: Side) -> str:
    """One of the two audits in a line."""
    dated = f", {each.generated_at}" if each.generated_at else ""
    only = f", only what matches {each.filter}" if each.filter else ""
    state = "" if each.complete else ", INCOMPLETE"
    amounts = f"{counted(each.nodes, 'node')}, {counted(each.workloads, 'workload')}"
    return f"{name}: {each.source}: {amounts}{only}{dated}{state}"


def same(diff: Diff) -> str:
    """Return the one sentence for two audits of one state, of which nothing else is to be said; else nothing."""
    before, after = diff.before, diff.after
    outcomes = {each.outcome for each in diff.nodes} | {each.outcome for each in diff.workloads}
    moved = outcomes - {"unchanged", "as-before", "unknown"}
    alone = any((diff.new_nodes, diff.gone_nodes, diff.new_workloads, diff.gone_workloads))
    if not before.input or (before.input, before.filter) != (after.input, after.filter) or moved or alone:
        return ""
    amounts = f"{counted(after.nodes, 'node')} and {counted(after.workloads, 'workload')}"
    rest = " The predicted changes are still to come." if "as-before" in outcomes else ""
    return f"Nothing changed: both have the same {amounts} (input sha256:{after.input[:12]}).{rest}"


def stayed(what: str, compared: Sequence[object]) -> str:
    """What is said where there is no row."""
    return "Nothing was to change, and nothing did." if compared else f"No {what} is in both."


def thresholds(diff: Diff) -> str:
    """From where on a share has moved."""
    said = ", ".join(f"{name} {percent(value)}" for name, value in diff.thresholds.items())
    return (
        f"Weights, quotas and versions are compared exactly; parts of CPU count from the thresholds on: {said}. Parts of the "
        "node, and of containers against the system, follow from the rows shown; -o json has them all."
    )
