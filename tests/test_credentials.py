"""Tokens, proxies and what the client complains of."""

from pathlib import Path
from typing import Any

import pytest

from kubectl_cgaudit.collect import credentials, exec_plugin
from kubectl_cgaudit.collect.credentials import configure
from kubectl_cgaudit.collect.kubeconfig import Choice, Connection, choose
from tests.vcr_support import kubeconfig

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
