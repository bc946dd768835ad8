"""Tokens, plugins, certificates and proxies: what is sent to whom, and what is said where it cannot be used."""

import base64
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from kubernetes.config import incluster_config

from kubectl_cgaudit.collect import credentials, exec_plugin
from kubectl_cgaudit.collect.credentials import in_cluster, log_in
from kubectl_cgaudit.collect.kubeconfig import Choice, Connection, choose
from kubectl_cgaudit.collect.live import Kubelets
from kubectl_cgaudit.collect.transport import Api
from kubectl_cgaudit.errors import ClusterError, UsageError
from tests.live_support import read
from tests.vcr_support import LOG_IN, NEXT, a_status, kubeconfig, refused, serve, token

pytestmark = pytest.mark.usefixtures("home")


def configured(tmp_path: Path, cluster: dict[str, Any] | None = None, server: str = "https://a.example") -> Any:
    choice = choose(Connection(kubeconfig=kubeconfig(tmp_path / "c", server, cluster)))
    assert choice is not None
    return log_in(choice).configuration


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
    assert (found.proxy, found.no_proxy) == (proxy, None)
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
        return credentials._with_token(Choice(where="context c", cluster={}, user=fields, namespace=""))[0]

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


def test_token_file_wins_and_is_trimmed(tmp_path):
    (tmp_path / "token").write_text("from-file\n")
    path = kubeconfig(tmp_path / "c", user={"tokenFile": "token", "token": "old"})
    assert token(path) == "Bearer from-file"


@pytest.mark.parametrize("value", ["sek\nret", "sek\x00ret", "s\u00ebkret"])
def test_a_token_that_no_header_may_hold_is_refused_and_not_shown(tmp_path, value):
    (tmp_path / "token").write_text(value)
    path = kubeconfig(tmp_path / "c", user={"tokenFile": "token"})
    with Api(Connection(kubeconfig=path)) as api, pytest.raises(ClusterError) as caught:
        api.fetch("/api", bytes)
    said = str(caught.value)
    assert said.startswith("the token holds a line break or another character that a token cannot have; ")
    assert not {"sek", "ret"} & set(said.replace("sek", " sek ").split())


def test_missing_token_file(tmp_path):
    path = kubeconfig(tmp_path / "c", user={"tokenFile": "token"})
    assert refused(Connection(kubeconfig=path)) == (
        f"the tokenFile of context mixed cannot be read: No such file or directory; {LOG_IN}"
    )


def test_an_empty_token_file_is_no_reason_to_ask_as_nobody(tmp_path):
    (tmp_path / "token").write_text(" \n")
    path = kubeconfig(tmp_path / "c", user={"tokenFile": "token", "token": "old"})
    assert refused(Connection(kubeconfig=path)) == f"the tokenFile of context mixed is empty; {LOG_IN}"


def test_a_token_file_that_holds_no_text(tmp_path):
    (tmp_path / "token").write_bytes(b"\xff")
    path = kubeconfig(tmp_path / "c", user={"tokenFile": "token"})
    assert refused(Connection(kubeconfig=path)) == (
        "the tokenFile of context mixed cannot be read: 'utf-8' codec can't decode byte 0xff in position 0: "
        f"invalid start byte; {LOG_IN}"
    )


def test_user_and_password(tmp_path):
    assert token(kubeconfig(tmp_path / "c", user={"username": "me", "password": "pw"})) == "Basic bWU6cHc="


def test_auth_provider_that_is_gone(tmp_path):
    path = kubeconfig(tmp_path / "c", user={"auth-provider": {"name": "azure", "config": {}}})
    assert refused(Connection(kubeconfig=path)) == (
        "the auth-provider of context mixed gave no token; log in again, or use an exec plugin"
    )


def test_the_command_of_an_auth_provider_is_not_run(tmp_path):
    """As kubectl: of gcp, which it has no more, the client still runs it."""
    command, ran = tmp_path / "gcloud", tmp_path / "ran"
    command.write_text(f"#!/bin/sh\ntouch {ran}\n")
    command.chmod(0o700)
    for config in ({"cmd-path": str(command), "cmd-args": "config"}, {"cmd-path": str(command), "access-token": "t"}):
        path = kubeconfig(tmp_path / "c", user={"auth-provider": {"name": "gcp", "config": config}})
        assert refused(Connection(kubeconfig=path)) == (
            "the auth-provider of context mixed gave no token; log in again, or use an exec plugin"
        )
    assert not ran.exists()


@pytest.mark.filterwarnings("ignore:SOCKS support")
def test_a_socks_proxy_without_the_module_for_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "socks", None)
    monkeypatch.delitem(sys.modules, "urllib3.contrib.socks", raising=False)
    path = kubeconfig(tmp_path / "c", cluster={"proxy-url": "socks5://me:secret@old.example"})
    assert refused(Connection(kubeconfig=path)) == (
        "the proxy old.example cannot be used: the Python package PySocks is not installed; correct proxy-url or HTTPS_PROXY"
    )


NOT_ENCRYPTED = "The connection to the API server is not encrypted (http://): no credentials were sent"
PLUGIN = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "interactiveMode": "Never",
    "command": "sh",
    "args": ["-c", "echo ran >&2; exit 1"],
}


@pytest.mark.parametrize(
    "user",
    [
        pytest.param({"token": "secret"}, id="token"),
        pytest.param({"tokenFile": "missing"}, id="token file, not even looked for"),
        pytest.param({"username": "me", "password": "secret"}, id="basic"),
        pytest.param({"exec": PLUGIN}, id="plugin"),
        pytest.param(
            {"auth-provider": {"name": "oidc", "config": {"id-token": "e30.eyJleHAiOjV9.x"}}}, id="ended oidc"
        ),
        pytest.param({"auth-provider": {"name": "gcp", "config": {"access-token": "secret"}}}, id="provider"),
        pytest.param({"client-certificate": "missing", "client-key": "missing"}, id="certificate"),
    ],
)
@pytest.mark.parametrize("scheme", ["http", "HTTP"])
def test_over_http_no_credentials_are_sent_and_no_plugin_is_run(tmp_path, capfd, scheme, user):
    with serve() as server:
        ignored = {"certificate-authority": "missing", "insecure-skip-tls-verify": True, "tls-server-name": "a"}
        url = f"{scheme}://{server.host}"
        path = kubeconfig(tmp_path / "c", url, ignored, user | {"as": "bot", "as-groups": ["g"]})
        cluster = read(Connection(kubeconfig=path), kubelets=Kubelets(direct=False, insecure=False, seconds=None))
    assert "/api/v1/nodes/node-1/proxy/configz" in [request.path for request in server.requests]
    assert [request.headers["Authorization"] for request in server.requests] == [None] * 9
    # To be taken for somebody is no secret, and kubectl says it over http too.
    assert {request.headers["Impersonate-User"] for request in server.requests} == {"bot"}
    assert {request.headers["Impersonate-Group"] for request in server.requests} == {"g"}
    assert cluster.reading.notes == (NOT_ENCRYPTED,)
    assert capfd.readouterr().err == ""


def test_a_server_that_wants_credentials_over_http_is_told_apart_from_one_that_refuses_them(tmp_path):
    with serve(lambda path: a_status(401, "Unauthorized")) as server, pytest.raises(ClusterError) as caught:
        read(Connection(kubeconfig=kubeconfig(tmp_path / "c", server.url)))
    assert str(caught.value) == (
        f"{server.host} wants credentials (401 Unauthorized), and none are sent over http://; "
        "correct server in the kubeconfig to https://"
    )
    assert len(server.requests) == 1


def test_kubelets_are_not_asked_directly_without_credentials(tmp_path):
    asked = Kubelets(direct=True, insecure=False, seconds=None)
    with serve() as server, pytest.raises(UsageError) as caught:
        read(Connection(kubeconfig=kubeconfig(tmp_path / "c", server.url)), kubelets=asked)
    assert str(caught.value) == (
        "--kubelet=direct needs the credentials of the kubeconfig, and none are used as its server is http://; "
        "use --kubelet=proxy, or correct the server to https://"
    )
    assert server.requests == []


def test_https_in_capital_letters_is_https(tmp_path):
    with serve(tls=tmp_path) as server:
        user = {"token": "mine", "client-certificate": "server.pem", "client-key": "server.pem"}
        path = kubeconfig(tmp_path / "c", f"HTTPS://{server.host}", {"certificate-authority": "ca.crt"}, user)
        assert read(Connection(kubeconfig=path)).reading.notes == ()
        assert server.requests[0].headers["Authorization"] == "Bearer mine"
        path = kubeconfig(tmp_path / "c", f"Https://{server.host}", {"insecure-skip-tls-verify": True})
        assert read(Connection(kubeconfig=path)).reading.notes == ("TLS verification is off, as the kubeconfig says",)


@pytest.mark.parametrize(
    ("user", "sent"),
    [
        ({"username": "ключ", "password": "пароль"}, "ключ:пароль"),
        ({"username": "me"}, "me:"),
        ({"username": "me", "password": "pw", "exec": None}, "me:pw"),
    ],
)
def test_a_login_is_sent_in_utf_8_as_kubectl_sends_it(tmp_path, user, sent):
    encoded = base64.b64encode(sent.encode()).decode()
    assert token(kubeconfig(tmp_path / "c", user=user)) == f"Basic {encoded}"


@pytest.mark.parametrize("user", [{"username": 5}, {"username": "me", "password": ["secret"]}])
def test_a_login_that_is_no_text_is_refused_and_not_shown(tmp_path, user):
    path = kubeconfig(tmp_path / "c", user=user)
    assert refused(Connection(kubeconfig=path)) == f"the username or password of context mixed is no text; {LOG_IN}"


@pytest.mark.parametrize("field", ["certificate-authority", "certificate-authority-data"])
def test_a_ca_is_not_ignored_in_silence(tmp_path, field):
    (tmp_path / "YWJj").write_text("x")
    path = kubeconfig(tmp_path / "c", cluster={field: "YWJj", "insecure-skip-tls-verify": True})
    assert refused(Connection(kubeconfig=path)) == (
        f"context mixed has {field} together with insecure-skip-tls-verify, which would ignore it; "
        "remove one of the two from the kubeconfig"
    )
    path = kubeconfig(tmp_path / "c", cluster={field: "YWJj", "insecure-skip-tls-verify": False})
    with Api(Connection(kubeconfig=path)) as api:
        assert api.unverified is False


def test_service_account(tmp_path, monkeypatch):
    (tmp_path / "token").write_text("mounted\n")
    with serve(tls=tmp_path) as server:
        host, _, port = server.host.partition(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
        monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
        with Api(Connection()) as api:
            assert api.fetch("/api/v1/nodes?limit=500", lambda answer: answer.status) == 200
    assert api.source == f"cluster {server.host} (in-cluster service account)"
    assert server.requests[0].headers["Authorization"] == "bearer mounted"


def test_service_account_without_token(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    with pytest.raises(ClusterError) as caught:
        in_cluster()
    assert str(caught.value) == (
        f"no kubeconfig found, and the pod's service account cannot be used: Service token file does not exist; {NEXT}"
    )


@pytest.fixture
def nowhere_to_write(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nonexistent"])


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({"certificate-authority-data": "YWJj"}, {"token": "t"}),
        ({}, {"client-certificate-data": "YWJj", "client-key-data": "YWJj"}),
    ],
)
def test_what_is_embedded_needs_a_temporary_folder(tmp_path, nowhere_to_write, cluster, user):
    path = kubeconfig(tmp_path / "c", cluster=cluster, user=user)
    assert refused(Connection(kubeconfig=path)) == (
        "the certificates of context mixed stand in no file and need a temporary folder, and none can be written to; "
        "set TMPDIR to one that can"
    )


def test_what_is_in_files_needs_none(tmp_path, nowhere_to_write):
    for name in ("a.crt", "a.key"):
        (tmp_path / name).write_text("x")
    user = {"client-certificate": "a.crt", "client-key": "a.key"}
    with Api(Connection(kubeconfig=kubeconfig(tmp_path / "c", user=user))) as api:
        assert api._configuration.key_file == str(tmp_path / "a.key")


HEADS = ["-----BEGIN ENCRYPTED PRIVATE KEY-----\n", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("embedded", [False, True])
def test_an_encrypted_key_is_named_and_nobody_asked_for_its_passphrase(tmp_path, head, embedded):
    (tmp_path / "a.crt").write_text("x")
    (tmp_path / "a.key").write_text(head)
    data = base64.b64encode(head.encode()).decode()
    user = {"client-certificate": "a.crt"} | ({"client-key-data": data} if embedded else {"client-key": "a.key"})
    assert refused(Connection(kubeconfig=kubeconfig(tmp_path / "c", user=user))) == (
        "the client-key of context mixed is encrypted, and kubectl cannot use it either; decrypt it first, as with: "
        "openssl pkey -in KEY -out DECRYPTED"
    )


@pytest.mark.parametrize("name", ["client-certificate", "client-certificate-data"])
def test_a_certificate_without_a_key_says_what_is_missing(tmp_path, name):
    path = kubeconfig(tmp_path / "c", user={name: "YWJj"})
    assert refused(Connection(kubeconfig=path)) == (
        f"context mixed has {name} and no client-key; add client-key or client-key-data to its user"
    )


def oidc(tmp_path, id_token, issuer="https://issuer.example", **more):
    config = {"idp-issuer-url": issuer, "client-id": "a", "client-secret": "b", "refresh-token": "once"}
    provider = {"name": "oidc", "config": config | ({"id-token": id_token} if id_token else {})}
    return kubeconfig(tmp_path / "c", user={"auth-provider": provider, **more})


def id_token(claims):
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{payload}.sig"


RENEW = "run any kubectl command to renew it, then try again"


@pytest.mark.parametrize(
    "given",
    [
        id_token({"exp": 1011}),
        id_token({}),
        id_token({"exp": None}),
        id_token({"exp": "soon"}),
        id_token([]),
        "opaque",
        "a.b.c",
        "a.é.c",
    ],
)
def test_an_oidc_token_that_may_hold_is_used(tmp_path, monkeypatch, given):
    monkeypatch.setattr(credentials.time, "time", lambda: 1000.0)
    assert token(oidc(tmp_path, given)) == f"Bearer {given}"


def test_an_oidc_token_that_has_ended_is_refused_and_nobody_is_asked_for_another(tmp_path, monkeypatch):
    monkeypatch.setattr(credentials.time, "time", lambda: 1000.0)
    with serve() as issuer:
        for ends, shown in ((1010, "1970-01-01T00:16:50Z"), (5, "1970-01-01T00:00:05Z")):
            path = oidc(tmp_path, id_token({"exp": ends}), issuer.url)
            assert refused(Connection(kubeconfig=path)) == (
                f"the id-token of context mixed ends at {shown}, and this machine's clock is at 1970-01-01T00:16:40Z; "
                f"correct the clock, or {RENEW}"
            )
    assert issuer.requests == []
    path = oidc(tmp_path, None)
    assert refused(Connection(kubeconfig=path)) == f"the auth-provider of context mixed has no id-token; {RENEW}"
    path = kubeconfig(tmp_path / "d", user={"auth-provider": {"name": "oidc"}})
    assert refused(Connection(kubeconfig=path)) == (
        "the auth-provider of context mixed gave no token; log in again, or use an exec plugin"
    )


def test_a_token_of_the_users_own_counts_before_that_of_a_provider(tmp_path):
    ended = id_token({"exp": 5})
    (tmp_path / "token").write_text("filed")
    assert token(oidc(tmp_path, ended, token="own")) == "Bearer own"
    assert token(oidc(tmp_path, ended, tokenFile="token")) == "Bearer filed"
    assert token(oidc(tmp_path, ended, username="me", password="pw")) == "Basic bWU6cHc="
