"""API servers that mean harm, and clocks that are wrong: what each costs has an end and a reason."""

import base64
import gzip
import json
import ssl
import time
import tracemalloc
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.collect import http, pages
from kubectl_cgaudit.collect.kubeconfig import Connection
from kubectl_cgaudit.collect.model import Gap
from tests.live_support import local, only, read
from tests.vcr_support import Reply, a_list, a_pod, a_status, kubeconfig, serve, trusting

pytestmark = pytest.mark.usefixtures("home")
AGAIN = "Run the audit again"
FAR_MORE = "a page holds more than 20 times the 500 objects that were asked for"
NO_END = "the server's list does not end"
MIB = 1 << 20


def second_page(body: bytes, **headers: str) -> Callable[[str], Reply]:
    """Pods, one on the first page; the second one is of the test's making."""
    first = a_list("Pod", a_pod("one"), **{"continue": "t"})
    return lambda path: (200, body, headers) if "continue" in path else first


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (b'{"kind":"PodList","items":[' + b"{}," * 4_000_000 + b"{}]}", FAR_MORE),
        (b'{"kind":"PodList","items":[' + b"{}," * 10_000 + b"{}]}", FAR_MORE),
        (b"x" * (256 * MIB + 1), "larger than 256 MiB"),
    ],
    ids=["values", "objects", "bytes"],
)
def test_a_page_far_larger_than_asked_for_is_a_gap_and_not_asked_for_again(
    tmp_path: Path, pauses: list[float], page: bytes, why: str
) -> None:
    packed = gzip.compress(page, 1)
    with serve(only(pods=second_page(packed, **{"Content-Encoding": "gzip"}))) as server:
        cluster = read(local(tmp_path, server))
    assert [request.path for request in server.requests].count("/api/v1/pods?limit=500&continue=t") == 1
    assert ([pod.name for pod in cluster.pods], pauses) == (["one"], [])
    assert cluster.reading.gaps == (Gap("pods", f"the list broke off after 1 pod ({why})", AGAIN),)


def test_a_page_of_tiny_objects_is_not_even_decoded(tmp_path: Path) -> None:
    page = b'{"kind":"PodList","items":[' + b"1," * 4_000_000 + b"1]}"
    with serve(only(pods=second_page(page))) as server:
        connection = local(tmp_path, server)
        tracemalloc.start()
        try:
            read(connection)
            # Decoded it takes 350 MB more.
            assert tracemalloc.get_traced_memory()[1] < 64 * MIB
        finally:
            tracemalloc.stop()


def test_a_server_that_ignores_the_limit_may_send_twenty_times_as_much(tmp_path: Path) -> None:
    pods = a_list("Pod", *(a_pod(f"p{number}") for number in range(10_000)))
    with serve(only(pods=pods)) as server:
        cluster = read(local(tmp_path, server))
    assert (len(cluster.pods), cluster.reading.gaps) == (10_000, ())


def endless(*items: dict[str, Any], token: str = "") -> Callable[[str], Reply]:
    """A list without a count, each page of which leads to another one."""
    numbers = count()
    return lambda path: a_list("Pod", *items, **{"continue": f"{token}{next(numbers)}"})


@pytest.mark.parametrize(
    ("most", "token", "read_of_it", "why"),
    [
        ({"_MOST_PAGES": 5}, "", "10 pods", NO_END),
        ({"_MOST_OBJECTS": 7}, "", "8 pods", NO_END),
        ({}, "t" * (64 << 10), "2 pods", "its continue token is longer than 64 KiB"),
    ],
)
def test_a_list_without_end_has_one_here(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most: dict[str, int],
    token: str,
    read_of_it: str,
    why: str,
) -> None:
    for name, value in most.items():
        monkeypatch.setattr(pages, name, value)
    with serve(only(pods=endless(a_pod("one"), a_pod("two"), token=token))) as server:
        cluster = read(local(tmp_path, server))
    assert cluster.reading.gaps == (Gap("pods", f"the list broke off after {read_of_it} ({why})", AGAIN),)


def test_an_audit_of_a_list_without_end_says_that_it_is_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pages, "_MOST_PAGES", 5)
    with serve(only(pods=endless(a_pod("one")))) as server:
        path = kubeconfig(tmp_path / "c", server.url)
        assert run(["--kubeconfig", path, "-o", "json"]) == 3
    (gap,) = json.loads(capsys.readouterr().out)["coverage"]["gaps"]
    assert (gap["what"], gap["why"]) == ("pods", f"the list broke off after 5 pods ({NO_END})")


def test_a_list_that_expires_and_continues_with_a_long_token_starts_again(tmp_path: Path) -> None:
    asked: list[str] = []

    def pods(path: str) -> Reply:
        asked.append(path)
        if len(asked) <= 3:
            return a_list("Pod", a_pod("one"), **{"continue": "t"}) if len(asked) % 2 else a_status(410, "old")
        return (
            a_status(410, "old", **{"continue": "x" * (64 * 1024 + 1)})
            if len(asked) == 4
            else a_list("Pod", a_pod("b"))
        )

    with serve(only(pods=pods)) as server:
        cluster = read(local(tmp_path, server))
    first, second = "/api/v1/pods?limit=500", "/api/v1/pods?limit=500&continue=t"
    assert asked == [first, second, first, second, first]
    assert [pod.name for pod in cluster.pods] == ["b"]


def test_what_is_kept_of_a_token_does_not_grow_with_it() -> None:
    course = pages._Course()
    assert [course.strays(f"{'x' * 60_000}{number}", 1, None) for number in (1, 2, 1)] == [
        "",
        "",
        "the server repeats its continue token",
    ]
    assert {len(kept) for kept in course.tokens} == {16}


def test_a_clock_that_is_off_is_named_where_a_certificate_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As kubectl names the current time. OpenSSL's 9 and 10 are a certificate that is not yet, or no more, valid."""
    monkeypatch.setattr(http, "time", SimpleNamespace(time=lambda: 1_800_000_000))
    for code, says in ((9, "certificate is not yet valid"), (10, "certificate has expired")):
        error = ssl.SSLCertVerificationError(1, "failed")
        error.verify_code, error.verify_message = code, says  # type: ignore[misc]
        assert str(http.no_answer(error, "host", None)) == (
            f"host cannot be asked: its TLS certificate is not trusted: {says}, and this machine's clock is at "
            "2027-01-15T08:00:00Z; correct the clock, or have the certificate renewed"
        )


@pytest.mark.parametrize(("ended", "clock"), [(-86_400, "and this machine's clock is at "), (86_400, "")])
def test_a_token_that_the_clock_says_has_ended_is_said_to_have_where_it_is_refused(
    tmp_path: Path, ended: int, clock: str
) -> None:
    """kubectl sends a token whatever the clock says, and the server decides."""
    claims = base64.urlsafe_b64encode(json.dumps({"exp": int(time.time()) + ended}).encode()).decode()
    with serve(lambda path: a_status(401, "Unauthorized"), tls=tmp_path) as server:
        path = kubeconfig(tmp_path / "c", server.url, trusting(server), {"token": f"e30.{claims}.x"})
        with pytest.raises(Exception, match=r"refused the credentials \(401 Unauthorized\)") as caught:
            read(Connection(kubeconfig=path))
        assert server.requests[0].headers["Authorization"] == f"Bearer e30.{claims}.x"
    assert (": they ended at " in str(caught.value)) is bool(clock)
    assert clock in str(caught.value)
