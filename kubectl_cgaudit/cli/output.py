"""`-o FORMAT` and `-o FORMAT=PATH`: where the reports go."""

import contextlib
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar

import click

from kubectl_cgaudit.cli.aside import say
from kubectl_cgaudit.cli.files import check, is_device, is_file, saving, unwritable
from kubectl_cgaudit.cli.outlet import Outlet, raise_one
from kubectl_cgaudit.cli.repeatable import Repeatable
from kubectl_cgaudit.cli.spared import place, places, spare
from kubectl_cgaudit.cli.terminal import COLON, WithoutCommands, colour, draws, encoding_of, in_workflow, width
from kubectl_cgaudit.errors import CgauditError, PipeClosedError, UsageError
from kubectl_cgaudit.report.escape import visible
from kubectl_cgaudit.report.formats import BINARY

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from kubectl_cgaudit.audit.saved import Saved
    from kubectl_cgaudit.report.screen import Screen

F = TypeVar("F", bound=Callable[..., Any])
_FEW = 3
_LARGE = 1 << 16
_LEVEL = 6
"""Of gzip: more takes longer, and saves little of JSON."""
VIEW = ("text", "json", "yaml")
"""The formats of what shows one thing: text for people, its data for programs."""
_FOR_PEOPLE = ("table", "wide", "text")
_INSTEAD = "write to a file with -o FORMAT=FILE"
_COLONS = {"html": "&#58;", "junit": "&#58;", "markdown": "\\:"}
"""A colon as these formats escape it. In JSON and YAML no line begins with one."""


class Output(NamedTuple):
    """A format and where it goes; no path is standard output."""

    format: str
    path: str | None


def option(formats: tuple[str, ...]) -> Callable[[F], F]:
    """The flag -o of a command that writes these formats, the first by default; the command gets it as `outputs`."""
    if len(formats) > _FEW:
        words = f"{', '.join(formats)}; repeat with =FILE to write several in one run, in gzip where FILE ends with .gz"
    else:
        words = f"{', '.join(formats[:-1])} or {formats[-1]}"

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list["CompletionItem"]:
        from click.shell_completion import CompletionItem

        if "=" in incomplete:
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(name) for name in formats if name.startswith(incomplete)]

    return click.option(
        "-o",
        "--output",
        "outputs",
        cls=Repeatable,
        multiple=True,
        metavar="FORMAT[=FILE]",
        help=f"{words}. [default: {formats[0]}]",
        shell_complete=complete,
    )


def parse(
    values: tuple[str, ...],
    formats: tuple[str, ...],
    inputs: Iterable[str | None] = (),
    baseline: str | None = None,
) -> tuple[Output, ...]:
    """Read the values of -o; without any, the first format on standard output. Raises UsageError, also for one that would
    take the place of one of the `inputs`, or of the `baseline`, which only the next one may follow; and CgauditError for a
    file that cannot be written, before anything is read for it.
    """
    outputs = []
    read = places(inputs) if any("=" in value for value in values) else frozenset()
    for value in values or (formats[0],):
        name, equals, path = value.partition("=")
        if name not in formats:
            raise UsageError(f"-o: there is no format {name!r}; there are {', '.join(formats)}")
        if equals and not path:
            raise UsageError(f"-o {value}: the path is missing; write {name}=FILE")
        spare(path, read if name in ("json", "audit") else read | places((baseline,)))
        outputs.append(Output(name, path if path not in ("", "-") else None))
    if sum(output.path is None for output in outputs) > 1:
        raise UsageError("-o: two formats cannot share standard output; write all but one as FORMAT=FILE")
    paths = [place(output.path) for output in outputs if output.path]
    if len(set(paths)) < len(paths):
        raise UsageError("-o: two formats go to the same file; give each its own")
    for output in outputs:
        if output.path:
            check(output.path)
    return tuple(outputs)


def deliver(texts: Sequence[tuple[Output, str | Iterator[str]]]) -> None:
    """Write the files first, then standard output. Raises CgauditError when one cannot be written; the others are.

    A text may come in pieces.
    """
    failures: list[Exception] = []
    for output, text in sorted(texts, key=lambda each: each[0].path is None):
        with Outlet(_sink(output), failures) as outlet:
            for piece in [text] if isinstance(text, str) else _together(text):
                outlet(piece)
                if outlet.failed:
                    break
        _tell(output, outlet)
    raise_one(failures)


def deliver_view(
    outputs: Sequence[Output], text: Callable[["Screen"], str | Iterator[str]], data: Callable[[], object]
) -> None:
    """Write formats of VIEW: what `text` makes for a screen, and what there is as `data`."""
    deliver([(each, text(screen(each)) if each.format == "text" else _as(each.format, data())) for each in outputs])


def _as(format_: str, data: object) -> str | Iterator[str]:
    from kubectl_cgaudit.plain import Rows, as_json, as_yaml, json_rows, yaml_rows

    if isinstance(data, Rows):
        return json_rows(data) if format_ == "json" else yaml_rows(data)
    return as_json(data) if format_ == "json" else as_yaml(data)


def _together(texts: Iterator[str]) -> Iterator[str]:
    """Yield the texts in larger pieces: one write for each would cost more than its making."""
    kept: list[str] = []
    size = 0
    for text in texts:
        kept.append(text)
        size += len(text)
        if size >= _LARGE:
            yield "".join(kept)
            kept.clear()
            size = 0
    yield "".join(kept)


def deliver_audit(saved: "Saved", outputs: Sequence[Output], bundle: Callable[[], bytes] | None = None) -> None:
    """Write an audit in all formats that are wanted, its containers made once for all of them; `bundle` makes that one.

    Raises CgauditError when one cannot be written; the others are. No file is there in part.
    """
    from kubectl_cgaudit.cli.progress import Progress
    from kubectl_cgaudit.report import formats

    failures: list[Exception] = []
    with contextlib.ExitStack() as opened:
        outlets = [opened.enter_context(Outlet(_sink(output), failures)) for output in outputs]
        writers = []
        for output, outlet in zip(outputs, outlets, strict=True):
            if output.format == "bundle" and bundle:
                outlet(bundle())
            elif formats.has_records(output.format):
                writers.append((outlet, formats.writer(output.format), output.format in formats.BINARY))
            else:
                outlet(formats.text(output.format, saved, screen(output)))
        for outlet, writer, binary in writers:
            _hand(outlet, writer.head(saved.audit), binary=binary)
        if writers:
            # On a terminal that shows a report, or `less` does, the line would stand in the middle of it.
            unseen = all(output.path and not is_device(output.path) for output in outputs)
            with Progress("writing") as progress:
                for done, table in enumerate(saved.containers.frames()):
                    if unseen:
                        progress("records", done, done + 1)
                    for outlet, writer, binary in writers:
                        _hand(outlet, [writer.records(table)], binary=binary)
                    if len(failures) == len(outlets):
                        break
        for outlet, writer, binary in writers:
            _hand(outlet, writer.tail(), binary=binary)
    for output, outlet in zip(outputs, outlets, strict=True):
        _tell(output, outlet)
    raise_one(failures)


def _hand(outlet: Outlet, parts: Iterable[bytes], *, binary: bool) -> None:
    for part in parts:
        if not outlet.failed:
            outlet(part if binary else part.decode())


def _tell(output: Output, outlet: Outlet) -> None:
    if output.path and not outlet.failed:
        say(f"wrote {output.format} to {visible(output.path)}")


@contextlib.contextmanager
def _sink(output: Output) -> Iterator[Callable[[str | bytes], None]]:
    """Where a report's pieces go; a file is there when all is well at the end, in gzip if its name ends with .gz."""
    _end_at_ctrl_c()
    path = output.path
    if path is None:
        if output.format in BINARY:
            yield _binary(output)
        else:
            yield _for_ci(_shower(output), output.format)
        return
    packs = path.endswith(".gz")
    pack, rest = _packing() if packs else (bytes, bytes)
    with saving(path) as file:
        packed = "gzip" if packs else output.format if output.format in BINARY else ""
        if packed and file.isatty():
            raise CgauditError(f"{path} is a terminal, and {packed} is not for one; choose another path")
        if output.format in BINARY and not packs and in_workflow() and not is_file(file):
            raise CgauditError(
                f"{output.format} is no text, and {path} may be the log of this job; choose another path"
            )

        def write(text: str | bytes) -> None:
            data = text if isinstance(text, bytes) else text.encode("utf-8", errors="backslashreplace")
            _put(path, file, pack(data))

        yield write if packed or is_file(file) else _for_ci(write, output.format)
        _put(path, file, rest())


def _end_at_ctrl_c() -> None:
    """Let SIGINT end a write that waits for who reads: with Polars' handler for it the system goes on waiting."""
    # SA_RESTART: https://man7.org/linux/man-pages/man7/signal.7.html
    if hasattr(signal, "siginterrupt"):
        signal.siginterrupt(signal.SIGINT, True)


def _binary(output: Output) -> Callable[[str | bytes], None]:
    """Hand over what is no text, in which nothing can be written as an escape: not where somebody or a CI runner reads it."""
    if sys.stdout is not None and sys.stdout.isatty():
        raise CgauditError(f"{output.format} is no text, and standard output is a terminal; {_INSTEAD}")
    if in_workflow() and not _kept():
        raise CgauditError(f"{output.format} is no text, and standard output may be the log of this job; {_INSTEAD}")
    return lambda data: hand_over(data)


def _kept() -> bool:
    """Whether standard output goes to a file."""
    try:
        return is_file(sys.stdout.buffer)
    except (AttributeError, OSError, ValueError):
        return False


def _for_ci(write: Callable[[Any], None], name: str) -> Callable[[Any], None]:
    """`write`, and where GitHub's runner reads what is written, without what it would take for commands."""
    return WithoutCommands(write, _COLONS.get(name, COLON)) if in_workflow() else write


def _packing() -> tuple[Callable[[bytes], bytes], Callable[[], bytes]]:
    """What makes gzip of pieces, and its end. zlib writes neither a name nor a time: the same text is the same bytes."""
    import zlib

    # 31: 32 KiB of window, and gzip around it.
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, 31)
    return packer.compress, packer.flush


def _put(path: str, file: BinaryIO, data: bytes) -> None:
    # Several files are open at once: it is said here which of them failed.
    try:
        file.write(data)
    except OSError as error:
        raise unwritable(path, error) from None


def _shower(output: Output) -> Callable[[str], None]:
    """How a format goes to standard output: people get what their terminal can show, programs UTF-8 wherever they run."""
    return show if output.format in _FOR_PEOPLE else _as_utf8


def show(text: str) -> None:
    """Write to standard output what it can encode, the rest as escapes. Raises CgauditError when it is closed."""
    encoding = encoding_of(sys.stdout)
    hand_over(text.encode(encoding, errors="backslashreplace").decode(encoding))


def _as_utf8(text: str) -> None:
    hand_over(text.encode("utf-8", errors="backslashreplace"))


def hand_over(written: str | bytes, instead: str = _INSTEAD) -> None:
    """Write to standard output. Raises CgauditError that ends with `instead` where it is closed or cannot be written."""
    if sys.stdout is None:
        raise CgauditError(f"standard output is closed; {instead}")
    try:
        # Whether there is colour has been decided: click would take it out of a pipe again.
        click.echo(written, nl=False, color=True)
    except OSError as error:
        # The interpreter would complain again when it flushes at exit.
        sys.stdout = None
        if isinstance(error, BrokenPipeError):
            # click itself would exit with 1.
            raise PipeClosedError from None
        raise CgauditError(f"standard output cannot be written: {error.strerror or error}; {instead}") from None


def screen(output: Output) -> "Screen":
    """What the report is written on. Files, and pipes unless the environment says otherwise, are all alike."""
    from kubectl_cgaudit.report.screen import PLAIN, Screen

    if output.path or sys.stdout is None:
        return PLAIN
    terminal = sys.stdout.isatty()
    return Screen(width(terminal=terminal), colour(terminal=terminal), draws(sys.stdout), terminal)
