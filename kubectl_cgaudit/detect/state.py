"""What a node is in one moment: as far as it is known, and with every open question answered one way."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any, Literal

from msgspec import Struct

from kubectl_cgaudit.cgroups.paths import Driver
from kubectl_cgaudit.cgroups.version import KubeletVersion, rounds_pod_quota
from kubectl_cgaudit.cgroups.weights import DEFAULT_SHARES, DEFAULT_WEIGHT, FORMULAS, Formula, linear
from kubectl_cgaudit.detect.evidence import CONFIGZ, NOT_QUADRATIC, Confidence, Evidence
from kubectl_cgaudit.detect.runtime import Runtime, of_handler, of_name

CgroupVersion = Literal["v1", "v2"]
VERSIONS: tuple[CgroupVersion, ...] = ("v1", "v2")
Setter = Literal["systemd", "kubelet"]
"""Who gave a top-level cgroup its value."""
SETTERS: tuple[Setter, ...] = ("systemd", "kubelet")
PERIOD_US = 100_000
QUADRATIC_FIRST_FROM = KubeletVersion(1, 34, 0)
"""The first kubelet beside which a runtime of which nothing is known is taken for a quadratic one first."""

DEFAULT_HANDLER = "default"
SYSTEM_SLICE = "system.slice"
NAME = "name:"
"""Before a handler: the basis of its runtime's name and version, where that of the formula is a better one."""
DEFAULT = "default"
"""Of a top-level cgroup: what it has unless told otherwise."""


class Basis(Struct, frozen=True):
    """How surely something is known, and from what."""

    confidence: Confidence
    source: str
    override: str = ""
    """Of a default: what may have made this node differ."""


NOT_KNOWN = Basis("unknown", "nothing says it")


class Leftover(Struct, frozen=True):
    """A running container that carries another weight than its handler writes now: created before an upgrade."""

    namespace: str
    pod: str
    container: str
    handler: str
    weight: int
    formula: Formula | Literal["neither"]


class State(Struct, frozen=True):
    """What is known of a node; None where nothing settles it.

    `system_slice` and `root` are in the node's own unit: shares on cgroup v1, weight on v2; a system.slice
    of None stands for that version's default (1024 or 100).
    """

    cgroup: CgroupVersion | None
    driver: Driver
    kubelet_formula: Formula
    kubelet_version: KubeletVersion | None
    system_slice: int | None
    root: tuple[tuple[str, int], ...]
    runtimes: tuple[tuple[str, Runtime], ...]
    """By handler, in order of name; a handler that is not here is not known."""
    basis: dict[str, Basis]
    """Of each field, of each handler as `runtime:<handler>`, and as `name:<handler>` where its name is less sure."""
    from_capacity: bool = False
    """kubepods is made from the node's capacity instead of its allocatable CPU."""
    cfs_quota: bool = True
    period_us: int = PERIOD_US
    leftovers: tuple[Leftover, ...] = ()
    """Running containers whose measured weight is not what their handler writes now."""
    evidence: tuple[Evidence, ...] = ()
    contradictions: tuple[str, ...] = ()
    set_by: Setter | None = None
    """Who set the values at the root that are no default; None where nobody says it."""
    reserved: tuple[tuple[str, int | None], ...] = ()
    """Top-level cgroups whose value waits for the cgroup version: a kubelet's reserve in shares; None for the default."""
    reserve: str | None = None
    """The rule by which the platform's kubelet enforces a reserve on system.slice."""
    services: str = SYSTEM_SLICE
    """The top-level cgroup in which the kubelet and the container runtime run."""
    platform: tuple[tuple[str, str], ...] = ()
    """What else a row of the catalogue says of the kubelet of this platform, by the row's subject."""
    crio: bool = False
    """The container runtime is CRI-O, which reads annotations of pods."""
    partitioned_pods: bool = False
    """Of a node with CRI-O: some of its Burstable pods are for a management partition, and ask for CPU."""

    @property
    def settled_cgroup(self) -> CgroupVersion | None:
        """The cgroup version, where it is more than probable."""
        return None if self.is_open("cgroup") else self.cgroup

    def hints(self, handlers: Iterable[str]) -> tuple[str, ...]:
        """Return what points one way without answering it, of the cgroup version and of these handlers."""
        asked = {"cgroup", *(f"runtime:{handler}" for handler in handlers)}
        return tuple(
            f"{each.saw}: a hint at {each.value}"
            for each in self.evidence
            if each.about in asked and each.strength in ("probable", "hint") and self._unanswered(each.about)
        )

    def _unanswered(self, about: str) -> bool:
        if about.startswith("runtime:"):
            return self.runtime(about.removeprefix("runtime:")) is None
        return about == "cgroup" and self.cgroup is None

    def is_open(self, about: str) -> bool:
        """Return whether the cgroup version or a handler's runtime is unknown, or only probable."""
        return self._unanswered(about) or self.basis_of(about).confidence == "probable"

    def runtime(self, handler: str) -> Runtime | None:
        """What a handler runs, if that is known."""
        return dict(self.runtimes).get(handler)

    def basis_of(self, what: str) -> Basis:
        """How surely a field is known."""
        return self.basis.get(what, NOT_KNOWN)


class Setup(Struct, frozen=True, dict=True):
    """A state with nothing left open: what a prediction is made for."""

    cgroup: CgroupVersion
    driver: Driver
    kubelet_formula: Formula
    kubelet_version: KubeletVersion | None
    system_slice: int
    root: tuple[tuple[str, int], ...]
    runtimes: tuple[tuple[str, Runtime], ...]
    from_capacity: bool = False
    cfs_quota: bool = True
    period_us: int = PERIOD_US
    leftovers: tuple[Leftover, ...] = ()
    enforced: tuple[str, ...] = ()
    """The top-level cgroups whose value the kubelet writes: a reserve of 1 CPU looks like a default, and is none."""
    reserves_known: bool = False
    """Whether it is known which of the values at the root the kubelet writes: the others are systemd's."""
    services: str = SYSTEM_SLICE
    """The top-level cgroup in which the kubelet and the container runtime run."""
    crio: bool = False
    """The container runtime is CRI-O, which reads annotations of pods."""
    partitioned: bool = False
    """Its kubelet does not count pods for management partitions in the Burstable slice."""
    inner: bool = True
    """crun runs a container in a cgroup below its scope, where systemd is the driver."""
    rounded: bool = False
    """Its kubelet rounds a pod's quota up, though by its version it would not."""
    measured: bool = False
    """Where its kubelet shows a cgroup, that stands in place of what is predicted."""

    @property
    def rounds_pod_quota(self) -> bool:
        """Whether the kubelet writes a pod's quota rounded up to 10 ms with the systemd driver."""
        return self.rounded or rounds_pod_quota(self.kubelet_version)

    @property
    def top_level(self) -> tuple[tuple[str, int], ...]:
        """Name and value of what competes with kubepods."""
        return ((SYSTEM_SLICE, self.system_slice), *self.root)

    def runtime(self, handler: str) -> Runtime:
        """What a handler runs. Raises KeyError for one that the node's pods do not use."""
        for name, runtime in self.runtimes:
            if name == handler:
                return runtime
        raise KeyError(handler)

    @cached_property
    def _left_over(self) -> dict[tuple[str, str, str], Leftover]:
        return {(each.namespace, each.pod, each.container): each for each in self.leftovers}

    def left_over(self, namespace: str, pod: str, container: str) -> Leftover | None:
        """What a container carries from before an upgrade, if it does."""
        return self._left_over.get((namespace, pod, container)) if self.leftovers else None

    def creator(self, handler: str, left: Leftover | None) -> Runtime:
        """What created a handler's container: of one that is left over, the release of its runtime that has its formula."""
        runtime = self.runtime(handler)
        return of_name(runtime.name, left.formula) if left and left.formula != "neither" else runtime


def default_root_value(cgroup: CgroupVersion) -> int:
    """What a top-level cgroup has unless told otherwise: 1024 shares or weight 100."""
    return DEFAULT_SHARES if cgroup == "v1" else DEFAULT_WEIGHT


def reserve_in_unit(shares: int | None, cgroup: CgroupVersion) -> int:
    """What a cgroup has that a kubelet gives a reserve of so many shares; None for one that is left at its default."""
    if shares is None:
        return default_root_value(cgroup)
    return shares if cgroup == "v1" else linear(shares)


def unit_of(cgroup: CgroupVersion) -> Literal["shares", "weight"]:
    """What a cgroup competes with: shares on v1, weight on v2."""
    return "shares" if cgroup == "v1" else "weight"


def _top_level(state: State) -> list[tuple[str, str]]:
    """What evidence and rules call the top-level cgroups, and their names."""
    return [("system_slice", SYSTEM_SLICE), *((f"root:{name}", name) for name, _ in state.root)]


class Question(Struct, frozen=True):
    """Something of a node that is not settled. Its first answer is the most plausible one."""

    about: str
    """`cgroup`, `reserve`, `burstable`, `runtime` for all open handlers together, or what a target leaves open."""
    confidence: Confidence
    """probable: the first answer is a default; unknown: the order of the answers says little."""
    handlers: tuple[tuple[str, Confidence], ...] = ()
    """Of `runtime`: the open handlers. A pod has one of them, so all are answered at once."""

    def open_for(self, handler: str | None) -> Confidence | None:
        """Return how the question is open to a pod of this handler; None where it is not asked."""
        if self.about == "runtime" and handler is not None:
            return dict(self.handlers).get(handler)
        return self.confidence


class Answered(Struct, frozen=True):
    """A state with every open question answered one way."""

    when: str
    """The words that tell it apart; empty if nothing is open."""
    places: tuple[int, ...]
    """The place of each question's answer, among the answers to that question."""
    setup: Setup


def questions(state: State, handlers: Iterable[str]) -> tuple[Question, ...]:
    """Return what is open of a node whose pods use these `handlers`; what an unused one runs is no question."""
    found = []
    if state.is_open("cgroup"):
        found.append(Question("cgroup", _how_open(state, "cgroup")))
    if _reserves(state) and state.basis_of("reserve").confidence == "probable":
        found.append(Question("reserve", "probable"))
    if state.partitioned_pods and state.basis_of("burstable").confidence == "probable":
        found.append(Question("burstable", "probable"))
    open_ = tuple((each, _how_open(state, f"runtime:{each}")) for each in _open_handlers(state, handlers))
    if open_:
        found.append(Question("runtime", "probable" if "probable" in dict(open_).values() else "unknown", open_))
    return tuple(found)


def _how_open(state: State, about: str) -> Confidence:
    confidence = state.basis_of(about).confidence
    return confidence if confidence == "probable" else "unknown"


def _reserves(state: State) -> bool:
    """Return whether its platform's reserve is all that says what system.slice of a node has."""
    told = state.system_slice is not None or SYSTEM_SLICE in dict(state.reserved)
    return state.reserve is not None and not told and state.basis_of("reserves").confidence != "certain"


def _open_handlers(state: State, handlers: Iterable[str]) -> list[str]:
    return [handler for handler in sorted(set(handlers)) if state.is_open(f"runtime:{handler}")]


def setups(state: State, handlers: Iterable[str], reserve_shares: int | None = None) -> tuple[Answered, ...]:
    """Return every way in which the open questions of a state can be answered, in the order of their answers.

    `handlers` are those the node's pods use. `reserve_shares` is what its platform's reserve comes to. Open handlers are
    answered together: the first answer of each, and the second of each.
    """
    asked = questions(state, handlers)
    by_subject = {
        "cgroup": _versions(state),
        "reserve": [("reserve on system.slice", reserve_shares), ("no reserve on system.slice", None)],
        "burstable": _of_burstable(state),
        "runtime": _runtimes(state, _open_handlers(state, handlers)),
    }
    open_ = [list(enumerate(by_subject[question.about])) for question in asked]
    settled = reserve_shares if _reserves(state) else None
    found = []
    for choice in product(*open_):
        answer = {question.about: value for question, (_, (_, value)) in zip(asked, choice, strict=True)}
        version: CgroupVersion = answer.get("cgroup") or state.cgroup or "v2"
        runtimes = {**dict(state.runtimes), **answer.get("runtime", {})}
        setup = _setup(state, version, runtimes, answer.get("reserve", settled), answer.get("burstable"))
        words = ", ".join(words for _, (words, _) in choice)
        found.append(Answered(words, tuple(place for place, _ in choice), setup))
    return tuple(found)


_Answers = list[tuple[str, Any]]
"""The words and the value of each answer, the most plausible first."""


def _versions(state: State) -> _Answers:
    hinted = {each.value for each in state.evidence if each.about == "cgroup" and each.strength in ("probable", "hint")}
    first = state.cgroup or ("v1" if hinted == {"v1"} else "v2")
    return [(f"cgroup {version}", version) for version in sorted(VERSIONS, key=lambda version: version != first)]


def _of_burstable(state: State) -> _Answers:
    """Return what may be of the Burstable slice, what the platform does first."""
    answers: _Answers = [("management pods counted", "all"), ("management pods not counted", "partitioned")]
    return sorted(answers, key=lambda answer: answer[1] != dict(state.platform).get("burstable", "all"))


def _runtimes(state: State, open_: Sequence[str]) -> _Answers:
    ranked = {handler: _formulas(state, handler) for handler in open_}
    answers: _Answers = []
    for place in range(len(FORMULAS)):
        formulas = {handler: formulas[place] for handler, formulas in ranked.items()}
        if len(set(formulas.values())) == 1:
            words = f"{formulas[open_[0]]} runtime"
        else:
            words = ", ".join(f"{formula} runtime of {handler}" for handler, formula in formulas.items())
        answers.append((words, {handler: _running(state, handler, formula) for handler, formula in formulas.items()}))
    return answers


def _formulas(state: State, handler: str) -> list[Formula]:
    """Return both formulas, the one first that the handler's runtime is more likely to have."""
    about, known = f"runtime:{handler}", state.runtime(handler)
    first: str
    if known is not None:
        first = known.formula
    else:
        told = [each.value for each in state.evidence if each.about == about and each.strength in ("probable", "hint")]
        hinted = {"linear" if value == NOT_QUADRATIC else value for value in told}
        old = state.kubelet_version is not None and state.kubelet_version < QUADRATIC_FIRST_FROM
        first = hinted.pop() if len(hinted) == 1 else "linear" if old else "quadratic"
    return sorted(FORMULAS, key=lambda formula: formula != first)


def _running(state: State, handler: str, formula: Formula) -> Runtime:
    known = state.runtime(handler)
    return known if known and known.formula == formula else of_handler(handler, formula)


def _setup(
    state: State,
    version: CgroupVersion,
    runtimes: Mapping[str, Runtime],
    reserve_shares: int | None,
    burstable: str | None,
) -> Setup:
    default, platform = default_root_value(version), dict(state.platform)
    reserved = {name: reserve_in_unit(shares, version) for name, shares in state.reserved}
    shown = {name for about, name in _top_level(state) if state.basis_of(about).source.startswith(CONFIGZ)}
    shown |= {name for name, shares in state.reserved if shares is not None}
    if reserve_shares is not None:
        reserved[SYSTEM_SLICE] = reserve_in_unit(reserve_shares, version)
        shown.add(SYSTEM_SLICE)
    usual = reserved.pop(SYSTEM_SLICE, default)
    system = usual if state.system_slice is None else state.system_slice
    root = tuple(sorted({**reserved, **dict(state.root)}.items()))
    values = {SYSTEM_SLICE: system, **dict(root)}
    # Who says that a kubelet set them, and names nothing but defaults, means those: a reserve of 1 CPU looks like one.
    said = {name for about, name in _top_level(state) if state.basis_of(about).confidence == "stated"}
    set_ = {name for name, value in values.items() if value != default} or said
    return Setup(
        cgroup=version,
        driver=state.driver,
        kubelet_formula=state.kubelet_formula,
        kubelet_version=state.kubelet_version,
        system_slice=system,
        root=root,
        runtimes=tuple(sorted(runtimes.items())),
        from_capacity=state.from_capacity,
        cfs_quota=state.cfs_quota,
        period_us=state.period_us,
        leftovers=state.leftovers if version == "v2" else (),
        enforced=tuple(sorted(shown | set_ if state.set_by == "kubelet" else shown)),
        reserves_known=state.set_by is not None or state.basis_of("reserves").confidence == "certain",
        services=state.services,
        crio=state.crio,
        partitioned=(burstable or platform.get("burstable")) == "partitioned",
        inner=platform.get("inner") != "none",
        rounded=platform.get("pod-quota") == "rounded",
    )
