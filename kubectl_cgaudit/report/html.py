"""One self-contained HTML page: a manager reads its top, an engineer all of it. Its script only sorts and filters."""

from collections.abc import Sequence
from functools import cache
from itertools import islice

from jinja2 import Environment

from kubectl_cgaudit.judge.audit import CONFIDENCES, EFFECTS, Audit, Change, Effect, NodeMoment, WorkloadAudit
from kubectl_cgaudit.report import apart, appendix, by_rule, closer, content, known, links, page, thresholds, words
from kubectl_cgaudit.report.cuts import IN_FULL, Limits, first, fit
from kubectl_cgaudit.report.groups import grouped
from kubectl_cgaudit.report.inside import Inside, moving
from kubectl_cgaudit.report.pictures import curves, flow
from kubectl_cgaudit.report.pieces import together
from kubectl_cgaudit.report.stopping import stopping
from kubectl_cgaudit.report.terms import TERMS

MOST = 4_900_000
LIMITS = Limits(groups=60, workloads=1500, cards=40, findings=60, containers=3000, listed=60)
_TILES: dict[Effect, tuple[str, str]] = {
    "stops": ("✖", "do not run after the move"),
    "may-stop": ("⚠", "have a container that may not start"),
    "loses": ("▼", "lose against system processes"),
    "unknown": ("?", "cannot be said"),
    "moves": ("⇄", "CPU moves inside the pod, nothing worse"),
    "gains": ("▲", "gain against system processes"),
    "nominal": ("#", "another number, no CPU beyond the thresholds"),
    "none": ("=", "nothing changes beyond the thresholds"),
}
_ALONE: tuple[Effect, ...] = ("stops", "may-stop", "loses", "gains")
_OF_ONE = {effect: words.EFFECT_WORDS[effect] for effect in _ALONE}
"""What a tile says of a single workload, where that is not the same."""
_SECTIONS = (
    ("nodes", "Nodes"),
    ("workloads", "Workloads"),
    ("closer", "A closer look"),
    ("inside", "Inside pods"),
    ("findings", "Findings"),
    ("weights", "Numbers in cpu.weight"),
    ("method", "Method"),
    ("coverage", "What was read"),
    ("containers", "Every container"),
)
_COLOURS = 6


def render(audit: Audit) -> str:
    """The audit as an HTML page of less than 5 MB; what does not fit is cut, and the page says so."""
    by_name = {node.name: node for node in audit.nodes}
    changed = [workload for workload in audit.workloads if workload.effect != "none"]
    unchanged = [workload for workload in audit.workloads if workload.effect == "none"]
    by_workload = closer.by_subject(audit.findings, changed[: LIMITS.cards])
    template = _environment().get_template("report.html.j2")
    groups, rules = grouped(audit.nodes), by_rule.rules(audit.findings, LIMITS.findings)
    moving_pods, sureness = moving(audit), known.sureness(audit.nodes)

    def draw(limits: Limits) -> str:
        rows = list(islice(appendix.rows(audit.workloads), limits.containers + 1))
        # Not `render`: it holds every small part of the page until the end.
        parts = template.generate(
            audit=audit,
            limits=limits,
            groups=groups,
            rules=rules,
            moving_pods=moving_pods,
            sureness=sureness,
            changed=changed,
            unchanged=unchanged,
            by_name=by_name,
            by_workload=by_workload,
            container_count=audit.container_count,
            appendix=rows[: limits.containers],
            more_rows=len(rows) > limits.containers,
        )
        return "".join(together(parts))

    return fit(draw, LIMITS, MOST) + "\n"


@cache
def _environment() -> Environment:
    environment = page.environment()
    environment.globals.update(
        js=page.own("report.js"),
        js_hash=page.digest("report.js"),
        apart=apart.parts,
        by_rule=by_rule,
        confidences=CONFIDENCES,
        content=content,
        known=known,
        thresholds=thresholds.rows,
        words=words,
        terms=TERMS,
        tiles=_TILES,
        of_one=_OF_ONE,
        effects=EFFECTS,
        sections=_SECTIONS,
        in_full=IN_FULL,
        curves=curves.curves,
        requests=curves.requests,
        columns=flow.flow,
        flow_size=(flow.WIDTH, flow.HEIGHT),
        first=first,
        stopping=stopping,
        closer=closer.closer,
        finding_page=links.finding_page,
        method_page=links.METHOD,
        limits_page=links.LIMITS,
        root_bar=_root_bar,
        change_bars=_change_bars,
        slices_bar=_slices_bar,
        sure_counts=_sure_counts,
        shown_change=closer.deciding,
        against_value=_against_value,
    )
    return environment


def _root_bar(moment: NodeMoment) -> list[tuple[str, str, str]]:
    """The parts of a node's bar with their start and width in percent: pods, others at the root, system.slice."""
    rest = max(0.0, 1 - moment.pods_share - moment.system_share)
    return _bar([("pods", moment.pods_share), ("others", rest), ("system", moment.system_share)])


def _slices_bar(inside: Inside, moment: int) -> list[tuple[str, str, str]]:
    parts = [(each.before, each.after)[moment] for each in inside.slices]
    return _bar([(f"c{index % _COLOURS}", part) for index, part in enumerate(parts)])


def _bar(parts: Sequence[tuple[str, float]]) -> list[tuple[str, str, str]]:
    drawn, start = [], 0.0
    for role, part in parts:
        if part >= 0.0001:
            drawn.append((role, f"{start * 100:.2f}", f"{part * 100:.2f}"))
        start += part
    return drawn


def _change_bars(change: Change) -> tuple[str, str]:
    """Lengths in percent of the bars before and after; the longer one is whole."""
    longest = max(change.before, change.after) or 1.0
    return f"{change.before / longest * 100:.1f}", f"{change.after / longest * 100:.1f}"


def _against_value(workload: WorkloadAudit) -> float | str:
    """What the column sorts by. Nothing is worse than to stop, also not the loss of all."""
    change = closer.deciding(workload)
    return -2.0 if workload.may_stop else "" if change is None else change.change


def _sure_counts(amounts: Sequence[int]) -> list[tuple[str, int]]:
    return [(confidence, amount) for confidence, amount in zip(CONFIDENCES, amounts, strict=True) if amount]
