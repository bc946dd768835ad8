"""What can be shown where something is written: how wide, in colour, with lines drawn."""

import os


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
