"""The audit for spreadsheets and scripts: a row a container, RFC 4180, nothing cut.

Characters that act on a terminal are written as escapes, as elsewhere: a file may be printed. A cell of the cluster that a
spreadsheet would take for a formula, or a CI runner for a command, gets an apostrophe in front, and so does one that has an
apostrophe there: whoever takes one apostrophe off such cells has the text again. Numbers are as JSON has them.
"""

import csv
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from kubectl_cgaudit.judge.audit import Audit, WorkloadAudit
from kubectl_cgaudit.judge.figures import Figures, Form
from kubectl_cgaudit.report.blanks import Kept, filled
from kubectl_cgaudit.report.escape import visible
from kubectl_cgaudit.report.pieces import Part, Pieces
from kubectl_cgaudit.report.ranges import CHANGES, MEASURES, OWN, Face, Number, faces_of, held, parts_of, rows, versions
from kubectl_cgaudit.report.words import otherwise

_OF_THE_CONTAINER = (
    "namespace",
    "workload_kind",
    "workload",
    "effects",
    "other_effects",
    "confidence",
    "pod",
    "node",
    "qos",
    "handler",
    "pod_effects",
    "container",
    "role",
    "request_milli",
    "limit_milli",
    "cases",
    "cases_stopping",
)
COLUMNS = (
    *_OF_THE_CONTAINER,
    *(
        f"{time}_{column}"
        for time in ("before", "after")
        for column in ("version", *(f"{measure}_{end}" for measure in MEASURES for end in ("least", "greatest")))
    ),
    *(f"{change}_{end}" for change in CHANGES for end in ("least", "greatest")),
)
_AFTER_WORKLOAD = 6
_AFTER_POD = 11
_END = "\r\n"
_OPEN = (None, None)
"""Least and greatest of what is the pod's own."""
_ACTS = tuple("=+-@'＝＋－＠:")


def pieces(audit: Audit) -> Pieces:  # noqa: ARG001 - the header is the same for all
    """The header and each row, `\\r\\n` at the end of each.

    `effects` and `confidence` are the workload's, `pod_effects` what holds of the pod. Least and greatest are over the leading
    cases, of after and of a change over those in which the pod runs, which are all but `cases_stopping`; a measure is empty
    where a case has none, and where some cases have shares and others a weight. `change_...` is after / before - 1 of the
    container, `pod_change_...` of its pod. A row without a container stands for a pod that has none, one without a pod for
    those of the workload that could not be predicted.
    """
    parts, texts = Kept(parts_of), Kept(_rows)

    def each(workload: WorkloadAudit, _first: bool) -> Part:
        effects = ";".join(workload.effects)
        others = ";".join(otherwise(workload))
        own = _cells((workload.namespace, workload.kind, workload.name, effects, others, workload.confidence))
        return Part(
            pod=lambda pod, _: _of_pod(pod, own, texts.of(pod.form), rows(pod, parts)),
            after=f"{own}{_empty_after(_AFTER_WORKLOAD)}" if workload.unpredicted_pods else "",
        )

    return Pieces([_LINE(COLUMNS)], each)


def _empty_after(cells: int) -> str:
    return "," * (len(COLUMNS) - cells) + _END


class _Echo:
    """A file that gives back what is written to it."""

    def write(self, text: str) -> str:
        return text


_LINE: Callable[[Iterable[str]], str] = csv.writer(_Echo(), lineterminator=_END).writerow


def _cells(values: Sequence[str]) -> str:
    """Two cells or more, without the end of a line."""
    return _LINE(map(_cell, values))[: -len(_END)]


def _cell(value: str) -> str:
    text = visible(value)
    return f"'{text}" if text.lstrip().startswith(_ACTS) else text


def _of_pod(pod: Figures, of_workload: str, texts: list[tuple[str, ...]], numbers: list[list[str]]) -> str:
    """The rows of a pod."""
    own = pod.name, pod.node, pod.qos, pod.handler, ";".join(pod.effects)
    begin = f"{of_workload},{_cells(own)}"
    if not texts:
        return f"{begin}{_empty_after(_AFTER_POD)}"
    return "".join([filled(begin, text, _without_null(row)) for text, row in zip(texts, numbers, strict=True)])


def _without_null(numbers: list[str]) -> list[str]:
    return ["" if each == "null" else each for each in numbers] if "null" in numbers else numbers


def _rows(form: Form) -> list[tuple[str, ...]]:
    """What the row of each container says after its pod, with blanks for what is the pod's own."""
    return [_row(face) for face in faces_of(form)]


@lru_cache(maxsize=2048)
def _row(face: Face) -> tuple[str, ...]:
    container, moments, stops = face
    cells: list[str | None] = [_cells((container.name, container.role))]
    cells += map(_plain, (container.request_milli, container.limit_milli, len(moments) // 2, sum(stops)))
    for after in (False, True):
        value, quota = held(face, after=after)
        cells += [versions(face, after=after), *map(_plain, value), *_OPEN * len(OWN), *map(_plain, quota)]
    cells += _OPEN * len(CHANGES)
    texts = [""]
    for cell in cells:
        if cell is None:
            texts[-1] += ","
            texts.append("")
        else:
            texts[-1] += f",{cell}"
    return (*texts[:-1], f"{texts[-1]}{_END}")


def _plain(value: Number) -> str:
    return "" if value is None else repr(value)
