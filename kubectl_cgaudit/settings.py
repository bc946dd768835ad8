"""A settings file in YAML, read key by key: each error names the place, and what was probably meant."""

import difflib
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml

from kubectl_cgaudit.errors import UsageError

Choice = TypeVar("Choice", bound=str)
# A few lines of aliases may stand for more than the memory holds.
_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxstring = 2, 200


class _Loader(yaml.BaseLoader):
    """Scalars stay text, as YAML would read the versions 1.30 and 1.3 as one number; a key may stand once only."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be a single word", problem_mark=key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"the key {key.value} stands twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def read(path: str, what: str) -> str:
    """The text of a file; `what` names it: `states file`. Raises UsageError."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file"
        raise UsageError(f"the {what} {path} cannot be read: {reason}; check the path") from None


def loaded(text: str, source: str) -> Any:
    """What the YAML holds; every scalar is text. Raises UsageError with the line."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        why = getattr(error, "problem", None) or "unreadable"
        # PyYAML has the other half of such a sentence in its context.
        why = f"{getattr(error, 'context', '')}, {why}" if why.startswith("but ") else why
        raise UsageError(f"{source} is not valid YAML{where}: {why}") from None


def mapping(value: object, where: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """A mapping that holds no other keys than these. Raises UsageError."""
    if not isinstance(value, dict):
        raise UsageError(f"{where} must hold {', '.join(keys)}, not {shown(value)}")
    for key in value:
        if key not in keys:
            raise UsageError(f"{where}: there is no key {shown(key)}{meant(str(key), keys, 'it may hold')}")
    return value


def meant(word: str, words: Sequence[str], else_: str) -> str:
    """`; did you mean match?`, or all there are."""
    near = difflib.get_close_matches(word, words, n=1)
    return f"; did you mean {near[0]}?" if near else f"; {else_} {', '.join(words)}"


def texts(value: object, where: str) -> dict[str, str]:
    """A mapping of names to texts. Raises UsageError."""
    if not isinstance(value, dict):
        raise UsageError(f"{where} must be a mapping of names to values, not {shown(value)}")
    return {str(key): text(entry, f"{where}: {key}") for key, entry in value.items()}


def text(value: object, where: str) -> str:
    """A scalar. Raises UsageError."""
    if not isinstance(value, str):
        raise UsageError(f"{where} must be a single value, not {shown(value)}")
    return value


def one_of(said: Mapping[str, Any], key: str, choices: tuple[Choice, ...], where: str) -> Choice | None:
    """One of the choices; None where the key is missing. Raises UsageError."""
    if key not in said:
        return None
    value = text(said[key], f"{where}: {key}")
    for choice in choices:
        if choice == value:
            return choice
    raise UsageError(f"{where}: {key}: {value!r} is not one of {', '.join(choices)}")


def shown(value: object) -> str:
    """A value in a message, cut where it is long."""
    said = _REPR.repr(value)
    return said if len(said) <= 60 else f"{said[:57]}..."
