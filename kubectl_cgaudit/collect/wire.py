"""The parts of the API's objects that are decoded; everything else is skipped unread."""

from typing import Any, Generic, TypeVar

from msgspec import DecodeError, Raw, Struct, field

Quantity = str | int | float
UNDECODABLE = (DecodeError, UnicodeDecodeError, RecursionError)
"""What the decoder raises over bytes that are no JSON, no UTF-8, nested too deeply, or not of the type."""


class CpuAmount(Struct, gc=False):
    """A resource list, CPU only."""

    cpu: Quantity | None = None


class Resources(Struct, gc=False):
    """requests and limits."""

    requests: CpuAmount | None = None
    limits: CpuAmount | None = None


class OwnerReference(Struct, gc=False, rename="camel"):
    """An entry of metadata.ownerReferences."""

    kind: str = ""
    name: str = ""
    controller: bool | None = None
    api_version: str | None = None


class Metadata(Struct, rename="camel", gc=False):
    """metadata."""

    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    labels: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None


class PodMetadata(Metadata, rename="camel", gc=False):
    """metadata of a Pod."""

    annotations: dict[str, Any] | None = None
    """All of them, for as long as the pod is reduced: few keys are kept."""


class VolumeMount(Struct, gc=False):
    """spec.containers[].volumeMounts[]."""

    name: str = ""


class ContainerSpec(Struct, rename="camel", gc=False):
    """spec.containers[], spec.initContainers[]."""

    name: str = ""
    image: str | None = None
    volume_mounts: list[VolumeMount] | None = None
    resources: Resources | None = None
    restart_policy: str | None = None


class HostPath(Struct, gc=False):
    """spec.volumes[].hostPath."""

    path: str = ""


class Volume(Struct, rename="camel", gc=False):
    """spec.volumes[]; only what of the host is mounted counts."""

    name: str = ""
    host_path: HostPath | None = None


class PodSpec(Struct, rename="camel", gc=False):
    """spec of a Pod."""

    node_name: str | None = None
    runtime_class_name: str | None = None
    restart_policy: str | None = None
    overhead: CpuAmount | None = None
    resources: Resources | None = None
    init_containers: list[ContainerSpec] | None = None
    containers: list[ContainerSpec] | None = None
    ephemeral_containers: list[ContainerSpec] | None = None
    volumes: list[Volume] | None = None


class Terminated(Struct, rename="camel", gc=False):
    """state.terminated."""

    exit_code: int = 0


class Running(Struct, rename="camel", gc=False):
    """state.running."""

    started_at: str | None = None


class ContainerState(Struct, gc=False):
    """state of a container."""

    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Struct, rename="camel", gc=False):
    """status.containerStatuses[] and its kin."""

    name: str = ""
    container_id: str | None = field(default=None, name="containerID")
    state: ContainerState | None = None
    allocated_resources: CpuAmount | None = None
    resources: Resources | None = None


class Condition(Struct, rename="camel", gc=False):
    """status.conditions[] of a Node."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class PodCondition(Struct, gc=False):
    """status.conditions[] of a Pod."""

    type: str = ""
    status: str = ""


class PodStatus(Struct, rename="camel", gc=False):
    """status of a Pod."""

    phase: str | None = None
    qos_class: str | None = None
    resize: str | None = None
    conditions: list[PodCondition] | None = None
    resources: Resources | None = None
    allocated_resources: CpuAmount | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    container_statuses: list[ContainerStatus] | None = None
    ephemeral_container_statuses: list[ContainerStatus] | None = None


class Pod(Struct, gc=False):
    """v1 Pod."""

    metadata: PodMetadata = field(default_factory=PodMetadata)
    spec: PodSpec | None = None
    status: PodStatus | None = None


class NodeInfo(Struct, rename="camel", gc=False):
    """status.nodeInfo."""

    kubelet_version: str = ""
    container_runtime_version: str = ""
    os_image: str = ""
    kernel_version: str = ""
    operating_system: str = ""


class HandlerFeatures(Struct, rename="camel", gc=False):
    """status.runtimeHandlers[].features."""

    user_namespaces: bool | None = None


class RuntimeHandler(Struct, gc=False):
    """status.runtimeHandlers[]."""

    name: str = ""
    features: HandlerFeatures | None = None


class Address(Struct, gc=False):
    """status.addresses[]."""

    type: str = ""
    address: str = ""


class Endpoint(Struct, gc=False):
    """status.daemonEndpoints.kubeletEndpoint."""

    port: int = field(default=0, name="Port")


class DaemonEndpoints(Struct, rename="camel", gc=False):
    """status.daemonEndpoints."""

    kubelet_endpoint: Endpoint | None = None


class NodeStatus(Struct, rename="camel", gc=False):
    """status of a Node."""

    addresses: list[Address] | None = None
    conditions: list[Condition] | None = None
    daemon_endpoints: DaemonEndpoints | None = None
    capacity: CpuAmount | None = None
    allocatable: CpuAmount | None = None
    node_info: NodeInfo | None = None
    runtime_handlers: list[RuntimeHandler] | None = None


class NodeMetadata(Metadata, rename="camel", gc=False):
    """metadata of a Node."""

    deletion_timestamp: str | None = None


class NodeSpec(Struct, gc=False):
    """spec of a Node."""

    provider_id: str = field(default="", name="providerID")


class Node(Struct, gc=False):
    """v1 Node."""

    metadata: NodeMetadata = field(default_factory=NodeMetadata)
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class Owned(Struct, gc=False):
    """A ReplicaSet or a Job, of which only the owner is of interest."""

    metadata: Metadata = field(default_factory=Metadata)


class RuntimeClass(Struct, gc=False):
    """node.k8s.io/v1 RuntimeClass."""

    metadata: Metadata = field(default_factory=Metadata)
    handler: str = ""


class EventObject(Struct, gc=False):
    """involvedObject (v1) or regarding (events.k8s.io/v1) of an Event."""

    kind: str = ""
    name: str = ""


class Event(Struct, rename="camel", gc=False):
    """An Event, in either API."""

    reason: str | None = None
    event_time: str | None = None
    last_timestamp: str | None = None
    involved_object: EventObject | None = None
    regarding: EventObject | None = None


class ListMetadata(Struct, rename="camel", gc=False):
    """metadata of a list."""

    continue_: str | None = field(default=None, name="continue")
    remaining_item_count: int | None = None
    resource_version: str | None = None


T = TypeVar("T")


class PageOf(Struct, Generic[T], gc=False):
    """A page of a list, with items of a type."""

    kind: str = ""
    items: list[T] | None = None
    metadata: ListMetadata | None = None


Page = PageOf[Raw]
"""A page whose items are not decoded yet."""


class Status(Struct, gc=False):
    """v1 Status: what the API server answers when it refuses."""

    message: str = ""
    metadata: ListMetadata | None = None
