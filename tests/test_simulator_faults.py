"""Each fault of the simulated API server does what it is called."""

import http.client
import json
import socket
import ssl
import zlib
from pathlib import Path

import pytest

from tests.simulator import Fault, Simulator, Store, dump
from tests.simulator.pages import read_token
from tests.simulator_support import CLUSTER, PODS, connect, get, names, pages


def second(it: Simulator, path: str = "/api/v1/pods", limit: int = 100) -> str:
    """The path of the second page."""
    token = get(it, f"{path}?limit={limit}").json["metadata"]["continue"]
    return f"{path}?limit={limit}&continue={token}"


def test_gone_with_a_fresh_token_goes_on_where_it_was(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("gone-fresh", page=1)], store=store) as it:
        path = second(it)
        gone = get(it, path)
        fresh = gone.json["metadata"]["continue"]
        assert (gone.status, gone.json["reason"], read_token(fresh).rv) == (410, "Expired", -1)
        assert read_token(fresh).start == f"{PODS[99]}\0"
        assert get(it, path).status == 410
        after = get(it, f"/api/v1/pods?limit=100&continue={fresh}").json
    assert names(after) == PODS[100:200]
    assert after["metadata"]["resourceVersion"] == "1200007"
    assert read_token(after["metadata"]["continue"]).rv == 1_200_007


def test_gone_without_a_token_leaves_only_a_new_list(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("gone", page=1)], store=store) as it:
        path = second(it)
        answers = [get(it, path), get(it, path)]
        again = pages(it, "/api/v1/pods", 100)
    assert [(got.status, got.json["metadata"]) for got in answers] == [(410, {}), (410, {})]
    assert [name for page in again for name in names(page)] == PODS


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        (Fault("unauthorized", page="last"), 401, "Unauthorized"),
        (Fault("forbidden", page="last"), 403, "Forbidden"),
        (Fault("error", page="last", status=500), 500, "InternalError"),
        (Fault("error", page="last", status=503), 503, "ServiceUnavailable"),
    ],
)
def test_a_refusal_comes_at_its_page_and_only_so_often(store: Store, fault: Fault, status: int, reason: str) -> None:
    with Simulator(CLUSTER, [fault], store=store) as it:
        path = second(it, limit=200)
        got = [get(it, path), get(it, path)]
    assert [each.status for each in got] == [status, 200]
    assert got[0].json["reason"] == reason
    assert [seen.fault for seen in it.log] == ["", fault.kind, ""]


def test_a_burst_ends_and_a_busy_server_says_when_to_return(store: Store) -> None:
    burst = [Fault("error", "*", times=2, status=503), Fault("busy", "nodes", seconds=7)]
    with Simulator(CLUSTER, burst, store=store) as it:
        got = [get(it, "/api/v1/nodes?limit=5") for _ in range(4)]
    assert [each.status for each in got] == [503, 503, 429, 200]
    assert got[2].headers["Retry-After"] == "7"


@pytest.mark.parametrize("part", [0.0, 0.5])
@pytest.mark.parametrize("tls", [False, True])
def test_a_reset_is_a_reset(store: Store, part: float, tls: bool) -> None:
    with Simulator(CLUSTER, [Fault("reset", part=part)], tls=tls, store=store) as it:
        connection = socket.create_connection(("127.0.0.1", it.port), timeout=20)
        if tls:
            context = ssl.create_default_context(cafile=str(it.ca))
            connection = context.wrap_socket(connection, server_hostname="127.0.0.1")
        connection.sendall(b"GET /api/v1/pods?limit=100 HTTP/1.1\r\nHost: simulator\r\n\r\n")
        # Beneath TLS, which takes an end and a reset for the same.
        with socket.socket(fileno=connection.detach()) as wire:
            wire.settimeout(20)
            with pytest.raises(ConnectionResetError):
                b"".join(iter(lambda: wire.recv(1 << 16), b""))
    assert [(seen.fault, seen.status) for seen in it.log] == [("reset", 0)]


def test_half_a_page_is_less_than_was_promised(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("half"), Fault("half-chunk")], store=store) as it:
        with pytest.raises(http.client.IncompleteRead) as half:
            get(it, "/api/v1/pods?limit=100")
        with pytest.raises(http.client.IncompleteRead) as chunked:
            get(it, "/api/v1/pods?limit=100")
        whole = get(it, "/api/v1/pods?limit=100").raw
    assert half.value.partial == whole[: len(whole) // 2]
    assert whole.startswith(chunked.value.partial)
    assert len(chunked.value.partial) < len(whole)


def test_a_broken_inside_ends_well_outside(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("half-gzip"), Fault("half-json", part=0.25)], store=store) as it:
        zipped, text = (get(it, "/api/v1/pods?limit=100", Accept_Encoding="gzip") for _ in range(2))
        plain = [get(it, "/api/v1/pods?limit=100", Accept_Encoding=each) for each in ("gzip", "identity")]
    assert zipped.raw == plain[0].raw[: len(plain[0].raw) // 2]
    unpack = zlib.decompressobj(31)
    assert plain[1].raw.startswith(unpack.decompress(zipped.raw))
    assert not unpack.eof
    assert text.raw == plain[0].raw[: len(plain[0].raw) // 4]


@pytest.mark.parametrize("kind", ["stall", "stall-body"])
def test_a_stall_outlasts_an_impatient_client_and_then_answers(store: Store, kind: str) -> None:
    with Simulator(CLUSTER, [Fault(kind, seconds=3600), Fault(kind, seconds=0.01)], store=store) as it:
        impatient = connect(it.url, seconds=0.3)
        impatient.request("GET", "/api/v1/pods?limit=100")
        with pytest.raises(TimeoutError):
            impatient.getresponse().read()
        impatient.close()
        assert names(get(it, "/api/v1/pods?limit=100").json) == PODS[:100]


@pytest.mark.parametrize("kind", ["drip", "trickle"])
def test_a_drip_comes_whole(store: Store, kind: str) -> None:
    with Simulator(CLUSTER, [Fault(kind, seconds=0.1, count=9)], store=store) as it:
        slow, fast = (get(it, "/api/v1/pods?limit=100").raw for _ in range(2))
    assert slow == fast


@pytest.mark.parametrize(
    ("kind", "content", "starts"),
    [
        ("html", "text/html; charset=utf-8", b"<!DOCTYPE html>"),
        ("other-kind", "application/json", b'{"kind":"ConfigMapList"'),
        ("null", "application/json", b"null"),
        ("garbage", "application/json", bytes(range(128, 140))),
    ],
)
def test_wrong_content_comes_with_success(store: Store, kind: str, content: str, starts: bytes) -> None:
    with Simulator(CLUSTER, [Fault(kind, page="first")], store=store) as it:
        wrong, right = (get(it, "/api/v1/pods?limit=100") for _ in range(2))
    assert (wrong.status, wrong.headers["Content-Type"]) == (200, content)
    assert wrong.raw.startswith(starts)
    assert len(right.json["items"]) == 100


def test_a_wrong_encoding_is_named(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("encoding", times=2)], store=store) as it:
        plain, zipped = (get(it, "/api/v1/pods?limit=100", Accept_Encoding=each) for each in ("identity", "gzip"))
    assert plain.headers["Content-Encoding"] == "gzip"
    assert plain.raw.startswith(b'{"kind":"PodList"')
    assert (zipped.headers["Content-Encoding"], zipped.raw[:2]) == ("br", b"\x1f\x8b")


def test_objects_come_twice(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("duplicate", page="middle", count=2)], store=store) as it:
        found = pages(it, "/api/v1/pods", 100, Accept_Encoding="gzip")
    assert [names(page) for page in found] == [PODS[:100], PODS[98:200], PODS[200:]]


def test_objects_vanish_between_pages(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("vanish", page="last", count=4)], store=store) as it:
        found = pages(it, "/api/v1/pods", 100)
    assert [names(page) for page in found] == [PODS[:100], PODS[100:200], PODS[204:]]
    assert found[1]["metadata"]["remainingItemCount"] == 30


def test_a_continue_token_is_repeated(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("repeat", page=1)], store=store) as it:
        path = second(it)
        page = get(it, path).json
    assert path.endswith(f"continue={page['metadata']['continue']}")


def test_faults_hit_kubelets_too(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("forbidden", "configz", times=0), Fault("garbage", "metrics")], store=store) as it:
        refused = get(it, "/api/v1/nodes/general-00000/proxy/configz")
        garbage = get(it, "/api/v1/nodes/general-00000/proxy/metrics")
    wanted = 'nodes "general-00000" is forbidden: User "auditor" cannot get resource "nodes/proxy" in API group ""'
    assert (refused.status, refused.json["message"]) == (403, f"{wanted} at the cluster scope")
    assert garbage.raw.startswith(b"\x80")


@pytest.mark.parametrize(("kind", "page"), [("flood", "any"), ("gone", "second")])
def test_an_unknown_fault_is_refused(kind: str, page: str) -> None:
    with pytest.raises(ValueError, match="there is no fault"):
        Fault(kind, page=page)


@pytest.mark.parametrize("token", ["x", "bm8", "%FF"])
def test_a_damaged_token_is_refused(store: Store, token: str) -> None:
    with Simulator(CLUSTER, store=store) as it:
        got = get(it, f"/api/v1/pods?limit=5&continue={token}")
    assert (got.status, got.json["reason"]) == (400, "BadRequest")


def test_the_dump_is_what_the_pages_have_as_kubectl_prints_it(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    assert dump.write(store, path) == path.stat().st_size
    written = json.loads(path.read_text())
    with Simulator(CLUSTER, store=store) as it:
        nodes, pods = (get(it, f"/api/v1/{name}").json["items"] for name in ("nodes", "pods"))
    for item in nodes + pods:
        item["metadata"].pop("managedFields")
    wanted = [{"apiVersion": "v1", "kind": "Node", **item} for item in nodes]
    wanted += [{"apiVersion": "v1", "kind": "Pod", **item} for item in pods]
    assert written == {"apiVersion": "v1", "items": wanted, "kind": "List", "metadata": {"resourceVersion": ""}}
    assert path.read_text() == json.dumps(written, indent=4, sort_keys=True) + "\n"
