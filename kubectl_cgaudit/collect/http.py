"""Requests over HTTP: one attempt with its limits, what it brought, and why it brought nothing."""

import errno
import io
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, NoReturn, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_cgaudit.collect.credentials import moment
from kubectl_cgaudit.errors import ClusterError

CHECK = "check the server in the kubeconfig and the network (VPN, proxy, firewall)"
UNTRUSTED = "its TLS certificate is not trusted"
_AT_ANOTHER_TIME = (9, 10)
"""OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED."""
_EXCERPT = 60
_MARGIN = 2000
"""Characters beyond a cut that are looked at: a credential is known for what it is, and what follows it is shown."""
_LONGEST_TEXT = 10_000
Hide = Callable[[str], str]


class RequestError(ClusterError):
    """A request without a usable answer.

    `status` is 0 where there was none; `why` is the reason alone; `silent` says that a whole timeout went by, `final` that
    the same would come again.
    """

    def __init__(self, message: str, why: str, status: int = 0, *, silent: bool = False, final: bool = False) -> None:
        super().__init__(message)
        self.why = why
        self.status = status
        self.silent = silent
        self.final = final


class UnreachableError(RequestError):
    """No connection: another request to the same server will fail as this one did."""


def excerpt(body: bytes, hide: Hide = str) -> str:
    """Return the first 60 characters of a body, without what `hide` takes out."""
    return hide(body[: _EXCERPT + _MARGIN].decode("utf-8", "replace"))[:_EXCERPT]


def printable(text: str, limit: int, hide: Hide = str) -> str:
    """Return a server's text in one harmless line, without what `hide` takes out."""
    line = " ".join(text[:_LONGEST_TEXT].split())
    return "".join(c if c.isprintable() else "?" for c in hide(line[: limit + _MARGIN])[:limit])


def no_answer(error: BaseException, host: str, seconds: float | None, hide: Hide = str) -> RequestError:
    """The error for a request without an answer; `seconds` is how long was waited once there was a connection."""
    causes = _causes(error)
    tls = next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None)
    timed_out = any(isinstance(cause, TimeoutError) for cause in causes)
    if isinstance(tls, ssl.SSLCertVerificationError):
        why = f"{UNTRUSTED}: {tls.verify_message.rstrip('.')}"
        step = "check certificate-authority and tls-server-name in the kubeconfig"
        if getattr(tls, "verify_code", 0) in _AT_ANOTHER_TIME:
            why = f"{why}, and this machine's clock is at {moment(time.time())}"
            step = "correct the clock, or have the certificate renewed"
    elif tls is not None:
        why = f"TLS failed: {(tls.reason or tls.strerror or 'unknown').replace('_', ' ').lower()}"
        step = "check that the server speaks HTTPS, and the certificates and keys in the kubeconfig"
    elif any(isinstance(cause, socket.gaierror) for cause in causes):
        why, step = "its name cannot be resolved", CHECK
    elif any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        why, step = "connection refused", "check that it runs and the port in the kubeconfig is right"
    elif not timed_out and any(map(_is_of_a_closed_connection, causes)):
        why, step = "the connection was closed before an answer came", CHECK
    elif not timed_out:
        texts = [str(getattr(cause, "strerror", "") or cause) for cause in causes]
        why, step = printable(texts[-1], 200, hide), CHECK
    elif seconds is None:
        why, step = "no connection within a few seconds", f"{CHECK}, or give it longer with --request-timeout"
    else:
        why, step = f"no answer within {seconds:g} s", "try again with a longer --request-timeout"
    return RequestError(f"{host} cannot be asked: {why}; {step}", why, silent=seconds is not None)


def _is_of_a_closed_connection(error: BaseException) -> bool:
    # A reset that comes before the TLS handshake is seen as no connection.
    return isinstance(error, ConnectionError) or getattr(error, "errno", None) == errno.ENOTCONN


def _causes(error: BaseException | None) -> list[BaseException]:
    """The error and those it arose from; urllib3 keeps them in three places."""
    found: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        cause = waiting.pop()
        if isinstance(cause, BaseException) and cause not in found:
            found.append(cause)
            waiting += [cause.__cause__, cause.__context__, *cause.args]
    return found


_RESOLVE_SECONDS = 3.0
# What client-go gives a TLS handshake alone, which an overloaded server is slow with.
_LONGEST_SECONDS = 10.0
_ALL_ADDRESSES_SECONDS = 20.0


def connect_seconds(url: str, shown: str) -> float:
    """How long one connection attempt may take, so that all addresses of the server are tried in a while."""
    counted: list[int] = []

    def resolve() -> None:
        try:
            parts = urlsplit(url)
            counted.append(len(socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)))
        except (OSError, ValueError):
            counted.append(1)  # The request itself will say what is wrong.

    # A resolver without a network can take half a minute, and has no timeout of its own.
    thread = threading.Thread(target=resolve, daemon=True)
    thread.start()
    thread.join(_RESOLVE_SECONDS)
    if not counted:
        why = f"its name was not resolved in {_RESOLVE_SECONDS:g} s"
        raise RequestError(f"{shown} cannot be asked: {why}; {CHECK}", why)
    return min(_LONGEST_SECONDS, _ALL_ADDRESSES_SECONDS / counted[0])


_Result = TypeVar("_Result")
_WAIT_S = 0.5


class Ahead(Generic[_Result]):
    """What a call will give. One that nobody asks for goes on alone, and ends with the program."""

    def __init__(self, call: Callable[[], _Result]) -> None:
        self._came: SimpleQueue[Callable[[], _Result]] = SimpleQueue()
        threading.Thread(target=self._work, args=(call,), daemon=True, name="ahead").start()

    def _work(self, call: Callable[[], _Result]) -> None:
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - whatever it is, who asks has to see it
            self._came.put(partial(_raise, error))
        else:
            self._came.put(lambda: result)

    def result(self, seconds: float | None = None) -> _Result:
        """Wait for it, once, and no longer than so many seconds. Raises what the call raised, or TimeoutError."""
        left, came = seconds, None
        while came is None:
            if left is not None and left <= 0:
                raise TimeoutError
            # With a limit, as Windows does not let Ctrl-C end a wait that has none.
            part = _WAIT_S if left is None else min(left, _WAIT_S)
            with suppress(Empty):
                came = self._came.get(timeout=part)
            left = None if left is None else left - part
        return came()


def _raise(error: BaseException) -> NoReturn:
    raise error


_RUNNING = threading.local()
"""The attempt that each thread makes."""


class Attempt:
    """One attempt at a request. It knows its connection, so that another thread can end it."""

    def __init__(self) -> None:
        self._connection: Any = None
        self._over = threading.Event()

    def run(self, request: Callable[[], _Result]) -> _Result:
        """Return what a request returns."""
        _RUNNING.attempt = self
        try:
            return request()
        finally:
            _RUNNING.attempt = self._connection = None
            self._over.set()

    def end(self) -> None:
        """Shut its connection down, at which its thread ends instead of reading on as long as something trickles in."""
        self._shut_down()
        if not self._over.is_set():
            Ahead(self._shut_down_until_over)

    def _shut_down_until_over(self) -> None:
        # One that is still being connected has no socket yet.
        while not self._over.wait(_TICK):
            self._shut_down()

    def _shut_down(self) -> None:
        used = getattr(self._connection, "sock", None)
        # TLS through an HTTPS proxy is TLS within TLS.
        used = getattr(used, "socket", used)
        if isinstance(used, socket.socket):
            with suppress(OSError):
                # Not what TLS makes of it, which would answer the other thread's read with a text in the clear.
                socket.socket.shutdown(used, socket.SHUT_RDWR)


def note_connection(connection: Any) -> None:
    """Say over which connection the attempt of this thread goes."""
    attempt = getattr(_RUNNING, "attempt", None)
    if attempt:
        attempt._connection = connection


class Attempts:
    """The attempts that are under way at a server and its kubelets."""

    def __init__(self) -> None:
        self._running: set[Attempt] = set()
        self._lock = threading.Lock()

    def run(self, request: Callable[[], _Result], seconds: float) -> _Result:
        """Return what a request returns. Raises TimeoutError, and ends the attempt, where it takes longer than `seconds`."""
        attempt = Attempt()

        def made() -> _Result:
            try:
                return attempt.run(request)
            finally:
                with self._lock:
                    self._running.discard(attempt)

        with self._lock:
            self._running.add(attempt)
        try:
            return Ahead(made).result(seconds)
        except TimeoutError:
            attempt.end()
            raise

    def end(self) -> None:
        """End them all."""
        with self._lock:
            running = list(self._running)
        for attempt in running:
            attempt.end()


CONNECT_SECONDS = 4.0
_PART = 1 << 20
_TICK = 0.05
_GRACE = 0.5
"""Who asks has the time to say what took so long."""
_GZIP_NAMES = ("gzip", "x-gzip")
_NOT_PACKED = ("", "identity")
_GZIP = 31
"""What zlib calls it."""


class Answer(Struct, frozen=True):
    """What the server sent."""

    status: int
    body: bytes
    retry_after: str = ""
    """The header of that name."""
    packed: bool = False
    """Whether the body is gzip still."""
    location: str = ""
    """The header of that name: where a redirect points."""
    bounded: bool = True
    """Whether it says where it ends: a text that does not may be cut between two lines, and nobody sees it."""

    def head(self, size: int) -> bytes:
        """The first bytes of the body, unpacked. Empty where it is damaged."""
        if not self.packed:
            return self.body[:size]
        try:
            return zlib.decompressobj(_GZIP).decompress(self.body, size)
        except zlib.error:
            return b""


class Door(Struct, frozen=True):
    """A server that threads may ask at the same time: nothing in it changes, and every answer has its limits."""

    pool: Any
    base: str
    headers: Any
    shown: str
    seconds: float
    """For a whole answer."""
    limit: int
    """The largest body, in bytes, packed or not."""
    connect: float | None = None
    """Seconds for one connection attempt; None for CONNECT_SECONDS."""
    hide: Hide = str
    """Take the caller's credentials out of a text of the server."""
    attempts: Attempts = field(default_factory=Attempts)

    def get(self, path: str, ends: float) -> Answer:
        """GET a path. Raises RequestError when the answer is not whole in time (time.monotonic), damaged, or too large."""
        return self.unpacked(self.ask(path, ends))

    def ask(self, path: str, ends: float) -> Answer:
        """The same as the answer came, packed where the server packs it."""
        began = time.monotonic()
        left = max(min(self.seconds, ends - began), 0.001)
        try:
            # Headers that trickle in have no end for urllib3, which waits for each piece anew.
            return self.attempts.run(partial(self._ask, path, began, left), left + _GRACE)
        except TimeoutError as error:
            raise no_answer(error, self.shown, self.seconds) from None

    def _ask(self, path: str, began: float, left: float) -> Answer:
        import urllib3

        response = None
        try:
            response = self.pool.request(
                "GET",
                self.base + path,
                headers=self.headers,
                timeout=urllib3.Timeout(connect=min(self.connect or CONNECT_SECONDS, left), read=left),
                retries=False,
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
            try:
                body = self._body(response, began + left)
                headers = response.headers
                encoding = headers.get("Content-Encoding", "").strip().lower() if body else ""
                if encoding not in (*_NOT_PACKED, *_GZIP_NAMES):
                    packing = printable(encoding, 40, self.hide)
                    raise self._unusable(f"the answer is packed as {packing}, and gzip was asked for")
                packed = encoding in _GZIP_NAMES
                chunked = "chunked" in headers.get("Transfer-Encoding", "").lower()
                return Answer(
                    status=response.status,
                    body=body,
                    retry_after=headers.get("Retry-After", ""),
                    packed=packed,
                    location=headers.get("Location", ""),
                    bounded=packed or chunked or "Content-Length" in headers,
                )
            finally:
                response.close()
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            late = time.monotonic() >= began + left - _TICK
            failure = no_answer(error, self.shown, self.seconds if late else None, self.hide)
            if response is not None and isinstance(error, urllib3.exceptions.ProtocolError):
                failure = self._unusable("the answer breaks off")
            if isinstance(error, _unconnected()) or (isinstance(error, urllib3.exceptions.TimeoutError) and not late):
                failure = UnreachableError(str(failure), failure.why)
            raise failure from None

    def _body(self, response: Any, ends: float) -> bytes:
        # read1 returns what is there, so that a trickle cannot hold it; older urllib3 has none.
        read = getattr(response, "read1", response.read)
        body = io.BytesIO()
        while part := read(_PART):
            if body.write(part) and body.tell() > self.limit:
                raise self._too_large()
            if time.monotonic() > ends:
                raise no_answer(TimeoutError(), self.shown, self.seconds)
        return body.getvalue()

    def unpacked(self, answer: Answer) -> Answer:
        """An answer whose body is no gzip any more. Raises RequestError as `get` does."""
        if not answer.packed:
            return answer
        parts: list[bytes] = []
        rest, left = answer.body, self.limit
        try:
            # A gzip file may have several members, and zeros behind the last.
            while rest:
                unpacking = zlib.decompressobj(_GZIP)
                # A small body may unpack to any size.
                parts.append(unpacking.decompress(rest, left + 1))
                left -= len(parts[-1])
                if left < 0:
                    raise self._too_large()
                if not unpacking.eof:
                    raise self._unusable("the answer breaks off")
                rest = unpacking.unused_data.lstrip(b"\0")
        except zlib.error:
            raise self._unusable("the answer is damaged gzip") from None
        return replace(answer, body=b"".join(parts), packed=False)

    def _too_large(self) -> RequestError:
        why = f"larger than {self.limit >> 20} MiB"
        return RequestError(f"{self.shown} cannot be asked: the answer is {why}; {CHECK}", why, final=True)

    def _unusable(self, why: str) -> RequestError:
        return RequestError(f"{self.shown} cannot be asked: {why}; {CHECK}", why)


def _unconnected() -> tuple[type[Exception], ...]:
    from urllib3 import exceptions

    return (exceptions.ConnectTimeoutError, exceptions.NewConnectionError, exceptions.SSLError, exceptions.ProxyError)
