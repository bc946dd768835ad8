"""The way out of one report among several: that it fails costs none of the others, and is said at the end."""

import contextlib
from collections.abc import Callable, Sequence
from types import TracebackType

from kubectl_cgaudit.cli.aside import say
from kubectl_cgaudit.errors import CgauditError, PipeClosedError
from kubectl_cgaudit.report.escape import visible

_FAILURES = (CgauditError, PipeClosedError)


class Outlet:
    """Takes the pieces of a report until it fails, which is noted in `failures`; then it takes no more."""

    def __init__(
        self, sink: contextlib.AbstractContextManager[Callable[[str | bytes], None]], failures: list[Exception]
    ) -> None:
        self._sink, self._failures = sink, failures
        self._opened = contextlib.ExitStack()
        self._write: Callable[[str | bytes], None] | None = None

    @property
    def failed(self) -> bool:
        """Whether it takes no more."""
        return self._write is None

    def __enter__(self) -> "Outlet":
        try:
            self._write = self._opened.enter_context(self._sink)
        except _FAILURES as error:
            self._failures.append(error)
        return self

    def __call__(self, text: str | bytes) -> None:
        """Write the next piece."""
        if self._write is None:
            return
        try:
            self._write(text)
        except _FAILURES as error:
            self._write = None
            self._failures.append(error)
            # On a disk that is full what it wrote so far takes the room of the others.
            with contextlib.suppress(*_FAILURES), self._opened:
                raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        whole = error is None and self._write is not None
        try:
            with self._opened:
                # What was not written to its end does not take its place.
                if not whole:
                    raise error or PipeClosedError
        except _FAILURES as failure:
            if whole:
                self._write = None
                self._failures.append(failure)


def raise_one(failures: Sequence[Exception]) -> None:
    """Raise one of these, after a line for each other. That nobody reads standard output is least of all."""
    errors = [error for error in failures if isinstance(error, CgauditError)]
    for error in errors[:-1]:
        say(f"error: {visible(str(error))}")
    if failures:
        raise (errors or failures)[-1]
