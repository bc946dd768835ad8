"""A line on stderr for work over two seconds; silent where nobody watches."""

import os
import sys
import time

from kubectl_cgaudit.cli.terminal import draws
from kubectl_cgaudit.report.screen import NARROWEST, Screen, columns, cut

_PATIENCE = 2.0
_PACE = 0.2
_MINUTE = 60
_CLEAR = "\r\x1b[K"


class Progress:
    """Shows one line that replaces itself: what is read or done, how much of it, and how long the rest takes."""

    def __init__(self, doing: str = "reading") -> None:
        self._doing = doing
        self._watched = sys.stderr is not None and sys.stderr.isatty()
        self._began = time.monotonic()
        self._shown = 0.0
        self._screen = Screen(drawing=draws(sys.stderr))
        self._clears = os.environ.get("TERM") != "dumb"
        self._taken = 0
        self._what = ""
        self._since = self._began
        self.last = ""
        """How far it was, for who breaks it off."""

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """Show how far it is, if it is time to."""
        now = time.monotonic()
        if what != self._what:
            self._what, self._since = what, now
        self.last = f"{what} {done}" + (f" of {total}" if total else "")
        if self._watched and now - self._began > _PATIENCE and now - self._shown > _PACE:
            self._shown = now
            self._show(f"{self._doing} {self.last}{self._left(done, total, now)}")

    def _left(self, done: int, total: int | None, now: float) -> str:
        """How long the rest of this list takes at the pace so far."""
        if not total or not done or now - self._since < _PATIENCE:
            return ""
        seconds = round((now - self._since) * (total - done) / done)
        return f", {seconds} s left" if seconds < 2 * _MINUTE else f", {round(seconds / _MINUTE)} min left"

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            self._write(_CLEAR if self._clears else f"\r{' ' * self._taken}\r")

    def _show(self, text: str) -> None:
        """Put a line in the place of the last one. It ends before the last column: behind that some begin a new one."""
        room = max(_width() - 1, 1)
        line = self._screen.finished(cut(self._screen.shown(text), room))
        taken, before = columns(line), min(self._taken, room)
        self._write(_CLEAR + line if self._clears else f"\r{line}{' ' * (before - taken)}")
        self._taken = taken

    def _write(self, text: str) -> None:
        if sys.stderr is None:
            return
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            # The terminal is gone; the work is not.
            self._watched = False


def _width() -> int:
    """The terminal's, now: it may have been made narrower. Some do not say theirs."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or NARROWEST
    except (OSError, ValueError, AttributeError):
        return NARROWEST
