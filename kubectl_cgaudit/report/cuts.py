"""How much of a large cluster a report shows. What is cut is counted, and the report says where all of it is."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct

T = TypeVar("T")
IN_FULL = (
    "all of it: `-o json=FILE`, of containers also `-o csv=FILE`, in the same run or with `kubectl cgaudit report`"
)
LEAST_TEXT = 200


class Limits(Struct, frozen=True):
    """The most that a report shows of each thing."""

    actions: int = 1
    groups: int = 1
    """Groups of equal nodes."""
    workloads: int = 1
    """Rows of the workloads' table."""
    findings: int = 1
    """Findings listed of each rule."""
    listed: int = 1
    """Names in a list, gaps, notes, questions and commands."""
    text: int = 200
    """Characters of a sentence."""

    def tightened(self) -> "Limits":
        """Return the next step down, with something of everything left. Rows give way first, sentences last."""
        small = self.workloads <= 10 and self.findings <= 2
        return Limits(
            actions=max(self.actions * 3 // 4, 1),
            groups=max(self.groups * 2 // 3, 1),
            workloads=max(self.workloads * 2 // 3, 1),
            findings=max(self.findings * 2 // 3, 1),
            listed=max(self.listed * 2 // 3, 1),
            text=max(self.text // 2, LEAST_TEXT) if small else self.text,
        )


def fit(draw: Callable[[Limits], str], limits: Limits, most: int) -> str:
    """Return what is drawn within the first limits that keep it to `most` bytes of UTF-8, else within the tightest."""
    while True:
        text = draw(limits)
        tighter = limits.tightened()
        if len(text.encode()) <= most or tighter == limits:
            return text
        limits = tighter


def first(items: Sequence[T], most: int) -> tuple[Sequence[T], int]:
    """Return the first items, and how many are left out."""
    return items[:most], max(len(items) - most, 0)
