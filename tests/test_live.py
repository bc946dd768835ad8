"""Reading a cluster from its API server: what is asked for, what is made of each refusal, and what is said of it."""

import json

import pytest

from kubectl_cgaudit.collect.kubeconfig import Connection
from kubectl_cgaudit.collect.model import Gap, Owner
from kubectl_cgaudit.errors import ClusterError, UsageError
from tests.live_support import NO_PODS, local, only, read, told
from tests.vcr_support import (
    RECORDED,
    a_list,
    a_node,
    a_pod,
    a_status,
    denied_account,
    forbidden_owners,
    interactions,
    kubeconfig,
    listed_events,
    replay,
    serve,
    small_cluster,
    trusting,
    write_cassette,
)

OWNER_NOTES = (
    "RuntimeClasses may not be listed (403): each is taken by its name as the handler",
    "ReplicaSets may not be listed (403): Deployments are named from the pod-template-hash",
    "Jobs may not be listed (403): CronJobs are named from the Job's name",
    "Events may not be listed (403): a CgroupV1 warning would name nodes on cgroup v1",
)


pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def whole(tmp_path):
    return write_cassette(tmp_path / "whole.yaml", [*interactions("cluster"), listed_events()])


def test_whole_cluster(recorded, whole):
    lines = []
    with replay(whole) as played:
        cluster = read(recorded, progress=told(lines))
        asked = [request.uri.removeprefix(RECORDED) for request in played.requests]
        assert played.play_count == 6
    assert lines == ["nodes 3", "pods 29", "runtimeclasses 3", "replicasets 8", "jobs 2", "events 1"]
    assert [node.name for node in cluster.nodes] == ["worker-a", "worker-b", "worker-c"]
    assert [node.kubelet_version for node in cluster.nodes] == ["v1.36.2", "v1.33.13", "v1.33.13"]
    assert len(cluster.pods) == 29
    assert all(pod.selected for pod in cluster.pods)
    assert cluster.runtime_classes == {"crun": "crun", "crun-old": "crun-old", "runc-old": "runc-old"}
    assert cluster.replicasets is not None
    assert len(cluster.replicasets) == 8
    assert cluster.replicasets["shop", "cart-8bfb4e1aa"] == Owner("Deployment", "cart")
    assert cluster.jobs == {("batch", "index-rebuild"): None, ("batch", "nightly-report"): None}
    assert cluster.reading.source == "cluster mixed-cluster.example:6443 (context mixed)"
    assert (cluster.reading.gaps, cluster.reading.notes, cluster.reading.duplicates) == ((), (), 0)
    assert "/api/v1/nodes?limit=500" in asked
    assert list(cluster.cgroup_v1_warnings) == ["worker-c"]


def test_a_list_that_cannot_even_be_asked_for_is_a_note(recorded):
    # The cassette holds no events: whatever goes wrong with an optional list, the audit goes on.
    with replay("cluster"):
        cluster = read(recorded)
    assert cluster.cgroup_v1_warnings is None
    (note,) = cluster.reading.notes
    assert note.startswith("Events could not be listed (")
    assert note.endswith("): a CgroupV1 warning would name nodes on cgroup v1")


def test_a_namespace_only_selects(recorded, whole):
    with replay(whole):
        cluster = read(recorded, "shop", lambda namespace, labels: namespace == "shop")
    assert len(cluster.pods) == 29
    assert sum(pod.selected for pod in cluster.pods) == 9


@pytest.mark.parametrize("empty", [a_list("Pod"), (200, b'{"kind": "PodList", "items": null}', {})])
def test_a_cluster_without_a_pod_is_a_gap(tmp_path, empty):
    with serve(only(pods=empty)) as server:
        cluster = read(local(tmp_path, server))
    assert (cluster.pods, cluster.reading.gaps) == ((), (NO_PODS,))


def test_account_without_the_owner_lists(recorded, tmp_path):
    # Only nodes and pods were recorded for account 1: the 403 answers are modelled on those of account 2.
    cassette = write_cassette(tmp_path / "one.yaml", denied_account(1)[:2] + forbidden_owners("auditor"))
    with replay(cassette) as played:
        cluster = read(recorded)
        assert played.all_played
    assert (len(cluster.nodes), len(cluster.pods)) == (3, 29)
    assert (cluster.replicasets, cluster.jobs, cluster.runtime_classes) == (None, None, None)
    assert cluster.reading.gaps == ()
    assert cluster.reading.notes == OWNER_NOTES


def test_one_owner_list_missing(recorded, tmp_path):
    kept = [i for i in interactions("cluster") if "replicasets" not in i["request"]["uri"]]
    with replay(
        write_cassette(tmp_path / "c.yaml", [*kept, listed_events(), *forbidden_owners("auditor", "replicasets")])
    ):
        cluster = read(recorded)
    assert cluster.replicasets is None
    assert cluster.jobs is not None
    assert cluster.reading.notes == OWNER_NOTES[1:2]


def test_account_that_may_not_list_nodes(recorded, tmp_path):
    with replay(write_cassette(tmp_path / "two.yaml", denied_account(2))), pytest.raises(ClusterError) as caught:
        read(recorded)
    assert str(caught.value) == (
        'the nodes may not be listed (403: nodes is forbidden: User "ns-only" cannot list resource "nodes" '
        'in API group "" at the cluster scope); ask for that permission, and check it with: '
        "kubectl auth can-i list nodes; or ask who has it for a snapshot (kubectl cgaudit snapshot), which -f audits"
    )


def test_account_with_one_namespace(recorded, tmp_path):
    # Nodes from account 1, the pods' 403 and the namespace's list from account 2.
    chosen = denied_account(1)[:1] + denied_account(2)[1:3] + forbidden_owners("ns-only")
    with replay(write_cassette(tmp_path / "ns.yaml", chosen)) as played:
        cluster = read(recorded, "shop")
        assert played.all_played
    assert len(cluster.pods) == 9
    assert {pod.namespace for pod in cluster.pods} == {"shop"}
    assert cluster.reading.gaps == (
        Gap(
            "pods of the other namespaces",
            "pods may not be listed cluster-wide (403)",
            "Ask for list on pods cluster-wide; until then effective shares are upper bounds, "
            "because siblings are unseen",
        ),
    )


@pytest.mark.parametrize(
    ("namespace", "where", "or_one"),
    [
        (None, "cluster-wide or in namespace default", ", or give -n with a namespace whose pods you may list"),
        ("shop", "cluster-wide or in namespace shop", ""),
    ],
)
def test_no_pods_at_all(tmp_path, namespace, where, or_one):
    with serve(only(pods=a_status(403, "no"))) as server:
        cluster = read(local(tmp_path, server), namespace)
    assert cluster.pods == ()
    assert cluster.reading.gaps == (
        Gap("pods", f"pods may not be listed {where} (403)", f"Ask for list on pods cluster-wide{or_one}"),
    )


def test_refused_credentials(recorded, tmp_path):
    with replay(write_cassette(tmp_path / "three.yaml", denied_account(3))), pytest.raises(ClusterError) as caught:
        read(recorded)
    assert str(caught.value) == (
        "mixed-cluster.example:6443 refused the credentials (401 Unauthorized); "
        "log in again, or see what kubectl auth whoami says"
    )


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"<html>\n\x1b[31mlog in" + b"!" * 99, r"'<html>\n\x1b[31mlog in" + "!" * 42 + "'"),
        (b"", "''"),
        (b'{"kind":"PodList","items":[]}', "'" + '{"kind":"PodList","items":[]}' + "'"),
        (b'{"kind":"NodeList","items":7}', "'" + '{"kind":"NodeList","items":7}' + "'"),
        (b"\xff\xfe", "'\ufffd\ufffd'"),
    ],
)
def test_garbage(tmp_path, body, shown):
    with serve(only(nodes=(200, body, {}))) as server, pytest.raises(ClusterError) as caught:
        read(local(tmp_path, server))
    assert str(caught.value) == (
        f"{server.host} answered GET /api/v1/nodes with no list of Nodes but with {shown}; "
        "check that the server in the kubeconfig is a Kubernetes API and no login page or proxy"
    )


@pytest.mark.parametrize("resource", ["nodes", "pods"])
def test_server_error(tmp_path, resource):
    with (
        serve(only(**{resource: a_status(500, "etcd\nis\x1b[1m away")})) as server,
        pytest.raises(ClusterError) as caught,
    ):
        read(local(tmp_path, server))
    assert str(caught.value) == (
        f"{server.host} answered GET /api/v1/{resource} with 500: etcd is?[1m away; "
        f"try again, or see what kubectl get --raw /api/v1/{resource} says"
    )


def test_broken_owner_lists_are_notes(tmp_path):
    replies = {
        "runtimeclasses": a_status(404, "what?"),
        "replicasets": a_status(503, "away"),
        "jobs": (200, b"no", {}),
    }
    with serve(only(**replies), tls=tmp_path) as server:
        cluster = read(local(tmp_path, server))
    assert (cluster.replicasets, cluster.jobs, cluster.runtime_classes) == (None, None, None)
    assert cluster.reading.gaps == (NO_PODS,)
    assert cluster.reading.notes == (
        "RuntimeClasses are not served (404): each is taken by its name as the handler",
        "ReplicaSets could not be listed (503: away): Deployments are named from the pod-template-hash",
        "Jobs could not be listed (no list of Jobs but 'no'): CronJobs are named from the Job's name",
    )


def test_empty_owner_lists_count_as_read(tmp_path):
    with serve(only(pods=(200, json.dumps({"kind": "PodList", "items": None}).encode(), {}))) as server:
        cluster = read(local(tmp_path, server))
    assert (cluster.replicasets, cluster.jobs, cluster.runtime_classes) == ({}, {}, {})
    assert cluster.pods == ()


def test_busy_server_is_asked_again(tmp_path, pauses):
    replies = [(429, b"", {"Retry-After": "2"}), (429, b"", {"Retry-After": "99"}), a_list("Node", a_node())]
    with serve(only(nodes=lambda path: replies.pop(0))) as server:
        assert len(read(local(tmp_path, server)).nodes) == 1
    assert pauses == [2, 30]


def test_no_nodes(tmp_path):
    with serve(only(nodes=a_list("Node"))) as server, pytest.raises(ClusterError) as caught:
        read(local(tmp_path, server))
    assert str(caught.value) == (
        f"{server.host} has no nodes, so nothing can be predicted; check which cluster was asked"
    )


def test_bad_object(tmp_path):
    node = a_node() | {"status": {"capacity": {"cpu": "many"}}}
    with serve(only(nodes=a_list("Node", a_node("ok"), node))) as server:
        cluster = read(local(tmp_path, server))
    why = "status.capacity.cpu: 'many' is not a CPU quantity such as 250m or 2"
    assert [each.name for each in cluster.nodes] == ["ok"]
    assert cluster.reading.gaps == (
        Gap(
            "Node node-1",
            f"cannot be read ({why}): nothing that runs there is audited",
            "Correct or delete it, and run the audit again",
            "Node that cannot be read",
            ("node-1",),
        ),
        NO_PODS,
    )
    with serve(only(nodes=a_list("Node", node))) as server, pytest.raises(ClusterError) as caught:
        read(local(tmp_path, server))
    assert str(caught.value) == (
        f"no node can be read: {server.host} /api/v1/nodes: Node node-1: {why}; "
        "correct them, as nothing else can be predicted"
    )


def test_a_token_that_expires_is_renewed_once(tmp_path):
    asked = []

    def pods(path):
        asked.append(path)
        if len(asked) == 1:
            return a_list("Pod", a_pod("one"), **{"continue": "t"})
        return a_status(401, "Unauthorized") if len(asked) == 2 else a_list("Pod", a_pod("two"))

    with serve(only(pods=pods), tls=tmp_path) as server:
        token = tmp_path / "token"
        token.write_text("first")
        path = kubeconfig(tmp_path / "c", server.url, trusting(server), {"tokenFile": str(token)})
        progress = told([])

        def rotate(what, done, total):
            progress(what, done, total)
            token.write_text("second")

        cluster = read(Connection(kubeconfig=path), progress=rotate)
    sent = [request.headers["Authorization"] for request in server.requests if "/pods" in request.path]
    assert sent[-1] == "Bearer second"
    assert [pod.name for pod in cluster.pods] == ["one", "two"]
    assert cluster.reading.gaps == ()


def test_a_server_that_comes_back_is_waited_for(tmp_path, pauses):
    replies = [a_status(503, "away"), a_status(500, "etcd"), a_list("Node", a_node())]
    with serve(only(nodes=lambda path: replies.pop(0))) as server:
        assert len(read(local(tmp_path, server)).nodes) == 1
    assert pauses == [0.5, 1.0]


def test_a_server_that_stays_away_is_given_up_after_five_attempts(tmp_path, pauses):
    with serve(only(nodes=a_status(503, "away"))) as server, pytest.raises(ClusterError, match="503: away"):
        read(local(tmp_path, server))
    assert len(server.requests) == 5
    assert pauses == [0.5, 1.0, 2.0, 4.0]


def by_namespace(readable, listed=("a", "b", "c")):
    """Pods may be listed in some namespaces only; `listed` are the namespaces, or None where they may not be listed."""

    def answer(path):
        bare = path.partition("?")[0]
        if bare == "/api/v1/namespaces":
            return (
                a_status(403, "no")
                if listed is None
                else a_list("Namespace", *({"metadata": {"name": n}} for n in listed))
            )
        if bare.endswith("/pods"):
            name = bare.split("/")[4] if "namespaces" in bare else None
            return a_list("Pod", a_pod(f"in-{name}", name)) if name in readable else a_status(403, "no")
        return small_cluster(path)

    return answer


UNTIL = "Ask for list on pods cluster-wide; until then effective shares are upper bounds, because siblings are unseen"


def test_pods_are_read_namespace_by_namespace(tmp_path):
    with serve(by_namespace({"a", "c"})) as server:
        cluster = read(local(tmp_path, server))
    assert [pod.name for pod in cluster.pods] == ["in-a", "in-c"]
    why = "pods may not be listed cluster-wide (403), nor in these"
    assert cluster.reading.gaps == (
        Gap("pods of 1 namespace: b", why, UNTIL, "namespace whose pods were not read", ("b",)),
    )


def test_all_namespaces_read_one_by_one_is_complete(tmp_path):
    with serve(by_namespace({"a", "b", "c"}), tls=tmp_path) as server:
        cluster = read(local(tmp_path, server))
    assert len(cluster.pods) == 3
    assert cluster.reading.gaps == ()
    note = "pods may not be listed cluster-wide (403): they were read namespace by namespace, so not all at one moment"
    assert cluster.reading.notes == (note,)


def test_the_context_s_namespace_is_tried_where_namespaces_are_not_known(tmp_path):
    with serve(by_namespace({"a"}, None)) as server:
        path = kubeconfig(tmp_path / "c", server=server.url, namespace="a")
        cluster = read(Connection(kubeconfig=path))
    assert [pod.name for pod in cluster.pods] == ["in-a"]
    why = "pods may not be listed cluster-wide (403)"
    assert cluster.reading.gaps == (Gap("pods of the other namespaces", why, UNTIL),)


def test_group_without_user(recorded):
    connection = Connection(kubeconfig=recorded.kubeconfig, as_groups=("sre",))
    with pytest.raises(UsageError, match=r"^a group cannot be impersonated without a user; add --as USER$"):
        read(connection)
