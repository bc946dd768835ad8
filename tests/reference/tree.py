"""The cgroup tree of a node in a state that is wholly known.

Part of the reference model: written from the documents alone, to be obviously right and not fast. It must never
import from kubectl_cgaudit.
"""

from dataclasses import dataclass
from fractions import Fraction

from tests.reference.amounts import DEFAULT, FORMULAS, linear, rounded_up, shares
from tests.reference.kubelet import container_quota, container_shares, counted_request, pod_quota, pod_shares
from tests.reference.objects import QOS_CLASSES, Container, Pod, PodKey, QosClass, Raw, allocatable
from tests.reference.platforms import TARGET, annotated_shares, annotated_weight, quota_is_off
from tests.reference.states import State


@dataclass(frozen=True)
class Cgroup:
    """A cgroup of a pod or container. `value` is shares on v1, a weight on v2; None where the runtime writes none."""

    version: str
    value: int | None
    quota: int | None
    in_pod: Fraction | None
    share: Fraction | None
    against_system: Fraction | None


@dataclass(frozen=True)
class PodTree:
    """A pod's cgroup and those of its containers that are shown."""

    own: Cgroup
    containers: dict[str, Cgroup]


@dataclass(frozen=True)
class QosSlice:
    """The pods of a QoS class; the value of Guaranteed pods, which have no slice, is their sum."""

    pods: int
    value: int
    share: Fraction


@dataclass(frozen=True)
class NodeTree:
    """A node's tree."""

    state: State
    kubepods: int
    system_slice: int
    others: dict[str, int]
    pods_share: Fraction
    system_share: Fraction
    slices: dict[QosClass, QosSlice]
    pods: dict[PodKey, PodTree]


def predict(node: Raw, pods: list[Pod], state: State) -> NodeTree:
    """The tree, each cgroup by the product rule: docs/method.md, "The share"."""
    kubepods = _by_kubelet(shares(allocatable(node)), state)
    others = {name: value for name, value in state.root.items() if name != "system.slice"}
    system = state.root.get("system.slice", DEFAULT[state.cgroup])
    root = kubepods + system + sum(others.values())
    pods_share, system_share = Fraction(kubepods, root), Fraction(system, root)
    values = {pod.key: _by_kubelet(pod_shares(pod, state.kubelet), state) for pod in pods}
    members = {qos: [pod for pod in pods if pod.qos == qos] for qos in QOS_CLASSES}
    in_slices = {qos: _slice_value(qos, members[qos], values, state) for qos in QOS_CLASSES}
    # A slice without pods wants no CPU.
    competing = sum(in_slices[qos] for qos in QOS_CLASSES if members[qos])
    slices: dict[QosClass, QosSlice] = {}
    for qos, value in in_slices.items():
        part = Fraction(value, competing) if members[qos] else Fraction(0)
        slices[qos] = QosSlice(len(members[qos]), value, pods_share * part)
    trees = {}
    for pod in pods:
        siblings = sum(values[other.key] for other in members[pod.qos])
        # A Guaranteed pod competes with the slices themselves; its part of their sum is the same.
        share = slices[pod.qos].share * Fraction(values[pod.key], siblings)
        trees[pod.key] = _pod_tree(pod, values[pod.key], share, system_share, state)
    return NodeTree(state, kubepods, system, others, pods_share, system_share, slices, trees)


def may_not_start(pod: Pod, state: State) -> bool:
    """Whether a container's quota may be greater than its pod's, which v1 refuses: docs/findings/CGA301.md."""
    whole = _pod_quota(pod, state)
    quotas = [_container_quota(pod, each, state) for each in pod.containers]
    return state.cgroup == "v1" and whole is not None and any(quota > whole for quota in quotas if quota)


def _by_kubelet(of_shares: int, state: State) -> int:
    return of_shares if state.cgroup == "v1" else linear(of_shares)


def _slice_value(qos: QosClass, members: list[Pod], values: dict[PodKey, int], state: State) -> int:
    if qos == "Guaranteed":
        return sum(values[pod.key] for pod in members)
    if qos == "BestEffort":
        return _by_kubelet(2, state)
    counted = [pod for pod in members if state.counts_partitioned or TARGET not in pod.annotations]
    return _by_kubelet(shares(sum(counted_request(pod, state.kubelet) for pod in counted)), state)


def _pod_tree(pod: Pod, value: int, share: Fraction, system_share: Fraction, state: State) -> PodTree:
    written = {each.name: _by_runtime(pod, each, state) for each in pod.containers}
    total = sum(written[each.name] or 0 for each in pod.containers if each.competes)
    containers = {}
    for each in [each for each in pod.containers if each.shown]:
        own, quota = written[each.name], _container_quota(pod, each, state)
        in_pod = Fraction(own, total) if own is not None and each.competes else None
        part = None if in_pod is None else in_pod * share
        against = None if part is None else part / system_share
        containers[each.name] = Cgroup(state.cgroup, own, quota, in_pod, part, against)
    quota = _pod_quota(pod, state)
    return PodTree(Cgroup(state.cgroup, value, quota, None, share, share / system_share), containers)


def _by_runtime(pod: Pod, container: Container, state: State) -> int | None:
    """A container's value, which no kubelet writes."""
    runtime, of_shares = state.runtimes[pod.handler], container_shares(pod, container, state.kubelet)
    if runtime.formula == "none":
        return None
    annotated = annotated_shares(pod.annotations, container.name) if state.platform.crio else None
    of_shares = annotated or of_shares
    if state.cgroup == "v1":
        return of_shares
    # crun writes what an annotation asks for into the cgroup below its scope, where it makes one.
    below = state.platform.inner and state.driver == "systemd" and runtime.program in ("crun", "")
    asked = annotated_weight(pod.annotations, container.name) if state.platform.crio and not below else None
    return asked or FORMULAS[runtime.formula](of_shares)


def _container_quota(pod: Pod, container: Container, state: State) -> int | None:
    if _quota_is_off(pod, container, state):
        return None
    told = container_quota(pod, container, state.kubelet)
    runtime = state.runtimes[pod.handler]
    # Where crun makes no cgroup below its scope, the raw value comes last there.
    driver = "" if runtime.program == "crun" and not state.platform.inner else state.driver
    return runtime.quota(told, state.cgroup, driver)


def _pod_quota(pod: Pod, state: State) -> int | None:
    """A pod's quota, which CRI-O takes away with that of any container."""
    if any(_quota_is_off(pod, each, state) for each in pod.containers):
        return None
    found = pod_quota(pod, state.kubelet, state.driver)
    return rounded_up(found) if state.platform.rounds_pod_quota and state.driver == "systemd" else found


def _quota_is_off(pod: Pod, container: Container, state: State) -> bool:
    """Of Guaranteed pods with a RuntimeClass, for containers that ask for whole CPUs."""
    whole = container_shares(pod, container, state.kubelet) % 1024 == 0
    asked = state.platform.crio and quota_is_off(pod.annotations, container.name)
    return asked and pod.qos == "Guaranteed" and pod.of_class and whole
