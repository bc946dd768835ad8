"""The cases of a node: every way in which its open questions may turn out.

Part of the reference model: written from the documents alone, to be obviously right and not fast. It must never
import from kubectl_cgaudit.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.reference.amounts import DEFAULT, linear, shares
from tests.reference.kubelet import counted_request, refuses_v1
from tests.reference.objects import Pod, Raw
from tests.reference.platforms import TARGET, reserve_of
from tests.reference.runtimes import Runtime, always, unsaid
from tests.reference.states import State, before
from tests.reference.targets import Target, after, programs_of


@dataclass(frozen=True)
class Case:
    """One of them, with what it assumes in the words of the audit."""

    when: str
    before: State
    after: State
    leading: bool
    """Whether what is open and has a default has that default: a kubelet that refuses v1 runs on v2."""

    @property
    def lost(self) -> bool:
        """Its kubelet refuses to start, and that of now does not: docs/findings/CGA101.md."""
        return _refuses(self.after) and not _refuses(self.before)


def cases(node: Raw, pods: list[Pod], rules: list[Raw], target: Target) -> list[Case]:
    """Those of a node with these active pods."""
    state = before(node, rules)
    used = {pod.handler for pod in pods}
    found = []
    for version_words, version in _versions(state):
        leading = not version_words or version == "v2" or not refuses_v1(state.kubelet)
        for default, kubelet_words, told in _by_platform(replace(state, cgroup=version), node, pods):
            for formula_words, runtimes in _runtimes(state, used):
                known = replace(told, driver=state.driver or "systemd", runtimes=runtimes)
                for program_words, program in _programs(known, used, target):
                    for setter_words, moved in _moves(known, target, node, program):
                        words = (*version_words, *kubelet_words, *formula_words, *program_words, *setter_words)
                        found.append(Case(", ".join(words), known, moved, leading and default))
    return found


def _by_platform(state: State, node: Raw, pods: list[Pod]) -> Iterator[tuple[bool, tuple[str, ...], State]]:
    """What the platform's kubelet and units do, by what of it is open: whether all is the default, the words, the state."""
    others = dict.fromkeys(state.platform.root, DEFAULT[state.cgroup]) | state.root
    for reserved, reserve_words, root in _reserves(replace(state, root=others), node):
        for default, words, counts in _counted(state, pods):
            yield reserved and default, (*reserve_words, *words), replace(state, root=root, counts_partitioned=counts)


def _reserves(state: State, node: Raw) -> list[tuple[bool, tuple[str, ...], dict[str, int]]]:
    """The values at the root; an enforced reserve decides system.slice where nobody says what it has."""
    if not state.platform.reserve or "system.slice" in state.root:
        return [(True, (), state.root)]
    of_shares = shares(reserve_of(node))
    value = of_shares if state.cgroup == "v1" else linear(of_shares)
    return [
        (True, ("reserve on system.slice",), state.root | {"system.slice": value}),
        (False, ("no reserve on system.slice",), state.root),
    ]


def _counted(state: State, pods: list[Pod]) -> list[tuple[bool, tuple[str, ...], bool]]:
    """Whether pods for management partitions count, which decides only where such a pod asks for CPU."""
    open_ = state.platform.counts_partitioned is None and any(
        TARGET in pod.annotations and pod.qos == "Burstable" and counted_request(pod, state.kubelet) for pod in pods
    )
    if not open_:
        return [(True, (), state.counts_partitioned)]
    return [(True, ("management pods counted",), True), (False, ("management pods not counted",), False)]


def _versions(state: State) -> list[tuple[tuple[str, ...], str]]:
    if state.cgroup:
        return [((), state.cgroup)]
    return [(("cgroup v1",), "v1"), (("cgroup v2",), "v2")]


def _runtimes(state: State, used: set[str]) -> Iterator[tuple[tuple[str, ...], dict[str, Runtime]]]:
    """All open handlers linear, and all quadratic; one that no pod uses is no question."""
    state = replace(state, runtimes=always() | state.runtimes)
    open_ = used - set(state.runtimes)
    if not open_:
        yield (), state.runtimes
        return
    for formula in ("linear", "quadratic"):
        answers = {handler: unsaid(handler) for handler in open_}
        answers = {handler: replace(each, formula=each.formula or formula) for handler, each in answers.items()}
        yield (f"{formula} runtime",), state.runtimes | answers


def _programs(state: State, used: set[str], target: Target) -> list[tuple[tuple[str, ...], str]]:
    """What handlers run that do not say it: runc, or beside crun= or youki= each of them: README, `--to`."""
    spoken = programs_of(target) | {"runc"}
    if len(spoken) == 1 or all(state.runtimes[handler].program for handler in used):
        return [((), "runc")]
    return [((f"unnamed runtime is {program}",), program) for program in sorted(spoken)]


def _moves(state: State, target: Target, node: Raw, program: str) -> list[tuple[tuple[str, ...], State]]:
    """After the move, by who set the values at the root, if that is open and decides: docs/findings/CGA102.md."""
    if state.set_by or all(value == DEFAULT[state.cgroup] for value in state.root.values()):
        return [((), after(state, target, node, program, state.set_by or "systemd"))]
    by_systemd, by_kubelet = (after(state, target, node, program, setter) for setter in ("systemd", "kubelet"))
    names = [name for name, value in by_systemd.root.items() if by_kubelet.root[name] != value]
    if not names:
        return [((), by_systemd)]
    listed = " and ".join(sorted(names, key=lambda name: (name != "system.slice", name)))
    return [((f"systemd set {listed}",), by_systemd), ((f"a kubelet set {listed}",), by_kubelet)]


def _refuses(state: State) -> bool:
    return state.cgroup == "v1" and refuses_v1(state.kubelet)
