"""The least that a client can do: page through the lists, decode them, or load the file. Run as a process of its own."""

import os
import re
import sys
import zlib
from http.client import HTTPConnection
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import urlsplit

LISTS = (
    ("Node", "/api/v1/nodes?limit=500"),
    ("Pod", "/api/v1/pods?limit=500"),
    ("RuntimeClass", "/apis/node.k8s.io/v1/runtimeclasses?limit=500"),
    ("ReplicaSet", "/apis/apps/v1/replicasets?limit=500"),
    ("Job", "/apis/batch/v1/jobs?limit=500"),
    ("Event", "/api/v1/events?limit=500&fieldSelector=reason%3DCgroupV1"),
)
"""The same requests as an audit's."""
_CONTINUE = re.compile(rb'"continue":"([^"]+)"')
_HEAD = 2000
_GZIP = 31


class Client:
    """One connection, one request after the other."""

    def __init__(self, url: str) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=60)

    def get(self, path: str, token: str) -> bytes:
        """The body of a page as it came. Raises RuntimeError when there is none."""
        path += f"&continue={token}" if token else ""
        self._connection.request("GET", path, headers={"Accept": "application/json", "Accept-Encoding": "gzip"})
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}")
        return body


def raw(url: str) -> None:
    """Download every page of every list; of each only the head is unpacked, for the continue token is in it."""
    client = Client(url)
    for _, path in LISTS:
        token: str | None = ""
        while token is not None:
            body = client.get(path, token)
            head = zlib.decompressobj(_GZIP).decompress(body, _HEAD) if body[:2] == b"\x1f\x8b" else body[:_HEAD]
            found = _CONTINUE.search(head)
            token = found[1].decode() if found else None


def decode(url: str) -> None:
    """Download, unpack and decode every page into the frozen types, and drop them."""
    import msgspec

    from tools.bench import frozen_types as wire

    item = TypeVar("item")

    class Page(msgspec.Struct, Generic[item]):
        items: list[item] | None = None
        metadata: wire.ListMetadata | None = None

    types = {
        "Node": Page[wire.Node],
        "Pod": Page[wire.Pod],
        "RuntimeClass": Page[wire.RuntimeClass],
        "ReplicaSet": Page[wire.Owned],
        "Job": Page[wire.Owned],
        "Event": Page[wire.Event],
    }
    client = Client(url)
    for kind, path in LISTS:
        decoder = msgspec.json.Decoder(types[kind])
        token: str | None = ""
        while token is not None:
            body = client.get(path, token)
            page = decoder.decode(zlib.decompress(body, _GZIP) if body[:2] == b"\x1f\x8b" else body)
            token = page.metadata.continue_ if page.metadata else None


def loads(path: str) -> None:
    """`orjson.loads` on a file; what it built is not torn down again."""
    import orjson

    orjson.loads(Path(path).read_bytes())
    os._exit(0)


if __name__ == "__main__":
    {"raw": raw, "decode": decode, "loads": loads}[sys.argv[1]](sys.argv[2])
