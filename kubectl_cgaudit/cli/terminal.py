"""What can be shown where something is written: how wide, in colour, with lines drawn; and what a CI runner must not see."""

import os
from collections.abc import Callable

from kubectl_cgaudit.report.escape import without_commands

COLON = "\\x3a"


def width(*, terminal: bool) -> int:
    """COLUMNS if it is set, else the terminal's."""
    import shutil

    from kubectl_cgaudit.report.screen import NARROWEST, WIDEST

    said = os.environ.get("COLUMNS", "")
    if said.isascii() and said.isdigit() and int(said[:9]):
        found = int(said[:9])
    else:
        found = shutil.get_terminal_size().columns if terminal else NARROWEST
    return min(max(found, NARROWEST), WIDEST)


def colour(*, terminal: bool) -> bool:
    """https://no-color.org wins over what forces colour, and that over what the terminal can do."""
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return terminal and os.environ.get("TERM") != "dumb"


def draws(stream: object) -> bool:
    """Whether lines, bars and the mark of a cut can be shown."""
    try:
        "│├└─█░…".encode(encoding_of(stream))
    except UnicodeEncodeError:
        return False
    return True


def encoding_of(stream: object) -> str:
    """What a stream writes text in; a stream that is closed has none."""
    return getattr(stream, "encoding", None) or "utf-8"


def in_workflow() -> bool:
    """Whether GitHub's runner reads standard output and standard error. It obeys lines that begin with `::`.

    https://docs.github.com/en/actions/reference/workflows-and-actions/variables
    """
    return os.environ.get("GITHUB_ACTIONS") == "true"


class WithoutCommands:
    """Hands text on in pieces, so that none of its lines is a command to GitHub's runner."""

    def __init__(self, write: Callable[[str], None], colon: str = COLON) -> None:
        self._write, self._colon = write, colon
        self._begins = True
        """Whether there are only blanks so far in the last line."""

    def __call__(self, text: str) -> None:
        """Hand on the next piece."""
        end = 0 if self._begins else text.find("\n") + 1 or len(text)
        last = text[text.rfind("\n") + 1 :]
        self._begins = not last.strip() and (self._begins or last != text)
        self._write(text[:end] + without_commands(text[end:], self._colon))
