"""The pod that stands for those of its workload that do not run after the move."""

from msgspec import Struct

from kubectl_cgaudit.judge.audit import WorkloadAudit
from kubectl_cgaudit.judge.figures import Figures
from kubectl_cgaudit.judge.source import figures


class Stopping(Struct, frozen=True):
    """The pod, its node, a case in which it stops and its share of the node now; None where it cannot be said."""

    pod: str
    node: str
    when: str
    share: float | None
    against_system: float | None


def stopping(workload: WorkloadAudit) -> Stopping | None:
    """Return the first by name, of those that stop for sure if there are any; None where all run in every leading case.

    Only their numbers of now mean something.
    """
    if not workload.may_stop:
        return None
    sure = "stops" in workload.effects
    found = (pod for pod in figures(workload.pods) if ("stops" in pod.effects if sure else _case(pod) is not None))
    first = min(found, key=lambda pod: pod.name, default=None)
    return None if first is None else _stopping(first)


def _stopping(pod: Figures) -> Stopping:
    case = _case(pod) or 0
    share, against_system = pod.values[4 * case : 4 * case + 2]
    return Stopping(pod.name, pod.node, pod.form.whens[0][case], share, against_system)


def _case(pod: Figures) -> int | None:
    """Return the place of the first leading case in which it stops."""
    every = enumerate(zip(pod.form.stops[0], pod.form.leading, strict=True))
    return next((place for place, (stops, leads) in every if stops and leads), None)
