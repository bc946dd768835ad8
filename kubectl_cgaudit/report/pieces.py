"""A report in pieces: one before the workloads, one for each, one after, so that no format needs all pods at once."""

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import Audit, WorkloadAudit


class Pieces(Struct, frozen=True):
    """The pieces of a report on one audit."""

    head: Iterable[str]
    each: Callable[[WorkloadAudit, bool], str]
    """Of a workload with its pods made, and whether it is the first."""
    tail: Iterable[str]


def whole(pieces: Pieces, audit: Audit) -> str:
    """All of a report."""
    return "".join(chunks([pieces], audit, lambda _, text: text))


def chunks(reports: Iterable[Pieces], audit: Audit, write: Callable[[int, str], str]) -> Iterator[str]:
    """Write the pieces of several reports in one pass over the workloads, whose pods are made once for all of them.

    `write` gets the place of a report and its next piece.
    """
    listed = list(reports)
    for place, pieces in enumerate(listed):
        yield from (write(place, text) for text in pieces.head)
    if listed:
        for index, workload in enumerate(audit.workloads):
            made = replace(workload, pods=tuple(workload.pods))
            for place, pieces in enumerate(listed):
                yield write(place, pieces.each(made, index == 0))
    for place, pieces in enumerate(listed):
        yield from (write(place, text) for text in pieces.tail)
