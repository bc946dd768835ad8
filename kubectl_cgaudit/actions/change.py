"""What somebody changes: of a node's setup after the move, or of what a workload's pods ask for. CPU in thousandths."""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.audit.cases import Case, NodeCases, PodsOnNode, is_lost
from kubectl_cgaudit.collect.model import Cluster, Container, Pod, Qos
from kubectl_cgaudit.collect.owners import workload
from kubectl_cgaudit.detect.state import SYSTEM_SLICE, CgroupVersion, Setup
from kubectl_cgaudit.detect.target import Scenario, after


class NodeChange(Struct, frozen=True):
    """What is otherwise on a node after the move."""

    system_slice: int | None = None
    """Value of system.slice, in the unit of `version`. A value that a kubelet's reserve writes is left as it is."""
    version: CgroupVersion = "v2"
    reserve: bool = False
    """Whether a kubelet's enforced reserve writes that value, in place of systemd."""
    allocatable_milli: int | None = None
    target: Scenario | None = None
    """What the node goes to in addition."""


class WorkloadChange(Struct, frozen=True):
    """What the pods of a workload ask for after the move."""

    namespace: str
    kind: str
    name: str
    requests: tuple[tuple[str, int], ...] = ()
    """By container."""
    limits: tuple[tuple[str, int], ...] = ()
    pod_request: int | None = None
    """Of the pod itself."""
    pod_limit: int | None = None
    updated: tuple[str, ...] = ()
    """Containers whose program is updated to a release that reads cgroup v2 rightly."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Namespace, kind and name."""
        return self.namespace, self.kind, self.name

    @property
    def asks(self) -> bool:
        """Whether requests or limits change."""
        return bool(self.requests or self.limits or self.pod_request is not None or self.pod_limit is not None)


class Change(Struct, frozen=True):
    """Everything that is done together."""

    nodes: tuple[tuple[str, NodeChange], ...] = ()
    """By name of the node; one node may have several, which are made in order."""
    workloads: tuple[WorkloadChange, ...] = ()

    def of_nodes(self) -> dict[str, list[NodeChange]]:
        """Return the changes of each node."""
        found: dict[str, list[NodeChange]] = {}
        for name, change in self.nodes:
            found.setdefault(name, []).append(change)
        return found


def together(changes: Iterable[Change]) -> Change:
    """Return several changes as one."""
    given = list(changes)
    return Change(
        tuple(each for change in given for each in change.nodes),
        tuple(each for change in given for each in change.workloads),
    )


def changed_node(node: NodeCases, changes: Iterable[NodeChange]) -> NodeCases:
    """Return the node with other setups after the move. Raises UsageError when a rule of a file does not fit it."""
    for change in changes:
        settled = node.state.settled_cgroup is not None
        cases = [_changed_case(node, case, change, version_known=settled) for case in node.cases]
        node = replace(node, cases=tuple(cases))
    return node


def _changed_case(node: NodeCases, case: Case, change: NodeChange, *, version_known: bool) -> Case:
    then = case.after
    if change.target is not None:
        known = version_known or case.before.cgroup != then.cgroup
        then = after(change.target, node.node, then, version_known=known)
    if change.system_slice is not None and then.cgroup == change.version:
        then = _valued(then, change.system_slice, reserve=change.reserve)
    return replace(case, after=then, lost=is_lost(case.before, then))


def _valued(setup: Setup, value: int, *, reserve: bool) -> Setup:
    if reserve:
        enforced = tuple(sorted({*setup.enforced, SYSTEM_SLICE}))
        return replace(setup, system_slice=value, enforced=enforced)
    # A kubelet that enforces a reserve writes its own value again at every start.
    return setup if SYSTEM_SLICE in setup.enforced else replace(setup, system_slice=value)


def changed_pods(node: PodsOnNode, change: Change, cluster: Cluster) -> PodsOnNode:
    """Return the node's pods with the requests and limits that they have after the move."""
    of_workload: dict[tuple[str, str, str], list[WorkloadChange]] = {}
    for each in change.workloads:
        of_workload.setdefault(each.key, []).append(each)

    def changed(pod: Pod) -> Pod:
        own = workload(pod, cluster)
        for each in of_workload.get((pod.namespace, own.kind, own.name), ()):
            pod = changed_pod(pod, each)
        return pod

    return replace(node, placed=[(changed(pod), used) for pod, used in node.placed]) if of_workload else node


def changed_pod(pod: Pod, change: WorkloadChange) -> Pod:
    """Return the pod with other requests and limits."""
    requests, limits = dict(change.requests), dict(change.limits)
    alike = pod.alike
    own = alike.request_milli if change.pod_request is None else change.pod_request
    containers = tuple(_asking(each, requests, limits) for each in alike.containers)
    limit = alike.limit_milli if change.pod_limit is None else change.pod_limit
    asks = any(each.request_milli or each.limit_milli for each in containers) or own or limit
    qos: Qos = "Burstable" if alike.qos == "BestEffort" and asks else alike.qos
    return replace(
        pod,
        alike=replace(
            alike,
            qos=qos,
            request_milli=own,
            spec_request_milli=alike.spec_request_milli if change.pod_request is None else own,
            limit_milli=limit,
            containers=containers,
        ),
    )


def _asking(container: Container, requests: Mapping[str, int], limits: Mapping[str, int]) -> Container:
    name = container.name
    return replace(
        container,
        request_milli=requests.get(name, container.request_milli),
        spec_request_milli=requests.get(name, container.spec_request_milli),
        limit_milli=limits.get(name, container.limit_milli),
    )
