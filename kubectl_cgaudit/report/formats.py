"""Which formats there are. A renderer's module is imported when it is used."""

from collections.abc import Callable
from importlib import import_module

from kubectl_cgaudit.judge.audit import Audit

_RENDERERS = {
    "table": ("table", "render"),
    "wide": ("table", "render_wide"),
    "json": ("data", "render_json"),
    "yaml": ("data", "render_yaml"),
    "markdown": ("markdown", "render"),
    "html": ("html", "render"),
}
FORMATS = tuple(_RENDERERS)


def renderer(name: str) -> Callable[[Audit], str]:
    """The renderer of a format."""
    module, function = _RENDERERS[name]
    render: Callable[[Audit], str] = getattr(import_module(f"kubectl_cgaudit.report.{module}"), function)
    return render
