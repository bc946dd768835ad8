"""`nodes`: what each node runs, how surely that is known, and what would settle the rest."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kubectl_cgaudit.judge.audit import EvidenceRecord, Known, NodeAudit
from kubectl_cgaudit.report.screen import PLAIN, Column, Screen, columns, cut, grid, wrap
from kubectl_cgaudit.report.words import counted, named

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
_OF_NODE = 4
"""The columns before have a row for each handler."""
_WIDEST = 34


def data(nodes: Sequence[NodeAudit], *, events_read: bool) -> dict[str, Any]:
    """What is known of every node, with its evidence."""
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
    return {"nodes": rows, "settle": settle(nodes, events_read=events_read)}


def as_text(
    nodes: Sequence[NodeAudit],
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

    groups: dict[bytes, list[NodeAudit]] = {}
    for node in nodes:
        groups.setdefault(_face(node), []).append(node)
    rows = [row for members in groups.values() for row in _rows(members, screen)]
    lines = _drawn(rows, screen)
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
    advice = settle(nodes, events_read=events_read)
    steps = [wrapped(step, f"{number}. ", "   ") for number, step in enumerate(advice, start=1)]
    lines += _section("TO SETTLE THE UNKNOWNS, CHEAPEST FIRST", steps)
    return screen.finished("\n".join(lines) + "\n")


def _drawn(rows: Sequence[tuple[str, ...]], screen: Screen) -> list[str]:
    lines = grid(_COLUMNS, rows, screen, fit=False)
    if not screen.terminal or max(map(columns, lines)) <= screen.width:
        return lines
    handlers = grid(_COLUMNS[:_OF_NODE], [row[:_OF_NODE] for row in rows], screen, fit=False)
    whole = [(row[0], *row[_OF_NODE:]) for row in rows if row[0]]
    return [*handlers, "", *grid((_COLUMNS[0], *_COLUMNS[_OF_NODE:]), whole, screen, fit=False)]


def _face(node: NodeAudit) -> bytes:
    """What equal nodes have in common: where something is open also their systems, as these may run different things."""
    told = {what: (known.value, known.confidence) for what, known in node.known.items()}
    open_ = any(known.value is None for known in node.known.values())
    systems = (node.os_image, node.container_runtime, node.hints) if open_ else ()
    return msgspec.json.encode((told, node.kubelet_version, node.confidence, systems))


def _rows(members: Sequence[NodeAudit], screen: Screen) -> Iterable[tuple[str, ...]]:
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


def _evidence(node: NodeAudit) -> list[str]:
    pieces = [_piece(piece) for piece in node.evidence]
    said = ((what, known) for what, known in node.known.items() if known.confidence == "stated")
    pieces += [f"{known.confidence:8} {what} is {known.value}: {known.source}" for what, known in said]
    return pieces or ["none beyond the defaults"]


def _piece(piece: EvidenceRecord) -> str:
    told = f"{piece.about} is {piece.value}" if piece.strength != "hint" else f"{piece.about} is probably {piece.value}"
    return f"{piece.strength:8} {told}: {piece.source}: {piece.saw}"


def settle(nodes: Sequence[NodeAudit], *, events_read: bool) -> list[str]:
    """What would settle the open questions, cheapest first; empty if none is open."""
    versions = [node for node in nodes if node.known["cgroup"].value is None]
    runtimes = [node for node in nodes if any(_is_open(what, known) for what, known in node.known.items())]
    open_ = [node for node in nodes if node in versions or node in runtimes]
    if not open_:
        return []
    steps = []
    if versions and not events_read:
        steps.append(
            f"Cgroup version of {counted(len(versions), 'node')}: read events too (kubelets warn with reason CgroupV1 for about "
            "an hour after they start): kubectl get events -A -o json > events.json, and add -f events.json; live, list on "
            "events is enough."
        )
    look = ["stat -fc %T /sys/fs/cgroup (cgroup2fs is v2)"] if versions else []
    look += ["runc --version or crun --version"] if runtimes else []
    steps.append(f"Look {_where(open_)}: {' and '.join(look)}; say it with --states FILE.")
    if all(map(_was_asked, open_)):
        return steps
    steps.append(
        "Measure it: --kubelet=proxy reads every kubelet through the API server (needs nodes/proxy, which also allows running "
        "commands in containers); inside the cluster --kubelet=direct needs nodes/metrics and nodes/configz only."
    )
    return steps


def _where(nodes: Sequence[NodeAudit]) -> str:
    """On which nodes to look: on one of each group, as those of another may run something else."""
    groups: dict[bytes, list[str]] = {}
    for node in nodes:
        groups.setdefault(_face(node), []).append(node.name)
    alike = [f"{names[0]}{f' and {len(names) - 1} alike' if names[1:] else ''}" for names in groups.values()]
    if len(alike) == 1:
        (names,) = groups.values()
        return f"on one of {len(names)} nodes alike ({named(names, _NAMES)})" if names[1:] else f"on {names[0]}"
    more = len(alike) - _GROUPS
    rest = f"; {more} more {'group is' if more == 1 else 'groups are'} in the table" if more > 0 else ""
    return f"on one node of each group ({'; '.join(alike[:_GROUPS])}{rest})"


def _was_asked(node: NodeAudit) -> bool:
    """Whether its kubelet answered, or was asked in vain, which is told apart."""
    return bool(node.problems) or any(piece.source.startswith("kubelet /") for piece in node.evidence)


def _is_open(what: str, known: Known) -> bool:
    return what.startswith("runtime:") and known.value is None
