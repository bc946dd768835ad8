"""What is equal is held once: of 150,000 pods most differ in little but their names."""

from typing import Any, TypeVar

T = TypeVar("T")


class Same:
    """Gives for each value the first that equals it."""

    def __init__(self) -> None:
        self._first: dict[Any, Any] = {}

    def __call__(self, value: T, key: object = None) -> T:
        """The first that came of those equal to this one; `key` stands for a value that cannot be a key itself."""
        first: T = self._first.setdefault(value if key is None else key, value)
        return first
