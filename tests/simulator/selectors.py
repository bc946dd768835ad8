"""Field and label selectors, as far as a list needs them: =, == and !=, joined by commas."""

import re
from typing import Any

import msgspec

from tests.simulator.pages import View

_TERM = re.compile(r"([^=!]+)(==|=|!=)(.*)")
_FIELDS = {
    "pods": ("metadata.name", "metadata.namespace", "spec.nodeName", "status.phase"),
    "events": ("metadata.name", "metadata.namespace", "reason", "type", "involvedObject.kind", "involvedObject.name"),
}


class SelectorError(ValueError):
    """A selector that the server does not know."""


def selected(view: View, fields: str, labels: str) -> View:
    """The objects of a view that fit both selectors. Raises SelectorError."""
    if not (fields or labels):
        return view
    known = _FIELDS.get(view.resource.name, ("metadata.name", "metadata.namespace"))
    terms = [(term[0].split("."), *term[1:]) for term in _terms(fields)]
    if any(".".join(path) not in known for path, _, _ in terms):
        raise SelectorError(f"field label not supported: {fields}")
    terms += [(["metadata", "labels", key], sign, value) for key, sign, value in _terms(labels)]
    # Few objects hold the values at all, and to decode the others would take seconds.
    values = [value.encode() for _, sign, value in terms if sign != "!="]
    raws = ((at, view.objects.raw(at, at + 1)) for at in view.positions)
    held = ((at, raw) for at, raw in raws if all(value in raw for value in values))
    positions = [at for at, raw in held if _fits(msgspec.json.decode(raw), terms)]
    return msgspec.structs.replace(view, positions=positions, selected=True)


def _terms(text: str) -> list[tuple[str, str, str]]:
    found = [_TERM.fullmatch(term) for term in text.split(",") if term]
    if not all(found):
        raise SelectorError(f"unable to parse requirement: {text}")
    return [(term[1], term[2], term[3]) for term in found if term]


def _fits(item: dict[str, Any], terms: list[tuple[list[str], str, str]]) -> bool:
    for path, sign, value in terms:
        found: Any = item
        for key in path:
            found = (found or {}).get(key)
        if ((found or "") == value) == (sign == "!="):
            return False
    return True
