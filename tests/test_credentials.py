"""Tokens, proxies and what the client complains of."""

import sys
from pathlib import Path
from typing import Any

import pytest
from kubernetes.config import incluster_config

from kubectl_cgaudit.collect import credentials, exec_plugin
from kubectl_cgaudit.collect.credentials import configure, in_cluster
from kubectl_cgaudit.collect.kubeconfig import Choice, Connection, choose
from kubectl_cgaudit.collect.transport import Api
from kubectl_cgaudit.errors import ClusterError
from tests.vcr_support import LOG_IN, NEXT, kubeconfig, refused, serve, token

pytestmark = pytest.mark.usefixtures("home")


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


def test_unusable_proxy(tmp_path):
    path = kubeconfig(tmp_path / "c", cluster={"proxy-url": "gopher://old.example"})
    message = refused(Connection(kubeconfig=path))
    assert message.startswith("the proxy old.example cannot be used: ")
    assert message.endswith("; correct proxy-url or HTTPS_PROXY")


@pytest.mark.filterwarnings("ignore:SOCKS support")
def test_a_socks_proxy_without_the_module_for_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "socks", None)
    monkeypatch.delitem(sys.modules, "urllib3.contrib.socks", raising=False)
    path = kubeconfig(tmp_path / "c", cluster={"proxy-url": "socks5://me:secret@old.example"})
    message = refused(Connection(kubeconfig=path))
    assert message.startswith("the proxy old.example cannot be used: ")
    assert message.endswith("; correct proxy-url or HTTPS_PROXY")


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
