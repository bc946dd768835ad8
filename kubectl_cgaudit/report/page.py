"""What every HTML page of ours has: templates that escape all they are given, and its own style under a hash."""

import base64
import hashlib
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kubectl_cgaudit.report.escape import shorten, visible

LONGEST_NAME = 253
LONGEST_TEXT = 3000


def environment() -> Environment:
    """A new environment for the templates of this package, with `css`, `css_hash` and the filters."""
    made = Environment(
        loader=PackageLoader("kubectl_cgaudit.report", "templates"),
        autoescape=True,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.globals.update(css=own("diff.css"), css_hash=digest("diff.css"))
    made.filters.update(name=_name, text=_text, marked=_marked, codes=_codes)
    return made


def own(name: str) -> Markup:
    """One of our own files, not from a cluster: it goes into the page as it is."""
    return Markup(_read(name))  # noqa: S704


def digest(name: str) -> str:
    """The hash of one of our own files, for the page's policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(_read(name).encode()).digest()).decode()}"


def _read(name: str) -> str:
    return (files("kubectl_cgaudit.report") / "templates" / name).read_text(encoding="utf-8").strip()


def _shown(value: object) -> object:
    """Every string that a template writes goes through here before it is escaped, however it got there."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _name(text: str) -> str:
    """A name, cut where no real one could end."""
    return shorten(visible(text), LONGEST_NAME)


def _text(text: str) -> str:
    """A sentence, cut where it would drown the page."""
    return shorten(visible(text), LONGEST_TEXT)


def _marked(text: str) -> str:
    """`->` as the arrow it stands for."""
    return text.replace(" -> ", " → ")


def _codes(text: str) -> list[tuple[bool, str]]:
    """A sentence in parts, with whether each stands between backticks."""
    parts = _marked(_text(text)).split("`")
    return [(False, "`".join(parts))] if len(parts) % 2 == 0 else [(i % 2 == 1, part) for i, part in enumerate(parts)]
