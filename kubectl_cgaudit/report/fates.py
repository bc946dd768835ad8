"""What of a node's tree is not there after the move: all of it, or the pods with a container that does not start."""

from collections.abc import Iterator, Mapping

from kubectl_cgaudit.judge import pods
from kubectl_cgaudit.judge.compare import Case, Comparison
from kubectl_cgaudit.judge.confidence import taken_for_granted
from kubectl_cgaudit.predict.tree import Cgroup

Fates = Mapping[tuple[str | None, str | None], bool]
"""Pods with a container that does not start, by namespace and name: whether that is sure."""


def of_case(comparison: Comparison, case: Case) -> Fates:
    """Those of a node; none where it does not come back at all."""
    found: dict[tuple[str | None, str | None], bool] = {}
    for pod, used in comparison.placed if not case.lost else ():
        fate = pods.stops(pod, used, case, surely=not taken_for_granted(comparison.state, used))
        if fate:
            found[pod.namespace, pod.name] = "stops" in fate
    return found


def stops(case: Case, cgroup: Cgroup, fates: Fates) -> bool | None:
    """Whether there is no such cgroup after the move; None if that cannot be said."""
    sure = fates.get((cgroup.namespace, cgroup.pod))
    return case.lost if sure is None else sure or None


def said(comparison: Comparison, case: Case, fates: Fates) -> Iterator[str]:
    """Why pods stop though their node comes back."""
    for pod, used in comparison.placed:
        sure = fates.get((pod.namespace, pod.name))
        if sure is None:
            continue
        run = "run as a whole" if pods.runs_in_part(pod, used, case) else "run"
        if sure:
            yield f"{pod.namespace}/{pod.name} does not {run} after the move: a container does not start (CGA301)."
        else:
            taken = " and ".join(taken_for_granted(comparison.state, used))
            yield f"{pod.namespace}/{pod.name} may not {run} after the move: a container does not start, if {taken} (CGA301)."
