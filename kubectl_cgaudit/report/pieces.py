"""A report in pieces: one before the workloads, one for each, one after, so that no format needs all pods at once."""

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import Audit, WorkloadAudit

_LARGE = 1 << 16


class Pieces(Struct, frozen=True):
    """The pieces of a report on one audit."""

    head: Iterable[str]
    each: Callable[[WorkloadAudit, bool], str] | None = None
    """Of a workload with its pods made, and whether it is the first; None where a report shows no pods."""
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
    by_workload = [(place, pieces.each) for place, pieces in enumerate(listed) if pieces.each]
    if by_workload:
        for index, workload in enumerate(audit.workloads):
            made = replace(workload, pods=tuple(workload.pods))
            for place, each in by_workload:
                yield write(place, each(made, index == 0))
    for place, pieces in enumerate(listed):
        yield from (write(place, text) for text in pieces.tail)
