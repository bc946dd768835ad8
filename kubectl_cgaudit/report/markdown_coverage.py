"""What the Markdown report says of what was read, what was not, and what was set apart."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TypeVar

from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import Coverage
from kubectl_cgaudit.report import content
from kubectl_cgaudit.report.cuts import first
from kubectl_cgaudit.report.escape import markdown
from kubectl_cgaudit.report.markdown_text import Page, bold, bullets, folded, left_out, paragraphs

V = TypeVar("V")
_GAPS_ON_TOP = 5


def incomplete(page: Page, coverage: Coverage) -> str:
    """The warning at the top; nothing if everything was read."""
    if coverage.complete:
        return ""
    shown, more = first(coverage.gaps, min(_GAPS_ON_TOP, page.limits.listed))
    gaps = [f"{page.sentence(gap.what)}: {page.sentence(gap.why)}. {page.sentence(gap.remedy)}." for gap in shown]
    rest = [f"and {more} more, under Coverage"] if more else []
    return paragraphs(["**INCOMPLETE: this could not be read, and is not in the numbers.**", bullets(gaps + rest)])


def coverage(page: Page, found: Coverage) -> str:
    """All of it, as far as the limits allow."""
    state = "**INCOMPLETE**" if not found.complete else "Complete: everything that was asked for was read."
    gaps, more_gaps = first(found.gaps, page.limits.listed)
    table = page.table(
        ("Not read", "Why", "What to do"),
        [(bold(page.text(gap.what)), page.text(gap.why), page.text(gap.remedy)) for gap in gaps],
    )
    notes, more_notes = first(content.notes(found), page.limits.listed)
    away = {
        "things not read": more_gaps,
        "notes": more_notes,
        "pods without a node": len(found.pods_without_node) - page.limits.listed,
        "Windows nodes": len(found.windows_nodes) - page.limits.listed,
        "virtual nodes": len(found.virtual_nodes) - page.limits.listed,
        "kinds of workloads": len(found.workload_names) - page.limits.listed,
        "kinds of objects": len(found.ignored_kinds) - page.limits.listed,
    }
    body = paragraphs(
        [
            table,
            bullets(f"{page.name(what)}: {markdown(value)}" for what, value in _apart(page, found)),
            bullets(f"Note: {page.sentence(note)}" for note in notes),
            left_out(*(f"{what}: {amount} more" for what, amount in away.items() if amount > 0)),
        ]
    )
    return paragraphs([state, folded("What was read, what was not, and what was set apart", body)])


def _apart(page: Page, coverage: Coverage) -> list[tuple[str, str]]:
    """What was set apart, plain text, in lists that fit."""
    return content.coverage_facts(
        replace(
            coverage,
            filter=page.short(coverage.filter),
            pods_without_node=_listed(page, coverage.pods_without_node),
            windows_nodes=_listed(page, coverage.windows_nodes),
            virtual_nodes=_listed(page, coverage.virtual_nodes),
            workload_names=_few(page, {kind: page.short(how) for kind, how in coverage.workload_names.items()}),
            ignored_kinds=_few(page, coverage.ignored_kinds),
        )
    )


def _listed(page: Page, names: Sequence[str]) -> tuple[str, ...]:
    shown, more = first(names, page.limits.listed)
    return (*map(page.short_name, shown), *([f"and {more} more"] if more else []))


def _few(page: Page, counts: Mapping[str, V]) -> dict[str, V]:
    """The first entries."""
    return dict(islice(counts.items(), page.limits.listed))
