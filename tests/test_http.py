"""One request: how long it may take, what comes back, and why nothing does."""

import errno
import gzip
import io
import socket
import ssl
import threading
import tracemalloc
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ProtocolError, ProxyError, ReadTimeoutError
from urllib3.exceptions import SSLError as TlsError

from kubectl_cgaudit.collect import http
from kubectl_cgaudit.collect.http import Answer, Door, RequestError, UnreachableError

MIB = 1 << 20


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(http, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


class Response(io.BytesIO):
    """An answer of urllib3: reading it may take time, or fail."""

    status = 200

    def __init__(self, body: bytes, clock: list[float], *, each: float = 0.0, error: Exception | None = None) -> None:
        super().__init__(body)
        self.headers: dict[str, str] = {}
        self._clock, self._each, self._error = clock, each, error

    def read1(self, size: int | None = -1, /) -> bytes:
        self._clock[0] += self._each
        if self._error:
            raise self._error
        return super().read1(size)


class Pool:
    """A pool that gives one response, or fails after some time."""

    def __init__(self, gives: Response | Exception, clock: list[float], after: float = 0.0) -> None:
        self.gives, self.clock, self.after = gives, clock, after
        self.asked: list[Any] = []

    def request(self, method: str, url: str, **more: Any) -> Response:
        self.asked.append((method, url, more))
        self.clock[0] += self.after
        if isinstance(self.gives, Exception):
            raise self.gives
        return self.gives


def opened(pool: Pool, seconds: float = 10.0, limit: int = MIB, connect: float | None = None) -> Door:
    return Door(pool, "https://host", {"X": "y"}, "host", seconds, limit, connect)


@pytest.mark.parametrize(
    ("seconds", "connect", "ends", "read", "connecting"),
    [
        (10.0, None, 103.0, 3.0, 3.0),
        (2.0, None, 900.0, 2.0, 2.0),
        (60.0, None, 900.0, 60.0, http.CONNECT_SECONDS),
        (60.0, 1.5, 900.0, 60.0, 1.5),
        (60.0, 1.5, 101.0, 1.0, 1.0),
        (60.0, None, 99.0, 0.001, 0.001),
    ],
)
def test_no_request_waits_longer_than_the_first_of_its_ends(
    seconds: float, connect: float | None, ends: float, read: float, connecting: float, clock: list[float]
) -> None:
    pool = Pool(Response(b"", clock), clock)
    opened(pool, seconds, connect=connect).get("/x", ends)
    ((method, url, more),) = pool.asked
    assert (method, url, more["headers"]) == ("GET", "https://host/x", {"X": "y"})
    assert (more["timeout"].read_timeout, more["timeout"].connect_timeout) == (read, connecting)
    # Neither urllib3 asks again, nor is a token sent to where the server points, nor is a body read without its limits.
    # What is packed is unpacked later, by whoever needs it.
    assert [more[flag] for flag in ("retries", "redirect", "preload_content", "decode_content")] == [False] * 4


@pytest.mark.parametrize(("headers", "said"), [({}, ""), ({"Retry-After": "7"}, "7")])
def test_an_answer_has_its_status_and_when_to_come_again(
    headers: dict[str, str], said: str, clock: list[float]
) -> None:
    response = Response(b"body", clock)
    response.status, response.headers = 429, headers
    assert opened(Pool(response, clock)).get("/", 900.0) == Answer(429, b"body", said, bounded=False)
    assert response.closed


@pytest.mark.parametrize(
    ("headers", "bounded"),
    [
        ({"Content-Length": "4"}, True),
        ({"Transfer-Encoding": "Chunked"}, True),
        ({"Transfer-Encoding": "identity"}, False),
        ({"Content-Type": "text/plain"}, False),
    ],
)
def test_an_answer_says_whether_its_end_can_be_seen(headers: dict[str, str], bounded: bool, clock: list[float]) -> None:
    response = Response(b"body", clock)
    response.headers = headers
    assert opened(Pool(response, clock)).get("/", 900.0) == Answer(200, b"body", bounded=bounded)


def test_a_body_may_be_as_large_as_its_limit_and_no_larger(clock: list[float]) -> None:
    assert len(opened(Pool(Response(b"x" * 3 * MIB, clock), clock), limit=3 * MIB).get("/", 900.0).body) == 3 * MIB
    response = Response(b"x" * (3 * MIB + 1), clock)
    with pytest.raises(RequestError, match=r"^host cannot be asked: the answer is larger than 3 MiB; ") as error:
        opened(Pool(response, clock), limit=3 * MIB).get("/", 900.0)
    assert (error.value.why, response.closed) == ("larger than 3 MiB", True)


@pytest.mark.parametrize("named", ["gzip", "x-gzip", " GZIP "])
def test_a_packed_body_is_unpacked_up_to_the_same_limit(named: str, clock: list[float]) -> None:
    def packed(data: bytes) -> Door:
        response = Response(data, clock)
        response.headers = {"Content-Encoding": named}
        return opened(Pool(response, clock))

    whole = gzip.compress(b"x" * MIB)
    assert packed(whole).ask("/", 900.0) == Answer(200, whole, packed=True)
    assert packed(whole).get("/", 900.0) == Answer(200, b"x" * MIB)
    assert packed(gzip.compress(b"a") + gzip.compress(b"b")).get("/", 900.0) == Answer(200, b"ab")
    assert packed(b"").get("/", 900.0) == Answer(200, b"", bounded=False)
    for data, why in (
        (gzip.compress(b"x" * (MIB + 1)), "larger than 1 MiB"),
        (whole + b"more", "the answer is damaged gzip"),
        (whole[:-9], "the answer breaks off"),
        (b"no gzip", "the answer is damaged gzip"),
    ):
        with pytest.raises(
            RequestError, match=r"^host cannot be asked: .*; check the server in the kubeconfig"
        ) as error:
            packed(data).get("/", 900.0)
        assert (error.value.why, error.value.silent) == (why, False)


def test_what_unpacks_to_any_size_is_never_held(clock: list[float]) -> None:
    response = Response(gzip.compress(b"\0" * (256 * MIB), 9), clock)
    response.headers = {"Content-Encoding": "gzip"}
    tracemalloc.start()
    try:
        with pytest.raises(RequestError, match="larger than 2 MiB"):
            opened(Pool(response, clock), limit=2 * MIB).get("/", 900.0)
        assert tracemalloc.get_traced_memory()[1] < 16 * MIB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "de\x1bflate"])
def test_an_encoding_nobody_asked_for_is_named(encoding: str, clock: list[float]) -> None:
    response = Response(b"x", clock)
    response.headers = {"Content-Encoding": encoding}
    with pytest.raises(RequestError) as error:
        opened(Pool(response, clock)).get("/", 900.0)
    shown = encoding.replace("\x1b", "?")
    assert error.value.why == f"the answer is packed as {shown}, and gzip was asked for"
    response = Response(b"x", clock)
    response.headers = {"Content-Encoding": "identity"}
    assert opened(Pool(response, clock)).get("/", 900.0).body == b"x"


def test_a_body_that_trickles_ends_with_the_time(clock: list[float]) -> None:
    response = Response(b"x" * 5 * MIB, clock, each=4.0)
    with pytest.raises(RequestError) as error:
        opened(Pool(response, clock), limit=8 * MIB).get("/", 900.0)
    assert (error.value.why, error.value.silent) == ("no answer within 10 s", True)
    # After 4 s, 8 s and 12 s: what came in time is not read on for ever.
    assert (clock[0], response.closed) == (112.0, True)


def test_headers_that_trickle_end_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_GRACE", 0.05)
    over = threading.Event()

    class Trickling(Pool):
        def request(self, method: str, url: str, **more: Any) -> Response:
            # As urllib3 does it: each byte of a header may take as long as the whole answer.
            over.wait(20)
            return Response(b"", [0.0])

    try:
        with pytest.raises(RequestError) as error:
            opened(Trickling(OSError(), []), seconds=0.05).get("/", float("inf"))
    finally:
        over.set()
    assert (error.value.why, error.value.silent) == ("no answer within 0.05 s", True)
    assert not isinstance(error.value, UnreachableError)


POOL = urllib3.HTTPConnectionPool("host")


READ = ReadTimeoutError(POOL, "/", "timed out")


FEW, TEN = "no connection within a few seconds", "no answer within 10 s"


@pytest.mark.parametrize(
    ("error", "after", "why", "silent", "unreachable"),
    [
        (TimeoutError(), 10.0, TEN, True, False),
        (TimeoutError(), 9.96, TEN, True, False),
        (TimeoutError(), 9.9, FEW, False, False),
        (READ, 10.0, "", True, False),
        (READ, 1.0, "", False, True),
        (ConnectTimeoutError(), 1.0, "", False, True),
        (ConnectTimeoutError(), 10.0, "", False, True),
        (NewConnectionError(POOL, "no way"), 0.0, "", False, True),
        (TlsError("bad"), 0.0, "", False, True),
        (ProxyError("bad", OSError()), 0.0, "", False, True),
        (ProtocolError("gone"), 0.0, "gone", False, False),
        (OSError(5, "Input/output error"), 0.0, "Input/output error", False, False),
        (ValueError("bad"), 0.0, "bad", False, False),
    ],
)
def test_what_fails_on_the_way(
    error: Exception, after: float, why: str, silent: bool, unreachable: bool, clock: list[float]
) -> None:
    with pytest.raises(RequestError) as caught:
        opened(Pool(error, clock, after)).get("/", 900.0)
    found = caught.value
    assert (found.silent, isinstance(found, UnreachableError)) == (silent, unreachable)
    assert found.why == (why or found.why)
    assert str(found).startswith(f"host cannot be asked: {found.why}; ")


@pytest.mark.parametrize(
    ("error", "why"),
    [(ProtocolError("gone"), "the answer breaks off"), (OSError(5, "Input/output error"), "Input/output error")],
)
def test_an_answer_that_breaks_off_says_so_and_may_be_asked_for_again(
    error: Exception, why: str, clock: list[float]
) -> None:
    response = Response(b"", clock, error=error)
    with pytest.raises(RequestError) as caught:
        opened(Pool(response, clock)).get("/", 900.0)
    assert (caught.value.why, caught.value.silent, response.closed) == (why, False, True)
    assert not isinstance(caught.value, UnreachableError)


def status(answer: Answer) -> int:
    return answer.status


def tls(reason: str | None, strerror: str | None = None) -> ssl.SSLError:
    error = ssl.SSLError(1, strerror) if strerror else ssl.SSLError()
    error.reason = reason  # type: ignore[misc]
    return error


@pytest.mark.parametrize(
    ("error", "seconds", "why"),
    [
        (tls("WRONG_VERSION_NUMBER", "text"), 1.0, "TLS failed: wrong version number"),
        (tls(None, "some_text"), 1.0, "TLS failed: some text"),
        (tls(None), 1.0, "TLS failed: unknown"),
        (socket.gaierror(-2, "Name or service not known"), None, "its name cannot be resolved"),
        (ConnectionRefusedError(111, "refused"), None, "connection refused"),
        (OSError(113, "No route to host"), None, "No route to host"),
        (
            ConnectionResetError(104, "Connection reset by peer"),
            None,
            "the connection was closed before an answer came",
        ),
        (OSError(errno.ENOTCONN, "not connected"), None, "the connection was closed before an answer came"),
        (ValueError("a\nb\x1b[31m"), None, "a b?[31m"),
        (ValueError("x" * 300), None, "x" * 200),
        (TimeoutError(), None, "no connection within a few seconds"),
        (TimeoutError(), 2.5, "no answer within 2.5 s"),
        (TimeoutError(), 0.0, "no answer within 0 s"),
    ],
)
def test_why_there_is_no_answer(error: Exception, seconds: float | None, why: str) -> None:
    found = http.no_answer(error, "host", seconds)
    assert str(found).startswith(f"host cannot be asked: {why}; ")
    assert found.silent == (seconds is not None)
    outer = ValueError("outer")
    outer.__cause__ = error
    if not isinstance(error, ValueError):
        assert str(http.no_answer(outer, "host", seconds)) == str(found)


def test_a_bad_certificate_says_what_is_wrong_without_a_full_stop() -> None:
    error = ssl.SSLCertVerificationError(1, "failed")
    error.verify_message = "certificate has expired."  # type: ignore[misc]
    assert str(http.no_answer(error, "host", None)) == (
        "host cannot be asked: its TLS certificate is not trusted: certificate has expired; "
        "check certificate-authority and tls-server-name in the kubeconfig"
    )
