"""The bytes of an input: a file or standard input, gzip or not, and no more of them than a limit allows."""

import errno
import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from kubectl_cgaudit.errors import InputError, UsageError

LIMIT = "CGAUDIT_MAX_INPUT_SIZE"
"""The variable that raises the limit."""
LARGEST_SETTINGS = 16 << 20
"""Bytes of a file that a person keeps: 2,500 clusters with all their certificates in a kubeconfig."""
_USUAL_LIMIT = "4Gi"
"""Of 150,000 pods kubectl prints 2.6 GB."""
_SIZE = re.compile(r"([1-9]\d{0,8})(k|[KMGT]i?)?", re.ASCII)
_UNITS = {None: 1, "k": 10**3} | {
    f"{letter}{i}": base**power for power, letter in enumerate("KMGT", start=1) for i, base in (("", 1000), ("i", 1024))
}
_PIECE = 1 << 20
_EACH = "name each file by itself (-f may be repeated)"
_GZIP = b"\x1f\x8b"
_PATTERN = {*"*?["}
DAMAGED = (EOFError, zlib.error, OSError)
"""What reading an input may raise."""


def name_of(path: str) -> str:
    """What messages call an input; `-` is standard input."""
    return "standard input" if path == "-" else path


class Input:
    """An open input, read bit by bit and unpacked."""

    def __init__(self, path: str, file: io.BufferedReader) -> None:
        self._path, self._taken = path, 0
        self._said, self._limit = input_limit()
        self._packed = file.peek(len(_GZIP)).startswith(_GZIP)
        self._file = cast("BinaryIO", gzip.GzipFile(fileobj=file)) if self._packed else file
        self.size = None if self._packed else _size(file)
        """How many bytes there are to read; None where that is seen at their end."""

    @property
    def taken(self) -> int:
        """How many bytes were read."""
        return self._taken

    def read(self, most: int) -> bytes:
        """Return the next bytes, none at the end. Raises InputError beyond the limit, and one of DAMAGED."""
        piece = self._file.read(most)
        self._taken += len(piece)
        if max(self._taken, self.size or 0) > self._limit:
            raise InputError(
                f"{name_of(self._path)} holds more than {self._said}{' unpacked' if self._packed else ''}; "
                f"if that is right, set {LIMIT} to more, such as 16Gi"
            )
        return piece

    def rewind(self) -> None:
        """Read from the beginning again."""
        self._file.seek(0)
        self._taken = 0


def read_bytes(path: str, remedy: str) -> bytes:
    """All of an input, unpacked. Raises InputError, which ends with `remedy`, where there is nothing to read."""
    source = name_of(path)
    held = io.BytesIO()
    try:
        with _opened(path) as file:
            found = Input(path, file)
            while piece := found.read(_PIECE):
                if not held.tell() and piece.startswith(b"\0"):
                    # As /dev/zero does, of which there is no end.
                    raise InputError(f"{source} is neither JSON nor YAML; {remedy}")
                held.write(piece)
    except gzip.BadGzipFile:
        raise InputError(f"{source} is a damaged gzip file; {remedy}") from None
    except IsADirectoryError:
        raise InputError(f"{source} is a directory; {_EACH}") from None
    except OSError as error:
        if isinstance(error, FileNotFoundError) and _PATTERN & {*path}:
            raise InputError(f"there is no file {source}, and a pattern is not looked up; {_EACH}") from None
        raise InputError(f"{source} cannot be read: {error.strerror or error}; {next_step(error)}") from None
    except (EOFError, zlib.error):
        raise InputError(f"{source} is a damaged gzip file; {remedy}") from None
    data = held.getvalue().removeprefix(b"\xef\xbb\xbf")
    if not data or data.isspace():
        raise InputError(f"{source} is empty; {remedy}")
    return data


def read_settings(path: Path, most: int = LARGEST_SETTINGS) -> bytes:
    """Return all of a file that is small. Raises OSError, also where it holds more than `most` bytes."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB")
    return data


def can_be_reread(path: str) -> bool:
    """Whether an input may be read again from its beginning: what comes through a pipe comes once."""
    # Some systems open /dev/fd/3 where whoever has it stopped reading.
    return path != "-" and not path.startswith("/dev/") and Path(path).is_file()


@contextmanager
def opened(path: str) -> Iterator[Input | None]:
    """An input to be read bit by bit; None for one that could not be read a second time, or not at all."""
    with ExitStack() as stack:
        found = None
        with suppress(OSError):
            if can_be_reread(path):
                found = Input(path, stack.enter_context(Path(path).open("rb")))
        yield found


def _opened(path: str) -> AbstractContextManager[io.BufferedReader]:
    return Path(path).open("rb") if path != "-" else _standard_input()


@contextmanager
def _standard_input() -> Iterator[io.BufferedReader]:
    if sys.stdin is None:
        raise InputError("standard input is closed; give a file, or pipe one in")
    file: io.BufferedReader = io.BufferedReader(cast("Any", sys.stdin.buffer))
    try:
        yield file
    finally:
        # It stays open.
        file.detach()


def _size(file: io.BufferedReader) -> int | None:
    try:
        found = os.fstat(file.fileno())
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def input_limit() -> tuple[str, int]:
    """Return the limit in words and in bytes. Raises UsageError where the variable is no size."""
    said = os.environ.get(LIMIT) or _USUAL_LIMIT
    found = _SIZE.fullmatch(said)
    if not found:
        raise UsageError(f"{LIMIT} is {said!r}, which is no size such as 16Gi; correct it, or unset it")
    return said, int(found[1]) * _UNITS[found[2]]


def next_step(error: Exception) -> str:
    """Return what to do about a file that cannot be read."""
    return "make it readable for you, or name another" if isinstance(error, PermissionError) else "check the path"
