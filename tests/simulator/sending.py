"""Put an answer on the wire, whole or with what is to go wrong while it is sent."""

import os
import socket
import struct
import threading

from tests.simulator.faults import Fault, Reply

# net/http writes what is compressed in pieces of its buffer, and a longer body as it comes.
_CHUNK = 2048
_CHUNKED_FROM = 2048
_LETTER = 0.02
"""Seconds."""
_PHRASES = {
    200: "OK", 201: "Created", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 410: "Gone", 429: "Too Many Requests", 500: "Internal Server Error",
    503: "Service Unavailable",
}  # fmt: skip


def send(connection: socket.socket, reply: Reply, stopped: threading.Event) -> bool:
    """Send it; False when the connection cannot be used after it."""
    fault = reply.fault
    if not fault:
        # A long body is not copied for its frame.
        long = _is_chunked(reply) and "Content-Encoding" not in reply.headers
        pieces = (b"%x\r\n" % len(reply.body), reply.body, b"\r\n0\r\n\r\n") if long else (_framed(reply),)
        connection.sendall(head(reply) + pieces[0])
        for piece in pieces[1:]:
            connection.sendall(piece)
        return True
    whole = head(reply) + _framed(reply)
    if fault.kind == "half":
        whole = head(reply, chunked=False) + reply.body
    elif fault.kind == "half-chunk":
        whole = head(reply, chunked=True) + _chunks(reply.body, _CHUNK)
    start = len(head(reply, chunked=False if fault.kind == "half" else True if fault.kind == "half-chunk" else None))
    cut = start + int((len(whole) - start) * fault.part)
    if fault.kind == "reset":
        connection.sendall(whole[: cut if fault.part else 0])
        reset(connection)
        return False
    if fault.kind in ("half", "half-chunk"):
        connection.sendall(whole[:cut])
        return False
    _slowly(connection, fault, whole, cut, stopped)
    return True


def _slowly(connection: socket.socket, fault: Fault, whole: bytes, cut: int, stopped: threading.Event) -> None:
    if fault.kind == "drip":
        step = -(-len(whole) // fault.count)
        for at in range(0, len(whole), step):
            connection.sendall(whole[at : at + step])
            stopped.wait(fault.seconds / fault.count)
        return
    if fault.kind == "trickle":
        status, _, rest = whole.partition(b"\r\n")
        connection.sendall(status + b"\r\nX-Trickle: ")
        for _ in range(int(fault.seconds / _LETTER)):
            connection.sendall(b"a")
            if stopped.wait(_LETTER):
                break
        connection.sendall(b"\r\n" + rest)
        return
    cut = cut if fault.kind == "stall-body" else 0
    connection.sendall(whole[:cut])
    stopped.wait(fault.seconds)
    connection.sendall(whole[cut:])


def head(reply: Reply, chunked: bool | None = None) -> bytes:
    """Status line and headers. No clock: the date is always the same."""
    if chunked is None:
        chunked = _is_chunked(reply)
    headers = {
        "Audit-Id": "00000000-0000-4000-a000-000000000000",
        "Cache-Control": "no-cache, private",
        "Content-Type": "application/json",
        **reply.headers,
        "Date": "Sat, 21 Nov 2026 00:58:14 GMT",
        **({"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(len(reply.body))}),
    }
    lines = [f"HTTP/1.1 {reply.status} {_PHRASES.get(reply.status, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def _is_chunked(reply: Reply) -> bool:
    return reply.status == 200 and len(reply.body) > _CHUNKED_FROM


def _framed(reply: Reply) -> bytes:
    if not _is_chunked(reply):
        return reply.body
    return _chunks(reply.body, _CHUNK if "Content-Encoding" in reply.headers else len(reply.body))


def _chunks(body: bytes, size: int) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join([b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]) + b"0\r\n\r\n"


def reset(connection: socket.socket) -> None:
    """Close with a reset (RST) instead of an end (FIN)."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    # Past the object: the server would say goodbye first.
    os.close(connection.detach())
