"""How long one connection attempt may take."""

import socket
import threading
from urllib.parse import urlsplit

from kubectl_cgaudit.collect.failure import CHECK, RequestError

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
