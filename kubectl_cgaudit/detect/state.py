"""What a node is in one moment: as far as it is known, and with every open question answered one way."""

from collections.abc import Iterable
from functools import cached_property
from typing import Literal

from msgspec import Struct

from kubectl_cgaudit.cgroups.paths import Driver
from kubectl_cgaudit.cgroups.version import KubeletVersion
from kubectl_cgaudit.cgroups.weights import DEFAULT_SHARES, DEFAULT_WEIGHT, FORMULAS, Formula, linear
from kubectl_cgaudit.detect.evidence import CONFIGZ, Confidence, Evidence
from kubectl_cgaudit.detect.runtime import Runtime, of_handler, of_name

CgroupVersion = Literal["v1", "v2"]
VERSIONS: tuple[CgroupVersion, ...] = ("v1", "v2")
Setter = Literal["systemd", "kubelet"]
"""Who gave a top-level cgroup its value."""
SETTERS: tuple[Setter, ...] = ("systemd", "kubelet")
PERIOD_US = 100_000

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
    """While the cgroup version is open: the top-level cgroups that have a kubelet's reserve, in shares; None for the default."""

    def hints(self, handlers: Iterable[str]) -> tuple[str, ...]:
        """What points one way without settling it, of the cgroup version and of these handlers."""
        asked = {"cgroup", *(f"runtime:{handler}" for handler in handlers)}
        open_ = [each for each in self.evidence if each.confidence == "hint" and self.is_open(each.about)]
        return tuple(f"{each.saw}: probably {each.value}" for each in open_ if each.about in asked)

    def is_open(self, about: str) -> bool:
        """Whether the cgroup version or a handler's runtime is not settled."""
        if about.startswith("runtime:"):
            return self.runtime(about.removeprefix("runtime:")) is None
        return about == "cgroup" and self.cgroup is None

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


def setups(state: State, handlers: Iterable[str]) -> tuple[tuple[str, Setup], ...]:
    """Every way the open questions of a state can be answered, each with the words that tell it apart.

    `handlers` are those the node's pods use; what an unused handler runs is no question.
    """
    used = sorted(set(handlers) | {handler for handler, _ in state.runtimes})
    unknown = [handler for handler in used if state.runtime(handler) is None]
    versions: tuple[CgroupVersion, ...] = (state.cgroup,) if state.cgroup else VERSIONS
    formulas: tuple[Formula | None, ...] = FORMULAS if unknown else (None,)
    shown = {name for about, name in _top_level(state) if state.basis_of(about).source.startswith(CONFIGZ)}
    shown |= {name for name, shares in state.reserved if shares is not None}
    reserves_known = state.set_by is not None or state.basis_of("reserves").confidence == "certain"
    answers = []
    for version in versions:
        for formula in formulas:
            words = [] if state.cgroup else [f"cgroup {version}"]
            known = dict(state.runtimes)
            if formula:
                known.update({handler: of_handler(handler, formula) for handler in unknown})
                words.append(f"{formula} runtime")
            default = default_root_value(version)
            reserved = {name: reserve_in_unit(shares, version) for name, shares in state.reserved}
            usual = reserved.pop(SYSTEM_SLICE, default)
            system = usual if state.system_slice is None else state.system_slice
            root = tuple(sorted({**reserved, **dict(state.root)}.items()))
            values = {SYSTEM_SLICE: system, **dict(root)}
            # Who says that a kubelet set them, and names nothing but defaults, means those: a reserve of 1 CPU looks like one.
            said = {name for about, name in _top_level(state) if state.basis_of(about).confidence == "assumed"}
            set_ = {name for name, value in values.items() if value != default} or said
            enforced = tuple(sorted(shown | set_ if state.set_by == "kubelet" else shown))
            setup = Setup(
                cgroup=version,
                driver=state.driver,
                kubelet_formula=state.kubelet_formula,
                kubelet_version=state.kubelet_version,
                system_slice=system,
                root=root,
                runtimes=tuple(sorted(known.items())),
                from_capacity=state.from_capacity,
                cfs_quota=state.cfs_quota,
                period_us=state.period_us,
                leftovers=state.leftovers if version == "v2" else (),
                enforced=enforced,
                reserves_known=reserves_known,
            )
            answers.append((", ".join(words), setup))
    return tuple(answers)
