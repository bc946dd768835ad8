"""Pods and nodes: what of the API's objects decides their cgroups.

Part of the reference model: written from the documents alone, to be obviously right and not fast. It must never
import from kubectl_cgaudit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tests.reference.amounts import milli

Raw = dict[str, Any]
"""An object, or a part of one, as the API shows it."""

PodKey = tuple[str, str]
"""Namespace and name."""

QosClass = Literal["Guaranteed", "Burstable", "BestEffort"]
QOS_CLASSES: tuple[QosClass, ...] = ("Guaranteed", "Burstable", "BestEffort")


@dataclass(frozen=True)
class Container:
    """A container with its CPU in thousandths, None where the key is missing. Its role is app, sidecar or init."""

    name: str
    role: str
    request: int | None
    limit: int | None
    running: bool
    spec_request: int | None
    """What the spec asks for, also while a resize waits."""

    @property
    def competes(self) -> bool:
        """Whether it wants CPU together with the others: init containers run before them."""
        return self.role != "init"

    @property
    def shown(self) -> bool:
        """Whether an audit shows it: an init container only while it runs."""
        return self.competes or self.running


@dataclass(frozen=True)
class Pod:
    """An active pod. `request` and `limit` are those of the pod as a whole, in spec.resources."""

    key: PodKey
    node: str
    qos: QosClass
    handler: str
    containers: tuple[Container, ...]
    request: int | None
    limit: int | None
    overhead: int
    workload: tuple[str, str, str]
    annotations: dict[str, str]
    of_class: bool
    """Whether it names a RuntimeClass."""


def active_pods(raws: list[Raw], handlers: Mapping[str, str]) -> list[Pod]:
    """The pods that have cgroups; `handlers` are those of the RuntimeClasses by name."""
    return [read_pod(raw, handlers) for raw in raws if raw["status"]["phase"] not in ("Succeeded", "Failed")]


def read_pod(raw: Raw, handlers: Mapping[str, str]) -> Pod:
    """A pod of the API."""
    meta, spec = raw["metadata"], raw["spec"]
    name = spec.get("runtimeClassName")
    return Pod(
        key=(meta["namespace"], meta["name"]),
        node=spec["nodeName"],
        qos=raw["status"]["qosClass"],
        handler=handlers[name] if name else "default",
        containers=tuple(read_containers(raw)),
        request=_cpu(spec, "requests"),
        limit=_cpu(spec, "limits"),
        overhead=milli(spec.get("overhead", {}).get("cpu", "0")),
        workload=_workload(meta),
        annotations=meta.get("annotations", {}),
        of_class=bool(name),
    )


def read_containers(raw: Raw) -> list[Container]:
    """The containers of a pod of the API, init containers in their order; debug containers ask for nothing."""
    spec, status = raw["spec"], raw["status"]
    found = []
    for members, statuses in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
        by_name = {each["name"]: each for each in status.get(statuses, ())}
        for each in spec.get(members, ()):
            said = by_name.get(each["name"], {})
            request, limit = _cpu(each, "requests"), _cpu(each, "limits")
            spec_request = request
            # docs/limits.md, "In-place resize": what the kubelet has allocated counts.
            if said and _waits_for_resize(status):
                request = _of(said.get("allocatedResources", {}), request)
                limit = _of(said.get("resources", {}).get("limits", {}), limit)
            always = each.get("restartPolicy") == "Always"
            role = "app" if members == "containers" else "sidecar" if always else "init"
            found.append(
                Container(each["name"], role, request, limit, "running" in said.get("state", {}), spec_request)
            )
    return found


def allocatable(node: Raw) -> int:
    """Thousandths of a CPU that a node has for pods."""
    return milli(node["status"]["allocatable"]["cpu"])


def _cpu(holder: Raw, kind: str) -> int | None:
    return _of(holder.get("resources", {}).get(kind, {}), None)


def _of(amounts: Mapping[str, str], otherwise: int | None) -> int | None:
    return milli(amounts["cpu"]) if "cpu" in amounts else otherwise


def _waits_for_resize(status: Raw) -> bool:
    # The condition from Kubernetes 1.33 on, the field before: KEP-1287.
    conditions = {each["type"] for each in status.get("conditions", ()) if each["status"] == "True"}
    return "PodResizePending" in conditions or status.get("resize") in ("Proposed", "Deferred", "Infeasible")


def _workload(meta: Raw) -> tuple[str, str, str]:
    """Kind, namespace and name of what controls a pod; a static pod is its own workload."""
    for owner in meta.get("ownerReferences", ()):
        if owner["kind"] != "Node":
            return owner["kind"], meta["namespace"], owner["name"]
    return "Pod", meta["namespace"], meta["name"]
