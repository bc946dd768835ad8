"""The bytes of an input: a file or standard input, gzip or not."""

import gzip
import os
import sys
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from kubectl_cgaudit.errors import InputError

_EACH = "name each file by itself (-f may be repeated)"
_GZIP = b"\x1f\x8b"
_PATTERN = {*"*?["}
DAMAGED = (EOFError, zlib.error, OSError)
"""What reading an input may raise."""


def name_of(path: str) -> str:
    """What messages call an input; `-` is standard input."""
    return "standard input" if path == "-" else path


def read_bytes(path: str, remedy: str) -> bytes:
    """All of an input, unpacked. Raises InputError, which ends with `remedy`, where there is nothing to read."""
    source = name_of(path)
    try:
        data = _standard_input() if path == "-" else Path(path).read_bytes()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
    except gzip.BadGzipFile:
        raise InputError(f"{source} is a damaged gzip file; {remedy}") from None
    except IsADirectoryError:
        raise InputError(f"{source} is a directory; {_EACH}") from None
    except OSError as error:
        if isinstance(error, FileNotFoundError) and _PATTERN & {*path}:
            raise InputError(f"there is no file {source}, and a pattern is not looked up; {_EACH}") from None
        raise InputError(f"{source} cannot be read: {error.strerror or error}; check the path") from None
    except (EOFError, zlib.error):
        raise InputError(f"{source} is a damaged gzip file; {remedy}") from None
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data or data.isspace():
        raise InputError(f"{source} is empty; {remedy}")
    return data


def can_be_reread(path: str) -> bool:
    """Whether an input may be read again from its beginning: what comes through a pipe comes once."""
    # Some systems open /dev/fd/3 where whoever has it stopped reading.
    return path != "-" and not path.startswith("/dev/") and Path(path).is_file()


def opened(path: str) -> BinaryIO | None:
    """An input to be read bit by bit, unpacked; None for one that could not be read a second time, or not at all."""
    try:
        if not can_be_reread(path):
            return None
        with Path(path).open("rb") as file:
            packed = file.read(len(_GZIP)) == _GZIP
        # Whoever reads takes whole blocks: a buffer would only copy them.
        return cast("BinaryIO", gzip.open(path) if packed else Path(path).open("rb", buffering=0))
    except OSError:
        return None


def size_of(file: BinaryIO) -> int | None:
    """How many bytes there are to read; None where that is seen at their end."""
    return None if isinstance(file, gzip.GzipFile) else os.fstat(file.fileno()).st_size


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise InputError("standard input is closed; give a file, or pipe one in")
    return sys.stdin.buffer.read()
