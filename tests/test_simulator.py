"""The simulated cluster: its size, its pages and its manners are those of a real one."""

import gzip
import hashlib
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.simulator import Cluster, Fault, Simulator, Size, Store
from tests.simulator.pages import RESOURCES, read_token
from tests.simulator_support import CLUSTER, PODS, Got, connect, get, names, pages

ROOT = Path(__file__).parent.parent


def digest_of_all(folder: Path) -> str:
    """The sha256 of every page, plain and compressed, as a process of its own computes it."""
    code = (
        "import hashlib, pathlib, sys\n"
        "from tests.simulator import Cluster, Size, Store\n"
        "store = Store(Cluster(Size(12, 230), 3), pathlib.Path(sys.argv[1]))\n"
        "store.build()\n"
        "files = sorted(path for path in store.folder.rglob('*') if path.is_file())\n"
        "print(hashlib.sha256(b''.join(path.read_bytes() for path in files)).hexdigest(), len(files))\n"
    )
    command = [sys.executable, "-c", code, str(folder)]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_the_same_seed_gives_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    first, again = digest_of_all(tmp_path / "a"), digest_of_all(tmp_path / "b")
    assert first == again
    assert first.split()[1] == "21"  # items, index and one page for each of the seven lists


def test_another_seed_gives_another_cluster() -> None:
    assert Cluster(Size(12, 230), 4).pods != CLUSTER.pods


def test_the_size_is_kept_and_pods_are_as_large_as_real_ones(store: Store) -> None:
    assert [len(store.objects(name).keys) for name in ("nodes", "pods")] == [12, 230]
    assert len(set(PODS)) == 230
    mean = store.objects("pods").size // 230
    assert 9_000 < mean < 13_000


def test_pods_have_the_fields_of_recorded_ones(store: Store) -> None:
    recorded = json.loads((ROOT / "tests" / "golden" / "pods.json").read_text())["items"]
    known = {key for pod in recorded for key in pod["spec"]} | {"volumes", "serviceAccount", "serviceAccountName"}
    known |= {"topologySpreadConstraints", "overhead"}
    statuses = {key for pod in recorded for each in pod["status"].get("containerStatuses", ()) for key in each}
    items = json.loads(b"[" + store.objects("pods").raw(0, 230) + b"]")
    assert {key for pod in items for key in pod["spec"]} <= known
    seen = {key for pod in items for each in pod["status"].get("containerStatuses", ()) for key in each}
    assert seen - statuses == {"volumeMounts"}
    assert all(set(pod) == {"metadata", "spec", "status"} for pod in items)
    assert not [key for pod in items for key in json.dumps(pod).split('"') if key.startswith("~")]


def test_no_node_has_more_cpu_asked_of_it_than_it_can_allocate(store: Store) -> None:
    nodes = json.loads(b"[" + store.objects("nodes").raw(0, 12) + b"]")
    free = {node["metadata"]["name"]: milli(node["status"]["allocatable"]["cpu"]) for node in nodes}
    for pod in json.loads(b"[" + store.objects("pods").raw(0, 230) + b"]"):
        if pod["spec"].get("nodeName") and pod["status"]["phase"] == "Running":
            asked = [each["resources"].get("requests", {}).get("cpu", "0") for each in pod["spec"]["containers"]]
            free[pod["spec"]["nodeName"]] -= sum(map(milli, asked))
    assert min(free.values()) >= 0


def milli(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


@pytest.mark.parametrize("limit", [1, 7, 100, 229, 230, 500])
def test_pages_have_every_pod_once(store: Store, limit: int) -> None:
    with Simulator(CLUSTER, store=store) as it:
        found = pages(it, "/api/v1/pods", limit)
    assert [name for page in found for name in names(page)] == PODS
    assert len(found) == -(-230 // limit)
    left = [page["metadata"].get("remainingItemCount") for page in found]
    assert left == [230 - limit * at for at in range(1, len(found))] + [None]
    assert {page["metadata"]["resourceVersion"] for page in found} == {"1200000"}


@pytest.mark.parametrize("name", RESOURCES)
def test_every_list_says_its_kind(store: Store, name: str) -> None:
    resource = RESOURCES[name]
    with Simulator(CLUSTER, store=store) as it:
        found = get(it, f"{resource.prefix}/{name}").json
    assert (found["kind"], found["apiVersion"]) == (f"{resource.kind}List", resource.version)
    assert found["items"]


def test_a_continue_token_has_the_form_of_a_recorded_one(store: Store) -> None:
    with Simulator(CLUSTER, store=store) as it:
        page = get(it, "/api/v1/pods?limit=7").json
    said = read_token(page["metadata"]["continue"])
    assert (said.v, said.rv, said.start) == ("meta.k8s.io/v1", 1_200_000, f"/{PODS[6]}\0")
    assert "=" not in page["metadata"]["continue"]


def test_a_namespace_is_listed_in_pages(store: Store) -> None:
    namespace = CLUSTER.pods[100].namespace
    with Simulator(CLUSTER, store=store) as it:
        found = pages(it, f"/api/v1/namespaces/{namespace}/pods", 9)
        nowhere = get(it, "/api/v1/namespaces/nowhere/pods").json
    assert [name for page in found for name in names(page)] == [
        name for name in PODS if name.startswith(f"{namespace}/")
    ]
    assert len(found) > 1
    assert nowhere["items"] == []


def test_with_a_selector_nobody_says_how_many_are_left(store: Store) -> None:
    with Simulator(CLUSTER, store=store) as it:
        found = pages(it, "/api/v1/events", 1, "&fieldSelector=reason%3DCgroupV1")
        unknown = get(it, "/api/v1/events?fieldSelector=colour%3Dred")
    assert {item["reason"] for page in found for item in page["items"]} == {"CgroupV1"}
    assert len(found) > 1
    assert not any("remainingItemCount" in page["metadata"] for page in found)
    assert (unknown.status, unknown.json["message"]) == (400, "field label not supported: colour=red")


def test_gzip_comes_only_when_asked_and_for_large_answers(store: Store) -> None:
    with Simulator(CLUSTER, store=store) as it:
        plain = get(it, "/api/v1/pods?limit=100")
        zipped = get(it, "/api/v1/pods?limit=100", Accept_Encoding="gzip")
        small = get(it, "/api/v1/pods?limit=2", Accept_Encoding="gzip")
    assert gzip.decompress(zipped.raw) == plain.raw
    assert zipped.headers["Transfer-Encoding"] == "chunked"
    assert [got.headers.get("Content-Encoding") for got in (plain, zipped, small)] == [None, "gzip", None]


def test_one_connection_serves_many_requests_and_the_log_has_them(store: Store) -> None:
    with Simulator(CLUSTER, store=store) as it:
        connection = connect(it.url)
        for path in ("/version", "/api/v1/nodes?limit=5", "/api/v1/nothing"):
            connection.request("GET", path, headers={"User-Agent": "tests/1"})
            connection.getresponse().read()
            kept = connection.sock
        connection.close()
    assert kept is not None
    assert [(seen.method, seen.path, seen.status, seen.page) for seen in it.log] == [
        ("GET", "/version", 200, None),
        ("GET", "/api/v1/nodes?limit=5", 200, 0),
        ("GET", "/api/v1/nothing", 404, None),
    ]
    assert {seen.headers["User-Agent"] for seen in it.log} == {"tests/1"}


def test_kubelets_answer_through_the_proxy(store: Store) -> None:
    with Simulator(CLUSTER, store=store) as it:
        metrics = get(it, "/api/v1/nodes/legacy-00002/proxy/metrics").raw.decode()
        cadvisor = get(it, "/api/v1/nodes/general-00000/proxy/metrics/cadvisor").raw.decode()
        config = get(it, "/api/v1/nodes/general-00000/proxy/configz").json
        missing = get(it, "/api/v1/nodes/nobody/proxy/metrics")
    assert "kubelet_cgroup_version 1\n" in metrics
    assert 'kubelet_node_name{node="legacy-00002"} 1\n' in metrics
    # 7910m are 8099 shares, of which weight 309 is left.
    assert 'id="/kubepods.slice",image="",name="",namespace="",pod=""} 8076\n' in cadvisor
    assert config["kubeletconfig"]["kubeReserved"]["cpu"] == "90m"
    assert missing.status == 404


def test_reviews_say_what_a_standing_403_forbids(store: Store) -> None:
    standing = Fault("forbidden", "pods", times=0, namespaces=("shop",))
    with Simulator(CLUSTER, [standing], store=store) as it:

        def allowed(namespace: str, verb: str = "list") -> bool:
            spec = {"resourceAttributes": {"verb": verb, "resource": "pods", "namespace": namespace}}
            body = json.dumps(
                {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec}
            )
            connection = connect(it.url)
            connection.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
            got = Got(connection.getresponse())
            connection.close()
            assert got.status == 201
            return bool(got.json["status"]["allowed"])

        assert [allowed(""), allowed("shop"), allowed("other"), allowed("shop", "delete")] == [
            False,
            True,
            False,
            False,
        ]
        refused = get(it, "/api/v1/pods")
        assert get(it, "/api/v1/namespaces/shop/pods").status == 200
    assert refused.status == 403
    wanted = 'pods is forbidden: User "auditor" cannot list resource "pods" in API group "" at the cluster scope'
    assert refused.json["message"] == wanted


def test_tls_is_verified_and_an_unknown_certificate_refused(store: Store, tmp_path: Path) -> None:
    with Simulator(CLUSTER, tls=True, store=store) as it:
        assert get(it, "/version").json["gitVersion"] == "v1.36.2"
        assert len(get(it, "/api/v1/pods?limit=100", Accept_Encoding="gzip").json["items"]) == 100
        said = yaml.safe_load(it.kubeconfig(tmp_path / "config").read_text())
        parts = urlsplit(it.url)
        stranger = http.client.HTTPSConnection(
            parts.hostname or "", parts.port, context=ssl.create_default_context(), timeout=20
        )
        with pytest.raises(ssl.SSLCertVerificationError):
            stranger.request("GET", "/version")
        stranger.close()
    assert Path(said["clusters"][0]["cluster"]["certificate-authority"]).read_text().startswith("-----BEGIN CERT")


def test_a_token_is_replaced_after_its_uses_and_its_file_has_the_next(store: Store, tmp_path: Path) -> None:
    with Simulator(CLUSTER, token="one", token_uses=2, store=store) as it:
        said = yaml.safe_load(it.kubeconfig(tmp_path / "config", auth="file").read_text())
        kept = Path(said["users"][0]["user"]["tokenFile"])
        assert kept.read_text() == "one"
        seen = [get(it, "/api/v1/nodes?limit=1", authorization="Bearer one").status for _ in range(4)]
        assert kept.read_text() == "one-2"
        seen.append(get(it, "/api/v1/nodes?limit=1", Authorization=f"Bearer {kept.read_text()}").status)
        seen.append(get(it, "/api/v1/nodes?limit=1").status)
    assert seen == [200, 200, 401, 401, 200, 401]


def test_the_exec_plugin_prints_the_token_of_the_moment(store: Store, tmp_path: Path) -> None:
    with Simulator(CLUSTER, [Fault("expire", page="middle")], token="one", store=store) as it:
        said = yaml.safe_load(it.kubeconfig(tmp_path / "config", auth="exec").read_text())
        plugin = said["users"][0]["user"]["exec"]

        def token() -> str:
            ran = subprocess.run([plugin["command"], *plugin["args"]], check=True, capture_output=True, text=True)
            return str(json.loads(ran.stdout)["status"]["token"])

        first = get(it, "/api/v1/pods?limit=100", Authorization=f"Bearer {token()}").json
        path = f"/api/v1/pods?limit=100&continue={first['metadata']['continue']}"
        assert [get(it, path, Authorization="Bearer one").status for _ in range(2)] == [401, 401]
        assert get(it, path, Authorization=f"Bearer {token()}").status == 200
    assert (tmp_path / "config.token.runs").read_text() == "run\nrun\n"


def test_it_runs_as_a_process_of_its_own(tmp_path: Path) -> None:
    config = tmp_path / "config"
    command = [
        sys.executable,
        "-m",
        "tests.simulator",
        "--nodes",
        "4",
        "--pods",
        "20",
        "--seed",
        "9",
        "--token",
        "secret",
    ]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [*command, "--kubeconfig", str(config)], cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout
        url = process.stdout.readline().strip()
        said = yaml.safe_load(config.read_text())
        assert said["clusters"][0]["cluster"]["server"] == url
        token = said["users"][0]["user"]["token"]
        assert len(get(url, "/api/v1/pods", Authorization=f"Bearer {token}").json["items"]) == 20
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 0


def test_pages_are_kept_between_runs(tmp_path: Path) -> None:
    first = Store(CLUSTER, tmp_path)
    first.build()
    first.close()
    kept = {
        path: (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).digest())
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    again = Store(CLUSTER, tmp_path)
    again.build()
    again.close()
    assert {path: (path.stat().st_mtime_ns, kept[path][1]) for path in tmp_path.rglob("*") if path.is_file()} == kept
