"""Which formats there are. A renderer's module is imported when it is used."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubectl_cgaudit.judge.audit import Audit
    from kubectl_cgaudit.report.pieces import Pieces
    from kubectl_cgaudit.report.screen import Screen

_RENDERERS = {
    "table": ("table", "render"),
    "wide": ("table", "pieces_wide"),
    "json": ("data", "json_pieces"),
    "yaml": ("data", "yaml_pieces"),
    "csv": ("csv", "pieces"),
    "markdown": ("markdown", "render"),
    "html": ("html", "render"),
    "sarif": ("sarif", "pieces"),
    "junit": ("junit", "pieces"),
    "prometheus": ("prometheus", "render"),
    "ndjson": ("ndjson", "pieces"),
}
_FOR_A_SCREEN = {"table", "wide"}
FORMATS = tuple(_RENDERERS)


def render(name: str, audit: "Audit", screen: "Screen | None" = None) -> "Pieces | str":
    """A report, in pieces where it may be long. Those that people read in a terminal fit their text to the screen."""
    module, function = _RENDERERS[name]
    make: Callable[..., Pieces | str] = getattr(import_module(f"kubectl_cgaudit.report.{module}"), function)
    return make(audit, screen=screen) if screen and name in _FOR_A_SCREEN else make(audit)
