"""What a rule sees in each case, and how the worst of them is told."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from kubectl_cgaudit.judge.audit import SEVERITIES, Certainty, Severity
from kubectl_cgaudit.judge.condition import condition
from kubectl_cgaudit.judge.rounding import shown
from kubectl_cgaudit.text import capital

_SETTLE = "In the other cases it takes something else: settle first what is not known (CGA102)."

Words = Callable[[], tuple[str, str]]
"""Gives what was seen and what to do. Mostly made when it is called: of many places only the worst is told."""


class Look(Struct, frozen=True):
    """What a rule sees in one case."""

    badness: float
    words: Words
    so_now: str = ""
    """What to add if nothing changes by the move: `it is so now, too.`"""
    mild: bool = False
    """Whether it is of low severity, however bad."""


class Worst(Struct, frozen=True):
    """The worst case of a rule: of the leading ones, or of the others where it holds in none of these."""

    when: str
    """The cases in which it is that severe or worse, or empty if it is in every case."""
    badness: float
    words: Words
    severities: tuple[Severity | None, ...]
    """By case; None where it does not hold."""
    severity: Severity
    taken: Certainty = "certain"
    """How sure what it rests on beside the cases is."""


def worst(
    looks: Sequence[tuple[str, Look | None]], leading: Sequence[bool], severity: Callable[[float], Severity]
) -> Worst | None:
    """Return the worst of what a rule sees, by the names of the cases; None where it holds in none."""
    found = {when: look for when, look in looks if look is not None}
    if not found:
        return None
    levels: dict[str, Severity] = {
        when: "low" if look.mild else severity(shown(look.badness)) for when, look in found.items()
    }
    every = [when for when, _ in looks]
    led = [when for when, leads in zip(every, leading, strict=True) if leads and when in found]
    # What differs in the last digits only is equally bad: then the name decides.
    most = max(led or found, key=lambda when: (not found[when].mild, shown(found[when].badness), when))
    size = shown(found[most].badness)
    least = SEVERITIES.index(levels[most])
    alike = [when for when, level in levels.items() if SEVERITIES.index(level) <= least]
    # With one case there is nothing to tell apart.
    plain = len(every) == 1 and not found[most].so_now
    words = found[most].words if plain else partial(_told, most, found, alike, every)
    return Worst(condition(alike, every), size, words, tuple(map(levels.get, every)), levels[most])


def _told(most: str, found: Mapping[str, Look], alike: Sequence[str], every: Sequence[str]) -> tuple[str, str]:
    """The words of the worst case, for which of the cases they stand, and what to do in which."""
    # Cases that are alike share a look.
    looks = {id(look): look for look in found.values()}
    said_of = {key: look.words() for key, look in looks.items()}
    words = {when: said_of[id(look)] for when, look in found.items()}
    seen = words[most][0]
    same = [when for when in found if words[when][0] == seen]
    milder = [when for when in found if when not in alike]
    these = condition(same, every) if len(same) < len(alike) else ""
    it = f"These numbers hold {these}; it" if these else "It"
    said = [seen, _now_too(found, every)]
    if len(same) < len(found) == len(every):
        said.append(f"{it} is found in every other case too, with other numbers.")
    elif len(found) < len(every) and milder:
        said.append(f"{it} is found {condition(milder, every)} too, with other numbers.")
    elif these:
        said.append(f"These numbers hold {these}; in its other cases they differ.")
    the_worst_first = sorted(found, key=lambda when: when != most)
    return " ".join(filter(None, said)), by_case([(when, words[when][1]) for when in the_worst_first], every)


def by_case(texts: Sequence[tuple[str, str]], every: Sequence[str]) -> str:
    """Texts that stand for cases, the first first, each with its cases where they differ. Of more than two that one alone."""
    cases: dict[str, list[str]] = {}
    for when, text in texts:
        cases.setdefault(text, []).append(when)
    if len(cases) == 1:
        return texts[0][1]
    parts = [f"{capital(condition(whens, every))}: {text}" for text, whens in cases.items()]
    return " ".join(parts) if len(parts) == 2 else f"{parts[0]} {_SETTLE}"


def _now_too(found: Mapping[str, Look], every: Sequence[str]) -> str:
    """In which of the cases found nothing changes by the move."""
    now = {when: look.so_now for when, look in found.items() if look.so_now}
    words = next(iter(now.values()), "")
    lead = condition(list(now), every) if words and len(now) < len(found) else ""
    return capital(f"{lead} {words}" if lead else words)
