"""The objects in YAML, as `kubectl get -o yaml` prints it: what YAML can do beyond that is refused."""

from typing import Any

import msgspec

from kubectl_cgaudit import yaml_reader
from kubectl_cgaudit.collect import part
from kubectl_cgaudit.collect.advice import SAVE, is_list, no_item, no_object
from kubectl_cgaudit.collect.api_groups import qualified
from kubectl_cgaudit.collect.assemble import Assembly
from kubectl_cgaudit.errors import InputError


def add(data: bytes, source: str, assembly: Assembly) -> None:
    """Take in all objects of a file or standard input. Raises InputError where it holds none."""
    try:
        documents = [each for each in yaml_reader.documents(data, yaml_reader.OBJECTS) if each is not None]
    except yaml_reader.YamlError as error:
        if error.refused:
            raise InputError(f"{source} is not what kubectl prints: {error.problem}{error.where}; {SAVE}") from None
        raise InputError(f"{source} is neither JSON nor YAML{error.where}; {SAVE}") from None
    for document_number, document in enumerate(documents):
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str) or not document["kind"]:
            raise InputError(no_object(source, audit=isinstance(document, dict) and "schemaVersion" in document))
        if not isinstance(document.get("items"), list):
            assembly.add(_own_kind(document), document, _decode, source)
            continue
        waiting = [("", document)]
        for path, outer in waiting:
            listed = qualified(outer["kind"].removesuffix("List"), outer.get("apiVersion"))
            assembly.parts.append(part.of(source, listed, outer.get("metadata"), len(outer["items"])))
            for number, item in enumerate(outer["items"]):
                place = f"{path}items[{number}]"
                own = _own_kind(item)
                if not own and not listed:
                    raise InputError(no_item(source, place, document_number))
                if is_list(own) and isinstance(item.get("items"), list):
                    waiting.append((f"{place}.", item))
                else:
                    assembly.add(own or listed, item, _decode, source)


def _own_kind(item: object) -> str:
    kind = item.get("kind") if isinstance(item, dict) else None
    return qualified(kind, item.get("apiVersion")) if isinstance(item, dict) and isinstance(kind, str) else ""


def _decode(raw: Any, type_: type[Any]) -> Any:
    return msgspec.convert(raw, type=type_)
