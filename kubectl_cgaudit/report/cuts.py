"""How much of a large cluster a report shows. What is cut is counted, and the report says where all of it is."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct

T = TypeVar("T")
_LEAST_TEXT = 200

IN_FULL = (
    "all of it: `-o json=FILE`, of containers also `-o csv=FILE`, in the same run or with `kubectl cgaudit report`"
)


class Limits(Struct, frozen=True):
    """The most that a report shows of each thing. What a report has none of stays at the least."""

    groups: int = 1
    """Groups of equal nodes."""
    workloads: int = 1
    """Rows of the workloads' table."""
    cards: int = 1
    """Workloads with a picture of their own, and pods with a picture of their inside."""
    findings: int = 1
    """Findings listed of each rule."""
    containers: int = 1
    """Rows of the appendix."""
    listed: int = 1
    """Names in a list, gaps, notes and steps."""
    text: int = _LEAST_TEXT
    """Characters of one sentence."""

    def tightened(self) -> "Limits":
        """The next step down, with something of everything left. The appendix gives way first, sentences last."""
        small = self.containers <= 1 and self.workloads <= 10
        return Limits(
            groups=max(self.groups * 2 // 3, 1),
            workloads=max(self.workloads * 2 // 3, 1),
            cards=max(self.cards * 2 // 3, 1),
            findings=max(self.findings * 2 // 3, 1),
            containers=max(self.containers // 3, 1),
            listed=max(self.listed * 2 // 3, 1),
            text=max(self.text // 2, _LEAST_TEXT) if small else self.text,
        )


def fit(draw: Callable[[Limits], str], limits: Limits, most: int) -> str:
    """What is drawn within the first limits that keep it to `most` characters, else within the tightest."""
    while True:
        text = draw(limits)
        tighter = limits.tightened()
        if len(text) <= most or tighter == limits:
            return text
        limits = tighter


def first(items: Sequence[T], most: int) -> tuple[Sequence[T], int]:
    """The first items, and how many are left out."""
    return items[:most], max(len(items) - most, 0)
