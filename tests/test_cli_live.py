"""The whole command against the recorded API traffic, and against kubelets that misbehave."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.collect import kubelet
from tests.simulator import Cluster as Simulated
from tests.simulator import Simulator, Size, access
from tests.simulator_support import pages
from tests.support import GOLDEN, STATES, container, node, pod
from tests.vcr_support import (
    a_list,
    a_status,
    denied_account,
    forbidden_owners,
    interactions,
    kubeconfig,
    listed_events,
    replay,
    serve,
    write_cassette,
)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # While one thread makes a connection, vcrpy takes its patches away from all of them.
    monkeypatch.setattr(kubelet, "_AT_ONCE", 1)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)


@contextmanager
def recorded(tmp_path: Path, *, events: bool = True) -> Iterator[str]:
    """The recorded cluster with its kubelets; yields a kubeconfig."""
    chosen = interactions("cluster") + interactions("kubelets")
    chosen += [listed_events()] if events else forbidden_owners("auditor", "events")
    with replay(write_cassette(tmp_path / "all.yaml", chosen)):
        yield kubeconfig(tmp_path / "config")


def output(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_the_live_audit_is_the_audit_of_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with recorded(tmp_path) as config:
        assert run(["--kubeconfig", config, "--states", str(STATES), "-o", "json"]) == 0
    live = output(capsys)
    files = [
        w
        for name in ("nodes", "pods", "workloads", "runtimeclasses", "events")
        for w in ("-f", str(GOLDEN / f"{name}.json"))
    ]
    assert run([*files, "--states", str(STATES), "-o", "json"]) == 0
    saved = output(capsys)
    assert live["coverage"]["source"] == "cluster mixed-cluster.example:6443 (context mixed)"
    for part in ("verdict", "nodes", "workloads", "findings", "target"):
        assert live[part] == saved[part]


@pytest.mark.parametrize(("events", "version"), [(False, "v2"), (True, "v1")])
def test_list_nodes_and_pods_only(
    events: bool, version: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with recorded(tmp_path, events=events) as config:
        assert run(["nodes", "--kubeconfig", config, "-o", "json"]) == 0
    known = {each["name"]: each["known"] for each in output(capsys)["nodes"]}
    assert (known["worker-a"]["cgroup"]["value"], known["worker-a"]["cgroup"]["confidence"]) == ("v2", "certain")
    assert (known["worker-a"]["runtime:runc-old"]["value"], known["worker-a"]["runtime:runc-old"]["confidence"]) == (
        "not quadratic",
        "likely",
    )
    assert [known["worker-a"][f"runtime:{handler}"]["confidence"] for handler in ("default", "crun")] == [
        "unknown",
        "unknown",
    ]
    assert known["worker-c"]["cgroup"]["value"] == version


def test_an_account_that_may_only_list_nodes_and_pods_gets_its_audit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cassette = write_cassette(tmp_path / "one.yaml", denied_account(1)[:2] + forbidden_owners("auditor"))
    with replay(cassette):
        assert run(["--kubeconfig", kubeconfig(tmp_path / "config"), "-o", "json"]) == 3
    data = output(capsys)
    assert data["coverage"]["gaps"] == [
        {
            "what": "3 RuntimeClasses (crun, crun-old, runc-old)",
            "why": "pods name them, and they were not read: the name is taken for the handler's",
            "remedy": "Read RuntimeClasses too: kubectl get runtimeclasses -o json > runtimeclasses.json, and add "
            "-f runtimeclasses.json; live, list on runtimeclasses is enough",
            "kind": "RuntimeClass not read",
            "members": ["crun", "crun-old", "runc-old"],
        }
    ]
    assert data["coverage"]["workloadNames"]["Deployment"] == "derived from the pod-template-hash"
    assert "shop/checkout" in {f"{each['namespace']}/{each['name']}" for each in data["workloads"]}


def test_measured_through_the_proxy_with_its_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with recorded(tmp_path) as config:
        assert run(["nodes", "--kubeconfig", config, "--kubelet=proxy", "-o", "json"]) == 0
    said = capsys.readouterr()
    assert said.err.startswith(
        "warning: --kubelet=proxy uses nodes/proxy; that permission also allows running commands in every"
    )
    nodes = {each["name"]: each for each in json.loads(said.out)["nodes"]}
    for each in nodes.values():
        assert {each["known"][what]["confidence"] for what in ("cgroup", "driver")} == {"certain"}
        assert any(piece["about"] == "reserves" and piece["strength"] == "certain" for piece in each["evidence"])
    formulas = {
        name: {what: known["confidence"] for what, known in each["known"].items() if what.startswith("runtime:")}
        for name, each in nodes.items()
    }
    assert formulas == {
        "worker-a": {"runtime:default": "certain", "runtime:crun": "certain", "runtime:runc-old": "certain"},
        "worker-b": {"runtime:default": "certain", "runtime:crun-old": "certain", "runtime:runc-old": "likely"},
        "worker-c": {"runtime:default": "probable"},
    }


def test_verify_live(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with recorded(tmp_path) as config:
        assert run(["verify", "--kubeconfig", config, "--kubelet=proxy"]) == 0
    assert capsys.readouterr().out.startswith("81 cgroups of 3 nodes compared with their kubelets: no difference.")


METRICS = b'kubelet_cgroup_version 2\nkubelet_node_name{node="n1"} 1\n'
CADVISOR = b'container_spec_cpu_shares{container="",id="/kubepods.slice",namespace="",pod=""} 3776\n'
CADVISOR += b'container_spec_cpu_shares{container="",id="/kubepods.slice/x",namespace="default",pod="p1"} 2\n'
CONFIGZ = json.dumps({"kubeletconfig": {"enforceNodeAllocatable": ["pods"], "cgroupDriver": "systemd"}}).encode()
GOOD = {"configz": CONFIGZ, "metrics": METRICS, "cadvisor": CADVISOR}
Reply = tuple[int, bytes, dict[str, str]]


def two_nodes(bad: Callable[[str], Reply]) -> Callable[[str], Reply]:
    """An API server with n1, whose kubelet is fine, and n2, whose kubelet answers `bad`."""

    def answer(path: str) -> Reply:
        if "/proxy/" in path:
            endpoint = path.rpartition("/")[2]
            return (200, GOOD[endpoint], {}) if "/n1/" in path else bad(endpoint)
        plural = path.partition("?")[0].rpartition("/")[2]
        lists = {
            "nodes": a_list("Node", node("n1"), node("n2")),
            "pods": a_list("Pod", pod("p1", container("c", "1")), pod("p2", container("c", "1"), on="n2")),
            "runtimeclasses": a_list("RuntimeClass"),
            "replicasets": a_list("ReplicaSet"),
            "jobs": a_list("Job"),
            "events": a_list("Event"),
        }
        return lists[plural]

    return answer


def forever(_endpoint: str) -> Reply:
    time.sleep(6)
    return 200, b"", {}


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (lambda _: (403, b"{}", {}), "may not be read (403)"),
        (lambda _: (500, b"oops", {}), "500"),
        (lambda _: (200, b"<html>no</html>", {}), "could not be used"),
        (lambda e: (200, GOOD[e][:-9], {}), "could not be used"),
        (forever, "no answer within 1 s"),
        (lambda e: (200, GOOD[e].replace(b"n2", b"n1"), {}), "another node"),
    ],
    ids=["403", "500", "garbage", "half a line", "nothing for ever", "another node's"],
)
def test_one_bad_kubelet_costs_one_nodes_evidence(
    bad: Callable[[str], Reply], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(two_nodes(bad)) as server:
        config = kubeconfig(tmp_path / "config", server=server.url)
        flags = ["--kubeconfig", config, "--kubelet=proxy", "--request-timeout=1s"]
        assert run([*flags, "-o", "json"]) == 3
    data = output(capsys)
    nodes = {each["name"]: each for each in data["nodes"]}
    assert nodes["n1"]["known"]["cgroup"]["confidence"] == "certain"
    assert nodes["n1"]["problems"] == []
    assert nodes["n2"]["known"]["cgroup"]["value"] is None
    assert said in " ".join(nodes["n2"]["problems"])
    assert {gap["what"] for gap in data["coverage"]["gaps"]} == {"kubelet of n2"}
    assert [workload["effects"][0] for workload in data["workloads"] if workload["name"] == "p2"] == ["unknown"]


def test_kubelets_that_were_not_asked_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node that is not Ready comes last, though its name comes first."""
    monkeypatch.setattr(kubelet, "_VAIN_SECONDS", 0.5)
    lost = node("n1") | {"status": node("n1")["status"] | {"conditions": [{"type": "Ready", "status": "False"}]}}
    answer = two_nodes(forever)

    def nodes(path: str) -> Reply:
        return a_list("Node", lost, node("n2")) if path.startswith("/api/v1/nodes?") else answer(path)

    with serve(nodes) as server:
        config = kubeconfig(tmp_path / "config", server=server.url)
        assert run(["--kubeconfig", config, "--kubelet=proxy", "--request-timeout=1s", "-o", "json"]) == 3
    (gap,) = output(capsys)["coverage"]["gaps"]
    assert gap["what"] == "kubelets of 2 nodes (n1, n2)"
    assert gap["why"] == (
        "on n2: /configz, /metrics, /metrics/cadvisor could not be read (no answer within 1 s); "
        "on n1: /configz, /metrics, /metrics/cadvisor were not asked for: other kubelets had kept the audit waiting for 5 min"
    )
    assert gap["remedy"] == (
        "Check those kubelets and run again; run again with a shorter --request-timeout, or say what the nodes run with --states"
    )


def test_direct_speaks_as_oneself(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--kubelet=direct", "--as", "somebody"]) == 2
    assert capsys.readouterr().err.startswith("error: --kubelet=direct asks as yourself")


def test_direct_is_refused_where_the_kubeconfig_impersonates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve() as server:
        config = kubeconfig(tmp_path / "config", server=server.url, user={"token": "admin", "as": "viewer"})
        assert run(["verify", "--kubeconfig", config, "--kubelet=direct"]) == 2
        assert server.requests == []
        assert capsys.readouterr() == (
            "",
            "error: the kubeconfig impersonates viewer, and kubelets know no impersonation; "
            "use --kubelet=proxy, or a user without as\n",
        )
        assert run(["nodes", "--kubeconfig", config, "--kubelet=proxy"]) == 3
    assert {request.headers["Impersonate-User"] for request in server.requests} == {"viewer"}


def namespaced(*, nodes_end: bool = True) -> Callable[[str], Reply]:
    """An API server that lets list the nodes and the pods of namespace shop; its list of nodes may break off."""
    empty = {"runtimeclasses": "RuntimeClass", "replicasets": "ReplicaSet", "jobs": "Job", "events": "Event"}

    def answer(path: str) -> Reply:
        where, _, query = path.partition("?")
        plural = where.rpartition("/")[2]
        if plural == "nodes" and "continue" in query:
            return a_status(500, "away")
        if plural == "nodes":
            return a_list("Node", node("n1"), **({} if nodes_end else {"continue": "t"}))
        if where == "/api/v1/namespaces/shop/pods":
            there = [pod(name, container("c", "1"), on=on, namespace="shop") for name, on in (("a", "n1"), ("b", "n2"))]
            return a_list("Pod", *there)
        return a_list(empty[plural]) if plural in empty else a_status(403, "no")

    return answer


OTHERS = (
    "incomplete: pods of the other namespaces: pods may not be listed cluster-wide (403). Ask for list on pods "
    "cluster-wide; until then effective shares are upper bounds, because siblings are unseen.\n"
)
HOMELESS = (
    "incomplete: node n2: 1 pod runs there, but the Node is not among what was read. "
    "Read all nodes together with the pods.\n"
)


def test_explain_reads_the_namespace_that_it_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(namespaced()) as server:
        config = kubeconfig(tmp_path / "config", server=server.url)
        assert run(["explain", "shop/a", "--kubeconfig", config]) == 3
    said = capsys.readouterr()
    assert said.out.startswith("shop/a on n1")
    assert said.err == OTHERS + HOMELESS
    assert [each.path for each in server.requests if "/namespaces/" in each.path] == [
        "/api/v1/namespaces/shop/pods?limit=500&fieldSelector=metadata.name%3Da",
        "/api/v1/namespaces/shop/pods?limit=500",
    ]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ["explain", "shop/c"],
            f"{OTHERS}{HOMELESS}error: pod shop/c is not among what could be read; namespace shop has a, b\n",
        ),
        (
            ["explain", "data/a"],
            "incomplete: pods: pods may not be listed cluster-wide or in namespace data (403). Ask for list on pods "
            "cluster-wide, or give -n with a namespace whose pods you may list.\n"
            "error: pod data/a is not among what could be read; no pod was read\n",
        ),
        # Of its node no more is known than that a pod runs there.
        (
            ["explain", "shop/b"],
            f"{OTHERS}{HOMELESS}error: node 'n2' is not among what could be read; there are n1\n",
        ),
    ],
)
def test_what_was_not_read_is_not_said_to_be_absent(
    words: list[str], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(namespaced()) as server:
        config = kubeconfig(tmp_path / "config", server=server.url)
        assert run([*words, "--kubeconfig", config]) == 3
    assert capsys.readouterr() == ("", error)


@pytest.mark.parametrize(
    ("whole", "code", "error"),
    [
        (True, 1, "error: there is no node 'n9'; there are n1\n"),
        (
            False,
            3,
            "incomplete: nodes: the list broke off after 1 node (500: away). Run the audit again.\n"
            "error: node 'n9' is not among what could be read; there are n1\n",
        ),
    ],
)
def test_a_node_is_absent_only_where_all_were_read(
    whole: bool, code: int, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], pauses: list[float]
) -> None:
    def answer(path: str) -> Reply:
        return (
            a_list("Pod", pod("p", on="n1")) if path.startswith("/api/v1/pods") else namespaced(nodes_end=whole)(path)
        )

    with serve(answer) as server:
        config = kubeconfig(tmp_path / "config", server=server.url)
        assert run(["tree", "n9", "--kubeconfig", config]) == code
    assert capsys.readouterr() == ("", error)


def test_a_tree_and_an_explanation_read_one_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What they show is what they show of the whole cluster."""
    saved, config = str(tmp_path / "all.json.gz"), str(tmp_path / "config")
    with Simulator(Simulated(Size(6, 90), 3)) as simulator:
        access.kubeconfig(Path(config), simulator.url, None, simulator.credentials, "token")
        assert run(["snapshot", "--kubeconfig", config, "-o", saved]) == 0
        running = (each for each in pages(simulator, "/api/v1/pods", 500)[0]["items"] if each["spec"].get("nodeName"))
        pod = next(each for each in running if each["status"]["phase"] == "Running")
        space, name, on = pod["metadata"]["namespace"], pod["metadata"]["name"], pod["spec"]["nodeName"]
        lists = [
            f"/api/v1/nodes?limit=500&fieldSelector=metadata.name={on}",
            f"/api/v1/pods?limit=500&fieldSelector=spec.nodeName={on}",
            "/apis/node.k8s.io/v1/runtimeclasses?limit=500",
            "/api/v1/events?limit=500&fieldSelector=reason=CgroupV1",
        ]
        found = f"/api/v1/namespaces/{space}/pods?limit=500&fieldSelector=metadata.name={name}"
        for words, expected in ((["tree", on], lists), (["explain", f"{space}/{name}", "-o", "json"], [found, *lists])):
            simulator.log.clear()
            capsys.readouterr()
            assert run([*words, "--kubeconfig", config]) == 0
            shown = capsys.readouterr()
            assert [unquote(each.path) for each in simulator.log] == expected
            assert run([*words, "-f", saved]) == 0
            assert shown == capsys.readouterr()
        simulator.log.clear()
        assert run(["tree", "gone", "--kubeconfig", config]) == 1
        # What there is instead is said of all nodes.
        assert "/api/v1/nodes?limit=500" in [each.path for each in simulator.log]
        assert on in capsys.readouterr().err
