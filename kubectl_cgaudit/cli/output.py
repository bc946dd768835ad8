"""`-o FORMAT` and `-o FORMAT=PATH`: where the reports go. A file is written whole or not at all, readable by its owner."""

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

import click
from msgspec import Struct

from kubectl_cgaudit.errors import CgauditError, UsageError
from kubectl_cgaudit.report.screen import NARROWEST, PLAIN, WIDEST, Screen


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
        if not output.path:
            show(text)


def show(text: str) -> None:
    """Write to standard output what it can encode, the rest as escapes. Raises CgauditError when it is closed."""
    if sys.stdout is None:
        raise CgauditError("standard output is closed; write to a file with -o FORMAT=FILE")
    encoding = _encoding()
    # Whether there is colour has been decided: click would take it out of a pipe again.
    click.echo(text.encode(encoding, errors="backslashreplace").decode(encoding), nl=False, color=True)


def screen(output: Output) -> Screen:
    """What the report is written on. Files, and pipes unless the environment says otherwise, are all alike."""
    if output.path or sys.stdout is None:
        return PLAIN
    terminal = sys.stdout.isatty()
    return Screen(_width(terminal=terminal), _colour(terminal=terminal), _drawing(), terminal)


def _width(*, terminal: bool) -> int:
    """COLUMNS if it is set, else the terminal's."""
    said = os.environ.get("COLUMNS", "")
    if said.isascii() and said.isdigit() and int(said[:9]):
        found = int(said[:9])
    else:
        found = shutil.get_terminal_size().columns if terminal else NARROWEST
    return min(max(found, NARROWEST), WIDEST)


def _colour(*, terminal: bool) -> bool:
    """https://no-color.org wins over what forces colour, and that over what the terminal can do."""
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return terminal and os.environ.get("TERM") != "dumb"


def _drawing() -> bool:
    try:
        "│├└─█░…".encode(_encoding())
    except UnicodeEncodeError:
        return False
    return True


def _encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"


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
