"""What a result depends on, in as few words as the cases allow."""

from collections.abc import Sequence
from functools import lru_cache


def condition(found: Sequence[str], every: Sequence[str]) -> str:
    """The words that tell the cases `found` from the rest of `every`; empty if nothing is left out.

    Cases are named like `cgroup v1, linear runtime`. Both v1 cases are `if cgroup v1`, all but one are
    `unless` that one.
    """
    return "" if len(found) == len(every) else _condition(tuple(found), tuple(every))


@lru_cache(maxsize=4096)
def _condition(found: tuple[str, ...], every: tuple[str, ...]) -> str:
    if words := _shared(found, every):
        return f"if {words}"
    if words := _shared([each for each in every if each not in found], every):
        return f"unless {words}"
    return f"if {' or '.join(found)}"


def _shared(found: Sequence[str], every: Sequence[str]) -> str:
    """What all of `found` and none of the others have in common."""
    shared = set.intersection(*(set(words.split(", ")) for words in found))
    alike = [words for words in every if shared <= set(words.split(", "))]
    return ", ".join(word for word in found[0].split(", ") if word in shared) if len(alike) == len(found) else ""
