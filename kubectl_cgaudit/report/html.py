"""One self-contained HTML page without scripts: a manager reads its top, an engineer all of it."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kubectl_cgaudit.judge.audit import EFFECTS, Audit, Effect, NodeMoment
from kubectl_cgaudit.report import content, words
from kubectl_cgaudit.report.escape import shorten, visible

_TILES: dict[Effect, tuple[str, str]] = {
    "stops": ("✖", "do not run after the move"),
    "loses": ("▼", "lose against system processes"),
    "unknown": ("?", "cannot be said"),
    "moves": ("⇄", "CPU moves inside the pod"),
    "gains": ("▲", "gain against system processes"),
    "nominal": ("#", "only the number changes"),
    "none": ("=", "nothing changes"),
}


def render(audit: Audit) -> str:
    """The audit as an HTML page."""
    return _environment().get_template("report.html.j2").render(audit=audit, content=content) + "\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("kubectl_cgaudit.report", "templates"),
        autoescape=True,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.globals.update(words=words, tiles=_TILES, effects=EFFECTS, bar=_bar)
    environment.filters.update(name=_name, text=_text, marked=_marked, codes=_codes)
    return environment


def _shown(value: object) -> object:
    """Every string that a template writes goes through here before it is escaped, however it got there."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _name(text: str) -> str:
    """A name, cut where no real one could end."""
    return shorten(visible(text), content.LONGEST_NAME)


def _text(text: str) -> str:
    """A sentence, cut where it would drown the page."""
    return shorten(visible(text), content.LONGEST_TEXT)


def _marked(text: str) -> str:
    """`->` as the arrow it stands for."""
    return text.replace(" -> ", " → ")


def _codes(text: str) -> list[tuple[bool, str]]:
    """A sentence in parts, with whether each stands between backticks."""
    parts = _marked(_text(text)).split("`")
    return [(False, "`".join(parts))] if len(parts) % 2 == 0 else [(i % 2 == 1, part) for i, part in enumerate(parts)]


def _bar(moment: NodeMoment) -> list[tuple[str, str]]:
    """The parts of a node's bar with their widths in percent: pods, others at the root, system.slice."""
    rest = max(0.0, 1 - moment.pods_share - moment.system_share)
    parts = (("pods", moment.pods_share), ("others", rest), ("system", moment.system_share))
    return [(name, f"{part * 100:.2f}") for name, part in parts if part >= 0.0001]
