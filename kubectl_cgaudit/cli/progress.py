"""A line on stderr for work over two seconds; silent where nobody watches."""

import sys
import time

from kubectl_cgaudit.report.escape import visible

_PATIENCE = 2.0
_PACE = 0.2


class Progress:
    """Shows one line that replaces itself."""

    def __init__(self) -> None:
        self._watched = sys.stderr.isatty()
        self._began = time.monotonic()
        self._shown = 0.0

    def __call__(self, text: str) -> None:
        """Show `text` if it is time to."""
        now = time.monotonic()
        if self._watched and now - self._began > _PATIENCE and now - self._shown > _PACE:
            self._shown = now
            sys.stderr.write(f"\r\x1b[Kreading {visible(text)}")
            sys.stderr.flush()

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
