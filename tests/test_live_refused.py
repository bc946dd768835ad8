"""Credentials that count no more while a cluster is read, and that nothing renews."""

import threading
from pathlib import Path

import pytest

from kubectl_cgaudit.collect import live, transport
from kubectl_cgaudit.collect.http import RequestError
from kubectl_cgaudit.collect.live import Kubelets
from kubectl_cgaudit.collect.model import Gap
from kubectl_cgaudit.collect.progress import silent
from kubectl_cgaudit.errors import ClusterError
from tests.live_support import everything, local, only, read
from tests.vcr_support import a_list, a_node, a_pod, a_status, serve, small_cluster

pytestmark = pytest.mark.usefixtures("home")

REFUSED = a_status(401, "Unauthorized")


def test_what_was_read_before_is_kept(tmp_path: Path) -> None:
    def pods(path: str):
        return REFUSED if "continue" in path else a_list("Pod", a_pod("one"), **{"continue": "t"})

    with serve(only(pods=pods, replicasets=REFUSED), tls=tmp_path) as server:
        cluster = read(local(tmp_path, server))
    refused = f"{server.host} refused the credentials (401 Unauthorized)"
    assert [pod.name for pod in cluster.pods] == ["one"]
    assert cluster.reading.gaps == (
        Gap("pods", f"the list broke off after 1 pod ({refused})", "Log in, and run the audit again"),
    )
    assert cluster.reading.notes == (
        f"ReplicaSets could not be listed ({refused}): Deployments are named from the pod-template-hash",
    )
    assert cluster.jobs == {}


def test_nodes_that_break_off_are_kept_too(tmp_path: Path) -> None:
    def nodes(path: str):
        return REFUSED if "continue" in path else a_list("Node", a_node(), **{"continue": "t"})

    with serve(only(nodes=nodes, pods=a_list("Pod", a_pod("one"))), tls=tmp_path) as server:
        cluster = read(local(tmp_path, server))
    why = f"the list broke off after 1 node ({server.host} refused the credentials (401 Unauthorized))"
    assert cluster.reading.gaps == (Gap("nodes", why, "Log in, and run the audit again"),)


def test_without_any_pod_there_is_nothing_to_go_on(tmp_path: Path) -> None:
    with serve(only(pods=REFUSED), tls=tmp_path) as server, pytest.raises(RequestError) as caught:
        read(local(tmp_path, server))
    assert (caught.value.status, caught.value.exit_code) == (401, 1)
    assert str(caught.value) == (
        f"{server.host} refused the credentials (401 Unauthorized); log in again, or see what kubectl auth whoami says"
    )


def test_who_did_not_log_in_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logins: list[object] = []
    configure = transport.log_in

    def log_in(choice):
        logins.append(choice)
        if len(logins) > 1:
            raise ClusterError("the exec plugin aws ended with 1; log in again")
        return configure(choice)

    monkeypatch.setattr(transport, "log_in", log_in)

    def pods(path: str):
        return REFUSED if "continue" in path else a_list("Pod", a_pod("one"), **{"continue": "t"})

    with serve(only(pods=pods, runtimeclasses=REFUSED, replicasets=REFUSED, jobs=REFUSED), tls=tmp_path) as server:
        cluster = read(local(tmp_path, server))
    why = f"{server.host} refused the credentials (401 Unauthorized), and no others can be had: the exec plugin aws ended with 1"
    assert len(logins) == 2
    assert cluster.reading.gaps == (
        Gap("pods", f"the list broke off after 1 pod ({why})", "Log in, and run the audit again"),
    )
    assert [note.partition(" could")[0] for note in cluster.reading.notes] == ["RuntimeClasses", "ReplicaSets", "Jobs"]
    assert (
        cluster.reading.notes[0]
        == f"RuntimeClasses could not be listed ({why}): each is taken by its name as the handler"
    )


def test_who_logged_in_in_vain_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each log-in may open a browser, and a server that refuses what comes of it refuses the next one too."""
    logins: list[object] = []
    configure = transport.log_in
    monkeypatch.setattr(transport, "log_in", lambda choice: logins.append(choice) or configure(choice))

    begun = threading.Event()

    def answer(path: str):
        if path.startswith("/api/v1/nodes?"):
            return small_cluster(path)
        if path.startswith("/api/v1/pods?") and not begun.is_set():
            begun.set()
            return a_list("Pod", a_pod("one"), **{"continue": "t"})
        begun.wait(10)
        return REFUSED

    asking = Kubelets(direct=False, insecure=False, seconds=None)
    with serve(answer, tls=tmp_path) as server:
        cluster = live.read(local(tmp_path, server), None, everything, "", silent, asking)
    refused = f"{server.host} refused the credentials (401 Unauthorized)"
    assert len(logins) == 2
    assert [gap.why for gap in cluster.reading.gaps] == [f"the list broke off after 1 pod ({refused})"]
    assert cluster.kubelets
    assert [answers.problems for answers in cluster.kubelets.values()] == [
        ("/configz, /metrics, /metrics/cadvisor may not be read (401): the API server refuses the credentials",)
    ]
    assert [note.partition(" (")[0] for note in cluster.reading.notes] == [
        f"{kind} could not be listed" for kind in ("RuntimeClasses", "ReplicaSets", "Jobs", "Events")
    ]
