"""Which formats there are. A renderer's module is imported when it is used."""

from collections.abc import Callable
from functools import partial
from importlib import import_module

from kubectl_cgaudit.judge.audit import Audit
from kubectl_cgaudit.report.screen import PLAIN, Screen

_RENDERERS = {
    "table": ("table", "render"),
    "wide": ("table", "render_wide"),
    "json": ("data", "render_json"),
    "yaml": ("data", "render_yaml"),
    "csv": ("csv", "render"),
    "markdown": ("markdown", "render"),
    "html": ("html", "render"),
}
_FOR_A_SCREEN = {"table", "wide", "csv"}
FORMATS = tuple(_RENDERERS)


def renderer(name: str, screen: Screen = PLAIN) -> Callable[[Audit], str]:
    """The renderer of a format; those that people read in a terminal fit their text to the screen."""
    module, function = _RENDERERS[name]
    render: Callable[..., str] = getattr(import_module(f"kubectl_cgaudit.report.{module}"), function)
    return partial(render, screen=screen) if name in _FOR_A_SCREEN else render
