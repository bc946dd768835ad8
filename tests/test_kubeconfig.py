"""Which kubeconfig counts, how several are merged, and what is said of a wrong one."""

import base64
import json
import os
import sys
from pathlib import Path

import pytest
import yaml
from kubernetes.config import incluster_config

from kubectl_cgaudit.collect import credentials
from kubectl_cgaudit.collect.credentials import configure, in_cluster
from kubectl_cgaudit.collect.kubeconfig import Connection, choose
from kubectl_cgaudit.collect.transport import Api
from kubectl_cgaudit.errors import ClusterError
from tests.vcr_support import kubeconfig, refused, serve, token

NEXT = "give --kubeconfig FILE, set KUBECONFIG, or audit saved objects with -f FILE"


LOG_IN = "log in again, or correct the kubeconfig"


pytestmark = pytest.mark.usefixtures("home")


def test_no_kubeconfig(home):
    looked = home / ".kube" / "config"
    assert refused(Connection()) == f"no kubeconfig found (looked at {looked}); {NEXT}"
    assert refused(Connection(context="x")) == f"no kubeconfig found (looked at {looked}); {NEXT}"


@pytest.mark.parametrize("flag", ["context", "cluster", "user"])
def test_who_names_a_cluster_or_user_does_not_get_the_one_of_the_pod(home, monkeypatch, flag):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    looked = home / ".kube" / "config"
    assert refused(Connection(**{flag: "prod"})) == f"no kubeconfig found (looked at {looked}); {NEXT}"


def test_explicit_file_that_is_missing(tmp_path):
    missing = str(tmp_path / "missing")
    assert refused(Connection(kubeconfig=missing)) == f"the kubeconfig {missing} does not exist; {NEXT}"


def test_default_file(home):
    (home / ".kube").mkdir()
    kubeconfig(home / ".kube" / "config", name="default")
    choice = choose(Connection())
    assert choice is not None
    assert choice.where == "context default"


def test_flag_wins_over_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path / "a", name="variable"))
    choice = choose(Connection(kubeconfig=kubeconfig(tmp_path / "b", name="flag")))
    assert choice is not None
    assert choice.where == "context flag"


def test_files_are_merged_and_the_first_wins(tmp_path, monkeypatch):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    first = kubeconfig(tmp_path / "one" / "c", "https://one.example", {"certificate-authority": "ca.crt"}, name="one")
    second = kubeconfig(tmp_path / "two" / "c", "https://two.example", {"certificate-authority": "ca.crt"}, name="two")
    third = kubeconfig(tmp_path / "three", "https://other.example", name="two")
    paths = [first, str(tmp_path / "missing"), "", second, third]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(paths))
    current, other = choose(Connection()), choose(Connection(context="two"))
    assert current is not None
    assert other is not None
    assert current.where == "context one"
    assert current.cluster["server"] == "https://one.example"
    assert other.cluster["server"] == "https://two.example"
    assert other.cluster["certificate-authority"] == str(tmp_path / "two" / "ca.crt")


def test_files_are_looked_for_beside_the_kubeconfig(tmp_path):
    (tmp_path / "7").write_text("seven")
    cluster = {"certificate-authority": "/etc/ca.crt"}
    user = {"client-certificate": "a/b.crt", "client-key": "b.key", "tokenFile": 7}
    path = kubeconfig(tmp_path / "c", cluster=cluster, user=user)
    choice = choose(Connection(kubeconfig=path))
    assert choice is not None
    assert choice.cluster["certificate-authority"] == "/etc/ca.crt"
    assert choice.user == {
        "client-certificate": str(tmp_path / "a" / "b.crt"),
        "client-key": str(tmp_path / "b.key"),
        "tokenFile": str(tmp_path / "7"),
    }


def test_cluster_and_user_flags(tmp_path, monkeypatch):
    first = kubeconfig(tmp_path / "a", "https://one.example", name="one")
    second = kubeconfig(tmp_path / "b", "https://two.example", user={"token": "second"}, name="two")
    before = Path(first).read_bytes()
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([first, second]))
    choice = choose(Connection(cluster="two-cluster", user="two-user"))
    assert choice is not None
    assert (choice.where, choice.cluster["server"], choice.user) == (
        "context one",
        "https://two.example",
        {"token": "second"},
    )
    assert Path(first).read_bytes() == before


@pytest.mark.parametrize("what", ["context", "cluster", "user"])
def test_unknown_name(tmp_path, what):
    path = kubeconfig(tmp_path / "c")
    known = "mixed" if what == "context" else f"mixed-{what}"
    assert refused(Connection(kubeconfig=path, **{what: "x"})) == (
        f"there is no {what} 'x' in the kubeconfig (there are: {known}); choose another with --{what} NAME"
    )


def test_a_context_that_names_no_cluster(tmp_path):
    path = tmp_path / "c"
    path.write_text("current-context: a\ncontexts: [{name: a, context: {}}]\nclusters: [{name: b, cluster: {}}]\n")
    assert refused(Connection(kubeconfig=str(path))) == (
        "there is no cluster '' in the kubeconfig (there are: b); choose another with --cluster NAME"
    )


def test_at_most_ten_names(tmp_path):
    contexts = [{"name": f"c{number:02}", "context": {}} for number in range(13)]
    path = tmp_path / "c"
    path.write_text(yaml.safe_dump({"contexts": contexts}))
    ten = "c00, c01, c02, c03, c04, c05, c06, c07, c08, c09"
    assert refused(Connection(kubeconfig=str(path), context="x")) == (
        f"there is no context 'x' in the kubeconfig (there are: {ten} and 3 more); choose another with --context NAME"
    )
    assert refused(Connection(kubeconfig=str(path))) == (
        f"the kubeconfig has no current-context (there are: {ten} and 3 more); choose one with --context NAME"
    )


def test_names_that_look_like_numbers(tmp_path):
    path = tmp_path / "c"
    path.write_text(
        "current-context: 1\ncontexts: [{name: 1, context: {cluster: 2, user: 3}}]\n"
        "clusters: [{name: 2, cluster: {server: 'https://a.example'}}]\nusers: [{name: 3, user: {token: t}}]\n"
    )
    choice = choose(Connection(kubeconfig=str(path)))
    assert choice is not None
    assert choice.where == "context 1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "the kubeconfig {path} is not valid YAML (line 1); correct it, or " + NEXT),
        ("[" * 9999, "the kubeconfig {path} is not valid YAML; correct it, or " + NEXT),
        ("- a", "{path} is not a kubeconfig; " + NEXT),
        ("", "{path} names no cluster; " + NEXT),
        (
            "contexts: [{context: {}}]",
            "contexts of the kubeconfig {path} is not a list of named entries; correct it, or " + NEXT,
        ),
        ("users: 7", "users of the kubeconfig {path} is not a list of named entries; correct it, or " + NEXT),
    ],
)
def test_broken_file(tmp_path, text, message):
    path = tmp_path / "c"
    path.write_text(text)
    assert refused(Connection(kubeconfig=str(path))) == message.format(path=path)


def test_directory_as_kubeconfig(tmp_path):
    assert refused(Connection(kubeconfig=str(tmp_path))) == (
        f"the kubeconfig {tmp_path} cannot be read: Is a directory; {NEXT}"
    )


def test_a_kubeconfig_may_be_json_with_tabs(tmp_path):
    plain = Path(kubeconfig(tmp_path / "c"))
    plain.write_text("\n" + json.dumps(yaml.safe_load(plain.read_text()), indent="\t"))
    choice = choose(Connection(kubeconfig=str(plain)))
    assert choice is not None
    assert (choice.where, choice.cluster["server"]) == ("context mixed", "https://mixed-cluster.example:6443")
    plain.write_text("{current-context: mixed, contexts: [{name: mixed, context: {}}], clusters: []}")
    assert refused(Connection(kubeconfig=str(plain))).startswith("there is no cluster '' in the kubeconfig")


def test_fields_that_say_nothing_are_as_if_they_were_not_there(tmp_path):
    empty = {"tls-server-name": None, "insecure-skip-tls-verify": None, "certificate-authority": "", "proxy-url": ""}
    user = {"token": "t", "tokenFile": "", "exec": None, "client-certificate": None}
    path = kubeconfig(tmp_path / "c", "https://a.example", empty, user)
    choice = choose(Connection(kubeconfig=path))
    assert choice is not None
    assert (choice.cluster, choice.user) == ({"server": "https://a.example"}, {"token": "t"})
    assert token(path) == "Bearer t"


@pytest.mark.parametrize("server", ["", "localhost:8080", "ftp://a", "https://[::1", "https://a:x"])
def test_bad_server(tmp_path, server):
    assert refused(Connection(kubeconfig=kubeconfig(tmp_path / "c", server=server))) == (
        "cluster 'mixed-cluster' of the kubeconfig has no https:// server; correct its entry"
    )


@pytest.mark.parametrize(
    ("cluster", "user", "named"),
    [
        ({"certificate-authority-data": "no base64!"}, {}, "certificate-authority-data of cluster 'mixed-cluster'"),
        ({}, {"client-key-data": "abc"}, "client-key-data of user 'mixed-user'"),
    ],
)
def test_bad_base64(tmp_path, cluster, user, named):
    path = kubeconfig(tmp_path / "c", cluster=cluster, user=user)
    assert refused(Connection(kubeconfig=path)) == f"{named} in the kubeconfig is not base64; {LOG_IN}"


def test_base64_may_be_broken_into_lines(tmp_path):
    path = kubeconfig(tmp_path / "c", cluster={"certificate-authority-data": "YWJj\n  ZGVm\n"})
    choice = choose(Connection(kubeconfig=path))
    assert choice is not None
    assert Path(configure(choice).ssl_ca_cert).read_bytes() == b"abcdef"


def test_missing_certificate_file(tmp_path):
    path = kubeconfig(tmp_path / "c", cluster={"certificate-authority": "ca.crt"})
    assert refused(Connection(kubeconfig=path)) == (
        f"the credentials of context mixed cannot be used: File does not exist: {tmp_path / 'ca.crt'}; {LOG_IN}"
    )


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


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("insecure-skip-tls-verify", "false", "neither true nor false"),
        ("insecure-skip-tls-verify", 1, "neither true nor false"),
        ("tls-server-name", 5, "not a name"),
        ("tls-server-name", ["a"], "not a name"),
    ],
)
def test_what_decides_whom_to_trust_has_the_right_type(tmp_path, field, value, what):
    path = kubeconfig(tmp_path / "c", cluster={field: value})
    assert refused(Connection(kubeconfig=path)) == f"{field} of context mixed is {what}; correct it in the kubeconfig"


def test_a_kubeconfig_that_may_not_be_looked_at_is_named(monkeypatch, tmp_path):
    def denied(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", denied)
    assert refused(Connection(kubeconfig="/k/c")) == f"the kubeconfig /k/c cannot be read: Permission denied; {NEXT}"
    monkeypatch.setenv("KUBECONFIG", "/k/d")
    assert refused(Connection()) == f"the kubeconfig /k/d cannot be read: Permission denied; {NEXT}"


def test_without_a_home_folder_the_next_step_is_named(tmp_path, monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert refused(Connection()) == f"no kubeconfig found (there is no home folder to look in); {NEXT}"
    # A pod without HOME and without an entry in passwd has a service account all the same.
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    assert refused(Connection()) == (
        f"no kubeconfig found, and the pod's service account cannot be used: Service token file does not exist; {NEXT}"
    )


def test_missing_token_file(tmp_path):
    path = kubeconfig(tmp_path / "c", user={"tokenFile": "token"})
    assert refused(Connection(kubeconfig=path)) == (
        f"the tokenFile of context mixed cannot be read: No such file or directory; {LOG_IN}"
    )


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
