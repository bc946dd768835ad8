"""The simulated API server: real HTTP/1.1 with connections kept alive, and TLS if asked."""

import socket
import ssl
import sys
import tempfile
import threading
from collections.abc import Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from tests.simulator import access
from tests.simulator.access import Credentials
from tests.simulator.answers import Seen, Server
from tests.simulator.cluster import Cluster
from tests.simulator.faults import Fault, Faults
from tests.simulator.pages import Store
from tests.simulator.sending import send

_NOTED = ("User-Agent", "Accept", "Accept-Encoding", "Authorization", "Impersonate-User", "Impersonate-Group")


class _Http(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], simulator: "Simulator") -> None:
        super().__init__(address, _Handler)
        self.simulator = simulator
        self.open: set[socket.socket] = set()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no fault of the server; anything else is one of this code."""
        error = sys.exc_info()[1]
        if error and not isinstance(error, OSError):
            self.simulator.failures.append(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        self._http = cast(_Http, self.server)
        self._http.open.add(self.request)
        super().setup()

    def finish(self) -> None:
        super().finish()
        self._http.open.discard(self.request)

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _answer(self, body: bytes) -> None:
        simulator = self._http.simulator
        noted = {name: self.headers[name] for name in _NOTED if name in self.headers}
        seen = Seen(self.command, self.path, noted)
        simulator.log.append(seen)
        reply = simulator.server.answer(seen, {name.title(): text for name, text in self.headers.items()}, body)
        if seen.page is not None and simulator.pace:
            simulator.stopped.wait(simulator.pace)
        if not send(self.connection, reply, simulator.stopped):
            self.close_connection = True
            return
        seen.status = reply.status

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Simulator.log has it."""


class Simulator:
    """A cluster behind a server, in a thread, while the context lasts.

    `token`: the bearer token that is asked for, replaced after `token_uses` requests (0: only by rotate, or by the fault
    `expire`). `pace`: seconds that every page of a list takes. `port` 0 is any that is free.
    """

    def __init__(
        self,
        cluster: Cluster,
        faults: Iterable[Fault] = (),
        token: str = "",
        token_uses: int = 0,
        tls: bool = False,
        pace: float = 0.0,
        port: int = 0,
        store: Store | None = None,
    ) -> None:
        self.cluster = cluster
        self.store = store or Store(cluster)
        self._own_store = store is None
        self.faults = Faults(faults)
        self.credentials = Credentials(token, token_uses)
        self.server = Server(self.store, self.faults, self.credentials)
        self.pace = pace
        self.log: list[Seen] = []
        """The requests seen, in the order they came."""
        self.failures: list[BaseException] = []
        self.stopped = threading.Event()
        self.ca: Path | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="simulator-")
        self._tls = tls
        self._port = port

    def __enter__(self) -> "Simulator":
        self._http = _Http(("127.0.0.1", self._port), self)
        scheme = "https" if self._tls else "http"
        if self._tls:
            self.ca, key = access.certificate(Path(self._folder.name))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.ca, key)
            # The handshake is left to the connection's own thread: a silent client keeps nobody waiting.
            self._http.socket = context.wrap_socket(
                self._http.socket, server_side=True, do_handshake_on_connect=False, suppress_ragged_eofs=True
            )
        self.port: int = self._http.server_address[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), name="simulator")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopped.set()
        self._http.shutdown()
        self._thread.join()
        for each in list(self._http.open):
            with suppress(OSError):  # Closed meanwhile.
                each.shutdown(socket.SHUT_RDWR)
        self._http.server_close()
        if self._own_store:
            self.store.close()
        self._folder.cleanup()
        if self.failures and not error:
            raise self.failures[0]

    def kubeconfig(self, path: Path, auth: str = "token") -> Path:
        """Write a kubeconfig for this server. `auth`: token, file, exec."""
        # The certificate goes with the server's folder, so the kubeconfig gets a copy.
        ca = path.with_suffix(".crt") if self.ca else None
        if ca and self.ca:
            ca.write_bytes(self.ca.read_bytes())
        return access.kubeconfig(path, self.url, ca, self.credentials, auth)
