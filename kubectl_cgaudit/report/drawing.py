"""How a tree is drawn: the lines that lead to a row, and bars."""

from collections.abc import Sequence

_BAR = 8


def branches(depths: Sequence[int], index: int) -> str:
    """The lines that lead to a row: it is the last child if no later row is on its level before a higher one."""
    depth = depths[index]
    if depth == 0:
        return ""
    return _passing(depths, index, depth - 1) + ("├─ " if _goes_on(depths, index, depth) else "└─ ")


def below(depths: Sequence[int], index: int) -> str:
    """The lines beside what is said under a row, which lead on to its children and to later rows."""
    depth = depths[index]
    children = index + 1 < len(depths) and depths[index + 1] > depth
    return _passing(depths, index, depth) + ("│  " if children else "   ")


def _passing(depths: Sequence[int], index: int, depth: int) -> str:
    return "".join("│  " if _goes_on(depths, index, level) else "   " for level in range(1, depth + 1))


def _goes_on(depths: Sequence[int], index: int, level: int) -> bool:
    return next((other for other in depths[index + 1 :] if other <= level), 0) == level


def bar(part: float) -> str:
    """A fraction (0..1) as eight blocks."""
    full = int(part * _BAR + 0.5)
    return "█" * full + "░" * (_BAR - full)
