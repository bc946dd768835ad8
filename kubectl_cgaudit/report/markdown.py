"""Markdown for change tickets: the verdict, actions as a checklist, the workloads that change; everything else folded.

It reads on GitHub, on GitLab, and where a viewer knows no <details>. A ticket's text is limited, so a large cluster's report
is cut;
each cut says so.
"""

import re
from collections.abc import Iterable, Sequence
from typing import TextIO

from msgspec import Struct

from kubectl_cgaudit.audit.model import Action, Audit, Finding
from kubectl_cgaudit.report import actions, sections
from kubectl_cgaudit.report.cuts import IN_FULL, Limits, first, fit
from kubectl_cgaudit.report.escape import markdown, prose, shorten, visible
from kubectl_cgaudit.report.findings import described
from kubectl_cgaudit.report.options import Options, Rendered
from kubectl_cgaudit.report.words import EFFECTS, SIGNS, capital, counted

MOST = 32_767
"""Bytes by default: what the smallest of the ticket systems takes."""
MOST_WIDE = 1_000_000
"""Bytes with `wide`."""
START = Limits(actions=40, groups=40, workloads=150, findings=20, listed=30, text=1200)
START_WIDE = Limits(actions=500, groups=500, workloads=5000, findings=1000, listed=500, text=3000)
_CUT = "\x00"
"""Marks whatever was cut until the document is whole; escaped text cannot hold it."""
_LONGEST_NAME, _LEAST_NAME = 253, 63
_GAPS_ON_TOP = 5
# Only what no viewer could take for markup or for an address stays code. Two braces, or one and a percent sign, would begin a
# template where the page is made by one.
_PLAIN_CODE = re.compile(r"(?:(?!://|\{[{%])[\w .,:;=/+*()%'{}-])+")
_TEMPLATE = re.compile(r"\{[{%#]")


class Live(str):
    """Text that is Markdown already; any other string is escaped when it goes into a table."""

    __slots__ = ()


def write(saved: Rendered, out: TextIO, options: Options) -> None:
    """Write the Markdown of an audit."""
    out.write(render(saved.audit, options))


def render(audit: Audit, options: Options | None = None) -> str:
    """Return the audit as Markdown of at most `MOST` bytes, or `MOST_WIDE` if the options ask for all."""
    wide = options is not None and options.wide
    document, limits, most = _Document(described(audit)), START_WIDE if wide else START, MOST_WIDE if wide else MOST
    text = fit(document.draw, limits, most)
    # Escaped, a hostile name is up to eight times as long: then what is folded gives way.
    return text if len(text.encode()) <= most else fit(document.draw_short, limits, most)


class Text(Struct, frozen=True):
    """How names, sentences, lists and tables are written within limits."""

    limits: Limits

    def name(self, text: str) -> Live:
        """Return a name, cut where no real one could end; shorter still where every sentence is short."""
        return self._escaped(text, max(min(_LONGEST_NAME, self.limits.text // 4), _LEAST_NAME))

    def text(self, text: str) -> Live:
        """Return a sentence for a table's cell."""
        return self._escaped(text, self.limits.text)

    def sentence(self, text: str) -> Live:
        """Return a sentence for outside tables, in which plain words between backticks stay code."""
        if not all(map(_PLAIN_CODE.fullmatch, text.split("`")[1::2])):
            return self.text(text)
        bounded, cut = _bounded(text, self.limits.text)
        return Live(prose(bounded) + cut)

    def names(self, names: Sequence[str], most: int) -> Live:
        """Return the first names, and how many more there are."""
        shown, more = first(names, most)
        return Live(", ".join(map(self.name, shown)) + (f" and {more} more" if more else ""))

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
        """Return a table without the columns that are empty in every row; nothing if there is no row."""
        body = list(rows)
        used = [index for index in range(len(headers)) if any(row[index] for row in body)]
        lines = [self._row(row[index] for index in used) for row in [headers, *body]]
        return "\n".join([lines[0], f"|{' --- |' * len(used)}", *lines[1:]]) if body else ""

    def command(self, text: str) -> str:
        """Return a command as a block of code, in which no line can end the block; as text where a template could begin."""
        lines = [_bounded(line, self.limits.text, arrows=False) for line in text.splitlines()] or [("", "")]
        shown, more = first(lines, self.limits.listed)
        cut = "".join(mark for _, mark in shown) + (_CUT if more else "")
        if any(_TEMPLATE.search(line) for line, _ in shown):
            return " ".join(markdown(line) for line, _ in shown) + cut
        fence = "`" * max(3, 1 + max((len(run) for line, _ in shown for run in re.findall("`+", line)), default=0))
        rest = [f"... {counted(more, 'more line')}"] if more else []
        return "\n".join([f"{fence}sh", *(line for line, _ in shown), *rest, fence]) + cut

    def _row(self, cells: Iterable[str]) -> str:
        return f"| {' | '.join(cell if isinstance(cell, Live) else self.name(cell) for cell in cells)} |"

    def _escaped(self, text: str, most: int) -> Live:
        bounded, cut = _bounded(text, most)
        return Live(markdown(bounded) + cut)


def _bounded(text: str, most: int, *, arrows: bool = True) -> tuple[str, str]:
    """Return the text in at most `most` characters, and the mark if it was cut."""
    part = text[: 2 * most]
    seen = visible(part.replace(" -> ", " → ") if arrows else part)
    return shorten(seen, most), _CUT if len(seen) > most else ""


def bullets(lines: Iterable[str]) -> str:
    """Return a list."""
    return "\n".join(f"- {line}" for line in lines)


def paragraphs(parts: Iterable[str]) -> str:
    """Return the parts that are not empty, with a blank line between them."""
    return "\n\n".join(part for part in parts if part)


def folded(summary: str, body: str) -> str:
    """Return a part that opens on a click. The summary is our own words only: it is read as HTML."""
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>" if body else ""


def left_out(*what: str) -> str:
    """Return a line that says what is left out here. Our own words, or escaped text."""
    words = "; ".join(part for part in what if part)
    return f"**Left out here:** {words}; {IN_FULL}.{_CUT}" if words else ""


def _more(amount: int, what: str) -> str:
    return left_out(counted(amount, f"more {what}")) if amount else ""


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" if line else "" for line in text.splitlines())


class _Document:
    """The document of an audit, drawn within limits."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self._findings = {finding.id: finding for finding in audit.findings}
        self._by_rule = sections.by_rule(audit.findings)
        self._groups = sections.node_groups(audit.nodes)
        self._numbers = sections.numbers(audit)

    def draw(self, limits: Limits) -> str:
        """Return the whole document."""
        return self._drawn(Text(limits), f"## More\n\n{paragraphs(self._folds(Text(limits)))}")

    def draw_short(self, limits: Limits) -> str:
        """Return the document without what is folded."""
        return self._drawn(Text(limits), left_out("findings, nodes, questions, assumptions and coverage"))

    def _drawn(self, text: Text, more: str) -> str:
        audit = self._audit
        beginning, rest = sections.headline(audit)
        verdict = Live(f"**{text.sentence(beginning)}.** {text.sentence(rest)}".strip()) if beginning else ""
        counts = sections.severity_counts(audit.verdict.findings) or "none"
        title = f"# CPU priority audit: {text.name(sections.cluster_name(audit))}, {text.name(audit.target.to)}"
        if audit.target.what_if:
            title += f" --what-if {text.name(', '.join(audit.target.what_if))}"
        dated = f"{text.name(audit.time)}. " if audit.time else ""
        head = [
            title,
            verdict,
            self._incomplete(text),
            f"{dated}{capital(sections.read(audit))}. Findings: {counts}. "
            "Shares hold when the node's CPU is full; with CPU to spare, nobody loses.",
        ]
        body = [
            f"## Actions\n\n{self._actions(text)}",
            f"## Workloads\n\n{self._workloads(text)}",
            more,
            f"---\n\nkubectl-cgaudit {text.name(audit.tool_version)}{f', {text.name(audit.time)}' if audit.time else ''}, "
            f"input sha256:{text.name(audit.input[:12])}",
        ]
        shortened = f"Shortened to fit a ticket: each place says how many it leaves out, and … ends a text cut short; {IN_FULL}."
        cut = any(_CUT in part for part in head + body)
        return paragraphs([*head, shortened if cut else "", *body]).replace(_CUT, "") + "\n"

    def _incomplete(self, text: Text) -> str:
        coverage = self._audit.coverage
        if coverage.complete:
            return ""
        shown, more = first(coverage.gaps, min(_GAPS_ON_TOP, text.limits.listed))
        gaps = [f"{text.sentence(gap.what)}: {text.sentence(gap.why)}. {text.sentence(gap.remedy)}." for gap in shown]
        rest = [f"and {more} more, under Coverage"] if more else []
        return paragraphs(["**INCOMPLETE: this could not be read and is not in the numbers.**", bullets(gaps + rest)])

    def _actions(self, text: Text) -> str:
        shown, more = first(self._audit.actions, text.limits.actions)
        if not shown:
            return "No action is proposed."
        listed = "\n\n".join(self._action(text, number, action) for number, action in enumerate(shown, start=1))
        return paragraphs([listed, _more(more, "action")])

    def _action(self, text: Text, number: int, action: Action) -> str:
        what_for = "; ".join(part for part in (sections.cleared(action, self._findings), action.who) if part)
        commands, more = first(action.run, text.limits.listed)
        # Commands stand above, in blocks to copy.
        found = [(label, value) for label, value in actions.fields(action, self._audit) if label != "run"]
        fields, others = first(found, text.limits.listed)
        listed = bullets(f"{text.name(label)}: {text.sentence(value)}" for label, value in fields)
        cuts = [counted(more, "more command") if more else "", counted(others, "more field") if others else ""]
        body = paragraphs([*map(text.command, commands), listed, left_out(*cuts)])
        return f"- [ ] **{number}. {text.text(action.title)}** ({text.text(what_for)})\n\n{_indented(body)}".rstrip()

    def _workloads(self, text: Text) -> str:
        workloads = self._audit.workloads
        changed = [each for each in workloads if each.effect != "none"]
        shown, more = first(changed, text.limits.workloads)
        headers = (
            "",
            "Workload",
            "Kind",
            "Pods hit",
            "On",
            "CPU of full node",
            "vs system",
            "Split inside the pod",
            "If",
            "Known",
            "Also",
        )
        rows = []
        for each in shown:
            line = sections.line(each)
            also = Live("; ".join(map(text.text, line.others[: text.limits.listed])))
            cells = (line.pods, line.nodes, line.cpu, line.system, line.split, line.when, each.confidence, also)
            sign = Live(f"`{line.sign}`") if line.sign.strip() else ""
            rows.append((sign, each.title, each.kind, *cells))
        signs = {SIGNS[each.effect]: EFFECTS[each.effect] for each in reversed(shown) if SIGNS[each.effect].strip()}
        legend = ", ".join(f"`{sign}` {words}" for sign, words in reversed(signs.items()))
        rest = len(workloads) - len(changed)
        unchanged = (
            f"{counted(rest, 'workload')} of {len(workloads)} without a change above the thresholds." if rest else ""
        )
        return paragraphs(
            [text.table(headers, rows), f"{legend}." if legend else "", unchanged, _more(more, "workload")]
        )

    def _folds(self, text: Text) -> Iterable[str]:
        audit = self._audit
        yield folded("Findings by rule", self._rules(text))
        yield folded("Nodes", self._nodes(text))
        yield folded("Questions and commands", self._questions(text))
        yield folded("Not counted", self._apart(text))
        yield folded("Assumptions and thresholds", self._assumptions(text))
        yield folded("Coverage", self._coverage(text))
        formulas = bullets(f"{name}: `{formula}`: {users}." for name, formula, users in sections.FORMULAS)
        certainty = sections.CONFIDENCE_WORDS if audit.nodes else ""
        yield folded("Method", paragraphs([sections.METHOD, formulas, sections.WHY_NOMINAL, certainty]))

    def _rules(self, text: Text) -> str:
        shown, more = first(self._by_rule, text.limits.listed)
        away = sum(len(group.findings) for group in self._by_rule[len(shown) :])
        cut = left_out(f"{counted(more, 'more rule')} with {counted(away, 'finding')}") if more else ""
        return paragraphs([*(self._rule(text, group) for group in shown), cut])

    def _rule(self, text: Text, group: sections.RuleGroup) -> str:
        name = f"[{group.rule}]({group.page})" if group.page else text.name(group.rule)
        shown, more = first(group.findings, text.limits.findings)
        listed = bullets(self._finding(text, finding) for finding in shown)
        title = f"**{name} {text.name(group.name)}: {group.counts}**"
        return paragraphs([title, text.sentence(group.why), listed, _more(more, "finding")])

    def _finding(self, text: Text, finding: Finding) -> str:
        numbers = [number for number in self._numbers.get(finding.id, []) if number <= text.limits.actions]
        action = f" Action {', '.join(map(str, numbers))}." if numbers else ""
        lead = f"**{finding.severity}** ({finding.certainty}) {text.name(sections.subject(finding.subject))}"
        return f"{lead}: {text.sentence(finding.message or finding.title)}{action}"

    def _nodes(self, text: Text) -> str:
        shown, more = first(self._groups, text.limits.groups)
        headers = ("Nodes", "If", "cgroup", "Pods get", "system.slice gets", "Pods : system", "kubepods : system.slice")
        rows = [
            (self._names(text, group, 3), line.when, line.cgroup, line.pods, line.system, line.ratio, line.values)
            for group in shown
            for line in sections.case_lines(group.node)[: text.limits.listed]
        ]
        away = sum(len(group.nodes) for group in self._groups[len(shown) :])
        cut = left_out(f"{counted(more, 'more group')} with {counted(away, 'node')}") if more else ""
        known = [
            (self._names(text, group, 1), what, now, after, confidence, text.text(source))
            for group in shown
            for what, now, after, confidence, source in sections.known_lines(group.node)[: text.limits.listed]
        ]
        facts = text.table(("Nodes", "What", "Now", "After", "Known", "Source"), known)
        return paragraphs([text.table(headers, rows) or "No Linux node was audited.", cut, facts])

    def _names(self, text: Text, group: sections.NodeGroup, most: int) -> Live:
        count = f"{len(group.nodes)} nodes: " if len(group.nodes) > 1 else ""
        return Live(count + text.names(group.names, most))

    def _questions(self, text: Text) -> str:
        shown, more = first(self._audit.questions, text.limits.listed)
        listed = []
        for asked in shown:
            title, why = sections.question(asked, 3)
            ways = [
                paragraphs(
                    [
                        text.command(way.command),
                        text.sentence(f"{way.shows}.{f' Needs {way.needs}.' if way.needs else ''}"),
                    ]
                )
                for way in asked.commands
            ]
            states = paragraphs(["Then in the states file:", text.command(asked.states)]) if asked.states else ""
            listed.append(paragraphs([f"**{text.text(title)}**", text.sentence(why), *ways, states]))
        return paragraphs([*listed, _more(more, "question")])

    def _apart(self, text: Text) -> str:
        found = []
        for part in sections.apart(self._audit):
            shown, more = first(part.groups, text.limits.findings)
            lines = [f"Note: {text.sentence(note)}" for note in part.notes[: text.limits.listed]]
            for lead, subjects, reason in shown:
                why = f". Why: {text.sentence(reason)}" if reason else ""
                lines.append(f"**{text.text(lead)}**: {text.names(subjects, text.limits.findings)}{why}")
            found.append(
                paragraphs([f"**{part.title}**", text.sentence(part.text), bullets(lines), _more(more, "rule")])
            )
        return paragraphs(found)

    def _assumptions(self, text: Text) -> str:
        assumed, more = first(self._audit.target.assumptions, text.limits.listed)
        shown, others = first(sections.thresholds(self._audit), text.limits.listed)
        table = text.table(("Threshold", "Value", "Meaning"), shown)
        cuts = [counted(more, "more assumption") if more else "", counted(others, "more threshold") if others else ""]
        return paragraphs([bullets(map(text.sentence, assumed)), table, left_out(*cuts)])

    def _coverage(self, text: Text) -> str:
        coverage = self._audit.coverage
        shown, more = first(coverage.gaps, text.limits.listed)
        gaps = text.table(
            ("Not read", "Why", "What to do"),
            [(text.text(gap.what), text.text(gap.why), text.text(gap.remedy)) for gap in shown],
        )

        def names(every: Sequence[str]) -> str:
            return Live(text.names(every, text.limits.listed))

        apart = sections.coverage_facts(coverage, names)
        entries, others = first(apart, 2 * text.limits.listed)
        rows = [(what, value if isinstance(value, Live) else text.text(value)) for what, value in entries]
        facts = [(what, text.text(value)) for what, value in sections.facts(self._audit)]
        sure = [(f"How the {what} is known", value) for what, value in sections.sureness(self._audit.nodes)]
        noted, more_notes = first(sections.notes(coverage), text.limits.listed)
        cuts = [
            counted(more, "more gap") if more else "",
            counted(more_notes, "more note") if more_notes else "",
            counted(others, "more fact") if others else "",
        ]
        table = text.table(("What", "Value"), [*facts, *rows, *sure])
        return paragraphs([gaps, table, bullets(map(text.sentence, noted)), left_out(*cuts)])
