"""Read what `kubectl get nodes,pods -A -o json` (or yaml) printed: Lists or single objects, gzip or not."""

import contextlib
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import yaml

from kubectl_cgaudit.collect import kubectl_list, snapshot, wire
from kubectl_cgaudit.collect.api_groups import is_read, qualified
from kubectl_cgaudit.collect.assemble import Assembly
from kubectl_cgaudit.collect.input import DAMAGED, can_be_reread, name_of, opened, read_bytes, size_of
from kubectl_cgaudit.collect.model import Cluster, Gap
from kubectl_cgaudit.collect.progress import Progress, silent
from kubectl_cgaudit.collect.reduce import Selects
from kubectl_cgaudit.errors import InputError

_COMMAND = "kubectl get nodes,pods -A -o json"
_SAVE = f"save it with: {_COMMAND}"
_DEEPEST = 100
_PROGRESS_STEP = 1000
_MIB = 20
_KUBECTL_PAGE = 500
"""kubectl's --chunk-size."""
_LEFT_AS_TEXT = tuple(f"tag:yaml.org,2002:{name}" for name in ("value", "merge", "timestamp"))
_SPACE = re.compile(rb"\s*")
_SAYS_ITS_KIND = re.compile(rb'\{\s*"apiVersion": "([a-z0-9./]+)",\s*"kind": "([A-Za-z]+)",')
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")


class _Object(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: Any = ""
    items: list[msgspec.Raw] | None = None


class _ItemKind(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: Any = ""


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
            data = held.get(path) or read_bytes(path, _SAVE)
            if snapshot.is_snapshot(data):
                snapshot.alone(paths, path)
                return snapshot.decode(data, path, selects, filter_text)
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
    file = opened(path)
    if file is None:
        return False
    bad = assembly.bad
    with file:
        try:
            if file.read(len(kubectl_list.BEGINNING)) != kubectl_list.BEGINNING:
                return False
            file.seek(0)
            size = size_of(file)
            for number, each in enumerate(kubectl_list.objects(file)):
                if number % _PROGRESS_STEP == 0:
                    progress(f"{name_of(path)}: MiB", file.tell() >> _MIB, None if size is None else size >> _MIB)
                assembly.add(_kind(each), each, _decode_json, name_of(path))
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
        _add_json(data, name_of(path), assembly, progress)
    else:
        _add_yaml(data, name_of(path), assembly)


def _whole(assembly: Assembly, paths: tuple[str, ...]) -> Cluster:
    cluster = assembly.cluster(", ".join("standard input" if path == "-" else Path(path).name for path in paths))
    if not cluster.nodes:
        raise InputError(f"no Node in {_listing(paths)}, so nothing can be predicted; {_SAVE}")
    return _with_doubts(cluster)


def _listing(paths: tuple[str, ...]) -> str:
    return ", ".join(map(name_of, paths))


def _with_doubts(cluster: Cluster) -> Cluster:
    gaps, notes = list(cluster.reading.gaps), list(cluster.reading.notes)
    amount = len(cluster.pods)
    if not amount:
        gaps.append(Gap("pods", "there is no Pod in the input", f"Save it with: {_COMMAND}"))
    elif amount % _KUBECTL_PAGE == 0:
        # Where a list breaks off kubectl prints the pages it has, and nothing in them says so.
        notes.append(
            f"Exactly {amount} pods were read, and kubectl lists {_KUBECTL_PAGE} at a time: if it ended with an error, "
            "the rest is missing. See its exit code, or have kubectl cgaudit snapshot read the cluster"
        )
    reading = msgspec.structs.replace(cluster.reading, gaps=tuple(sorted(gaps)), notes=tuple(notes))
    return msgspec.structs.replace(cluster, reading=reading)


def _documents(data: bytes, source: str) -> Iterator[tuple[memoryview, _Object]]:
    """The JSON documents of a file; several may follow one another, as `cat a.json b.json` writes them."""
    rest = memoryview(data)
    while not _SPACE.fullmatch(rest):
        document, rest = rest, rest[:0]
        try:
            whole = msgspec.json.decode(document, type=_Object)
        except msgspec.ValidationError:
            raise InputError(f"{source} holds no Kubernetes object; {_SAVE}") from None
        except (UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{source} is not valid JSON: {error}; {_SAVE}") from None
        except msgspec.DecodeError as error:
            first = _first_of(document, str(error))
            if first is None:
                raise InputError(f"{source} is not valid JSON: {error}; {_SAVE}") from None
            end, whole = first
            document, rest = document[:end], document[end:]
        yield document, whole


def _first_of(data: memoryview, error: str) -> tuple[int, _Object] | None:
    """The first document and where it ends, if all the decoder complains about is that another object follows."""
    found = _TRAILING.search(error)
    if not found:
        return None
    # Releases of the decoder count the byte from 0 or from 1.
    for place in (int(found[1]) - 1, int(found[1])):
        if bytes(data[place : place + 1]) == b"{":
            with contextlib.suppress(msgspec.DecodeError):
                return place, msgspec.json.decode(data[:place], type=_Object)
    return None


def _decode_json(raw: Any, type_: type[Any]) -> Any:
    return msgspec.json.decode(raw, type=type_)


def _add_json(data: bytes, source: str, assembly: Assembly, progress: Progress) -> None:
    for document, whole in _documents(data, source):
        if not whole.kind:
            raise InputError(f"{source} holds no Kubernetes object (there is no kind in it); {_SAVE}")
        if whole.items is None:
            assembly.add(qualified(whole.kind, whole.api_version), document, _decode_json, source)
            continue
        listed = qualified(whole.kind.removesuffix("List"), whole.api_version)
        for number, item in enumerate(whole.items):
            if number % _PROGRESS_STEP == 0:
                progress(f"objects of {source}", number, len(whole.items))
            assembly.add(_item_kind(item, listed), item, _decode_json, source)


def _item_kind(item: msgspec.Raw, listed: str) -> str:
    if listed:
        return listed
    try:
        return _kind(item)
    except wire.UNDECODABLE:
        return "(no kind)"


def _kind(item: msgspec.Raw | memoryview) -> str:
    """The kind of an object by itself: the first that stands at its beginning, where kubectl writes it.

    Raises one of UNDECODABLE, unless it is of a kind that is read: then whoever reads it finds that out.
    """
    said = _SAYS_ITS_KIND.match(item)
    if said:
        kind = qualified(said[2].decode(), said[1].decode())
        if is_read(kind):
            return kind
    own = msgspec.json.decode(item, type=_ItemKind)
    return qualified(own.kind, own.api_version) or "(no kind)"


def _decode_plain(raw: Any, type_: type[Any]) -> Any:
    return msgspec.convert(raw, type=type_)


def _add_yaml(data: bytes, source: str, assembly: Assembly) -> None:
    loader = _loader()
    try:
        _check_depth(data, loader, source)
        documents = [document for document in yaml.load_all(data, Loader=loader) if document is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise InputError(f"{source} is neither JSON nor YAML{where}; {_SAVE}") from None
    for document in documents:
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise InputError(f"{source} holds no Kubernetes object (there is no kind in it); {_SAVE}")
        _reject_anchors(document, source)
        items = document.get("items")
        listed = qualified(document["kind"].removesuffix("List"), document.get("apiVersion"))
        for item in items if isinstance(items, list) else [document]:
            kind = item.get("kind") if isinstance(item, dict) else None
            own = qualified(kind, item.get("apiVersion")) if isinstance(kind, str) else listed or "(no kind)"
            assembly.add(own, item, _decode_plain, source)


def _loader() -> Any:
    """PyYAML's, without what YAML 1.1 makes of texts that kubectl writes as they are: `=`, `<<`, `0000-00-00`, `0x_`."""

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
            first: [(tag, pattern) for tag, pattern in found if tag not in _LEFT_AS_TEXT]
            for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    for name in ("int", "float"):
        tag = f"tag:yaml.org,2002:{name}"
        Loader.add_constructor(tag, partial(_number_or_text, yaml.SafeLoader.yaml_constructors[tag]))
    return Loader


def _number_or_text(number: Callable[[Any, Any], Any], loader: Any, node: Any) -> Any:
    try:
        return number(loader, node)
    except ValueError:
        return loader.construct_scalar(node)


def _check_depth(data: bytes, loader: Any, source: str) -> None:
    """Refuse deep nesting before it is built, which recurses in C and can end the process."""
    depth = 0
    for event in yaml.parse(data, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise InputError(f"{source} is nested too deeply to be what kubectl prints; {_SAVE}")


def _reject_anchors(document: object, source: str) -> None:
    """Refuse objects that stand in several places: kubectl writes none, and a few lines of them can fill the memory."""
    seen: set[int] = set()
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if not isinstance(value, (dict, list)) or not value:
            continue
        if id(value) in seen:
            raise InputError(f"{source} uses YAML anchors, which kubectl never prints; {_SAVE}")
        seen.add(id(value))
        waiting.extend(value.values() if isinstance(value, dict) else value)
