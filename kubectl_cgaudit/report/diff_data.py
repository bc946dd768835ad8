"""JSON and YAML of a comparison: as it is, for programs."""

from kubectl_cgaudit.judge.diff.types import Diff
from kubectl_cgaudit.plain import as_json, as_yaml


def render_json(diff: Diff) -> str:
    """The comparison as JSON."""
    return as_json(diff)


def render_yaml(diff: Diff) -> str:
    """The same data as YAML."""
    return as_yaml(diff)
