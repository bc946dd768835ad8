"""Amounts and lists in words, the same in messages and reports."""

from collections.abc import Iterable


def counted(amount: int, one: str, many: str | None = None) -> str:
    """`1 node`, `3 nodes`."""
    return f"{amount} {one if amount == 1 else many or one + 's'}"


def named(names: Iterable[str], most: int) -> str:
    """The first names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
