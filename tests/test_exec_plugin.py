"""Exec plugins: run as kubectl runs them, and every way they can fail."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kubectl_cgaudit.collect import exec_plugin
from kubectl_cgaudit.collect.credentials import log_in
from kubectl_cgaudit.collect.kubeconfig import Connection, choose
from tests.support import Terminal
from tests.vcr_support import LOG_IN, RECORDED, a_status, kubeconfig, refused, serve, small_cluster, token, trusting

pytestmark = pytest.mark.usefixtures("home")


def plugin(tmp_path: Path, code: str, server: str = RECORDED, trusted: dict[str, str] | None = None, **more) -> str:
    """A kubeconfig whose exec plugin runs Python code."""
    script = tmp_path / "plugin.py"
    script.write_text(f"import json, os, sys\n{code}\n")
    api = "client.authentication.k8s.io/v1"
    called = {"apiVersion": api, "command": sys.executable, "args": [str(script)], "interactiveMode": "Never"}
    return kubeconfig(tmp_path / "c", server, trusted, user={"exec": called | more})


def says(**status: str) -> str:
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return f"print({json.dumps(credential)!r})"


def test_plugin(tmp_path):
    env = [{"name": "WHO", "value": "me"}]
    assert (
        token(plugin(tmp_path, f"assert os.environ['WHO'] == 'me'\n{says(token='fresh')}", env=env)) == "Bearer fresh"
    )


def test_a_plugin_has_the_environment_of_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "prod")
    assert token(plugin(tmp_path, f"assert os.environ['AWS_PROFILE'] == 'prod'\n{says(token='t')}")) == "Bearer t"


def test_plugin_with_a_certificate(tmp_path):
    choice = choose(Connection(kubeconfig=plugin(tmp_path, says(clientCertificateData="CERT", clientKeyData="KEY"))))
    assert choice is not None
    configuration = log_in(choice).configuration
    assert Path(configuration.cert_file).read_text() == "CERT"
    assert Path(configuration.key_file).read_text() == "KEY"


def test_plugin_beside_the_kubeconfig(tmp_path):
    script = tmp_path / "bin" / "login"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\n{says(token='near')}\n")
    script.chmod(0o755)
    called = {"apiVersion": "client.authentication.k8s.io/v1", "command": "bin/login"}
    assert token(kubeconfig(tmp_path / "c", user={"exec": called})) == "Bearer near"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("sys.exit('please\\nlog in')", f"failed with exit code 1; what it said stands above; {LOG_IN}"),
        ("os.kill(os.getpid(), 9)", f"ended by signal 9; what it said stands above; {LOG_IN}"),
        ("print('hello')", f"printed no ExecCredential: JSON is malformed: invalid character (byte 0); {LOG_IN}"),
        ("print('7')", f"printed no ExecCredential: Expected `object`, got `int`; {LOG_IN}"),
        (
            "print(json.dumps({'apiVersion': 'x', 'kind': 'ExecCredential', 'status': {'token': 5}}))",
            f"printed no ExecCredential: Expected `str | null`, got `int` - at `$.status.token`; {LOG_IN}",
        ),
        (
            "print(json.dumps({'apiVersion': 'client/v9', 'kind': 'ExecCredential', 'status': {'token': 'x'}}))",
            "speaks client/v9, not client.authentication.k8s.io/v1; correct apiVersion in the kubeconfig, or update the "
            "plugin",
        ),
    ],
)
def test_failing_plugin(tmp_path, code, reason):
    assert refused(Connection(kubeconfig=plugin(tmp_path, code))) == (
        f"the exec plugin {sys.executable} of context mixed {reason}"
    )


def test_what_a_plugin_says_is_heard_while_it_waits(tmp_path, capfd):
    """A log-in by device code would wait for ever if its words were kept back."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    code = f"print('open https://log.in and type AB-CD', file=sys.stderr, flush=True)\nopen({str(gate)!r}).read()"
    path = plugin(tmp_path, f"{code}\n{says(token='t')}")
    with ThreadPoolExecutor(1) as pool:
        got = pool.submit(token, path)
        heard = ""
        while "AB-CD" not in heard:
            heard += capfd.readouterr().err
            assert not got.done()
        gate.write_text("go")
        assert got.result() == "Bearer t"


@pytest.mark.parametrize(("mode", "asked"), [("Never", False), ("IfAvailable", True), ("Always", True), (None, True)])
def test_a_plugin_may_ask_where_there_is_a_terminal(tmp_path, monkeypatch, mode, asked):
    monkeypatch.setattr(exec_plugin, "_is_terminal", lambda: True)
    code = "assert json.loads(os.environ['KUBERNETES_EXEC_INFO'])['spec'] == {'interactive': %r}\n%s"
    assert token(plugin(tmp_path, code % (asked, says(token="t")), interactiveMode=mode)) == "Bearer t"


@pytest.mark.parametrize(("stdin", "is_one"), [(None, False), (Terminal(terminal=False), False), (Terminal(), True)])
def test_what_a_terminal_is(monkeypatch, stdin, is_one):
    monkeypatch.setattr(sys, "stdin", stdin)
    assert exec_plugin._is_terminal() is is_one


def test_a_plugin_that_must_ask_is_not_run_without_a_terminal(tmp_path, monkeypatch):
    monkeypatch.setattr(exec_plugin, "_is_terminal", lambda: False)
    assert refused(Connection(kubeconfig=plugin(tmp_path, "", interactiveMode="Always"))) == (
        f"the exec plugin {sys.executable} of context mixed asks questions, and standard input is no terminal; run it in one, "
        "or log in first"
    )


@pytest.mark.parametrize(
    ("extensions", "config"),
    [
        ({}, {}),
        (
            {
                "extensions": [
                    {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}},
                    {"name": "other"},
                ]
            },
            {"config": {"audience": "x"}},
        ),
    ],
    ids=["plain", "extended"],
)
def test_a_plugin_is_told_of_the_cluster_where_it_wants_to_know(tmp_path, extensions, config):
    code = "told = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\nassert told == %r, told\n" + says(token="t")
    api = "client.authentication.k8s.io/v1"
    cluster = {"server": "https://api.example", **extensions}
    told = {"server": "https://api.example", **config}
    spec = {"interactive": False, "cluster": told}
    script = tmp_path / "plugin.py"
    script.write_text("import json, os\n" + code % {"apiVersion": api, "kind": "ExecCredential", "spec": spec})
    called = {"apiVersion": api, "command": sys.executable, "args": [str(script)], "interactiveMode": "Never"}
    called["provideClusterInfo"] = True
    assert token(kubeconfig(tmp_path / "c", cluster=cluster, user={"exec": called})) == "Bearer t"


def test_a_plugin_is_not_run_where_the_cluster_cannot_be_told(tmp_path):
    called = {"apiVersion": "v1", "command": "no-such-login", "provideClusterInfo": True}
    path = kubeconfig(tmp_path / "c", cluster={"extensions": 5}, user={"exec": called})
    assert refused(Connection(kubeconfig=path)) == (
        "the exec plugin no-such-login of context mixed cannot be told of the cluster: its entry is malformed; "
        "correct its extensions"
    )


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"args": [5]}, "Expected `str`, got `int` - at `$.args[0]`"),
        ({"env": [{"name": "A"}]}, "Object missing required field `value` - at `$.env[0]`"),
        ({"command": ["/bin/login"]}, "Expected `str`, got `array` - at `$.command`"),
        ({"command": None}, "Expected `str`, got `null` - at `$.command`"),
        ({"interactiveMode": "Maybe"}, "Invalid enum value 'Maybe' - at `$.interactiveMode`"),
    ],
)
def test_a_plugin_that_cannot_be_run_as_it_is_written(tmp_path, fields, why):
    assert refused(Connection(kubeconfig=plugin(tmp_path, "", **fields))) == (
        f"the exec plugin of context mixed cannot be run: {why}; correct the kubeconfig"
    )


def test_a_plugin_that_may_not_be_run(tmp_path):
    (tmp_path / "login").write_text("")
    assert refused(Connection(kubeconfig=plugin(tmp_path, "", command=str(tmp_path / "login")))) == (
        f"the exec plugin {tmp_path / 'login'} of context mixed cannot be run: Permission denied; correct the kubeconfig"
    )


def test_a_plugin_whose_name_no_system_takes(tmp_path):
    assert refused(Connection(kubeconfig=plugin(tmp_path, "", command="log\0in"))) == (
        "the exec plugin log\0in of context mixed cannot be run: embedded null byte; correct the kubeconfig"
    )


@pytest.mark.parametrize("given", [{}, {"token": ""}, {"clientCertificateData": "CERT"}, {"clientKeyData": "KEY"}])
def test_plugin_without_credentials(tmp_path, given):
    assert refused(Connection(kubeconfig=plugin(tmp_path, says(**given)))) == (
        f"the exec plugin {sys.executable} of context mixed gave neither token nor certificate; {LOG_IN}"
    )


@pytest.mark.parametrize(
    ("hint", "step"),
    [
        ({}, "install it, then try again"),
        ({"installHint": "get it\n  from us"}, "get it from us"),
        ({"installHint": "x" * 201}, "x" * 200),
    ],
)
def test_missing_plugin(tmp_path, hint, step):
    path = plugin(tmp_path, "", command="no-such-login", **hint)
    assert refused(Connection(kubeconfig=path)) == (
        f"the exec plugin no-such-login of context mixed is not installed; {step}"
    )


@pytest.mark.parametrize("run", [0, 1], ids=["at first", "to renew"])
def test_a_plugin_does_not_outlive_the_audit(tmp_path, run):
    """The one that renews is asked by a thread, which nobody waits for at the end."""
    told = tmp_path / "told"
    os.mkfifo(told)
    code = (
        f"import time\nruns = open({str(tmp_path / 'runs')!r}, 'a')\n"
        f"if runs.tell() == {run}:\n    told = open({str(told)!r}, 'w')\n    print('asked', file=told, flush=True)\n"
        f"    time.sleep(20)\n    print('outlived it', file=told)\nruns.write('x')\n"
    )
    refusing = serve(
        lambda path: small_cluster(path) if "nodes" in path else a_status(401, "Unauthorized"), tls=tmp_path
    )
    with refusing as server:
        path = plugin(tmp_path, code + says(token="t"), server.url, trusting(server))
        command = [sys.executable, "-m", "kubectl_cgaudit", "--kubeconfig", path]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as audit, told.open() as heard:
            assert heard.readline() == "asked\n"
            audit.terminate()
            audit.communicate(timeout=10)
            assert heard.read() == ""
    assert audit.returncode == 128 + signal.SIGTERM
