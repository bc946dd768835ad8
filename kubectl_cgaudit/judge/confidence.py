"""How sure a number is: as sure as the weakest thing it rests on."""

from collections.abc import Iterable

from kubectl_cgaudit.detect.measured import without_kubepods
from kubectl_cgaudit.detect.state import NAME, State
from kubectl_cgaudit.judge.audit import CONFIDENCES, Confidence
from kubectl_cgaudit.judge.compare import Comparison


def weakest(confidences: Iterable[Confidence]) -> Confidence:
    """The least sure of them; certain if there are none."""
    return max(confidences, key=CONFIDENCES.index, default="certain")


def of_handlers(comparison: Comparison, handlers: Iterable[str]) -> Confidence:
    """What a node's numbers rest on: its cgroup version, the kubelet's formula, and the runtimes of these handlers.

    Where the target speaks of runtimes by name, their names too. Without a kubepods tree the predicted one is not the node's,
    whatever else is known.
    """
    state = comparison.state
    if without_kubepods(state.evidence):
        return "unknown"
    found: list[Confidence] = [state.basis_of("cgroup").confidence if state.cgroup else "unknown"]
    found.append(state.basis_of("kubelet").confidence)
    for handler in handlers:
        known = state.runtime(handler) is not None
        found.append(state.basis_of(f"runtime:{handler}").confidence if known else "unknown")
        if comparison.by_name and f"{NAME}{handler}" in state.basis:
            found.append(state.basis_of(f"{NAME}{handler}").confidence)
    return weakest(found)


def taken_for_granted(state: State, used: str) -> list[str]:
    """What a failing start rests on and nobody said: that the runtime is runc, and the driver systemd."""
    runtime = state.runtime(used)
    taken = [] if runtime and runtime.version else ["the runtime is runc"]
    if state.basis_of("driver").confidence == "hint":
        taken.append("the cgroup driver is systemd")
    return taken
