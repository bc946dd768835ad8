"""Ask an API server: credentials and TLS by the kubernetes client, one GET at a time, and failures put in words."""

import socket
import ssl
import threading
import time
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct

from kubectl_cgaudit import __version__
from kubectl_cgaudit.collect import wire
from kubectl_cgaudit.collect.credentials import configure, in_cluster
from kubectl_cgaudit.collect.kubeconfig import Connection, Fields, choose
from kubectl_cgaudit.errors import ClusterError, UsageError

_READ_SECONDS = 60.0
_CONNECT_SECONDS = 4.0
_RESOLVE_SECONDS = 3.0
_ALL_ADDRESSES_SECONDS = 6.0
_PART = 1 << 16
_TICK = 0.05
_BUSY = 429
_TRIES = 3
_LONGEST_PAUSE = 5
_CHECK = "check the server in the kubeconfig and the network (VPN, proxy, firewall)"
UNTRUSTED = "its TLS certificate is not trusted"
_LOG_IN = "log in again, or see what kubectl auth whoami says"


class RequestError(ClusterError):
    """A request without a usable answer. `status` is 0 where there was none; `why` is the reason alone."""

    def __init__(self, message: str, why: str, status: int = 0) -> None:
        super().__init__(message)
        self.why = why
        self.status = status


class UnreachableError(RequestError):
    """No connection: another request to the same server will fail as this one did."""


class Answer(Struct, frozen=True):
    """What the server sent."""

    status: int
    body: bytes


class Api:
    """One API server, asked with one identity. Close it after use."""

    def __init__(self, connection: Connection) -> None:
        choice = choose(connection)
        configuration = configure(choice) if choice else in_cluster()
        where = choice.where if choice else "in-cluster service account"
        self._base: str = configuration.host.rstrip("/")
        self.host = _host(self._base)
        self.source = f"cluster {self.host} ({where})"
        self.unverified = self._base.startswith("https://") and not configuration.verify_ssl
        self._read_seconds = connection.timeout_seconds or _READ_SECONDS
        self._connect_seconds: float | None = None
        self._configuration = configuration
        self._headers = _impersonation(connection, choice.user if choice else {})
        self._pool = _pool(configuration)
        # The pool knows best: NO_PROXY may have ruled the configured proxy out.
        self._proxy = str(self._pool.proxy) if self._pool.proxy else None

    def __enter__(self) -> "Api":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.clear()

    def get(self, path: str) -> Answer:
        """GET a path. Raises RequestError when there is no answer, ClusterError when the credentials are refused."""
        for attempt in range(1, _TRIES + 1):
            response = self._request(path)
            pause = response.headers.get("Retry-After", "")
            if response.status != _BUSY or attempt == _TRIES or not pause.isdecimal():
                break
            time.sleep(min(int(pause), _LONGEST_PAUSE))
        if response.status == 401:
            raise self.unauthorized()
        return Answer(response.status, response.data)

    def unauthorized(self) -> ClusterError:
        """The error for credentials that the server does not know."""
        return ClusterError(f"{self.host} refused the credentials (401 Unauthorized); {_LOG_IN}")

    def door(self, seconds: float, limit: int) -> "Door":
        """The API server, to be asked by several threads."""
        return Door(self._pool, self._base, self._all_headers(), self.host, seconds, limit)

    def kubelet_doors(self, insecure: bool, seconds: float, limit: int) -> Callable[[str, int], "Door"]:
        """The kubelets' own ports, past any proxy. Each gets the caller's credentials: none knows impersonation."""
        import urllib3

        tls = _kubelet_tls(self._configuration, insecure)
        headers = self._own_headers()

        def door(host: str, port: int) -> Door:
            # Each kubelet has its own manager: one for all would close the pools of those asked longest ago.
            pool = urllib3.PoolManager(num_pools=1, ssl_context=tls, cert_reqs=tls.verify_mode.name)
            shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            return Door(pool, f"https://{shown}", headers, shown, seconds, limit)

        return door

    def refusal(self, path: str, answer: Answer) -> RequestError:
        """The error for an answer with an HTTP status that is no success."""
        try:
            message = msgspec.json.decode(answer.body, type=wire.Status).message
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            message = ""
        said = _printable(message or repr(excerpt(answer.body)), 300)
        why = f"{answer.status}: {said}"
        shown = path.partition("?")[0]
        return RequestError(
            f"{self.host} answered GET {shown} with {why}; try again, or see what kubectl get --raw {shown} says",
            why,
            answer.status,
        )

    def garbage(self, path: str, answer: Answer, expected: str) -> RequestError:
        """The error for a body that is not what it should be."""
        shown = path.partition("?")[0]
        came = repr(excerpt(answer.body))
        return RequestError(
            f"{self.host} answered GET {shown} with no {expected} but with {came}; "
            "check that the server in the kubeconfig is a Kubernetes API and no login page or proxy",
            f"no {expected} but {came}",
        )

    def _request(self, path: str) -> Any:
        import urllib3

        if self._connect_seconds is None:
            peer = self._proxy or self._base
            self._connect_seconds = min(connect_seconds(peer, _host(peer)), self._read_seconds)
        timeout = urllib3.Timeout(connect=self._connect_seconds, read=self._read_seconds)
        began = time.monotonic()
        try:
            with warnings.catch_warnings():
                # The caller reports `unverified` once; urllib3 would warn on every request.
                warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
                return self._pool.request(
                    "GET",
                    self._base + path,
                    headers=self._all_headers(),
                    timeout=timeout,
                    retries=False,
                    redirect=False,
                )
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            via = f" through the proxy {_host(self._proxy)}" if self._proxy else ""
            connected = time.monotonic() - began >= self._read_seconds
            raise _no_answer(error, self.host + via, self._read_seconds if connected else None) from None

    def _all_headers(self) -> Any:
        headers = self._own_headers()
        for name, value in self._headers:
            # http.client writes Latin-1, the API server reads UTF-8.
            headers.add(name, value.encode().decode("latin-1"))
        return headers

    def _own_headers(self) -> Any:
        import urllib3

        headers = urllib3.HTTPHeaderDict()
        headers["Accept"] = "application/json"
        headers["Accept-Encoding"] = "gzip"
        headers["User-Agent"] = f"kubectl-cgaudit/{__version__}"
        for setting in self._configuration.auth_settings().values():
            headers[setting["key"]] = setting["value"].strip()
        return headers


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
                timeout=urllib3.Timeout(connect=min(_CONNECT_SECONDS, left), read=left),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            try:
                return Answer(response.status, self._body(response, began + left))
            finally:
                response.close()
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            late = time.monotonic() >= began + left - _TICK
            failure = _no_answer(error, self.shown, self.seconds if late else None)
            if response is not None and isinstance(error, urllib3.exceptions.ProtocolError):
                why = "the answer breaks off"
                failure = RequestError(f"{self.shown} cannot be asked: {why}; {_CHECK}", why)
            if isinstance(error, _unconnected()) or (isinstance(error, urllib3.exceptions.TimeoutError) and not late):
                failure = UnreachableError(str(failure), failure.why)
            raise failure from None

    def _body(self, response: Any, ends: float) -> bytes:
        # read1 returns what is there, so that a trickle cannot hold it; urllib3 1.26 has none.
        read = getattr(response, "read1", response.read)
        body = bytearray()
        while part := read(_PART):
            body += part
            if len(body) > self.limit:
                why = f"larger than {self.limit >> 20} MiB"
                raise RequestError(f"{self.shown} cannot be asked: the answer is {why}; {_CHECK}", why)
            if time.monotonic() > ends:
                raise _no_answer(TimeoutError(), self.shown, self.seconds)
        return bytes(body)


def _kubelet_tls(configuration: Any, insecure: bool) -> ssl.SSLContext:
    """The CA of the cluster vouches for its kubelets, or nobody if the caller or the kubeconfig verifies nothing."""
    import urllib3

    verify = configuration.verify_ssl and not insecure
    context = urllib3.util.ssl_.create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if verify else ssl.CERT_NONE)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # As in _pool.
    try:
        if verify and configuration.ssl_ca_cert:
            context.load_verify_locations(configuration.ssl_ca_cert)
        elif verify:
            context.load_default_certs()
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except OSError as error:
        raise ClusterError(
            f"the certificates of the kubeconfig cannot be used: {error.strerror or error}; {_LOG_IN}"
        ) from None
    return context


def _unconnected() -> tuple[type[Exception], ...]:
    from urllib3 import exceptions

    return (exceptions.ConnectTimeoutError, exceptions.NewConnectionError, exceptions.SSLError, exceptions.ProxyError)


def _pool(configuration: Any) -> Any:
    import urllib3
    from kubernetes.client import ApiClient

    try:
        pool = ApiClient(configuration).rest_client.pool_manager
    except (ImportError, ValueError, urllib3.exceptions.HTTPError) as error:
        raise ClusterError(
            f"the proxy {_host(configuration.proxy or '')} cannot be used: {error}; correct proxy-url or HTTPS_PROXY"
        ) from None
    if configuration.verify_ssl and configuration.ssl_ca_cert:
        # Python 3.13 refuses cluster CAs without key identifiers (EKS, old kubeadm), which kubectl accepts.
        context = urllib3.util.ssl_.create_urllib3_context()
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        pool.connection_pool_kw["ssl_context"] = context
    return pool


def excerpt(body: bytes) -> str:
    """The beginning of a body."""
    return body[:60].decode("utf-8", "replace")


def _printable(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else "?" for c in line[:limit])


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def connect_seconds(url: str, shown: str) -> float:
    """How long one connection attempt may take, so that all addresses of the server are tried in a few seconds."""
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
        raise RequestError(f"{shown} cannot be asked: {why}; {_CHECK}", why)
    return min(_CONNECT_SECONDS, _ALL_ADDRESSES_SECONDS / counted[0])


def _no_answer(error: BaseException, host: str, seconds: float | None) -> RequestError:
    causes = _causes(error)
    tls = next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None)
    if isinstance(tls, ssl.SSLCertVerificationError):
        why = f"{UNTRUSTED}: {tls.verify_message.rstrip('.')}"
        step = "check certificate-authority and tls-server-name in the kubeconfig"
    elif tls is not None:
        why = f"TLS failed: {(tls.reason or tls.strerror or 'unknown').replace('_', ' ').lower()}"
        step = "check that the server speaks HTTPS, and the certificates and keys in the kubeconfig"
    elif any(isinstance(cause, socket.gaierror) for cause in causes):
        why, step = "its name cannot be resolved", _CHECK
    elif any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        why, step = "connection refused", "check that it runs and the port in the kubeconfig is right"
    elif not any(isinstance(cause, TimeoutError) for cause in causes):
        texts = [str(getattr(cause, "strerror", "") or cause) for cause in causes]
        why, step = _printable(texts[-1], 200), _CHECK
    elif seconds is None:
        why, step = "no connection within a few seconds", _CHECK
    else:
        why, step = f"no answer within {seconds:g} s", "try again with a longer --request-timeout"
    return RequestError(f"{host} cannot be asked: {why}; {step}", why)


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


def _impersonation(connection: Connection, user: Fields) -> list[tuple[str, str]]:
    name = connection.as_user or user.get("as")
    groups = connection.as_groups or user.get("as-groups") or ()
    extra = user.get("as-user-extra") or {}
    if not name:
        if groups or extra or user.get("as-uid"):
            raise UsageError("a group cannot be impersonated without a user; add --as USER")
        return []
    headers = [("Impersonate-User", str(name))]
    headers += [("Impersonate-Group", str(group)) for group in groups]
    if user.get("as-uid"):
        headers.append(("Impersonate-Uid", str(user["as-uid"])))
    for key, values in extra.items():
        field = "Impersonate-Extra-" + quote(str(key), safe="!#$&'*+^`|")
        headers += [(field, str(value)) for value in values]
    return headers
