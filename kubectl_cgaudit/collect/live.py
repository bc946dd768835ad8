"""Read a running cluster through its API server, page by page."""

from functools import partial
from queue import SimpleQueue
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from kubectl_cgaudit.collect import json_objects, kubelet, memory, wire
from kubectl_cgaudit.collect.assemble import Assembly, pods_by_node, with_answers
from kubectl_cgaudit.collect.http import Ahead, RequestError, UnreachableError, printable
from kubectl_cgaudit.collect.kubeconfig import Connection
from kubectl_cgaudit.collect.model import Cluster, Gap, KubeletAnswers, Only
from kubectl_cgaudit.collect.pages import PAGE_SIZE, Page, Resource, pages
from kubectl_cgaudit.collect.progress import Progress
from kubectl_cgaudit.collect.reduce import Selects
from kubectl_cgaudit.collect.transport import Api
from kubectl_cgaudit.errors import CgauditError, ClusterError, UsageError
from kubectl_cgaudit.text import counted, named

_UNAUTHORIZED, _FORBIDDEN = 401, 403
_NAMED = 20
_UNREAD_SPACE = "namespace whose pods were not read"
_AWAY = 2
"""So many namespaces may cost a whole timeout each, before the others are given up."""
_SHOWN = 100

NODES = Resource("Node", "/api/v1/nodes")
PODS = Resource("Pod", "/api/v1/pods")
NAMESPACES = Resource("Namespace", "/api/v1/namespaces")
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


class Listed(Struct):
    """How reading a list went: how many objects came, why they show two moments, if they do, and what went wrong."""

    count: int = 0
    withheld: int = 0
    """So many were announced and did not come."""
    mixed: str = ""
    failure: RequestError | None = None


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
    *,
    measured: bool = True,
    only: Only | None = None,
) -> Cluster:
    """Read nodes, all pods, their owners, and the kubelets if asked; `measured` keeps what their answers are compared with.

    With `only` these nodes and their pods alone are asked for. All is read where one of them is not there or may not be
    read: what is said then needs the others.
    Raises ClusterError when there is nothing to go on, UsageError when kubelets are to be asked as somebody else.
    """
    memory.share()
    with Api(connection) as api:
        if kubelets and kubelets.direct and api.impersonated:
            raise UsageError(
                f"the kubeconfig impersonates {printable(api.impersonated, _SHOWN)}, and kubelets know no impersonation; "
                "use --kubelet=proxy, or a user without as"
            )
        if kubelets and kubelets.direct and not api.encrypted:
            raise UsageError(
                "--kubelet=direct needs the credentials of the kubeconfig, and none are used as its server is http://; "
                "use --kubelet=proxy, or correct the server to https://"
            )
        kept = measured or kubelets is not None
        assembly = _read_only(api, only, Assembly(selects, filter_text, measured=kept), progress) if only else None
        if assembly is None:
            assembly = Assembly(selects, filter_text, measured=kept)
            read_nodes(api, assembly, progress)
            beside = _Beside(api, assembly)
            read_pods(api, namespace, assembly, progress)
            beside.finish(progress)
            del beside
        _note_connection(api, assembly)
        # Whoever may create a pod could end the audit with it, and who audits could not mend that.
        assembly.leave_out_bad({each.kind: each.instead for each in OPTIONAL})
        assembly.name_unlike("read more than once, and not alike: the first was taken", "Run the audit again")
        cluster = assembly.cluster(api.source, api.named)
        del assembly
        memory.give_back()
        return cluster if kubelets is None else with_answers(cluster, _ask(api, cluster, kubelets, progress))


def _note_connection(api: Api, assembly: Assembly) -> None:
    if api.unverified:
        assembly.notes.insert(0, "TLS verification is off, as the kubeconfig says")
    if not api.encrypted:
        assembly.notes.insert(
            0, "The connection to the API server is not encrypted (http://): no credentials were sent"
        )


def _read_only(api: Api, only: Only, assembly: Assembly, progress: Progress) -> Assembly | None:
    """Read some nodes and their pods; None where that does not tell all that is to be said of them."""
    # https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors
    names = list(only.nodes)
    if only.pod:
        space, name = only.pod
        own = msgspec.structs.replace(PODS, path=f"/api/v1/namespaces/{quote(space, safe='')}/pods")
        found = assembly.aside()
        _read_where(api, own, "metadata.name", name, found, progress)
        pods = found.cluster(api.source).pods
        if len(pods) != 1 or not pods[0].node:
            return None
        names.append(pods[0].node)
    for name in dict.fromkeys(names):
        for resource, field in ((NODES, "metadata.name"), (PODS, "spec.nodeName")):
            if not _read_where(api, resource, field, name, assembly, progress):
                return None
        if not assembly.has_node(name):
            return None
    for resource in OPTIONAL:
        # The owners of all pods would be read, to name those of a few.
        if resource.kind not in ("ReplicaSet", "Job"):
            read_optional(api, resource, assembly, progress)
    return assembly


def _read_where(api: Api, resource: Resource, field: str, value: str, assembly: Assembly, progress: Progress) -> bool:
    """Read the objects that have this value in a field; False where not all came."""
    query = f"&fieldSelector={quote(f'{field}={value}', safe='')}"
    listed = list_all(api, msgspec.structs.replace(resource, query=query), assembly, progress)
    return not (listed.failure or listed.withheld or listed.mixed or assembly.bad)


class _Beside:
    """The lists an audit can do without, read by a second request at a time while the pods come."""

    def __init__(self, api: Api, assembly: Assembly) -> None:
        self._whole = assembly
        # What goes wrong is told in the same order, whichever list is faster.
        self._own = assembly.aside()
        self._told: SimpleQueue[tuple[str, int, int | None] | None] = SimpleQueue()
        self._reading = Ahead(partial(self._read, api))

    def _read(self, api: Api) -> None:
        try:
            for resource in OPTIONAL:
                read_optional(api, resource, self._own, self._tell)
        finally:
            self._told.put(None)

    def _tell(self, what: str, done: int, total: int | None) -> None:
        self._told.put((what, done, total))

    def finish(self, progress: Progress) -> None:
        """Wait for the end, and say how far they are: until now that was said of the pods."""
        while told := self._told.get():
            progress(*told)
        self._reading.result()
        self._whole.join(self._own)


def _ask(api: Api, cluster: Cluster, kubelets: Kubelets, progress: Progress) -> dict[str, KubeletAnswers]:
    # Those that will hardly answer come last: what is waited for nothing has an end.
    nodes = sorted(
        (each for each in cluster.nodes if each.kind == "linux"), key=lambda each: each.standing == "not Ready"
    )
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
    if listed.failure and listed.failure.status == _FORBIDDEN:
        raise ClusterError(
            f"the nodes may not be listed ({listed.failure.why}); "
            "ask for that permission, and check it with: kubectl auth can-i list nodes; or ask who has it for a snapshot "
            "(kubectl cgaudit snapshot), which -f audits"
        )
    if listed.failure and not listed.count:
        raise listed.failure
    if listed.failure:
        broke_off = f"the list broke off after {counted(listed.count, 'node')} ({listed.failure.why})"
        assembly.gaps.append(Gap("nodes", broke_off, _again(listed.failure)))
    if assembly.bad and not assembly.has_nodes:
        raise ClusterError(f"no node can be read: {assembly.first_bad}; correct them, as nothing else can be predicted")
    if not assembly.has_nodes:
        raise ClusterError(f"{api.host} has no nodes, so nothing can be predicted; check which cluster was asked")
    _note_doubts(listed, "nodes", assembly)


def read_pods(
    api: Api, namespace: str | None, assembly: Assembly, progress: Progress, page_size: int = PAGE_SIZE
) -> None:
    """Read the pods of all namespaces: a pod competes with its siblings from other namespaces too."""
    listed = list_all(api, PODS, assembly, progress, page_size)
    if _forbidden(listed):
        _read_by_namespace(api, namespace, assembly, progress, page_size)
        return
    if listed.failure and not listed.count:
        raise listed.failure
    if not listed.count:
        assembly.gaps.append(Gap("pods", "the API server listed none", "Check which cluster was asked"))
    _note_end(listed, "pods", assembly)


def _read_by_namespace(api: Api, namespace: str | None, assembly: Assembly, progress: Progress, page_size: int) -> None:
    """Read the pods of the namespaces that may be read, and say of the others that they were not."""
    known = None if namespace else _namespaces(api, assembly, progress, page_size)
    candidates = known if known is not None else [namespace or api.namespace or "default"]
    read: list[str] = []
    unread: list[str] = []
    away: list[RequestError] = []
    for number, name in enumerate(candidates):
        if len(away) == _AWAY or (away and away[-1].status == _UNAUTHORIZED):
            _note_untried(candidates[number:], away[-1], assembly)
            break
        own = msgspec.structs.replace(PODS, path=f"/api/v1/namespaces/{quote(name, safe='')}/pods", namespace=name)
        listed = list_all(api, own, assembly, progress, page_size)
        if _forbidden(listed):
            unread.append(name)
            continue
        if listed.failure and _is_away(listed.failure):
            away.append(listed.failure)
        read.append(name)
        _note_end(listed, f"pods of namespace {name}", assembly)
    why = "pods may not be listed cluster-wide (403)"
    ask = "Ask for list on pods cluster-wide"
    if not read:
        where = f"cluster-wide or in namespace {named(unread, _NAMED)}" if unread else "cluster-wide"
        untried = namespace is None and known is None
        or_one = ", or give -n with a namespace whose pods you may list" if untried else ""
        assembly.gaps.append(Gap("pods", f"pods may not be listed {where} (403)", f"{ask}{or_one}"))
        return
    until = f"{ask}; until then effective shares are upper bounds, because siblings are unseen"
    if known is None:
        assembly.gaps.append(Gap("pods of the other namespaces", why, until))
    elif unread:
        what = f"pods of {counted(len(unread), 'namespace')}: {named(unread, _NAMED)}"
        assembly.gaps.append(Gap(what, f"{why}, nor in these", until, _UNREAD_SPACE, tuple(unread)))
    else:
        assembly.notes.append(f"{why}: they were read namespace by namespace, so not all at one moment")


def _is_away(failure: RequestError) -> bool:
    """Whether the next request will most likely fail as this one did, after as long a wait."""
    return failure.silent or failure.status == _UNAUTHORIZED or isinstance(failure, UnreachableError)


def _note_untried(names: list[str], failure: RequestError, assembly: Assembly) -> None:
    what = f"pods of {counted(len(names), 'namespace')}: {named(names, _NAMED)}"
    why = f"not asked for any more, as it went with those before ({failure.why})"
    assembly.gaps.append(Gap(what, why, _again(failure), _UNREAD_SPACE, tuple(names)))


def _namespaces(api: Api, assembly: Assembly, progress: Progress, page_size: int) -> list[str] | None:
    """The names of all namespaces; None if they may not be listed, or not all of them could be."""
    names: list[str] = []
    withheld, mixed = 0, ""
    try:
        for page in pages(api, NAMESPACES, page_size):
            names, withheld = ([], 0) if page.again else (names, withheld + page.withheld)
            mixed = page.mixed
            names += [msgspec.json.decode(raw, type=wire.Owned).metadata.name for raw in page.items]
            progress("namespaces", len(names), _total(len(names), page))
    except RequestError as failure:
        if failure.status == _FORBIDDEN:
            return None
        why = failure.why
    except wire.UNDECODABLE:
        why = "one of them is damaged"
    else:
        why = _withheld(withheld)
    if why:
        assembly.notes.append(f"Namespaces could not be listed ({why}): only one was tried")
        return None
    if mixed:
        assembly.gaps.append(Gap("namespaces", mixed, "Run the audit again"))
    return sorted({name for name in names if name})


def read_optional(api: Api, resource: Resource, assembly: Assembly, progress: Progress) -> None:
    """Read a list the audit can do without."""
    try:
        listed = list_all(api, resource, assembly, progress)
        failure = listed.failure or _short(listed, resource)
    except CgauditError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever goes wrong with it, the audit does not need this list
        failure = RequestError(str(error), type(error).__name__)
    if failure is None:
        assembly.expect(resource.kind)
        if listed.mixed:
            assembly.notes.append(f"{resource.plural} may not be all there ({listed.mixed}): {resource.instead}")
        return
    # Half a table would name some workloads by their owners and others not.
    assembly.forget(resource.kind)
    reasons = {_FORBIDDEN: "may not be listed (403)", 404: "are not served (404)"}
    reason = reasons.get(failure.status, f"could not be listed ({failure.why})")
    assembly.notes.append(f"{resource.plural} {reason}: {resource.instead}")


def _short(listed: Listed, resource: Resource) -> RequestError | None:
    why = _withheld(listed.withheld)
    return RequestError(f"{resource.plural} are not all there: {why}; try again", why) if why else None


def _withheld(count: int) -> str:
    return f"the server announced {count} more than it sent" if count else ""


def list_all(
    api: Api, resource: Resource, assembly: Assembly, progress: Progress, page_size: int = PAGE_SIZE
) -> Listed:
    """Follow a list to its end, or to the first page that fails for good."""
    listed = Listed()
    try:
        for page in pages(api, resource, page_size):
            if page.again:
                assembly.forget(resource.kind, resource.namespace)
                listed.count, listed.withheld, listed.mixed = 0, 0, ""
            listed.mixed = listed.mixed or page.mixed
            _take(page, resource.kind, assembly, f"{api.host} {resource.path}")
            listed.count += page.count
            listed.withheld += page.withheld
            progress(resource.plural.lower(), listed.count, _total(listed.count, page))
    except RequestError as failure:
        listed.failure = failure
    return listed


def _take(page: Page, kind: str, assembly: Assembly, source: str) -> None:
    # A function of its own: the last object in a loop's variable would hold the page's bytes while the next one comes.
    for item in page.items:
        assembly.add(kind, item, json_objects.decode if isinstance(item, msgspec.Raw) else _as_it_is, source)


def _as_it_is(item: Any, _type: type[Any]) -> Any:
    """An object that is decoded: it has the fields of the types that ask for less."""
    return item


def _total(count: int, page: Page) -> int | None:
    return count + page.left if page.left else None


def _forbidden(listed: Listed) -> bool:
    return bool(listed.failure and listed.failure.status == _FORBIDDEN and not listed.count)


def _note_end(listed: Listed, what: str, assembly: Assembly) -> None:
    if listed.failure:
        broke_off = f"the list broke off after {counted(listed.count, 'pod')} ({listed.failure.why})"
        assembly.gaps.append(Gap(what, broke_off, _again(listed.failure)))
    _note_doubts(listed, what, assembly)


def _again(failure: RequestError) -> str:
    return "Log in, and run the audit again" if failure.status == _UNAUTHORIZED else "Run the audit again"


def _note_doubts(listed: Listed, what: str, assembly: Assembly) -> None:
    if listed.withheld:
        why = f"{_withheld(listed.withheld)}: something between filters or loses them"
        assembly.gaps.append(Gap(what, why, "Run the audit again, past any proxy"))
    if listed.mixed:
        assembly.gaps.append(Gap(what, listed.mixed, "Run the audit again"))
