"""What a text is written on, and how it is fitted to that: escaped, cut, wrapped and set in columns."""

import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from kubectl_cgaudit.report.colour import paint
from kubectl_cgaudit.report.escape import visible

NARROWEST = 80
WIDEST = 200
_DRAWN = str.maketrans("│├└─█░…", "||`-#.~")
# Follows a character that takes two columns, so that a text's length is its width. No shown text has it: `visible` escapes it.
_SECOND = "\ue000"
# Wide since Unicode 16, which not every supported Python knows; and the letters of flags, wide where one stands alone.
_WIDE_TOO = (("☰", "☷"), ("⚊", "⚏"), ("䷀", "䷿"), ("\U0001d300", "\U0001d376"), ("\U0001f1e6", "\U0001f1ff"))
_GAP = 2
# Namespace, name and kind of an object as long as an API server takes them.
_LONGEST = 400


class Screen(Struct, frozen=True):
    """A terminal, or what stands in for one.

    width: columns, 80..200. colour: whether colour may be used as a second signal. drawing: whether it can show more
    than ASCII. terminal: whether a terminal acts on what is written.
    """

    width: int = NARROWEST
    colour: bool = False
    drawing: bool = True
    terminal: bool = False

    def shown(self, text: str) -> str:
        """An untrusted text such that nothing in it acts, and this screen can show it."""
        seen = visible(text)
        return seen if self.drawing else seen.encode("ascii", "backslashreplace").decode()

    def finished(self, text: str) -> str:
        """A report of shown texts; lines, bars and marks in ASCII where the screen needs that."""
        return text if self.drawing else text.translate(_DRAWN)


PLAIN = Screen()
"""Files, pipes and everything else that should get the same bytes everywhere."""


class Column(Struct, frozen=True):
    """A column of a grid. `cut` says how its cells give way, down to `least`; without it they do so last of all.

    whole: what is longer than the column stands above its row: a name that is cut is of no use to who wants to type it.
    """

    title: str
    cut: Callable[[str, int], str] | None = None
    least: int = 0
    right: bool = False
    painted: bool = False
    whole: bool = False


def columns(text: str) -> int:
    """How many columns of a terminal a shown text takes; at least as many as terminals disagree about."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


# A tree is drawn with few characters, and some hundred thousand of each.
@lru_cache(maxsize=4096)
def _columns(character: str) -> int:
    wide = any(first <= character <= last for first, last in _WIDE_TOO)
    if wide or unicodedata.east_asian_width(character) in "WF":
        return 2
    # The sixteenth variation selector widens what it follows where emoji are known.
    return 0 if unicodedata.category(character) in ("Mn", "Me") and character != "\ufe0f" else 1


def cut(text: str, most: int) -> str:
    """The text in at most `most` columns, its cut end marked."""
    if columns(text) <= most:
        return text
    return _start(text, most - 1) + "…"


def middle(text: str, most: int) -> str:
    """The text in at most `most` columns, cut in the middle: its end tells apart what begins alike."""
    if columns(text) <= most:
        return text
    tail = (most - 1) * 2 // 3
    return f"{_start(text, most - 1 - tail)}…{_start(text[::-1], tail)[::-1]}"


def _start(text: str, most: int) -> str:
    if text.isascii():
        return text[:most]
    used = 0
    for index, character in enumerate(text):
        used += _columns(character)
        if used > most:
            return text[:index]
    return text


def wrap(text: str, width: int, first: str = "", rest: str = "") -> str:
    """A shown text in lines of at most `width` columns; `first` and `rest` go before them."""
    plain = _wrapped(text, width, first, rest)
    if plain is not None:
        return plain
    spaced = text if text.isascii() else "".join(c + _SECOND if _columns(c) == 2 else c for c in text)
    lines = textwrap.fill(
        spaced,
        # A line may end between a wide character and its second column.
        width - (spaced != text),
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=True,
    )
    return lines.replace(_SECOND, "")


def _wrapped(text: str, width: int, first: str, rest: str) -> str | None:
    """What `textwrap` makes of words with a space between each two, of which none needs a line of more than `width`.

    Nearly all text is of that kind, and `textwrap` takes ten times as long. None for any other.
    """
    if not text or not text.isascii() or not text.isprintable() or "  " in text or " " in (text[0], text[-1]):
        return None
    lines, start, indent = [], 0, first
    while len(text) - start > (room := width - len(indent)):
        end = text.rfind(" ", start, start + room + 1)
        next_end = text.find(" ", end + 1)
        if end < 0 or (len(text) if next_end < 0 else next_end) - end - 1 > room:
            return None
        lines.append(indent + text[start:end])
        start, indent = end + 1, rest
    lines.append(indent + text[start:])
    return "\n".join(lines)


def grid(heads: Sequence[Column], rows: Iterable[Sequence[str]], screen: Screen, *, fit: bool = True) -> list[str]:
    """Shown cells in columns under their titles; no line is wider than the screen if it is to `fit`."""
    return list(lines(heads, rows, screen, fit=fit))


def lines(heads: Sequence[Column], rows: Iterable[Sequence[str]], screen: Screen, *, fit: bool) -> Iterator[str]:
    """The lines of a grid, one after another. The rows are read twice: first for their widths."""
    titles = [head.title for head in heads]
    widths = [columns(title) for title in titles]
    for row in rows:
        widths = list(map(max, widths, map(columns, row)))
    if fit:
        widths = _fitted(heads, widths, screen.width - _GAP * (len(heads) - 1))
    yield _line(heads, titles, widths, screen, painted=False)
    for row in rows:
        beside = []
        for head, cell, width in zip(heads, row, widths, strict=True):
            above = head.whole and columns(cell) > width
            if above:
                yield wrap(cut(cell, _LONGEST), screen.width)
            beside.append("" if above else cell)
        yield _line(heads, beside, widths, screen, painted=True)


def _fitted(heads: Sequence[Column], widths: Sequence[int], room: int) -> list[int]:
    """The widest of the columns that can be cut gives way first; if that is not enough, any does."""
    fitted = [min(width, room) for width in widths]
    for least in ([max(h.least, columns(h.title)) if h.cut else room for h in heads], [1] * len(heads)):
        while sum(fitted) > room and (wider := [i for i, width in enumerate(fitted) if width > least[i]]):
            fitted[max(wider, key=lambda index: fitted[index])] -= 1
    return fitted


def _line(heads: Sequence[Column], row: Sequence[str], widths: Sequence[int], screen: Screen, *, painted: bool) -> str:
    cells = []
    for head, cell, width in zip(heads, row, widths, strict=True):
        text, taken = cell, columns(cell)
        if taken > width:
            # A column's own way of cutting may keep its numbers whole, and those can be too long for it.
            text = cut((head.cut or cut)(cell, width), width)
            taken = columns(text)
        space = " " * (width - taken)
        # Colour comes last: it takes no columns.
        text = paint(text, colour=screen.colour) if painted and head.painted else text
        cells.append(space + text if head.right else text + space)
    return (" " * _GAP).join(cells).rstrip(" ")
