"""`nodes`: what each node runs, how surely that is known, and what would settle the rest."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from kubectl_cgaudit.audit.model import Change, EvidenceRecord, Known, NodeRecord, Question
from kubectl_cgaudit.report.screen import PLAIN, Column, Screen, columns, cut, grid, wrap
from kubectl_cgaudit.text import counted, named, percent, these

_NAMES = 3
_GROUPS = 10
_COLUMNS = (
    Column("NODES"),
    Column("CGROUP", painted=True),
    Column("HANDLER"),
    Column("RUNTIME", painted=True),
    Column("KUBELET"),
    Column("SYSTEM.SLICE"),
    Column("SURE", painted=True),
)
_QUESTIONS = {
    "cgroup": "cgroup version",
    "reserve": "reserve on system.slice",
    "burstable": "pods counted in the Burstable slice",
    "set_by": "who set the values at the root",
}
_EVENTS = (
    "Events were not read: kubelets on cgroup v1 warn with reason CgroupV1 for about an hour after they start. kubectl get "
    "events -A -o json > events.json, and add -f events.json; live, list on events is enough."
)
_MEASURE = "--kubelet"
_OF_NODE = 4
"""The columns before have a row for each handler."""
_WIDEST = 34


def data(nodes: Sequence[NodeRecord], settle: Sequence[Question]) -> dict[str, Any]:
    """Return what is known of every node, with its evidence, and what would answer what is open."""
    rows = [
        {
            "name": node.name,
            "confidence": node.confidence,
            "kubeletVersion": node.kubelet_version,
            "known": node.known,
            "hints": node.hints,
            "contradictions": node.contradictions,
            "problems": node.problems,
            "evidence": node.evidence,
        }
        for node in nodes
    ]
    return {"nodes": rows, "settle": settle}


def as_text(
    nodes: Sequence[NodeRecord],
    settle: Sequence[Question],
    *,
    evidence: bool,
    events_read: bool,
    others: Sequence[str] = (),
    screen: Screen = PLAIN,
) -> str:
    """A row a node, or a group of nodes of which the same is known; then what would settle the unknowns.

    `others` are nodes that have no kubepods tree of their own to speak of, and why.

    Prose is wrapped to the screen; the rows are as long as they get, because what is known should not be cut. On a terminal
    that is narrower they are two tables.
    """

    def wrapped(text: str, first: str = "", rest: str = "  ") -> str:
        return wrap(screen.shown(text), screen.width, first, rest)

    groups: dict[bytes, list[NodeRecord]] = {}
    for node in nodes:
        groups.setdefault(_face(node), []).append(node)
    rows = [row for members in groups.values() for row in _rows(members, screen)]
    lines = [wrapped(_answer(nodes, settle), "", ""), "", *_drawn(rows, screen)] if nodes else _drawn(rows, screen)
    if any(len(members) > _NAMES for members in groups.values()):
        lines += ["", wrapped("Of like nodes three are named: -o json names all.")]
    if others:
        lines += ["", wrapped(f"Not in the table: {named(others, _NAMES)}.")]
    contradictions = [f"{node.name}: {words}" for node in nodes for words in node.contradictions]
    lines += _section("CONTRADICTIONS", [wrapped(text) for text in contradictions])
    silent = [f"{node.name}: {words}" for node in nodes for words in node.problems]
    lines += _section("KUBELETS THAT DID NOT ANSWER", [wrapped(text) for text in silent])
    if evidence:
        for node in nodes:
            pieces = [wrapped(text, "  ", " " * 11) for text in _evidence(node)]
            lines += _section(wrapped(f"EVIDENCE OF {node.name}"), pieces)
    lines += _section(
        "TO SETTLE WHAT IS OPEN, WHAT DECIDES MOST FIRST",
        [line for number, each in enumerate(settle[:_GROUPS], start=1) for line in _step(number, each, wrapped)],
    )
    if len(settle) > _GROUPS:
        lines.append(f"{counted(len(settle) - _GROUPS, 'more question')}: -o json has all.")
    lines += ["", wrapped(measuring)] if (measuring := _measuring(settle)) else []
    if not events_read and any(each.about == "cgroup" for each in settle):
        lines += ["", wrapped(_EVENTS)]
    return screen.finished("\n".join(lines) + "\n")


def _answer(nodes: Sequence[NodeRecord], settle: Sequence[Question]) -> str:
    """Return how many nodes are known, and what to look at first."""
    unknown = sum(node.confidence == "unknown" for node in nodes)
    probable = sum(node.confidence == "probable" for node in nodes)
    known = len(nodes) - unknown - probable
    parts = [
        f"{known} of {counted(len(nodes), 'node')} known",
        f"{probable} on defaults that nobody checked" if probable else "",
        f"{unknown} partly unknown" if unknown else "",
    ]
    first = next((each for each in settle if each.commands), None)
    look = f" Look first: `{first.commands[0].command}` on {named(first.nodes, _NAMES)}." if first else ""
    return f"{', '.join(filter(None, parts))}.{look}"


def _drawn(rows: Sequence[tuple[str, ...]], screen: Screen) -> list[str]:
    lines = grid(_COLUMNS, rows, screen, fit=False)
    if not screen.terminal or max(map(columns, lines)) <= screen.width:
        return lines
    handlers = grid(_COLUMNS[:_OF_NODE], [row[:_OF_NODE] for row in rows], screen, fit=False)
    whole = [(row[0], *row[_OF_NODE:]) for row in rows if row[0]]
    return [*handlers, "", *grid((_COLUMNS[0], *_COLUMNS[_OF_NODE:]), whole, screen, fit=False)]


def _face(node: NodeRecord) -> bytes:
    """What equal nodes have in common: where something is open also their systems, as these may run different things."""
    told = {what: (known.value, known.confidence) for what, known in node.known.items()}
    open_ = any(known.value is None for known in node.known.values())
    systems = (node.os_image, node.container_runtime, node.hints) if open_ else ()
    return msgspec.json.encode((told, node.kubelet_version, node.confidence, systems))


def _rows(members: Sequence[NodeRecord], screen: Screen) -> Iterable[tuple[str, ...]]:
    """One line for each handler; the rest of the row stands in the first."""
    node = members[0]

    def said(known: Known) -> str:
        return f"{cut(screen.shown(known.value), _WIDEST)} ({known.confidence})" if known.value else "unknown"

    names = screen.shown(named((each.name for each in members), _NAMES))
    kubelet = f"{screen.shown(node.kubelet_version)} {said(node.known['kubelet'])}"
    first = (names, said(node.known["cgroup"]))
    last = (kubelet, said(node.known["system_slice"]), node.confidence)
    handlers = [
        (screen.shown(what.removeprefix("runtime:")), said(known))
        for what, known in node.known.items()
        if what.startswith("runtime:")
    ]
    for index, handler in enumerate(handlers or [("-", "no pod")]):
        yield (*first, *handler, *last) if index == 0 else ("", "", *handler, "", "", "")


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", title, *lines] if lines else []


def _evidence(node: NodeRecord) -> list[str]:
    pieces = [_piece(piece) for piece in node.evidence]
    said = ((what, known) for what, known in node.known.items() if known.confidence == "stated")
    pieces += [f"{known.confidence:8} {what} is {known.value}: {known.source}" for what, known in said]
    return pieces or ["none beyond the defaults"]


def _piece(piece: EvidenceRecord) -> str:
    unless = f" (unless: {piece.override})" if piece.override else ""
    return f"{piece.strength:8} {piece.about} is {piece.value}: {piece.source}: {piece.saw}{unless}"


def _step(number: int, each: Question, wrapped: Callable[..., str]) -> Iterator[str]:
    """Yield a question, what hangs on it, the ways to answer it by cost, and the line that says the answer."""
    what = _QUESTIONS.get(each.about) or f"runtime of handler {each.about.removeprefix('runtime:')}"
    yield wrapped(
        f"{what} of {these('node', each.nodes)} ({each.confidence}){_loss(each.decides)}", f"{number}. ", "   "
    )
    for command in each.commands:
        if _MEASURE in command.command:
            continue
        needs = f"; needs {command.needs}" if command.needs else ""
        yield wrapped(f"{command.command}  ({command.shows}{needs})", "   - ", "     ")
    yield wrapped(f"then say it with --states FILE: {each.states}", "   ", "     ")


def _measuring(settle: Sequence[Question]) -> str:
    """Return the way that answers all questions at once, if one is left that it answers; said once."""
    found = (command for each in settle for command in each.commands if _MEASURE in command.command)
    command = next(found, None)
    return f"All at once: {command.command} ({command.shows}). It needs {command.needs}." if command else ""


def _loss(change: Change | None) -> str:
    if change is None:
        return ""
    whose = f"container {change.container} of {change.pod}" if change.container else change.pod
    return f": decides whether {whose} on {change.node} loses {percent(-change.change)} (if {change.when})"
