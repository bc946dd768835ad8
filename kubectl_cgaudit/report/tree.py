"""`tree`: every cgroup of a node before and after, as a drawing or as data."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from kubectl_cgaudit.audit.confidence import confidence
from kubectl_cgaudit.audit.rounding import rounded
from kubectl_cgaudit.cgroups.quota import as_limit
from kubectl_cgaudit.compare.cgroups import Cgroup
from kubectl_cgaudit.compare.views import CaseView, NodeView
from kubectl_cgaudit.plain import Rows
from kubectl_cgaudit.report.screen import PLAIN, Column, Screen, grid, middle, wrap
from kubectl_cgaudit.text import percent

_Failing = Mapping[tuple[str | None, str | None], str]
"""Why pods may not run after the move, by namespace and name."""
_UNITS = {"v1": "SHARES", "v2": "WEIGHT"}


def data(nodes: Iterable[NodeView], pod: tuple[str, str] | None = None) -> Rows:
    """`{"cgroups": [...]}`, a row a cgroup; of a `pod`, its namespace and name, its own rows and those that are of no pod.

    `now`, `after` and `stops` are those of the most plausible case, with its `confidence`. On a node with open questions a row
    says `when` that is, and has the other cases in `cases`, the most plausible first. What a kubelet shows is `measured`.
    """
    rows = (row for node in nodes for row in _rows(node))
    return Rows(
        "cgroups",
        (row for row in rows if pod is None or row["pod"] is None or (row["namespace"], row["pod"]) == pod),
    )


def _rows(node: NodeView) -> Iterable[dict[str, Any]]:
    columns = [_pairs(case) for case in node.cases]
    failing = [node.failing(case) for case in node.cases]
    sure = {used: confidence(node.known, [used] if used else []) for used in (None, *node.known.handlers)}
    handlers = {(pod.namespace, pod.name): used for pod, used in node.placed}
    for same in zip(*columns, strict=True):
        _, now, then = same[0]
        cgroup = now or then
        assert cgroup is not None
        stopping = [_stops(case, cgroup, why) for case, why in zip(node.cases, failing, strict=True)]
        moments = [(_moment(before), _moment(after)) for _, before, after in same]
        used = handlers.get((cgroup.namespace or "", cgroup.pod or ""))
        row: dict[str, Any] = {
            "node": node.name,
            "level": cgroup.level,
            "namespace": cgroup.namespace,
            "pod": cgroup.pod,
            "container": cgroup.container,
            "cgroup": cgroup.path,
            "now": moments[0][0],
            "after": moments[0][1],
            "stops": stopping[0],
            "confidence": sure[used],
        }
        if len(moments) > 1:
            cases = [
                {"when": case.when, "rank": rank, "now": now, "after": after, "stops": stop}
                for rank, (case, (now, after), stop) in enumerate(
                    zip(node.cases, moments, stopping, strict=True), start=1
                )
            ]
            row |= {"when": cases[0]["when"], "cases": cases[1:]}
        yield row


_Pair = tuple[int, Cgroup | None, Cgroup | None]
"""Depth, and the cgroup before and after; None where it is not there."""


def _pairs(case: CaseView) -> Iterator[_Pair]:
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


def as_text(nodes: Iterable[NodeView], screen: Screen = PLAIN) -> Iterator[str]:
    """The trees, drawn in the screen's width, an empty line between two."""
    begin = ""
    for node in nodes:
        for lines in _draw(node, screen):
            yield screen.finished(begin + "".join(f"{line}\n" for line in lines))
            begin = "\n"


def _draw(node: NodeView, screen: Screen) -> Iterator[list[str]]:
    """The lines of each case."""
    of_case = confidence(node.known, node.known.handlers)
    for case in node.cases:
        when = f", if {case.when}" if case.when else ""
        sure = of_case if case.leads else "possible"
        lost = ": does not start after the move (CGA101)" if case.lost else ""
        now, then = case.setups
        version = _arrow(now.cgroup, then.cgroup)
        head = screen.shown(f"{node.name}: cgroup {version}{when} (how sure: {sure}){lost}")
        pairs, failing = list(_pairs(case)), node.failing(case)
        depths = [depth for depth, _, _ in pairs]
        rows = [
            (branches(depths, index) + screen.shown(_label(before or after)), *_row(case, before, after, failing))
            for index, (_, before, after) in enumerate(pairs)
        ]
        value = Column(_arrow(_UNITS[now.cgroup], _UNITS[then.cgroup]))
        heads = (Column("CGROUP", middle, 24), value, Column("CPU OF NODE"), Column("QUOTA"))
        lines = grid(heads, rows, screen)
        cut = ["Names are cut at …: -o json has them in full."] if any("…" in line for line in lines) else []
        said = (wrap(screen.shown(each), screen.width) for each in _said(node, failing))
        yield [wrap(head, screen.width), *lines, *cut, *said]


def _row(case: CaseView, before: Cgroup | None, after: Cgroup | None, failing: _Failing) -> tuple[str, str, str]:
    """What is not there now is a root's cgroup, and of one that is never reached nothing is to be said."""
    cgroup = before or after
    if cgroup is None or not _stops(case, cgroup, failing):
        return _cells(before, after)
    then = " -> stops" if before else ""
    return f"{_value(before)}{then}", f"{_share(before)}{then}", _quota(before)


def _cells(before: Cgroup | None, after: Cgroup | None) -> tuple[str, str, str]:
    now, then = _value(before), _value(after)
    # The same number of shares and of weight is not the same.
    same = before is not None and after is not None and before.version == after.version
    value = _arrow(now, then) if same else f"{now} -> {then}"
    return value, _arrow(_share(before), _share(after)), _arrow(_quota(before), _quota(after))


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


def _arrow(before: str, after: str) -> str:
    """`a -> b`, or `a` alone if both are the same."""
    return before if before == after else f"{before} -> {after}"


def _stops(case: CaseView, cgroup: Cgroup, failing: _Failing) -> bool:
    """Return whether there may be no such cgroup after the move: its node does not come back, or a container may not start."""
    return case.lost or (cgroup.namespace, cgroup.pod) in failing


def _said(node: NodeView, failing: _Failing) -> Iterator[str]:
    """Why pods may not run though their node comes back."""
    for pod, used in node.placed:
        run = failing.get((pod.namespace, pod.name))
        if run is not None:
            taken = " and ".join(node.taken(used))
            unless = f", if {taken}" if taken else ""
            yield f"{pod.namespace}/{pod.name} may not {run} after the move: a container may not start{unless} (CGA301)."


_Row = TypeVar("_Row")


def beside(
    before: Iterable[_Row], after: Iterable[_Row], root: Callable[[_Row], str | None]
) -> list[tuple[_Row | None, _Row | None]]:
    """Return both in one order: a target may name cgroups at the root that are not there now.

    `root` names what may be on one side only, and is None for all that both have.
    """
    both = list(before), list(after)
    first, second = ({name: each for each in side if (name := root(each)) is not None} for side in both)
    at_root = [(first.get(name), second.get(name)) for name in dict.fromkeys([*first, *second])]
    below = ([each for each in side if root(each) is None] for side in both)
    return [*at_root, *zip(*below, strict=True)]


def branches(depths: Sequence[int], index: int) -> str:
    """Return the lines that lead to a row: it is the last child if no later row is on its level before a higher one."""
    depth = depths[index]
    if depth == 0:
        return ""
    return _passing(depths, index, depth - 1) + ("├─ " if _goes_on(depths, index, depth) else "└─ ")


def below(depths: Sequence[int], index: int) -> str:
    """Return the lines beside what is said under a row, which lead on to its children and to later rows."""
    depth = depths[index]
    children = index + 1 < len(depths) and depths[index + 1] > depth
    return _passing(depths, index, depth) + ("│  " if children else "   ")


def _passing(depths: Sequence[int], index: int, depth: int) -> str:
    return "".join("│  " if _goes_on(depths, index, level) else "   " for level in range(1, depth + 1))


def _goes_on(depths: Sequence[int], index: int, level: int) -> bool:
    return next((other for other in depths[index + 1 :] if other <= level), 0) == level
