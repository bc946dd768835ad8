"""Replayed cassettes, a local API server, and kubeconfigs for both. Nothing here leaves the machine."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import vcr
import yaml
from urllib3 import HTTPSConnectionPool

from kubectl_cgaudit.collect import transport
from kubectl_cgaudit.collect.credentials import log_in
from kubectl_cgaudit.collect.http import Answer
from kubectl_cgaudit.collect.kubeconfig import Connection, choose
from kubectl_cgaudit.collect.transport import Api
from kubectl_cgaudit.errors import ClusterError

CASSETTES = Path(__file__).parent.parent / "cassettes"
GOLDEN = Path(__file__).parent / "golden"
RECORDED = "https://mixed-cluster.example:6443"
NEXT = "give --kubeconfig FILE, set KUBECONFIG, or audit saved objects with -f FILE"
LOG_IN = "log in again, or correct the kubeconfig"
EVENTS_QUERY = "&fieldSelector=reason%3DCgroupV1"
OWNERS = (
    ("/apis/node.k8s.io/v1/runtimeclasses", "runtimeclasses", "node.k8s.io"),
    ("/apis/apps/v1/replicasets", "replicasets", "apps"),
    ("/apis/batch/v1/jobs", "jobs", "batch"),
    ("/api/v1/events", "events", ""),
)

# A throw-away CA and a key for 127.0.0.1, valid until 2120. As with many clusters the certificates lack extensions
# that Python 3.13 asks for and kubectl does not.
_CA = (
    "MIIBRjCB7aADAgECAgEBMAoGCCqGSM49BAMCMBIxEDAOBgNVBAMMB3Rlc3QgQ0Ew"
    "IBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBIxEDAOBgNVBAMMB3Rl"
    "c3QgQ0EwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASfKvU21884SueRnmdM9I3q"
    "84isxENIsUh9ukPha62/NGHS27ucAZz2mV5xf3R+EW9nzsRuEf+S8xgPRcZroXEQ"
    "ozIwMDAPBgNVHRMBAf8EBTADAQH/MB0GA1UdDgQWBBQXY6zEAmTd+RE+Y4aOA704"
    "/5IxVDAKBggqhkjOPQQDAgNIADBFAiAuS5KmyAI+cuzzUqj3FthXiajO18x8Wwuu"
    "vMTIddpg7QIhAKBfz8G4Lu8imE5Fu4r/UMSW/rqMUXtKggp3pBz4wUpn"
)
_CERTIFICATE = (
    "MIIBeDCCAR2gAwIBAgIBAjAKBggqhkjOPQQDAjASMRAwDgYDVQQDDAd0ZXN0IENB"
    "MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAWMRQwEgYDVQQDDAt0"
    "ZXN0IHNlcnZlcjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABDkH4lRVTjTN9lKV"
    "UUz2YhRlrqrzpleg0XtQyuANoQyciv+E2QvCcHXgV/CtrcqncI8fyb5iXgs65+aZ"
    "W3nmROmjXjBcMA8GA1UdEQQIMAaHBH8AAAEwCQYDVR0TBAIwADAdBgNVHQ4EFgQU"
    "fNx83PFYXJ7pxhfgXdvGE3p8fDwwHwYDVR0jBBgwFoAUF2OsxAJk3fkRPmOGjgO9"
    "OP+SMVQwCgYIKoZIzj0EAwIDSQAwRgIhAJ50pkvP183U+sR0B77lbm2l0tMMbndu"
    "4xt1mmMFkwqeAiEAmhSsPKECtHAmczzXzb7XkBcb564gQKAw5sd+SlSC3nM="
)
_KEY = (
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg3OWZM+dVR1lfg+Qx"
    "9rlFxAIdAV6M6gISDsO0HCzW2u2hRANCAAQ5B+JUVU40zfZSlVFM9mIUZa6q86ZX"
    "oNF7UMrgDaEMnIr/hNkLwnB14Ffwra3Kp3CPH8m+Yl4LOufmmVt55kTp"
)


def _pem(what: str, body: str) -> str:
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    return "\n".join([f"-----BEGIN {what}-----", *lines, f"-----END {what}-----", ""])


def _with_length(response: dict[str, Any]) -> dict[str, Any]:
    """An answer that says where it ends: of one that came in chunks vcrpy says it no more."""
    body = response["body"]["string"]
    length = [str(len(body.encode() if isinstance(body, str) else body))]
    return response | {"headers": {"Content-Length": length} | response["headers"]}


@contextmanager
def replay(cassette: Path | str) -> Iterator[Any]:
    """Answer from a cassette (a name in cassettes/, or a path); anything not recorded is an error."""
    path = CASSETTES / f"{cassette}.yaml" if isinstance(cassette, str) else cassette
    recorder = vcr.VCR(record_mode="none", match_on=["method", "uri"], before_record_response=_with_length)
    # While one connection is made the recorder is off for all threads, and a second one would be real.
    one, connect = threading.Lock(), HTTPSConnectionPool._new_conn

    def alone(pool: HTTPSConnectionPool) -> Any:
        with one:
            return connect(pool)

    with (
        mock.patch.object(transport, "connect_seconds", return_value=4.0),
        mock.patch.object(HTTPSConnectionPool, "_new_conn", alone),
        recorder.use_cassette(str(path)) as played,
    ):
        yield played


def interactions(cassette: str) -> list[dict[str, Any]]:
    loaded = yaml.load(
        (CASSETTES / f"{cassette}.yaml").read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    return list(loaded["interactions"])


def write_cassette(path: Path, chosen: list[dict[str, Any]]) -> Path:
    path.write_text(yaml.safe_dump({"version": 1, "interactions": chosen}), encoding="utf-8")
    return path


def listed_events() -> dict[str, Any]:
    """The answer to the list of CgroupV1 events, which was not recorded as a request: made from the recorded events."""
    events = json.loads((GOLDEN / "events.json").read_text())["items"]
    body = json.dumps({"kind": "EventList", "items": [event for event in events if event["reason"] == "CgroupV1"]})
    model = interactions("cluster")[3]
    headers = {"Content-Type": ["application/json"], "Content-Length": [str(len(body))]}
    return {
        "request": model["request"] | {"uri": f"{RECORDED}/api/v1/events?limit=500{EVENTS_QUERY}"},
        "response": model["response"] | {"body": {"string": body}, "headers": headers},
    }


def denied_account(number: int) -> list[dict[str, Any]]:
    """The interactions of one of the three accounts that stand one after another in `denied`: 1, 2 or 3."""
    return interactions("denied")[4 * (number - 1) : 4 * number]


def forbidden_owners(user: str, only: str | None = None) -> list[dict[str, Any]]:
    """403 answers for the owner lists, which were not recorded: modelled on the recorded 403 of account 2."""
    recorded = denied_account(2)[1]
    made = []
    for path, resource, group in OWNERS:
        if only not in (None, resource):
            continue
        status = json.loads(recorded["response"]["body"]["string"])
        status["message"] = (
            f'{f"{resource}.{group}".rstrip(".")} is forbidden: User "{user}" cannot list resource "{resource}" '
            f'in API group "{group}" at the cluster scope'
        )
        status["details"] = {"group": group, "kind": resource}
        body = json.dumps(status)
        headers = recorded["response"]["headers"] | {"Content-Length": [str(len(body))]}
        query = EVENTS_QUERY if resource == "events" else ""
        request = recorded["request"] | {"uri": f"{RECORDED}{path}?limit=500{query}"}
        made.append(
            {"request": request, "response": recorded["response"] | {"body": {"string": body}, "headers": headers}}
        )
    return made


def kubeconfig(
    path: Path,
    server: str = RECORDED,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    name: str = "mixed",
    **context: str,
) -> str:
    """Write a kubeconfig with one context and return its path."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": f"{name}-cluster", "user": f"{name}-user", **context}}],
        "clusters": [{"name": f"{name}-cluster", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": f"{name}-user", "user": {"token": "dummy"} if user is None else user}],
    }
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return str(path)


class Request:
    """What a client asked."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self.path = handler.path
        self.headers = handler.headers


Reply = tuple[int, bytes, dict[str, str]]


class Server:
    """An API server on 127.0.0.1 that answers by a function and remembers what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.host = url.partition("://")[2]
        self.requests: list[Request] = []


def a_list(kind: str, *items: dict[str, Any], **metadata: Any) -> Reply:
    return 200, json.dumps({"kind": f"{kind}List", "metadata": metadata, "items": list(items)}).encode(), {}


def a_status(code: int, message: str, **metadata: Any) -> Reply:
    body = {"kind": "Status", "status": "Failure", "message": message, "metadata": metadata, "code": code}
    return code, json.dumps(body).encode(), {}


def a_node(name: str = "node-1") -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}}}


def a_pod(name: str, namespace: str = "shop") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"containers": [{"name": "app"}]}}


KINDS = {
    "events": "Event",
    "nodes": "Node",
    "pods": "Pod",
    "runtimeclasses": "RuntimeClass",
    "replicasets": "ReplicaSet",
    "jobs": "Job",
}


def small_cluster(path: str) -> Reply:
    """One node, no pods."""
    kind = KINDS[path.partition("?")[0].rpartition("/")[2]]
    return a_list(kind, a_node()) if kind == "Node" else a_list(kind)


@contextmanager
def serve(answer: Callable[[str], Reply] = small_cluster, tls: Path | None = None) -> Iterator[Server]:
    """Serve on 127.0.0.1; `tls` is a folder to write certificates to (ca.crt is the one to trust)."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            served.requests.append(Request(self))
            code, body, headers = answer(self.path)
            self.send_response(code)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass  # A client that distrusts the certificate hangs up.

    server = Quiet(("127.0.0.1", 0), Handler)
    if tls:
        (tls / "ca.crt").write_text(_pem("CERTIFICATE", _CA))
        (tls / "server.pem").write_text(_pem("CERTIFICATE", _CERTIFICATE) + _pem("PRIVATE KEY", _KEY))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls / "server.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    served = Server(f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def trusting(server: Server) -> dict[str, Any]:
    """What a kubeconfig beside the certificates of a server says of its cluster."""
    return {"certificate-authority": "ca.crt"} if server.url.startswith("https:") else {}


class Scripted:
    """A door behind which a script stands."""

    pool = None

    def __init__(self, *says: Answer | Exception) -> None:
        self.says = list(says)
        self.paths: list[str] = []
        self.ends: list[float] = []

    def ask(self, path: str, ends: float) -> Answer:
        self.paths.append(path)
        self.ends.append(ends)
        said = self.says.pop(0)
        if isinstance(said, Exception):
            raise said
        return said

    get = ask

    def unpacked(self, answer: Answer) -> Answer:
        return answer


def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripted: Scripted, **more: Any) -> Api:
    monkeypatch.setattr(Api, "_asked", lambda self: scripted)
    return Api(Connection(kubeconfig=kubeconfig(tmp_path / "c"), **more))


def refused(connection: Connection) -> str:
    """The message with which a connection is refused before anything is sent."""
    with pytest.raises(ClusterError) as caught:
        Api(connection)
    return str(caught.value)


def token(path: str) -> str:
    choice = choose(Connection(kubeconfig=path))
    assert choice is not None
    return str(log_in(choice).configuration.auth_settings()["BearerToken"]["value"])
