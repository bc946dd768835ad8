"""What the recorded kubelets said, and short answers like theirs."""

from collections.abc import Callable
from pathlib import Path

from kubectl_cgaudit.collect import configz, kubelet, metrics
from kubectl_cgaudit.collect.kubeconfig import Connection
from kubectl_cgaudit.collect.model import KubeletAnswers
from kubectl_cgaudit.collect.progress import silent
from kubectl_cgaudit.collect.transport import Api
from tests.support import GOLDEN, golden_json
from tests.vcr_support import kubeconfig

NODES = ("worker-a", "worker-b", "worker-c")
CONFIG = b'{"kubeletconfig":{"cgroupDriver":"systemd","enforceNodeAllocatable":["pods"]}}'
PODS = {"n1": {("shop", "a")}, "n2": {("shop", "a")}, "n3": {("shop", "a")}}
HOSTILE_METRICS = {
    "many open braces": b"container_spec_cpu_shares{" * 100_000 + b"\n",
    "a label without an end": b'container_spec_cpu_shares{id="' + b"\\" * 999_999 + b"\n" + b"a 1\n",
    "labels without an end": b"container_spec_cpu_shares{" + b'a="b",' * 200_000 + b" 1\n",
    "blanks within a value": b"a 1\ncontainer_spec_cpu_shares 1" + b" " * 1_000_000 + b"x\na 1\n",
    "comments alone": b"#" + b"\n#" * 1_000_000 + b"\n",
    "names that begin alike": b"a 1\n" + b"container_spec_cpu_sharesX 1\n" * 50_000,
}
"""One to three megabytes each, made to take long."""
ENDINGS = {"/configz": "configz.txt", "/metrics": "metrics.txt", "/metrics/cadvisor": "metrics-cadvisor.txt"}


def golden(node: str, endpoint: str) -> bytes:
    return (GOLDEN / f"{node}.{ENDINGS[endpoint]}").read_bytes()


def golden_pods() -> dict[str, set[tuple[str, str]]]:
    pods: dict[str, set[tuple[str, str]]] = {}
    for item in golden_json("pods.json")["items"]:
        named = (item["metadata"]["namespace"], item["metadata"]["name"])
        pods.setdefault(item["spec"].get("nodeName", ""), set()).add(named)
    return pods


def row(path: str = "/kubepods.slice", value: str = "2", **labels: str) -> str:
    said = ",".join(f'{name}="{text}"' for name, text in {"id": path, **labels}.items())
    return f"container_spec_cpu_shares{{{said}}} {value}\n"


def no_answers(node: str, *problems: str) -> KubeletAnswers:
    return KubeletAnswers(
        node=node, cgroup_version=None, stats_from_spec=None, shares={}, config=None, problems=problems
    )


Reply = tuple[int, bytes, dict[str, str]]


SMALL = {
    "/configz": CONFIG,
    "/metrics": b"kubelet_cgroup_version 2\n",
    "/metrics/cadvisor": row("/a", "34", namespace="shop", pod="a").encode(),
}


def healthy(endpoint: str) -> Reply:
    return 200, SMALL[endpoint], {}


def cluster(**nodes: Callable[[str], Reply]) -> Callable[[str], Reply]:
    """An API server whose node proxies answer by functions of the endpoint; the others are healthy."""

    def answer(path: str) -> Reply:
        node, _, endpoint = path.removeprefix("/api/v1/nodes/").partition("/proxy")
        return nodes.get(node, healthy)(endpoint)

    return answer


def good(node: str, *problems: str, **changed) -> KubeletAnswers:
    fields = {
        "cgroup_version": "v2",
        # Without /metrics it is not known where the shares come from.
        "stats_from_spec": None if changed.get("cgroup_version", "v2") is None else False,
        "shares": {"/a": 34},
        "config": configz.config(CONFIG),
        **changed,
    }
    return KubeletAnswers(node=node, problems=problems, **fields)


ALL = "/configz, /metrics, /metrics/cadvisor"


def through_proxy(tmp_path: Path, url: str, nodes=("n1", "n2", "n3"), seconds: float = 5.0):
    connection = Connection(kubeconfig=kubeconfig(tmp_path / "config", server=url))
    with Api(connection) as api:
        return kubelet.from_proxy(api, nodes, PODS, silent, seconds=seconds)


def recorded_answers(node: str, *problems: str) -> KubeletAnswers:
    return KubeletAnswers(
        node=node,
        cgroup_version="v1" if node == "worker-c" else "v2",
        stats_from_spec=False,
        shares=metrics.shares(golden(node, "/metrics/cadvisor")),
        config=configz.config(golden(node, "/configz")),
        problems=problems,
        pod_level=node == "worker-a",
        quotas=metrics.quotas(golden(node, "/metrics/cadvisor")),
    )
