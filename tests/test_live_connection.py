"""The way to the server: names, addresses, TLS, proxies, and servers that do not answer."""

import gc
import gzip
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from kubectl_cgaudit import __version__
from kubectl_cgaudit.collect import http, transport
from kubectl_cgaudit.collect.kubeconfig import Connection
from kubectl_cgaudit.errors import ClusterError
from tests.live_support import local, only, read
from tests.simulator.sending import reset
from tests.vcr_support import (
    a_list,
    a_node,
    kubeconfig,
    serve,
)

pytestmark = pytest.mark.usefixtures("home")


def test_connection_refused(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{unused.getsockname()[1]}"
        path = kubeconfig(tmp_path / "c", server=f"https://{host}")
        with pytest.raises(ClusterError) as caught:
            read(Connection(kubeconfig=path))
    assert str(caught.value) == (
        f"{host} cannot be asked: connection refused; check that it runs and the port in the kubeconfig is right"
    )


@pytest.mark.parametrize(
    ("scheme", "why"),
    [
        ("http", "no answer within 0.2 s; try again with a longer --request-timeout"),
        ("https", "no answer within 0.2 s; try again with a longer --request-timeout"),
    ],
)
def test_server_that_never_answers(tmp_path, scheme, why, pauses):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        path = kubeconfig(tmp_path / "c", server=f"{scheme}://{host}")
        with pytest.raises(ClusterError) as caught:
            read(Connection(kubeconfig=path, timeout_seconds=0.2))
    # Asked twice and no more: a server that says nothing costs two deadlines and one pause.
    assert pauses == [0.5]
    assert str(caught.value) == f"{host} cannot be asked: {why}"


def test_handshake_that_never_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(transport, "connect_seconds", lambda url, shown: 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(
            ClusterError, match=r"cannot be asked: no connection within a few seconds; check the server"
        ):
            read(Connection(kubeconfig=kubeconfig(tmp_path / "c", server=f"https://{host}")))


def test_a_slow_handshake_is_waited_for_where_the_request_may_take_long(tmp_path, monkeypatch):
    handshake = ssl.SSLSocket.do_handshake

    def slow(of, block=False):
        if of.server_side:
            time.sleep(0.3)
        handshake(of, block)

    monkeypatch.setattr(transport, "connect_seconds", lambda url, shown: 0.1)
    monkeypatch.setattr(ssl.SSLSocket, "do_handshake", slow)
    with serve(tls=tmp_path) as server:
        path = kubeconfig(tmp_path / "c", server=server.url, cluster={"certificate-authority": "ca.crt"})
        with pytest.raises(
            ClusterError, match=r"no connection within a few seconds; .* longer with --request-timeout$"
        ):
            read(Connection(kubeconfig=path))
        assert len(read(Connection(kubeconfig=path, timeout_seconds=60.0)).nodes) == 1


@pytest.fixture
def late_handshakes(monkeypatch):
    """Let every TLS handshake begin a little after its connection is made."""
    create = ssl.SSLSocket._create

    def late(of, *args, **kwargs):
        time.sleep(0.1)
        return create(*args, **kwargs)

    monkeypatch.setattr(ssl.SSLSocket, "_create", classmethod(late))


def test_reset_before_the_handshake(tmp_path, late_handshakes, pauses):
    done = threading.Event()

    def hang_up():
        while not done.is_set():
            with suppress(TimeoutError):
                reset(server.accept()[0])

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as pool:
        server.settimeout(0.01)
        host = f"127.0.0.1:{server.getsockname()[1]}"
        pool.submit(hang_up)
        try:
            with pytest.raises(ClusterError) as caught:
                read(Connection(kubeconfig=kubeconfig(tmp_path / "c", server=f"https://{host}")))
        finally:
            done.set()
    assert str(caught.value) == (
        f"{host} cannot be asked: the connection was closed before an answer came; "
        "check the server in the kubeconfig and the network (VPN, proxy, firewall)"
    )
    # Python leaves such a socket open until it is collected, and warns of it then: that fails no test.
    gc.collect()


@pytest.fixture
def no_names(monkeypatch):
    def fail(*args, **kwargs):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)


def test_unknown_name(tmp_path, no_names):
    with pytest.raises(ClusterError) as caught:
        read(Connection(kubeconfig=kubeconfig(tmp_path / "c", server="https://nowhere.invalid:6443")))
    assert str(caught.value) == (
        "nowhere.invalid:6443 cannot be asked: its name cannot be resolved; "
        "check the server in the kubeconfig and the network (VPN, proxy, firewall)"
    )


def test_resolver_that_hangs(tmp_path, monkeypatch):
    monkeypatch.setattr(http, "_RESOLVE_SECONDS", 0.1)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: [] if time.sleep(0.5) else [()])
    with pytest.raises(ClusterError, match=r"^slow\.example cannot be asked: its name was not resolved in 0\.1 s; "):
        read(Connection(kubeconfig=kubeconfig(tmp_path / "c", server="https://slow.example")))


@pytest.mark.parametrize(("addresses", "seconds"), [(1, 10.0), (2, 10.0), (4, 5.0)])
def test_all_addresses_are_tried_in_time(monkeypatch, addresses, seconds):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: [()] * addresses)
    assert http.connect_seconds("https://api.example", "api.example") == seconds


def test_an_address_counts_once():
    assert http.connect_seconds("https://127.0.0.1:1", "127.0.0.1:1") == 10.0


def test_trusted_certificate(tmp_path):
    with serve(tls=tmp_path) as server:
        cluster = read(
            Connection(
                kubeconfig=kubeconfig(tmp_path / "c", server=server.url, cluster={"certificate-authority": "ca.crt"})
            )
        )
    assert len(cluster.nodes) == 1
    assert cluster.reading.notes == ()


@pytest.mark.parametrize(
    ("cluster", "reason"),
    [
        ({}, "unable to get local issuer certificate"),
        (
            {"certificate-authority": "ca.crt", "tls-server-name": "other.example"},
            "Hostname mismatch, certificate is not valid for 'other.example'",
        ),
    ],
)
def test_distrusted_certificate(tmp_path, cluster, reason):
    with serve(tls=tmp_path) as server, pytest.raises(ClusterError) as caught:
        read(Connection(kubeconfig=kubeconfig(tmp_path / "c", server=server.url, cluster=cluster)))
    assert str(caught.value) == (
        f"{server.host} cannot be asked: its TLS certificate is not trusted: {reason}; "
        "check certificate-authority and tls-server-name in the kubeconfig"
    )


def test_skipped_verification_is_a_note(tmp_path):
    with serve(tls=tmp_path) as server:
        path = kubeconfig(tmp_path / "c", server=server.url, cluster={"insecure-skip-tls-verify": True})
        cluster = read(Connection(kubeconfig=path))
    assert len(server.requests) == 6
    assert cluster.reading.notes == ("TLS verification is off, as the kubeconfig says",)


def test_https_to_a_plain_server(tmp_path):
    with serve() as server, pytest.raises(ClusterError) as caught:
        read(Connection(kubeconfig=kubeconfig(tmp_path / "c", server=f"https://{server.host}")))
    assert str(caught.value).startswith(f"{server.host} cannot be asked: TLS failed: ")
    assert str(caught.value).endswith(
        "; check that the server speaks HTTPS, and the certificates and keys in the kubeconfig"
    )


def test_path_in_the_server_url(tmp_path):
    with serve() as server:
        path = kubeconfig(tmp_path / "c", server=f"{server.url}/k8s/clusters/c-1/")
        cluster = read(Connection(kubeconfig=path))
    assert server.requests[0].path == "/k8s/clusters/c-1/api/v1/nodes?limit=500"
    assert cluster.reading.source == f"cluster {server.host} (context mixed)"


def test_proxy_of_the_kubeconfig(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    with serve() as proxy:
        login = {"proxy-url": proxy.url.replace("//", "//me:p%40ss@")}
        path = kubeconfig(tmp_path / "c", server="http://far.invalid:8080", cluster=login)
        read(Connection(kubeconfig=path))
    assert proxy.requests[0].path == "http://far.invalid:8080/api/v1/nodes?limit=500"
    assert proxy.requests[0].headers["Proxy-Authorization"] == "Basic bWU6cEBzcw=="


def test_proxy_of_the_environment(tmp_path, monkeypatch):
    with serve() as proxy, serve() as server:
        monkeypatch.setenv("http_proxy", proxy.host)
        read(Connection(kubeconfig=kubeconfig(tmp_path / "far", server="http://far.invalid:8080")))
        assert len(proxy.requests) == 6
        read(Connection(kubeconfig=kubeconfig(tmp_path / "near", server=server.url)))
        assert (len(proxy.requests), len(server.requests)) == (6, 6)


def test_proxy_that_is_ruled_out(tmp_path, monkeypatch, no_names):
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")
    monkeypatch.setenv("no_proxy", ".example,far.invalid")
    with pytest.raises(ClusterError, match=r"^far\.invalid:8080 cannot be asked: its name cannot be resolved; "):
        read(Connection(kubeconfig=kubeconfig(tmp_path / "c", server="http://far.invalid:8080")))


def test_proxy_that_is_away(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        proxy = f"127.0.0.1:{unused.getsockname()[1]}"
        cluster = {"proxy-url": f"http://me:secret@{proxy}"}
        path = kubeconfig(tmp_path / "c", server="https://far.invalid", cluster=cluster)
        with pytest.raises(ClusterError) as caught:
            read(Connection(kubeconfig=path))
    assert str(caught.value) == (
        f"far.invalid through the proxy {proxy} cannot be asked: connection refused; "
        "check that it runs and the port in the kubeconfig is right"
    )


def test_headers(tmp_path):
    with serve(tls=tmp_path) as server:
        read(local(tmp_path, server))
    headers = server.requests[0].headers
    assert headers["User-Agent"] == f"kubectl-cgaudit/{__version__}"
    assert headers["Accept"] == "application/json"
    assert headers["Accept-Encoding"] == "gzip"
    assert headers["Authorization"] == "Bearer dummy"
    assert "Impersonate-User" not in headers
    nodes, *others = [request.path for request in server.requests]
    assert nodes == "/api/v1/nodes?limit=500"
    # The pods come beside the others, which come one after the other.
    others.remove("/api/v1/pods?limit=500")
    assert others == [
        "/apis/node.k8s.io/v1/runtimeclasses?limit=500",
        "/apis/apps/v1/replicasets?limit=500",
        "/apis/batch/v1/jobs?limit=500",
        "/api/v1/events?limit=500&fieldSelector=reason%3DCgroupV1",
    ]


def test_impersonation_by_flags(tmp_path):
    with serve() as server:
        read(local(tmp_path, server, as_user="jürgen", as_groups=("sre", "auditors")))
    headers = server.requests[0].headers
    assert headers["Impersonate-User"].encode("latin-1").decode() == "jürgen"
    assert headers.get_all("Impersonate-Group") == ["sre", "auditors"]


def test_impersonation_by_kubeconfig(tmp_path):
    user = {"token": "t", "as": "bot", "as-groups": ["a", "b"], "as-uid": "7", "as-user-extra": {"x/y": ["1", "2"]}}
    with serve() as server:
        path = kubeconfig(tmp_path / "c", server=server.url, user=user)
        read(Connection(kubeconfig=path))
        read(Connection(kubeconfig=path, as_user="me", as_groups=("mine",)))
    own, flagged = server.requests[0].headers, server.requests[-1].headers
    assert own["Impersonate-User"] == "bot"
    assert own.get_all("Impersonate-Group") == ["a", "b"]
    assert own["Impersonate-Uid"] == "7"
    assert own.get_all("Impersonate-Extra-x%2Fy") == ["1", "2"]
    assert flagged["Impersonate-User"] == "me"
    assert flagged.get_all("Impersonate-Group") == ["mine"]


def test_gzip(tmp_path):
    def nodes(path):
        code, body, _ = a_list("Node", a_node("zipped"))
        return code, gzip.compress(body), {"Content-Encoding": "gzip", "Content-Length": str(len(gzip.compress(body)))}

    with serve(only(nodes=nodes)) as server:
        assert [node.name for node in read(local(tmp_path, server)).nodes] == ["zipped"]


def test_damaged_gzip(tmp_path):
    damaged = only(nodes=(200, b"no gzip at all", {"Content-Encoding": "gzip"}))
    with serve(damaged) as server, pytest.raises(ClusterError) as caught:
        read(local(tmp_path, server))
    assert str(caught.value).startswith(f"{server.host} cannot be asked: ")
    assert "object at 0x" not in str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_is_not_followed_and_where_it_points_is_said(status, tmp_path):
    answer = (status, b"<html>", {"Location": "https://new.example:6443/\x1b[31mlogin?" + "x" * 300})
    with serve(only(nodes=answer)) as server, pytest.raises(ClusterError) as caught:
        read(local(tmp_path, server))
    where = ("https://new.example:6443/?[31mlogin?" + "x" * 300)[:200]
    assert str(caught.value) == (
        f"{server.host} answered GET /api/v1/nodes with {status}: it points to {where}; correct server in the kubeconfig"
    )
    assert len(server.requests) == 1


def test_redirect_that_does_not_say_where(tmp_path):
    with serve(only(nodes=(307, b"", {}))) as server, pytest.raises(ClusterError) as caught:
        read(local(tmp_path, server))
    assert str(caught.value) == (
        f"{server.host} answered GET /api/v1/nodes with 307: ''; "
        "try again, or see what kubectl get --raw /api/v1/nodes says"
    )


def test_a_packed_redirect_says_where_it_points_too(tmp_path):
    answer = (302, gzip.compress(b"<html>"), {"Location": "/login", "Content-Encoding": "gzip"})
    with (
        serve(only(nodes=answer)) as server,
        pytest.raises(ClusterError, match=r"with 302: it points to /login; correct"),
    ):
        read(local(tmp_path, server))
