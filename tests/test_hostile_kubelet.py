"""Kubelets that mean harm cost their own answers, and no report shows what a server or kubelet was sent."""

import base64
import gzip
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.collect import http, kubelet
from kubectl_cgaudit.collect.http import RequestError
from kubectl_cgaudit.collect.kubeconfig import Connection
from kubectl_cgaudit.collect.live import Kubelets
from kubectl_cgaudit.collect.redaction import Redaction
from kubectl_cgaudit.collect.transport import Api
from tests.kubelet_support import SMALL
from tests.live_support import only, read
from tests.vcr_support import Reply, a_list, a_node, a_pod, a_status, kubeconfig, serve, small_cluster, trusting

pytestmark = pytest.mark.usefixtures("home")
TOKEN = "tok-9f8e7d6c5b4a39281706-end"
MIB = 1 << 20


def basic(login: str) -> str:
    return base64.b64encode(login.encode()).decode()


@pytest.mark.parametrize(
    ("user", "said", "shown"),
    [
        ({"token": TOKEN}, f"no, Bearer {TOKEN}!", "no, Bearer [credential]!"),
        ({"username": "me", "password": "s3cr3t-pa55"}, f"Basic {basic('me:s3cr3t-pa55')}", "Basic [credential]"),
        ({"username": "me", "password": "s3cr3t-pa55"}, "me has s3cr3t-pa55.", "me has [credential]."),
        ({"username": "me", "password": "pa55"}, "me/pa55 is not pa555", "me/[credential] is not pa555"),
    ],
)
def test_credentials_that_a_server_repeats_are_in_no_note(
    tmp_path: Path, user: dict[str, str], said: str, shown: str
) -> None:
    with serve(only(pods=a_list("Pod", a_pod("one")), jobs=a_status(400, said)), tls=tmp_path) as server:
        path = kubeconfig(tmp_path / "c", server.url, trusting(server), user)
        cluster = read(Connection(kubeconfig=path))
    assert cluster.reading.notes == (
        f"Jobs could not be listed (400: {shown}): CronJobs are named from the Job's name",
    )


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ((400, f"{'x' * 40} Bearer {TOKEN} more".encode(), {}), f"400: '{'x' * 40} Bearer [credential]"),
        ((200, f"{'x' * 40} Bearer {TOKEN} more".encode(), {}), f"no list of Jobs but '{'x' * 40} Bearer [credential]"),
        (
            (302, b"", {"Location": f"https://a.example/?t={TOKEN}"}),
            "302: it points to https://a.example/?t=[credential])",
        ),
        ((200, b"{}", {"Content-Encoding": TOKEN}), "the answer is packed as [credential], and gzip was asked for)"),
        ((400, f"cut: {TOKEN[:12]}".encode(), {}), "400: 'cut: [credential]')"),
    ],
)
def test_a_text_that_is_cut_shows_no_part_of_the_token_either(tmp_path: Path, reply: Reply, shown: str) -> None:
    with serve(only(pods=a_list("Pod", a_pod("one")), jobs=reply), tls=tmp_path) as server:
        path = kubeconfig(tmp_path / "c", server.url, trusting(server), {"token": TOKEN})
        cluster = read(Connection(kubeconfig=path))
    (note,) = cluster.reading.notes
    assert note.startswith(f"Jobs could not be listed ({shown}")
    assert TOKEN[:4] not in note


def test_what_is_no_credential_is_left_alone() -> None:
    hide = Redaction([TOKEN, "", "adm"])
    text = 'pods is forbidden: User "admin" cannot list resource "pods"'
    assert hide(text) == text
    assert hide("adm did") == "[credential] did"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_attempt_that_was_given_up_reads_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """Headers that trickle in are read as long as they come: urllib3 waits for each piece anew."""
    monkeypatch.setattr(http, "_GRACE", 0.05)
    with serve(tls=tmp_path):
        pass  # The certificates stay.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    gone = threading.Event()

    def trickle() -> None:
        connection, _ = listener.accept()
        with context.wrap_socket(connection, server_side=True) if scheme == "https" else connection as talk:
            talk.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            for _ in range(500):
                try:
                    talk.sendall(b"a")
                except OSError:
                    gone.set()
                    return
                time.sleep(0.01)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=trickle)
        thread.start()
        ca = {"certificate-authority": "ca.crt"}
        path = kubeconfig(tmp_path / "c", f"{scheme}://127.0.0.1:{listener.getsockname()[1]}", ca)
        with Api(Connection(kubeconfig=path)) as api:
            with pytest.raises(RequestError) as caught:
                api.door(0.5, MIB).get("/", float("inf"))
            ended = gone.wait(3)
        thread.join()
    assert (caught.value.why, ended) == ("no answer within 0.5 s", True)


MARKUP = "<script>alert(1)</script>\x1b[31m\u202e|"
UNREAD = "/configz, /metrics, /metrics/cadvisor could not be read"


def saying(config: bytes, metrics: bytes, cadvisor: bytes) -> Callable[[str], Reply]:
    bodies = {"/configz": config, "/metrics": metrics, "/metrics/cadvisor": cadvisor}
    return lambda endpoint: (200, bodies[endpoint], {})


def named(name: str) -> bytes:
    return f'kubelet_cgroup_version 2\nkubelet_node_name{{node="{name}"}} 1\n'.encode()


HOSTILE: dict[str, tuple[Callable[[str], Reply], tuple[str, ...]]] = {
    "endless": (lambda endpoint: (200, b"# x\n" * (1 << 20), {}), (f"{UNREAD} (larger than 2 MiB)",)),
    "bomb": (
        lambda endpoint: (200, gzip.compress(b"\0" * 64 * MIB), {"Content-Encoding": "gzip"}),
        (f"{UNREAD} (larger than 2 MiB)",),
    ),
    "a large configuration": (
        saying(b'{"kubeletconfig":{}}' + b" " * (MIB - 20 + 1), SMALL["/metrics"], b"a 1\n"),
        (
            "/configz could not be used: the answer is larger than 1 MiB; ask again",
            "/metrics/cadvisor could not be used: there is no container_spec_cpu_shares in it; "
            "see whether the kubelet leaves cAdvisor out",
        ),
    ),
    "garbage": (
        lambda endpoint: (200, b"\xff\xfe\x00", {}),
        (
            "/configz could not be used: the answer is not JSON but '\ufffd\ufffd\\x00'; ask again",
            "/metrics, /metrics/cadvisor could not be used: the metrics are not UTF-8 (byte 0); ask again",
        ),
    ),
    "another node's": (
        saying(SMALL["/configz"], named("elsewhere"), SMALL["/metrics/cadvisor"]),
        ("/metrics is of another node ('elsewhere'): all answers were ignored",),
    ),
    "markup": (
        saying(SMALL["/configz"], named(MARKUP), SMALL["/metrics/cadvisor"]),
        (f"/metrics is of another node ({MARKUP!r}): all answers were ignored",),
    ),
    "the token": (
        lambda endpoint: (500, f"you sent Bearer {TOKEN}".encode(), {}),
        (f"{UNREAD} (500: 'you sent Bearer [credential]')",),
    ),
    "the token as metrics": (
        lambda endpoint: (200, f"Bearer {TOKEN}\n".encode(), {}),
        (
            "/configz could not be used: the answer is not JSON but 'Bearer [credential]\\n'; ask again",
            "/metrics, /metrics/cadvisor could not be used: "
            "the answer is no Prometheus text but 'Bearer [credential]\\n'; ask again",
        ),
    ),
}


def a_cluster(answer: Callable[[str], Reply], port: list[int]) -> Callable[[str], Reply]:
    """An API server, and at the same port the one kubelet, whose answers are the test's."""

    def reply(path: str) -> Reply:
        endpoint = path.removeprefix("/api/v1/nodes/node-1/proxy")
        if endpoint in SMALL:
            return answer(endpoint)
        if path.startswith("/api/v1/nodes"):
            node = a_node()
            node["status"]["addresses"] = [{"type": "InternalIP", "address": "127.0.0.1"}]
            node["status"]["daemonEndpoints"] = {"kubeletEndpoint": {"Port": port[0]}}
            return a_list("Node", node)
        pod = a_pod("a")
        pod["spec"]["nodeName"] = "node-1"
        return a_list("Pod", pod) if path.startswith("/api/v1/pods") else small_cluster(path)

    return reply


@pytest.mark.parametrize("direct", [False, True], ids=["proxy", "direct"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_kubelet_that_means_harm_costs_its_own_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, direct: bool
) -> None:
    monkeypatch.setattr(kubelet, "LARGEST", 2 * MIB)
    answer, problems = HOSTILE[name]
    port = [0]
    with serve(a_cluster(answer, port), tls=tmp_path) as server:
        port[0] = int(server.host.rpartition(":")[2])
        path = kubeconfig(tmp_path / "c", server.url, trusting(server), {"token": TOKEN})
        cluster = read(Connection(kubeconfig=path), kubelets=Kubelets(direct=direct, insecure=False, seconds=5.0))
    assert cluster.kubelets["node-1"].problems == problems
    assert cluster.kubelets["node-1"].shares == {}
    assert [pod.name for pod in cluster.pods] == ["a"]


@pytest.mark.parametrize("way", ["proxy", "direct"])
def test_a_kubelet_that_says_nothing_is_waited_for_so_long_and_its_reader_ended(
    tmp_path: Path, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    over, port = threading.Event(), [0]

    def says_nothing(endpoint: str) -> Reply:
        over.wait(20)
        return 200, b"", {}

    with serve(a_cluster(says_nothing, port), tls=tmp_path) as server:
        port[0] = int(server.host.rpartition(":")[2])
        path = kubeconfig(tmp_path / "c", server.url, trusting(server), {"token": TOKEN})
        began = time.monotonic()
        code = run(["--kubeconfig", path, f"--kubelet={way}", "--request-timeout=1s", "-o", "json"])
        took = time.monotonic() - began
        over.set()
    (gap,) = json.loads(capsys.readouterr().out)["coverage"]["gaps"]
    assert (code, gap["why"]) == (3, f"{UNREAD} (no answer within 1 s)")
    assert 1 < took < 10


@pytest.mark.parametrize("output", ["html", "markdown", "table", "csv"])
def test_what_a_kubelet_says_is_escaped_in_every_report(
    tmp_path: Path, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    port = [0]
    with serve(a_cluster(HOSTILE["markup"][0], port), tls=tmp_path) as server:
        port[0] = int(server.host.rpartition(":")[2])
        path = kubeconfig(tmp_path / "c", server.url, trusting(server), {"token": TOKEN})
        assert run(["--kubeconfig", path, "--kubelet=direct", "-o", output]) == 3
    out = capsys.readouterr().out
    assert [act for act in ("\x1b", "\u202e") if act in out] == []
    assert ("<script>alert" in out) is (output == "table")
