import gzip
import hashlib
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
import yaml

from tests.simulator import Cluster, Fault, Simulator, Size, Store, dump
from tests.simulator.pages import RESOURCES, read_token

ROOT = Path(__file__).parent.parent
CLUSTER = Cluster(Size(12, 230), seed=3)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = Store(CLUSTER, tmp_path_factory.mktemp("store"))
    yield made
    made.close()


class Got:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.raw = response.status, response.headers, response.read()

    @property
    def json(self) -> Any:
        zipped = self.headers.get("Content-Encoding") == "gzip"
        return json.loads(gzip.decompress(self.raw) if zipped else self.raw)


def connect(url: str, ca: Path | None = None, seconds: float = 20) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=str(ca))
        return http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=seconds, context=context)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=seconds)


def get(at: Simulator | str, path: str, **headers: str) -> Got:
    url, ca = (at.url, at.ca) if isinstance(at, Simulator) else (at, None)
    connection = connect(url, ca)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()})
        return Got(connection.getresponse())
    finally:
        connection.close()


def pages(it: Simulator, path: str, limit: int, more: str = "", **headers: str) -> list[Any]:
    found, token = [], ""
    while True:
        after = f"&continue={quote(token)}" if token else ""
        found.append(get(it, f"{path}?limit={limit}{more}{after}", **headers).json)
        token = found[-1]["metadata"].get("continue", "")
        if not token:
            return found


def names(page: Any) -> list[str]:
    return [f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}" for item in page["items"]]


def second(it: Simulator, path: str = "/api/v1/pods", limit: int = 100) -> str:
    """The path of the second page."""
    token = get(it, f"{path}?limit={limit}").json["metadata"]["continue"]
    return f"{path}?limit={limit}&continue={token}"


PODS = [f"{pod.namespace}/{pod.name}" for pod in CLUSTER.pods]


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


def test_gone_with_a_fresh_token_goes_on_where_it_was(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("gone-fresh", page=1)], store=store) as it:
        path = second(it)
        gone = get(it, path)
        fresh = gone.json["metadata"]["continue"]
        assert (gone.status, gone.json["reason"], read_token(fresh).rv) == (410, "Expired", -1)
        assert read_token(fresh).start == f"{PODS[99]}\0"
        assert get(it, path).status == 410
        after = get(it, f"/api/v1/pods?limit=100&continue={fresh}").json
    assert names(after) == PODS[100:200]
    assert after["metadata"]["resourceVersion"] == "1200007"
    assert read_token(after["metadata"]["continue"]).rv == 1_200_007


def test_gone_without_a_token_leaves_only_a_new_list(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("gone", page=1)], store=store) as it:
        path = second(it)
        answers = [get(it, path), get(it, path)]
        again = pages(it, "/api/v1/pods", 100)
    assert [(got.status, got.json["metadata"]) for got in answers] == [(410, {}), (410, {})]
    assert [name for page in again for name in names(page)] == PODS


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        (Fault("unauthorized", page="last"), 401, "Unauthorized"),
        (Fault("forbidden", page="last"), 403, "Forbidden"),
        (Fault("error", page="last", status=500), 500, "InternalError"),
        (Fault("error", page="last", status=503), 503, "ServiceUnavailable"),
    ],
)
def test_a_refusal_comes_at_its_page_and_only_so_often(store: Store, fault: Fault, status: int, reason: str) -> None:
    with Simulator(CLUSTER, [fault], store=store) as it:
        path = second(it, limit=200)
        got = [get(it, path), get(it, path)]
    assert [each.status for each in got] == [status, 200]
    assert got[0].json["reason"] == reason
    assert [seen.fault for seen in it.log] == ["", fault.kind, ""]


def test_a_burst_ends_and_a_busy_server_says_when_to_return(store: Store) -> None:
    burst = [Fault("error", "*", times=2, status=503), Fault("busy", "nodes", seconds=7)]
    with Simulator(CLUSTER, burst, store=store) as it:
        got = [get(it, "/api/v1/nodes?limit=5") for _ in range(4)]
    assert [each.status for each in got] == [503, 503, 429, 200]
    assert got[2].headers["Retry-After"] == "7"


@pytest.mark.parametrize("part", [0.0, 0.5])
@pytest.mark.parametrize("tls", [False, True])
def test_a_reset_is_a_reset(store: Store, part: float, tls: bool) -> None:
    with Simulator(CLUSTER, [Fault("reset", part=part)], tls=tls, store=store) as it:
        connection = socket.create_connection(("127.0.0.1", it.port), timeout=20)
        if tls:
            context = ssl.create_default_context(cafile=str(it.ca))
            connection = context.wrap_socket(connection, server_hostname="127.0.0.1")
        connection.sendall(b"GET /api/v1/pods?limit=100 HTTP/1.1\r\nHost: simulator\r\n\r\n")
        # Beneath TLS, which takes an end and a reset for the same.
        with socket.socket(fileno=connection.detach()) as wire:
            wire.settimeout(20)
            with pytest.raises(ConnectionResetError):
                b"".join(iter(lambda: wire.recv(1 << 16), b""))
    assert [(seen.fault, seen.status) for seen in it.log] == [("reset", 0)]


def test_half_a_page_is_less_than_was_promised(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("half"), Fault("half-chunk")], store=store) as it:
        with pytest.raises(http.client.IncompleteRead) as half:
            get(it, "/api/v1/pods?limit=100")
        with pytest.raises(http.client.IncompleteRead) as chunked:
            get(it, "/api/v1/pods?limit=100")
        whole = get(it, "/api/v1/pods?limit=100").raw
    assert half.value.partial == whole[: len(whole) // 2]
    assert whole.startswith(chunked.value.partial)
    assert len(chunked.value.partial) < len(whole)


def test_a_broken_inside_ends_well_outside(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("half-gzip"), Fault("half-json", part=0.25)], store=store) as it:
        zipped, text = (get(it, "/api/v1/pods?limit=100", Accept_Encoding="gzip") for _ in range(2))
        plain = [get(it, "/api/v1/pods?limit=100", Accept_Encoding=each) for each in ("gzip", "identity")]
    assert zipped.raw == plain[0].raw[: len(plain[0].raw) // 2]
    unpack = zlib.decompressobj(31)
    assert plain[1].raw.startswith(unpack.decompress(zipped.raw))
    assert not unpack.eof
    assert text.raw == plain[0].raw[: len(plain[0].raw) // 4]


@pytest.mark.parametrize("kind", ["stall", "stall-body"])
def test_a_stall_outlasts_an_impatient_client_and_then_answers(store: Store, kind: str) -> None:
    with Simulator(CLUSTER, [Fault(kind, seconds=3600), Fault(kind, seconds=0.01)], store=store) as it:
        impatient = connect(it.url, seconds=0.3)
        impatient.request("GET", "/api/v1/pods?limit=100")
        with pytest.raises(TimeoutError):
            impatient.getresponse().read()
        impatient.close()
        assert names(get(it, "/api/v1/pods?limit=100").json) == PODS[:100]


def test_a_drip_comes_whole(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("drip", seconds=0.05, count=9)], store=store) as it:
        slow, fast = (get(it, "/api/v1/pods?limit=100").raw for _ in range(2))
    assert slow == fast


@pytest.mark.parametrize(
    ("kind", "content", "starts"),
    [
        ("html", "text/html; charset=utf-8", b"<!DOCTYPE html>"),
        ("other-kind", "application/json", b'{"kind":"ConfigMapList"'),
        ("null", "application/json", b"null"),
        ("garbage", "application/json", bytes(range(128, 140))),
    ],
)
def test_wrong_content_comes_with_success(store: Store, kind: str, content: str, starts: bytes) -> None:
    with Simulator(CLUSTER, [Fault(kind, page="first")], store=store) as it:
        wrong, right = (get(it, "/api/v1/pods?limit=100") for _ in range(2))
    assert (wrong.status, wrong.headers["Content-Type"]) == (200, content)
    assert wrong.raw.startswith(starts)
    assert len(right.json["items"]) == 100


def test_a_wrong_encoding_is_named(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("encoding", times=2)], store=store) as it:
        plain, zipped = (get(it, "/api/v1/pods?limit=100", Accept_Encoding=each) for each in ("identity", "gzip"))
    assert plain.headers["Content-Encoding"] == "gzip"
    assert plain.raw.startswith(b'{"kind":"PodList"')
    assert (zipped.headers["Content-Encoding"], zipped.raw[:2]) == ("br", b"\x1f\x8b")


def test_objects_come_twice(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("duplicate", page="middle", count=2)], store=store) as it:
        found = pages(it, "/api/v1/pods", 100, Accept_Encoding="gzip")
    assert [names(page) for page in found] == [PODS[:100], PODS[98:200], PODS[200:]]


def test_objects_vanish_between_pages(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("vanish", page="last", count=4)], store=store) as it:
        found = pages(it, "/api/v1/pods", 100)
    assert [names(page) for page in found] == [PODS[:100], PODS[100:200], PODS[204:]]
    assert found[1]["metadata"]["remainingItemCount"] == 30


def test_a_continue_token_is_repeated(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("repeat", page=1)], store=store) as it:
        path = second(it)
        page = get(it, path).json
    assert path.endswith(f"continue={page['metadata']['continue']}")


def test_faults_hit_kubelets_too(store: Store) -> None:
    with Simulator(CLUSTER, [Fault("forbidden", "configz", times=0), Fault("garbage", "metrics")], store=store) as it:
        refused = get(it, "/api/v1/nodes/general-00000/proxy/configz")
        garbage = get(it, "/api/v1/nodes/general-00000/proxy/metrics")
    wanted = 'nodes "general-00000" is forbidden: User "auditor" cannot get resource "nodes/proxy" in API group ""'
    assert (refused.status, refused.json["message"]) == (403, f"{wanted} at the cluster scope")
    assert garbage.raw.startswith(b"\x80")


@pytest.mark.parametrize(("kind", "page"), [("flood", "any"), ("gone", "second")])
def test_an_unknown_fault_is_refused(kind: str, page: str) -> None:
    with pytest.raises(ValueError, match="there is no fault"):
        Fault(kind, page=page)


@pytest.mark.parametrize("token", ["x", "bm8", "%FF"])
def test_a_damaged_token_is_refused(store: Store, token: str) -> None:
    with Simulator(CLUSTER, store=store) as it:
        got = get(it, f"/api/v1/pods?limit=5&continue={token}")
    assert (got.status, got.json["reason"]) == (400, "BadRequest")


def test_the_dump_is_what_the_pages_have_as_kubectl_prints_it(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    assert dump.write(store, path) == path.stat().st_size
    written = json.loads(path.read_text())
    with Simulator(CLUSTER, store=store) as it:
        nodes, pods = (get(it, f"/api/v1/{name}").json["items"] for name in ("nodes", "pods"))
    for item in nodes + pods:
        item["metadata"].pop("managedFields")
    wanted = [{"apiVersion": "v1", "kind": "Node", **item} for item in nodes]
    wanted += [{"apiVersion": "v1", "kind": "Pod", **item} for item in pods]
    assert written == {"apiVersion": "v1", "items": wanted, "kind": "List", "metadata": {"resourceVersion": ""}}
    assert path.read_text() == json.dumps(written, indent=4, sort_keys=True) + "\n"


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
