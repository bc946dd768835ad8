"""Kubelets asked through the API server: who is asked, and what is said of each that does not answer."""

import gzip
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kubectl_cgaudit.collect import kubelet, kubelet_answers, kubelet_files, live, transport
from kubectl_cgaudit.collect.http import Answer
from kubectl_cgaudit.collect.kubeconfig import Connection
from kubectl_cgaudit.collect.progress import silent
from kubectl_cgaudit.errors import ClusterError
from tests.kubelet_support import (
    ALL,
    CONFIG,
    ENDINGS,
    NODES,
    PODS,
    SMALL,
    Reply,
    cluster,
    golden_pods,
    good,
    healthy,
    no_answers,
    recorded_answers,
    row,
    through_proxy,
)
from tests.simulator import Fault, Simulator
from tests.simulator_support import CLUSTER
from tests.support import GOLDEN
from tests.vcr_support import Scripted, a_status, serve

pytestmark = pytest.mark.usefixtures("home")


def test_saved_answers():
    answers = kubelet_files.from_files(str(GOLDEN), [*NODES, "worker-d"], golden_pods())
    assert list(answers) == [*NODES, "worker-d"]
    for node in NODES:
        assert answers[node] == recorded_answers(node)
    names = "(their names are NODE.configz.txt, NODE.metrics.txt, NODE.metrics-cadvisor.txt)"
    assert answers["worker-d"] == no_answers("worker-d", f"no saved answers in {GOLDEN} {names}")


def only(endpoint: str, reply: Reply) -> Callable[[str], Reply]:
    return lambda asked: reply if asked == endpoint else healthy(asked)


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (
            lambda endpoint: a_status(403, "no"),
            no_answers("n2", f"{ALL} may not be read (403): grant get on nodes/proxy"),
        ),
        (lambda endpoint: a_status(500, "broken"), no_answers("n2", f"{ALL} could not be read (500: broken)")),
        (
            lambda endpoint: (503, b"error trying to reach service", {}),
            no_answers("n2", f"{ALL} could not be read (503: 'error trying to reach service')"),
        ),
        (
            lambda endpoint: (500, b"[" * 99_999, {}),
            no_answers("n2", f"{ALL} could not be read (500: '{'[' * 60}')"),
        ),
        (
            lambda endpoint: (401, b"Unauthorized", {}),
            no_answers(
                "n2",
                f"{ALL} may not be read (401): the kubelet does not accept the token or certificate it is asked with",
            ),
        ),
        (
            lambda endpoint: (302, b"", {"Location": "http://127.0.0.1:9/"}),
            no_answers("n2", f"{ALL} could not be read (302: it points to http://127.0.0.1:9/)"),
        ),
        (
            only("/configz", a_status(403, "no")),
            good("n2", "/configz may not be read (403): grant get on nodes/proxy", config=None),
        ),
        (only("/configz", a_status(404, "gone")), good("n2", "/configz could not be read (404: gone)", config=None)),
        (
            only("/metrics/cadvisor", a_status(404, "gone")),
            good("n2", "/metrics/cadvisor could not be read (404: gone)", shares={}),
        ),
        (
            only("/metrics", a_status(403, "no")),
            good("n2", "/metrics may not be read (403): grant get on nodes/proxy", cgroup_version=None),
        ),
        (
            lambda endpoint: (200, b"<html>log in", {}),
            no_answers(
                "n2",
                "/configz could not be used: the answer is not JSON but '<html>log in'; ask again",
                "/metrics, /metrics/cadvisor could not be used: the answer is no Prometheus text but '<html>log in'; "
                "ask again",
            ),
        ),
        (
            only("/metrics/cadvisor", (200, (row("/a", "3") + row("/b", "34"))[:-2].encode(), {})),
            good(
                "n2",
                "/metrics/cadvisor could not be used: the metrics break off after "
                "'container_spec_cpu_shares{id=\"/b\"} 3'; ask again",
                shares={},
            ),
        ),
        (
            only("/metrics/cadvisor", (200, row("/a", namespace="shop", pod="z").encode(), {})),
            no_answers(
                "n2",
                "/metrics/cadvisor is of another node (it names 'shop/z' and none of the pods that run here): "
                "all answers were ignored",
            ),
        ),
        (
            only("/metrics", (200, b'kubelet_cgroup_version 1\nkubelet_node_name{node="n9"} 1\n', {})),
            no_answers("n2", "/metrics is of another node ('n9'): all answers were ignored"),
        ),
        (
            only("/metrics", (200, b'kubelet_cgroup_version 2\nkubelet_metrics_provider{provider="cri"} 1\n', {})),
            good("n2", kubelet_answers.FROM_SPEC, stats_from_spec=True),
        ),
        (
            only("/metrics", (200, b"kubelet_cgroup_version 2\nkubelet_metrics_provider{ 1\nup 1\n", {})),
            good(
                "n2",
                "/metrics could not be used: line 2 of the metrics is no row of kubelet_metrics_provider: "
                "'kubelet_metrics_provider{ 1'; ask again",
                cgroup_version=None,
            ),
        ),
        (
            only("/configz", (200, b"no gzip", {"Content-Encoding": "gzip"})),
            good(
                "n2",
                "/configz could not be read (the answer is damaged gzip)",
                config=None,
            ),
        ),
        (
            only("/configz", (200, CONFIG, {"Content-Length": "999", "Connection": "close"})),
            good("n2", "/configz could not be read (the answer breaks off)", config=None),
        ),
    ],
)
def test_one_bad_kubelet(tmp_path, behaviour, expected):
    with serve(cluster(n2=behaviour)) as server:
        answers = through_proxy(tmp_path, server.url, seconds=1.0)
    assert (answers["n1"], answers["n3"]) == (good("n1"), good("n3"))
    assert answers["n2"] == expected


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"kind": "Pod"}', b'{"kind": "Status\xff"}', b"[" * 99_999], ids=lambda body: repr(body[:18])
)
def test_only_the_servers_own_401_is_about_its_credentials(tmp_path, body):
    with serve(cluster(n1=lambda endpoint: (401, body, {}))) as server:
        answers = through_proxy(tmp_path, server.url, ["n1"])
    assert answers["n1"] == no_answers(
        "n1", f"{ALL} may not be read (401): the kubelet does not accept the token or certificate it is asked with"
    )


def test_compressed_answers(tmp_path):
    zipped = {endpoint: gzip.compress(body) for endpoint, body in SMALL.items()}

    def answer(endpoint: str) -> Reply:
        return 200, zipped[endpoint], {"Content-Encoding": "gzip"}

    with serve(cluster(n1=answer)) as server:
        answers = through_proxy(tmp_path, server.url)
        assert {request.headers["Accept-Encoding"] for request in server.requests} == {"gzip"}
    assert answers["n1"] == good("n1")


@pytest.mark.parametrize("packed", [False, True])
def test_answer_that_is_too_large(tmp_path, packed, monkeypatch):
    monkeypatch.setattr(kubelet, "LARGEST", 1 << 20)
    body = b"a" * ((1 << 20) + 1)
    large = (200, gzip.compress(body), {"Content-Encoding": "gzip"}) if packed else (200, body, {})
    with serve(cluster(n1=only("/metrics", large))) as server:
        answers = through_proxy(tmp_path, server.url)
    assert answers["n1"] == good("n1", "/metrics could not be read (larger than 1 MiB)", cgroup_version=None)
    assert answers["n2"] == good("n2")


def counted_logins(monkeypatch: pytest.MonkeyPatch, fail_after: int = 99) -> list[object]:
    """The logins as they happen; after some of them none is possible."""
    logins: list[object] = []
    configure = transport.log_in

    def counting(choice: Any) -> Any:
        logins.append(choice)
        if len(logins) > fail_after:
            raise ClusterError("the plugin of context c failed; log in again")
        return configure(choice)

    monkeypatch.setattr(transport, "log_in", counting)
    return logins


REFUSED = "the API server refuses the credentials"


def test_refused_credentials_are_renewed_once_and_are_no_end(tmp_path, monkeypatch):
    logins = counted_logins(monkeypatch)
    with serve(lambda path: a_status(401, "Unauthorized")) as server:
        answers = through_proxy(tmp_path, server.url)
    assert list(answers.values()) == [no_answers(node, f"{ALL} may not be read (401): {REFUSED}") for node in PODS]
    assert len(logins) == 2


def test_where_no_other_credentials_can_be_had_is_said_once(tmp_path, monkeypatch):
    logins = counted_logins(monkeypatch, fail_after=1)
    with serve(lambda path: a_status(401, "Unauthorized")) as server:
        answers = through_proxy(tmp_path, server.url)
    why = f"could not be read ({REFUSED}: the plugin of context c failed; log in again)"
    assert sorted(answer.problems for answer in answers.values()) == [
        (f"{ALL} {why}",),
        *[(f"{ALL} may not be read (401): {REFUSED}",)] * 2,
    ]
    assert len(logins) == 2


@pytest.mark.parametrize(
    ("faults", "uses", "logged_in"),
    [
        pytest.param([Fault("expire", "metrics")], 0, 2, id="once, among the kubelets"),
        pytest.param([], 20, 3, id="again and again"),
    ],
)
def test_a_token_that_expires_costs_no_evidence(tmp_path, monkeypatch, faults, uses, logged_in):
    logins = counted_logins(monkeypatch)
    with Simulator(CLUSTER, faults, token="a", token_uses=uses, tls=True) as simulator:
        connection = Connection(kubeconfig=str(simulator.kubeconfig(tmp_path / "config", auth="file")))
        asked = live.Kubelets(direct=False, insecure=False, seconds=None)
        cluster = live.read(connection, None, lambda namespace, labels: True, "", silent, asked)
    assert cluster.reading.gaps == ()
    assert [answer.problems for answer in cluster.kubelets.values()] == [()] * 12
    assert len(logins) == logged_in


def test_busy_server_is_asked_again(tmp_path, monkeypatch):
    waited: list[float] = []
    monkeypatch.setattr(kubelet, "time", SimpleNamespace(monotonic=time.monotonic, sleep=waited.append))
    asked: list[str] = []

    def busy(endpoint: str) -> Reply:
        asked.append(endpoint)
        return (429, b"later", {}) if len(asked) in (1, 4, 5) else healthy(endpoint)

    with serve(cluster(n1=busy)) as server:
        answers = through_proxy(tmp_path, server.url)
    assert asked == ["/configz", "/configz", "/metrics", "/metrics/cadvisor", "/metrics/cadvisor"]
    assert answers["n1"] == good("n1", "/metrics/cadvisor could not be read (429: 'later')", shares={})
    assert waited == [1.0, 1.0]


@pytest.mark.parametrize(("ends", "tries"), [(100.5, 1), (101.0, 1), (101.1, 2)])
def test_a_busy_server_is_not_waited_for_past_the_end(monkeypatch, ends, tries):
    monkeypatch.setattr(kubelet, "time", SimpleNamespace(monotonic=lambda: 100.0, sleep=lambda seconds: None))
    door = Scripted(Answer(429, b"1"), Answer(429, b"2"))
    assert kubelet._patiently(door.get, "/x", ends).body == str(tries).encode()
    assert (door.paths, door.ends) == (["/x"] * tries, [ends] * tries)


def test_names_are_not_put_into_paths(tmp_path):
    with serve(cluster()) as server:
        long = "n" * 254
        answers = through_proxy(tmp_path, server.url, ["..", long, "n1"])
        assert {request.path for request in server.requests} == {f"/api/v1/nodes/n1/proxy{end}" for end in ENDINGS}
    assert answers[".."] == no_answers("..", f"{ALL} cannot be asked for ('..' is no name of a node)")
    assert answers[long] == no_answers(long, f"{ALL} cannot be asked for ('{'n' * 60}' is no name of a node)")


@pytest.mark.parametrize(
    ("nodes", "at_once"), [(1, 1), (4, 1), (5, 2), (8, 2), (9, 3), (28, 7), (29, 8), (32, 8), (33, 8), (99, 8)]
)
def test_a_small_cluster_is_asked_fewer_nodes_at_once(monkeypatch, nodes, at_once):
    names = [f"n{number}" for number in range(nodes)]
    running, most = 0, 0

    def start(ask, node, talk, done):
        nonlocal running, most
        running += 1
        most = max(most, running)
        done.put((node, None))
        return talk

    def ended(what, done, total):
        nonlocal running
        running -= done > 0

    monkeypatch.setattr(kubelet, "_start", start)
    assert list(kubelet._together(lambda node, talk: None, names, {}, ended, 9.0, str)) == names
    assert (running, most) == (0, at_once)


def test_at_most_eight_at_once(tmp_path):
    lock, full = threading.Lock(), threading.Event()
    now, most = 0, 0

    def slow(path: str) -> Reply:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
            if now == 8:
                full.set()
        # None is answered before eight have come, however busy the machine is; a ninth has a moment to come too.
        full.wait(5)
        time.sleep(0.02)
        with lock:
            now -= 1
        return healthy(path.partition("/proxy")[2])

    names = [f"n{number}" for number in range(30)]
    with serve(slow) as server:
        answers = through_proxy(tmp_path, server.url, names)
    assert list(answers) == names
    assert all(answers[name].problems == () for name in names)
    assert most == 8
