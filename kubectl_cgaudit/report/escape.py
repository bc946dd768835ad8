"""Untrusted strings. Everything from a cluster is hostile until it has gone through here."""

import re
import unicodedata

_INVISIBLE = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}
_LIVE_MARKDOWN = {ord(character): f"\\{character}" for character in "\\`|*_[]~!#"} | {
    ord("<"): "&lt;",
    ord(">"): "&gt;",
    ord("&"): "&amp;",
    ord("$"): "&#36;",
}
# GitHub and GitLab look for @mentions, #1, GH-1, !1, ~label, :emoji: and addresses in the finished page, where an escape is
# gone; only something between the characters stops them.
_REFERENCE = re.compile(r"""[@#!~$%&](?=["\w])|:(?=//|[a-z_+-][\w+-]*:)|\bwww(?=\.)|\bgh(?=-\d)""", re.IGNORECASE)
_BREAK = "\x00"
_BREAK_ENTITY = "&#8203;"
_LIST_MARKER = re.compile(r"(\d*)([-+=.)])(?=[-+=\s]|$)")


def visible(text: str) -> str:
    """The text with control, bidi and other invisible characters written as escapes, so that none acts."""
    # No character that is printable is one of these.
    if text.isprintable():
        return text
    return "".join(
        _escaped(character) if unicodedata.category(character) in _INVISIBLE else character for character in text
    )


def inert(data: str) -> str:
    """JSON or YAML, the same data, in which nothing acts on a terminal. Lines stay lines."""
    if data.isascii() and "\x7f" not in data:
        return data
    return "".join(
        _as_json(character)
        if character not in "\t\n\r" and unicodedata.category(character) in _INVISIBLE
        else character
        for character in data
    )


def _as_json(character: str) -> str:
    units = character.encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shorten(text: str, most: int) -> str:
    """The text in at most `most` characters, its cut end marked."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def markdown(text: str) -> str:
    """The text such that GitHub and GitLab render it as plain text, in a paragraph or in a table's cell."""
    broken = _REFERENCE.sub(lambda found: found[0] + _BREAK, visible(text).strip())
    escaped = broken.translate(_LIVE_MARKDOWN).replace(_BREAK, _BREAK_ENTITY)
    marker = _LIST_MARKER.match(escaped)
    return f"{marker[1]}\\{escaped[marker.start(2) :]}" if marker else escaped


def prose(text: str) -> str:
    """`markdown` of a sentence, in which pairs of backticks stay code. Not for table cells."""
    parts = visible(text).strip().split("`")
    # Two backticks in a row, or one without its partner, would make other code spans than these.
    if len(parts) % 2 == 0 or not all(part.strip() for part in parts[1:-1]):
        return markdown(text)
    return "".join(f"`{part}`" if index % 2 else _keeping_ends(part) for index, part in enumerate(parts))


def _keeping_ends(text: str) -> str:
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return before + markdown(text) + after if text.strip() else text
