"""docs/security-review.md says what the tool touches: it touches that and nothing else, whatever flag it is given."""

import base64
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import click
import pytest
import yaml
from msgspec import Struct, field

from kubectl_cgaudit.cli.audit import group
from kubectl_cgaudit.cli.commands import COMMANDS, hidden, load
from kubectl_cgaudit.cli.main import run
from tests.support import GOLDEN, golden_json
from tests.vcr_support import Reply, a_list, a_status, serve

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "security-review.md").read_text()
OBJECTS = ("nodes.json", "pods.json", "workloads.json", "runtimeclasses.json")
NODE, SPACE, POD = "worker-a", "shop", "checkout-d5491e7e7-37202"
ANSWERS = {"/configz": "configz.txt", "/metrics": "metrics.txt", "/metrics/cadvisor": "metrics-cadvisor.txt"}
HEADERS = {"Accept", "Accept-Encoding", "Authorization", "Host", "User-Agent"}
AS, CERTIFIED = {"Impersonate-User", "Impersonate-Group"}, HEADERS - {"Authorization"}
READS, ALL, ONE, THERE, NAMES = (
    "a cluster is read",
    "all of a cluster is read",
    "one node is read",
    "there is a kubeconfig, and a cluster is read or Tab is pressed",
    "the kubeconfig names them",
)
LIVE, TAB = frozenset((READS, ALL, THERE, NAMES)), frozenset((THERE, NAMES))
SMALL = LIVE - {ALL} | {ONE}
PROXY, DIRECT, REFUSED = "`--kubelet=proxy`", "`--kubelet=direct`", "a kubelet refuses the credentials"
NO_PODS, NO_SPACE = "pods may not be listed everywhere", "pods may not be listed everywhere, without `-n`"
PLUGIN, GIVEN, HELD = "a credential plugin is run", "a credential plugin gave them", "the kubeconfig holds them"
NO_AUTHORITY, IN_POD, SAVED, PROXIED = (
    "the kubeconfig has no certificate authority",
    "a pod has no kubeconfig",
    "`--kubelet=files:DIR`",
    "a proxy is named",
)
READ, WRITTEN = "FILE is named to be read", "FILE is named to be written"
FILES = {
    "the kubeconfig": r"/home/\.kube/config",
    "what it names": r"/home/\.kube/(ca\.crt|client\.pem|token)",
    "the system's certificates": r"certificates of the system",
    "the temporary folder: copies": r"/temporary/cgaudit-keys\.(?!killed)\w{8}(/\w+)?",
    "the temporary folder: a trial": r"/temporary(/\w{8}|/cgaudit-keys\.killed00(/key)?)?",
    "`/var/run/secrets": r"/account/(token|ca\.crt)|/var/run/secrets/kubernetes\.io/serviceaccount/namespace",
    "FILE of `-f`": r"/input/[\w.-]+",
    "DIR and in it": rf"/answers(/{NODE}\.(configz|metrics|metrics-cadvisor)\.txt)?",
    "FILE of `-o": r"/output/\w[\w.]*",
    "the folder of FILE": r"/output",
    "`.cgaudit": r"/output/\.cgaudit\.\w+\.tmp",
    "`/dev/null`": r"/dev/null",
}
"""Where the files of a row lie in a test, by how the row begins."""


def table(heading: str) -> list[list[str]]:
    """The rows of the table below a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    assert len(rows) > 2, heading
    return rows[2:]


REQUESTS = {(when, request.strip("`"), to): permission for when, request, to, permission in table("Requests")}


class Scenario(Struct):
    """A command line, and what of the page holds for it. TLS, token, kubeconfig and its files unless it says otherwise."""

    words: list[str]
    when: frozenset[str] = LIVE
    user: str = "token"
    """tokenFile, certificate, embedded, exec, exec-certificate."""
    cluster: str = "named"
    """embedded, system, http, proxy, pod."""
    forbids: bool = False
    refuses: bool = False
    code: int = 0
    headers: set[str] = field(default_factory=lambda: HEADERS)


SCENARIOS = {
    "audit": Scenario(["-o", "json=output/a.json", "-o", "html=output/a.html", "-o", "table"], LIVE | {WRITTEN}),
    "redacted": Scenario(["--redact"]),
    "check": Scenario(["check"]),
    "nodes": Scenario(["nodes"]),
    "tree": Scenario(["tree", NODE], SMALL),
    "explain": Scenario(["explain", f"{SPACE}/{POD}"], SMALL | {"`explain`"}),
    "snapshot": Scenario(["snapshot", "-o", "output/s.json.gz"], LIVE | {WRITTEN}),
    "settings": Scenario(
        ["--states", "input/states.yaml", "--policy", "input/policy.yaml", "--baseline", "input/audit.json"],
        LIVE | {READ},
    ),
    "as": Scenario(["--as", "jane", "--as-group", "ops", "-l", "app=x"], headers=HEADERS | AS, code=3),
    "proxy": Scenario(["verify", "--kubelet=proxy"], LIVE | {PROXY}),
    "direct": Scenario(["--kubelet=direct"], LIVE | {DIRECT}, user="tokenFile"),
    "refused": Scenario(["--kubelet=direct"], LIVE | {DIRECT, REFUSED}, refuses=True, code=3),
    "saved": Scenario(["--kubelet=files:answers"], LIVE | {SAVED}),
    "forbidden": Scenario([], LIVE | {NO_PODS, NO_SPACE}, forbids=True),
    "namespace": Scenario(["-n", SPACE], LIVE | {NO_PODS}, forbids=True, code=3),
    "certificate": Scenario([], user="certificate", headers=CERTIFIED),
    "embedded": Scenario(
        [], frozenset((READS, ALL, THERE, HELD)), user="embedded", cluster="embedded", headers=CERTIFIED
    ),
    "plugin": Scenario([], LIVE | {PLUGIN}, user="exec"),
    "plugin's certificate": Scenario([], LIVE | {PLUGIN, GIVEN}, user="exec-certificate", headers=CERTIFIED),
    "system": Scenario([], frozenset((READS, ALL, THERE, NO_AUTHORITY)), cluster="system"),
    "without TLS": Scenario([], frozenset((READS, ALL, THERE)), user="exec", cluster="http", headers=CERTIFIED),
    "through a proxy": Scenario([], TAB | {PROXIED}, cluster="proxy", code=1),
    "pod": Scenario([], frozenset((READS, ALL, IN_POD)), cluster="pod"),
    "tab: node": Scenario(["__complete", "tree", ""], TAB | {"Tab: a node"}),
    "tab: namespace": Scenario(["__complete", "-n", ""], TAB | {"Tab: a namespace"}),
    "tab: pod": Scenario(["__complete", "explain", f"{SPACE}/"], TAB | {"Tab: a pod"}),
    "files": Scenario(
        [
            *(word for name in OBJECTS for word in ("-f", f"input/{name}")),
            "--to",
            "input/to.yaml",
            "-o",
            "csv=output/a.csv",
        ],
        frozenset((READ, WRITTEN)),
    ),
    "report": Scenario(["report", "input/audit.json", "-o", "sarif=output/a.sarif"], frozenset((READ, WRITTEN))),
    "diff": Scenario(
        ["diff", "input/snapshot.json.gz", "input/audit.json", "--states", "input/states.yaml"], frozenset((READ,))
    ),
    "convert": Scenario(["convert", "250m"], frozenset()),
    "manifests": Scenario(["manifests", "--kubelet=direct"], frozenset()),
    "version": Scenario(["version"], frozenset()),
}


class Touched(Struct):
    """What a run touched."""

    requests: set[tuple[str, str]] = field(default_factory=set)
    """Request and to whom, as the page writes them."""
    headers: set[str] = field(default_factory=set)
    files: dict[str, set[str]] = field(default_factory=dict)
    """How, by the beginning of the page's row."""
    strangers: set[str] = field(default_factory=set)
    """Files, connections and requests that have no place on the page."""
    processes: list[str] = field(default_factory=list)
    variables: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    """The variables that the tool or a library reads, and not Python itself."""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files to be read: an audit, a snapshot, and what both are made of."""
    folder = tmp_path_factory.mktemp("saved")
    for name in (*OBJECTS, "states.yaml"):
        shutil.copy(GOLDEN / name, folder)
    (folder / "to.yaml").write_text("- {cgroup: v2}\n")
    (folder / "policy.yaml").write_text("severities: {CGA206: off}\n")
    files = [word for name in OBJECTS for word in ("-f", str(folder / name))]
    assert run([*files, "-o", f"json={folder / 'audit.json'}"]) == 0
    assert run(["snapshot", *files, "-o", str(folder / "snapshot.json.gz")]) == 0
    return folder


@pytest.fixture(scope="module")
def touched(saved: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Touched]:
    """What the scenario of a name touched; each is run once."""
    done: dict[str, Touched] = {}

    def of(name: str) -> Touched:
        if name not in done:
            done[name] = observed(SCENARIOS[name], saved, tmp_path_factory.mktemp("run"))
        return done[name]

    return of


def observed(scenario: Scenario, saved: Path, folder: Path) -> Touched:
    """Run a scenario between an API server and a kubelet."""
    for name in ("account", "home/.kube", "output", "temporary", "tls"):
        (folder / name).mkdir(parents=True)
    shutil.copytree(saved, folder / "input")
    # What a killed run left.
    (folder / "temporary" / "cgaudit-keys.killed00").mkdir(0o700)
    for name in ("temporary/cgaudit-keys.killed00/key", "output/.cgaudit.killed00.tmp"):
        (folder / name).touch(0o600)
    shutil.copytree(
        GOLDEN, folder / "answers", ignore=lambda _, names: [each for each in names if "worker-" not in each]
    )
    tls = folder / "tls"
    with ExitStack() as servers:
        kubelet = servers.enter_context(serve(lambda path: kubelet_answer(path, scenario), tls))
        port = int(kubelet.host.rpartition(":")[2])
        plain = scenario.cluster in ("http", "proxy")
        api = servers.enter_context(serve(lambda path: api_answer(path, port, scenario), None if plain else tls))
        environment = prepare(scenario, folder, api.url)
        command = [
            sys.executable,
            "-I",
            "-B",
            str(ROOT / "tests" / "observed.py"),
            str(folder / "log"),
            *scenario.words,
        ]
        ended = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
    assert ended.returncode == scenario.code, ended.stderr
    log = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    return sorted_out(
        log, folder, {api.host: "proxy" if scenario.cluster == "proxy" else "API server", kubelet.host: "kubelet"}
    )


def api_answer(path: str, kubelet_port: int, scenario: Scenario) -> Reply:
    """What the API server of a recorded node says; its pods come in two pages."""
    place, _, query = path.partition("?")
    kind = place.rpartition("/")[2]
    if "/proxy/" in place:
        return kubelet_answer(place.partition("/proxy")[2], scenario)
    if place == "/version":
        return 200, b"{}", {}
    if kind == "nodes":
        (node,) = (each for each in golden_json("nodes.json")["items"] if each["metadata"]["name"] == NODE)
        endpoint = {"kubeletEndpoint": {"Port": kubelet_port}}
        where = {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": endpoint}
        return a_list("Node", node | {"status": node["status"] | where})
    if kind == "namespaces":
        return a_list("Namespace", {"metadata": {"name": SPACE}})
    if kind == "pods":
        pods = [pod for pod in golden_json("pods.json")["items"] if pod["spec"].get("nodeName") == NODE]
        if "/namespaces/" in place:
            here = [pod for pod in pods if pod["metadata"]["namespace"] == SPACE]
            return a_list(
                "Pod", *(pod for pod in here if "metadata.name" not in query or pod["metadata"]["name"] == POD)
            )
        if scenario.forbids:
            return a_status(403, "pods is forbidden")
        return a_list("Pod", *pods[5:]) if "continue=" in query else a_list("Pod", *pods[:5], **{"continue": "next"})
    name = {"replicasets": "ReplicaSet", "jobs": "Job", "runtimeclasses": "RuntimeClass", "events": "Event"}[kind]
    known = [*golden_json("workloads.json")["items"], *golden_json("runtimeclasses.json")["items"]]
    return a_list(name, *(each for each in known if each["kind"] == name))


def kubelet_answer(path: str, scenario: Scenario) -> Reply:
    if scenario.refuses:
        return 401, b"Unauthorized", {}
    return 200, (GOLDEN / f"{NODE}.{ANSWERS[path]}").read_bytes(), {}


def prepare(scenario: Scenario, folder: Path, url: str) -> dict[str, str]:
    """Write the kubeconfig of a scenario and what it names; the environment to run in."""
    environment = {"HOME": str(folder / "home"), "TMPDIR": str(folder / "temporary"), "PATH": "/usr/bin:/bin"}
    kube = folder / "home" / ".kube"
    authority, pem = (folder / "tls" / "ca.crt").read_text(), (folder / "tls" / "server.pem").read_text()
    if scenario.cluster == "pod":
        (folder / "account" / "ca.crt").write_text(authority)
        (folder / "account" / "token").write_text("mounted")
        host, _, port = url.removeprefix("https://").rpartition(":")
        account = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        return environment | account | {"SERVICE_ACCOUNT": str(folder / "account")}
    for name, text in (("ca.crt", authority), ("client.pem", pem), ("token", "kept")):
        (kube / name).write_text(text)
    given: dict[str, str] = {"token": "given"}
    if scenario.user == "exec-certificate":
        given = {"clientCertificateData": pem, "clientKeyData": pem}
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": given}
    (kube / "plugin").write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(credential)}\nEND\n")
    (kube / "plugin").chmod(0o700)
    encoded = base64.b64encode(pem.encode()).decode()
    plugin = {"apiVersion": credential["apiVersion"], "command": "./plugin", "interactiveMode": "Never"}
    users: dict[str, dict[str, Any]] = {
        "token": {"token": "t"},
        "tokenFile": {"tokenFile": "token"},
        "certificate": {"client-certificate": "client.pem", "client-key": "client.pem"},
        "embedded": {"client-certificate-data": encoded, "client-key-data": encoded},
    }
    clusters = {
        "named": {"server": url, "certificate-authority": "ca.crt"},
        "embedded": {"server": url, "certificate-authority-data": base64.b64encode(authority.encode()).decode()},
        "proxy": {"server": "https://api.example:6443", "certificate-authority": "ca.crt"},
    }
    if scenario.cluster == "proxy":
        environment["HTTPS_PROXY"] = url
    if scenario.cluster == "system":
        environment["SSL_CERT_FILE"] = str(folder / "tls" / "ca.crt")
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": clusters.get(scenario.cluster, {"server": url})}],
        "users": [{"name": "u", "user": users.get(scenario.user, {"exec": plugin})}],
    }
    (kube / "config").write_text(yaml.safe_dump(config))
    return environment


def sorted_out(log: list[list[str]], folder: Path, peers: dict[str, str]) -> Touched:
    """What was noted, by the rows of the page."""
    found = Touched()
    modules = [str(ROOT / "kubectl_cgaudit"), *filter(None, log[0][1:])]
    for what, about, *more in log[1:]:
        if what == "ask":
            method, target, *headers = more
            found.requests.add((request(method, target), peers.get(about, about)))
            found.headers |= {*headers} if method == "GET" else set()
        elif what == "run":
            found.processes.append(about)
        elif what == "variable":
            found.variables.add(about)
            if more[0].startswith(str(ROOT / "kubectl_cgaudit")) or "site-packages" in more[0]:
                found.own.add(about)
        elif what in ("bind", "connect", "resolve", "sendmsg", "sendto"):
            known = {"bind ::1:0", *(f"connect {each}" for each in peers), "resolve 127.0.0.1"}
            found.strangers |= {" ".join([what, ":".join([about, *more])])} - known
        elif what not in ("list", "read") or not about.startswith((*modules, f"{folder}/__editable__")):
            path = about.removeprefix(str(folder))
            row = next((row for row, pattern in FILES.items() if re.fullmatch(pattern, path)), "")
            found.files.setdefault(row, set()).add({"mkdir": "write", "rmdir": "remove"}.get(what, what))
            found.strangers |= set() if row else {f"{what} {path}"}
    return found


def request(method: str, target: str) -> str:
    """A request as the page writes it: names of nodes and namespaces, and what leads through the pages, are left out."""
    if method == "CONNECT":
        assert target == "api.example:6443"
        return "CONNECT HOST:PORT` of the API server"
    parts = urlsplit(target)
    path = re.sub(r"(?<=/nodes/)[^/]+", "NODE", re.sub(r"(?<=/namespaces/)[^/]+", "NAMESPACE", parts.path))
    query = dict(parse_qsl(parts.query))
    assert query.pop("limit", "500") == "500"
    query.pop("continue", "")
    if "fieldSelector" in query:
        name = query["fieldSelector"].partition("=")[2]
        query["fieldSelector"] = query["fieldSelector"].replace(name, {NODE: "NODE", POD: "POD"}.get(name, name))
    rest = "&".join(f"{name}={value}" for name, value in query.items())
    return (path if method == "GET" else f"{method} {path}") + (f"?{rest}" if rest else "")


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_requests_are_those_of_the_page(name: str, touched: Callable[[str], Touched]) -> None:
    found, scenario = touched(name), SCENARIOS[name]
    expected = {(request, to) for when, request, to in REQUESTS if when in scenario.when}
    assert found.requests == expected
    assert found.headers == (scenario.headers if expected and scenario.cluster != "proxy" else set())


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_files_processes_and_connections_are_those_of_the_page(
    name: str, touched: Callable[[str], Touched]
) -> None:
    found, scenario = touched(name), SCENARIOS[name]
    assert found.strangers == set()
    expected = {row: access for row, (when, access) in rows().items() if when & scenario.when}
    assert set(found.files) == set(expected)
    assert [row for row, access in found.files.items() if not access <= expected[row]] == []
    assert [Path(each).name for each in found.processes] == (["plugin"] if PLUGIN in scenario.when else [])


def rows() -> dict[str, tuple[set[str], set[str]]]:
    """When and how a file is touched, by how the page's row begins."""
    found = {}
    for files, when, access in table("Files"):
        (row,) = (each for each in FILES if files.startswith(each))
        found[row] = set(when.split(", or ")), set(access.split(", "))
    assert list(found) == list(FILES)
    return found


def test_nothing_is_on_the_page_that_is_never_touched(touched: Callable[[str], Touched]) -> None:
    every = [touched(name) for name in SCENARIOS]
    assert set().union(*(each.requests for each in every)) == {(request, to) for _, request, to in REQUESTS}
    accesses: dict[str, set[str]] = {}
    for each in every:
        for row, access in each.files.items():
            accesses.setdefault(row, set()).update(access)
    assert accesses == {row: access for row, (_, access) in rows().items()}


def test_the_variables_are_those_of_the_page(touched: Callable[[str], Touched]) -> None:
    every = [touched(name) for name in SCENARIOS]
    listed = {name for names, _ in table("Environment variables") for name in re.findall("`(.+?)`", names)}
    own = {name for each in every for name in each.own}
    assert {"POLARS_*" if name.startswith("POLARS_") else name for name in own} <= listed
    # OpenSSL reads these where it loads the system's certificates, and the system that which finds a plugin.
    unseen = {"SSL_CERT_FILE", "SSL_CERT_DIR", "PATH"}
    seen = set().union(*(each.variables for each in every))
    assert any(name.startswith("POLARS_") for name in seen)
    assert listed - unseen - {"POLARS_*"} <= seen


def test_the_permissions_follow_from_the_requests() -> None:
    for (_, request, to), permission in REQUESTS.items():
        kind = request.partition("?")[0].rpartition("/")[2]
        expected = f"`list` {kind}"
        if to == "kubelet":
            expected = f"`get` nodes/{'configz' if kind == 'configz' else 'metrics'}"
        elif "/proxy/" in request:
            expected = "`get` nodes/proxy"
        elif to == "proxy" or kind == "version":
            expected = "none"
        elif "NAMESPACE" in request:
            expected += " in NAMESPACE"
        assert permission.removesuffix(", optional").removesuffix(" (before 1.33 nodes/proxy)") == expected, request


def test_every_command_and_every_flag_that_names_a_file_is_on_the_page() -> None:
    every = [group, *map(load, COMMANDS)]
    options = [each for command in every for each in command.params if isinstance(each, click.Option)]
    named = {each.opts[0] for each in options if re.search(r"FILE|DIR", each.metavar or "")} | {"--to"}
    assert len(named) == 10
    assert {flag for flag in named if f"`{flag}" not in PAGE} == set()
    assert {name for name in COMMANDS if not hidden(name) and f"`{name}" not in PAGE} == set()
