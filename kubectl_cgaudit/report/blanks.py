"""Text with blanks: what equal pods have in common is encoded once, and each pod fills in its own."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from kubectl_cgaudit.judge.figures import Form

# JSON holds no raw NUL, whatever the text: it is written as \\u0000.
_MARK = "\0"
BLANK: Any = msgspec.Raw(_MARK.encode())
"""In place of any value of a struct that is to be encoded."""
_MOST_KEPT = 2048

_Made = TypeVar("_Made")


def with_blanks(value: object) -> list[str]:
    """The JSON of a value before, between and after its blanks."""
    return msgspec.json.encode(value).decode().split(_MARK)


def filled(begin: str, texts: Sequence[str], fillings: Sequence[str]) -> str:
    """`begin`, and the text with all blanks filled, in their order."""
    parts = [""] * (2 * len(texts))
    parts[0] = begin
    parts[1::2] = texts
    parts[2::2] = fillings
    return "".join(parts)


class Kept(Generic[_Made]):
    """What was made for forms seen of late: most pods of a workload have one of few."""

    def __init__(self, make: Callable[[Form], _Made]) -> None:
        self._make = make
        self._known: dict[int, tuple[Form, _Made]] = {}

    def of(self, form: Form) -> _Made:
        """That of a form."""
        # A form is kept with what was made for it, so that no other gets its id.
        known = self._known.get(id(form))
        if known is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            known = self._known[id(form)] = form, self._make(form)
        return known[1]
