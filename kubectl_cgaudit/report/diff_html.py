"""A comparison as one self-contained HTML page without a script; what is too much for it is cut, and the page says so."""

from functools import cache

from jinja2 import Environment

from kubectl_cgaudit.compare.diff.types import OUTCOMES, Diff, Outcome
from kubectl_cgaudit.report import diff_content as content
from kubectl_cgaudit.report import page
from kubectl_cgaudit.report.cuts import Limits, first, fit

MOST = 4_900_000
_LIMITS = Limits(groups=600, workloads=3000, listed=300)
_TILES: dict[Outcome, tuple[str, str, str]] = {
    "unpredicted": ("✖", "loses", "moved, not predicted"),
    "otherwise": ("≠", "loses", "moved otherwise than predicted"),
    "as-before": ("…", "moves", "predicted, still as before"),
    "unknown": ("?", "unknown", "cannot be said"),
    "other-cause": ("~", "nominal", "explained by something else"),
    "came-true": ("✓", "gains", "changed as predicted"),
    "unchanged": ("=", "none", "as before, as predicted"),
}
"""Sign, class of the style sheet, and words."""


def render(diff: Diff) -> str:
    """The comparison as an HTML page of less than 5 MB."""
    template = _environment().get_template("diff.html.j2")
    nodes, workloads = content.node_rows(diff.nodes), content.workload_rows(diff.workloads)
    rows = {"nodes": nodes, "workloads": workloads, "lone": list(content.lone(diff))}
    used = {row.outcome for row in (*nodes, *workloads)}

    def draw(limits: Limits) -> str:
        return template.render(diff=diff, rows=rows, limits=limits, used=[each for each in OUTCOMES if each in used])

    return fit(draw, _LIMITS, MOST) + "\n"


@cache
def _environment() -> Environment:
    environment = page.environment()
    environment.globals.update(
        content=content,
        tiles=_TILES,
        outcomes=OUTCOMES,
        first=first,
        in_full=content.IN_FULL,
    )
    return environment
