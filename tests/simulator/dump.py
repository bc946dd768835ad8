"""The same cluster as `kubectl get nodes,pods -A -o json` prints it, streamed to a file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tests.simulator.pages import RESOURCES, Store

_HEAD = b'{\n    "apiVersion": "v1",\n    "items": ['
_TAIL = b'],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n'


def write(store: Store, path: Path, resources: tuple[str, ...] = ("nodes", "pods")) -> int:
    """Write the file; returns its size in bytes."""
    with path.open("wb") as out:
        out.write(_HEAD)
        separator = b"\n"
        for item in _items(store, resources):
            text = msgspec.json.format(msgspec.json.encode(item, order="sorted"), indent=4)
            out.write(separator + b" " * 8 + text.replace(b"\n", b"\n" + b" " * 8))
            separator = b",\n"
        out.write((b"\n    " if separator == b",\n" else b"") + _TAIL)
        return out.tell()


def _items(store: Store, resources: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The objects as kubectl shows them: with kind and apiVersion, without managedFields."""
    for name in resources:
        objects, resource = store.objects(name), RESOURCES[name]
        for at in range(len(objects.keys)):
            item: dict[str, Any] = msgspec.json.decode(objects.raw(at, at + 1))
            item["metadata"].pop("managedFields", None)
            yield {"apiVersion": resource.version, "kind": resource.kind, **item}
