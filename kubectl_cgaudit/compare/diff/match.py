"""Which node and which pod of the second audit stands for which of the first."""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import TypeVar

from msgspec import Struct

from kubectl_cgaudit.audit.model import NodeMoment, NodeRecord
from kubectl_cgaudit.cgroups.weights import linear
from kubectl_cgaudit.collect.model import COMPETING
from kubectl_cgaudit.compare.diff.moments import PodCases

T = TypeVar("T")
Facts = Hashable


class Nodes(Struct, frozen=True):
    """Nodes of both audits; several new ones can stand for one that is gone."""

    pairs: tuple[tuple[NodeRecord, NodeRecord], ...]
    new: tuple[NodeRecord, ...]
    gone: tuple[NodeRecord, ...]
    ambiguous: tuple[str, ...]
    """New nodes that took the place of gone ones of which different things were predicted: it cannot be said of which."""


class Pods(Struct, frozen=True):
    """Pods of a workload in both audits."""

    pairs: tuple[tuple[PodCases, PodCases], ...]
    new: tuple[PodCases, ...]
    gone: tuple[PodCases, ...]


def formula(runtime: str) -> str:
    """`quadratic` of `runc 1.3.6 (quadratic)`."""
    return runtime.rpartition("(")[2].rstrip(")")


def facts(node: NodeRecord) -> Facts:
    """What decides the prediction for a node, its pods aside: nodes with equal facts can stand for each other."""
    return node.allocatable_milli, tuple((_moment(case.before), _moment(case.after), case.stops) for case in node.cases)


def _moment(moment: NodeMoment) -> Facts:
    runtimes = tuple(sorted((handler, formula(runtime)) for handler, runtime in moment.runtimes.items()))
    return moment.cgroup, moment.kubepods, moment.system_slice, round(moment.pods_share, 6), runtimes


def nodes(before: Sequence[NodeRecord], after: Sequence[NodeRecord], apart: Collection[str] = ()) -> Nodes:
    """Nodes by name; the others by their CPU, if all that are gone of that size had the same facts.

    None of those `apart` stands for another.
    """
    by_name = {node.name: node for node in after}
    pairs = [(node, by_name[node.name]) for node in before if node.name in by_name]
    kept = {node.name for node, _ in pairs}
    gone, new = _by_size(before, kept), _by_size(after, kept)
    ambiguous = []
    for size in sorted(set(gone) & set(new)):
        left, came = ([node for node in side[size] if node.name not in apart] for side in (gone, new))
        if len({facts(node) for node in left}) > 1:
            ambiguous += [node.name for node in came]
        elif left:
            pairs += [(left[min(index, len(left) - 1)], node) for index, node in enumerate(came)]
            gone[size] = [node for node in gone[size] if node not in left[: len(came)]]
            new[size] = [node for node in new[size] if node not in came]
    return Nodes(tuple(sorted(pairs, key=lambda pair: pair[1].name)), _flat(new), _flat(gone), tuple(sorted(ambiguous)))


def _by_size(every: Sequence[NodeRecord], without: set[str]) -> dict[int, list[NodeRecord]]:
    found: dict[int, list[NodeRecord]] = defaultdict(list)
    for node in sorted(every, key=lambda node: node.name):
        if node.name not in without:
            found[node.allocatable_milli].append(node)
    return found


def _flat(by_size: dict[int, list[NodeRecord]]) -> tuple[NodeRecord, ...]:
    return tuple(sorted((node for each in by_size.values() for node in each), key=lambda node: node.name))


def spec(pod: PodCases) -> Hashable:
    """What a pod asks for: its QoS class and handler, all of it, and name, request and limit of each container that stays."""
    containers = tuple(
        (each.name, each.role, each.request_milli, each.limit_milli)
        for each in pod.containers
        if each.role in COMPETING
    )
    return pod.qos, pod.handler, weight(pod), containers


def weight(pod: PodCases) -> int | None:
    """That of the pod's own cgroup, or what every kubelet makes of its shares: overhead and init containers are in it."""
    moment = pod.cases[0].before if pod.cases else None
    if moment is None or moment.value is None:
        return None
    return linear(moment.value) if moment.version == "v1" else moment.value


def pods(
    before: Sequence[PodCases],
    after: Sequence[PodCases],
    facts_before: Callable[[str], Facts],
    facts_after: Callable[[str], Facts],
    stood_for: Callable[[str], str | None],
) -> Pods:
    """Pods by name; replicas by node and request, then by equal facts, then by request, then in order of their names.

    `facts_*` are of the node of that name, for a node of the second audit of the one that it stands for.
    """
    left, came = sorted(before, key=lambda pod: pod.name), sorted(after, key=lambda pod: pod.name)
    pairs: list[tuple[PodCases, PodCases]] = []
    ways: list[tuple[Callable[[PodCases], Hashable], Callable[[PodCases], Hashable]]] = [
        (lambda pod: pod.name, lambda pod: pod.name),
        (lambda pod: (pod.node, spec(pod)), lambda pod: (stood_for(pod.node), spec(pod))),
        (lambda pod: (facts_before(pod.node), spec(pod)), lambda pod: (facts_after(pod.node), spec(pod))),
        (spec, spec),
        (lambda _: None, lambda _: None),
    ]
    for of_left, of_came in ways:
        found, left, came = _paired(left, came, of_left, of_came)
        pairs += found
    return Pods(tuple(sorted(pairs, key=lambda pair: (pair[1].node, pair[1].name))), tuple(came), tuple(left))


def _paired(
    left: Sequence[T], came: Sequence[T], of_left: Callable[[T], Hashable], of_came: Callable[[T], Hashable]
) -> tuple[list[tuple[T, T]], list[T], list[T]]:
    """Those with the same key, in order, and the rest of both."""
    waiting: dict[Hashable, list[T]] = defaultdict(list)
    for each in left:
        waiting[of_left(each)].append(each)
    pairs, rest = [], []
    for each in came:
        same = waiting.get(of_came(each))
        if same:
            pairs.append((same.pop(0), each))
        else:
            rest.append(each)
    remaining = {id(each) for same in waiting.values() for each in same}
    return pairs, [each for each in left if id(each) in remaining], rest
