"""Objects as YAML documents or as one JSON List, both as kubectl apply -f takes them."""

import re
from collections.abc import Callable, Sequence

import yaml

from kubectl_cgaudit.manifests.parts import Object
from kubectl_cgaudit.plain import indented

_PLAIN = re.compile(r"[A-Za-z/-][\w./:=-]{2,}|-[a-z]|v1", re.ASCII)


class _Dumper(yaml.SafeDumper):
    """Without anchors, and with quotes around whatever another YAML parser may take for no string."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        """Never an anchor: labels are written out wherever they are."""
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    # 1e3, 0o7 and y are strings to PyYAML and a float, an integer and a boolean to others.
    style = None if _PLAIN.fullmatch(value) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def as_yaml(objects: Sequence[Object]) -> str:
    """One document for each object."""
    return yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, explicit_start=True, width=120)


def as_json(objects: Sequence[Object]) -> str:
    """A List of all objects."""
    whole = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    return indented(whole) + "\n"


RENDERERS: dict[str, Callable[[Sequence[Object]], str]] = {"yaml": as_yaml, "json": as_json}
