"""One request to a server that several threads may ask at the same time."""

import gzip
import io
import time
import zlib
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.collect.ahead import Ahead
from kubectl_cgaudit.collect.failure import CHECK, RequestError, UnreachableError, no_answer, printable

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

    def get(self, path: str, ends: float) -> Answer:
        """GET a path. Raises RequestError when the answer is not whole in time (time.monotonic), damaged, or too large."""
        return self.unpacked(self.ask(path, ends))

    def ask(self, path: str, ends: float) -> Answer:
        """The same as the answer came, packed where the server packs it."""
        began = time.monotonic()
        left = max(min(self.seconds, ends - began), 0.001)
        try:
            # Headers that trickle in have no end for urllib3, which waits for each piece anew.
            return Ahead(partial(self._ask, path, began, left)).result(left + _GRACE)
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
                    raise self._unusable(f"the answer is packed as {printable(encoding, 40)}, and gzip was asked for")
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
            failure = no_answer(error, self.shown, self.seconds if late else None)
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
        body = io.BytesIO()
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(answer.body)) as unpacking:
                # Bit by bit: a small body may unpack to any size.
                while part := unpacking.read1(_PART):
                    if body.write(part) and body.tell() > self.limit:
                        raise self._too_large()
        except EOFError:
            raise self._unusable("the answer breaks off") from None
        except (gzip.BadGzipFile, zlib.error):
            raise self._unusable("the answer is damaged gzip") from None
        return replace(answer, body=body.getvalue(), packed=False)

    def _too_large(self) -> RequestError:
        why = f"larger than {self.limit >> 20} MiB"
        return RequestError(f"{self.shown} cannot be asked: the answer is {why}; {CHECK}", why)

    def _unusable(self, why: str) -> RequestError:
        return RequestError(f"{self.shown} cannot be asked: {why}; {CHECK}", why)


def _unconnected() -> tuple[type[Exception], ...]:
    from urllib3 import exceptions

    return (exceptions.ConnectTimeoutError, exceptions.NewConnectionError, exceptions.SSLError, exceptions.ProxyError)
