"""Data as text for programs and for who reads them."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from kubectl_cgaudit.report.escape import json_text, visible, yaml_text

# No line is folded: a text would begin one in the middle of it, and be what it likes there, such as a command to a CI runner.
_WIDTH = 1 << 30
# 1e3, 0o7 and y are strings to PyYAML, and a float, an integer and a boolean to others.
_NO_STRING_ELSEWHERE = re.compile(
    r"[-+]?(?:\.\d[\d_]*|\d[\d_]*\.?[\d_]*)e[-+]?\d+|[-+]?0o[0-7_]+|[yn]", re.ASCII | re.IGNORECASE
)


def indented(value: object) -> str:
    """The JSON of a value that msgspec knows, two blanks a level, without a line break at its end. Nothing in it acts."""
    return json_text(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def as_json(value: object) -> str:
    """The JSON of a value that msgspec knows, as it is written to a file."""
    return indented(value) + "\n"


def as_yaml(value: object) -> str:
    """The YAML of a value that msgspec knows, in the order of its fields. Nothing in it acts."""
    # Most commands write none, and it takes a while to load.
    import yaml

    builtins = msgspec.to_builtins(value)
    return yaml_text(yaml.dump(builtins, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=_WIDTH))


class Rows(Struct, frozen=True):
    """A mapping with one list, whose items are made while they are written: those of a large cluster would fill the memory."""

    name: str
    rows: Iterable[object]


def json_rows(value: Rows) -> Iterator[str]:
    """The pieces of what `as_json` makes of the mapping."""
    begin, end = "[", "[]"
    yield f'{{\n  "{value.name}": '
    for row in value.rows:
        # No text in JSON holds a raw line break.
        yield f"{begin}\n    " + indented(row).replace("\n", "\n    ")
        begin, end = ",", "\n  ]"
    yield f"{end}\n}}\n"


def yaml_rows(value: Rows) -> Iterator[str]:
    """The pieces of what `as_yaml` makes of the mapping."""
    begin = f"{value.name}:\n"
    for row in value.rows:
        yield begin + as_yaml([row])
        begin = ""
    yield f"{value.name}: []\n" if begin else ""


@cache
def _dumper() -> Any:
    """PyYAML's, with quotes also around what another parser takes for no string, or a CI runner for a command."""
    import yaml

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        quoted = value.startswith(":") or _NO_STRING_ELSEWHERE.fullmatch(value)
        # Only there are escapes.
        style = '"' if visible(value) != value else "'" if quoted else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    made: Any = type("_Dumper", (getattr(yaml, "CSafeDumper", yaml.SafeDumper),), {})
    made.add_representer(str, text)
    return made
