"""Read YAML strictly: the one reader of every YAML input, from `-f` to the kubeconfig.

Values are built from the parser's events, without recursion. What could cost too much memory or time is refused before it is
built: tags beyond YAML's core, aliases that stand for too much, deep nesting. libyaml and PyYAML's own parser are treated alike.
Plain scalars mean what they mean in YAML 1.1, except that dates and numbers in base 60 are text, as for kubectl.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import yaml
from msgspec import Struct

DEEPEST = 100
"""Levels of nesting. kubectl prints about 20."""
MOST_BY_ALIASES = 100_000
"""Values that the aliases of a stream may stand for. A long text counts as one for each 1,000 characters."""
MOST = 1_000_000
"""Values in a stream that may have aliases, which is a file that a person keeps: a kubeconfig has about 50 for a cluster."""
_LONG = 1000
_LONGEST_NUMBER = 100
_SHOWN = 60
_CORE = "tag:yaml.org,2002:"
_STR, _SEQ, _MAP = f"{_CORE}str", f"{_CORE}seq", f"{_CORE}map"
_TYPES: Mapping[str, tuple[type, ...]] = {
    f"{_CORE}null": (type(None),),
    f"{_CORE}bool": (bool,),
    f"{_CORE}int": (int,),
    f"{_CORE}float": (int, float),
}
_BOOLEANS = {"yes": True, "no": False, "true": True, "false": False, "on": True, "off": False}
_WORDS: Mapping[str, bool | None] = {
    **{written: value for word, value in _BOOLEANS.items() for written in (word, word.title(), word.upper())},
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
_NUMBER_BEGINS = frozenset("+-.0123456789")
_INTEGER = re.compile(r"([-+]?)(?:0b([01_]+)|0x([\da-fA-F_]+)|0([0-7_]+)|(0|[1-9][\d_]*))", re.ASCII)
_BASES = (2, 16, 8, 10)
_FLOAT = re.compile(r"(?:[-+]?\d[\d_]*\.[\d_]*|\.\d[\d_]*)(?:[eE][-+]\d+)?", re.ASCII)
_NO_NUMBER = re.compile(r"([-+]?)\.(?:(inf|Inf|INF)|(nan|NaN|NAN))")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_CHARACTER = "an escape stands for no character"
_MERGE: Any = object()
"""In place of a key: the value is merged into the mapping."""


class YamlError(Exception):
    """The text cannot be read. `problem` says why, `line` where, from 1; it is 0 where that is unknown."""

    def __init__(self, problem: str, line: int = 0, *, refused: bool = False) -> None:
        super().__init__(problem)
        self.problem, self.line = problem, line
        self.refused = refused
        """Whether it is YAML all the same."""

    @property
    def where(self) -> str:
        """` at line 3`, or empty where the line is unknown."""
        return f" at line {self.line}" if self.line else ""


class Dialect(Struct, frozen=True):
    """What an input may use."""

    aliases: bool
    """Whether it may have anchors, their aliases, and the key `<<`, which merges mappings; it is text otherwise."""
    types: bool
    """Whether plain scalars may be numbers, booleans and null; they are text otherwise. Keys always are."""
    repeated_keys: bool
    """Whether a mapping may have a key twice. The last one counts."""


OBJECTS = Dialect(aliases=False, types=True, repeated_keys=False)
"""What kubectl prints, which is less than it reads."""
KUBECONFIG = Dialect(aliases=True, types=True, repeated_keys=True)
"""What kubectl reads."""
SETTINGS = Dialect(aliases=True, types=False, repeated_keys=False)
"""The files of this tool. As numbers the versions 1.30 and 1.3 would be one."""


def documents(data: bytes | str, dialect: Dialect, most: int | None = None) -> list[Any]:
    """Return the documents of a stream, at most `most`; None stands for an empty one. Raises YamlError."""
    builder = _Builder(dialect, most)
    try:
        for event in yaml.parse(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            take = builder.takes.get(type(event))
            if take:
                take(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or "it is no text"
        raise YamlError(why, min(mark.line, _line_breaks(data)) + 1 if mark else 0) from None
    except (ValueError, OverflowError):
        # Of PyYAML's own parser. libyaml has an error for it.
        raise YamlError(_NO_CHARACTER) from None
    return builder.documents


def document(data: bytes | str, dialect: Dialect) -> Any:
    """Return the only document of a stream, None if there is none. Raises YamlError."""
    found = documents(data, dialect, 1)
    return found[0] if found else None


def _line_breaks(data: bytes | str) -> int:
    # libyaml takes the end of a last line without a break for one line more.
    return data.count("\n") if isinstance(data, str) else data.count(b"\n")


class _Anchored(Struct):
    """A value that aliases may stand for."""

    value: Any
    size: int
    """Values in it and itself, with all that its own aliases stand for."""
    text: str | None = None
    """What it says as a key; only a scalar may be one."""


class _Opened(Struct):
    """A mapping or list whose end has not come yet."""

    held: Any
    anchor: str | None
    before: int
    """Values that were counted before it."""
    key: Any = None
    """In a mapping: that of the next value. None if a key comes next."""
    merged: list[dict[str, Any]] | None = None
    """Mappings to be merged into it. The first that has a key counts."""


class _Builder:
    """Builds documents from the events of a parser. All methods that take an event raise YamlError."""

    def __init__(self, dialect: Dialect, most: int | None) -> None:
        self.documents: list[Any] = []
        self._dialect, self._most = dialect, most
        self._stack: list[_Opened] = []
        self._anchors: dict[str, _Anchored] = {}
        self._count = self._by_aliases = 0
        self.takes: Mapping[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._begin,
            yaml.SequenceStartEvent: self._begin,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }

    def _document(self, event: Any) -> None:
        if len(self.documents) == self._most:
            raise _refused("a second document begins", event)
        # An anchor holds to the end of its document.
        self._anchors.clear()

    def _scalar(self, event: Any) -> None:
        text: str = event.value
        if not text.isascii() and _SURROGATE.search(text):
            # libyaml has refused it already.
            raise YamlError(_NO_CHARACTER, event.start_mark.line + 1)
        size = 1 + len(text) // _LONG
        self._counted(size, event)
        tag = event.tag
        # PyYAML's own parser passes on the tag `!` of a plain scalar, libyaml does not.
        plain = tag in (None, "!") and not event.style
        value = text if not plain and tag in (None, "!", _STR) else self._typed(text, tag, event)
        if event.anchor is not None:
            self._check_anchor(event)
            self._anchors[event.anchor] = _Anchored(value, size, text)
        merges = plain and text == "<<" and self._dialect.aliases
        self._put(value, _MERGE if merges else text, event)

    def _typed(self, text: str, tag: str | None, event: Any) -> Any:
        """Return the value of a scalar that is plain, or has a tag other than that of texts."""
        if tag in (None, "!"):
            return typed(text) if self._dialect.types else text
        if tag not in _TYPES:
            raise _refused(f"the tag {_short(tag)} is not one of YAML's core", event)
        value = typed(text)
        if not isinstance(value, _TYPES[tag]) or (isinstance(value, bool) and bool not in _TYPES[tag]):
            raise _refused(f"{text[:_SHOWN]!r} is no {_short(tag)}", event)
        return value if self._dialect.types else text

    def _begin(self, event: Any) -> None:
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _MAP if mapping else _SEQ):
            raise _refused(f"the tag {_short(event.tag)} is not one of YAML's core", event)
        if len(self._stack) == DEEPEST:
            raise _refused(f"it is nested more than {DEEPEST} levels deep", event)
        if event.anchor is not None:
            self._check_anchor(event)
        if self._stack and isinstance(self._stack[-1].held, dict) and self._stack[-1].key is None:
            raise _refused("a key must be a single word", event)
        self._stack.append(_Opened({} if mapping else [], event.anchor, self._count))
        self._counted(1, event)

    def _end(self, event: Any) -> None:
        ended = self._stack.pop()
        if ended.merged:
            ended.held = _merged(ended.merged, ended.held)
        if ended.anchor is not None:
            self._anchors[ended.anchor] = _Anchored(ended.held, self._count - ended.before)
        self._put(ended.held, None, event)

    def _alias(self, event: Any) -> None:
        self._check_anchor(event)
        found = self._anchors.get(event.anchor)
        if found is None:
            raise _refused(f"the alias *{event.anchor[:_SHOWN]} has no anchor that ends before it", event)
        self._by_aliases += found.size
        if self._by_aliases > MOST_BY_ALIASES:
            raise _refused(f"its aliases stand for more than {MOST_BY_ALIASES:,} values", event)
        self._counted(found.size, event)
        self._put(found.value, found.text, event)

    def _counted(self, values: int, event: Any) -> None:
        self._count += values
        if self._count > MOST and self._dialect.aliases:
            raise _refused(f"it holds more than {MOST:,} values", event)

    def _check_anchor(self, event: Any) -> None:
        if not self._dialect.aliases:
            raise _refused("it uses YAML anchors", event)

    def _put(self, value: Any, key: Any, event: Any) -> None:
        """Put a finished value where it belongs; `key` is what it says in the place of a key."""
        if not self._stack:
            self.documents.append(value)
            return
        into = self._stack[-1]
        if isinstance(into.held, list):
            into.held.append(value)
        elif into.key is None:
            if key is None:
                raise _refused("a key must be a single word", event)
            if not self._dialect.repeated_keys and key in into.held:
                raise _refused(f"the key {key[:_SHOWN]} stands twice", event)
            into.key = key
        else:
            if into.key is _MERGE:
                into.merged = into.merged or []
                into.merged += _mappings(value, event)
            else:
                into.held[into.key] = value
            into.key = None


def _mappings(value: Any, event: Any) -> list[dict[str, Any]]:
    """Return what `<<` merges."""
    listed = value if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) for each in listed):
        raise _refused("the key << needs a mapping, or a list of them", event)
    return listed


def _merged(sources: list[dict[str, Any]], own: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for each in reversed(sources):
        result.update(each)
    result.update(own)
    return result


def _refused(problem: str, event: Any) -> YamlError:
    return YamlError(problem, event.start_mark.line + 1, refused=True)


def _short(tag: str) -> str:
    return (f"!!{tag.removeprefix(_CORE)}" if tag.startswith(_CORE) else tag)[:_SHOWN]


def typed(text: str) -> bool | int | float | str | None:
    """Return what a plain scalar stands for: the text itself where it is neither a number, a boolean nor null."""
    if text in _WORDS:
        return _WORDS[text]
    # Longer numbers cost more than they are worth: Python's take quadratic time.
    if text[0] not in _NUMBER_BEGINS or len(text) > _LONGEST_NUMBER:
        return text
    if found := _INTEGER.fullmatch(text):
        sign, *written = found.groups("")
        # The digits of the other bases are empty.
        digits, base = max(zip(written, _BASES, strict=True))
        digits = digits.replace("_", "")
        # `0x_` is a name like another.
        return int(sign + digits, base) if digits else text
    if _FLOAT.fullmatch(text):
        return float(text.replace("_", ""))
    if found := _NO_NUMBER.fullmatch(text):
        return float(f"{found[1]}{found[2] or found[3]}")
    return text
