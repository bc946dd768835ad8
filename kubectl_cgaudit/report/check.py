"""`check`: whether an audit may read what it needs, how many pages that is, and about how long it takes."""

from collections.abc import Sequence
from typing import Any

from kubectl_cgaudit.collect.reach import Reach
from kubectl_cgaudit.report.screen import PLAIN, Column, Screen, grid, wrap
from kubectl_cgaudit.text import counted


def verdict(found: Sequence[Reach]) -> str:
    """Return `yes`, `in part` or `no`: whether all, some or nothing can be audited."""
    nodes, *others = found
    if nodes.refused:
        return "no"
    return "in part" if any(each.refused and each.needed for each in others) else "yes"


def render(source: str, found: Sequence[Reach], screen: Screen = PLAIN) -> str:
    """Return the answer, then what of each list may be read, then what to ask for."""
    answer = {
        "yes": "An audit may read what it needs",
        "in part": "An audit may read a part of what it needs",
        "no": "An audit may not read what it needs",
    }[verdict(found)]
    heads = [Column("LIST"), Column("MAY READ"), Column("OBJECTS", right=True), Column("PAGES", right=True)]
    rows = [
        [
            each.plural,
            "no" if each.refused else "yes",
            "-" if each.objects is None else str(each.objects),
            "-" if each.pages is None else str(each.pages),
        ]
        for each in found
    ]
    lines = [wrap(screen.shown(f"{answer} of {source}. {_cost(found)}"), screen.width), "", *grid(heads, rows, screen)]
    missing = [each for each in found if each.refused]
    lines += [""] if missing else []
    for each in missing:
        ask = f"ask for list on {each.plural.lower()}" if each.needed else f"without them {each.instead}"
        lines.append(
            wrap(screen.shown(f"{each.plural} may not be read ({each.refused}): {ask}."), screen.width, "", "  ")
        )
    return screen.finished("\n".join(lines) + "\n")


def _cost(found: Sequence[Reach]) -> str:
    """Return how many pages an audit reads, and how long that takes if every page takes what the first of its list took."""
    known = [each for each in found if each.pages is not None]
    pages = sum(each.pages or 0 for each in known)
    seconds = sum((each.pages or 0) * each.seconds for each in known)
    more = " at least" if len(known) < len([each for each in found if not each.refused]) else ""
    return f"It reads{more} {counted(pages, 'page')}, in about {max(1, round(seconds))} s."


def data(source: str, found: Sequence[Reach]) -> dict[str, Any]:
    """Return the same for programs."""
    lists = [
        {
            "list": each.plural,
            "needed": each.needed,
            "mayRead": not each.refused,
            "refused": each.refused,
            "objects": each.objects,
            "pages": each.pages,
        }
        for each in found
    ]
    return {"cluster": source, "mayAudit": verdict(found), "lists": lists}
