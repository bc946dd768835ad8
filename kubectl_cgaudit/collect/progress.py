"""How whoever reads says how far it is."""

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]
"""What is read, judged or written, how many of it are done, and how many there are in all, where that is known."""

STEP = 1000
"""So many objects come between two words of it."""


def silent(_what: str, _done: int, _total: int | None) -> None:
    """Nobody watches."""
