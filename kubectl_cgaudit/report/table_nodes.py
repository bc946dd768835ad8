"""The nodes' part of the table: a row for each outcome, nodes with the same outcomes together."""

from collections.abc import Iterable, Sequence
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import NodeAudit, NodeCase
from kubectl_cgaudit.judge.condition import condition
from kubectl_cgaudit.report import content
from kubectl_cgaudit.report.screen import WIDEST, Column, Screen, cut, grid, middle
from kubectl_cgaudit.report.words import arrow, counted, named, percent

_MOST_NODES = 15
_MOST_NAMES = 20
_KUBEPODS = Column("KUBEPODS : SYSTEM.SLICE")
_KUBELET = Column("KUBELET", cut, 20)
_RUNTIMES = Column("RUNTIMES")
_LAST = (Column("CPU FOR PODS"), Column("SURE", painted=True), Column("WHEN", cut, 20))


def narrow(nodes: Sequence[NodeAudit], screen: Screen) -> list[str]:
    """The first groups of nodes in the screen's width."""
    groups = _groups(nodes)
    extra = (_KUBEPODS, _KUBELET) if screen.width >= WIDEST else ()
    rows = [
        row for node, names in groups[:_MOST_NODES] for row in _rows(screen.shown(named(names, 1)), node, extra, screen)
    ]
    lines = _drawn(extra, rows, screen, fit=True)
    hidden = len(groups) - _MOST_NODES
    if hidden > 0:
        lines.append(f"and {counted(hidden, 'more group')} of nodes: see -o wide")
    elif any("…" in line for line in lines):
        lines.append("Cells are cut at …: see -o wide")
    return lines


def wide(nodes: Sequence[NodeAudit], screen: Screen) -> list[str]:
    """Every group of nodes with its runtimes, in lines as long as they get."""
    extra = (_KUBEPODS, _KUBELET, _RUNTIMES)
    rows = [
        row
        for node, names in _groups(nodes)
        for row in _rows(screen.shown(named(names, _MOST_NAMES)), node, extra, screen)
    ]
    return _drawn(extra, rows, screen, fit=False)


def system_slice(nodes: Sequence[NodeAudit]) -> str:
    """Which numbers rest on a weight of system.slice that nobody measured or said; not escaped."""
    taken = [node.name for node in nodes if node.known["system_slice"].confidence == "probable"]
    if not taken:
        return ""
    where = "every node" if len(taken) == len(nodes) else named(taken, 5)
    return f"system.slice: its default weight is taken, not known, on {where}; SURE does not count it."


def _groups(nodes: Sequence[NodeAudit]) -> list[tuple[NodeAudit, list[str]]]:
    equal: dict[bytes, tuple[NodeAudit, list[str]]] = {}
    for node in nodes:
        equal.setdefault(_face(node), (node, []))[1].append(node.name)
    return list(equal.values())


def _face(node: NodeAudit) -> bytes:
    """What equal nodes have in common, whatever pods they have; its digest, as what it is of would fill the memory."""
    cases = [(case.when, replace(case.before, qos={}), replace(case.after, qos={})) for case in node.cases]
    return sha256(msgspec.json.encode((cases, node.confidence))).digest()


def _drawn(extra: Sequence[Column], rows: Sequence[Sequence[str]], screen: Screen, *, fit: bool) -> list[str]:
    heads = [Column("NODE", middle, 8, whole=True), Column("CGROUP"), Column("PODS : SYSTEM"), *extra, *_LAST]
    if not any(row[-1] for row in rows):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    return grid(heads, rows, screen, fit=fit)


def _rows(name: str, node: NodeAudit, extra: Sequence[Column], screen: Screen) -> Iterable[list[str]]:
    """Cases with the same outcome share a row."""
    outcomes: dict[tuple[str, ...], list[str]] = {}
    for case in node.cases:
        outcomes.setdefault(_cells(case, extra, screen), []).append(case.when)
    every = [case.when for case in node.cases]
    for index, (cells, whens) in enumerate(outcomes.items()):
        first = index == 0
        when = screen.shown(condition(whens, every))
        yield [name if first else "", *cells, node.confidence if first else "", when]


def _cells(case: NodeCase, extra: Sequence[Column], screen: Screen) -> tuple[str, ...]:
    before, after = case.before, case.after
    runtimes = (f"{handler}: {arrow(was, after.runtimes[handler])}" for handler, was in before.runtimes.items())
    more = {
        _KUBEPODS: content.root_values(case),
        _KUBELET: screen.shown(arrow(before.kubelet, after.kubelet)),
        _RUNTIMES: screen.shown(", ".join(runtimes)),
    }
    return (
        f"{before.cgroup} -> {'stops' if case.stops else after.cgroup}",
        content.ratios(case),
        *(more[column] for column in extra),
        content.of_node(case, lambda moment: percent(moment.pods_share)),
    )
