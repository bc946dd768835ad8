"""From an API object to the few numbers that are kept of it."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from kubectl_cgaudit.collect import wire
from kubectl_cgaudit.collect.api_groups import qualified
from kubectl_cgaudit.collect.model import (
    ANNOTATIONS,
    LONGEST_ANNOTATION,
    Alike,
    Container,
    Handler,
    Node,
    NodeKind,
    Owner,
    Pod,
    Presence,
    Qos,
    Role,
    Standing,
)
from kubectl_cgaudit.collect.quantity import milli
from kubectl_cgaudit.errors import InputError
from kubectl_cgaudit.same import Same

Selects = Callable[[str, dict[str, str]], bool]
_QOS: dict[str, Qos] = {"Guaranteed": "Guaranteed", "Burstable": "Burstable", "BestEffort": "BestEffort"}
_FINISHED = {"Succeeded", "Failed"}
_VIRTUAL_TYPES = {"virtual-kubelet", "kwok", "virtual-node"}
_KUBELET_PORT = 10250
# Oracle's has no scheme, but begins with this word.
_PROVIDER = re.compile(r"[a-z][a-z0-9-]{0,30}(?=://)|ocid1(?=\.)")
_CGROUP_ROOT = "/sys/fs/cgroup"
_RESIZES = {"PodResizePending", "PodResizeInProgress"}
_NOT_GRANTED = {"Proposed", "Deferred", "Infeasible"}
_FARGATE = "eks.amazonaws.com/compute-type"
_TYPE_LABELS = ("type", "liqo.io/type")
_MIRROR = "kubernetes.io/config.mirror"
"""The uid that a static pod has on its node."""
_LONGEST_KEY = 253 + 1 + 63
_NO_SPEC, _NO_STATUS, _UNSAID = wire.PodSpec(), wire.PodStatus(), wire.Resources()


def node(raw: wire.Node, same: Same) -> Node:
    """Reduce a Node. Raises InputError when its CPU is no quantity."""
    status = raw.status or wire.NodeStatus()
    info = status.node_info or wire.NodeInfo()
    labels = raw.metadata.labels or {}
    ready = next((each for each in status.conditions or () if each.type == "Ready"), None)
    capacity = _amount(status.capacity, "status.capacity.cpu")
    allocatable = _amount(status.allocatable, "status.allocatable.cpu")
    return Node(
        name=same(raw.metadata.name),
        kind=_node_kind(info, labels, allocatable if allocatable is not None else capacity),
        labels={same(label): same(value) for label, value in labels.items()},
        capacity_milli=capacity or allocatable or 0,
        allocatable_milli=allocatable if allocatable is not None else capacity or 0,
        kubelet_version=same(info.kubelet_version),
        runtime_version=same(info.container_runtime_version),
        os_image=same(info.os_image),
        kernel=same(info.kernel_version),
        handlers=same(
            tuple(
                Handler(handler.name, handler.features.user_namespaces if handler.features else None)
                for handler in status.runtime_handlers or ()
            )
        ),
        address=_address(status),
        kubelet_port=_kubelet_port(status),
        ready_since=ready.last_transition_time if ready else None,
        standing=_standing(raw.metadata, ready),
        provider=same(_provider(raw.spec.provider_id if raw.spec else "")),
    )


def _provider(provider_id: str) -> str:
    """Return the cloud or tool that made the node: `azure` of `azure:///subscriptions/...`; empty if it has no such form."""
    found = _PROVIDER.match(provider_id)
    return found[0] if found else ""


def _standing(metadata: wire.NodeMetadata, ready: wire.Condition | None) -> Standing:
    if metadata.deletion_timestamp:
        return "being deleted"
    # Unknown is what becomes of a node that no longer reports.
    return "not Ready" if ready and ready.status in ("False", "Unknown") else "Ready"


def _address(status: wire.NodeStatus) -> str | None:
    by_type = {entry.type: entry.address for entry in reversed(status.addresses or ())}
    return by_type.get("InternalIP") or by_type.get("Hostname") or None


def _kubelet_port(status: wire.NodeStatus) -> int:
    endpoint = status.daemon_endpoints.kubelet_endpoint if status.daemon_endpoints else None
    return endpoint.port if endpoint and endpoint.port else _KUBELET_PORT


def _node_kind(info: wire.NodeInfo, labels: dict[str, str], cpu: int | None) -> NodeKind:
    if labels.get(_FARGATE) == "fargate" or any(labels.get(label) in _VIRTUAL_TYPES for label in _TYPE_LABELS):
        return "virtual"
    if "virtual-kubelet" in info.kubelet_version:
        return "virtual"
    if "windows" in (info.operating_system.lower(), labels.get("kubernetes.io/os")):
        return "windows"
    return "unusable" if cpu is None else "linux"


def pod(raw: wire.Pod, selects: Selects, same: Same, *, measured: bool = True) -> Pod:
    """Reduce a Pod; `measured` keeps what only a kubelet's answers are compared with.

    Raises InputError when one of its CPU amounts is no quantity.
    """
    meta, spec, status = raw.metadata, raw.spec or _NO_SPEC, raw.status or _NO_STATUS
    if spec.containers is None and meta.name:
        raise InputError("spec.containers: it has none, and every Pod does")
    labels = meta.labels or {}
    namespace = meta.namespace or "default"
    resizing, pending = _resizes(status)
    containers = _containers(spec, status, pending=pending, measured=measured)
    request = limit = read_back = allocated = None
    if spec.resources:
        request = _amount(spec.resources.requests, "spec.resources.requests.cpu")
        limit = _amount(spec.resources.limits, "spec.resources.limits.cpu")
    actual = status.resources or _UNSAID
    if status.resources or status.allocated_resources:
        read_back = _amount(actual.requests, "status.resources.requests.cpu")
        allocated = _amount(status.allocated_resources, "status.allocatedResources.cpu")
    mark = _text(meta.annotations.get(_MIRROR)) if meta.annotations else None
    annotations = _annotations(meta.annotations) if meta.annotations else {}
    kept = {key: value for key, value in annotations.items() if value is not None} if annotations else {}
    overhead = (_amount(spec.overhead, "spec.overhead.cpu") or 0) if spec.overhead else 0
    asked = request
    if resizing and request is not None and allocated is not None:
        # As for a container: the pod's cgroup still carries what the kubelet has allocated, the overhead included.
        own = max(0, allocated - overhead)
        if pending or own != request:
            held = _amount(actual.limits, "status.resources.limits.cpu")
            limit = limit if actual.limits is None else held and max(0, held - overhead)
        request = own
    # Its parts are not looked up by themselves: most pods have equals, and of these the first is kept.
    alike = Alike(
        namespace=same(namespace),
        qos=_QOS.get(status.qos_class or "") or _computed_qos(containers, request, limit),
        finished=status.phase in _FINISHED,
        selected=selects(namespace, labels),
        runtime_class=spec.runtime_class_name or None,
        overhead_milli=overhead,
        request_milli=request,
        limit_milli=limit,
        containers=containers,
        controller=_controller(meta),
        template_hash=labels.get("pod-template-hash"),
        read_back_milli=read_back,
        allocated_milli=None if resizing else allocated,
        resizing=resizing,
        spec_request_milli=asked,
        annotations=tuple(sorted(kept.items())) if kept else (),
        annotations_left_out=len(annotations) - len(kept),
    )
    uid = (mark or meta.uid or "") if measured else ""
    return Pod(name=meta.name, uid=uid, node=same(spec.node_name or None), alike=same(alike))


def _annotations(annotations: Mapping[str, Any]) -> dict[str, str | None]:
    """Return those that decide weights and quotas, by key; None for the value of one that is too long to be kept."""
    found: dict[str, str | None] = {}
    for key, value in annotations.items():
        if key.startswith(ANNOTATIONS) and isinstance(value, str):
            fits = len(value.encode(errors="surrogatepass")) <= LONGEST_ANNOTATION and len(key) <= _LONGEST_KEY
            found[key] = value if fits else None
    return found


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _resizes(status: wire.PodStatus) -> tuple[bool, bool]:
    """Whether a pod is being resized, and whether the kubelet has not granted that; once it has, a resize is in progress only."""
    resizing, pending = bool(status.resize), status.resize in _NOT_GRANTED
    for each in status.conditions or ():
        if each.type in _RESIZES and each.status == "True":
            resizing = True
            pending = pending or each.type == "PodResizePending"
    return resizing, pending


def _controller(meta: wire.Metadata) -> Owner | None:
    """The object that controls this one."""
    for reference in meta.owner_references or ():
        if reference.controller:
            return Owner(qualified(reference.kind, reference.api_version), reference.name)
    return None


def _computed_qos(containers: tuple[Container, ...], request: int | None, limit: int | None) -> Qos:
    # Only for objects without a status; the API server looks at memory too, which is not kept.
    if request is None and limit is None and not any(c.request_milli or c.limit_milli for c in containers):
        return "BestEffort"
    own = [(c.request_milli, c.limit_milli) for c in containers if c.role != "ephemeral"]
    pairs = [(request, limit)] if limit else own
    return "Guaranteed" if all(most and least in (None, most) for least, most in pairs) else "Burstable"


def _containers(spec: wire.PodSpec, status: wire.PodStatus, *, pending: bool, measured: bool) -> tuple[Container, ...]:
    volumes = spec.volumes or ()
    views = [each.name for each in volumes if each.host_path and _shows_cgroups(each.host_path.path)]
    restarts = spec.restart_policy or "Always"
    found: list[Container] = []

    def add(group: Role, specs: list[wire.ContainerSpec], statuses: list[wire.ContainerStatus] | None) -> None:
        by_name = {entry.name: entry for entry in statuses or ()}
        for container in specs:
            role: Role = "sidecar" if group == "init" and container.restart_policy == "Always" else group
            sees = bool(views) and any(mount.name in views for mount in container.volume_mounts or ())
            own = by_name.get(container.name)
            # A container's own policy wins (KEP-5307).
            policy = container.restart_policy or restarts
            found.append(_container(container, role, own, policy, sees=sees, pending=pending, measured=measured))

    if spec.init_containers:
        add("init", spec.init_containers, status.init_container_statuses)
    if spec.containers:
        add("app", spec.containers, status.container_statuses)
    if spec.ephemeral_containers:
        add("ephemeral", spec.ephemeral_containers, status.ephemeral_container_statuses)
    return tuple(found)


def _shows_cgroups(host_path: str) -> bool:
    """Whether a folder of the host holds, or lies in, /sys/fs/cgroup."""
    path = host_path.rstrip("/")
    return path in ("", "/sys", "/sys/fs", _CGROUP_ROOT) or path.startswith(f"{_CGROUP_ROOT}/")


def _container(
    spec: wire.ContainerSpec,
    role: Role,
    status: wire.ContainerStatus | None,
    restarts: str,
    *,
    sees: bool,
    pending: bool,
    measured: bool,
) -> Container:
    request = limit = None
    if spec.resources:
        request = _amount(spec.resources.requests, "requests.cpu of container ", spec.name)
        limit = _amount(spec.resources.limits, "limits.cpu of container ", spec.name)
    asked = request
    if status and status.allocated_resources and request is not None:
        allocated = _amount(status.allocated_resources, "allocatedResources.cpu of container ", spec.name)
        if allocated != request and (pending or allocated is not None):
            # The cgroups still carry what the kubelet has allocated, which may be nothing.
            request, pending = allocated, True
    # Of limits no status says what is allocated: what is in force comes nearest.
    if pending and status and status.resources:
        limit = _amount(status.resources.limits, "status.resources.limits.cpu of container ", spec.name)
    state = status.state if status else None
    presence = _presence(role, state, restarts)
    return Container(
        name=spec.name,
        role=role,
        request_milli=request,
        limit_milli=limit,
        presence=presence,
        runtime_id=status.container_id or None if measured and status and presence == "running" else None,
        image=spec.image or "",
        sees_cgroups=sees,
        started=state.running.started_at if measured and state and state.running else None,
        spec_request_milli=asked,
    )


def _presence(role: Role, state: wire.ContainerState | None, restarts: str) -> Presence:
    if state and state.running is not None:
        return "running"
    if role in ("init", "ephemeral"):
        return "gone"
    if (
        role == "app"
        and state
        and state.terminated
        and (restarts == "Never" or (restarts == "OnFailure" and state.terminated.exit_code == 0))
    ):
        return "gone"
    return "expected"


def _amount(amounts: wire.CpuAmount | None, field: str, whose: str = "") -> int | None:
    if amounts is None or amounts.cpu is None:
        return None
    try:
        return milli(amounts.cpu)
    except InputError as error:
        raise InputError(f"{field}{whose}: {error}") from None


def warned_of_v1(event: wire.Event) -> tuple[str, str] | None:
    """The node whose kubelet found itself on cgroup v1 when it started, and when; None for any other event."""
    about = event.involved_object or event.regarding
    if event.reason != "CgroupV1" or about is None or about.kind != "Node":
        return None
    return about.name, event.last_timestamp or event.event_time or ""


def owner(raw: wire.Owned, same: Same) -> tuple[tuple[str, str], Owner | None]:
    """Namespace and name of an object, and what controls it."""
    meta = raw.metadata
    return (same(meta.namespace or "default"), meta.name), same(_controller(meta))
