"""Files of the user's: written whole or not at all, readable by their owner."""

import contextlib
import errno
import io
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO

from kubectl_cgaudit.errors import CgauditError, PipeClosedError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_BUFFER = 1 << 18
"""Bytes written at once: of a large cluster there are gigabytes, in pieces of a pod each."""
_STANDARD = ("stdin", "stdout", "stderr")
_DESCRIPTOR = re.compile(r"(?:/dev|/proc/self)/fd/(\d{1,9})|/dev/(stdin|stdout|stderr)", re.ASCII)
_SPAN = 1 << 24
"""Bytes after which the system is told to write out what it holds."""


def save(path: str, data: bytes) -> None:
    """Write a file, whole or not at all, readable by its owner. Raises CgauditError when it cannot be written.

    PipeClosedError, where it is standard output by its name and nobody reads that any more.
    """
    with saving(path) as file:
        file.write(data)


def check(path: str) -> None:
    """Raises CgauditError as `save` does where that can be foreseen, and leaves nothing behind."""
    try:
        descriptor = _number(path)
        if descriptor is not None:
            os.fstat(descriptor)
        elif not is_device(path):
            _probe(Path(os.path.realpath(path)))
        elif not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise unwritable(path, error) from None


@contextlib.contextmanager
def saving(path: str) -> Iterator[BinaryIO]:
    """A file to write to, which is at its path when all is well at the end. Raises CgauditError as `save` does."""
    try:
        with _opened(path) as file:
            yield file
    except OSError as error:
        raise unwritable(path, error) from None


def _opened(path: str) -> contextlib.AbstractContextManager[BinaryIO]:
    descriptor = _number(path)
    if descriptor is not None:
        # What it stands for may be a file of the caller's, to which others write too: `-o json=/dev/stdout >> log`.
        return _into(os.fdopen(os.dup(descriptor), "wb"))
    return _into(Path(path).open("wb")) if is_device(path) else _replacing(Path(os.path.realpath(path)))


@contextlib.contextmanager
def _into(device: BinaryIO) -> Iterator[BinaryIO]:
    with device:
        try:
            yield device
        except (KeyboardInterrupt, SystemExit):
            let_go(device)
            raise


def let_go(file: BinaryIO | TextIO) -> None:
    """Have what a file still holds go nowhere: who is told to end does not wait until the reader of a full pipe takes it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())


def unwritable(path: str, error: OSError) -> CgauditError | PipeClosedError:
    """What to say of a file that cannot be written. Who leaves a pipe of another name than standard output loses a report."""
    if isinstance(error, BrokenPipeError) and _number(path) == _STANDARD.index("stdout"):
        return PipeClosedError()
    return CgauditError(f"{path} cannot be written: {error.strerror or error}; choose another path")


def _number(path: str) -> int | None:
    """The descriptor that a path is the name of."""
    found = _DESCRIPTOR.fullmatch(path)
    return int(found[1] or _STANDARD.index(found[2])) if found else None


def is_file(file: BinaryIO) -> bool:
    """Whether what is written there stays: it is no terminal and no pipe."""
    return stat.S_ISREG(os.fstat(file.fileno()).st_mode)


def is_terminal(path: str) -> bool:
    """Whether somebody sees what is written there, whatever leads to it. Nothing is written, and no other device touched."""
    descriptor = _number(path)
    if descriptor is not None:
        return os.isatty(descriptor)
    try:
        if not stat.S_ISCHR(Path(path).stat().st_mode):
            return False
        with Path(path).open("wb", buffering=0) as file:
            return file.isatty()
    except OSError:
        return False


def is_device(path: str) -> bool:
    """Whether what is written there is gone at once: a terminal, a pipe."""
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _probe(target: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        _check_owner(target.lstat(), target.parent.stat())
    # Whether a file can be made there depends on more than its folder's mode: root, a read-only disk, an ACL.
    with _part(target) as (handle, part):
        os.close(handle)
        part.unlink()


def _check_owner(target: os.stat_result, folder: os.stat_result) -> None:
    """Raises PermissionError for a file that its owner alone may replace: /tmp and the like are such folders, on no Windows."""
    if folder.st_mode & stat.S_ISVTX and os.geteuid() not in (0, target.st_uid, folder.st_uid):
        raise PermissionError(errno.EPERM, "it belongs to somebody else")


def _part(target: Path) -> contextlib.AbstractContextManager[tuple[int, Path]]:
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a directory")
    from kubectl_cgaudit import temporary

    # It is 0600, and os.replace keeps that. The target's name may be as long as names can be.
    return temporary.new_file(target.parent)


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    with _part(target) as (handle, part):
        try:
            with io.BufferedWriter(_Leaving(handle, "wb"), _BUFFER) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            part.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                part.unlink()
            raise


class _Leaving(io.FileIO):
    """A file that does not stay in memory: it is on the disk soon after its last byte, and pushes nothing else out."""

    _held = 0

    def write(self, data: "ReadableBuffer", /) -> int:
        written = super().write(data)
        self._held += written
        if self._held >= _SPAN and hasattr(os, "posix_fadvise"):
            self._held = 0
            # Advice only: where it cannot be given, nothing is lost.
            with contextlib.suppress(OSError):
                os.posix_fadvise(self.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return written
