"""A comparison as Markdown for a change ticket: it reads on GitHub and GitLab, and what is cut is said."""

from collections.abc import Sequence

from kubectl_cgaudit.compare.diff.types import OUTCOMES, Diff
from kubectl_cgaudit.report import diff_content as content
from kubectl_cgaudit.report.cuts import Limits, first, fit
from kubectl_cgaudit.report.diff_content import Row
from kubectl_cgaudit.report.markdown_text import CUT, Live, Page, bold, bullets, paragraphs
from kubectl_cgaudit.text import counted

MOST = 60_000
_START = Limits(groups=60, workloads=200, listed=40, text=800)


def render(diff: Diff) -> str:
    """The comparison as a Markdown document of at most `MOST` characters."""
    nodes, workloads, lone = (
        content.node_rows(diff.nodes),
        content.workload_rows(diff.workloads),
        list(content.lone(diff)),
    )

    def draw(limits: Limits) -> str:
        page = Page(limits)
        used = {row.outcome for row in (*nodes, *workloads)}
        shown, more = first(lone, limits.listed)
        notes, unsaid = first(diff.summary.notes, limits.listed)
        only = page.table(
            ("Only in one", "What", "It has or had"), [(w, page.name(s), page.text(h)) for w, s, h in shown]
        )
        parts = [
            f"# CPU priority: what came of now → {page.name(diff.to)}",
            bold(page.sentence(diff.summary.sentence)),
            bullets(
                [
                    page.text(content.side("before", diff.before)),
                    page.text(content.side("after", diff.after)),
                    page.text(f"predicted: {diff.description}"),
                ]
            ),
            bullets([*map(page.sentence, notes), *([_left_out(unsaid, "more note")] if unsaid else [])]),
            _part(page, "Node", nodes, limits.groups, content.stayed("node", diff.nodes)),
            _part(page, "Workload", workloads, limits.workloads, content.stayed("workload", diff.workloads)),
            paragraphs(["## New and gone", only, _left_out(more, "more row") if more else ""]) if lone else "",
            "## What the words mean",
            bullets(
                [
                    *(f"**{each}**: {content.OUTCOME_WORDS[each]}." for each in OUTCOMES if each in used),
                    page.text(content.thresholds(diff)),
                ]
            ),
            f"---\n\nkubectl-cgaudit {page.name(diff.tool_version)}",
        ]
        cut = f"Shortened to fit a ticket, and … ends a text cut short; {content.IN_FULL}."
        is_cut = any(CUT in part for part in parts)
        return paragraphs([*parts[:2], cut if is_cut else "", *parts[2:]]).replace(CUT, "") + "\n"

    return fit(draw, _START, MOST)


def _part(page: Page, title: str, rows: Sequence[Row], most: int, stayed: str) -> str:
    shown, more = first(rows, most)
    table = page.table(
        (title, "Outcome", "Pods", "What", "Before", "Predicted", "Now", "Because"),
        [_cells(page, row) for row in shown],
    )
    cut = _left_out(more, "more row") if more else ""
    return paragraphs([f"## {title}s", table or stayed, cut])


def _cells(page: Page, row: Row) -> list[str]:
    because = page.text("; ".join(row.because))
    what, values = page.name(row.what), [page.name(each) for each in (row.before, row.predicted, row.now)]
    return [page.name(row.subject), bold(row.outcome), content.pods(row), what, *values, because]


def _left_out(amount: int, what: str) -> Live:
    return Live(f"**Left out here:** {counted(amount, what)}; {content.IN_FULL}.{CUT}")
