"""Many requests: what is tried again and for how long, and what is sent with each."""

import json
import ssl
from pathlib import Path
from types import SimpleNamespace

import pytest

from kubectl_cgaudit.collect import pools, transport
from kubectl_cgaudit.collect.http import Answer, RequestError, UnreachableError
from kubectl_cgaudit.collect.kubeconfig import Connection
from kubectl_cgaudit.collect.patience import Patience, pause
from kubectl_cgaudit.collect.transport import Api
from kubectl_cgaudit.errors import ClusterError
from tests.vcr_support import Scripted, api, kubeconfig

pytestmark = pytest.mark.usefixtures("home")


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


OK, BUSY, REFUSED = Answer(200, b"ok"), Answer(503, b"busy"), Answer(401, b"")


AWAY, SILENT, GARBLED = (
    UnreachableError("away", "away"),
    RequestError("silent", "silent", silent=True),
    RequestError("garbled", "garbled"),
)


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


@pytest.mark.parametrize(("seconds", "then", "waited"), [(20.0, 200, [0.5, 0.5]), (30.0, 503, [0.5])])
def test_silence_is_waiting_too(
    seconds: float,
    then: int,
    waited: list[float],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pauses: list[float],
) -> None:
    with api(tmp_path, monkeypatch, Scripted(SILENT, SILENT, BUSY, OK), timeout_seconds=seconds) as asked:
        with pytest.raises(RequestError, match="silent"):
            asked.fetch("/x", status)
        # Twice 20 s leave something of the minute for the next list, and twice 30 s nothing.
        assert asked.fetch("/y", status) == then
    assert pauses == waited


def test_silence_that_passed_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    with api(tmp_path, monkeypatch, Scripted(SILENT, OK, BUSY, OK)) as asked:
        assert [asked.fetch("/x", status), asked.fetch("/y", status)] == [200, 200]
    assert pauses == [0.5, 0.5]


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
    ("said", "addresses", "connect"), [(None, 4.0, 4.0), (None, 1.5, 1.5), (0.5, 4.0, 0.5), (120.0, 4.0, 120.0)]
)
def test_a_connection_attempt_takes_as_long_as_the_request_where_that_is_said(
    said: float | None, addresses: float, connect: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "connect_seconds", lambda url, shown: addresses)
    with Api(Connection(kubeconfig=kubeconfig(tmp_path / "c"), timeout_seconds=said)) as asked:
        opened_ = asked._asked()
        to_kubelets = asked.door(3.0, 5)
    assert (opened_.connect, opened_.seconds, to_kubelets.connect) == (connect, said or 60.0, connect)


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


@pytest.mark.parametrize(("ca", "skip", "own"), [(True, False, True), (False, False, False), (False, True, False)])
def test_only_a_ca_of_the_kubeconfig_takes_the_place_of_the_systems(
    ca: bool, skip: bool, own: bool, tmp_path: Path
) -> None:
    (tmp_path / "ca.crt").touch()
    trusted = {"certificate-authority": "ca.crt"} if ca else {}
    path = kubeconfig(tmp_path / "c", "https://a", {"insecure-skip-tls-verify": skip, **trusted})
    with Api(Connection(kubeconfig=path)) as asked:
        context = asked._pool.connection_pool_kw.get("ssl_context")
    assert (context is not None) is own
    assert context is None or not context.verify_flags & ssl.VERIFY_X509_STRICT


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://a:1", "a:1"),
        ("http://me:secret@proxy:3128", "proxy:3128"),
        ("http://me:se@cret@proxy:3128/x?y@z", "proxy:3128"),
    ],
)
def test_no_message_names_the_login_of_a_url(url: str, host: str) -> None:
    assert pools.host_of(url) == host


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
