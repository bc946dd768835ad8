"""What of a node's tree is not there after the move, or may not be: all of it, or pods with a container that may not start."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from kubectl_cgaudit.judge import pods
from kubectl_cgaudit.judge.compare import Case, Comparison
from kubectl_cgaudit.judge.confidence import taken_for_granted
from kubectl_cgaudit.predict.tree import Cgroup

Fates = AbstractSet[tuple[str | None, str | None]]
"""Pods with a container that may not start, by namespace and name."""


def of_case(comparison: Comparison, case: Case) -> Fates:
    """Return those of a node; none where it does not come back at all."""
    placed = comparison.placed if not case.lost else ()
    return {(pod.namespace, pod.name) for pod, used in placed if pods.fate(pod, used, case)}


def stops(case: Case, cgroup: Cgroup, fates: Fates) -> bool | None:
    """Return whether there is no such cgroup after the move; None if there may be none."""
    return None if (cgroup.namespace, cgroup.pod) in fates else case.lost


def said(comparison: Comparison, case: Case, fates: Fates) -> Iterator[str]:
    """Yield why pods may stop though their node comes back."""
    for pod, used in comparison.placed:
        if (pod.namespace, pod.name) not in fates:
            continue
        run = "run as a whole" if pods.runs_in_part(pod, used, case) else "run"
        taken = " and ".join(taken_for_granted(comparison.state, used))
        where = f", if {taken}" if taken else ""
        yield f"{pod.namespace}/{pod.name} may not {run} after the move: a container may not start{where} (CGA301)."
