"""What the kubelet of a node answers: /metrics, /metrics/cadvisor and /configz, small but true."""

from typing import Any

import msgspec

from tests.simulator import dice
from tests.simulator.cluster import Cluster, node_name, pool


def address(index: int) -> str:
    """The internal IP of a node."""
    return f"10.{index >> 16}.{index >> 8 & 255}.{index & 255}"


def machine(seed: int, index: int) -> dict[str, str]:
    """status.nodeInfo of a node."""
    of, rolled = pool(index), dice.roll(seed, "machine", index)
    return {
        "machineID": rolled[:16].hex(),
        "systemUUID": rolled[:16].hex(),
        "bootID": dice.uuid(rolled[16:]),
        "kernelVersion": of.kernel,
        "osImage": of.os,
        "containerRuntimeVersion": of.runtime,
        "kubeletVersion": of.kubelet,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


def metrics(index: int) -> bytes:
    """/metrics: who answers, its build, and its cgroup version."""
    of = pool(index)
    major, minor = "1", str(of.minor)
    rows = (
        ("kubelet_cgroup_version", "[ALPHA] cgroup version on the hosts.", "", of.cgroup),
        (
            "kubelet_metrics_provider",
            "[ALPHA] Metrics provider used by kubelet to collect container stats. Values can be 'cadvisor' and 'cri'",
            '{provider="cadvisor"}',
            1,
        ),
        ("kubelet_node_name", "[ALPHA] The node's name. The count is always 1.", f'{{node="{node_name(index)}"}}', 1),
        (
            "kubernetes_build_info",
            "[ALPHA] A metric with a constant '1' value labeled by build information.",
            f'{{compiler="gc",git_version="{of.kubelet}",major="{major}",minor="{minor}",platform="linux/amd64"}}',
            1,
        ),
    )
    return "".join(
        f"# HELP {name} {text}\n# TYPE {name} gauge\n{name}{labels} {value}\n" for name, text, labels, value in rows
    ).encode()


def cadvisor(index: int) -> bytes:
    """/metrics/cadvisor: the shares of the cgroups whose values do not depend on the pods."""
    of = pool(index)
    wanted = {
        "/": 1024 if of.cgroup == 1 else 0,
        "/kubepods.slice": of.allocatable * 1024 // 1000,
        "/kubepods.slice/kubepods-besteffort.slice": 2,
        "/system.slice": 1024,
    }
    rows = []
    for path, shares in sorted(wanted.items()):
        seen = shares if of.cgroup == 1 or path == "/" else _read_back(shares, path)
        labels = f'container="",id="{path}",image="",name="",namespace="",pod=""'
        rows.append(f"container_spec_cpu_shares{{{labels}}} {seen}\n")
    head = "# HELP container_spec_cpu_shares CPU share of the container.\n# TYPE container_spec_cpu_shares gauge\n"
    return (head + "".join(rows)).encode()


def _read_back(shares: int, path: str) -> int:
    """The shares that cAdvisor shows for a weight on cgroup v2, with the linear formula both ways."""
    weight = 100 if path == "/system.slice" else 1 + (shares - 2) * 9999 // 262142
    return 2 + (weight - 1) * 262142 // 9999


def configz(index: int) -> bytes:
    """/configz, shortened to what a kubelet always says."""
    of = pool(index)
    reserved = f"{of.capacity - of.allocatable}m"
    said: dict[str, Any] = {
        "enableServer": True,
        "syncFrequency": "1m0s",
        "address": "0.0.0.0",
        "port": 10250,
        "authentication": {
            "x509": {},
            "webhook": {"enabled": True, "cacheTTL": "2m0s"},
            "anonymous": {"enabled": False},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupsPerQOS": True,
        "cgroupDriver": "systemd",
        "cpuManagerPolicy": "none",
        "maxPods": 110,
        "cpuCFSQuota": True,
        "cpuCFSQuotaPeriod": "100ms",
        "kubeReserved": {"cpu": reserved, "memory": "1Gi"},
        "enforceNodeAllocatable": ["pods"],
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "failCgroupV1": False,
    }
    return msgspec.json.encode({"kubeletconfig": said})


def answer(cluster: Cluster, name: str, endpoint: str) -> tuple[str, bytes] | None:
    """Content type and body of an endpoint of a node; None when there is no such node or endpoint."""
    number = name.rpartition("-")[2]
    index = int(number) if number.isdecimal() else cluster.size.nodes
    if index >= cluster.size.nodes or name != node_name(index):
        return None
    text = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
    if endpoint == "metrics":
        return text, metrics(index)
    if endpoint == "metrics/cadvisor":
        return text, cadvisor(index)
    if endpoint == "configz":
        return "application/json", configz(index)
    return None
