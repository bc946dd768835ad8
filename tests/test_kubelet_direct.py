"""Kubelets asked at their own port: whom they trust, who is trusted, what is sent."""

import socket
from contextlib import suppress
from types import SimpleNamespace

import pytest

from kubectl_cgaudit.collect import http, kubelet
from kubectl_cgaudit.collect.http import Answer, UnreachableError
from kubectl_cgaudit.collect.kubeconfig import Connection
from kubectl_cgaudit.collect.progress import silent
from kubectl_cgaudit.collect.transport import Api
from kubectl_cgaudit.errors import ClusterError
from tests.kubelet_support import ALL, ENDINGS, PODS, Reply, good, healthy, no_answers
from tests.vcr_support import Scripted, a_status, kubeconfig, serve

pytestmark = pytest.mark.usefixtures("home")


def direct_cluster(path: str) -> Reply:
    return healthy(path)


def directly(api: Api, addresses, **more):
    return kubelet.from_kubelets(api, addresses, PODS, silent, seconds=5.0, **more)


def port_of(server) -> int:
    return int(server.host.rpartition(":")[2])


def test_direct(tmp_path, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    with serve(direct_cluster, tls=tmp_path) as server:
        cluster = {
            "certificate-authority": "ca.crt",
            "tls-server-name": "api.example",
            "proxy-url": "http://127.0.0.1:9",
        }
        path = kubeconfig(tmp_path / "c", server="https://api.example", cluster=cluster, user={"token": "mine"})
        with Api(Connection(kubeconfig=path)) as api:
            answers = directly(api, {"n1": ("127.0.0.1", port_of(server)), "n2": ("127.0.0.1", port_of(server))})
        assert sorted(request.path for request in server.requests) == sorted([*ENDINGS] * 2)
        headers = server.requests[0].headers
    assert answers == {"n1": good("n1"), "n2": good("n2")}
    assert headers["Authorization"] == "Bearer mine"


@pytest.mark.parametrize("says", [[Answer(200, b"a")] * 3, [UnreachableError("away", "away")], [KeyError("a bug")]])
def test_the_connections_of_each_kubelet_are_closed(says):
    door_, cleared, asked = Scripted(*says), [], []
    door_.pool = SimpleNamespace(clear=lambda: cleared.append(True))

    def door_to(host, port):
        asked.append((host, port))
        return door_

    api = SimpleNamespace(
        hide=str,
        unproven=False,
        kubelet_doors=lambda *flags: asked.append(flags) or door_to,
        door=lambda *limits: None,
    )
    with suppress(KeyError):
        directly(api, {"n1": ("10.0.0.1", 65535), "n2": ("10.0.0.1", 65536), "n3": ("10.0.0.1", 0)}, insecure=True)
    assert (asked, cleared) == ([(True, 5.0, 64 << 20), ("10.0.0.1", 65535)], [True])


def test_direct_without_trust_sends_no_token(tmp_path):
    with serve(direct_cluster, tls=tmp_path) as server:
        path = kubeconfig(tmp_path / "c", server="https://api.example")
        with Api(Connection(kubeconfig=path)) as api:
            addresses = {"n1": ("127.0.0.1", port_of(server))}
            answers = directly(api, addresses)
            assert server.requests == []
            trusting = directly(api, addresses, insecure=True)
            assert len(server.requests) == 3
    assert answers["n1"] == no_answers(
        "n1",
        f"{ALL} could not be read (its TLS certificate is not trusted: unable to get local issuer certificate): "
        "give --kubelet-insecure-tls to ask it all the same",
    )
    assert trusting["n1"] == good("n1")


def test_direct_with_an_unverified_kubeconfig(tmp_path):
    with serve(direct_cluster, tls=tmp_path) as server:
        path = kubeconfig(tmp_path / "c", server="https://api.example", cluster={"insecure-skip-tls-verify": True})
        with Api(Connection(kubeconfig=path)) as api:
            assert directly(api, {"n1": ("127.0.0.1", port_of(server))})["n1"] == good("n1")


def test_direct_name_that_does_not_match(tmp_path):
    with serve(direct_cluster, tls=tmp_path) as server:
        path = kubeconfig(tmp_path / "c", server="https://api.example", cluster={"certificate-authority": "ca.crt"})
        with Api(Connection(kubeconfig=path)) as api:
            answers = directly(api, {"n1": ("localhost", port_of(server))})
        assert server.requests == []
    assert "Hostname mismatch, certificate is not valid for 'localhost'" in answers["n1"].problems[0]
    assert answers["n1"].problems[0].endswith("give --kubelet-insecure-tls to ask it all the same")


def test_direct_with_a_client_certificate(tmp_path):
    with serve(direct_cluster, tls=tmp_path) as server:
        user = {"client-certificate": str(tmp_path / "server.pem"), "client-key": str(tmp_path / "server.pem")}
        cluster = {"certificate-authority": "ca.crt"}
        path = kubeconfig(tmp_path / "c", server="https://api.example", cluster=cluster, user=user)
        with Api(Connection(kubeconfig=path)) as api:
            assert directly(api, {"n1": ("127.0.0.1", port_of(server))})["n1"] == good("n1")
            assert server.requests[0].headers["Authorization"] is None
            (tmp_path / "server.pem").write_text("gone")
            with pytest.raises(ClusterError, match=r"^the certificates of the kubeconfig cannot be used: "):
                directly(api, {})
            (tmp_path / "server.pem").unlink()
            with pytest.raises(ClusterError) as caught:
                directly(api, {})
    assert str(caught.value) == (
        "the certificates of the kubeconfig cannot be used: No such file or directory; "
        "log in again, or correct the kubeconfig"
    )


@pytest.mark.parametrize(
    ("code", "problems"),
    [
        (
            403,
            (
                "/configz may not be read (403): grant get on nodes/configz (before 1.33 nodes/proxy)",
                "/metrics, /metrics/cadvisor may not be read (403): grant get on nodes/metrics",
            ),
        ),
        (
            401,
            (f"{ALL} may not be read (401): the kubelet does not accept the token or certificate it is asked with",),
        ),
        (404, (f"{ALL} could not be read (404: no)",)),
    ],
)
def test_direct_refusals(tmp_path, code, problems):
    with serve(lambda path: a_status(code, "no"), tls=tmp_path) as server:
        path = kubeconfig(tmp_path / "c", server="https://api.example", cluster={"certificate-authority": "ca.crt"})
        with Api(Connection(kubeconfig=path)) as api:
            answers = directly(api, {"n1": ("127.0.0.1", port_of(server))})
    assert answers["n1"] == no_answers("n1", *problems)


def test_direct_connection_failures(tmp_path, monkeypatch):
    monkeypatch.setattr(http, "CONNECT_SECONDS", 1.0)
    with (
        socket.socket() as unused,
        socket.create_server(("127.0.0.1", 0)) as mute,
        serve(direct_cluster, tls=tmp_path) as server,
        serve(direct_cluster) as plain,
    ):
        unused.bind(("127.0.0.1", 0))
        path = kubeconfig(tmp_path / "c", server="https://api.example", cluster={"certificate-authority": "ca.crt"})
        with Api(Connection(kubeconfig=path)) as api:
            addresses = {
                "refused": ("127.0.0.1", unused.getsockname()[1]),
                "mute": ("127.0.0.1", mute.getsockname()[1]),
                "plain": ("127.0.0.1", port_of(plain)),
                "v6": ("::1", port_of(server)),
                "n1": ("127.0.0.1", port_of(server)),
                "port": ("127.0.0.1", 0),
                "path": ("127.0.0.1/x?", port_of(server)),
                "login": ("me@127.0.0.1", port_of(server)),
            }
            answers = directly(api, addresses)
    assert answers["n1"] == good("n1")
    assert answers["refused"].problems == (f"{ALL} could not be read (connection refused)",)
    assert answers["mute"].problems == (f"{ALL} could not be read (no connection within a few seconds)",)
    assert answers["plain"].problems[0].startswith(f"{ALL} could not be read (TLS failed: ")
    assert answers["v6"].problems[0].startswith(f"{ALL} could not be read (")
    assert answers["port"].problems == (f"{ALL} cannot be asked for ('127.0.0.1:0' is no address)",)
    assert answers["path"].problems[0].endswith(" is no address)")
    assert answers["login"].problems[0].endswith(" is no address)")
    assert len(server.requests) == 3


EXPIRED = "the kubelet does not accept the token or certificate it is asked with"


@pytest.mark.parametrize(
    ("server_takes", "kubelet_takes", "problems", "asked"),
    [
        pytest.param("new", "new", (), ["/configz", "/version", "/version", "/configz", *[*ENDINGS][1:]], id="expired"),
        pytest.param(
            "old",
            "none",
            (f"{ALL} may not be read (401): {EXPIRED}",),
            ["/configz", "/version", *[*ENDINGS][1:]],
            id="the kubelet takes no tokens",
        ),
        pytest.param(
            "none",
            "none",
            (f"{ALL} may not be read (401): {EXPIRED}",),
            ["/configz", "/version", "/version", "/configz", *[*ENDINGS][1:]],
            id="neither takes the new one",
        ),
    ],
)
def test_direct_credentials_that_expire_are_renewed(tmp_path, server_takes, kubelet_takes, problems, asked):
    def answer(path: str) -> Reply:
        shown = server.requests[-1].headers["Authorization"]
        takes = server_takes if path == "/version" else kubelet_takes
        if shown == f"Bearer {takes}":
            return healthy(path) if path != "/version" else (200, b"{}", {})
        return a_status(401, "Unauthorized") if path == "/version" else (401, b"Unauthorized", {})

    with serve(answer, tls=tmp_path) as server:
        (tmp_path / "token").write_text("old")
        cluster = {"certificate-authority": "ca.crt"}
        user = {"tokenFile": str(tmp_path / "token")}
        path = kubeconfig(tmp_path / "c", server=f"https://{server.host}", cluster=cluster, user=user)
        with Api(Connection(kubeconfig=path)) as api:
            (tmp_path / "token").write_text("new")
            answers = directly(api, {"n1": ("127.0.0.1", port_of(server))})
        assert [request.path for request in server.requests] == asked
    assert answers["n1"] == (no_answers("n1", *problems) if problems else good("n1"))


def test_direct_credentials_that_cannot_be_renewed_are_said(tmp_path):
    with serve(lambda path: a_status(401, "Unauthorized"), tls=tmp_path) as server:
        (tmp_path / "token").write_text("old")
        user = {"tokenFile": str(tmp_path / "token")}
        cluster = {"certificate-authority": "ca.crt"}
        path = kubeconfig(tmp_path / "c", server=f"https://{server.host}", cluster=cluster, user=user)
        with Api(Connection(kubeconfig=path)) as api:
            (tmp_path / "token").unlink()
            answers = directly(api, {"n1": ("127.0.0.1", port_of(server))})
    assert answers["n1"] == no_answers(
        "n1",
        f"{ALL} could not be read (the API server refuses the credentials: the tokenFile of context mixed cannot be read: "
        "No such file or directory; log in again, or correct the kubeconfig)",
    )


def test_direct_credentials_that_are_renewed_and_cannot_be_used_are_said():
    refusing = Scripted(Answer(401, b"Unauthorized"))
    doors = [refusing]

    def door_to(host, port):
        if not doors:
            raise ClusterError("the certificates of the kubeconfig cannot be used: gone; log in again")
        return doors.pop()

    refusing.pool = SimpleNamespace(clear=lambda: None)
    api = SimpleNamespace(
        hide=str,
        unproven=False,
        kubelet_doors=lambda *flags: door_to,
        door=lambda *limits: Scripted(Answer(200, b"{}")),
    )
    assert directly(api, {"n1": ("10.0.0.1", 10250)})["n1"] == no_answers(
        "n1",
        f"{ALL} could not be read (the API server refuses the credentials: the certificates of the kubeconfig cannot be used: "
        "gone; log in again)",
    )
