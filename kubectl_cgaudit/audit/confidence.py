"""How sure a number or a finding is: as sure as the weakest thing it rests on."""

from collections.abc import Iterable

from kubectl_cgaudit.audit.cases import NodeCases
from kubectl_cgaudit.audit.model import CONFIDENCES, Certainty, Confidence
from kubectl_cgaudit.cgroups import crio
from kubectl_cgaudit.collect.model import Pod
from kubectl_cgaudit.detect.measured import without_kubepods
from kubectl_cgaudit.detect.state import NAME, State

_OF_STATE = ("cgroup", "reserve", "burstable")


def weakest(confidences: Iterable[Confidence]) -> Confidence:
    """Return the least sure of them; certain if there are none."""
    return max(confidences, key=CONFIDENCES.index, default="certain")


def confidence(node: NodeCases, handlers: Iterable[str]) -> Confidence:
    """Return what a node's numbers rest on: its cgroup version, the kubelet's formula, and the runtimes of these handlers.

    Where the target speaks of runtimes by name, their names too. Without a kubepods tree the predicted one is not the node's,
    whatever else is known.
    """
    handlers = list(handlers)
    open_ = []
    for question in node.questions:
        if question.about == "runtime":
            open_ += [question.open_for(handler) for handler in handlers]
        elif question.about in _OF_STATE:
            open_.append(question.confidence)
    return weakest([_of_settled(node, handlers), *(each for each in open_ if each)])


def of_pod(node: NodeCases, pod: Pod, used: str) -> Confidence:
    """Return what a pod's numbers rest on: those of its handler, and whether CRI-O heeds its annotations."""
    found = confidence(node, [used])
    return weakest([found, "probable"]) if rests_on_annotations(node, pod) else found


def rests_on_annotations(node: NodeCases, pod: Pod) -> bool:
    """Return whether annotations decide a pod's numbers, and nothing shows that CRI-O heeds them."""
    asked = crio.asked(pod)
    decide = bool(asked.shares or asked.weights or asked.unlimited)
    return decide and node.state.crio and not node.cases[0].before.measured


def _of_settled(node: NodeCases, handlers: Iterable[str]) -> Confidence:
    """Return the weakest confidence of what is known of a node and is not open."""
    state = node.state
    if without_kubepods(state.evidence):
        return "unknown"
    asked = ["cgroup", "kubelet"]
    for handler in handlers:
        asked.append(f"runtime:{handler}")
        if node.by_name and f"{NAME}{handler}" in state.basis:
            asked.append(f"{NAME}{handler}")
    return weakest(state.basis_of(about).confidence for about in asked if not state.is_open(about))


def settled(node: NodeCases, handler: str | None) -> Certainty:
    """Return how sure a finding is that holds in every case, of a pod of this handler or of the node."""
    found = _of_settled(node, () if handler is None else (handler,))
    return "possible" if found == "unknown" else found


def taken_for_granted(state: State, used: str) -> list[str]:
    """Return what a failing start rests on and nobody said: that the runtime is runc, and the driver systemd."""
    runtime = state.runtime(used)
    taken = [] if runtime and runtime.version else ["the runtime is runc"]
    if state.basis_of("driver").confidence == "probable":
        taken.append("the cgroup driver is systemd")
    return taken
