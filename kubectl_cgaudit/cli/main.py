"""`kubectl cgaudit`: errors become one sentence and an exit code here."""

import io
import re
import signal
import sys
import traceback
import warnings
from typing import NoReturn

import click

from kubectl_cgaudit.cli.aside import say
from kubectl_cgaudit.cli.audit import group
from kubectl_cgaudit.errors import CgauditError, PipeClosedError, UsageError
from kubectl_cgaudit.report.escape import visible

_INTERRUPTED = 130
_SIGNALLED = 128
_SHORT = re.compile(r"^-([A-Za-z])=(?=.)")
_ALL = "--all-namespaces"
_ALL_SAID = re.compile(rf"(?:-A|{_ALL})=(.*)", re.DOTALL)
# https://pkg.go.dev/strconv#ParseBool
_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")
_PIPE_CLOSED = 141
_NO_THREAD = "can't start new thread"
"""What Python says of it, and nothing else tells it from other errors."""
_OLD_PROCESSOR = "Missing required CPU features"
"""What Polars warns of before it crashes, with the features below it."""
# What Python makes of bytes that are no UTF-8: https://peps.python.org/pep-0383/
_NO_TEXT = re.compile("[\ud800-\udfff]")


def main() -> None:
    """Run the command and exit: 0 done, 1 could not, 2 wrong usage, 3 done but incomplete, 4 found what was asked
    for (--fail-on, diff --exit-code, verify), 129, 130 and 143 when told to end, 141 when standard output is closed early.
    """
    _clean_up_when_told_to_end()
    _write_all_of_it()
    try:
        code: int | str | None = run(sys.argv[1:])
    except SystemExit as told:
        code = told.code
    if isinstance(code, int) and code > _SIGNALLED:
        _print_no_more()
    sys.exit(code)


def _clean_up_when_told_to_end() -> None:
    """End as after Ctrl-C: half-written files and copies of client keys are removed, and process 1 of a container ends."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # Who was started to outlive its terminal goes on.
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def _write_all_of_it() -> None:
    """Undo PYTHONUNBUFFERED: without a buffer what the system takes in part is cut there, and no error is raised."""
    raw = getattr(sys.stdout, "buffer", None)
    if isinstance(raw, io.RawIOBase):
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(raw), sys.stdout.encoding, sys.stdout.errors)


def _end(number: int, _frame: object) -> NoReturn:
    # The next one ends the process at once.
    signal.signal(number, signal.SIG_DFL)
    sys.exit(_SIGNALLED + number)


def run(arguments: list[str]) -> int:
    """Run the command; returns its exit code."""
    stdout = sys.stdout
    try:
        _check_text(arguments)
        warnings.filterwarnings("error", _OLD_PROCESSOR, RuntimeWarning)
        result = group.main(as_kubectl_takes_them(arguments), prog_name="kubectl cgaudit", standalone_mode=False)
        if sys.stdout is not None:
            click.echo(nl=False)
    except CgauditError as error:
        return _fail(str(error), error.exit_code)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "kubectl cgaudit"
        return _fail(f"{error.format_message().rstrip('.')}; see {command} --help", 2)
    except click.ClickException as error:
        return _fail(error.format_message(), 1)
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted; every file is whole or as it was", _INTERRUPTED)
    except (PipeClosedError, BrokenPipeError):
        return _PIPE_CLOSED
    except SystemExit:
        # So click ends help and versions that nobody reads, with another standard output.
        if sys.stdout is stdout:
            raise
        return _PIPE_CLOSED
    except (OSError, MemoryError, RuntimeError) as error:
        return _given_up(error)
    except RuntimeWarning as warning:
        return _fail_for_old_processor(str(warning))
    return result if isinstance(result, int) else 0


def _given_up(error: Exception) -> int:
    """Say in a sentence what the system or the input does not allow; what is neither is raised again."""
    if isinstance(error, RecursionError):
        return _fail("the input is nested too deeply to be what kubectl prints; save it again with kubectl", 1)
    if isinstance(error, OSError):
        why = error.strerror or str(error)
        if _in_printing(error):
            sys.stdout = None
            return _fail(f"standard output cannot be written: {why}; write elsewhere", 1)
        why += f" ({error.filename})" if error.filename else ""
    elif isinstance(error, MemoryError):
        why = "no memory is left"
    elif str(error) == _NO_THREAD:
        why = "no thread can be started"
    else:
        raise error
    return _fail(f"the system refuses something this needs: {why}; see ulimit -a, and free what is used up", 1)


def _fail_for_old_processor(warning: str) -> int:
    if not warning.startswith(_OLD_PROCESSOR):
        raise RuntimeWarning(warning)
    lacking = re.search(r"not detected:\s*(.+)", warning)
    features = f" ({lacking[1]})" if lacking else ""
    return _fail(
        f"the installed Polars needs features that this processor lacks{features}; "
        "install the build for older processors beside it: pip install 'polars[rtcompat]'",
        1,
    )


def _print_no_more() -> None:
    """The interpreter flushes at exit: it must not complain of a closed pipe, nor wait for who reads a full one."""
    if sys.stdout is not None:
        from kubectl_cgaudit.cli.files import let_go

        let_go(sys.stdout)


def _in_printing(error: OSError) -> bool:
    """Whether it arose where click prints, which also writes all help: a full disk, a closed terminal."""
    return any(frame.f_code is click.echo.__code__ for frame, _ in traceback.walk_tb(error.__traceback__))


def _check_text(arguments: list[str]) -> None:
    """What is no text would end in a report, which has to be some. Raises UsageError."""
    for each in arguments:
        if _NO_TEXT.search(each):
            raise UsageError(f"the argument {each} is not UTF-8; rename the file, or correct the name")


def as_kubectl_takes_them(arguments: list[str]) -> list[str]:
    """The arguments with `-n=shop` as `-nshop`: kubectl takes both, and click would look for the namespace `=shop`.

    So too `-A=true` and `-A=false`, of which click knows `-A` and that it may be left out; the last one counts.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    taken: list[str] = []
    for argument in arguments[:end]:
        found = _ALL_SAID.fullmatch(argument)
        if not found:
            taken.append(argument)
        elif found[1] in _FALSE:
            taken = [each for each in taken if each not in ("-A", _ALL)]
        else:
            taken.append(_ALL if found[1] in _TRUE else f"{_ALL}={found[1]}")
    return [_SHORT.sub(r"-\1", each) for each in taken] + arguments[end:]


def _fail(message: str, code: int) -> int:
    say(f"error: {visible(message)}")
    return code
