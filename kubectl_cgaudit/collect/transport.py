"""Ask an API server: credentials and TLS by the kubernetes client, one GET at a time, again where that may help."""

import threading
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from kubectl_cgaudit import __version__
from kubectl_cgaudit.collect import impersonation, pools, wire
from kubectl_cgaudit.collect.credentials import in_cluster, log_in, moment, own_namespace
from kubectl_cgaudit.collect.http import (
    Ahead,
    Answer,
    Attempts,
    Door,
    RequestError,
    UnreachableError,
    connect_seconds,
    excerpt,
    printable,
)
from kubectl_cgaudit.collect.kubeconfig import Connection, choose
from kubectl_cgaudit.collect.patience import PASSING, TRIES, Patience
from kubectl_cgaudit.collect.pools import host_of
from kubectl_cgaudit.collect.redaction import Redaction
from kubectl_cgaudit.errors import ClusterError

_READ_SECONDS = 60.0
_LARGEST = 256 << 20
"""Of a page, in bytes: 500 pods of 500 KiB each, of which none comes near."""
_AFTER_SILENCE = 2
_IN_FLIGHT = 2
_UNAUTHORIZED = 401
_LOG_IN = "log in again, or see what kubectl auth whoami says"


_Understood = TypeVar("_Understood")


def _nowhere(_answer: Answer) -> None:
    return None


class Api:
    """One API server, asked with one identity. Close it after use."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._seconds = connection.timeout_seconds or _READ_SECONDS
        # Lists the audit can do without never use up what the others may wait.
        self._patience = {False: Patience(), True: Patience()}
        self._door: Door | None = None
        self._lock = threading.Lock()
        self._in_flight = threading.BoundedSemaphore(_IN_FLIGHT)
        self._ahead: dict[str, Ahead[tuple[Door, Answer]]] = {}
        self._met = self._closed = False
        self.unproven = False
        """Whether the credentials came by renewing and have not counted yet."""
        self._locked_out = ""
        self._attempts = Attempts()
        self._secrets: set[str] = set()
        self._connect: float | None = None
        self._log_in()

    def _log_in(self) -> None:
        choice = choose(self._connection)
        login = log_in(choice) if choice else in_cluster()
        configuration = login.configuration
        where = choice.where if choice else "in-cluster service account"
        self._base: str = configuration.host.rstrip("/")
        self.host = host_of(self._base)
        self.source = f"cluster {self.host} ({where})"
        self.named = choice.named if choice else {}
        self.namespace = self._connection.home or (choice.namespace if choice else own_namespace())
        self.encrypted = choice.encrypted if choice else True
        """Whether the server is asked with https. Where it is not, no credentials are sent."""
        self.unverified = self.encrypted and not configuration.verify_ssl
        self._configuration = configuration
        self._headers = impersonation.headers(self._connection, choice.user if choice else {})
        self._pool = pools.to_server(login)
        self._proxy: str | None = configuration.proxy
        self._expires = login.expires
        # A late answer may repeat credentials that were renewed meanwhile.
        self._secrets.update(login.secrets())
        self.hide = Redaction(self._secrets)
        """Take the credentials out of a text of the server or a kubelet."""

    def __enter__(self) -> "Api":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        self._ahead.clear()
        self._attempts.end()
        self._pool.clear()

    def fetch(
        self,
        path: str,
        understand: Callable[[Answer], _Understood],
        *,
        spare: bool = False,
        leads_to: Callable[[Answer], str | None] = _nowhere,
    ) -> _Understood:
        """GET a path and understand the answer, again where what went wrong may pass; `spare` waits on its own budget.

        `leads_to` may guess from the answer, packed as it came, which path is fetched next: that is asked for while this
        answer is worked on. `understand` raises RequestError for a body that is none. Raises RequestError when there is no
        usable answer, with status 401 where the credentials were good once and are refused, also after they were renewed, or
        cannot be; ClusterError where they never were good.
        """
        patience = self._patience[spare]
        attempt, renewed = 0, False
        following: str | None = None
        while True:
            attempt += 1
            if following:
                # What a damaged answer led to may be of a list that has another token now.
                self._ahead.pop(following, None)
            try:
                ahead = self._ahead.pop(path, None)
                door, answer = ahead.result() if ahead else self._ask(path)
                if answer.status == _UNAUTHORIZED:
                    if renewed or not self._were_good(door):
                        raise self._refused(self._after_refusal())
                    # Tokens expire while a large cluster is read.
                    renewed = True
                    self.renew(door)
                    continue
                following = leads_to(answer)
                if following and following != path:
                    self._ahead[following] = Ahead(partial(self._ask, following))
                answer = door.unpacked(answer)
                if answer.status not in PASSING:
                    understood = understand(answer)
                    self._prove(door)
                    return understood
                if not patience.waits(attempt, answer.retry_after):
                    return understand(answer)
            except RequestError as failure:
                if not self._waits(failure, attempt, patience):
                    raise
            except ClusterError as error:
                if not renewed:
                    raise
                raise self._refused(f", and no others can be had: {error}") from None

    def _were_good(self, refused: Door) -> bool:
        """Whether refused credentials counted once. A log-in whose result never did may ask somebody, for each list anew."""
        with self._lock:
            return self.encrypted and self._met and not (self.unproven and self._pool is refused.pool)

    def _prove(self, door: Door) -> None:
        with self._lock:
            self._met = True
            if self._pool is door.pool:
                self.unproven = False

    def _waits(self, failure: RequestError, attempt: int, patience: Patience) -> bool:
        """Wait after a failed attempt; False, at once, where another would not help or was the last one."""
        if failure.final or failure.status == _UNAUTHORIZED:
            return False
        # A server that was never met is more likely wrong than away.
        if isinstance(failure, UnreachableError) and not self._met:
            return False
        # Silence has cost a whole timeout each time.
        if patience.waits(attempt, tries=_AFTER_SILENCE if failure.silent else TRIES):
            return True
        if failure.silent:
            patience.spend(attempt * self._seconds)
        return False

    def _after_refusal(self) -> str:
        """What may be wrong with refused credentials, and what to do."""
        now = time.time()
        if self._expires is not None and self._expires <= now:
            ended = f"they ended at {moment(self._expires)}, and this machine's clock is at {moment(now)}"
            return f": {ended}; log in again, or correct the clock"
        return f"; {_LOG_IN}"

    def _refused(self, more: str) -> ClusterError:
        """The error for credentials that count no more: once something was read, what is missing is a part of it."""
        said = f"{self.host} refused the credentials (401 Unauthorized){more}"
        if not self.encrypted:
            wanted = f"{self.host} wants credentials (401 Unauthorized), and none are sent over http://"
            said = f"{wanted}; correct server in the kubeconfig to https://"
        return RequestError(said, said.rpartition("; ")[0], _UNAUTHORIZED) if self._met else ClusterError(said)

    def _ask(self, path: str) -> tuple[Door, Answer]:
        """The answer as it came, and what it came through: credentials may be renewed meanwhile."""
        with self._in_flight:
            if self._closed:
                raise ClusterError(f"{self.host} is asked no more")
            door = self._asked()
            return door, door.ask(path, time.monotonic() + self._seconds)

    @property
    def impersonated(self) -> str:
        """Who the API server takes the caller for; empty for nobody else."""
        return self._headers[0][1] if self._headers else ""

    def renew(self, refused: Door) -> None:
        """Log in again. Raises ClusterError where that cannot be done."""
        with self._lock:
            if self._locked_out:
                # Who was asked to log in and did not is not asked again for each list.
                raise ClusterError(self._locked_out)
            # Another thread may have met the same refusal, and logged in already.
            if self._pool is refused.pool:
                self._pool.clear()
                try:
                    self._log_in()
                except ClusterError as error:
                    self._locked_out = str(error)
                    raise
                self._door = None
                self.unproven = True

    def door(self, seconds: float, limit: int) -> Door:
        """The API server, to be asked by several threads."""
        return self._made_door(self._pool, self._base, self._all_headers(), self.host, seconds, limit, self._connect)

    def _made_door(
        self, pool: Any, base: str, headers: Any, shown: str, seconds: float, limit: int, connect: float | None = None
    ) -> Door:
        return Door(pool, base, headers, shown, seconds, limit, connect, self.hide, self._attempts)

    def kubelet_doors(self, insecure: bool, seconds: float, limit: int) -> Callable[[str, int], Door]:
        """The kubelets' own ports, past any proxy. Each gets the caller's credentials: none knows impersonation.

        After they were renewed a door has the new ones, and headers that are another object.
        """

        def reach() -> tuple[Any, Callable[[], Any], Any]:
            return self._configuration, pools.to_kubelets(self._configuration, insecure), self._own_headers()

        reached = reach()
        lock = threading.Lock()

        def door(host: str, port: int) -> Door:
            nonlocal reached
            with lock:
                if reached[0] is not self._configuration:
                    reached = reach()
                _, pool, headers = reached
            shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            return self._made_door(pool(), f"https://{shown}", headers, shown, seconds, limit)

        return door

    def refusal(self, path: str, answer: Answer) -> RequestError:
        """The error for an answer with an HTTP status that is no success."""
        if answer.location and 300 <= answer.status < 400:
            return self._redirect(path, answer)
        try:
            message = msgspec.json.decode(answer.body, type=wire.Status).message
        except wire.UNDECODABLE:
            message = ""
        said = printable(message or repr(excerpt(answer.body, self.hide)), 300, self.hide)
        why = f"{answer.status}: {said}"
        shown = path.partition("?")[0]
        return RequestError(
            f"{self.host} answered GET {shown} with {why}; try again, or see what kubectl get --raw {shown} says",
            why,
            answer.status,
        )

    def _redirect(self, path: str, answer: Answer) -> RequestError:
        """The error for an answer that points elsewhere, where the credentials are not sent."""
        why = f"{answer.status}: it points to {printable(answer.location, 200, self.hide)}"
        shown = path.partition("?")[0]
        return RequestError(
            f"{self.host} answered GET {shown} with {why}; correct server in the kubeconfig", why, answer.status
        )

    def garbage(self, path: str, answer: Answer, expected: str) -> RequestError:
        """The error for a body that is not what it should be."""
        shown = path.partition("?")[0]
        came = repr(excerpt(answer.body, self.hide))
        return RequestError(
            f"{self.host} answered GET {shown} with no {expected} but with {came}; "
            "check that the server in the kubeconfig is a Kubernetes API and no login page or proxy",
            f"no {expected} but {came}",
        )

    def _asked(self) -> Door:
        """The server, as the latest credentials reach it."""
        with self._lock:
            if self._door is None:
                peer = self._proxy or self._base
                # Whoever says how long a request may take means its beginning too.
                said = self._connection.timeout_seconds
                self._connect = said or min(connect_seconds(peer, host_of(peer)), self._seconds)
                shown = self.host + (f" through the proxy {host_of(self._proxy)}" if self._proxy else "")
                headers = self._all_headers()
                self._door = self._made_door(
                    self._pool, self._base, headers, shown, self._seconds, _LARGEST, self._connect
                )
            return self._door

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
            value = setting["value"].strip()
            if not (value.isascii() and value.isprintable()):
                # The value itself is a secret: http.client would have it in its message.
                raise ClusterError(
                    f"the token holds a line break or another character that a token cannot have; {_LOG_IN}"
                )
            headers[setting["key"]] = value
        return headers
