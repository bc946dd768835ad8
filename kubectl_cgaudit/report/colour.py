"""Colour as a second signal: a word that is coloured says the same without it."""

import re

_STYLES = {
    "stops": "1;31",
    "loses": "1;31",
    "unknown": "1;33",
    "moves": "34",
    "gains": "35",
    "critical": "1;31",
    "high": "1;31",
    "medium": "1;33",
    "INCOMPLETE": "1;33",
}
_STYLED = re.compile(rf"\b(?:{'|'.join(_STYLES)})\b")


def paint(text: str, *, colour: bool) -> str:
    """Effects, severities and what is not known, coloured. For words of cgaudit's own that are already cut and aligned."""
    return _STYLED.sub(lambda found: f"\x1b[{_STYLES[found[0]]}m{found[0]}\x1b[0m", text) if colour else text
