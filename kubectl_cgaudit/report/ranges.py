"""Least and greatest over the leading cases of a container, for the formats with a row each: CSV and NDJSON."""

from collections.abc import Sequence
from itertools import compress
from typing import Any, TypeVar

import msgspec

from kubectl_cgaudit.judge.figures import Figures, Fixed, Form, Named
from kubectl_cgaudit.judge.rounding import relative
from kubectl_cgaudit.report.blanks import Kept

Number = int | float | None
Ends = tuple[Number, Number]
MEASURES = ("value", "share", "against_system", "in_pod", "quota_us")
CHANGES = ("change_against_system", "change_in_pod", "pod_change_against_system")
OWN = ("share", "against_system", "in_pod")
"""Those of the measures that a row has of its own; the others are equal in all containers of a face."""
_SERIES = 4
"""Share and share against the system, before and after."""
_REACHED = 2 * (_SERIES + 1)
"""Least and greatest of each of these, and of the change of the latter."""

Face = tuple[Named, tuple[tuple[str, int | None, int | None], ...], tuple[bool, ...]]
"""A container with its version, value and quota before and after in each leading case, and whether its pod stops in it: what
many pods have in common."""


def ends(values: Sequence[Any]) -> Ends:
    """The least and the greatest; none where one of them is missing."""
    try:
        return (min(values), max(values)) if values else (None, None)
    except TypeError:
        # Nothing is less than None.
        return None, None


def faces_of(form: Form) -> list[Face]:
    """Return what each container has in common with others."""
    return [
        (container, tuple([(each.version, each.value, each.quota_us) for each in row]), stops)
        for container, row, stops in zip(form.containers, *_led(form), strict=True)
    ]


def _led(form: Form) -> tuple[list[Sequence[Fixed]], list[tuple[bool, ...]]]:
    """Return what each container holds, and whether its pod stops, in the leading cases."""
    moments = [leads for leads in form.leading for _ in range(2)]
    return [list(compress(row, moments)) for row in form.fixed[1:]], [
        _of_led(row, form.leading) for row in form.stops[1:]
    ]


_Of = TypeVar("_Of")


def _of_led(values: Sequence[_Of], leading: tuple[bool, ...]) -> tuple[_Of, ...]:
    return tuple(values) if all(leading) else tuple(compress(values, leading))


def _reached(after: Sequence[_Of], stops: Sequence[bool]) -> Sequence[_Of]:
    """What there is in the cases in which the pod runs after the move: in the others nothing comes after."""
    return [each for each, stop in zip(after, stops, strict=True) if not stop] if any(stops) else after


def _moments(face: Face, *, after: bool) -> Sequence[tuple[str, int | None, int | None]]:
    return _reached(face[1][1::2], face[2]) if after else face[1][0::2]


def versions(face: Face, *, after: bool) -> str:
    """`v1`, `v2`, or both if it depends on the case."""
    return ";".join(sorted({version for version, _, _ in _moments(face, after=after)}))


def held(face: Face, *, after: bool) -> tuple[Ends, Ends]:
    """Value and quota. Shares and weights are no range: of both together there are none."""
    moments = _moments(face, after=after)
    mixed = len({version for version, _, _ in moments}) > 1
    value = (None, None) if mixed else ends([value for _, value, _ in moments])
    return value, ends([quota for _, _, quota in moments])


def parts_of(form: Form) -> list[list[str]]:
    """Of each container, as JSON has them: least and greatest part of its pod before and after, and its change."""
    found: list[Number] = []
    for row, stops in zip(*_led(form), strict=True):
        before, after = [each.in_pod for each in row[0::2]], [each.in_pod for each in row[1::2]]
        changes = list(map(relative, before, after))
        found += (*ends(before), *ends(_reached(after, stops)), *ends(_reached(changes, stops)))
    texts = _texts(found)
    return [texts[at : at + 6] for at in range(0, len(texts), 6)]


def rows(pod: Figures, parts: Kept[list[list[str]]]) -> list[list[str]]:
    """Of each container, as JSON has them: least and greatest of each of OWN before, then after, then of CHANGES.

    A pod without containers has one row. Made by whichever format comes first.
    """
    if pod.rows is None:
        whole, *containers = _reaches(pod)
        pod.rows = [
            [*own[0:4], *part[0:2], *own[4:8], *part[2:4], *own[8:10], *part[4:6], *whole[8:10]]
            for own, part in zip(containers, parts.of(pod.form), strict=True)
        ] or [["null"] * 16 + whole[8:10]]
    return pod.rows


def _reaches(pod: Figures) -> list[list[str]]:
    """Of the pod, then of each container: share and share against the system before and after, then the change of it."""
    values = pod.values
    found: list[Number] = []
    at = 0
    leading = pod.form.leading
    stops = _of_led(pod.form.stops[0], leading)
    for _ in pod.form.stops:
        stop = at + _SERIES * len(leading)
        if at and values[at:stop] == values[:at]:
            # The only container of a pod has all of it.
            found += found[:_REACHED]
        else:
            share, against, share_after, against_after = [
                _of_led(values[first:stop:_SERIES], leading) for first in range(at, at + _SERIES)
            ]
            changes = list(map(relative, against, against_after))
            after = [_reached(each, stops) for each in (share_after, against_after, changes)]
            for each in (share, against, *after):
                found += ends(each)
        at = stop
    texts = _texts(found)
    return [texts[first : first + _REACHED] for first in range(0, len(texts), _REACHED)]


def _texts(numbers: Sequence[Number]) -> list[str]:
    return [] if not numbers else msgspec.json.encode(numbers).decode()[1:-1].split(",")
