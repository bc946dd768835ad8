"""What a node has now beside what it has after: a target may say of cgroups at the root that are not there now."""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def beside(now: Iterable[T], then: Iterable[T], root: Callable[[T], str | None]) -> list[tuple[T | None, T | None]]:
    """Both in one order. `root` names what may be on one side only, and is None for all that both have."""
    before, after = list(now), list(then)
    first, second = ({name: each for each in side if (name := root(each)) is not None} for side in (before, after))
    at_root = [(first.get(name), second.get(name)) for name in dict.fromkeys([*first, *second])]
    below = ([each for each in side if root(each) is None] for side in (before, after))
    return [*at_root, *zip(*below, strict=True)]
