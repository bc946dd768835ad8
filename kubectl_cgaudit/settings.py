"""A settings file in YAML, read key by key: each error names the place, and what was probably meant."""

import difflib
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kubectl_cgaudit import yaml_reader
from kubectl_cgaudit.collect.input import next_step, read_settings
from kubectl_cgaudit.errors import UsageError

Choice = TypeVar("Choice", bound=str)
# Of a large value a message shows the beginning.
_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxstring = 2, 200


def read(path: str, what: str) -> str:
    """The text of a file; `what` names it: `states file`. Raises UsageError."""
    try:
        return read_settings(Path(path)).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file"
        raise UsageError(f"the {what} {path} cannot be read: {reason}; {next_step(error)}") from None


def loaded(text: str, source: str) -> Any:
    """What the YAML holds; every scalar is text. Raises UsageError with the line."""
    try:
        return yaml_reader.document(text, yaml_reader.SETTINGS)
    except yaml_reader.YamlError as error:
        raise UsageError(f"{source} is not valid YAML{error.where}: {error.problem}; correct it there") from None


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
