"""What the recorded kubelets said, and short answers like theirs."""

from tests.support import GOLDEN, golden_json

NODES = ("worker-a", "worker-b", "worker-c")
CONFIG = b'{"kubeletconfig":{"cgroupDriver":"systemd","enforceNodeAllocatable":["pods"]}}'
PODS = {"n1": {("shop", "a")}, "n2": {("shop", "a")}, "n3": {("shop", "a")}}
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
