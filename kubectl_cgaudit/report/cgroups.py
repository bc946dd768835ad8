"""`tree`: every cgroup of a node before and after, as a drawing or as data."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kubectl_cgaudit.judge.compare import Case, Comparison
from kubectl_cgaudit.judge.confidence import of_handlers
from kubectl_cgaudit.judge.rounding import rounded
from kubectl_cgaudit.plain import Rows
from kubectl_cgaudit.predict.quota import as_limit
from kubectl_cgaudit.predict.tree import Cgroup
from kubectl_cgaudit.report import fates
from kubectl_cgaudit.report.beside import beside
from kubectl_cgaudit.report.drawing import branches
from kubectl_cgaudit.report.fates import Fates
from kubectl_cgaudit.report.screen import PLAIN, Column, Screen, grid, middle, wrap
from kubectl_cgaudit.report.words import arrow, percent

_UNITS = {"v1": "SHARES", "v2": "WEIGHT"}


def data(comparisons: Sequence[Comparison], pod: tuple[str, str] | None = None) -> Rows:
    """`{"cgroups": [...]}`, a row a cgroup; of a `pod`, its namespace and name, its own rows and those that are of no pod.

    `now`, `after` and `stops` are those of the most plausible case, with its `confidence`. On a node with open questions a row
    says `when` that is, and has the other cases in `cases`, the most plausible first. What a kubelet shows is `measured`.
    """
    rows = (row for comparison in comparisons for row in _rows(comparison))
    return Rows(
        "cgroups",
        (row for row in rows if pod is None or row["pod"] is None or (row["namespace"], row["pod"]) == pod),
    )


def _rows(comparison: Comparison) -> Iterable[dict[str, Any]]:
    columns = [_pairs(case) for case in comparison.cases]
    of_cases = [fates.of_case(comparison, case) for case in comparison.cases]
    confidence = {used: of_handlers(comparison, [used] if used else []) for used in (None, *comparison.handlers)}
    handlers = {(pod.namespace, pod.name): used for pod, used in comparison.placed}
    for same in zip(*columns, strict=True):
        _, now, then = same[0]
        cgroup = now or then
        assert cgroup is not None
        stopping = [fates.stops(case, cgroup, fate) for case, fate in zip(comparison.cases, of_cases, strict=True)]
        moments = [(_moment(before), _moment(after)) for _, before, after in same]
        used = handlers.get((cgroup.namespace or "", cgroup.pod or ""))
        row: dict[str, Any] = {
            "node": comparison.node.name,
            "level": cgroup.level,
            "namespace": cgroup.namespace,
            "pod": cgroup.pod,
            "container": cgroup.container,
            "cgroup": cgroup.path,
            "now": moments[0][0],
            "after": moments[0][1],
            "stops": stopping[0],
            "confidence": confidence[used],
        }
        if len(moments) > 1:
            cases = [
                {"when": case.when, "rank": rank, "now": now, "after": after, "stops": stop}
                for rank, (case, (now, after), stop) in enumerate(
                    zip(comparison.cases, moments, stopping, strict=True), start=1
                )
            ]
            row |= {"when": cases[0]["when"], "cases": cases[1:]}
        yield row


_Pair = tuple[int, Cgroup | None, Cgroup | None]
"""Depth, and the cgroup before and after; None where it is not there."""


def _pairs(case: Case) -> Iterator[_Pair]:
    rows = beside(case.before.rows(), case.after.rows(), lambda row: row[1].path if row[1].level == "root" else None)
    for now, then in rows:
        either = now or then
        assert either is not None  # What neither has is in no row.
        yield either[0], now and now[1], then and then[1]


def _moment(cgroup: Cgroup | None) -> dict[str, Any] | None:
    if cgroup is None:
        return None
    moment: dict[str, Any] = {
        "version": cgroup.version,
        "shares": cgroup.shares,
        "weight": cgroup.weight,
        "quota_us": cgroup.quota_us,
        "period_us": cgroup.period_us,
        "share": rounded(cgroup.share),
    }
    return moment | {"measured": True} if cgroup.measured else moment


def as_text(comparisons: Sequence[Comparison], screen: Screen = PLAIN) -> Iterator[str]:
    """The trees, drawn in the screen's width, an empty line between two."""
    begin = ""
    for comparison in comparisons:
        for lines in _draw(comparison, screen):
            yield screen.finished(begin + "".join(f"{line}\n" for line in lines))
            begin = "\n"


def _draw(comparison: Comparison, screen: Screen) -> Iterator[list[str]]:
    """The lines of each case."""
    of_case = of_handlers(comparison, comparison.handlers)
    for case, leads in zip(comparison.cases, comparison.leading[None], strict=True):
        when = f", if {case.when}" if case.when else ""
        sure = of_case if leads else "possible"
        lost = ": does not start after the move (CGA101)" if case.lost else ""
        version = arrow(case.now.cgroup, case.then.cgroup)
        head = screen.shown(f"{comparison.node.name}: cgroup {version}{when} (how sure: {sure}){lost}")
        pairs, fate = list(_pairs(case)), fates.of_case(comparison, case)
        depths = [depth for depth, _, _ in pairs]
        rows = [
            (branches(depths, index) + screen.shown(_label(before or after)), *_row(case, before, after, fate))
            for index, (_, before, after) in enumerate(pairs)
        ]
        value = Column(arrow(_UNITS[case.now.cgroup], _UNITS[case.then.cgroup]))
        heads = (Column("CGROUP", middle, 24), value, Column("CPU OF NODE"), Column("QUOTA"))
        lines = grid(heads, rows, screen)
        cut = ["Names are cut at …: -o json has them in full."] if any("…" in line for line in lines) else []
        said = (wrap(screen.shown(each), screen.width) for each in fates.said(comparison, case, fate))
        yield [wrap(head, screen.width), *lines, *cut, *said]


def _row(case: Case, before: Cgroup | None, after: Cgroup | None, fate: Fates) -> tuple[str, str, str]:
    """What is not there now is a root's cgroup, and of one that is never reached nothing is to be said."""
    cgroup = before or after
    if cgroup is None or not fates.stops(case, cgroup, fate):
        return _cells(before, after)
    then = " -> stops" if before else ""
    return f"{_value(before)}{then}", f"{_share(before)}{then}", _quota(before)


def _cells(before: Cgroup | None, after: Cgroup | None) -> tuple[str, str, str]:
    now, then = _value(before), _value(after)
    # The same number of shares and of weight is not the same.
    same = before is not None and after is not None and before.version == after.version
    value = arrow(now, then) if same else f"{now} -> {then}"
    return value, arrow(_share(before), _share(after)), arrow(_quota(before), _quota(after))


def _share(cgroup: Cgroup | None) -> str:
    return "-" if cgroup is None or cgroup.share is None else percent(cgroup.share)


def _label(cgroup: Cgroup | None) -> str:
    if cgroup is None:
        return ""
    if cgroup.container:
        return cgroup.container
    if cgroup.pod:
        return f"{cgroup.namespace}/{cgroup.pod}"
    return (cgroup.path or "").rsplit("/", 1)[1]


def _value(cgroup: Cgroup | None) -> str:
    if cgroup is None:
        return "not there"
    return "not set" if cgroup.value is None else str(cgroup.value)


def _quota(cgroup: Cgroup | None) -> str:
    return "" if cgroup is None or cgroup.quota_us is None else as_limit(cgroup.quota_us, cgroup.period_us)
