"""Lists in files that are one page of a longer one, as `kubectl get --raw '/api/v1/pods?limit=500'` prints it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from kubectl_cgaudit.collect.advice import COMMAND
from kubectl_cgaudit.collect.api_groups import is_read
from kubectl_cgaudit.collect.model import Gap
from kubectl_cgaudit.text import plural

_LOWER = ("Node", "Pod")
LAST = 0


class Part(Struct, frozen=True):
    """A list of a file, which may be all of it."""

    source: str
    kind: str
    """Of its objects; empty for a List of any."""
    version: str
    """The list's resourceVersion: its pages have one in common."""
    count: int
    left: int | None
    """How many objects come after it; None if that is not said of one that goes on."""


def of(source: str, kind: str, metadata: object, count: int) -> Part:
    """What a list's metadata says of it, whatever is damaged there."""
    said: dict[Any, Any] = metadata if isinstance(metadata, dict) else {}
    left = said.get("remainingItemCount")
    known = left if type(left) is int and left > 0 else None
    version = said.get("resourceVersion")
    return Part(
        source=source,
        kind=kind,
        version=version if isinstance(version, str) else "",
        count=count,
        left=known or (None if said.get("continue") else LAST),
    )


def gaps(parts: Iterable[Part]) -> list[Gap]:
    """What is not there of lists that are used; pages that are all in the input miss nothing."""
    lists: dict[tuple[str, str], list[Part]] = {}
    for part in parts:
        if not part.kind or is_read(part.kind):
            lists.setdefault((part.kind, part.version), []).append(part)
    return [_gap(part) for pages in lists.values() for part in pages if not _followed(part, pages)]


def _followed(part: Part, pages: list[Part]) -> bool:
    """Whether nothing comes after a part, or the next page is there. Whether that one is the last is its own question."""
    if part.left is None:
        return False
    lefts = {page.left + page.count for page in pages if page.left is not None and page.left < part.left}
    return part.left == LAST or (part.version != "" and part.left in lefts)


def _gap(part: Part) -> Gap:
    plain = plural(part.kind) if part.kind else "objects"
    name = plain.lower() if part.kind in _LOWER else plain
    more = "more" if part.left is None else f"{part.left} more"
    command = f"kubectl get {plain.lower()} -A -o json" if part.kind else COMMAND
    return Gap(
        f"{name} of {Path(part.source).name}",
        f"it is one page of a list; {more} {'comes' if part.left == 1 else 'come'}",
        f"Save all of it with: {command} (or with --raw, without limit=)",
    )
