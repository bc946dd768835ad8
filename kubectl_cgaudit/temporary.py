"""Temporary files and keys, and the removal of those whose process was killed.

A process locks what it makes. The system drops the lock when the process ends, however it ends. So what has a name of ours,
belongs to this user alone and is not locked was left behind. Nothing else is touched in a folder that others may write to: links
are not followed, and what belongs to somebody else is not opened. Where there are no such locks (Windows, some network disks)
nothing is removed.
"""

import atexit
import contextlib
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_FILE = re.compile(r"\.cgaudit\.[a-z0-9_]{8}\.tmp", re.ASCII)
_FOLDER = re.compile(r"cgaudit-keys\.[a-z0-9_]{8}", re.ASCII)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_keys: tuple[int, Path] | None = None
"""The folder of this process for keys: a descriptor that holds its lock, and its path."""


@contextlib.contextmanager
def new_file(folder: Path) -> Iterator[tuple[int, Path]]:
    """A new file in `folder`, 0600: its descriptor, for the caller to close, and its path, for the caller to rename or unlink.

    No other run removes it before this ends. What killed runs left in the folder is removed first. Raises OSError.
    """
    _remove_abandoned(folder, _FILE)
    while True:
        handle, name = tempfile.mkstemp(dir=folder, prefix=".cgaudit.", suffix=".tmp")
        if _locked(handle, name):
            break
        os.close(handle)
    # The caller closes the file before it renames it, as Windows needs, and the lock goes with the last descriptor.
    lock = None if sys.platform == "win32" else os.dup(handle)
    try:
        yield handle, Path(name)
    finally:
        if lock is not None:
            os.close(lock)


def remove_abandoned_keys() -> None:
    """Remove the keys that killed runs left in the temporary folder, as far as that is possible."""
    with contextlib.suppress(OSError):
        _remove_abandoned(Path(tempfile.gettempdir()), _FOLDER)


def key_folder() -> Path | None:
    """Return the folder of this process for keys, 0700, which goes with the process; None on Windows. Raises OSError."""
    global _keys
    if sys.platform == "win32":
        return None
    # Somebody may have tidied up the temporary folder, and somebody else have made another of the same name.
    if _keys is None or not _is_at(*_keys):
        while True:
            path = tempfile.mkdtemp(prefix="cgaudit-keys.")
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            if _locked(handle, path):
                break
            os.close(handle)
        _keys = handle, Path(path)
        atexit.register(_remove_keys, os.getpid(), *_keys)
    return _keys[1]


def _remove_keys(made_by: int, handle: int, path: Path) -> None:
    if os.getpid() == made_by:
        with contextlib.suppress(OSError):
            _empty(handle)
            path.rmdir()


def _locked(handle: int, name: str) -> bool:
    """Lock what was just made. False where another run found it before it was locked, and removes it."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # There are no locks on this disk. So no run removes anything from it.
        return True
    return _is_at(handle, name)


def _is_at(handle: int, path: str | Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def _remove_abandoned(folder: Path, names: re.Pattern[str]) -> None:
    if sys.platform == "win32":
        return
    # What may not be listed, as a folder to drop things into, is left as it is.
    with contextlib.suppress(OSError), _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as at:
        for name in filter(names.fullmatch, os.listdir(at)):  # noqa: PTH208 - a descriptor, which nobody can exchange
            with contextlib.suppress(OSError):
                _remove_if_abandoned(name, at, folder=names is _FOLDER)


def _remove_if_abandoned(name: str, at: int, *, folder: bool) -> None:
    """Remove a file, or a folder of files, that has a name of ours. Raises OSError, also where it is locked."""
    found = os.stat(name, dir_fd=at, follow_symlinks=False)
    if found.st_uid != os.geteuid() or found.st_mode & _OTHERS:
        return
    # A second name of a file is somebody's trick.
    if not (stat.S_ISDIR(found.st_mode) if folder else stat.S_ISREG(found.st_mode) and found.st_nlink == 1):
        return
    kind = os.O_RDONLY | os.O_DIRECTORY if folder else os.O_RDWR
    with _opened(name, kind | os.O_NOFOLLOW | os.O_NONBLOCK, at) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Since it was looked at it may have been renamed, or replaced.
        if not os.path.samestat(os.fstat(handle), found) or not os.path.samestat(
            os.stat(name, dir_fd=at, follow_symlinks=False), found
        ):
            return
        if folder:
            _empty(handle)
            os.rmdir(name, dir_fd=at)
        else:
            os.unlink(name, dir_fd=at)


def _empty(folder: int) -> None:
    for name in os.listdir(folder):
        os.unlink(name, dir_fd=folder)


@contextlib.contextmanager
def _opened(path: str | Path, flags: int, at: int | None = None) -> Iterator[int]:
    handle = os.open(path, flags, dir_fd=at)
    try:
        yield handle
    finally:
        os.close(handle)
