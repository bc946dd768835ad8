"""Read a running cluster through its API server, page by page."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from kubectl_cgaudit.collect import kubelet, wire
from kubectl_cgaudit.collect.assemble import Assembly, pods_by_node, with_answers
from kubectl_cgaudit.collect.kubeconfig import Connection as Connection
from kubectl_cgaudit.collect.model import Cluster, Gap, KubeletAnswers
from kubectl_cgaudit.collect.reduce import Selects
from kubectl_cgaudit.collect.transport import Answer, Api, RequestError
from kubectl_cgaudit.errors import CgauditError, ClusterError

PAGE_SIZE = 500
_RENEWALS = 3
Progress = Callable[[str], None]


class Resource(Struct, frozen=True):
    """Something to list. `instead` says what is done without it."""

    kind: str
    path: str
    instead: str = ""
    query: str = ""

    @property
    def plural(self) -> str:
        """The word for its objects in messages."""
        return f"{self.kind}es" if self.kind.endswith("s") else f"{self.kind}s"


class Listed(Struct):
    """How reading a list went: how many objects came, and what went wrong."""

    count: int = 0
    renewed: bool = False
    failure: RequestError | None = None


NODES = Resource("Node", "/api/v1/nodes")
PODS = Resource("Pod", "/api/v1/pods")
OPTIONAL = (
    Resource("RuntimeClass", "/apis/node.k8s.io/v1/runtimeclasses", "each is taken by its name as the handler"),
    Resource("ReplicaSet", "/apis/apps/v1/replicasets", "Deployments are named from the pod-template-hash"),
    Resource("Job", "/apis/batch/v1/jobs", "CronJobs are named from the Job's name"),
    Resource(
        "Event",
        "/api/v1/events",
        "a CgroupV1 warning would name nodes on cgroup v1",
        "&fieldSelector=reason%3DCgroupV1",
    ),
)


class Kubelets(Struct, frozen=True):
    """How to ask the kubelets: through the API server, or each at its own port."""

    direct: bool
    insecure: bool
    """Do not verify the kubelets' certificates (direct only)."""
    seconds: float | None
    """How long one answer may take; None for the default."""


def read(
    connection: Connection,
    namespace: str | None,
    selects: Selects,
    filter_text: str,
    progress: Progress,
    kubelets: Kubelets | None = None,
) -> Cluster:
    """Read nodes, all pods, their owners, and the kubelets if asked. Raises ClusterError when there is nothing to go on."""
    assembly = Assembly(selects, filter_text)
    with Api(connection) as api:
        if api.unverified:
            assembly.notes.append("TLS verification is off, as the kubeconfig says")
        read_nodes(api, assembly, progress)
        read_pods(api, namespace, assembly, progress)
        for resource in OPTIONAL:
            read_optional(api, resource, assembly, progress)
        cluster = assembly.cluster(api.source)
        return cluster if kubelets is None else with_answers(cluster, _ask(api, cluster, kubelets, progress))


def _ask(api: Api, cluster: Cluster, kubelets: Kubelets, progress: Progress) -> dict[str, KubeletAnswers]:
    nodes = [node for node in cluster.nodes if node.kind == "linux"]
    seconds = kubelets.seconds or kubelet.SECONDS
    if not kubelets.direct:
        names = [node.name for node in nodes]
        return kubelet.from_proxy(api, names, pods_by_node(cluster), progress, seconds=seconds)
    addresses = {node.name: (node.address or node.name, node.kubelet_port) for node in nodes}
    pods = pods_by_node(cluster)
    return kubelet.from_kubelets(api, addresses, pods, progress, insecure=kubelets.insecure, seconds=seconds)


def read_nodes(api: Api, assembly: Assembly, progress: Progress, page_size: int = PAGE_SIZE) -> None:
    """Read the nodes, without which there is no audit."""
    listed = list_all(api, NODES, assembly, progress, page_size)
    if listed.failure and listed.failure.status == 403:
        raise ClusterError(
            f"the nodes may not be listed ({listed.failure.why}); "
            "ask for that permission, and check it with: kubectl auth can-i list nodes"
        )
    if listed.failure:
        raise listed.failure
    if not assembly.has_nodes:
        raise ClusterError(f"{api.host} has no nodes, so nothing can be predicted; check which cluster was asked")
    _note_renewal(listed, "nodes", assembly)


def read_pods(
    api: Api, namespace: str | None, assembly: Assembly, progress: Progress, page_size: int = PAGE_SIZE
) -> None:
    """Read the pods of all namespaces: a pod competes with its siblings from other namespaces too."""
    listed = list_all(api, PODS, assembly, progress, page_size)
    if namespace and _forbidden(listed):
        own = msgspec.structs.replace(PODS, path=f"/api/v1/namespaces/{quote(namespace, safe='')}/pods")
        listed = list_all(api, own, assembly, progress, page_size)
        if not _forbidden(listed):
            assembly.gaps.append(
                Gap(
                    "pods of the other namespaces",
                    "pods may not be listed cluster-wide (403)",
                    "ask for list on pods cluster-wide; until then effective shares are upper bounds, "
                    "because siblings are unseen",
                )
            )
    if _forbidden(listed):
        where = f"cluster-wide or in namespace {namespace}" if namespace else "cluster-wide"
        assembly.gaps.append(Gap("pods", f"pods may not be listed {where} (403)", "ask for list on pods cluster-wide"))
    elif listed.failure and listed.count:
        broke_off = f"the list broke off after {listed.count} pods ({listed.failure.why})"
        assembly.gaps.append(Gap("pods", broke_off, "run the audit again"))
    elif listed.failure:
        raise listed.failure
    _note_renewal(listed, "pods", assembly)


def read_optional(api: Api, resource: Resource, assembly: Assembly, progress: Progress) -> None:
    """Read a list the audit can do without."""
    try:
        failure = list_all(api, resource, assembly, progress).failure
    except CgauditError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever goes wrong with it, the audit does not need this list
        failure = RequestError(str(error), type(error).__name__)
    if failure is None:
        assembly.expect(resource.kind)
        return
    reasons = {403: "may not be listed (403)", 404: "are not served (404)"}
    reason = reasons.get(failure.status, f"could not be listed ({failure.why})")
    assembly.notes.append(f"{resource.plural} {reason}: {resource.instead}")


def list_all(
    api: Api, resource: Resource, assembly: Assembly, progress: Progress, page_size: int = PAGE_SIZE
) -> Listed:
    """Follow a list to its end, or to the first page that fails."""
    listed, token, renewals = Listed(), "", 0
    while True:
        path = f"{resource.path}?limit={page_size}{resource.query}" + (
            f"&continue={quote(token, safe='')}" if token else ""
        )
        try:
            answer = api.get(path)
            if answer.status == 410 and token and renewals < _RENEWALS:
                # Without a fresh token the list starts again; the assembly keeps what came twice only once.
                renewals += 1
                listed.renewed = True
                token = _fresh_token(answer)
                continue
            page = _page(api, path, resource, answer)
        except RequestError as failure:
            listed.failure = failure
            return listed
        for item in page.items or ():
            assembly.add(resource.kind, item, _decode, f"{api.host} {resource.path}")
        metadata = page.metadata or wire.ListMetadata()
        listed.count += len(page.items or ())
        _tell(resource, listed.count, metadata, progress)
        if metadata.continue_ == token:
            why = "the server repeats its continue token"
            listed.failure = RequestError(f"{api.host}: {resource.plural} cannot be listed, {why}; try again", why)
        if not metadata.continue_ or listed.failure:
            return listed
        token = metadata.continue_


def _page(api: Api, path: str, resource: Resource, answer: Answer) -> wire.Page:
    if answer.status != 200:
        raise api.refusal(path, answer)
    try:
        page = msgspec.json.decode(answer.body, type=wire.Page)
    except msgspec.DecodeError:
        page = wire.Page()
    if page.kind != f"{resource.kind}List":
        raise api.garbage(path, answer, f"list of {resource.plural}")
    return page


def _fresh_token(answer: Answer) -> str:
    try:
        metadata = msgspec.json.decode(answer.body, type=wire.Status).metadata
    except msgspec.DecodeError:
        return ""
    return (metadata.continue_ if metadata else None) or ""


def _forbidden(listed: Listed) -> bool:
    return bool(listed.failure and listed.failure.status == 403 and not listed.count)


def _note_renewal(listed: Listed, what: str, assembly: Assembly) -> None:
    if listed.renewed:
        why = "the list expired while it was read (410) and was continued from a newer state, so it mixes two moments"
        assembly.gaps.append(Gap(what, why, "run the audit again"))


def _tell(resource: Resource, count: int, metadata: wire.ListMetadata, progress: Progress) -> None:
    left = metadata.remaining_item_count
    progress(f"{resource.plural.lower()} {count}" + (f" of {count + left}" if left else ""))


def _decode(raw: Any, type_: type[Any]) -> Any:
    return msgspec.json.decode(raw, type=type_)
