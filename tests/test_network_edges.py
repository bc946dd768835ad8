"""What a single condition decides while a server is asked: ends of waiting, what is tried again, whom to trust, what is shown."""

import io
import json
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    NewConnectionError,
    ProtocolError,
    ProxyError,
    ReadTimeoutError,
)
from urllib3.exceptions import SSLError as TlsError

from kubectl_cgaudit.collect import credentials, door, exec_plugin, kubelet, live, transport
from kubectl_cgaudit.collect.assemble import Assembly
from kubectl_cgaudit.collect.credentials import configure
from kubectl_cgaudit.collect.door import Answer, Door
from kubectl_cgaudit.collect.failure import RequestError, UnreachableError
from kubectl_cgaudit.collect.kubeconfig import Choice, Connection, choose
from kubectl_cgaudit.collect.model import Gap
from kubectl_cgaudit.collect.pages import Page, Resource
from kubectl_cgaudit.collect.patience import Patience, pause
from kubectl_cgaudit.collect.progress import silent
from kubectl_cgaudit.collect.transport import Api
from kubectl_cgaudit.errors import ClusterError, UsageError
from tests.support import cluster, container, node, pod
from tests.vcr_support import kubeconfig

MIB = 1 << 20


pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(door, "time", SimpleNamespace(monotonic=lambda: now[0]))
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
        (60.0, None, 900.0, 60.0, door.CONNECT_SECONDS),
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
    assert (more["retries"], more["redirect"], more["preload_content"]) == (False, False, False)


@pytest.mark.parametrize(("headers", "said"), [({}, ""), ({"Retry-After": "7"}, "7")])
def test_an_answer_has_its_status_and_when_to_come_again(
    headers: dict[str, str], said: str, clock: list[float]
) -> None:
    response = Response(b"body", clock)
    response.status, response.headers = 429, headers
    assert opened(Pool(response, clock)).get("/", 900.0) == Answer(429, b"body", said)
    assert response.closed


def test_a_body_may_be_as_large_as_its_limit_and_no_larger(clock: list[float]) -> None:
    assert len(opened(Pool(Response(b"x" * 3 * MIB, clock), clock), limit=3 * MIB).get("/", 900.0).body) == 3 * MIB
    response = Response(b"x" * (3 * MIB + 1), clock)
    with pytest.raises(RequestError, match=r"^host cannot be asked: the answer is larger than 3 MiB; ") as error:
        opened(Pool(response, clock), limit=3 * MIB).get("/", 900.0)
    assert (error.value.why, response.closed) == ("larger than 3 MiB", True)


def test_a_body_that_trickles_ends_with_the_time(clock: list[float]) -> None:
    response = Response(b"x" * 5 * MIB, clock, each=4.0)
    with pytest.raises(RequestError) as error:
        opened(Pool(response, clock), limit=8 * MIB).get("/", 900.0)
    assert (error.value.why, error.value.silent) == ("no answer within 10 s", True)
    # After 4 s, 8 s and 12 s: what came in time is not read on for ever.
    assert (clock[0], response.closed) == (112.0, True)


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


@pytest.mark.parametrize(
    ("attempt", "said", "seconds"),
    [
        (1, "", 0.5),
        (2, "", 1.0),
        (3, "", 2.0),
        (7, "", 30.0),
        (50, "", 30.0),
        (3, "7", 7.0),
        (3, "0", 0.0),
        (1, "30", 30.0),
        (1, "31", 30.0),
        (1, "-1", 0.5),
        (1, "Wed, 21 Oct 2026 07:28:00 GMT", 0.5),
    ],
)
def test_how_long_is_waited(attempt: int, said: str, seconds: float) -> None:
    assert pause(attempt, said) == seconds


def test_patience_has_an_end(pauses: list[float]) -> None:
    some = Patience()
    assert [some.waits(attempt) for attempt in (1, 2, 3, 4, 5, 6)] == [True] * 4 + [False] * 2
    assert pauses == [0.5, 1.0, 2.0, 4.0]
    assert [some.waits(attempt, tries=2) for attempt in (1, 2)] == [True, False]
    pauses.clear()
    # 60 s are there for all requests together, and all of them may be used.
    asked = Patience()
    assert [asked.waits(1, "29"), asked.waits(1, "30"), asked.waits(1, "2"), asked.waits(1, "1")] == [
        True,
        True,
        False,
        True,
    ]
    assert asked.waits(1) is False
    assert pauses == [29.0, 30.0, 1.0]


class Scripted:
    """A door behind which a script stands."""

    def __init__(self, *says: Answer | Exception) -> None:
        self.says = list(says)
        self.paths: list[str] = []
        self.ends: list[float] = []

    def get(self, path: str, ends: float) -> Answer:
        self.paths.append(path)
        self.ends.append(ends)
        said = self.says.pop(0)
        if isinstance(said, Exception):
            raise said
        return said


OK, BUSY, REFUSED = Answer(200, b"ok"), Answer(503, b"busy"), Answer(401, b"")
AWAY, SILENT, GARBLED = (
    UnreachableError("away", "away"),
    RequestError("silent", "silent", silent=True),
    RequestError("garbled", "garbled"),
)


def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripted: Scripted, **more: Any) -> Api:
    monkeypatch.setattr(Api, "_asked", lambda self: scripted)
    return Api(Connection(kubeconfig=kubeconfig(tmp_path / "c"), **more))


def status(answer: Answer) -> int:
    return answer.status


Tries = list[tuple[list[Answer | Exception], int | str, list[float]]]
"""What the server does, how it ends, and how long was waited."""
NEVER_MET: Tries = [
    ([OK], 200, []),
    ([Answer(404, b"")], 404, []),
    ([BUSY, OK], 200, [0.5]),
    ([Answer(429, b"", "3"), OK], 200, [3.0]),
    *(([Answer(code, b""), OK], 200, [0.5]) for code in (429, 500, 502, 503, 504)),
    *(([Answer(code, b"")], code, []) for code in (403, 409, 501, 505)),
    ([BUSY] * 5, 503, [0.5, 1.0, 2.0, 4.0]),
    ([GARBLED] * 5, "garbled", [0.5, 1.0, 2.0, 4.0]),
    ([GARBLED, OK], 200, [0.5]),
    ([SILENT, SILENT], "silent", [0.5]),
    ([SILENT, OK], 200, [0.5]),
    ([AWAY], "away", []),
    ([BUSY, AWAY], "away", [0.5]),
    ([REFUSED], "refused the credentials", []),
]
MET: Tries = [
    ([AWAY, OK], 200, [0.5]),
    ([AWAY] * 5, "away", [0.5, 1.0, 2.0, 4.0]),
    ([REFUSED, OK], 200, []),
    ([REFUSED, REFUSED], "refused the credentials", []),
    ([REFUSED, BUSY, REFUSED], "refused the credentials", [1.0]),
]


@pytest.mark.parametrize(
    ("met", "says", "ends", "waited"), [*((False, *each) for each in NEVER_MET), *((True, *each) for each in MET)]
)
def test_what_is_tried_again_on_a_server_that_was_met_before_or_never(
    met: bool,
    says: list[Answer | Exception],
    ends: int | str,
    waited: list[float],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pauses: list[float],
) -> None:
    scripted = Scripted(*([OK] if met else []), *says)
    with api(tmp_path, monkeypatch, scripted) as asked:
        if met:
            assert asked.fetch("/first", status) == 200
        if isinstance(ends, int):
            assert asked.fetch("/x", status) == ends
        else:
            with pytest.raises(ClusterError, match=ends):
                asked.fetch("/x", status)
    assert (scripted.says, pauses) == ([], waited)


def test_lists_that_can_be_done_without_wait_on_a_budget_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    slow = [Answer(503, b"", "30")] * 2
    with api(tmp_path, monkeypatch, Scripted(*slow, BUSY, BUSY, *slow, OK)) as asked:
        # The two pauses use it up, so that the next failure is final.
        assert asked.fetch("/spare", status, spare=True) == 503
        assert asked.fetch("/spare", status, spare=True) == 503
        assert asked.fetch("/pods", status) == 200
    assert pauses == [30.0, 30.0, 30.0, 30.0]


def test_nobody_is_asked_after_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = Scripted(OK)
    with api(tmp_path, monkeypatch, scripted) as asked:
        pass
    with pytest.raises(ClusterError, match=r"^mixed-cluster\.example:6443 is asked no more$"):
        asked.fetch("/x", status)
    assert scripted.paths == []


@pytest.mark.parametrize(("said", "seconds"), [(None, 60.0), (7.0, 7.0), (90.0, 90.0)])
def test_request_timeout_is_for_a_whole_answer(
    said: float | None, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted = Scripted(OK)
    monkeypatch.setattr(transport, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    with api(tmp_path, monkeypatch, scripted, timeout_seconds=said) as asked:
        asked.fetch("/x", status)
    assert scripted.ends == [1000.0 + seconds]


@pytest.mark.parametrize(
    ("said", "addresses", "connect"), [(None, 4.0, 4.0), (None, 1.5, 1.5), (0.5, 4.0, 0.5), (3.0, 4.0, 3.0)]
)
def test_no_connection_attempt_is_longer_than_the_request(
    said: float | None, addresses: float, connect: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "connect_seconds", lambda url, shown: addresses)
    with Api(Connection(kubeconfig=kubeconfig(tmp_path / "c"), timeout_seconds=said)) as asked:
        opened_ = asked._asked()
    assert (opened_.connect, opened_.seconds) == (connect, said or 60.0)


@pytest.mark.parametrize(
    ("server", "skip", "unverified"),
    [("https://a", True, True), ("https://a", False, False), ("http://a", True, False), ("http://a", False, False)],
)
def test_only_tls_can_be_unverified(server: str, skip: bool, unverified: bool, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "c", server, {"insecure-skip-tls-verify": skip})
    assert Api(Connection(kubeconfig=path)).unverified is unverified


def test_kubelets_get_the_token_and_nothing_of_who_is_impersonated(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "c", user={"token": "t", "as": "boss", "as-groups": ["g"]})
    with Api(Connection(kubeconfig=path)) as asked:
        to_kubelet, to_server = asked.kubelet_doors(False, 3.0, 5)("fd00::1", 10250), asked.door(3.0, 5)
        assert dict(to_kubelet.headers) | {"User-Agent": ""} == {
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": "",
            "authorization": "Bearer t",
        }
        assert (to_server.headers["Impersonate-User"], to_server.headers["Impersonate-Group"]) == ("boss", "g")
    assert (to_kubelet.base, to_kubelet.shown) == ("https://[fd00::1]:10250", "[fd00::1]:10250")
    assert (to_kubelet.seconds, to_kubelet.limit, to_server.seconds, to_server.limit) == (3.0, 5, 3.0, 5)


@pytest.mark.parametrize(
    ("insecure", "skip", "mode"),
    [
        (False, False, ssl.CERT_REQUIRED),
        (True, False, ssl.CERT_NONE),
        (False, True, ssl.CERT_NONE),
        (True, True, ssl.CERT_NONE),
    ],
)
def test_kubelets_are_verified_unless_somebody_says_otherwise(
    insecure: bool, skip: bool, mode: ssl.VerifyMode, tmp_path: Path
) -> None:
    path = kubeconfig(tmp_path / "c", "https://a", {"insecure-skip-tls-verify": skip})
    with Api(Connection(kubeconfig=path)) as asked:
        pool = asked.kubelet_doors(insecure, 1.0, 1)("10.0.0.1", 10250).pool
    kept = pool.connection_pool_kw
    assert (kept["ssl_context"].verify_mode, kept["cert_reqs"]) == (mode, mode.name)
    assert not kept["ssl_context"].verify_flags & ssl.VERIFY_X509_STRICT


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://a:1", "a:1"),
        ("http://me:secret@proxy:3128", "proxy:3128"),
        ("http://me:se@cret@proxy:3128/x?y@z", "proxy:3128"),
    ],
)
def test_no_message_names_the_login_of_a_url(url: str, host: str) -> None:
    assert transport._host(url) == host


def impersonated(user: dict[str, Any], **flags: Any) -> list[tuple[str, str]]:
    return transport._impersonation(Connection(**flags), user)


def test_whom_the_headers_name() -> None:
    assert impersonated({}) == []
    assert impersonated({"as": "a", "as-uid": 7}) == [("Impersonate-User", "a"), ("Impersonate-Uid", "7")]
    assert impersonated({"as": "a", "as-groups": ["g"]}, as_user="b") == [
        ("Impersonate-User", "b"),
        ("Impersonate-Group", "g"),
    ]
    assert impersonated({"as": "a", "as-user-extra": {"k y": ["1", "2"], "l": None}}) == [
        ("Impersonate-User", "a"),
        ("Impersonate-Extra-k%20y", "1"),
        ("Impersonate-Extra-k%20y", "2"),
    ]


@pytest.mark.parametrize(
    ("user", "flags"),
    [
        ({}, {"as_groups": ("g",)}),
        ({"as-groups": ["g"]}, {}),
        ({"as-uid": "7"}, {}),
        ({"as-user-extra": {"k": ["v"]}}, {}),
    ],
)
def test_nobody_is_impersonated_in_part(user: dict[str, Any], flags: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"^a group cannot be impersonated without a user; add --as USER$"):
        impersonated(user, **flags)


@pytest.mark.parametrize(
    ("user", "field"),
    [
        ({"as": "a", "as-groups": "admins"}, "as-groups in the kubeconfig is no list"),
        ({"as": "a", "as-user-extra": ["k"]}, "as-user-extra in the kubeconfig is no mapping of lists"),
        ({"as": "a", "as-user-extra": {"k": "v"}}, "as-user-extra in the kubeconfig is no list"),
    ],
)
def test_impersonation_that_is_no_list(user: dict[str, Any], field: str) -> None:
    with pytest.raises(ClusterError, match=f"^{field}; correct its user entry$"):
        impersonated(user)


def test_a_refusal_is_told_in_one_line_without_the_query(tmp_path: Path) -> None:
    asked = Api(Connection(kubeconfig=kubeconfig(tmp_path / "c")))
    body = json.dumps({"message": "no\n\x1b[31m" + "x" * 400}).encode()
    failure = asked.refusal("/api/v1/pods?limit=500&continue=t", Answer(403, body))
    why = "403: no ?[31m" + "x" * 292
    assert (failure.why, failure.status) == (why, 403)
    assert str(failure) == (
        f"mixed-cluster.example:6443 answered GET /api/v1/pods with {why}; "
        "try again, or see what kubectl get --raw /api/v1/pods says"
    )
    assert asked.refusal("/x", Answer(502, b"<html>" + b"y" * 90)).why == f"502: '<html>{'y' * 54}'"
    garbage = asked.garbage("/api/v1/pods?limit=500", Answer(200, b"\x1b[31m"), "list of Pods")
    assert garbage.why == "no list of Pods but '\\x1b[31m'"
    assert " answered GET /api/v1/pods with no list of Pods but with '\\x1b[31m'; " in str(garbage)


def configured(tmp_path: Path, cluster: dict[str, Any] | None = None, server: str = "https://a.example") -> Any:
    choice = choose(Connection(kubeconfig=kubeconfig(tmp_path / "c", server, cluster)))
    assert choice is not None
    return configure(choice)


@pytest.mark.parametrize(
    ("server", "proxy"),
    [
        ("https://a.example", "http://proxy:3128"),
        ("https://localhost:6443", None),
        ("https://127.0.0.1:6443", None),
        ("https://127.9.9.9:6443", None),
        ("https://[::1]:6443", None),
        ("https://10.0.0.1:6443", "http://proxy:3128"),
        ("https://localhost.example", "http://proxy:3128"),
    ],
)
def test_a_proxy_of_the_environment_never_serves_this_machine(
    server: str, proxy: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "proxy:3128")
    monkeypatch.setenv("NO_PROXY", "b.example")
    found = configured(tmp_path, server=server)
    assert (found.proxy, found.no_proxy) == (proxy, "b.example")
    # What the kubeconfig names is for this machine too, whatever NO_PROXY says.
    own = configured(tmp_path, {"proxy-url": "http://own:1"}, server)
    assert (own.proxy, own.no_proxy) == ("http://own:1", None)


@pytest.mark.parametrize(
    ("proxy", "headers"),
    [
        ("http://proxy:1", None),
        ("me:p%40ss@proxy:1", {"proxy-authorization": "Basic bWU6cEBzcw=="}),
        ("https://me:p%40ss@proxy:1", {"proxy-authorization": "Basic bWU6cEBzcw=="}),
    ],
)
def test_the_login_of_a_proxy_is_sent_to_it(proxy: str, headers: dict[str, str] | None, tmp_path: Path) -> None:
    found = configured(tmp_path, {"proxy-url": proxy})
    assert found.proxy_headers == headers
    assert "://" in found.proxy


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("token"), "a field is missing or has the wrong type"),
        (TypeError("x"), "a field is missing or has the wrong type"),
        (AttributeError("x"), "a field is missing or has the wrong type"),
        (FileNotFoundError(2, "No such file"), "No such file"),
        (ValueError("one\n two\x1b."), "one two"),
        (ValueError("x" * 300), "x" * 200),
    ],
)
def test_what_the_client_complains_of_is_one_harmless_line(error: Exception, said: str) -> None:
    assert credentials._said(error) == said


def test_a_token_of_the_kubeconfig_is_used_and_no_plugin_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    given = exec_plugin.Credential(token="new", client_certificate_data="CERT", client_key_data="KEY")
    monkeypatch.setattr(credentials, "ask", lambda fields, cluster, where: ran.append(where) or given)
    plugin = {"apiVersion": "v1", "command": "x"}

    def user(**fields: Any) -> dict[str, Any]:
        return credentials._with_token(Choice(where="context c", cluster={}, user=fields, namespace=""))

    assert user(token="t", exec=plugin)["token"] == "t"
    assert ran == []
    assert user(exec=plugin, username="u") == {
        "username": "u",
        "token": "new",
        "client-certificate-data": "Q0VSVA==",
        "client-key-data": "S0VZ",
    }
    assert ran == ["context c"]
    given = exec_plugin.Credential(token="new", client_certificate_data="CERT")
    assert user(exec=plugin) == {"token": "new"}


@pytest.mark.parametrize(
    ("failure", "hint"),
    [
        (RequestError("m", "its TLS certificate is not trusted: expired"), True),
        (RequestError("m", "no answer within 10 s"), False),
    ],
)
def test_only_distrust_names_the_flag_that_ends_it(failure: RequestError, hint: bool) -> None:
    said = kubelet._unread(failure)
    assert said.startswith(f"could not be read ({failure.why})")
    assert ("--kubelet-insecure-tls" in said) is hint


API: Any = SimpleNamespace(host="h", namespace="")


MakesPage = Callable[[], Page]


def page(*objects: dict[str, Any], left: int | None = 0, **more: Any) -> MakesPage:
    """A page that is made when it is asked for: its objects can be taken once."""
    raw = [msgspec.Raw(msgspec.json.encode(each)) for each in objects]
    fields = {"again": False, "mixed": False, "withheld": 0, **more}
    return lambda: Page(iter(raw), len(raw), left, **fields)


Pages = dict[str, list[MakesPage | RequestError]]


def paged(says: Pages, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lists of a server by the last word of their path; returns the paths that are asked for."""
    asked: list[str] = []

    def pages(api: Any, resource: Resource, size: int) -> Iterator[Page]:
        asked.append(resource.path)
        for each in says.get(resource.path, says.get(resource.path.rpartition("/")[2], [])):
            if isinstance(each, RequestError):
                raise each
            yield each()

    monkeypatch.setattr(live, "pages", pages)
    return asked


def assembly() -> Assembly:
    return Assembly(lambda namespace, labels: True, "")


def failing(status: int = 0, why: str = "why") -> RequestError:
    return RequestError("message", why, status)


LATER = "the list expired twice while it was read (410) and was continued from a newer state, so it mixes two moments"
LOST = "the server announced 2 more than it sent: something between filters or loses them"
AGAIN, PAST = "run the audit again", "run the audit again, past any proxy"


@pytest.mark.parametrize(
    ("nodes", "gaps"),
    [
        ([page(node())], []),
        ([page(node()), failing()], [Gap("nodes", "the list broke off after 1 node (why)", AGAIN)]),
        ([page(node(), withheld=2)], [Gap("nodes", LOST, PAST)]),
        ([page(node("a"), withheld=2), page(node("b"))], [Gap("nodes", LOST, PAST)]),
        ([page(node("a"), withheld=2), page(node("b"), again=True)], []),
        ([page(node("a"), mixed=True), page(node("b"))], [Gap("nodes", LATER, AGAIN)]),
        ([page(node("a")), page(node("b"), mixed=True)], [Gap("nodes", LATER, AGAIN)]),
        ([failing(403)], "the nodes may not be listed (why)"),
        ([page(node()), failing(403)], "the nodes may not be listed (why)"),
        ([failing(500)], "message"),
        ([page()], "h has no nodes"),
    ],
)
def test_what_is_said_of_the_nodes(
    nodes: list[MakesPage | RequestError], gaps: list[Gap] | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paged({"nodes": nodes}, monkeypatch)
    whole = assembly()
    if isinstance(gaps, str):
        with pytest.raises(ClusterError, match=f"^{gaps.replace('(', '[(]').replace(')', '[)]')}"):
            live.read_nodes(API, whole, silent)
    else:
        live.read_nodes(API, whole, silent)
        assert whole.gaps == gaps


def test_a_list_that_starts_again_is_counted_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str, int, int | None]] = []
    paged(
        {"nodes": [page(node("a"), node("b"), left=3), page(node("c"), again=True, left=1), page(node("d"))]},
        monkeypatch,
    )
    whole = assembly()
    live.read_nodes(API, whole, lambda *words: said.append(words))
    assert said == [("nodes", 2, 5), ("nodes", 1, 2), ("nodes", 2, None)]
    assert [each.name for each in whole.cluster("x").nodes] == ["c", "d"]


def names_of(
    says: list[MakesPage | RequestError], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str] | None, list[str]]:
    paged({"namespaces": says}, monkeypatch)
    whole = assembly()
    return live._namespaces(API, whole, silent, 500), whole.notes


def test_which_namespaces_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, none = ({"metadata": {"name": name}} for name in ("a", "b", ""))
    assert names_of([page(b, none), page(a)], monkeypatch) == (["a", "b"], [])
    assert names_of([page(b, withheld=2), page(a, again=True)], monkeypatch) == (["a"], [])
    assert names_of([failing(403)], monkeypatch) == (None, [])
    note = "Namespaces could not be listed ({}): only one was tried"
    assert names_of([page(a), failing(500)], monkeypatch) == (None, [note.format("why")])
    assert names_of([page(a, withheld=2)], monkeypatch) == (
        None,
        [note.format("the server announced 2 more than it sent")],
    )
    assert names_of([page({"metadata": 1})], monkeypatch) == (None, [note.format("one of them is damaged")])


CLUSTER_WIDE = "pods may not be listed cluster-wide (403)"
UNTIL = "ask for list on pods cluster-wide; until then effective shares are upper bounds, because siblings are unseen"


def pods_read(says: Pages, monkeypatch: pytest.MonkeyPatch, namespace: str | None = None, own: str = "") -> Any:
    asked = paged(says, monkeypatch)
    whole = assembly()
    live.read_pods(SimpleNamespace(host="h", namespace=own), namespace, whole, silent)  # type: ignore[arg-type]
    return asked, whole.gaps, whole.notes


def test_what_is_said_of_pods_that_may_be_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(name: str) -> str:
        return f"/api/v1/namespaces/{name}/pods"

    refused: Pages = {"/api/v1/pods": [failing(403)]}
    both: Pages = {"namespaces": [page({"metadata": {"name": "a"}}, {"metadata": {"name": "b"}})]}
    _, gaps, notes = pods_read({**refused, **both, of("a"): [page()], of("b"): [page()]}, monkeypatch)
    assert (gaps, len(notes)) == ([], 1)
    both = {"namespaces": [page({"metadata": {"name": "a"}}, {"metadata": {"name": "b"}})]}
    _, gaps, notes = pods_read({**refused, **both, of("a"): [page()], of("b"): [failing(403)]}, monkeypatch)
    assert (gaps, notes) == ([Gap("pods of 1 namespace: b", f"{CLUSTER_WIDE}, nor in these", UNTIL)], [])
    # One namespace is known from the flag, and its name is one part of the path.
    asked, gaps, _ = pods_read({**refused, of("a%2Fb"): [page(withheld=2), failing(500)]}, monkeypatch, "a/b")
    assert asked == ["/api/v1/pods", of("a%2Fb")]
    assert gaps == [
        Gap("pods of namespace a/b", "the list broke off after 0 pods (why)", AGAIN),
        Gap("pods of namespace a/b", LOST, PAST),
        Gap("pods of the other namespaces", CLUSTER_WIDE, UNTIL),
    ]
    _, gaps, _ = pods_read({**refused, "namespaces": [failing(403)], of("own"): [failing(403)]}, monkeypatch, own="own")
    where = "pods may not be listed cluster-wide or in namespace own (403)"
    assert gaps == [Gap("pods", where, "ask for list on pods cluster-wide")]
    _, gaps, _ = pods_read({**refused, "namespaces": [page()]}, monkeypatch)
    assert gaps == [Gap("pods", CLUSTER_WIDE, "ask for list on pods cluster-wide")]


def test_pods_that_break_off_after_some_are_a_gap_and_before_any_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for status in (403, 500):
        _, gaps, _ = pods_read({"pods": [page(pod("p")), failing(status)]}, monkeypatch)
        assert gaps == [Gap("pods", "the list broke off after 1 pod (why)", AGAIN)]
    with pytest.raises(RequestError, match=r"^message$"):
        pods_read({"pods": [failing(500)]}, monkeypatch)


@pytest.mark.parametrize(
    ("says", "note"),
    [
        ([page()], ""),
        ([failing(403)], "Jobs may not be listed (403): CronJobs are named from the Job's name"),
        ([failing(404)], "Jobs are not served (404): CronJobs are named from the Job's name"),
        ([failing(500)], "Jobs could not be listed (why): CronJobs are named from the Job's name"),
        (
            [page(withheld=2)],
            "Jobs could not be listed (the server announced 2 more than it sent): CronJobs are named from the Job's name",
        ),
    ],
)
def test_a_list_that_can_be_done_without_is_there_whole_or_not_at_all(
    says: list[MakesPage | RequestError], note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = {"metadata": {"name": "j", "namespace": "n"}}
    paged({"jobs": [page(job), *says]}, monkeypatch)
    whole = assembly()
    live.read_optional(API, live.OPTIONAL[2], whole, silent)
    assert whole.notes == ([note] if note else [])
    assert whole.cluster("x").jobs == (None if note else {("n", "j"): None})


@pytest.mark.parametrize(
    ("kubelets", "called", "more"),
    [
        (live.Kubelets(False, False, None), "proxy", {"seconds": kubelet.SECONDS}),
        (live.Kubelets(False, False, 3.0), "proxy", {"seconds": 3.0}),
        (live.Kubelets(True, False, None), "direct", {"insecure": False, "seconds": kubelet.SECONDS}),
        (live.Kubelets(True, True, 3.0), "direct", {"insecure": True, "seconds": 3.0}),
    ],
)
def test_only_linux_nodes_are_asked_each_where_it_listens(
    kubelets: live.Kubelets, called: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    there, nowhere, windows = node("there"), node("nowhere"), node("windows", operatingSystem="windows")
    there["status"]["addresses"] = [{"type": "InternalIP", "address": "10.0.0.7"}]
    there["status"]["daemonEndpoints"] = {"kubeletEndpoint": {"Port": 10260}}
    found = cluster(there, nowhere, windows, pod("p", container("c"), on="there"))
    calls: list[Any] = []
    for name, function in (("proxy", "from_proxy"), ("direct", "from_kubelets")):
        monkeypatch.setattr(
            kubelet, function, lambda *words, name=name, **kept: calls.append((name, words, kept)) or {}
        )
    assert live._ask(API, found, kubelets, silent) == {}
    ((name, (_, nodes, pods, _), kept),) = calls
    assert (name, pods, kept) == (called, {"there": {("default", "p")}}, more)
    if called == "proxy":
        assert sorted(nodes) == ["nowhere", "there"]
    else:
        assert nodes == {"there": ("10.0.0.7", 10260), "nowhere": ("nowhere", 10250)}
