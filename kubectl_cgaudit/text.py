"""Amounts, numbers and lists in words, the same in messages and reports."""

from collections.abc import Iterable, Sequence

NAMED = 5
"""How many of a list are named; the rest is counted."""
_LEAST_PERCENT = 0.0001
"""The last that is written without an exponent."""


def counted(amount: int, one: str, many: str | None = None) -> str:
    """`1 node`, `3 nodes`."""
    return f"{amount} {one if amount == 1 else many or plural(one)}"


def plural(word: str) -> str:
    """`nodes`, `RuntimeClasses`."""
    return f"{word}es" if word.endswith("s") else f"{word}s"


def capital(words: str) -> str:
    """As a sentence begins."""
    return f"{words[:1].upper()}{words[1:]}"


def named(names: Iterable[str], most: int) -> str:
    """The first names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def these(kind: str, names: Sequence[str]) -> str:
    """`node a`, or `2 nodes (a, b)` with the first names."""
    return f"{kind} {names[0]}" if len(names) == 1 else f"{counted(len(names), kind)} ({named(names, NAMED)})"


def number(value: float) -> str:
    """Three figures that matter: 1.45, 0.0458, 29.6, 3788."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percent(fraction: float | None) -> str:
    """A fraction as a percentage: 0.0007%, 6.2%, 61%, 99.7%; `?` where it is not known.

    What is not nothing never reads as 0, and what is not all never as 100.
    """
    if fraction is None:
        return "?"
    value, sign = abs(fraction * 100), "-" if fraction < 0 else ""
    rest = 100 - value
    if 0 < value < _LEAST_PERCENT:
        return f"{'>' if sign else '<'}{sign}{_LEAST_PERCENT}%"
    if 0 < rest < _LEAST_PERCENT:
        return f"{'<' if sign else '>'}{sign}{100 - _LEAST_PERCENT}%"
    if rest > 0 and f"{value:.0f}" == "100":
        # As many digits as what is left needs.
        return f"{sign}{value:.{len(percent(rest / 100)) - len('0.%')}f}%"
    if not value or value >= 9.95:
        return f"{sign}{value:.0f}%"
    return f"{sign}{value:.1f}%" if value >= 0.1 else f"{sign}{value:.1g}%"


def percents(was: float, will: float) -> tuple[str, str]:
    """Two fractions as percentages, with the digits that tell them apart, if four after the point do."""
    plain = percent(was), percent(will)
    longer = ((f"{was * 100:.{digits}f}%", f"{will * 100:.{digits}f}%") for digits in range(1, 5))
    return plain if plain[0] != plain[1] else next((pair for pair in longer if pair[0] != pair[1]), plain)
