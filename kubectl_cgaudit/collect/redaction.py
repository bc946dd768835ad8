"""Take the caller's credentials out of what a server says: one that repeats the Authorization header must put it in no report."""

import re
from collections.abc import Iterable

HIDDEN = "[credential]"
_FRAGMENT = 8
"""Characters in a row that a text has in common with a credential: so many are no accident."""
_CUT = 4
"""So many where the text begins, ends or is quoted: there it may have been cut."""
_QUOTES = "'\"`\u2026"


class Redaction:
    """Credentials that no text may show."""

    def __init__(self, credentials: Iterable[str]) -> None:
        self._credentials = sorted({each for each in credentials if each})
        self._starts = {each[at : at + _CUT] for each in self._credentials for at in range(len(each) - _CUT + 1)}
        short = sorted((each for each in self._credentials if len(each) < _FRAGMENT), key=len, reverse=True)
        self._short = re.compile("|".join(rf"(?<!\w){re.escape(each)}(?!\w)" for each in short)) if short else None

    def __call__(self, text: str) -> str:
        """Return a text of at most a few hundred characters, the credentials in it and their fragments replaced."""
        kept: list[str] = []
        at = 0
        while at < len(text):
            end = self._end(text, at) if text[at : at + _CUT] in self._starts else at
            kept.append(HIDDEN if end > at else text[at])
            at = max(end, at + 1)
        hidden = "".join(kept)
        return self._short.sub(HIDDEN, hidden) if self._short else hidden

    def _end(self, text: str, begin: int) -> int:
        """Where a credential or a fragment of one ends that begins here; `begin` where there is none."""
        end = begin + _CUT
        for credential in self._credentials:
            while end <= len(text) and text[begin:end] in credential:
                end += 1
        end -= 1
        at_a_cut = begin == 0 or end == len(text) or text[begin - 1] in _QUOTES or text[end] in _QUOTES
        long_enough = end - begin >= (_CUT if at_a_cut else _FRAGMENT)
        return end if long_enough else begin
