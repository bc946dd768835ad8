"""Lists that are read at the same time: how many, and whose troubles are whose."""

import threading
import time

import pytest

from kubectl_cgaudit.collect import transport
from tests.live_support import local, only, read
from tests.vcr_support import (
    KINDS,
    a_list,
    a_pod,
    a_status,
    serve,
)

pytestmark = pytest.mark.usefixtures("home")


def test_never_more_than_two_requests_at_a_time(tmp_path):
    begun, counted = 0, []
    lock = threading.Lock()

    def slow(kind):
        def answer(path):
            nonlocal begun
            with lock:
                begun += 1
                counted.append(begun)
            time.sleep(0.02)
            number = int(path.partition("continue=")[2] or "0") + 1
            with lock:
                begun -= 1
            return a_list(kind, **({"continue": str(number)} if number < 5 else {}))

        return answer

    with serve(only(**{name: slow(kind) for name, kind in KINDS.items() if name != "nodes"})) as server:
        read(local(tmp_path, server))
    assert (len(counted), max(counted)) == (25, 2)


def test_what_goes_wrong_is_told_in_the_same_order_whichever_list_is_faster(tmp_path):
    def late(path):
        time.sleep(0.2)
        return a_list("Pod", {"metadata": {"name": "p"}, "spec": {"containers": 1}})

    replicasets = a_list("ReplicaSet", {"metadata": 1})
    with serve(only(pods=late, replicasets=replicasets), tls=tmp_path) as server:
        cluster = read(local(tmp_path, server))
    assert [gap.what for gap in cluster.reading.gaps] == ["Pod p", "ReplicaSet (unnamed)"]


def test_credentials_that_expire_under_both_lists_are_renewed_once(tmp_path, monkeypatch):
    both, met, logins = threading.Barrier(2), set(), []
    configure = transport.log_in
    monkeypatch.setattr(transport, "log_in", lambda choice: logins.append(choice) or configure(choice))

    def once(kind, *items):
        def answer(_path):
            if kind in met:
                return a_list(kind, *items)
            met.add(kind)
            both.wait(10)
            return a_status(401, "Unauthorized")

        return answer

    with serve(only(pods=once("Pod", a_pod("one")), runtimeclasses=once("RuntimeClass")), tls=tmp_path) as server:
        cluster = read(local(tmp_path, server))
    assert len(logins) == 2
    assert [pod.name for pod in cluster.pods] == ["one"]
    assert (cluster.runtime_classes, cluster.reading.gaps, cluster.reading.notes) == ({}, (), ())


def test_the_pauses_of_lists_that_can_be_done_without_cost_the_pods_none(tmp_path, pauses):
    busy = (503, b"", {"Retry-After": "30"})
    away = [busy, busy]

    def pods(_path):
        # The others have used up all they may wait before the pods meet the first failure.
        while len(pauses) < 2:
            time.sleep(0.01)
        return away.pop() if away else a_list("Pod", a_pod("one"))

    with serve(only(pods=pods, runtimeclasses=busy)) as server:
        cluster = read(local(tmp_path, server))
    assert pauses == [30.0] * 4
    assert [pod.name for pod in cluster.pods] == ["one"]
    assert cluster.reading.gaps == ()
