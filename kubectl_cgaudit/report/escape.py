"""Untrusted strings. Everything from a cluster is hostile until it has gone through here."""

import re
import unicodedata
from collections.abc import Callable

_INVISIBLE = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}
# Of other categories, and shown nowhere either: joiners, fillers and variation selectors, in which text can be hidden.
# https://www.unicode.org/reports/tr44/#Default_Ignorable_Code_Point
_IGNORED = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
# `##[add-mask]` acts anywhere in a line for GitHub's runner, `##vso[...]` for that of Azure, `##teamcity[...]` for TeamCity's.
_MARK = "##"
_SUSPECT = re.compile(r"[^ -~]|##(?=[A-Za-z]*\[)")
_SUSPECT_IN_LINES = re.compile(r"[^\t\n\r -~]|##(?=[A-Za-z]*\[)")
# Blanks before it do not count. https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs
_COMMAND = re.compile(r"^([^\S\n]*):(?=:|\Z)", re.MULTILINE)
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
    if text.isascii() and text.isprintable() and _MARK not in text:
        return text
    return _SUSPECT.sub(lambda found: _escaped(found, _short_escape), text)


def json_text(data: str) -> str:
    """JSON in which nothing acts on a terminal: the same data, in the same lines."""
    return _data(data, _json_escape)


def json_bytes(data: bytes) -> bytes:
    """The same of JSON in UTF-8. Where nothing in it acts it is not copied."""
    harmless = data.isascii() and b"\x7f" not in data and _MARK.encode() not in data
    return data if harmless else json_text(data.decode()).encode()


def yaml_text(data: str) -> str:
    """The same of YAML whose texts have double quotes where they hold such a character."""
    return _data(data, _yaml_escape)


def _data(data: str, escape: Callable[[int], str]) -> str:
    if data.isascii() and "\x7f" not in data and _MARK not in data:
        return data
    return _SUSPECT_IN_LINES.sub(lambda found: _escaped(found, escape), data)


def _escaped(found: re.Match[str], escape: Callable[[int], str]) -> str:
    first, rest = found[0][0], found[0][1:]
    acts = rest or unicodedata.category(first) in _INVISIBLE or _IGNORED.match(first)
    return escape(ord(first)) + rest if acts else first


def _short_escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else _yaml_escape(code)


def _json_escape(code: int) -> str:
    # Beyond the first 65,536 characters JSON takes two escapes for one.
    units = chr(code).encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _yaml_escape(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def without_commands(text: str, colon: str) -> str:
    """The text with `colon` for the first of the two colons that make a line a command to GitHub's runner.

    A colon at the end of the text may be the first of them.
    """
    return _COMMAND.sub(lambda found: found[1] + colon, text)


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
