"""Data as text for programs and for who reads them."""

import re
from functools import cache
from typing import Any

import msgspec

_WIDTH = 120
# 1e3, 0o7 and y are strings to PyYAML, and a float, an integer and a boolean to others.
_NO_STRING_ELSEWHERE = re.compile(
    r"[-+]?(?:\.\d[\d_]*|\d[\d_]*\.?[\d_]*)e[-+]?\d+|[-+]?0o[0-7_]+|[yn]", re.ASCII | re.IGNORECASE
)


def indented(value: object) -> str:
    """The JSON of a value that msgspec knows, two blanks a level, without a line break at its end."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def as_json(value: object) -> str:
    """The JSON of a value that msgspec knows, as it is written to a file."""
    return indented(value) + "\n"


def as_yaml(value: object) -> str:
    """The YAML of a value that msgspec knows, in the order of its fields."""
    # Most commands write none, and it takes a while to load.
    import yaml

    builtins = msgspec.to_builtins(value)
    return yaml.dump(builtins, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=_WIDTH)


@cache
def _dumper() -> Any:
    """PyYAML's, with quotes also around what another parser takes for no string."""
    import yaml

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "'" if _NO_STRING_ELSEWHERE.fullmatch(value) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    made: Any = type("_Dumper", (getattr(yaml, "CSafeDumper", yaml.SafeDumper),), {})
    made.add_representer(str, text)
    return made
