"""Damage: to the structure of a document, and to its bytes."""

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

_DEEP = 60
_VERY_DEEP = 3000
_WOUNDS = (1, 1, 1, 1, 2, 3)
_SCALARS: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3, 2**53, 2**63, 2**64, -(2**70), 10**400, 1.5, -0.0, 1e308, 5e-324, "", " ", "x", "0", "-1",
    "100m", "1e999", "1E3", ".5", "NaN", "Inf", "9" * 80, "null", "true", "\x00", "\n", "\x1b[31m", "\u202eevil", "\U0001f600",
    "\ud800", "ü", "a" * 300, "../../etc", "=1+1", "<script>", "|", "`", "%s%n", "{}", "kind", "items", "Pod", "Node", "List",
)  # fmt: skip
_NUMBERS = (None, 0, -1, 1, 2, 3, 7, 100, 10_000, 262_144, 262_145, 2**53, 10**30, 0.0, 0.5, 1.0, 1e-9, 0.999999999, -0.5, 1e-300,
            5e-324, 1e9, 1e308)  # fmt: skip
_BYTES = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00", b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\\u", b"\\ud800",
          b"\n", b"\t", b"-", b"1e999", b"&a", b"*a", b"<<: ", b"!!python/object:os.system ", b"#", b"null",
          b"\xef\xbb\xbf")  # fmt: skip


def weird(random: Random) -> Any:
    """A value of a type, size or look that nobody expects."""
    chosen = random.randrange(12)
    if chosen == 0:
        return []
    if chosen == 1:
        return {}
    if chosen == 2:
        return [random.choice(_SCALARS)]
    if chosen == 3:
        return {str(random.choice(_SCALARS)): random.choice(_SCALARS)}
    if chosen == 4:
        return nested(random, random.choice((2, _DEEP, 200)))
    return random.choice(_SCALARS)


def nested(random: Random, depth: int) -> Any:
    """Lists or objects in each other."""
    value: Any = random.choice(_SCALARS)
    listed = random.random() < 0.5
    for _ in range(depth):
        value = [value] if listed else {"a": value}
    return value


def structure(random: Random, document: Any) -> Any:
    """A copy with a few wounds: values of other types, keys gone or renamed, elements doubled or exchanged."""
    wounded = [copy.deepcopy(document)]
    for _ in range(random.choice(_WOUNDS)):
        place = _place(random, wounded)
        if place:
            _wound(random, *place)
    return wounded[0]


def _place(random: Random, root: list[Any]) -> tuple[Any, Any] | None:
    """A container and a key or index in it: each level as likely as the others."""
    places: list[tuple[Any, Any]] = [(root, 0)]
    at: Any = root[0]
    while isinstance(at, (dict, list)) and at:
        key = random.choice(list(at)) if isinstance(at, dict) else random.randrange(len(at))
        places.append((at, key))
        at = at[key]
    return random.choice(places[1:] or places)


def _wound(random: Random, parent: Any, key: Any) -> None:
    kind = random.randrange(8)
    if kind == 0:
        del parent[key]
        if not parent and isinstance(parent, list):
            parent.append(None)
    elif kind == 1 and isinstance(parent, dict):
        parent[random.choice((key.upper(), key + "x", "", "metadata", str(random.choice(_SCALARS))))] = parent.pop(key)
    elif kind == 1:
        parent.insert(key, copy.deepcopy(parent[key]))
    elif kind == 2 and isinstance(parent, dict):
        other = random.choice(list(parent))
        parent[key], parent[other] = parent[other], parent[key]
    elif kind == 3:
        parent[key] = [parent[key]]
    elif kind == 4 and isinstance(parent[key], str):
        parent[key] = parent[key] + str(random.choice(_SCALARS))
    else:
        parent[key] = weird(random)


def numbers(random: Random, document: Any) -> Any:
    """A copy with another number everywhere under one key, which structure alone would all but never hit twice."""
    made = copy.deepcopy(document)
    holders = [(parent, key) for parent, key in _leaves(made) if isinstance(parent[key], (int, float))]
    _, chosen = random.choice(holders)
    number = random.choice(_NUMBERS)
    part = random.choice((0.2, 1.0))
    for parent, key in holders:
        if key == chosen and random.random() < part:
            parent[key] = number
    return made


def _leaves(at: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(at) if isinstance(at, dict) else range(len(at)):
        if isinstance(at[key], (dict, list)):
            yield from _leaves(at[key])
        else:
            yield at, key


def damage(random: Random, data: bytes) -> bytes:
    """A few wounds to bytes: cut short, flipped, a part lost or doubled, something put in."""
    for _ in range(random.choice(_WOUNDS)):
        data = _damaged(random, data)
    return data


def _damaged(random: Random, data: bytes) -> bytes:
    at, kind = random.randrange(len(data) + 1), random.randrange(7)
    end = min(len(data), at + random.choice((1, 1, 2, 8, 100)))
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + bytes(byte ^ (1 << random.randrange(8)) for byte in data[at : at + 1]) + data[at + 1 :]
    if kind == 2:
        return data[:at] + data[end:]
    if kind == 3:
        return data[:end] + data[at:]
    if kind == 4:
        return data[:at] + random.choice((b"[", b'{"a":', b"- ", b"{a: ")) * random.choice((3, _VERY_DEEP)) + data[at:]
    if kind == 5:
        return data[:at] + random.randbytes(random.choice((1, 4, 32))) + data[end:]
    return data[:at] + random.choice(_BYTES) + data[end:]


def as_json(document: Any) -> bytes:
    """The document as JSON; what is no Unicode text stands in it as an escape."""
    return json.dumps(document).encode()
