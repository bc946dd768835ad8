"""The words of a Markdown document: what is escaped, how a table is written, and how it says that something is left out."""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from kubectl_cgaudit.report.cuts import IN_FULL, Limits, first
from kubectl_cgaudit.report.escape import markdown, prose, shorten, visible

CUT = "\x00"
"""Stands behind whatever was cut until the document is whole; escaped text cannot hold it."""

_LEAST_NAME = 63
_LONGEST_NAME = 253
# Only what no viewer could take for markup or for an address stays code.
# Two braces, or one and a percent sign, would begin a template where the page is made by one.
_PLAIN_CODE = re.compile(r"(?:(?!://|\{[{%])[\w .,:;=/+*()%'{}-])+")


class Live(str):
    """Text that is Markdown already; any other string is escaped when it goes into a table."""

    __slots__ = ()


class Page(Struct, frozen=True):
    """How long names, sentences and lists may be on this page."""

    limits: Limits

    def name(self, text: str) -> Live:
        """A name, cut where no real one could end; shorter still where every sentence is short."""
        return self._escaped(text, self._longest_name)

    def text(self, text: str) -> Live:
        """A sentence in a table's cell."""
        return self._escaped(text, self.limits.text)

    def sentence(self, text: str) -> Live:
        """A sentence outside tables, in which plain words between backticks stay code."""
        if not all(map(_PLAIN_CODE.fullmatch, text.split("`")[1::2])):
            return self.text(text)
        bounded, cut = _bounded(text, self.limits.text)
        return Live(prose(bounded) + cut)

    def names(self, names: Sequence[str], most: int) -> Live:
        """The first names, and how many more there are."""
        shown, more = first(names, most)
        return Live(", ".join(map(self.name, shown)) + (f" and {more} more" if more else ""))

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
        """A table, without the columns that are empty in every row; nothing if there is no row."""
        body = list(rows)
        used = [index for index in range(len(headers)) if any(row[index] for row in body)]
        lines = [self._row(row[index] for index in used) for row in [headers, *body]]
        return "\n".join([lines[0], f"|{' --- |' * len(used)}", *lines[1:]]) if body else ""

    def short_name(self, text: str) -> str:
        """A name that fits, not escaped yet."""
        return _bounded(text, self._longest_name)[0]

    def short(self, text: str) -> str:
        """A sentence that fits, not escaped yet."""
        return _bounded(text, self.limits.text)[0]

    @property
    def _longest_name(self) -> int:
        return max(min(_LONGEST_NAME, self.limits.text // 4), _LEAST_NAME)

    def _row(self, cells: Iterable[str]) -> str:
        return f"| {' | '.join(cell if isinstance(cell, Live) else self.name(cell) for cell in cells)} |"

    def _escaped(self, text: str, most: int) -> Live:
        bounded, cut = _bounded(text, most)
        return Live(markdown(bounded) + cut)


def _bounded(text: str, most: int) -> tuple[str, str]:
    """The text in at most `most` characters, and the mark if it was cut. `->` is one character: `-&gt;` is no joy to read."""
    seen = visible(text[: 2 * most].replace(" -> ", " → "))
    return shorten(seen, most), CUT if len(seen) > most else ""


def bold(text: str) -> Live:
    """Escaped text that stands out."""
    return Live(f"**{text}**" if text else "")


def bullets(lines: Iterable[str]) -> str:
    """A list."""
    return "\n".join(f"- {line}" for line in lines)


def paragraphs(parts: Iterable[str]) -> str:
    """The parts that are not empty, with a blank line between them."""
    return "\n\n".join(part for part in parts if part)


def folded(summary: str, body: str) -> str:
    """A part that opens on a click. The summary is our own words only: it is read as HTML.

    A viewer that knows no <details> shows the body as it is.
    """
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>" if body else ""


def left_out(*what: str) -> str:
    """Says what is left out here and where it is. Our own words, or escaped text."""
    said = "; ".join(part for part in what if part)
    return f"**Left out here:** {said}; {IN_FULL}.{CUT}" if said else ""
