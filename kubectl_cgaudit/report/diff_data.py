"""JSON and YAML of a comparison: as it is, for programs."""

import msgspec
import yaml

from kubectl_cgaudit.judge.diff.types import Diff


def render_json(diff: Diff) -> str:
    """The comparison as JSON."""
    return msgspec.json.format(msgspec.json.encode(diff), indent=2).decode() + "\n"


def render_yaml(diff: Diff) -> str:
    """The same data as YAML."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return yaml.dump(msgspec.to_builtins(diff), Dumper=dumper, sort_keys=False, allow_unicode=True, width=120)
