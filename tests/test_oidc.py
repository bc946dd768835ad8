"""Tokens of the auth-provider oidc: used while they hold, and never renewed."""

import base64
import json

import pytest

from kubectl_cgaudit.collect import credentials
from kubectl_cgaudit.collect.kubeconfig import Connection
from tests.vcr_support import kubeconfig, refused, serve, token

pytestmark = pytest.mark.usefixtures("home")


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
        for given in (id_token({"exp": 1010}), id_token({"exp": 5})):
            path = oidc(tmp_path, given, issuer.url)
            assert refused(Connection(kubeconfig=path)) == f"the id-token of context mixed has expired; {RENEW}"
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
