"""One self-contained HTML page for the person who approves: the answer on the first screen, everything else folded.

The page needs no network. Its script copies, sorts and filters; without it everything can be read.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple, TextIO

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from kubectl_cgaudit.audit.model import CONFIDENCES, EFFECTS, SEVERITIES, Action, Audit, Finding, Workload
from kubectl_cgaudit.report import actions, cuts, markdown, rules, sections
from kubectl_cgaudit.report.escape import shorten, visible
from kubectl_cgaudit.report.findings import described
from kubectl_cgaudit.report.options import Options, Rendered
from kubectl_cgaudit.report.words import counted, named, percent

MOST = 4_900_000
"""Bytes of the largest page."""
LIMITS = cuts.Limits(actions=40, groups=60, workloads=1500, findings=60, listed=60, text=3000)
LONGEST_NAME = 253
_ON_TOP = 3
"""Actions that are not folded."""
_AFFECTED = 7
"""Workloads named on the first screen."""
_PICTURED = 3
"""Places whose CPU is drawn with an action."""
_SAFE = re.compile(r"[A-Za-z][\w.:/-]{0,200}", re.ASCII)
_FIRST_FIELDS = ("when", "effect", "cost")
"""Fields of an action that are not folded."""


class Bar(NamedTuple):
    """A share of CPU as a bar: what it is of, now, after the move, or after it with the action."""

    label: str
    share: str
    width: str


class Picture(NamedTuple):
    """The measured effect of an action at one place."""

    of: str
    bars: tuple[Bar, ...]


class Shown(NamedTuple):
    """An action as the page shows it."""

    number: int
    anchor: str
    action: Action
    what_for: str
    pictures: tuple[Picture, ...]
    fields: tuple[tuple[str, str], ...]
    more: tuple[tuple[str, str], ...]


def write(saved: Rendered, out: TextIO, options: Options) -> None:
    """Write the page of an audit."""
    out.write(render(saved.audit, options))


def render(audit: Audit, options: Options | None = None) -> str:
    """Return the audit as an HTML page of at most `MOST` bytes; what does not fit is cut, and the page says so."""
    audit = described(audit)
    of_findings = {finding.id: finding for finding in audit.findings}
    changed = [workload for workload in audit.workloads if workload.effect != "none"]
    affected = sections.affected(audit.workloads)
    whens = {sections.line(workload).when for workload in affected[:_AFFECTED]}
    places = {node for workload in affected for node in workload.nodes_hit}
    common = {
        "audit": audit,
        "headline": sections.headline(audit),
        "actions": shown_actions(audit, of_findings),
        "changed": changed,
        "unchanged": [workload for workload in audit.workloads if workload.effect == "none"],
        "affected": affected,
        # What is the same for all stands above the table.
        "affected_on": next(iter(places)) if len(places) == 1 else "",
        "affected_when": next(iter(whens)) if len(whens) == 1 else "",
        "by_workload": _by_workload(audit.findings, changed[: LIMITS.workloads]),
        "groups": sections.node_groups(audit.nodes),
        "by_rule": sections.by_rule(audit.findings),
        "numbers": sections.numbers(audit),
        "ticket": escape(markdown.render(audit, options)),
    }
    template = _environment().get_template("report.html.j2")

    def draw(limits: cuts.Limits) -> str:
        anchors = _anchors(audit, limits)
        return template.render(common, limits=limits, anchor=anchors.get)

    return cuts.fit(draw, LIMITS, MOST) + "\n"


def shown_actions(audit: Audit, findings: Mapping[str, Finding]) -> list[Shown]:
    """Return the actions with their numbers, pictures and fields."""
    found = []
    for number, action in enumerate(audit.actions, start=1):
        # Commands stand above, in blocks to copy; what it waits for are links.
        fields = [field for field in actions.fields(action, audit) if field[0] not in ("run", "waits")]
        top = tuple(field for field in fields if field[0] in _FIRST_FIELDS)
        rest = tuple(field for field in fields if field[0] not in _FIRST_FIELDS)
        what_for = sections.cleared(action, findings)
        found.append(
            Shown(number, _anchor(action.id, "action"), action, what_for, _pictures(action, number), top, rest)
        )
    return found


def _pictures(action: Action, number: int) -> tuple[Picture, ...]:
    cpu = action.effect.cpu if action.effect else ()
    labels = ("now", "after", f"with action {number}")
    return tuple(
        Picture(
            f"{'All pods' if each.of == 'pods' else each.of}: CPU of full {each.node}",
            tuple(
                Bar(label, percent(share), f"{min(max(share, 0.0), 1.0) * 100:.2f}%")
                for label, share in zip(labels, (each.before, each.after, each.acted), strict=True)
            ),
        )
        for each in cpu[:_PICTURED]
    )


def _by_workload(findings: Iterable[Finding], workloads: Iterable[Workload]) -> dict[str, list[Finding]]:
    """Return the findings of each of these workloads, worst first, by its key."""
    found: dict[str, list[Finding]] = {workload.key: [] for workload in workloads}
    for finding in findings:
        of_it = found.get(finding.subject.key) if finding.subject.kind == "workload" else None
        if of_it is not None:
            of_it.append(finding)
    return found


def _anchors(audit: Audit, limits: cuts.Limits) -> dict[str, str]:
    """Return the anchor of each finding and action that the page shows: a link leads nowhere else."""
    found: dict[str, str] = {}
    for group in sections.by_rule(audit.findings):
        for finding in group.findings[: limits.findings]:
            found.setdefault(finding.id, _anchor(finding.id, "finding"))
    for action in audit.actions[: limits.actions]:
        found.setdefault(action.id, _anchor(action.id, "action"))
    return found


def _anchor(id_: str, kind: str) -> str:
    """Return an id of the page for that of a finding or an action: its own where no character of it needs care."""
    if _SAFE.fullmatch(id_) and not id_.startswith("s-"):
        return id_
    return f"{kind}-{hashlib.sha256(id_.encode(errors='replace')).hexdigest()[:16]}"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("kubectl_cgaudit.report", "templates"),
        autoescape=True,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters.update(name=_name, text=_text, codes=_codes, visible=visible)
    made.globals.update(
        css=_own("report.css"),
        css_hash=_digest("report.css"),
        js=_own("report.js"),
        js_hash=_digest("report.js"),
        s=sections,
        first=cuts.first,
        in_full=cuts.IN_FULL,
        on_top=_ON_TOP,
        most_affected=_AFFECTED,
        effects=EFFECTS,
        confidences=CONFIDENCES,
        severities=tuple(reversed(SEVERITIES)),
        counted=counted,
        named=named,
        names=_names,
        page_of=rules.page_of,
        method_page=rules.METHOD,
        limits_page=rules.LIMITS,
    )
    return made


def _own(name: str) -> Markup:
    """Return one of our own files: it goes into the page as it is."""
    return Markup(_read(name))  # noqa: S704


def _digest(name: str) -> str:
    """Return the hash of one of our own files, for the page's policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(_read(name).encode()).digest()).decode()}"


def _read(name: str) -> str:
    return (files("kubectl_cgaudit.report") / "templates" / name).read_text(encoding="utf-8").strip()


def _shown(value: object) -> object:
    """Make a string visible that a template writes, before it is escaped."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _name(text: str) -> str:
    """Return a name, cut where no real one could end."""
    return shorten(_arrows(visible(text)), LONGEST_NAME)


def _text(text: str) -> str:
    """Return a sentence, cut where it would drown the page."""
    return shorten(_arrows(visible(text)), LIMITS.text)


def _arrows(text: str) -> str:
    return text.replace(" -> ", " → ")


def _codes(text: str) -> list[tuple[bool, str]]:
    """Return a sentence in parts, with whether each stands between backticks."""
    parts = _text(text).split("`")
    return [(False, "`".join(parts))] if len(parts) % 2 == 0 else [(i % 2 == 1, part) for i, part in enumerate(parts)]


def _names(every: Iterable[str]) -> str:
    """Join the first names, and say how many are left out."""
    listed = list(every)
    return named([_name(name) for name in listed[: LIMITS.listed]], LIMITS.listed) + (
        f" and {len(listed) - LIMITS.listed} more" if len(listed) > LIMITS.listed else ""
    )
