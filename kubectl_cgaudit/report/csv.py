"""The audit for spreadsheets and scripts: a row a container, RFC 4180, nothing cut.

A cell of the cluster that a spreadsheet would take for a formula gets an apostrophe in front, and so does one that has an
apostrophe there: whoever takes one apostrophe off such cells has the text again.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from kubectl_cgaudit.judge.audit import Audit, ContainerAudit, PodAudit, WorkloadAudit
from kubectl_cgaudit.report.escape import visible
from kubectl_cgaudit.report.pieces import Pieces, whole
from kubectl_cgaudit.report.ranges import MEASURES, change, ends, measured, versions
from kubectl_cgaudit.report.screen import PLAIN, Screen

Cell = str | int | float | None

_OF_THE_CONTAINER = (
    "namespace",
    "workload_kind",
    "workload",
    "effects",
    "confidence",
    "pod",
    "node",
    "qos",
    "handler",
    "container",
    "role",
    "request_milli",
    "limit_milli",
    "cases",
)
_CHANGES = ("change_against_system", "change_in_pod", "pod_change_against_system")
COLUMNS = (
    *_OF_THE_CONTAINER,
    *(
        f"{time}_{column}"
        for time in ("before", "after")
        for column in ("version", *(f"{measure}_{end}" for measure in MEASURES for end in ("least", "greatest")))
    ),
    *(f"{change}_{end}" for change in _CHANGES for end in ("least", "greatest")),
)
_FORMULA = tuple("=+-@\t\r\n'＝＋－＠")


def pieces(audit: Audit, screen: Screen = PLAIN) -> Pieces:  # noqa: ARG001 - the header is the same for all
    """The header and each row, `\\r\\n` at the end of each. A terminal gets control characters as escapes, as elsewhere.

    `effects` and `confidence` are the workload's. Least and greatest are over the cases; a measure is empty where a case has
    none, and where some cases have shares and others a weight. `change_...` is after / before - 1 of the container,
    `pod_change_...` of its pod. A row without a container stands for a pod that has none, one without a pod for those of
    the workload that could not be predicted.
    """

    def each(workload: WorkloadAudit, _first: bool) -> str:
        return _lines([_cell(value, screen) for value in row] for row in _rows(workload))

    return Pieces([_lines([COLUMNS])], each, [])


def render(audit: Audit, screen: Screen = PLAIN) -> str:
    """The audit as CSV."""
    return whole(pieces(audit, screen), audit)


def _lines(rows: Iterable[Sequence[Cell]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue()


def _cell(value: Cell, screen: Screen) -> Cell:
    if not isinstance(value, str):
        return value
    text = visible(value) if screen.terminal else value
    return f"'{text}" if text.startswith(_FORMULA) else text


def _rows(workload: WorkloadAudit) -> Iterator[list[Cell]]:
    effects = ";".join(workload.effects)
    of_workload: list[Cell] = [workload.namespace, workload.kind, workload.name, effects, workload.confidence]
    for pod in workload.pods:
        of_pod = [*of_workload, pod.name, pod.node, pod.qos, pod.handler]
        for container in pod.containers:
            yield _filled([*of_pod, *_container(container, pod)])
        if not pod.containers:
            yield _filled(of_pod)
    if workload.unpredicted_pods:
        yield _filled(of_workload)


def _filled(cells: list[Cell]) -> list[Cell]:
    return cells + [None] * (len(COLUMNS) - len(cells))


def _container(container: ContainerAudit, pod: PodAudit) -> Iterator[Cell]:
    yield from (container.name, container.role, container.request_milli, container.limit_milli, len(container.cases))
    for moments in ([case.before for case in container.cases], [case.after for case in container.cases]):
        yield versions(moments)
        for _, extremes in measured(moments):
            yield from extremes
    yield from ends([change(case, lambda moment: moment.against_system) for case in container.cases])
    yield from ends([change(case, lambda moment: moment.in_pod) for case in container.cases])
    yield from ends([change(case, lambda moment: moment.against_system) for case in pod.cases])
