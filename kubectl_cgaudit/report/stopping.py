"""The pod that stands for those of its workload that do not run after the move."""

from msgspec import Struct

from kubectl_cgaudit.judge.audit import WorkloadAudit
from kubectl_cgaudit.judge.source import figures


class Stopping(Struct, frozen=True):
    """The pod, its node and its share of it now; None where it cannot be said."""

    pod: str
    node: str
    share: float | None
    against_system: float | None


def stopping(workload: WorkloadAudit) -> Stopping | None:
    """The first by name; None where all of them run. Only their numbers of now mean something."""
    if "stops" not in workload.effects:
        return None
    first = min(
        (pod for pod in figures(workload.pods) if "stops" in pod.effects), key=lambda pod: pod.name, default=None
    )
    return None if first is None else Stopping(first.name, first.node, *first.values[:2])
