"""Objects that cannot be read: what each is, and what is not sure without it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from kubectl_cgaudit.collect import wire
from kubectl_cgaudit.collect.model import Gap
from kubectl_cgaudit.text import NAMED, counted, named

_ENDED = ("Succeeded", "Failed")
Decode = Callable[[Any, type[Any]], Any]


class Unread(Struct, frozen=True):
    """An object that cannot be read, as far as it can."""

    kind: str
    namespace: str
    name: str
    why: str
    source: str
    node: str | None = None
    """Of a pod, the node it runs on; empty where it runs on none, None where even that cannot be read."""

    @property
    def title(self) -> str:
        """Its name in messages."""
        return f"{self.namespace}/{self.name}" if self.namespace and self.name else self.name or "(unnamed)"


class _Metadata(Struct):
    name: str = ""
    namespace: str | None = None


class _Kind(Struct):
    metadata: _Metadata | None = None


class _Spec(Struct, rename="camel"):
    node_name: str | None = None


class _Status(Struct):
    phase: str | None = None


class _Place(Struct):
    spec: _Spec | None = None
    status: _Status | None = None


def of(kind: str, raw: Any, decode: Decode, why: str, source: str) -> Unread:
    """What can be said of an object that `decode` refused."""
    try:
        meta = decode(raw, _Kind).metadata or _Metadata()
    except wire.UNDECODABLE:
        meta = _Metadata()
    return Unread(kind, meta.namespace or "", meta.name, why, source, _node(raw, decode) if kind == "Pod" else None)


def _node(raw: Any, decode: Decode) -> str | None:
    try:
        place = decode(raw, _Place)
    except wire.UNDECODABLE:
        return None
    if place.status and place.status.phase in _ENDED:
        return ""
    return (place.spec and place.spec.node_name) or ""


def gaps(found: Iterable[Unread], instead: Mapping[str, str]) -> list[Gap]:
    """What the audit lacks without these, a gap for each kind, and for the pods of each node; `instead` says of a kind
    how one does without.
    """
    together: dict[tuple[str, str | None], dict[str, Unread]] = {}
    for each in found:
        # A list that changes while it is read may bring an object twice.
        together.setdefault((each.kind, each.node), {}).setdefault(each.title, each)
    return [_gap(kind, node, [*these.values()], instead) for (kind, node), these in together.items()]


def _gap(kind: str, node: str | None, found: list[Unread], instead: Mapping[str, str]) -> Gap:
    amount, first = len(found), found[0]
    titles = tuple(each.title for each in found)
    listed = named(titles, NAMED)
    what = f"{kind} {listed}" if amount == 1 else f"{counted(amount, kind)}: {listed}"
    reason = first.why if amount == 1 else f"{first.title}: {first.why}"
    why = f"cannot be read ({reason}): {_without(kind, node, instead)}"
    remedy = f"Correct or delete {'it' if amount == 1 else 'them'}, and run the audit again"
    on = "" if node is None else f" on {node or 'no node'}"
    return Gap(what, why, remedy, f"{kind} that cannot be read{on}", titles)


def _without(kind: str, node: str | None, instead: Mapping[str, str]) -> str:
    if kind == "Node":
        return "nothing that runs there is audited"
    if kind != "Pod":
        return instead[kind]
    if node == "":
        return "on no node, so no share is wrong for that"
    where = "any node, because its node is not known" if node is None else f"node {node}"
    return f"a sibling is missing, so the shares may be wrong on {where}"
