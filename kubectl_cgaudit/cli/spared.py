"""What no report may take the place of: the files that a command reads, and every kubeconfig."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kubectl_cgaudit.errors import CgauditError, UsageError

_SAVED = "files:"
Place = str | tuple[int, int]
"""A path without links in it; of standard input, whose path nobody said, the device and inode of the file."""


def inputs(flags: Mapping[str, Any], target: str | None = None) -> Iterator[str | None]:
    """The files that these flags read, and that of --to."""
    yield from (*flags["files"], flags["states"], flags.get("policy"), target, *flags.get("what_if", ()))
    yield from _answers(flags["kubelet"] or "")
    if not flags["files"]:
        yield from _credentials(flags["kubeconfig"])


def places(paths: Iterable[str | None]) -> frozenset[Place]:
    """Where these files are, and all kubeconfigs: whatever is read, kubectl needs them. `-` is standard input."""
    found: set[Place] = set()
    for path in (*paths, *_kubeconfigs()):
        if path == "-":
            found |= _standard_input()
        elif path:
            found.add(place(path))
    return frozenset(found)


def place(path: str) -> str:
    """Where a file is, whatever leads to it. Raises CgauditError where nothing does any more."""
    try:
        return os.path.realpath(path)
    except FileNotFoundError:
        raise CgauditError(f"{path} is nowhere: the folder this runs in was removed; go to one that is there") from None


def spare(path: str, taken: frozenset[Place]) -> None:
    """Raises UsageError where writing to `path` would replace what is read: it may be all that is left of a cluster."""
    if path not in ("", "-") and not taken.isdisjoint((place(path), _identity(path))):
        raise UsageError(f"-o {path} would replace what is read from there; choose another path")


def _standard_input() -> set[Place]:
    # `< c.json`: only the file itself says which one it is.
    try:
        found = _identity(sys.stdin.fileno()) if sys.stdin is not None else None
    except (OSError, ValueError):
        return set()
    return {found} if found else set()


def _identity(file: str | int) -> tuple[int, int] | None:
    """Return device and inode of a file, None for anything else."""
    try:
        found = os.stat(file)  # noqa: PTH116 - a descriptor has no path
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _kubeconfigs() -> Iterator[str]:
    listed = os.environ.get("KUBECONFIG", "").split(os.pathsep)
    # KUBECONFIG=/dev/null says that there is none, and a report may go there.
    return filter(os.path.isfile, (*listed, os.path.expanduser("~/.kube/config")))  # noqa: PTH111


def _answers(kubelet: str) -> Iterator[str]:
    if kubelet.startswith(_SAVED):
        from kubectl_cgaudit.collect.kubelet_files import saved_in

        folder = kubelet.removeprefix(_SAVED)
        yield from (str(Path(folder, name)) for name in saved_in(folder))


def _credentials(kubeconfig: str | None) -> Iterator[str]:
    """The kubeconfig and the certificates, keys and tokens that it names, as far as it can be read."""
    from kubectl_cgaudit.collect.kubeconfig import files

    try:
        found = files(kubeconfig)
    except CgauditError:
        # Whoever reads it says why.
        found = (kubeconfig or "",)
    yield from filter(os.path.isfile, found)
