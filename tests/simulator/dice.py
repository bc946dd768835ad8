"""Numbers, names and times that follow from a seed alone: no clock, no state, no order of calls."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import TypeVar

_T = TypeVar("_T")
_EPOCH = datetime(2026, 11, 21)
# What the API server's own name generator uses.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIXES = len(_ALPHABET) ** 5
_STRIDE = 8_675_309  # not a multiple of 3, so no two replicas get one suffix


def roll(seed: int, *path: object) -> bytes:
    """64 random bytes for this path."""
    return blake2b("/".join(map(str, (seed, *path))).encode(), digest_size=64).digest()


def number(rolled: bytes, place: int, below: int) -> int:
    """A number from 0 to below-1, taken from the two bytes at 2 * place."""
    return int.from_bytes(rolled[2 * place : 2 * place + 2], "big") % below


def pick(rolled: bytes, place: int, choices: Sequence[_T]) -> _T:
    """One of the choices."""
    return choices[number(rolled, place, len(choices))]


def uuid(rolled: bytes) -> str:
    """A version 4 UUID of the first 16 bytes."""
    text = rolled[:16].hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:32]}"


def hash_suffix(rolled: bytes) -> str:
    """Ten characters as in a pod-template-hash."""
    return "".join(_ALPHABET[byte % 27] for byte in rolled[-10:])


def replica_suffix(rolled: bytes, replica: int) -> str:
    """Five characters, different for every replica of a workload."""
    left = (int.from_bytes(rolled[:4], "big") + replica * _STRIDE) % _SUFFIXES
    text = ""
    for _ in range(5):
        left, digit = divmod(left, 27)
        text += _ALPHABET[digit]
    return text


def stamp(seconds: int) -> str:
    """The time so many seconds before (or, when negative, after) midnight of 2026-11-21."""
    return (_EPOCH - timedelta(seconds=seconds)).isoformat() + "Z"
