"""Kubelets that hang, drip or hang up: what the others said is kept, and the end comes in time."""

import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from kubectl_cgaudit.collect import kubelet
from tests.kubelet_support import (
    ALL,
    SMALL,
    Reply,
    cluster,
    good,
    healthy,
    no_answers,
    through_proxy,
)
from tests.vcr_support import kubeconfig, serve

pytestmark = pytest.mark.usefixtures("home")


@contextmanager
def raw_server(bad: Callable[[socket.socket, threading.Event], None]) -> Iterator[str]:
    """An API server that answers well for all nodes but n2, where `bad` does what it likes with the connection."""
    over = threading.Event()
    threads: list[threading.Thread] = []

    def talk(connection: socket.socket) -> None:
        with connection:
            try:
                head = b""
                while b"\r\n\r\n" not in head and (part := connection.recv(4096)):
                    head += part
                path = head.split(b" ")[1].decode() if head else ""
                if "/n2/" in path:
                    bad(connection, over)
                elif path:
                    body = SMALL[path.partition("/proxy")[2]]
                    connection.sendall(
                        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
                    )
            except OSError:
                pass

    def accept() -> None:
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                continue
            threads.append(threading.Thread(target=talk, args=(connection,)))
            threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            for thread in [accepting, *threads]:
                thread.join()


def says_nothing(connection: socket.socket, over: threading.Event) -> None:
    over.wait()


def drips(start: bytes, drop: bytes) -> Callable[[socket.socket, threading.Event], None]:
    def bad(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(start)
        while not over.wait(0.02):
            connection.sendall(drop)

    return bad


def hangs_up(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nup 1\n\r\n")


OK = b"HTTP/1.1 200 OK\r\n"


ENDLESS = [
    says_nothing,
    drips(OK + b"Content-Length: 999999\r\n\r\n", b"a"),
    drips(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
    drips(OK + b"Content-Encoding: gzip\r\nContent-Length: 999999\r\n\r\n" + b"\x1f\x8b\x08\x08" + b"\0" * 6, b"a"),
    drips(OK + b"X: ", b"a"),
    drips(b"", b"H"),
]


@pytest.mark.parametrize("bad", ENDLESS)
def test_kubelet_that_never_ends(tmp_path, bad):
    # The bad one never ends by itself: that there is an answer is what its deadline did, and the server outlives it.
    with raw_server(bad) as url:
        # Long enough for the good ones on a busy machine.
        answers = through_proxy(tmp_path, url, seconds=1.5)
    assert (answers["n1"], answers["n3"]) == (good("n1"), good("n3"))
    assert answers["n2"] == no_answers("n2", f"{ALL} could not be read (no answer within 1.5 s)")


def test_one_endpoint_that_hangs_does_not_lose_the_others(tmp_path):
    over = threading.Event()

    def hangs(endpoint: str) -> Reply:
        if endpoint == "/configz":
            over.wait()
        return healthy(endpoint)

    with serve(cluster(n1=hangs)) as server:
        answers = through_proxy(tmp_path, server.url, seconds=1.5)
        over.set()
    assert answers["n1"] == good("n1", "/configz could not be read (no answer within 1.5 s)", config=None)


def test_who_has_answered_is_told_before_those_whose_time_is_over():
    done = queue.SimpleQueue()
    talks = {"late": kubelet._Talk(0.0, 0.0), "early": kubelet._Talk(0.0, float("inf"))}
    for node in ("early", "given up"):
        done.put((node, None))
    done.put(("early", KeyError("a bug")))
    assert [kubelet._ended(talks, done) for _ in range(2)] == [["early"], []]
    with pytest.raises(KeyError, match="a bug"):
        kubelet._ended(talks, done)
    assert kubelet._ended(talks, done) == ["late"]


def test_kubelet_that_hangs_up(tmp_path):
    with raw_server(hangs_up) as url:
        answers = through_proxy(tmp_path, url)
    assert answers["n1"] == good("n1")
    assert answers["n2"] == no_answers("n2", f"{ALL} could not be read (the answer breaks off)")


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_text_that_may_be_cut_between_two_lines_proves_nothing(tmp_path, version):
    """Behind the cut may stand that the shares come from the spec."""

    def bad(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(b"HTTP/%b 200 OK\r\n\r\n%b" % (version, b"kubelet_cgroup_version 2\n"))

    with raw_server(bad) as url:
        answers = through_proxy(tmp_path, url)
    assert answers["n2"] == no_answers(
        "n2",
        "/configz could not be used: the answer is not JSON but 'kubelet_cgroup_version 2\\n'; ask again",
        "/metrics, /metrics/cadvisor could not be read (the answer does not say where it ends, so it may be cut)",
    )


def test_dead_kubelets_do_not_hold_up_the_others(tmp_path):
    def bad(path: str) -> Reply:
        if "/dead" in path:
            over.wait()
        return healthy(path.partition("/proxy")[2])

    over = threading.Event()
    names = [*(f"dead-{number}" for number in range(10)), "n1", "n2"]
    with serve(bad) as server:
        answers = through_proxy(tmp_path, server.url, names, seconds=1)
        over.set()
    assert [name for name in names if not answers[name].problems] == ["n1", "n2"]


def test_kubelets_that_keep_waiting_for_nothing_are_not_all_waited_for(tmp_path, monkeypatch):
    asked = []

    def bad(path: str) -> Reply:
        asked.append(path.split("/")[4])
        over.wait()
        return healthy(path.partition("/proxy")[2])

    over = threading.Event()
    names = [f"n{number}" for number in range(1, 8)]
    monkeypatch.setattr(kubelet, "_VAIN_SECONDS", 0.2)
    with serve(bad) as server:
        answers = through_proxy(tmp_path, server.url, names, seconds=0.3)
        over.set()
    # Two at once, twice 0.3 s each: what the first waits is enough for both together.
    assert set(asked) == {"n1", "n2"}
    assert [answers[name] for name in names[:2]] == [
        no_answers(name, f"{ALL} could not be read (no answer within 0.3 s)") for name in names[:2]
    ]
    assert [answers[name] for name in names[2:]] == [
        no_answers(name, f"{ALL} were not asked for: other kubelets had kept the audit waiting for 5 min")
        for name in names[2:]
    ]


def test_kubelets_that_answer_slowly_are_all_waited_for(tmp_path, monkeypatch):
    def slow(path: str) -> Reply:
        time.sleep(0.1)
        return healthy(path.partition("/proxy")[2])

    names = [f"n{number}" for number in range(1, 7)]
    monkeypatch.setattr(kubelet, "_VAIN_SECONDS", 0.3)
    with serve(slow) as server:
        answers = through_proxy(tmp_path, server.url, names)
    assert [answers[name].cgroup_version for name in names] == ["v2"] * 6


INTERRUPTED = """
import signal, sys
from kubectl_cgaudit.collect import kubelet
from kubectl_cgaudit.collect.kubeconfig import Connection
from kubectl_cgaudit.collect.transport import Api
signal.signal(signal.SIGINT, signal.default_int_handler)  # A job in the background inherits that it is ignored.
with Api(Connection(kubeconfig=sys.argv[1])) as api:
    kubelet.from_proxy(api, ["n1", "n2"], {}, print, seconds=60)
"""


def test_interrupt_ends_at_once(tmp_path):
    asked = threading.Event()

    def bad(connection: socket.socket, over: threading.Event) -> None:
        asked.set()
        over.wait()

    with raw_server(bad) as url:
        config = kubeconfig(tmp_path / "config", server=url)
        with subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, config], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as child:
            try:
                assert asked.wait(10)
                child.send_signal(signal.SIGINT)
                # The deadline of the kubelets is 60 s: an interrupt that waited for it would not be over by now.
                how_far, said = child.communicate(timeout=10)
            finally:
                child.kill()
    assert said.decode().endswith("KeyboardInterrupt\n")
    assert how_far.decode().splitlines()[0] == "kubelets 0 2"
    assert child.returncode == -signal.SIGINT


def test_error_of_the_program_is_not_hidden(tmp_path, monkeypatch):
    def broken(*args: object) -> None:
        raise LookupError("a bug")

    monkeypatch.setattr(kubelet, "_ask", broken)
    with serve(cluster()) as server, pytest.raises(LookupError, match="a bug"):
        through_proxy(tmp_path, server.url)
