"""A small simulated cluster, and a client that sees what came over the wire."""

import gzip
import http.client
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from tests.simulator import Cluster, Simulator, Size

CLUSTER = Cluster(Size(12, 230), seed=3)


class Got:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.raw = response.status, response.headers, response.read()

    @property
    def json(self) -> Any:
        zipped = self.headers.get("Content-Encoding") == "gzip"
        return json.loads(gzip.decompress(self.raw) if zipped else self.raw)


def connect(url: str, ca: Path | None = None, seconds: float = 20) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=str(ca))
        return http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=seconds, context=context)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=seconds)


def get(at: Simulator | str, path: str, **headers: str) -> Got:
    url, ca = (at.url, at.ca) if isinstance(at, Simulator) else (at, None)
    connection = connect(url, ca)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()})
        return Got(connection.getresponse())
    finally:
        connection.close()


def pages(it: Simulator, path: str, limit: int, more: str = "", **headers: str) -> list[Any]:
    found, token = [], ""
    while True:
        after = f"&continue={quote(token)}" if token else ""
        found.append(get(it, f"{path}?limit={limit}{more}{after}", **headers).json)
        token = found[-1]["metadata"].get("continue", "")
        if not token:
            return found


def names(page: Any) -> list[str]:
    return [f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}" for item in page["items"]]


PODS = [f"{pod.namespace}/{pod.name}" for pod in CLUSTER.pods]
