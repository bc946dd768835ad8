"""The objects in YAML, as `kubectl get -o yaml` prints it: what YAML can do beyond that is refused."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import msgspec
import yaml

from kubectl_cgaudit.collect import part
from kubectl_cgaudit.collect.advice import SAVE, is_list, no_item, no_object
from kubectl_cgaudit.collect.api_groups import qualified
from kubectl_cgaudit.collect.assemble import Assembly
from kubectl_cgaudit.errors import InputError

_DEEPEST = 100
_LEFT_AS_TEXT = tuple(f"tag:yaml.org,2002:{name}" for name in ("value", "merge", "timestamp"))


def add(data: bytes, source: str, assembly: Assembly) -> None:
    """Take in all objects of a file or standard input. Raises InputError where it holds none."""
    loader = _loader()
    try:
        _check_depth(data, loader, source)
        documents = [document for document in yaml.load_all(data, Loader=loader) if document is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise InputError(f"{source} is neither JSON nor YAML{where}; {SAVE}") from None
    for document_number, document in enumerate(documents):
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str) or not document["kind"]:
            raise InputError(no_object(source, audit=isinstance(document, dict) and "schemaVersion" in document))
        _reject_anchors(document, source)
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
            raise InputError(f"{source} is nested too deeply to be what kubectl prints; {SAVE}")


def _reject_anchors(document: object, source: str) -> None:
    """Refuse objects that stand in several places: kubectl writes none, and a few lines of them can fill the memory."""
    seen: set[int] = set()
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if not isinstance(value, (dict, list)) or not value:
            continue
        if id(value) in seen:
            raise InputError(f"{source} uses YAML anchors, which kubectl never prints; {SAVE}")
        seen.add(id(value))
        waiting.extend(value.values() if isinstance(value, dict) else value)
