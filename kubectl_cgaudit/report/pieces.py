"""A report in pieces: one before the workloads, those of each workload and its pods, one after.

So no format needs all pods at once, and what several formats write of a pod is worked out once.
"""

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from kubectl_cgaudit.judge.audit import Audit, WorkloadAudit
from kubectl_cgaudit.judge.figures import Figures
from kubectl_cgaudit.judge.source import figures


class Part(Struct, frozen=True):
    """What a report says of one workload."""

    before: str = ""
    pod: Callable[[Figures, bool], str] | None = None
    """Of each pod, and whether it is the first; None for a report without pods."""
    after: str = ""


class Pieces(Struct, frozen=True):
    """The pieces of a report on one audit."""

    head: Iterable[str]
    each: Callable[[WorkloadAudit, bool], Part]
    """Of a workload, and whether it is the first."""
    tail: Iterable[str] = ()


def whole(pieces: Pieces, audit: Audit) -> str:
    """All of a report."""
    return "".join(chunks([pieces], audit, lambda _, text: text))


def chunks(reports: Iterable[Pieces], audit: Audit, write: Callable[[int, str], str]) -> Iterator[str]:
    """Write the pieces of several reports in one pass over the workloads and their pods.

    `write` gets the place of a report and its next piece.
    """
    listed = list(reports)
    for place, pieces in enumerate(listed):
        yield from (write(place, text) for text in pieces.head)
    if listed:
        for index, workload in enumerate(audit.workloads):
            yield from _workload(workload, [pieces.each(workload, index == 0) for pieces in listed], write)
    for place, pieces in enumerate(listed):
        yield from (write(place, text) for text in pieces.tail)


def _workload(workload: WorkloadAudit, parts: list[Part], write: Callable[[int, str], str]) -> Iterator[str]:
    for place, part in enumerate(parts):
        yield write(place, part.before)
    of_pods = [(place, part.pod) for place, part in enumerate(parts) if part.pod]
    if of_pods:
        for index, pod in enumerate(figures(workload.pods)):
            for place, text in of_pods:
                yield write(place, text(pod, index == 0))
    for place, part in enumerate(parts):
        yield write(place, part.after)
