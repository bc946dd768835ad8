"""What may go wrong, declared: which fault, at which page of which list, how often."""

import threading
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from tests.simulator import pages
from tests.simulator.pages import Page

KINDS = {
    "unauthorized": "401, as for unknown credentials",
    "expire": "the token is replaced by the next one, and 401 for who still sends the old",
    "forbidden": "403; `namespaces` are those that stay allowed",
    "gone": "410 without a token to go on with; older tokens of the list stay refused",
    "gone-fresh": "410 with a token in the Status to go on with",
    "busy": "429 with Retry-After: `seconds`",
    "error": "`status` (500 or 503), as a Status",
    "reset": "the connection is reset, after `part` of the answer",
    "half": "Content-Length says all, `part` is sent, the connection is closed",
    "half-chunk": "chunked, `part` is sent, no last chunk, the connection is closed",
    "half-gzip": "an answer that ends well, of which the gzip inside breaks off at `part`",
    "half-json": "an answer that ends well, of which the JSON inside breaks off at `part`",
    "stall": "nothing for `seconds`, then the answer",
    "stall-body": "`part` of the answer, nothing for `seconds`, then the rest",
    "drip": "the answer in `count` pieces over `seconds`",
    "trickle": "a header that grows a letter at a time for `seconds`, then the rest",
    "html": "200 with a login page",
    "other-kind": "200 with a ConfigMapList",
    "null": "200 with JSON null",
    "garbage": "200 with bytes that are no text",
    "encoding": "200 that says gzip and is not",
    "duplicate": "the last `count` objects of the page before come again",
    "vanish": "the first `count` objects of the page are not there any more",
    "repeat": "the page's continue token is the one it was asked with",
}
_LOGIN = (
    b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><form action='/login'></form></body></html>\n"
)
_OTHER = b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1200000"},"items":[]}\n'
_GARBAGE = bytes(range(128, 256)) * 8
_REASONS = {500: ("InternalError", "etcdserver: request timed out"), 503: ("ServiceUnavailable", "apiserver not ready")}


class Fault(Struct, frozen=True):
    """One fault. `kind` is a key of KINDS. Raises ValueError for another."""

    kind: str
    resource: str = "pods"
    """The list, or metrics, metrics/cadvisor, configz; * for everything."""
    page: str | int = "any"
    """first, middle, last, any, or its number from 0."""
    times: int = 1
    """How often; 0 for always."""
    seconds: float = 1.0
    count: int = 3
    part: float = 0.5
    status: int = 500
    namespaces: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS or not (
            isinstance(self.page, int) or self.page in ("first", "middle", "last", "any")
        ):
            raise ValueError(f"there is no fault {self.kind!r} at page {self.page!r}")

    def hits(self, resource: str, namespace: str, number: int, of: int) -> bool:
        """Whether it is meant for this request: page `number` of so many."""
        if self.resource not in ("*", resource) or (namespace and namespace in self.namespaces):
            return False
        wanted = {"any": number, "first": 0, "middle": of // 2, "last": of - 1}.get(str(self.page), self.page)
        return wanted == number


class _Due(Struct):
    fault: Fault
    left: int


class Reply(Struct):
    """An answer, and what is to go wrong while it is sent."""

    status: int
    body: bytes
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    fault: Fault | None = None


class Faults:
    """The faults of a server, counted down as they happen. More may be added while it runs."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._due = [_Due(each, each.times) for each in faults]
        self._lock = threading.Lock()

    def add(self, *faults: Fault) -> None:
        """Let these happen too."""
        with self._lock:
            self._due += [_Due(each, each.times) for each in faults]

    def clear(self) -> None:
        """Let nothing more happen."""
        with self._lock:
            self._due.clear()

    def take(self, resource: str, namespace: str = "", number: int = 0, of: int = 1) -> Fault | None:
        """The first fault that is due for this request."""
        with self._lock:
            due = next((each for each in self._due if each.fault.hits(resource, namespace, number, of)), None)
            if not due:
                return None
            due.left -= 1
            if due.left == 0:
                self._due.remove(due)
            return due.fault

    def forbids(self, resource: str, namespace: str = "") -> bool:
        """Whether a 403 for all pages stands; nothing is counted down."""
        with self._lock:
            standing = [each.fault for each in self._due if each.fault.kind == "forbidden" and not each.fault.times]
        return any(fault.page == "any" and fault.hits(resource, namespace, 0, 1) for fault in standing)


def changed(fault: Fault, page: Page, asked: str) -> Page:
    """The page that is sent instead, for the faults that are about objects and tokens."""
    if fault.kind == "duplicate":
        return msgspec.structs.replace(page, lead=fault.count)
    if fault.kind == "vanish":
        return msgspec.structs.replace(page, skip=fault.count)
    if fault.kind == "repeat":
        return msgspec.structs.replace(page, after=asked)
    return page


def refusal(fault: Fault, what: str) -> Reply | None:
    """The answer of the faults that refuse. `what` is the resource and its API group, as in the message."""
    resource, _, group = what.partition(".")
    if fault.kind in ("unauthorized", "expire"):
        return status(401, "Unauthorized", "Unauthorized")
    if fault.kind == "forbidden":
        return forbidden(resource, group)
    if fault.kind == "busy":
        text = b"Too many requests, please try again later.\n"
        retry = {"Retry-After": f"{fault.seconds:.0f}", "Content-Type": "text/plain; charset=utf-8"}
        return Reply(429, text, {**retry, "X-Content-Type-Options": "nosniff"})
    if fault.kind == "error":
        return status(fault.status, *_REASONS.get(fault.status, ("Unknown", "the server failed")))
    return None


def spoiled(fault: Fault, reply: Reply) -> Reply:
    """The answer with a fault in its content, or with one that happens while it is sent."""
    contents = {"html": _LOGIN, "other-kind": _OTHER, "null": b"null", "garbage": _GARBAGE}
    if fault.kind in contents:
        kind = "text/html; charset=utf-8" if fault.kind == "html" else "application/json"
        return Reply(reply.status, contents[fault.kind], {"Content-Type": kind})
    if fault.kind == "encoding":
        # Where it is compressed already, an encoding that nobody asked for.
        zipped = reply.headers.get("Content-Encoding") == "gzip"
        return Reply(reply.status, reply.body, reply.headers | {"Content-Encoding": "br" if zipped else "gzip"})
    if fault.kind in ("half-gzip", "half-json"):
        body, headers = reply.body, dict(reply.headers)
        if fault.kind == "half-gzip" and "Content-Encoding" not in headers:
            body, headers["Content-Encoding"] = pages.compressed(body), "gzip"
        return Reply(reply.status, body[: int(len(body) * fault.part)], headers)
    return Reply(reply.status, reply.body, reply.headers, fault)


def forbidden(resource: str, group: str, verb: str = "list", namespace: str = "", name: str = "") -> Reply:
    """403 as RBAC says it."""
    named = f' "{name}"' if name else ""
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    kind = resource.partition("/")[0]
    full = f"{kind}.{group}" if group else kind
    told = (
        f'{full}{named} is forbidden: User "auditor" cannot {verb} resource "{resource}" in API group "{group}" {where}'
    )
    details = {**({"name": name} if name else {}), **({"group": group} if group else {}), "kind": kind}
    return status(403, "Forbidden", told, details=details, nosniff=True)


def status(
    code: int,
    reason: str,
    message: str,
    *,
    metadata: dict[str, Any] | None = None,
    details: dict[str, Any] | None = None,
    nosniff: bool = False,
) -> Reply:
    """A Status, as the API server refuses."""
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": metadata or {}, "status": "Failure"}
    body |= {"message": message, "reason": reason}
    body |= {"details": details} if details else {}
    headers = {"X-Content-Type-Options": "nosniff"} if nosniff else {}
    return Reply(code, msgspec.json.encode({**body, "code": code}) + b"\n", headers)
