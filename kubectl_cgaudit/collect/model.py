"""What is kept of a cluster: the few numbers and names an audit needs. No env or secrets; of annotations, those of four keys."""

from typing import Literal

from msgspec import Struct

Qos = Literal["Guaranteed", "Burstable", "BestEffort"]
Role = Literal["app", "sidecar", "init", "ephemeral"]
COMPETING: tuple[Role, ...] = ("app", "sidecar")
"""The containers that share a pod's CPU: init containers run before them, and a debug container (`kubectl debug`) is not
there once its pod is created anew."""
Presence = Literal["running", "expected", "gone"]
NodeKind = Literal["linux", "windows", "virtual", "unusable"]
PARTITIONED, RESOURCES = "target.workload.openshift.io/", "resources.workload.openshift.io/"
UNIFIED, CPU_QUOTA = "unified-cgroup.crio.io/", "cpu-quota.crio.io"
ANNOTATIONS = (PARTITIONED, RESOURCES, UNIFIED, CPU_QUOTA)
"""The beginnings of the keys of a pod's annotations that are kept: those that decide weights and quotas (`cgroups/crio.py`)."""
LONGEST_ANNOTATION = 256
"""The most bytes of a value that is kept."""


class Container(Struct, frozen=True, gc=False):
    """A container of a pod. CPU in thousandths; None where the spec has no such key."""

    name: str
    role: Role
    request_milli: int | None
    """What is allocated, which its cgroup follows: the spec's, but for a resize that is not granted yet."""
    limit_milli: int | None
    presence: Presence
    """running: its cgroup exists; expected: it will (again) have one; gone: it has ended, or has not begun."""
    runtime_id: str | None
    """`containerd://<id>` of the running container."""
    image: str
    sees_cgroups: bool
    """Whether it mounts the host's /sys/fs/cgroup, or what that lies in."""
    started: str | None
    """When the running container was created, RFC 3339: these sort as text."""
    spec_request_milli: int | None
    """What the spec says, which the Burstable slice is summed from."""


class Owner(Struct, frozen=True, order=True, gc=False):
    """An object that controls pods."""

    kind: str
    name: str


class Alike(Struct, frozen=True, gc=False):
    """What the replicas of a workload have in common, held once for all of them. CPU in thousandths."""

    namespace: str
    qos: Qos
    finished: bool
    selected: bool
    runtime_class: str | None
    overhead_milli: int
    request_milli: int | None
    limit_milli: int | None
    containers: tuple[Container, ...]
    controller: Owner | None
    template_hash: str | None
    read_back_milli: int | None
    allocated_milli: int | None
    resizing: bool
    spec_request_milli: int | None
    """The pod-level request of the spec; `request_milli` is what is allocated."""
    annotations: tuple[tuple[str, str], ...] = ()
    """Those whose keys begin with one of ANNOTATIONS, by key."""
    annotations_left_out: int = 0
    """How many of these are longer than LONGEST_ANNOTATION."""


class Pod(Struct, frozen=True, gc=False):
    """A pod. CPU in thousandths; `request_milli` and `limit_milli` are the pod-level resources."""

    name: str
    uid: str
    """The uid in the pod's cgroup path: for a static pod the one its kubelet gave it."""
    node: str | None
    alike: Alike

    @property
    def namespace(self) -> str:
        """metadata.namespace."""
        return self.alike.namespace

    @property
    def qos(self) -> Qos:
        """status.qosClass."""
        return self.alike.qos

    @property
    def finished(self) -> bool:
        """Succeeded or Failed: the kubelet has removed its cgroups, and its request no longer counts."""
        return self.alike.finished

    @property
    def selected(self) -> bool:
        """Whether the user asked about this pod; the others are read because they are its siblings."""
        return self.alike.selected

    @property
    def runtime_class(self) -> str | None:
        """spec.runtimeClassName."""
        return self.alike.runtime_class

    @property
    def overhead_milli(self) -> int:
        """spec.overhead."""
        return self.alike.overhead_milli

    @property
    def request_milli(self) -> int | None:
        """spec.resources.requests, or what is allocated while a resize is not granted."""
        return self.alike.request_milli

    @property
    def spec_request_milli(self) -> int | None:
        """spec.resources.requests, also where another amount is allocated."""
        return self.alike.spec_request_milli

    @property
    def limit_milli(self) -> int | None:
        """spec.resources.limits."""
        return self.alike.limit_milli

    @property
    def containers(self) -> tuple[Container, ...]:
        """Its containers of all roles."""
        return self.alike.containers

    @property
    def present(self) -> tuple[Container, ...]:
        """Those that are not gone."""
        return tuple([container for container in self.alike.containers if container.presence != "gone"])

    @property
    def annotations(self) -> tuple[tuple[str, str], ...]:
        """Those that decide weights and quotas, by key."""
        return self.alike.annotations

    @property
    def controller(self) -> Owner | None:
        """The object that controls it."""
        return self.alike.controller

    @property
    def template_hash(self) -> str | None:
        """The label pod-template-hash."""
        return self.alike.template_hash

    @property
    def read_back_milli(self) -> int | None:
        """status.resources.requests.cpu: kubelets from 1.36 on read it back from the pod's cgroup."""
        return self.alike.read_back_milli

    @property
    def allocated_milli(self) -> int | None:
        """status.allocatedResources.cpu; None while the pod is being resized."""
        return self.alike.allocated_milli

    @property
    def resizing(self) -> bool:
        """Its requests and its cgroups may differ for a while."""
        return self.alike.resizing


class Handler(Struct, frozen=True):
    """A runtime handler as the node reports it."""

    name: str
    user_namespaces: bool | None


Standing = Literal["Ready", "not Ready", "being deleted"]
"""Whether a node is there to stay. One that says nothing of it, as a manifest, is."""


class Node(Struct, frozen=True):
    """A node. CPU in thousandths."""

    name: str
    kind: NodeKind
    labels: dict[str, str]
    capacity_milli: int
    allocatable_milli: int
    kubelet_version: str
    runtime_version: str
    os_image: str
    kernel: str
    handlers: tuple[Handler, ...]
    address: str | None
    """Where its kubelet listens: InternalIP, else Hostname."""
    kubelet_port: int
    ready_since: str | None
    """When its Ready condition last changed, RFC 3339; a restart of the machine changes it."""
    standing: Standing = "Ready"
    provider: str = ""
    """What stands before the first `:` of spec.providerID: `aws`, `gce`, `kind`. The rest names accounts and machines."""


class KubeletConfig(Struct, frozen=True):
    """What matters of a kubelet's /configz. CPU in thousandths; None where it is not said."""

    cgroup_driver: str | None
    cgroups_per_qos: bool
    enforce_node_allocatable: tuple[str, ...]
    system_reserved_cgroup: str | None
    kube_reserved_cgroup: str | None
    system_reserved_milli: int | None
    kube_reserved_milli: int | None
    cpu_cfs_quota: bool
    cpu_cfs_quota_period_us: int
    cpu_manager_policy: str | None
    reserves_whole_cpus: bool = False
    """Whether it names the CPUs that it reserves (reservedSystemCPUs): then it starts with no reserved cgroup."""


class KubeletAnswers(Struct, frozen=True):
    """What a node's kubelet answered. Empty or None where it did not, and `problems` says why."""

    node: str
    cgroup_version: Literal["v1", "v2"] | None
    """kubelet_cgroup_version of /metrics."""
    stats_from_spec: bool | None
    """kubelet_metrics_provider{provider="cri"} is 1: the shares come from the spec, and prove nothing. None if
    /metrics could not be read: then they may."""
    shares: dict[str, int]
    """container_spec_cpu_shares by cgroup path."""
    config: KubeletConfig | None
    problems: tuple[str, ...]
    pod_level: bool | None = None
    """Whether its feature gate PodLevelResources is on; None where /metrics does not say it."""
    quotas: dict[str, tuple[int, int]] | None = None
    """Quota and period in microseconds by cgroup path, of cgroups with a quota; None if it shows none at all."""

    @property
    def without_kubepods(self) -> bool:
        """Whether it said that it makes no kubepods tree (cgroupsPerQOS is false)."""
        return self.config is not None and not self.config.cgroups_per_qos


class Gap(Struct, frozen=True, order=True):
    """Something that was asked for and could not be read: it makes the audit incomplete."""

    what: str
    why: str
    remedy: str
    kind: str = ""
    """What is missing in one word for all runs, where `what` counts and names the first of several."""
    members: tuple[str, ...] = ()
    """All of them."""


class Reading(Struct, frozen=True):
    """What was read, and what could not be."""

    source: str
    gaps: tuple[Gap, ...]
    notes: tuple[str, ...]
    ignored: dict[str, int]
    """Objects of kinds that are not used, by kind."""
    duplicates: int
    """Objects that stood in the input more than once."""
    filter: str
    """What `-n` and `-l` selected, in words; empty for everything."""
    named: dict[str, str] = {}
    """The `name` and the `context` of a running cluster."""


class Cluster(Struct, frozen=True):
    """Everything that was collected. An absent table (None) could not be read."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    replicasets: dict[tuple[str, str], Owner | None] | None
    """The controller of each ReplicaSet, by namespace and name."""
    jobs: dict[tuple[str, str], Owner | None] | None
    runtime_classes: dict[str, str] | None
    """The handler of each RuntimeClass."""
    cgroup_v1_warnings: dict[str, str] | None
    """When a node's kubelet last warned of cgroup v1 (an Event, reason CgroupV1); None if no event was read."""
    kubelets: dict[str, KubeletAnswers] | None
    """What the kubelets answered; None if they were not asked."""
    reading: Reading


class Only(Struct, frozen=True):
    """What a view of single nodes needs of a cluster: the nodes of these names, and the one of this pod."""

    nodes: tuple[str, ...] = ()
    pod: tuple[str, str] | None = None
    """Namespace and name."""
