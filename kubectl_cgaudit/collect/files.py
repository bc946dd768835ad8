"""Read files that `kubectl get nodes,pods -A -o json` (or yaml) printed, or one snapshot; gzip or not."""

from pathlib import Path

import msgspec

from kubectl_cgaudit.collect import json_objects, kubectl_list, part, snapshot, wire, yaml_objects
from kubectl_cgaudit.collect.advice import COMMAND, SAVE, is_list
from kubectl_cgaudit.collect.assemble import Assembly
from kubectl_cgaudit.collect.input import DAMAGED, can_be_reread, name_of, opened, read_bytes
from kubectl_cgaudit.collect.model import Cluster, Gap
from kubectl_cgaudit.collect.progress import STEP, Progress, silent
from kubectl_cgaudit.collect.reduce import Selects
from kubectl_cgaudit.errors import InputError

_MIB = 20
_OF_EVERY_CLUSTER = "kube-system"
_KUBECTL_PAGE = 500
"""kubectl's --chunk-size."""


def read(
    paths: tuple[str, ...],
    selects: Selects,
    filter_text: str,
    progress: Progress = silent,
    *,
    measured: bool = True,
) -> Cluster:
    """Read all files together, or one snapshot; `measured` keeps what kubelets' answers are compared with.

    Raises InputError when one cannot be read, or none holds a Node.
    """
    odd: set[str] = set()
    held: dict[str, bytes] = {}
    while True:
        assembly = Assembly(selects, filter_text, measured=measured)
        found: set[str] = set()
        for path in paths:
            try:
                if path not in odd and _add_in_parts(path, assembly, progress):
                    continue
            except kubectl_list.OtherLayoutError:
                # What is wrong with it, if anything is, is said by who reads all of it.
                found.add(path)
            if found:
                continue
            data = held.get(path) or read_bytes(path, SAVE)
            if snapshot.is_snapshot(data):
                snapshot.alone(paths, path)
                return snapshot.decode(data, path, selects, filter_text, measured=measured)
            _add(data, path, assembly, progress)
            if not can_be_reread(path):
                held[path] = data
        if not found:
            return _whole(assembly, paths)
        odd |= found


def _add_in_parts(path: str, assembly: Assembly, progress: Progress) -> bool:
    """Whether the file is laid out as kubectl does it, and so need not be held as a whole.

    Raises OtherLayoutError where it only seemed so: the assembly is of no use then.
    """
    bad = assembly.bad
    with opened(path) as file:
        try:
            if file is None or file.read(len(kubectl_list.BEGINNING)) != kubectl_list.BEGINNING:
                return False
            file.rewind()
            size = file.size
            for number, each in enumerate(kubectl_list.objects(file)):
                if number % STEP == 0:
                    progress(f"{name_of(path)}: MiB", file.taken >> _MIB, None if size is None else size >> _MIB)
                kind = json_objects.kind_of(each)
                if not kind or is_list(kind):
                    raise kubectl_list.OtherLayoutError
                assembly.add(kind, each, json_objects.decode, name_of(path))
        except (*DAMAGED, *wire.UNDECODABLE):
            raise kubectl_list.OtherLayoutError from None
    if assembly.bad > bad:
        raise kubectl_list.OtherLayoutError
    return True


def of_bytes(data: bytes, path: str, progress: Progress = silent) -> Cluster:
    """All of what `path` held, a snapshot or objects. Raises InputError as `read` does."""
    if snapshot.is_snapshot(data):
        return snapshot.decode(data, path, _all, "")
    assembly = Assembly(_all, "")
    _add(data, path, assembly, progress)
    return _whole(assembly, (path,))


def _all(_namespace: str, _labels: dict[str, str]) -> bool:
    return True


def _add(data: bytes, path: str, assembly: Assembly, progress: Progress) -> None:
    if data.lstrip()[:1] in (b"{", b"["):
        json_objects.add(data, name_of(path), assembly, progress)
    else:
        yaml_objects.add(data, name_of(path), assembly)


def _whole(assembly: Assembly, paths: tuple[str, ...]) -> Cluster:
    why = "read more than once, and not alike: the first was taken"
    assembly.name_unlike(why, "Give each object once: leave the older file out, and audit each cluster by itself")
    assembly.gaps += part.gaps(assembly.parts)
    cluster = assembly.cluster(", ".join("standard input" if path == "-" else Path(path).name for path in paths))
    if not cluster.nodes:
        listed = ", ".join(map(name_of, paths))
        raise InputError(f"no Node in {listed}, so nothing can be predicted; {SAVE}")
    return _with_doubts(cluster)


def _with_doubts(cluster: Cluster) -> Cluster:
    gaps, notes = list(cluster.reading.gaps), list(cluster.reading.notes)
    amount = len(cluster.pods)
    spaces = {pod.namespace for pod in cluster.pods}
    if not amount:
        gaps.append(Gap("pods", "there is no Pod in the input", f"Save it with: {COMMAND}"))
    elif amount % _KUBECTL_PAGE == 0:
        # Where a list breaks off kubectl prints the pages it has, and nothing in them says so.
        notes.append(
            f"Exactly {amount} pods were read, and kubectl lists {_KUBECTL_PAGE} at a time: if it ended with an error, "
            "the rest is missing. See its exit code, or have kubectl cgaudit snapshot read the cluster"
        )
    if len(spaces) == 1 and _OF_EVERY_CLUSTER not in spaces:
        (space,) = spaces
        notes.append(
            f"All pods are of namespace {space}: if others were left out, these get less CPU than is shown, for all of a node "
            f"share it. Save them with -A: {COMMAND}"
        )
    reading = msgspec.structs.replace(cluster.reading, gaps=tuple(sorted(gaps)), notes=tuple(notes))
    return msgspec.structs.replace(cluster, reading=reading)
