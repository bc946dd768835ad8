"""A report in pieces: one before the workloads, those of each workload and its pods, one after.

So no format needs all pods at once, and what several formats write of a pod is worked out once.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from msgspec import Struct

from kubectl_cgaudit.collect.progress import Progress, silent
from kubectl_cgaudit.judge.audit import Audit, WorkloadAudit
from kubectl_cgaudit.judge.figures import Figures
from kubectl_cgaudit.judge.source import figures

_LARGE = 1 << 16
_SOME = 16
"""Pods whose text is written at once."""


class Part(Struct, frozen=True):
    """What a report says of one workload."""

    pod: Callable[[Figures, bool], str]
    """Of each pod, and whether it is the first."""
    before: str = ""
    after: str = ""


class Pieces(Struct, frozen=True):
    """The pieces of a report on one audit."""

    head: Iterable[str]
    each: Callable[[WorkloadAudit, bool], Part] | None = None
    """Of a workload, and whether it is the first; None where a report shows no pods."""
    tail: Iterable[str] = ()


def together(texts: Iterable[str]) -> Iterator[str]:
    """The texts in larger pieces: one write for each would cost more than its making."""
    kept: list[str] = []
    size = 0
    for text in texts:
        kept.append(text)
        size += len(text)
        if size >= _LARGE:
            yield "".join(kept)
            kept.clear()
            size = 0
    yield "".join(kept)


def chunks(
    reports: Iterable[Pieces], audit: Audit, write: Callable[[int, str], str], progress: Progress = silent
) -> Iterator[str]:
    """Write the pieces of several reports in one pass over the workloads and their pods.

    `write` gets the place of a report and its next piece.
    """
    listed = list(reports)
    for place, pieces in enumerate(listed):
        yield from (write(place, text) for text in pieces.head)
    by_workload = [(place, pieces.each) for place, pieces in enumerate(listed) if pieces.each]
    if by_workload:
        for index, workload in enumerate(audit.workloads):
            progress("workloads", index, len(audit.workloads))
            parts = [(place, each(workload, index == 0)) for place, each in by_workload]
            yield from _workload(workload, parts, write)
    for place, pieces in enumerate(listed):
        yield from (write(place, text) for text in pieces.tail)


def _workload(
    workload: WorkloadAudit, parts: list[tuple[int, Part]], write: Callable[[int, str], str]
) -> Iterator[str]:
    for place, part in parts:
        yield write(place, part.before)
    pods, first = figures(workload.pods), True
    while some := list(islice(pods, _SOME)):
        for place, part in parts:
            yield write(place, "".join([part.pod(pod, first and pod is some[0]) for pod in some]))
        first = False
    for place, part in parts:
        yield write(place, part.after)
