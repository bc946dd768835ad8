"""The objects in JSON, as Lists or one by one: `kubectl get -o json` and what an API server sends."""

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from kubectl_cgaudit.collect import part, wire
from kubectl_cgaudit.collect.advice import SAVE, is_list, no_item, no_object
from kubectl_cgaudit.collect.api_groups import is_read, qualified
from kubectl_cgaudit.collect.assemble import Assembly
from kubectl_cgaudit.collect.progress import STEP, Progress
from kubectl_cgaudit.errors import InputError

_SPACE = re.compile(rb"\s*")
_SAYS_ITS_KIND = re.compile(rb'\{\s*"apiVersion": "([a-z0-9./]+)",\s*"kind": "([A-Za-z]+)",')
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")


class _Object(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: Any = ""
    items: list[msgspec.Raw] | None = None
    metadata: msgspec.Raw = msgspec.Raw(b"null")
    schema_version: Any = None


class _ItemKind(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: Any = ""


def add(data: bytes, source: str, assembly: Assembly, progress: Progress) -> None:
    """Take in all objects of a file or standard input. Raises InputError where it holds none."""
    for document_number, (document, whole) in enumerate(_documents(data, source)):
        if not whole.kind:
            raise InputError(no_object(source, audit=whole.schema_version is not None))
        if whole.items is None:
            assembly.add(qualified(whole.kind, whole.api_version), document, decode, source)
            continue
        waiting = [("", whole, whole.items)]
        for path, outer, items in waiting:
            listed = qualified(outer.kind.removesuffix("List"), outer.api_version)
            assembly.parts.append(part.of(source, listed, _plain(outer.metadata), len(items)))
            for number, item in enumerate(items):
                if number % STEP == 0:
                    progress(f"objects of {source}", number, len(items))
                place = f"{path}items[{number}]"
                kind = _item_kind(item, listed)
                if not kind:
                    raise InputError(no_item(source, place, document_number))
                inner = _list_in(item) if is_list(kind) else None
                if inner and inner.items is not None:
                    waiting.append((f"{place}.", inner, inner.items))
                else:
                    assembly.add(kind, item, decode, source)


def _list_in(item: msgspec.Raw) -> _Object | None:
    try:
        return msgspec.json.decode(item, type=_Object)
    except msgspec.ValidationError:
        return None


def _documents(data: bytes, source: str) -> Iterator[tuple[memoryview, _Object]]:
    """The JSON documents of a file; several may follow one another, as `cat a.json b.json` writes them."""
    rest = memoryview(data)
    while not _SPACE.fullmatch(rest):
        document, rest = rest, rest[:0]
        try:
            whole = msgspec.json.decode(document, type=_Object)
        except msgspec.ValidationError:
            raise InputError(f"{source} holds no Kubernetes object; {SAVE}") from None
        except (UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{source} is not valid JSON: {error}; {SAVE}") from None
        except msgspec.DecodeError as error:
            first = _first_of(document, str(error))
            if first is None:
                raise InputError(f"{source} is not valid JSON: {error}; {SAVE}") from None
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


def decode(raw: Any, type_: type[Any]) -> Any:
    """An object of a type. Raises one of wire.UNDECODABLE."""
    return msgspec.json.decode(raw, type=type_)


def _plain(metadata: msgspec.Raw) -> object:
    try:
        return msgspec.json.decode(metadata)
    except wire.UNDECODABLE:
        return None


def _item_kind(item: msgspec.Raw, listed: str) -> str:
    if listed:
        return listed
    try:
        return kind_of(item)
    except wire.UNDECODABLE:
        return ""


def kind_of(item: msgspec.Raw | memoryview) -> str:
    """The kind of an object by itself, empty if it says none: the first that stands at its beginning, where kubectl writes it.

    Raises one of UNDECODABLE, unless it is of a kind that is read: then whoever reads it finds that out.
    """
    said = _SAYS_ITS_KIND.match(item)
    if said:
        kind = qualified(said[2].decode(), said[1].decode())
        if is_read(kind):
            return kind
    own = msgspec.json.decode(item, type=_ItemKind)
    return qualified(own.kind, own.api_version)
