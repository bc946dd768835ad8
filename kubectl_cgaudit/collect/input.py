"""The bytes of an input: a file or standard input, gzip or not."""

import gzip
import sys
import zlib
from pathlib import Path

from kubectl_cgaudit.errors import InputError

_GZIP = b"\x1f\x8b"


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
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror or error}; check the path") from None
    except (EOFError, zlib.error):
        raise InputError(f"{source} is a damaged gzip file; {remedy}") from None
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data or data.isspace():
        raise InputError(f"{source} is empty; {remedy}")
    return data


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise InputError("standard input is closed; give a file, or pipe one in")
    return sys.stdin.buffer.read()
