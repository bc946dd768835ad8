"""Data as text for programs and for who reads them."""

import msgspec

_WIDTH = 120


def indented(value: object) -> str:
    """The JSON of a value that msgspec knows, two blanks a level, without a line break at its end."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def as_yaml(value: object) -> str:
    """The YAML of a value that msgspec knows, in the order of its fields."""
    # Most commands write none, and it takes a while to load.
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return yaml.dump(msgspec.to_builtins(value), Dumper=dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
