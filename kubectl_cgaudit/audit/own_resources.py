"""Pods with CPU requests or limits of their own (spec.resources), which a kubelet counts by a feature gate."""

from collections.abc import Collection, Iterator, Sequence

from kubectl_cgaudit.audit.model import GapRecord
from kubectl_cgaudit.cgroups.pods import may_count_pod_level, pod_level_resources
from kubectl_cgaudit.cgroups.version import KubeletVersion
from kubectl_cgaudit.collect.model import Cluster, Node, Pod
from kubectl_cgaudit.text import capital, these


def _with_own_resources(active: Sequence[Pod]) -> list[Pod]:
    return [pod for pod in active if pod.request_milli is not None or pod.limit_milli]


def _on(nodes: Collection[str], pods: Sequence[Pod]) -> list[str]:
    return [f"{pod.namespace}/{pod.name}" for pod in pods if pod.node in nodes]


def _counts_them(cluster: Cluster, node: Node) -> bool | None:
    """Whether a node's kubelet says that it counts the resources of pods themselves."""
    answers = (cluster.kubelets or {}).get(node.name)
    return answers.pod_level if answers else None


def gaps(cluster: Cluster, active: Sequence[Pod]) -> list[GapRecord]:
    """Nodes whose kubelet says of the gate what its version does not, and that have pods for which it matters."""
    own = _with_own_resources(active)
    theirs = {pod.node for pod in own}
    found = [
        node.name
        for node in cluster.nodes
        if node.name in theirs
        and _counts_them(cluster, node) not in (None, pod_level_resources(KubeletVersion.parse(node.kubelet_version)))
    ]
    if not found:
        return []
    pods = _on(set(found), own)
    why = (
        "the feature gate PodLevelResources is not there what it is by default (on from 1.34): the shares shown of now are not "
        f"those of {these('pod', pods)}, nor of what competes with {'it' if len(pods) == 1 else 'them'}"
    )
    remedy = "Leave these numbers aside, or set the gate to its default"
    return [GapRecord(these("node", found), why, remedy, "node with another PodLevelResources", tuple(found))]


def notes(cluster: Cluster, active: Sequence[Pod]) -> Iterator[str]:
    """Pods whose own request or limit is left out on the word of a default."""
    old = {
        node.name
        for node in cluster.nodes
        if may_count_pod_level(KubeletVersion.parse(node.kubelet_version)) and _counts_them(cluster, node) is None
    }
    names = _on(old, _with_own_resources(active))
    if names:
        theirs = "its own resources are" if len(names) == 1 else "their own resources are"
        yield (
            f"{capital(these('pod', names))} on kubelets 1.32 or 1.33: {theirs} taken not to count there, as the feature gate "
            "PodLevelResources is off by default before 1.34. Where it is on (kubernetes_feature_enabled in the kubelet's "
            "/metrics is 1) the shares shown of now are not those of these nodes"
        )
