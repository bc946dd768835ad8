"""Small real documents to begin with, cut out of what was recorded."""

import json
from functools import cache
from typing import Any

import msgspec

from kubectl_cgaudit.collect import snapshot
from kubectl_cgaudit.collect.assemble import Assembly
from kubectl_cgaudit.collect.model import Cluster
from tests.support import GOLDEN, golden_json, rendered, saved

_PODS = ("index-rebuild-4d962", "postgres-0", "checkout-d5491e7e7-1fc23", "waiting-for-gpu")
_NODES = ("worker-a", "worker-b")
_ROWS = ("container_spec_cpu_shares", "kubelet_cgroup_version", "kubelet_node_name", "kubelet_metrics_provider")
_MOST_ROWS = 12
KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "prod",
    "contexts": [
        {"name": "prod", "context": {"cluster": "prod", "user": "me", "namespace": "shop"}},
        {"name": "test", "context": {"cluster": "test", "user": "file"}},
    ],
    "clusters": [
        {"name": "prod", "cluster": {"server": "http://127.0.0.1:6443", "proxy-url": "http://u:p@127.0.0.1:3128"}},
        {"name": "test", "cluster": {"server": "http://[::1]:8080", "insecure-skip-tls-verify": True}},
    ],
    "users": [
        {"name": "me", "user": {"token": "abc", "as": "robot", "as-groups": ["a", "b"], "as-user-extra": {"k": ["v"]}}},
        {"name": "file", "user": {"client-certificate-data": "YWJj", "client-key-data": "YWJj"}},
    ],
}


@cache
def nodes() -> list[Any]:
    """Two recorded nodes."""
    return [_lean(each) for each in golden_json("nodes.json")["items"] if each["metadata"]["name"] in _NODES]


@cache
def pods() -> list[Any]:
    """Four recorded pods: a Job's, a StatefulSet's, a Deployment's with two containers, one that waits."""
    return [_lean(each) for each in golden_json("pods.json")["items"] if each["metadata"]["name"] in _PODS]


def _lean(item: Any) -> Any:
    """Without what nobody reads, so that wounds hit what somebody reads."""
    for key in (
        "env",
        "images",
        "managedFields",
        "tolerations",
        "volumeMounts",
        "livenessProbe",
        "readinessProbe",
        "args",
    ):
        _drop(item, key)
    return item


def _drop(value: Any, key: str) -> None:
    if isinstance(value, dict):
        value.pop(key, None)
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _drop(inner, key)


@cache
def owned() -> list[Any]:
    """A ReplicaSet and a Job."""
    return [each for each in golden_json("workloads.json")["items"] if each["kind"] in ("ReplicaSet", "Job")][:2]


@cache
def cluster() -> Cluster:
    """The cluster of these objects."""
    assembly = Assembly(lambda _namespace, _labels: True, "")
    for each in nodes() + pods():
        assembly.add(each["kind"], each, lambda raw, type_: msgspec.convert(raw, type=type_), "seed")
    return assembly.cluster("seed")


@cache
def audit() -> Any:
    """The audit of that cluster, as its JSON holds it."""
    return json.loads(rendered("json", saved(cluster(), (GOLDEN / "states.yaml").read_text())))


@cache
def saved_cluster() -> Any:
    """That cluster as a snapshot."""
    return json.loads(snapshot.encode(cluster()))


@cache
def metrics() -> dict[str, bytes]:
    """What a kubelet answered: configz whole, of the metrics a few rows."""
    texts = {"/metrics": "metrics.txt", "/metrics/cadvisor": "metrics-cadvisor.txt"}
    found = {path: _rows((GOLDEN / f"worker-a.{name}").read_text()) for path, name in texts.items()}
    return {"/configz": (GOLDEN / "worker-a.configz.txt").read_bytes(), **found}


def _rows(text: str) -> bytes:
    rows = [line for line in text.splitlines() if line.startswith(_ROWS)]
    rows = [line for line in rows if "postgres-0" in line or "/kubepods" not in line][-_MOST_ROWS:]
    return ("# HELP x y\n# TYPE x gauge\n" + "\n".join(rows) + "\n").encode()


@cache
def states() -> Any:
    """A states file, as a document."""
    return [
        {"match": {"name": "worker-*", "labels": {"pool": "blue"}}, "cgroup": "v2", "system_slice": "20"},
        {"cgroup": "v1", "driver": "systemd", "kubelet": "linear 1.35.2", "root": {"docker": "100"}},
        {"match": {"name": "worker-b"}, "cgroup": "v2", "runtimes": {"default": "runc 1.3.6", "odd": "linear"}},
    ]
