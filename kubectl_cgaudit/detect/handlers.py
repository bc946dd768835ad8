"""Which runtime handler each pod uses."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import overload

from kubectl_cgaudit.collect.model import Cluster, Pod
from kubectl_cgaudit.detect.state import DEFAULT_HANDLER

PlacedPod = tuple[Pod, str]
"""A pod with the runtime handler it uses."""


class Placed(Sequence[PlacedPod]):
    """The active pods of a node. The pairs are made when they are asked for: a large cluster has many."""

    __slots__ = ("_handlers", "_pods")

    def __init__(self, pods: Sequence[Pod], handlers: Mapping[str | None, str]) -> None:
        self._pods = pods
        self._handlers = handlers

    def __len__(self) -> int:
        return len(self._pods)

    @overload
    def __getitem__(self, index: int) -> PlacedPod: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PlacedPod]: ...
    def __getitem__(self, index: int | slice) -> PlacedPod | Sequence[PlacedPod]:
        if isinstance(index, slice):
            return Placed(self._pods[index], self._handlers)
        pod = self._pods[index]
        return pod, self._handlers[pod.runtime_class]

    def __iter__(self) -> Iterator[PlacedPod]:
        handlers = self._handlers
        return ((pod, handlers[pod.alike.runtime_class]) for pod in self._pods)


def handler(runtime_class: str | None, cluster: Cluster) -> str:
    """`pod.spec.runtimeClassName` -> `RuntimeClass.handler`; a class that could not be read is taken by its name."""
    if runtime_class is None:
        return DEFAULT_HANDLER
    classes = cluster.runtime_classes or {}
    return classes.get(runtime_class, runtime_class) or DEFAULT_HANDLER


def placed_pods(cluster: Cluster) -> dict[str, Placed]:
    """The active pods of each node that has some."""
    pods: dict[str, list[Pod]] = defaultdict(list)
    handlers: dict[str | None, str] = {}
    for pod in cluster.pods:
        alike = pod.alike
        if pod.node and not alike.finished:
            pods[pod.node].append(pod)
            if alike.runtime_class not in handlers:
                handlers[alike.runtime_class] = handler(alike.runtime_class, cluster)
    return {node: Placed(tuple(found), handlers) for node, found in pods.items()}
