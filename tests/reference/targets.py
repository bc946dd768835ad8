"""What a migration makes of a node whose state is wholly known.

Part of the reference model: written from the documents alone, to be obviously right and not fast. It must never
import from kubectl_cgaudit.
"""

import re
from dataclasses import replace
from fractions import Fraction

from tests.reference.amounts import DEFAULT, LEAST, MOST, linear, linear_shares
from tests.reference.objects import Raw
from tests.reference.runtimes import Runtime, runtime_of, upgraded
from tests.reference.states import State, ruled

Target = str | list[Raw]
"""Words like `v2,kubelet=1.35`, or the rules of a file."""


def programs_of(target: Target) -> set[str]:
    """The runtimes that a target names."""
    words = [] if isinstance(target, list) else _words(target)
    return {word.partition("=")[0] for word in words if "=" in word} - {"kubelet"}


def after(state: State, target: Target, node: Raw, unnamed: str, set_by: str) -> State:
    """The state after the move. Handlers that do not say what they run are taken to run `unnamed`."""
    if isinstance(target, list):
        said = ruled(State(kubelet=state.kubelet), node, target)
        moved = replace(
            state,
            kubelet=said.kubelet,
            cgroup=said.cgroup or state.cgroup,
            driver=said.driver or state.driver,
            runtimes=state.runtimes | said.runtimes,
        )
        return replace(moved, root=_root_after(state, moved.cgroup, set_by) | said.root)
    moved = state
    for word in _words(target):
        moved = _step(moved, word, unnamed)
    return replace(moved, root=_root_after(state, moved.cgroup, set_by))


def _words(target: str) -> list[str]:
    return re.split("[,+]", target)


def _step(state: State, word: str, unnamed: str) -> State:
    name, _, version = word.partition("=")
    if name == "v2":
        return replace(state, cgroup="v2")
    if name == "kubelet":
        return replace(state, kubelet=version)
    if name == "runtime":
        return replace(state, runtimes={handler: upgraded(each) for handler, each in state.runtimes.items()})
    return replace(
        state, runtimes={handler: _replaced(each, name, version, unnamed) for handler, each in state.runtimes.items()}
    )


def _replaced(runtime: Runtime, program: str, version: str, unnamed: str) -> Runtime:
    """The runtime in another release, if it is the program of which the target speaks."""
    if (runtime.program or unnamed) != program:
        return runtime
    return replace(runtime_of(f"{program} {version}"), named=runtime.program != "" and runtime.named)


def _root_after(state: State, version: str, set_by: str) -> dict[str, int]:
    """The values at the root on the cgroup version of after the move: docs/limits.md, "At the root"."""
    if version == state.cgroup:
        return state.root
    # A reserve of 1 CPU looks like the default. Who says that a kubelet set values, all of them such, means those.
    reserve = set_by == "kubelet" and all(value == DEFAULT[state.cgroup] for value in state.root.values())
    return {
        name: DEFAULT[version]
        # What a platform has beside them nobody said.
        if value == DEFAULT[state.cgroup] and (not reserve or name in state.platform.root)
        else _carried(value, state.cgroup, version, set_by)
        for name, value in state.root.items()
    }


def _carried(value: int, old: str, new: str, set_by: str) -> int:
    if set_by == "kubelet":
        return linear(value) if new == "v2" else linear_shares(value)
    # systemd keeps the ratio to the default.
    return min(max(int(Fraction(value * DEFAULT[new], DEFAULT[old])), LEAST[new]), MOST[new])
