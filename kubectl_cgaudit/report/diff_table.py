"""A comparison for a person at a terminal: what wants attention first, in the screen's width."""

from collections.abc import Sequence

from kubectl_cgaudit.judge.diff.types import OUTCOMES, Diff
from kubectl_cgaudit.report import diff_content as content
from kubectl_cgaudit.report.colour import paint
from kubectl_cgaudit.report.diff_content import Row
from kubectl_cgaudit.report.screen import PLAIN, Column, Screen, cut, grid, middle, wrap
from kubectl_cgaudit.text import counted

_MOST = 60
_MOST_LONE = 20


def render(diff: Diff, screen: Screen = PLAIN) -> str:
    """The comparison in the screen's width; names give way to it, numbers last of all."""

    def said(text: str, rest: str = "") -> str:
        return wrap(screen.shown(text), screen.width, "", rest)

    head = [
        said(content.side("before", diff.before), "  "),
        said(content.side("after", diff.after), "  "),
        said(f"predicted: now -> {diff.to}: {diff.description}", "  "),
    ]
    nodes, workloads = content.node_rows(diff.nodes), content.workload_rows(diff.workloads)
    parts = [
        "\n".join(head),
        said(diff.summary.sentence),
        _grid("NODE", nodes, screen),
        _grid("WORKLOAD", workloads, screen),
        _lone(diff, screen),
        "\n".join(said(f"{each}.", "  ") for each in _because([*nodes, *workloads])),
        "\n".join(said(note, "  ") for note in _notes(diff)),
        "\n".join([*_legend([*nodes, *workloads], screen), said(content.thresholds(diff))]),
    ]
    return screen.finished("\n\n".join(part for part in parts if part) + "\n")


def _grid(title: str, rows: Sequence[Row], screen: Screen) -> str:
    heads = [Column(title, middle, 12), Column("OUTCOME", painted=True)]
    with_pods = any(row.of for row in rows)
    heads += [Column("PODS", right=True)] if with_pods else []
    heads += [Column("WHAT", middle, 10), Column("BEFORE -> NOW")]
    cells = []
    for row in rows[:_MOST]:
        # Its kind is in every other format; here the room is for the name.
        name = row.subject.rpartition(" ")[0] if row.of else row.subject
        line = [name, row.outcome, *([content.pods(row)] if with_pods else []), row.what, content.change(row)]
        cells.append([screen.shown(cell) for cell in line])
    if not rows:
        return ""
    lines = grid(heads, cells, screen)
    left_out = [f"{counted(len(rows) - _MOST, 'more row')}"] if len(rows) > _MOST else []
    left_out += ["cells cut at …"] if any("…" in line for line in lines) else []
    where = "-o markdown and -o html show more, -o json all"
    return "\n".join([*lines, f"{', '.join(left_out)}: {where}."] if left_out else lines)


def _lone(diff: Diff, screen: Screen) -> str:
    found = list(content.lone(diff))
    if not found:
        return ""
    heads = [Column("ONLY IN ONE"), Column("", middle, 14), Column("IT HAS OR HAD", cut, 20)]
    lines = grid(heads, [[screen.shown(cell) for cell in row] for row in found[:_MOST_LONE]], screen)
    more = len(found) - _MOST_LONE
    return "\n".join([*lines, f"{more} more: -o json shows all."] if more > 0 else lines)


def _notes(diff: Diff) -> list[str]:
    notes = diff.summary.notes
    more = len(notes) - _MOST_LONE
    return [*notes[:_MOST_LONE], *([f"{counted(more, 'more note')}: -o json shows all."] if more > 0 else [])]


def _because(rows: Sequence[Row]) -> list[str]:
    """Each other cause once, with what it explains."""
    found: dict[tuple[str, str], None] = {}
    for row in rows:
        found.update(((row.subject, why), None) for why in row.because if row.outcome == "other-cause")
    listed = [f"{subject}: {why}" for subject, why in found]
    more = len(listed) - _MOST_LONE
    return [*listed[:_MOST_LONE], *([f"{more} more causes: -o json shows all"] if more > 0 else [])]


def _legend(rows: Sequence[Row], screen: Screen) -> list[str]:
    used = {row.outcome for row in rows}
    shown = [outcome for outcome in OUTCOMES if outcome in used]
    return [
        paint(wrap(f"{outcome}: {content.OUTCOME_WORDS[outcome]}.", screen.width, "", "  "), colour=screen.colour)
        for outcome in shown
    ]
