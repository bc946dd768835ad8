"""One request to a server that several threads may ask at the same time."""

import io
import time
from typing import Any

from msgspec import Struct

from kubectl_cgaudit.collect.failure import CHECK, RequestError, UnreachableError, no_answer

CONNECT_SECONDS = 4.0
_PART = 1 << 20
_TICK = 0.05


class Answer(Struct, frozen=True):
    """What the server sent."""

    status: int
    body: bytes
    retry_after: str = ""
    """The header of that name."""


class Door(Struct, frozen=True):
    """A server that threads may ask at the same time: nothing in it changes, and every answer has its limits."""

    pool: Any
    base: str
    headers: Any
    shown: str
    seconds: float
    """For a whole answer."""
    limit: int
    """The largest body."""
    connect: float | None = None
    """Seconds for one connection attempt; None for CONNECT_SECONDS."""

    def get(self, path: str, ends: float) -> Answer:
        """GET a path. Raises RequestError when the answer is not whole in time (time.monotonic), or too large."""
        import urllib3

        began = time.monotonic()
        left = max(min(self.seconds, ends - began), 0.001)
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
            )
            try:
                body = self._body(response, began + left)
                return Answer(response.status, body, response.headers.get("Retry-After", ""))
            finally:
                response.close()
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            late = time.monotonic() >= began + left - _TICK
            failure = no_answer(error, self.shown, self.seconds if late else None)
            if response is not None and isinstance(error, urllib3.exceptions.ProtocolError):
                why = "the answer breaks off"
                failure = RequestError(f"{self.shown} cannot be asked: {why}; {CHECK}", why)
            if isinstance(error, _unconnected()) or (isinstance(error, urllib3.exceptions.TimeoutError) and not late):
                failure = UnreachableError(str(failure), failure.why)
            raise failure from None

    def _body(self, response: Any, ends: float) -> bytes:
        # read1 returns what is there, so that a trickle cannot hold it; urllib3 1.26 has none.
        read = getattr(response, "read1", response.read)
        body = io.BytesIO()
        while part := read(_PART):
            if body.write(part) and body.tell() > self.limit:
                why = f"larger than {self.limit >> 20} MiB"
                raise RequestError(f"{self.shown} cannot be asked: the answer is {why}; {CHECK}", why)
            if time.monotonic() > ends:
                raise no_answer(TimeoutError(), self.shown, self.seconds)
        return body.getvalue()


def _unconnected() -> tuple[type[Exception], ...]:
    from urllib3 import exceptions

    return (exceptions.ConnectTimeoutError, exceptions.NewConnectionError, exceptions.SSLError, exceptions.ProxyError)
