"""The evidence ladder: from all pieces of evidence to the state of a node.

The strongest piece wins: certain (measured) over assumed (the states file) over likely (a verified rule). A
hint settles nothing. Strong pieces that contradict each other are shown, never averaged.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from kubectl_cgaudit.collect.model import Node
from kubectl_cgaudit.detect import reading, runtime, states
from kubectl_cgaudit.detect.evidence import NOT_QUADRATIC, Confidence, Evidence
from kubectl_cgaudit.detect.runtime import Runtime, bare
from kubectl_cgaudit.detect.state import Basis, Leftover, State
from kubectl_cgaudit.detect.states import Rule


def settle(node: Node, rules: tuple[Rule, ...], pieces: Sequence[Evidence], leftovers: tuple[Leftover, ...]) -> State:
    """The state of a node. Raises UsageError when the states file does not fit it."""
    likely = _fold(reading.defaults(node), pieces, "likely")
    told = _overruled(likely, states.apply(rules, node, likely), pieces)
    return replace(_fold(told, pieces, "certain"), evidence=tuple(pieces), leftovers=leftovers)


def settle_as_told(node: Node, rules: tuple[Rule, ...], pieces: Sequence[Evidence]) -> State:
    """The state of a node where the states file has the last word: what `verify` holds the measurement against."""
    state = _fold(_fold(reading.defaults(node), pieces, "likely"), pieces, "certain")
    return replace(states.apply(rules, node, state), evidence=tuple(pieces))


def _overruled(before: State, after: State, pieces: Iterable[Evidence]) -> State:
    """The state the user's rules made, with the verified rules it overrules shown."""
    words = []
    for piece in pieces:
        said = _value(after, piece.about)
        if piece.confidence == "likely" and said is not None and said != _comparable(piece.value):
            source = after.basis_of(piece.about).source
            words.append(f"{piece.about}: {source} says {said}, but {piece.source} says {piece.value} ({piece.saw})")
    return replace(after, contradictions=(*before.contradictions, *words)) if words else after


def _fold(state: State, pieces: Iterable[Evidence], confidence: Confidence) -> State:
    """The state with every piece of one confidence in it."""
    by_subject: dict[str, list[Evidence]] = defaultdict(list)
    for piece in pieces:
        if piece.confidence == confidence:
            by_subject[piece.about].append(piece)
    for about, said in by_subject.items():
        values = {_comparable(piece.value) for piece in said}
        state = _contradicted(state, about, said) if len(values) > 1 else _told(state, said[0])
    return state


def _comparable(value: str) -> str:
    return "linear" if value == NOT_QUADRATIC else value


def _contradicted(state: State, about: str, said: Sequence[Evidence]) -> State:
    """Strong pieces disagree: the question is open again, and both are shown."""
    words = " but ".join(f"{piece.source} says {piece.value} ({piece.saw})" for piece in said)
    state = replace(state, contradictions=(*state.contradictions, f"{about}: {words}"))
    basis = {**state.basis, about: Basis("unknown", "the evidence contradicts itself")}
    if about == "cgroup":
        return replace(state, cgroup=None, basis=basis)
    if about.startswith("runtime:"):
        handler = about.removeprefix("runtime:")
        return replace(state, runtimes=tuple(each for each in state.runtimes if each[0] != handler), basis=basis)
    return replace(state, basis=basis)


def _told(state: State, piece: Evidence) -> State:
    """The state with one piece in it; a strong value that it overrules is shown."""
    before = _value(state, piece.about)
    if before is not None and _comparable(before) != _comparable(piece.value) and _was_strong(state, piece.about):
        source = state.basis_of(piece.about).source
        words = f"{piece.about}: {piece.source} says {piece.value} ({piece.saw}), but {source} says {before}"
        state = replace(state, contradictions=(*state.contradictions, words))
    saw = f"{piece.source}: {piece.saw}"
    basis = {**state.basis, piece.about: Basis(piece.confidence, saw)}
    return _with(replace(state, basis=basis), piece.about, piece.value)


def _was_strong(state: State, about: str) -> bool:
    return state.basis_of(about).confidence in ("assumed", "likely")


def _value(state: State, about: str) -> str | None:
    """What a state says of something, in the words of evidence."""
    if about.startswith("runtime:"):
        known = state.runtime(about.removeprefix("runtime:"))
        return known.formula if known else None
    if about.startswith("root:"):
        value = dict(state.root).get(about.removeprefix("root:"))
        return None if value is None else str(value)
    simple: dict[str, object] = {
        "cgroup": state.cgroup,
        "driver": state.driver,
        "kubelet": state.kubelet_formula,
        "system_slice": state.system_slice,
    }
    found = simple.get(about)
    return None if found is None else str(found)


def _with(state: State, about: str, value: str) -> State:
    if about.startswith("runtime:"):
        handler = about.removeprefix("runtime:")
        known = _runtime(value, state.runtime(handler))
        return replace(state, runtimes=tuple(sorted({**dict(state.runtimes), handler: known}.items())))
    if about.startswith("root:"):
        root = {**dict(state.root), about.removeprefix("root:"): int(value)}
        return replace(state, root=tuple(sorted(root.items())))
    changes: dict[str, dict[str, object]] = {
        "cgroup": {"cgroup": value},
        "driver": {"driver": value},
        "kubelet": {"kubelet_formula": value},
        "system_slice": {"system_slice": int(value)} if value.isdigit() else {},
        "kubepods": {"from_capacity": value == "capacity"},
        "quota": {"cfs_quota": value != "off"},
        "period": {"period_us": int(value)} if value.isdigit() else {},
    }
    return replace(state, **changes.get(about, {}))


def _runtime(value: str, known: Runtime | None) -> Runtime:
    """A runtime from evidence. A name and version that are known already stay if the formula agrees."""
    formula = _comparable(value)
    if known and known.formula == formula:
        return known
    if formula == "none":
        return Runtime(None, None, "none", rounds_quota=False)
    if formula in ("linear", "quadratic"):
        return bare("linear" if formula == "linear" else "quadratic")
    return runtime.parse(value)
