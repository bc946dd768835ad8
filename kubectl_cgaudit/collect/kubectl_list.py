"""The objects of a List laid out as `kubectl get -o json` prints it, one after another: no more of the file is held than a block.

Text in JSON holds no raw line break, so the lines that stand between two objects stand nowhere else in such a file.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from kubectl_cgaudit.collect import part, wire
from kubectl_cgaudit.collect.input import Input

_OPENED = b'{\n            "apiVersion"'
BEGINNING = b'{\n    "apiVersion": "v1",\n    "items": [\n        ' + _OPENED
"""Of a file that may be one."""
_CLOSED = b"\n        }"
# Its last characters stand in no indentation, so it is found in a fifth of the time that the lines alone would take.
_BETWEEN = _CLOSED + b",\n        " + _OPENED
_AFTER = _CLOSED + b"\n    ]"
_BLOCK = 1 << 18
_LARGEST = 16 << 20
"""Bytes of an object: an API server takes a tenth of it."""


class OtherLayoutError(Exception):
    """The file is not laid out so. Nothing that came of it counts."""


class _Rest(msgspec.Struct):
    """The document without its objects."""

    items: list[msgspec.Raw]
    kind: str = ""
    metadata: Any = None


def objects(file: Input) -> Iterator[memoryview]:
    """The JSON of each object. Whoever takes it decodes it: that it is whole proves that the next one begins where it does.

    Raises OtherLayoutError, also after the last object, for a file in any other layout, and what reading it raises.
    """
    data = file.read(_BLOCK)
    if not data.startswith(BEGINNING):
        raise OtherLayoutError
    begin = len(BEGINNING) - len(_OPENED)
    while True:
        end = data.find(_BETWEEN, begin)
        if end >= 0:
            yield memoryview(data)[begin : end + len(_CLOSED)]
            begin = end + len(_BETWEEN) - len(_OPENED)
            continue
        more = file.read(_BLOCK)
        if not more:
            break
        data, begin = data[begin:] + more, 0
        if len(data) > _LARGEST:
            raise OtherLayoutError
    end = data.find(_AFTER, begin)
    if end < 0:
        raise OtherLayoutError
    yield memoryview(data)[begin : end + len(_CLOSED)]
    _check(data[end + len(_CLOSED) :])


def _check(rest: bytes) -> None:
    """Refuse what is no List, is one page of it, or has another document after it."""
    try:
        found = msgspec.json.decode(b'{"items": [' + rest, type=_Rest)
    except wire.UNDECODABLE:
        raise OtherLayoutError from None
    # kubectl writes no escape here; with one, a second "items" could hide.
    if found.kind != "List" or b'"items"' in rest or b"\\" in rest:
        raise OtherLayoutError
    if part.of("", "", found.metadata, 0).left != part.LAST:
        raise OtherLayoutError
