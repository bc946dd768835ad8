"""Follow a list page by page: the next pages are fetched while the caller works on the one before.

Where the next one is stands at the beginning of each, so it is asked for before the page is unpacked.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from kubectl_cgaudit.collect import wire
from kubectl_cgaudit.collect.http import CHECK, Ahead, Answer, RequestError, printable
from kubectl_cgaudit.collect.transport import Api
from kubectl_cgaudit.text import plural

PAGE_SIZE = 500
_OK, _EXPIRED = 200, 410
_RENEWALS = 3
_EMPTY_PAGES = 20
_FAR_MORE, _AND = 2, 10_000
"""A list that grows while it expires and is continued has more objects than its first page announced, but not so many."""
_TIMES = 20
"""So many times the objects that were asked for may come in one page: a server may ignore the limit."""
_MOST_COMMAS = 4_000_000
"""Of a page, counted before it is decoded: each may be an object of 88 bytes. 500 pods have 8,000 each with that."""
_MOST_PAGES, _MOST_OBJECTS = 5_000, 2_000_000
"""Of a list. Kubernetes is made for 150,000 pods, which are 300 pages."""
_LONGEST_TOKEN = 64 << 10
_NO_END = "the server's list does not end"
_HEAD = 2000
_SHOWN = 20
_CONTINUED = (
    "the list expired twice while it was read (410) and was continued from a newer state, so it mixes two moments"
)
# Before the first object: what is further on may be anybody's text.
_TOKEN = re.compile(rb'[^\[]*?"continue"\s*:\s*"([^"\\\[]+)"')


_TYPES: dict[str, Any] = {
    "Node": wire.Node,
    "Pod": wire.Pod,
    "ReplicaSet": wire.Owned,
    "Job": wire.Owned,
    "RuntimeClass": wire.RuntimeClass,
    "Event": wire.Event,
}
"""The kinds whose objects are decoded with their page: to find where each ends first would read all of it twice."""


class Resource(Struct, frozen=True):
    """Something to list. `instead` says what is done without it; `namespace` is the one that the path names."""

    kind: str
    path: str
    instead: str = ""
    query: str = ""
    namespace: str | None = None

    @property
    def plural(self) -> str:
        """The word for its objects in messages."""
        return plural(self.kind)


class Page(Struct, frozen=True):
    """A page of a list."""

    items: Iterator[Any]
    """To be taken once: decoded, or where one is not of its type the bytes of each, which hold those of the whole page."""
    count: int
    left: int | None
    """How many come after it, where the server says; 0 on the last page."""
    again: bool
    """The list starts again with this page: forget what came before."""
    mixed: str
    """Why the list, as far as it came, shows two moments; empty where it shows one."""
    withheld: int
    """So many were announced by the page before and come neither with this one nor after it."""


def pages(api: Api, resource: Resource, size: int = PAGE_SIZE) -> Iterator[Page]:
    """The pages of a list. Raises RequestError where it breaks off, and ClusterError when the credentials are refused."""
    following = _follow(api, resource, size)
    coming = Ahead(partial(next, following, None))
    while (page := coming.result()) is not None:
        coming = Ahead(partial(next, following, None))
        yield page


def first_page(api: Api, resource: Resource, size: int = PAGE_SIZE) -> tuple[int, int | None]:
    """How many objects the first page has, and how many come after it, where the server says. Raises as `pages` does."""
    path = f"{resource.path}?limit={size}{resource.query}"
    page = api.fetch(path, partial(_understood, api, path, resource, size), spare=bool(resource.instead))
    if isinstance(page, Answer):
        raise api.refusal(path, page)
    metadata = page.metadata or wire.ListMetadata()
    return len(page.items or ()), metadata.remaining_item_count if metadata.continue_ else 0


def _follow(api: Api, resource: Resource, size: int) -> Iterator[Page]:
    first = f"{resource.path}?limit={size}{resource.query}"
    token, expired, again, mixed = "", 0, False, ""
    announced: int | None = None
    course = _Course()
    while True:
        path = _after(first, token)
        page = api.fetch(
            path,
            partial(_understood, api, path, resource, size),
            spare=bool(resource.instead),
            leads_to=partial(_leads_to, first),
        )
        if isinstance(page, Answer):
            if page.status != _EXPIRED or not token or expired >= _RENEWALS:
                raise api.refusal(path, page)
            # First from the start, for one moment's view; a list that expires again is longer than that view lasts.
            expired += 1
            token = _fresh_token(page) if expired > 1 else ""
            again, mixed = not token, token and _CONTINUED
            course = _Course()
            announced = None
            continue
        metadata = page.metadata or wire.ListMetadata()
        left = metadata.remaining_item_count if metadata.continue_ else 0
        mixed = mixed or course.differs(metadata.resource_version or "")
        items, count = iter(page.items or ()), len(page.items or ())
        del page  # The caller alone decides how long its bytes stay.
        # At one moment the server's counts are exact, so what is short of them was filtered out or lost.
        withheld = 0 if announced is None or left is None else max(announced - count - left, 0)
        yield Page(items, count, left, again, mixed, withheld)
        again, announced = False, left
        if not metadata.continue_:
            return
        token = metadata.continue_
        why = course.strays(token, count, left)
        if why:
            raise RequestError(f"{api.host}: {resource.plural} cannot be listed, {why}; try again", why)


class _Course(Struct):
    """How a list went so far, by which one is known that never ends."""

    tokens: set[bytes] = msgspec.field(default_factory=set)
    """A digest of each: how long they are is the server's to say."""
    expected: int | None = None
    came: int = 0
    empty: int = 0
    version: str = ""
    """The resourceVersion that its pages have in common."""

    def differs(self, version: str) -> str:
        """Why a page of this version is of another moment than those before; empty where it is not."""
        self.version = self.version or version
        if version in ("", self.version):
            return ""
        versions = f"{printable(self.version, _SHOWN)}, then {printable(version, _SHOWN)}"
        return f"its pages are of two moments (resourceVersion {versions})"

    def strays(self, token: str, count: int, left: int | None) -> str:
        """Why there is no end where a page leads; empty where there may be one."""
        if len(token) > _LONGEST_TOKEN:
            return f"its continue token is longer than {_LONGEST_TOKEN >> 10} KiB"
        digest = blake2b(token.encode(errors="replace"), digest_size=16).digest()
        if digest in self.tokens:
            return "the server repeats its continue token"
        self.tokens.add(digest)
        self.came += count
        self.empty = 0 if count else self.empty + 1
        if self.expected is None and left is not None:
            self.expected = self.came + left
        far_more = self.expected is not None and self.came > _FAR_MORE * self.expected + _AND
        too_many = len(self.tokens) >= _MOST_PAGES or self.came > _MOST_OBJECTS
        return _NO_END if far_more or too_many or self.empty >= _EMPTY_PAGES else ""


def _after(first: str, token: str) -> str:
    """The path of the page that a token continues with."""
    return first + (f"&continue={quote(token, safe='')}" if token else "")


def _leads_to(first: str, answer: Answer) -> str | None:
    """The path of the page after this one, by a glance at its beginning."""
    token = _TOKEN.match(answer.head(_HEAD)) if answer.status == _OK else None
    return _after(first, token[1].decode("ascii", "replace")) if token else None


def _understood(api: Api, path: str, resource: Resource, size: int, answer: Answer) -> wire.PageOf[Any] | Answer:
    """The page, or the answer where it has another status.

    Raises RequestError where the body is no such list, holds far more than was asked for, or does not lead on to its end.
    """
    if answer.status != _OK:
        return answer
    far_more = f"a page holds more than {_TIMES} times the {size} objects that were asked for"
    # Behind each comma stands something: a body of less has fewer.
    if len(answer.body) > 2 * _MOST_COMMAS and answer.body.count(b",") > _MOST_COMMAS:
        raise _refused(api, resource, far_more)
    page = _decoded(answer.body, resource.kind)
    if page.kind != f"{resource.kind}List":
        raise api.garbage(path, answer, f"list of {resource.plural}")
    if len(page.items or ()) > _TIMES * size:
        raise _refused(api, resource, far_more)
    metadata = page.metadata or wire.ListMetadata()
    if metadata.remaining_item_count and not metadata.continue_:
        why = f"the server says that {metadata.remaining_item_count} more come and gives no continue token"
        raise RequestError(f"{api.host}: {resource.plural} cannot be listed, {why}; try again", why)
    return page


def _decoded(body: Any, kind: str) -> wire.PageOf[Any]:
    """The page: with decoded items where each is of its type, else with the bytes of each; without a kind where it is no JSON."""
    types: list[Any] = [wire.PageOf[_TYPES[kind]], wire.Page] if kind in _TYPES else [wire.Page]  # type: ignore[valid-type]
    for type_ in types:
        with suppress(*wire.UNDECODABLE):
            found: wire.PageOf[Any] = msgspec.json.decode(body, type=type_)
            return found
    return wire.PageOf()


def _refused(api: Api, resource: Resource, why: str) -> RequestError:
    """The error for a page that would be as large if it were asked for again."""
    return RequestError(f"{api.host}: {resource.plural} cannot be listed, {why}; {CHECK}", why, final=True)


def _fresh_token(answer: Answer) -> str:
    try:
        metadata = msgspec.json.decode(answer.body, type=wire.Status).metadata
    except wire.UNDECODABLE:
        return ""
    token = (metadata.continue_ if metadata else None) or ""
    return token if len(token) <= _LONGEST_TOKEN else ""
