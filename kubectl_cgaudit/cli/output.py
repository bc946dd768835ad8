"""`-o FORMAT` and `-o FORMAT=PATH`: where the reports go. A file is written whole or not at all, readable by its owner."""

import contextlib
import os
import stat
import sys
import tempfile
from pathlib import Path

import click
from msgspec import Struct

from kubectl_cgaudit.errors import CgauditError, UsageError


class Output(Struct, frozen=True):
    """A format and where it goes; no path is standard output."""

    format: str
    path: str | None


def parse(values: tuple[str, ...], formats: tuple[str, ...]) -> tuple[Output, ...]:
    """Read the values of -o; without any, the first format on standard output. Raises UsageError."""
    outputs = []
    for value in values or (formats[0],):
        name, equals, path = value.partition("=")
        if name not in formats:
            raise UsageError(f"-o: there is no format {name!r}; there are {', '.join(formats)}")
        if equals and not path:
            raise UsageError(f"-o {value}: the path is missing; write {name}=FILE")
        outputs.append(Output(name, path if path not in ("", "-") else None))
    if sum(output.path is None for output in outputs) > 1:
        raise UsageError("-o: two formats cannot share standard output; write all but one as FORMAT=FILE")
    paths = [os.path.realpath(output.path) for output in outputs if output.path]
    if len(set(paths)) < len(paths):
        raise UsageError("-o: two formats go to the same file; give each its own")
    return tuple(outputs)


def deliver(texts: list[tuple[Output, str]]) -> None:
    """Write the files first, then standard output. Raises CgauditError when a file cannot be written."""
    for output, text in texts:
        if output.path:
            _write(output.path, text)
            click.echo(f"wrote {output.format} to {output.path}", err=True)
    for output, text in texts:
        if not output.path and sys.stdout is None:
            raise CgauditError("standard output is closed; write to a file with -o FORMAT=FILE")
        if not output.path:
            click.echo(text, nl=False)


def _write(path: str, text: str) -> None:
    data = text.encode("utf-8", errors="backslashreplace")
    try:
        if _is_device(path):
            Path(path).write_bytes(data)
        else:
            _replace(Path(os.path.realpath(path)), data)
    except OSError as error:
        raise CgauditError(f"{path} cannot be written: {error.strerror or error}; choose another path") from None


def _is_device(path: str) -> bool:
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _replace(target: Path, data: bytes) -> None:
    if target.is_dir():
        raise IsADirectoryError(21, "it is a directory")
    # mkstemp makes the file 0600, and os.replace keeps that.
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
