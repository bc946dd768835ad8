"""Which runtime handler each pod uses."""

from collections import defaultdict

from kubectl_cgaudit.collect.model import Cluster, Pod
from kubectl_cgaudit.detect.state import DEFAULT_HANDLER

PlacedPod = tuple[Pod, str]
"""A pod with the runtime handler it uses."""


def handler(pod: Pod, cluster: Cluster) -> str:
    """`pod.spec.runtimeClassName` -> `RuntimeClass.handler`; a class that could not be read is taken by its name."""
    if pod.runtime_class is None:
        return DEFAULT_HANDLER
    classes = cluster.runtime_classes or {}
    return classes.get(pod.runtime_class, pod.runtime_class) or DEFAULT_HANDLER


def placed_pods(cluster: Cluster) -> dict[str, list[PlacedPod]]:
    """The active pods of each node that has some."""
    placed: dict[str, list[PlacedPod]] = defaultdict(list)
    for pod in cluster.pods:
        if pod.node and not pod.finished:
            placed[pod.node].append((pod, handler(pod, cluster)))
    return dict(placed)
