"""A saved cluster: the reduced model as versioned JSON, for an audit later, elsewhere or again.

The fields of the parts are those of `collect/model.py`, a pod's in one object. Within a major version fields are only added.
"""

import gzip
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from kubectl_cgaudit import __version__
from kubectl_cgaudit.collect import wire
from kubectl_cgaudit.collect.input import name_of
from kubectl_cgaudit.collect.model import Alike, Cluster, Container, KubeletAnswers, Node, Owner, Pod, Qos, Reading
from kubectl_cgaudit.collect.quantity import LARGEST_MILLI
from kubectl_cgaudit.collect.reduce import Selects
from kubectl_cgaudit.errors import InputError, UsageError
from kubectl_cgaudit.same import Same

SCHEMA_VERSION = "1.0"
REMEDY = "save one with: kubectl cgaudit snapshot -o FILE.json.gz"
_BEGINNING = re.compile(rb'\s*\{\s*"kind"\s*:\s*"CgauditSnapshot"')


class _Owned(Struct, frozen=True):
    """A ReplicaSet or Job and what controls it."""

    namespace: str
    name: str
    controller: Owner | None


class _Pod(Struct, frozen=True, gc=False):
    """A pod and what it has in common with others, in one object."""

    namespace: str
    name: str
    uid: str
    node: str | None
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
    annotations: tuple[tuple[str, str], ...] = ()
    annotations_left_out: int = 0


class _Saved(Struct, frozen=True):
    """A Cluster whose tables have names that JSON can hold."""

    nodes: tuple[Node, ...]
    pods: tuple[_Pod, ...]
    replicasets: tuple[_Owned, ...] | None
    jobs: tuple[_Owned, ...] | None
    runtime_classes: dict[str, str] | None
    cgroup_v1_warnings: dict[str, str] | None
    kubelets: dict[str, KubeletAnswers] | None
    reading: Reading


class _Document(Struct, frozen=True, rename="camel"):
    kind: Literal["CgauditSnapshot"]
    schema_version: str
    tool_version: str
    cluster: _Saved


class _Version(Struct, rename="camel"):
    schema_version: str | None = None


class _NoLabels(dict[str, str]):
    """The labels of a pod, which a snapshot does not keep: a selector that asks for one is refused."""

    def get(self, key: str, default: object = None) -> Any:  # noqa: ARG002 - dict's own signature
        raise _no_labels()

    def __contains__(self, key: object) -> bool:
        raise _no_labels()


def _no_labels() -> UsageError:
    return UsageError(
        "-l asks for labels of pods, and a snapshot keeps none; leave -l out, or choose a namespace with -n"
    )


def encode(cluster: Cluster) -> bytes:
    """The snapshot as JSON; equal clusters give the same bytes.

    Where kubelets listen is left out: only a live cluster can be asked.
    """
    owners = {(pod.namespace, pod.controller) for pod in cluster.pods}
    saved = _Saved(
        nodes=tuple(replace(node, address=None, kubelet_port=0) for node in cluster.nodes),
        pods=tuple(_saved(pod) for pod in cluster.pods),
        replicasets=_listed(cluster.replicasets, "ReplicaSet", owners),
        jobs=_listed(cluster.jobs, "Job", owners),
        runtime_classes=cluster.runtime_classes,
        cgroup_v1_warnings=cluster.cgroup_v1_warnings,
        kubelets=cluster.kubelets,
        reading=replace(cluster.reading, filter=""),
    )
    document = _Document("CgauditSnapshot", SCHEMA_VERSION, __version__, saved)
    # The tables have the order in which the lists came.
    return msgspec.json.encode(document, order="deterministic") + b"\n"


def pack(data: bytes) -> bytes:
    """The bytes in gzip, without a time or a name in it."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as file:
        file.write(data)
    return packed.getvalue()


def is_snapshot(data: bytes) -> bool:
    """Whether (unpacked) bytes begin as a snapshot does."""
    return bool(_BEGINNING.match(data))


def decode(data: bytes, path: str, selects: Selects, filter_text: str, *, measured: bool = True) -> Cluster:
    """The cluster in `data`, which `path` held; without `measured` what only a kubelet's answers are compared with is left out,
    unless there are some. Then replicas are alike. Raises InputError where it is damaged or of another major version, and
    UsageError when `selects` asks for the labels of a pod.
    """
    source = name_of(path)
    try:
        version = msgspec.json.decode(data, type=_Version).schema_version
        if version is None or version.split(".")[0] != SCHEMA_VERSION.split(".")[0]:
            raise InputError(
                f"{source} is a snapshot of version {version}, and this cgaudit reads {SCHEMA_VERSION}; "
                "use the release that wrote it"
            )
        saved = msgspec.json.decode(data, type=_Document).cluster
    except wire.UNDECODABLE as error:
        raise InputError(f"{source} is a damaged snapshot: {error}; {REMEDY}") from None
    for problem in _problems(saved):
        raise InputError(f"{source} is a damaged snapshot: {problem}; {REMEDY}")
    labels, same = _NoLabels(), Same()
    name = source if path == "-" else Path(path).name
    measured = measured or bool(saved.kubelets)
    return Cluster(
        nodes=saved.nodes,
        pods=tuple(
            _pod(each, same, selected=selects(each.namespace, labels), measured=measured) for each in saved.pods
        ),
        replicasets=_table(saved.replicasets),
        jobs=_table(saved.jobs),
        runtime_classes=saved.runtime_classes,
        cgroup_v1_warnings=saved.cgroup_v1_warnings,
        kubelets=saved.kubelets,
        reading=replace(saved.reading, source=f"{name} (snapshot of {saved.reading.source})", filter=filter_text),
    )


def _saved(pod: Pod) -> _Pod:
    return _Pod(**{**asdict(pod.alike), "name": pod.name, "uid": pod.uid, "node": pod.node, "selected": True})


def _pod(saved: _Pod, same: Same, *, selected: bool, measured: bool) -> Pod:
    alike = {field: getattr(saved, field) for field in Alike.__struct_fields__} | {"selected": selected}
    if not measured:
        alike["containers"] = same(tuple([_unmeasured(each) for each in saved.containers]))
    return Pod(saved.name, saved.uid if measured else "", same(saved.node), same(Alike(**alike)))


def _unmeasured(container: Container) -> Container:
    if container.runtime_id is None and container.started is None:
        return container
    return replace(container, runtime_id=None, started=None)


def alone(paths: tuple[str, ...], snapshot: str) -> None:
    """Raises UsageError when there are other files beside a snapshot, which holds a whole cluster."""
    if len(paths) > 1:
        raise UsageError(f"-f {name_of(snapshot)} is a snapshot, which holds a whole cluster; give it alone")


def _listed(
    table: dict[tuple[str, str], Owner | None] | None, kind: str, owners: set[tuple[str, Owner | None]]
) -> tuple[_Owned, ...] | None:
    """Those that control a pod: Deployments leave many ReplicaSets behind that nobody asks for."""
    if table is None:
        return None
    return tuple(_Owned(*at, table[at]) for at in sorted(table) if (at[0], Owner(kind, at[1])) in owners)


def _table(listed: tuple[_Owned, ...] | None) -> dict[tuple[str, str], Owner | None] | None:
    return None if listed is None else {(each.namespace, each.name): each.controller for each in listed}


def _problems(saved: _Saved) -> Iterator[str]:
    """What no snapshot of this tool has, and no prediction expects."""
    nodes = [node.name for node in saved.nodes]
    if nodes != sorted(set(nodes)) or "" in nodes:
        yield "its nodes are not each there once, in order"
    pods = [(pod.namespace, pod.name) for pod in saved.pods]
    if pods != sorted(set(pods)) or any("" in pod for pod in pods):
        yield "its pods are not each there once, in order"
    parts: tuple[Node | _Pod | Container, ...] = (*saved.nodes, *saved.pods)
    for part in (*parts, *(each for pod in saved.pods for each in pod.containers)):
        for field in _not_amounts(asdict(part)):
            yield f"{field} of {part.name} is no amount"
    for name, answers in (saved.kubelets or {}).items():
        config = asdict(answers.config) if answers.config else {}
        quotas = {
            f"{path} {part}": own for path, both in (answers.quotas or {}).items() for part, own in enumerate(both)
        }
        if answers.node != name or any(map(_not_amounts, (config, answers.shares, quotas))):
            yield f"the kubelet answers of {name} are not what a kubelet says"


def _not_amounts(values: dict[str, Any]) -> list[str]:
    return [field for field, value in values.items() if type(value) is int and not 0 <= value <= LARGEST_MILLI]
