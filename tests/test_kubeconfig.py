"""Which kubeconfig counts, how several are merged, and what is said of a wrong one."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml
from kubernetes.config import incluster_config

from kubectl_cgaudit.collect.credentials import log_in
from kubectl_cgaudit.collect.kubeconfig import Connection, choose
from tests.support import command
from tests.vcr_support import LOG_IN, NEXT, kubeconfig, refused, token

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
        (
            "a: [",
            "the kubeconfig {path} is not valid YAML at line 1: did not find expected node content; correct it, or "
            + NEXT,
        ),
        (
            "[" * 9999,
            "the kubeconfig {path} is not valid YAML at line 1: it is nested more than 100 levels deep; correct it, or "
            + NEXT,
        ),
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


@pytest.mark.parametrize("section", ["contexts", "clusters", "users"])
def test_two_entries_of_one_name_are_refused_even_if_nobody_uses_them(tmp_path, section):
    path = Path(kubeconfig(tmp_path / "c", user={"token": "secret"}))
    config = yaml.safe_load(path.read_text())
    config[section] += [{"name": 7}, {"name": "7"}, config[section][0] | {"name": "other"}]
    path.write_text(yaml.safe_dump(config))
    assert refused(Connection(kubeconfig=str(path))) == (
        f"{section} of the kubeconfig {path} has 2 entries named '7'; keep one of them"
    )


@pytest.mark.parametrize("server", ["https://me:secret@a", "http://secret@a:1/x"])
def test_a_login_in_the_servers_url_is_refused_and_not_shown(tmp_path, server):
    assert refused(Connection(kubeconfig=kubeconfig(tmp_path / "c", server=server))) == (
        "the server of cluster 'mixed-cluster' has a login in its URL; move it to a user's entry"
    )


@pytest.mark.parametrize(
    "server",
    [
        "",
        "localhost:8080",
        "ftp://a",
        "https://[::1",
        "https://a:x",
        " https://a",
        "https://a\t",
        "ht\ntps://a",
        "https:a",
    ],
)
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
    assert Path(log_in(choice).configuration.ssl_ca_cert).read_bytes() == b"abcdef"


def test_missing_certificate_file(tmp_path):
    path = kubeconfig(tmp_path / "c", cluster={"certificate-authority": "ca.crt"})
    assert refused(Connection(kubeconfig=path)) == (
        f"the credentials of context mixed cannot be used: File does not exist: {tmp_path / 'ca.crt'}; {LOG_IN}"
    )


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


def test_a_list_of_no_files_names_none(monkeypatch):
    monkeypatch.setenv("KUBECONFIG", os.pathsep)
    assert refused(Connection()) == f"no kubeconfig found (KUBECONFIG names no file); {NEXT}"


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


def test_a_kubeconfig_may_come_through_a_pipe_though_it_is_looked_at_twice(tmp_path):
    path = kubeconfig(tmp_path / "c", "https://127.0.0.1:1")
    program = f"{' '.join(command())} --kubeconfig <(cat {path}) -o json=a.json"
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        ["bash", "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr.startswith("error: 127.0.0.1:1 cannot be asked: connection refused; ")
