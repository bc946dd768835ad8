"""The evidence ladder: from all pieces of evidence to the state of a node.

The strongest piece wins: certain (measured) over stated (the states file) over likely (a verified rule) over probable (a
platform's default). Strong pieces that contradict each other are shown, never averaged. A default that something stronger
contradicts was overridden, which is nothing odd; two defaults that contradict each other leave the question open. A hint
answers nothing, but two independent pieces that agree, one of what the node boots and one of what its kubelet accepts or
shows, are likely together.

Of a runtime a measurement proves what it wrote when the containers were created, not what it writes next. So
where the states file or a verified rule says otherwise, the measured weights hold for now only.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product

from msgspec.structs import replace

from kubectl_cgaudit.cgroups import crio
from kubectl_cgaudit.cgroups.pods import spec_request
from kubectl_cgaudit.cgroups.weights import Formula
from kubectl_cgaudit.collect.model import Cluster, Node
from kubectl_cgaudit.detect import gather, reading, runtime, states
from kubectl_cgaudit.detect.evidence import NOT_QUADRATIC, RESERVED, Confidence, Evidence, Strength
from kubectl_cgaudit.detect.features import BY_NAME
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.measured import CADVISOR, WeighedContainer
from kubectl_cgaudit.detect.runtime import Runtime, of_handler
from kubectl_cgaudit.detect.state import DEFAULT, NAME, SYSTEM_SLICE, Basis, Leftover, State
from kubectl_cgaudit.detect.states import Rule

_RUNTIME, _ROOT = "runtime:", "root:"
_CONFIDENCE: dict[Strength, Confidence] = {"certain": "certain", "likely": "likely", "probable": "probable"}
"""How sure an answer is that rests on a piece of evidence."""


def settle(node: Node, placed: Sequence[PlacedPod], cluster: Cluster, rules: tuple[Rule, ...]) -> State:
    """The state of a node. Raises UsageError when the states file does not fit it."""
    pieces = _pieces(node, placed, cluster, rules)
    state = ladder(node, rules, pieces)
    states.check_units(rules, node, state)
    state = _with_crio(state, node, placed)
    leftovers = _leftovers(state, gather.containers(node, placed, cluster, state.settled_cgroup))
    return replace(state, leftovers=leftovers) if leftovers else state


def settle_as_told(node: Node, placed: Sequence[PlacedPod], cluster: Cluster, rules: tuple[Rule, ...]) -> State:
    """The state of a node where the states file has the last word: what `verify` holds the measurement against."""
    pieces = _pieces(node, placed, cluster, rules)
    state = _fold(_weakly(node.kubelet_version, _weighed(pieces)), pieces, "certain")
    state = states.apply(rules, node, state)
    states.check_units(rules, node, state)
    return _with_crio(replace(state, evidence=pieces), node, placed)


def _with_crio(state: State, node: Node, placed: Sequence[PlacedPod]) -> State:
    """Return the state with what matters where the container runtime is CRI-O."""
    if not node.runtime_version.startswith(crio.SCHEME):
        return state
    partitioned = any(
        pod.qos == "Burstable" and crio.asked(pod).partitioned and spec_request(pod, state.kubelet_version)
        for pod, _ in placed
    )
    return replace(state, crio=True, partitioned_pods=partitioned)


def _pieces(node: Node, placed: Sequence[PlacedPod], cluster: Cluster, rules: tuple[Rule, ...]) -> tuple[Evidence, ...]:
    """All evidence of a node. What measured weights mean depends on the cgroup version that all else says."""
    pieces = tuple(gather.evidence(node, placed, cluster))
    known = ladder(node, rules, pieces).settled_cgroup
    return pieces + tuple(gather.measurement(node, placed, cluster, known))


def ladder(node: Node, rules: tuple[Rule, ...], pieces: tuple[Evidence, ...]) -> State:
    """The state that pieces and rules make together, the strongest last."""
    if any(rule.matches(node) for rule in rules):
        return _climbed(node.kubelet_version, pieces, lambda likely: states.apply(rules, node, likely))
    return _untold(node.kubelet_version, pieces)


@lru_cache(maxsize=4096)
def _untold(kubelet_version: str, pieces: tuple[Evidence, ...]) -> State:
    """That of all nodes that show the same, and of which nobody said anything."""
    return _climbed(kubelet_version, pieces, lambda likely: likely)


def _climbed(kubelet_version: str, pieces: tuple[Evidence, ...], tell: Callable[[State], State]) -> State:
    telling = _weighed(_without_moot(pieces))
    told = _overruled(tell(_weakly(kubelet_version, telling)), telling)
    state = _fold(told, pieces, "certain")
    if told.settled_cgroup and state.cgroup != told.cgroup:
        state = _without_units(state, told)
    return replace(state, evidence=pieces)


def _weakly(kubelet_version: str, pieces: Sequence[Evidence]) -> State:
    """Return the state that weighed pieces make without the states file and without what was measured."""
    return _fold(_fold(reading.defaults(kubelet_version), pieces, "probable"), pieces, "likely")


def _weighed(pieces: Sequence[Evidence]) -> list[Evidence]:
    """Return the strong pieces, and what the weak ones come to: about each subject one that is likely or probable, or none."""
    hosts = {piece.strength for piece in pieces if piece.about == "host"}
    weak: dict[str, list[Evidence]] = defaultdict(list)
    found = []
    for each in pieces:
        piece = _in_container(each, surely="likely" in hosts) if hosts and each.about == "cgroup" else each
        if piece.strength in ("probable", "hint"):
            weak[piece.about].append(piece)
        else:
            found.append(piece)
    for about, said in weak.items():
        found += _together(said, at_most_probable=bool(hosts) and about == "cgroup")
    return found


def _in_container(piece: Evidence, *, surely: bool) -> Evidence:
    """Return what a piece about the cgroup version is worth on a node that is a container, or may be one.

    It has its host's version: what its own image starts with is a hint at best.
    """
    if piece.side != "boot" or piece.strength not in ("likely", "probable"):
        return piece
    return replace(piece, strength="hint" if surely else "probable", override=piece.override or "its host's version")


def _together(said: Sequence[Evidence], *, at_most_probable: bool) -> Iterator[Evidence]:
    """Yield what weak pieces about one subject come to, if anything."""
    if len({_comparable(piece.value) for piece in said}) == 1:
        for one, other in product(said, said):
            if _independent(one, other):
                saw = f"{one.saw}; and {other.source}: {other.saw}"
                strength: Strength = "probable" if at_most_probable else "likely"
                override = "; or ".join(dict.fromkeys(each.override for each in (one, other) if each.override))
                yield replace(one, strength=strength, saw=saw, override=override)
                return
    defaults = [piece for piece in said if piece.strength == "probable"]
    if len({_comparable(piece.value) for piece in defaults}) == 1:
        yield defaults[0]


def _independent(one: Evidence, other: Evidence) -> bool:
    """Return whether one is of what the node boots, the other of what its kubelet accepts or shows, from other strings."""
    return one.side in ("boot", "host") and other.side == "kubelet" and not set(one.strings) & set(other.strings)


def _without_moot(pieces: Iterable[Evidence]) -> list[Evidence]:
    """Return the pieces without those that a measurement of the same handler makes moot: its name says what it runs, or its
    features that it is not quadratic, where it was measured that it sets no weight: neither is.
    """
    weighed = {piece.about for piece in pieces if piece.source == CADVISOR}
    none = {piece.about for piece in pieces if piece.strength == "certain" and piece.value == "none"}
    return [
        piece
        for piece in pieces
        if not (piece.value == NOT_QUADRATIC and piece.about in none)
        and not (piece.source == BY_NAME and piece.about in weighed)
    ]


def _without_units(state: State, told: State) -> State:
    """Values at the root have the unit of the version they were given for; measured ones stay."""
    words = f"root: values given for cgroup {told.cgroup} are left out, as the node is on {state.cgroup}"
    return states.without_root(state, words, lambda about: state.basis_of(about).confidence == "certain")


def _leftovers(state: State, containers: Iterable[WeighedContainer]) -> tuple[Leftover, ...]:
    """The running containers whose measured weight is not what their handler writes now."""
    now = {handler: known.formula for handler, known in state.runtimes}
    return tuple(
        Leftover(each.namespace, each.pod, each.container, each.handler, each.weight, each.formula)
        for each in containers
        if now.get(each.handler) not in (each.formula, "none")
    )


def _overruled(after: State, pieces: Iterable[Evidence]) -> State:
    """The state the user's rules made, with the verified rules it overrules shown."""
    words = []
    for piece in pieces:
        said = _value(after, piece.about)
        if piece.strength == "likely" and said is not None and not _agrees(after, piece, said):
            source = after.basis_of(piece.about).source
            words.append(f"{piece.about}: {source} says {said}, but {piece.source} says {piece.value} ({piece.saw})")
    return replace(after, contradictions=(*after.contradictions, *words)) if words else after


def _fold(state: State, pieces: Iterable[Evidence], strength: Strength) -> State:
    """The state with every piece of one strength in it."""
    by_subject: dict[str, list[Evidence]] = defaultdict(list)
    for piece in pieces:
        if piece.strength == strength:
            by_subject[piece.about].append(piece)
    for about, said in by_subject.items():
        values = {_comparable(piece.value) for piece in said}
        state = _contradicted(state, about, said) if len(values) > 1 else _told(state, said[0])
    return state


def _agrees(state: State, piece: Evidence, said: str) -> bool:
    """Whether what the user said fits a verified rule. Not quadratic is also what sets no weight; of a youki it says nothing."""
    known = state.runtime(piece.about.removeprefix(_RUNTIME)) if piece.value == NOT_QUADRATIC else None
    if known and (known.formula == "none" or known.name == "youki"):
        return True
    return said == _comparable(piece.value)


def _comparable(value: str) -> str:
    """What two pieces are compared by: of a runtime its formula."""
    if value == NOT_QUADRATIC:
        return "linear"
    return runtime.ALWAYS.get(value, value)


def _contradicted(state: State, about: str, said: Sequence[Evidence]) -> State:
    """Strong pieces disagree: the question is open again, and both are shown."""
    words = " but ".join(f"{piece.source} says {piece.value} ({piece.saw})" for piece in said)
    return _opened(state, about, f"{about}: {words}")


def _opened(state: State, about: str, words: str) -> State:
    basis = {**state.basis, about: Basis("unknown", "the evidence contradicts itself")}
    state = replace(state, basis=basis, contradictions=(*state.contradictions, words))
    if about == "cgroup":
        return replace(state, cgroup=None)
    if about.startswith(_RUNTIME):
        handler = about.removeprefix(_RUNTIME)
        return replace(state, runtimes=tuple(each for each in state.runtimes if each[0] != handler))
    return state


def _told(state: State, piece: Evidence) -> State:
    """The state with one piece in it; a strong value that it overrules is shown."""
    before = _value(state, piece.about)
    basis = state.basis_of(piece.about)
    if before is not None and before != _comparable(piece.value) and basis.confidence in ("stated", "likely"):
        words = f"{piece.about}: {piece.source} says {piece.value} ({piece.saw}), but {basis.source} says {before}"
        if piece.about.startswith(_RUNTIME) and piece.strength == "certain":
            return _created_before(state, piece, basis, words)
        state = replace(state, contradictions=(*state.contradictions, words))
    told = Basis(_CONFIDENCE[piece.strength], f"{piece.source}: {piece.saw}", piece.override)
    named = _name_kept(state, piece, basis)
    state = _with(
        replace(state, basis={**state.basis, **named, _shown_under(piece.about, piece.value): told}),
        piece.about,
        piece.value,
    )
    # What is shown of a node speaks of all values at the root as one: that is as sure as the least sure of them.
    if piece.about.startswith(_ROOT) and all(
        state.basis_of(f"{_ROOT}{name}").confidence == "certain" for name, _ in state.root
    ):
        return replace(state, basis={**state.basis, "root": told})
    return state


def _name_kept(state: State, piece: Evidence, basis: Basis) -> dict[str, Basis]:
    """How surely a runtime's name is known of which the formula alone was measured: no better than before."""
    handler = piece.about.removeprefix(_RUNTIME)
    known = state.runtime(handler) if piece.about.startswith(_RUNTIME) else None
    if known and known.version and known.formula == piece.value and basis.confidence in ("stated", "likely"):
        return {f"{NAME}{handler}": basis}
    return {}


def _shown_under(about: str, value: str) -> str:
    """Which of what is shown of a node a piece speaks of."""
    if about.startswith(_ROOT) and value == DEFAULT:
        return "root"
    if not about.startswith(RESERVED):
        return about
    return "system_slice" if about.removeprefix(RESERVED) == SYSTEM_SLICE else "root"


def _created_before(state: State, piece: Evidence, basis: Basis, words: str) -> State:
    """Containers carry another formula than is said of their runtime: either it was upgraded since, or what is said is wrong.

    The user's word stands for what is created from now on; a rule's word does not suffice.
    """
    if basis.confidence == "stated":
        return replace(state, contradictions=(*state.contradictions, words))
    return _opened(state, piece.about, words)


def _value(state: State, about: str) -> str | None:
    """What a state says of something, in the words that pieces are compared by."""
    if about.startswith(_RUNTIME):
        known = state.runtime(about.removeprefix(_RUNTIME))
        return known.formula if known else None
    if about.startswith(_ROOT):
        value = dict(state.root).get(about.removeprefix(_ROOT))
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
    if about.startswith(_RUNTIME):
        handler = about.removeprefix(_RUNTIME)
        known = _runtime(handler, value, state.runtime(handler))
        return replace(state, runtimes=tuple(sorted({**dict(state.runtimes), handler: known}.items())))
    if about.startswith(_ROOT) and value != DEFAULT:
        root = {**dict(state.root), about.removeprefix(_ROOT): int(value)}
        return replace(state, root=tuple(sorted(root.items())))
    if about.startswith((RESERVED, _ROOT)):
        name = about.removeprefix(RESERVED).removeprefix(_ROOT)
        reserved = {**dict(state.reserved), name: int(value) if value.isdigit() else None}
        return replace(state, reserved=tuple(sorted(reserved.items())))
    changes: dict[str, dict[str, object]] = {
        "cgroup": {"cgroup": value},
        "driver": {"driver": value},
        "kubelet": {"kubelet_formula": value},
        "system_slice": {"system_slice": int(value)} if value.isdigit() else {},
        "kubepods": {"from_capacity": value == "capacity"},
        "quota": {"cfs_quota": value != "off"},
        "period": {"period_us": int(value)} if value.isdigit() else {},
        "reserve": {"reserve": value},
        "services": {"services": value},
    }
    if about in ("burstable", "pod-quota", "conmon", "inner"):
        return replace(state, platform=tuple(sorted({**dict(state.platform), about: value}.items())))
    return replace(state, **changes.get(about, {}))


def _runtime(handler: str, value: str, known: Runtime | None) -> Runtime:
    """A runtime from evidence. A name and version that are known already stay if the formula agrees."""
    formula = _comparable(value)
    if known and known.formula == formula:
        return known
    if value in runtime.ALWAYS:
        return runtime.parse(value)
    if formula == "none":
        return Runtime(None, None, "none", rounds_quota=False)
    proven: Formula = "linear" if formula == "linear" else "quadratic"
    named = of_handler(handler, proven)
    # What is seen outranks what a handler's name speaks of.
    return named if named.formula == proven else runtime.bare(proven)
