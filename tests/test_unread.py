"""Objects of a running cluster that cannot be read: each is a gap, and nothing else is lost."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.collect import unread
from kubectl_cgaudit.collect.assemble import Assembly
from kubectl_cgaudit.collect.model import Cluster, Gap, Owner
from kubectl_cgaudit.collect.owners import workload
from kubectl_cgaudit.collect.unread import Unread
from tests.live_support import local, only, read
from tests.support import container, node, pod
from tests.vcr_support import a_list, kubeconfig, serve

pytestmark = pytest.mark.usefixtures("home")

MEND_IT, MEND_THEM = (f"Correct or delete {it}, and run the audit again" for it in ("it", "them"))
TOO_LARGE = "requests.cpu of container c: '10P' is larger than any CPU quantity can be"


def of(tmp_path: Path, **lists: Any) -> Cluster:
    with serve(only(nodes=a_list("Node", node()), **lists)) as server:
        return read(local(tmp_path, server))


def absurd(name: str, on: str | None = "n1", **more: Any) -> dict[str, Any]:
    return pod(name, container("c", "10P"), on=on, **more)


def test_a_pending_pod_does_not_end_the_audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pods = a_list("Pod", absurd("greedy", None, phase="Pending"), pod("p", container("c", "1")))
    with serve(only(nodes=a_list("Node", node()), pods=pods)) as server:
        config = kubeconfig(tmp_path / "config", server=server.url)
        assert run(["--kubeconfig", config, "-o", "csv"]) == 3
    assert [row["pod"] for row in csv.DictReader(capsys.readouterr().out.splitlines())] == ["p"]


@pytest.mark.parametrize(
    ("bad", "why", "on"),
    [
        (
            absurd("p", None, phase="Pending"),
            f"({TOO_LARGE}): on no node, so no share is wrong for that",
            " on no node",
        ),
        (absurd("p", phase="Failed"), f"({TOO_LARGE}): on no node, so no share is wrong for that", " on no node"),
        (absurd("p"), f"({TOO_LARGE}): a sibling is missing, so the shares may be wrong on node n1", " on n1"),
        (
            {"metadata": {"name": "p", "namespace": "default", "labels": 1}, "spec": 1},
            "(metadata.labels: expected `object | null`, got `int`): a sibling is missing, so the shares may be wrong on "
            "any node, because its node is not known",
            "",
        ),
    ],
)
def test_what_may_be_wrong_without_a_pod_is_said(bad: dict[str, Any], why: str, on: str, tmp_path: Path) -> None:
    found = of(tmp_path, pods=a_list("Pod", bad, pod("q", container("c", "1"))))
    assert [each.name for each in found.pods] == ["q"]
    assert found.reading.gaps == (
        Gap("Pod default/p", f"cannot be read {why}", MEND_IT, f"Pod that cannot be read{on}", ("default/p",)),
    )


def test_an_owner_that_cannot_be_read_is_derived_and_the_others_are_not(tmp_path: Path) -> None:
    def replicaset(name: str, **more: Any) -> dict[str, Any]:
        reference = {"kind": "Rollout", "name": f"of-{name}", "controller": True}
        return {"metadata": {"name": name, "namespace": "default", "ownerReferences": [reference], **more}}

    pods = [
        pod(f"{name}-x", container("c", "1"), labels={"pod-template-hash": "5d"}, owner=("ReplicaSet", name))
        for name in ("good-5d", "bad-5d")
    ]
    listed = a_list("ReplicaSet", replicaset("good-5d"), replicaset("bad-5d", labels=1))
    found = of(tmp_path, pods=a_list("Pod", *pods), replicasets=listed)
    assert [workload(each, found) for each in found.pods] == [
        Owner("Deployment", "bad"),
        Owner("Rollout", "of-good-5d"),
    ]
    assert found.reading.gaps == (
        Gap(
            "ReplicaSet default/bad-5d",
            "cannot be read (metadata.labels: expected `object | null`, got `int`): Deployments are named from the "
            "pod-template-hash",
            MEND_IT,
            "ReplicaSet that cannot be read",
            ("default/bad-5d",),
        ),
    )


def test_of_many_there_is_one_gap_a_node() -> None:
    found = [Unread("Pod", "shop", f"p{number}", "why", "x", "n1") for number in range(7)]
    found += [Unread("Pod", "shop", "p1", "why", "x", "n1"), Unread("Pod", "shop", "q", "other", "x", "n2")]
    found += [Unread("RuntimeClass", "", name, "why", "x") for name in ("a", "b")]
    assert unread.gaps(found, {"RuntimeClass": "instead"}) == [
        Gap(
            "7 Pods: shop/p0, shop/p1, shop/p2, shop/p3, shop/p4 and 2 more",
            "cannot be read (shop/p0: why): a sibling is missing, so the shares may be wrong on node n1",
            MEND_THEM,
            "Pod that cannot be read on n1",
            tuple(f"shop/p{number}" for number in range(7)),
        ),
        Gap(
            "Pod shop/q",
            "cannot be read (other): a sibling is missing, so the shares may be wrong on node n2",
            MEND_IT,
            "Pod that cannot be read on n2",
            ("shop/q",),
        ),
        Gap(
            "2 RuntimeClasses: a, b",
            "cannot be read (a: why): instead",
            MEND_THEM,
            "RuntimeClass that cannot be read",
            ("a", "b"),
        ),
    ]


def test_what_a_list_brought_before_it_started_again_is_not_told() -> None:
    whole = Assembly(lambda namespace, labels: True, "")

    def add(kind: str, namespace: str) -> None:
        whole.add(kind, {"metadata": {"name": "x", "namespace": namespace, "labels": 1}}, decode, "test")

    decode: Callable[[Any, type[Any]], Any] = lambda raw, type_: msgspec.convert(raw, type=type_)  # noqa: E731
    for kind, namespace in (("Pod", "a"), ("Pod", "b"), ("Job", "a"), ("Node", "")):
        add(kind, namespace)
    assert whole.bad == 4
    whole.forget("Pod", "a")
    assert whole.bad == 3
    whole.forget("Job")
    whole.forget("Pod")
    assert whole.first_bad == "test: Node x: metadata.labels: expected `object | null`, got `int`"
