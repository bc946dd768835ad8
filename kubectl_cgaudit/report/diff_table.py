"""A comparison for a person at a terminal: what wants attention first, in the screen's width."""

from collections.abc import Sequence

from kubectl_cgaudit.compare.diff.types import OUTCOMES, Diff
from kubectl_cgaudit.report import diff_content as content
from kubectl_cgaudit.report.colour import paint
from kubectl_cgaudit.report.diff_content import Row
from kubectl_cgaudit.report.screen import PLAIN, Column, Screen, cut, grid, middle, wrap
from kubectl_cgaudit.text import counted

_MOST = 60
_MOST_LONE = 20


def render(diff: Diff, screen: Screen = PLAIN) -> str:
    """The comparison in the screen's width; names give way to it, numbers last of all. Of one state twice it is one line."""
    if same := content.same(diff):
        return screen.finished(f"{same}\n")

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
        _nodes(nodes, screen),
        _workloads(workloads, screen),
        _lone(diff, screen),
        "\n".join(said(f"{each}.", "  ") for each in _because([*nodes, *workloads])),
        "\n".join(said(note, "  ") for note in _notes(diff)),
        "\n".join([*_legend([*nodes, *workloads], screen), said(content.thresholds(diff))]),
    ]
    return screen.finished("\n\n".join(part for part in parts if part) + "\n")


def _nodes(rows: Sequence[Row], screen: Screen) -> str:
    heads = [Column("NODE", middle, 12, whole=True), Column("OUTCOME", painted=True)]
    heads += [Column("WHAT", middle, 10), Column("BEFORE -> NOW")]
    cells = [[row.subject, row.outcome, row.what, content.change(row)] for row in rows[:_MOST]]
    lines = grid(heads, [[screen.shown(cell) for cell in line] for line in cells], screen)
    return _with_rest(lines, rows) if rows else ""


def _workloads(rows: Sequence[Row], screen: Screen) -> str:
    """Under each workload and outcome its rows: beside the names there is no room to say what moved."""
    heads = [Column("  WHAT", middle, 20), Column("BEFORE -> NOW")]
    cells = [[screen.shown(f"  {row.what}"), screen.shown(content.change(row))] for row in rows[:_MOST]]
    title, *moved = grid(heads, cells, screen)
    lines, last = ["WORKLOAD: OUTCOME", title], ""
    for row, line in zip(rows, moved, strict=False):
        pods = content.pods(row)
        said = screen.shown(f"{row.subject}: {row.outcome}{f', {pods} pods' if pods else ''}")
        if said != last:
            lines.append(paint(wrap(said, screen.width, "", "  "), colour=screen.colour))
        lines.append(line)
        last = said
    return _with_rest(lines, rows) if rows else ""


def _with_rest(lines: Sequence[str], rows: Sequence[Row]) -> str:
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
    """Each cause once, with what it explains; what leaves a row open is said in the row."""
    found: dict[tuple[str, str], None] = {}
    for row in rows:
        found.update(((row.subject, why), None) for why in row.because if row.outcome != "unknown")
    listed = [f"{subject}: {why}" for subject, why in found]
    more = len(listed) - _MOST_LONE
    return [*listed[:_MOST_LONE], *([f"{counted(more, 'more cause')}: -o json shows all"] if more > 0 else [])]


def _legend(rows: Sequence[Row], screen: Screen) -> list[str]:
    """What of the words and signs in the rows nobody could guess."""
    used = {row.outcome for row in rows}
    lines = [f"{outcome}: {content.OUTCOME_WORDS[outcome]}." for outcome in OUTCOMES if outcome in used]
    changes = [content.change(row) for row in rows]
    lines += [words for sign, words in content.CHANGE_WORDS.items() if any(sign in change for change in changes)]
    return [paint(wrap(line, screen.width, "", "  "), colour=screen.colour) for line in lines]
