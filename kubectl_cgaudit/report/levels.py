"""What `explain` draws: each level from the root to one pod and its containers, with its siblings and its arithmetic."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kubectl_cgaudit.cgroups import crio
from kubectl_cgaudit.cgroups.pods import container_limit, pod_limit, pod_request, spec_request
from kubectl_cgaudit.collect.model import UNIFIED, Container, Node, Pod
from kubectl_cgaudit.compare.cgroups import Cgroup, NodeTree, PodTree, asked_weight, has_inner
from kubectl_cgaudit.detect.runtime import Runtime
from kubectl_cgaudit.detect.state import Setup, unit_of
from kubectl_cgaudit.report.arithmetic import amount, fraction, part, quota, requested, to_shares, weighed
from kubectl_cgaudit.text import counted

_MOST_AT_ROOT = 8
_SLICES = {"Burstable": "kubepods-burstable", "BestEffort": "kubepods-besteffort"}

Siblings = list[tuple[str, Cgroup]]


class Level(Struct, frozen=True):
    """A cgroup, or several siblings together, at one moment. Nothing is escaped.

    depth: 0 for the root's children. value: with its unit. part: the fraction (0..1) among its siblings, None if it does
    not compete. share: the fraction (0..1) of the node's CPU. notes: the arithmetic.
    """

    depth: int
    label: str
    value: str
    part: float | None
    share: float | None
    notes: tuple[str, ...] = ()


def levels(node: Node, tree: NodeTree, index: int) -> Iterator[Level]:
    """Every level of the pod at `index` of the tree, parents before children and siblings before what is explained."""
    (pod, handler), pod_tree = tree.placed[index], tree.pod(index)
    runtime = tree.setup.runtime(handler)
    depth = 1 if pod.qos == "Guaranteed" else 2
    yield from _root(node, tree)
    if pod.qos != "Guaranteed":
        yield from _slice(tree, pod_tree)
    yield from _pod(tree, pod_tree, runtime, depth)
    yield from _containers(pod_tree, tree.setup, runtime, depth + 1)


def _value(cgroup: Cgroup, amount: int | None) -> str:
    return "none set" if amount is None else f"{unit_of(cgroup.version)} {amount}"


def _own(depth: int, label: str, cgroup: Cgroup, others: Siblings, *notes: str) -> Level:
    value = _value(cgroup, cgroup.value)
    return Level(depth, label, value, part(cgroup, [other for _, other in others]), cgroup.share, notes)


def _together(depth: int, label: str, members: Sequence[Cgroup], beside: Siblings, own: Cgroup) -> Iterator[Level]:
    """Siblings that are summed up in one row; no row if there are none."""
    if members:
        total = sum(cgroup.value or 0 for cgroup in members)
        whole = (own.value or 0) + sum(cgroup.value or 0 for _, cgroup in beside)
        share = sum(cgroup.share or 0.0 for cgroup in members)
        yield Level(depth, label, _value(own, total), total / whole if whole else 0.0, share)


def _root(node: Node, tree: NodeTree) -> Iterator[Level]:
    setup = tree.setup
    named = [((cgroup.path or "").strip("/"), cgroup) for cgroup in tree.root]
    for label, cgroup in named[:_MOST_AT_ROOT]:
        yield Level(0, label, _value(cgroup, cgroup.value), cgroup.share, cgroup.share)
    more = [cgroup for _, cgroup in named[_MOST_AT_ROOT:]]
    yield from _together(0, counted(len(more), "other"), more, named, tree.kubepods)
    of = "capacity" if setup.from_capacity else "allocatable CPU"
    milli = node.capacity_milli if setup.from_capacity else node.allocatable_milli
    yield _own(
        0,
        "kubepods",
        tree.kubepods,
        named,
        "all pods against system processes; written by the kubelet",
        f"{of} {milli}m -> {to_shares(milli)} {weighed(tree.kubepods, setup.kubelet_formula)}",
        fraction("kubepods", tree.kubepods, named, "the node"),
    )


def _slices(tree: NodeTree) -> Siblings:
    """The slices that hold something that wants CPU."""
    both = [(_SLICES["Burstable"], tree.burstable), (_SLICES["BestEffort"], tree.besteffort)]
    return [(name, cgroup) for name, cgroup in both if cgroup.share]


def _pods(tree: NodeTree, qos: str, but: PodTree | None = None) -> Siblings:
    """The pods of a QoS class that want CPU."""
    found = (
        other
        for other in tree.pods()
        if other.pod.qos == qos and (but is None or other.pod is not but.pod) and other.cgroup.share
    )
    return [(f"{other.pod.namespace}/{other.pod.name}", other.cgroup) for other in found]


def _slice(tree: NodeTree, pod_tree: PodTree) -> Iterator[Level]:
    qos, setup = pod_tree.pod.qos, tree.setup
    own = tree.burstable if qos == "Burstable" else tree.besteffort
    slices = [(name, cgroup) for name, cgroup in _slices(tree) if name != _SLICES[qos]]
    guaranteed = _pods(tree, "Guaranteed")
    others = slices + guaranteed
    for name, cgroup in slices:
        beside = [(label, other) for label, other in others if label != name]
        yield _own(1, name, cgroup, [*beside, ("", own)])
    label = counted(len(guaranteed), "Guaranteed pod")
    yield from _together(1, label, [cgroup for _, cgroup in guaranteed], others, own)
    made = _counted(tree) if qos == "Burstable" else "BestEffort always has"
    yield _own(
        1,
        _SLICES[qos],
        own,
        others,
        f"the {qos} slice inside kubepods; written by the kubelet",
        f"{made} {weighed(own, setup.kubelet_formula)}",
        fraction("slice", own, others, "kubepods"),
    )


def _counted(tree: NodeTree) -> str:
    """Return what the shares of the Burstable slice are made of."""
    kubelet = tree.setup.kubelet_version
    every = [other.pod for other in tree.pods() if other.pod.qos == "Burstable"]
    pods = [pod for pod in every if not (tree.setup.partitioned and crio.asked(pod).partitioned)]
    total = sum(spec_request(pod, kubelet) for pod in pods)
    resizing = any(spec_request(pod, kubelet) != pod_request(pod, kubelet) for pod in pods)
    specs = ", as their specs have them" if resizing else ""
    apart = f", without {len(every) - len(pods)} for a management partition" if len(pods) < len(every) else ""
    return f"requests of {counted(len(pods), 'active Burstable pod')}{specs}{apart} {total}m -> {to_shares(total)}"


def _pod(tree: NodeTree, pod_tree: PodTree, runtime: Runtime, depth: int) -> Iterator[Level]:
    pod, own, setup = pod_tree.pod, pod_tree.cgroup, tree.setup
    slices = _slices(tree) if pod.qos == "Guaranteed" else []
    pods = _pods(tree, pod.qos, but=pod_tree)
    others = slices + pods
    for name, cgroup in slices:
        yield _own(depth, name, cgroup, [*((n, other) for n, other in others if other is not cgroup), ("", own)])
    label = counted(len(pods), f"other {pod.qos} pod")
    yield from _together(depth, label, [cgroup for _, cgroup in pods], others, own)
    where = "directly in kubepods, beside the slices" if pod.qos == "Guaranteed" else "against the other pods beside it"
    made = "BestEffort" if pod.qos == "BestEffort" else requested(pod, setup.kubelet_version)
    of = "kubepods" if pod.qos == "Guaranteed" else f"the {pod.qos} slice"
    notes = [
        f"{where}; written by the kubelet",
        f"{made} -> {weighed(own, setup.kubelet_formula)}",
        fraction("pod", own, others, of),
    ]
    limit = pod_limit(pod, setup.kubelet_version)
    if limit is not None:
        notes.append(quota(limit, own, setup))
    notes.append(f"containers: against each other inside the pod; written by the runtime, {runtime}")
    yield _own(depth, f"{pod.namespace}/{pod.name}", own, others, *notes)


def _made(container: Container, pod: Pod, cgroup: Cgroup, setup: Setup, runtime: Runtime) -> str:
    """Return what a container's value is made of."""
    asked = asked_weight(container, pod, setup)
    if asked is not None and asked == cgroup.weight and not has_inner(setup, runtime):
        return f"annotation {UNIFIED}{container.name} -> weight {asked}"
    return f"{amount(container, pod, setup)} -> {weighed(cgroup, runtime.formula)}"


def _containers(pod_tree: PodTree, setup: Setup, runtime: Runtime, depth: int) -> Iterator[Level]:
    competing = [(container, cgroup) for container, cgroup in pod_tree.containers if cgroup.share is not None]
    for container, cgroup in pod_tree.containers:
        notes = [_made(container, pod_tree.pod, cgroup, setup, runtime)]
        others = [(other.name, theirs) for other, theirs in competing if other is not container]
        if cgroup.share is not None:
            notes.append(fraction(container.name, cgroup, others, "the pod"))
        elif container.role == "init":
            notes.append("runs before the others")
        elif container.role == "ephemeral":
            notes.append("a debug container, which is not there once the pod is created anew")
        else:
            notes.append("how the pod's CPU is split is not in cgroups")
        if cgroup.quota_us is not None:
            limit = container_limit(container, pod_tree.pod, setup.kubelet_version)
            notes.append(quota(limit or 0, cgroup, setup))
        own = None if cgroup.share is None else part(cgroup, [theirs for _, theirs in others])
        yield Level(depth, container.name, _value(cgroup, cgroup.value), own, cgroup.share, tuple(notes))
