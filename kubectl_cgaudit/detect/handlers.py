"""Which runtime handler a pod uses."""

from kubectl_cgaudit.collect.model import Cluster, Pod
from kubectl_cgaudit.detect.state import DEFAULT_HANDLER


def handler(pod: Pod, cluster: Cluster) -> str:
    """`pod.spec.runtimeClassName` -> `RuntimeClass.handler`; a class that could not be read is taken by its name."""
    if pod.runtime_class is None:
        return DEFAULT_HANDLER
    classes = cluster.runtime_classes or {}
    return classes.get(pod.runtime_class, pod.runtime_class) or DEFAULT_HANDLER
