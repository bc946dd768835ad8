"""Markdown for change tickets: it reads on GitHub, on GitLab, and where a viewer knows no <details>.

A ticket takes no more than `MOST` characters, so a large cluster's report is cut; each cut says so.
"""

from collections.abc import Sequence

from kubectl_cgaudit.judge.audit import CONFIDENCES, Audit, Finding, WorkloadAudit
from kubectl_cgaudit.report import apart, by_rule, content, known, thresholds
from kubectl_cgaudit.report.appendix import Row
from kubectl_cgaudit.report.appendix import rows as appendix_rows
from kubectl_cgaudit.report.cuts import IN_FULL, Limits, first, fit
from kubectl_cgaudit.report.groups import grouped
from kubectl_cgaudit.report.inside import moving
from kubectl_cgaudit.report.links import finding_page
from kubectl_cgaudit.report.markdown_coverage import coverage, incomplete
from kubectl_cgaudit.report.markdown_tables import appendix, inside_pods, nodes, workloads
from kubectl_cgaudit.report.markdown_text import CUT, Live, Page, bold, bullets, folded, left_out, paragraphs
from kubectl_cgaudit.report.terms import TERMS
from kubectl_cgaudit.report.words import counted

MOST = 60_000
START = Limits(groups=40, workloads=150, cards=40, findings=15, containers=200, listed=30, text=1200)
_WHY_QUESTION = "“The blog says 39 becomes 100, so why does my share not change?”"


def render(audit: Audit) -> str:
    """The audit as a Markdown document of at most `MOST` characters."""
    groups, rules = grouped(audit.nodes), by_rule.rules(audit.findings, START.findings)
    rows, inside = _first_rows(audit.workloads, START.containers), moving(audit)
    sureness, set_apart = known.sureness(audit.nodes), apart.parts(audit)

    def draw(limits: Limits) -> str:
        page = Page(limits)
        head = [
            f"# CPU priority audit: now → {page.name(audit.scenario.to)}",
            bold(page.sentence(audit.verdict.sentence)),
            incomplete(page, audit.coverage),
        ]
        rest = [
            f"## Key facts\n\n{_facts(page, audit)}",
            f"## Next steps\n\n{_steps(page, audit.verdict.next_steps)}",
            f"## How sure\n\n{_sureness(page, audit, sureness)}",
            f"## Nodes\n\n{nodes(page, groups)}",
            f"## Workloads that change\n\n{workloads(page, audit.workloads)}",
            f"## CPU that moves inside pods\n\n{inside_pods(page, inside)}",
            f"## Findings\n\n{_findings(page, rules)}",
            _apart(page, set_apart),
            f"## Method\n\n{folded('What the numbers mean, and why 39 → 100 changes no share', _method())}",
            f"## Assumptions and thresholds\n\n{folded('What is taken for granted', _assumptions(page, audit))}",
            f"## Coverage\n\n{coverage(page, audit.coverage)}",
            f"## Every container\n\n{folded('Before and after', appendix(page, rows, audit.workloads))}",
            f"---\n\nkubectl-cgaudit {page.name(audit.tool_version)}{_generated(page, audit)}",
        ]
        cut = any(CUT in part for part in head + rest)
        return paragraphs([*head, _shortened() if cut else "", *rest]).replace(CUT, "") + "\n"

    return fit(draw, START, MOST)


def _first_rows(every: Sequence[WorkloadAudit], most: int) -> list[Row]:
    """All rows of the first workloads, until there are `most` of them. The rest is never made."""
    found: list[Row] = []
    for row in appendix_rows(every):
        if len(found) >= most and row.workload is not found[-1].workload:
            break
        found.append(row)
    return found


def _shortened() -> str:
    return f"Shortened to fit a ticket: each place says how many it leaves out, and … ends a text cut short; {IN_FULL}."


def _generated(page: Page, audit: Audit) -> str:
    return f", {page.name(audit.generated_at)}" if audit.generated_at is not None else ""


def _facts(page: Page, audit: Audit) -> str:
    rows = [(Live(f"**{what}**"), page.text(value)) for what, value in content.facts(audit)]
    return page.table(("Key fact", "Value"), rows)


def _steps(page: Page, steps: Sequence[str]) -> str:
    shown, more = first(steps, page.limits.listed)
    numbered = "\n".join(f"{index}. {page.sentence(step)}" for index, step in enumerate(shown, start=1))
    return paragraphs([numbered or "No finding asks for a step.", left_out(counted(more, "more step") if more else "")])


def _sureness(page: Page, audit: Audit, sureness: Sequence[tuple[str, tuple[int, ...]]]) -> str:
    headers = ("Number of nodes where it is", *CONFIDENCES)
    table = page.table(headers, [(what, *map(str, amounts)) for what, amounts in sureness])
    open_ = content.unsettled(audit.workloads)
    return paragraphs([f"**{open_}** That {content.UNKNOWN_NOTE}" if open_ else "", table, TERMS["how sure"]])


def _findings(page: Page, rules: Sequence[by_rule.RuleGroup]) -> str:
    shown, more = first(rules, page.limits.listed)
    away = sum(group.amount for group in rules[len(shown) :])
    cut = left_out(f"{counted(more, 'more rule')} with {counted(away, 'finding')}" if more else "")
    return paragraphs([*(_rule(page, group) for group in shown), cut]) or "None."


def _rule(page: Page, group: by_rule.RuleGroup) -> str:
    place = finding_page(group.rule)
    name = f"[{group.rule}]({place})" if place else page.name(group.rule)
    shown, more = by_rule.within(group, page.limits.findings)
    answered = [
        f"{bullets(_finding(page, finding) for finding in each.findings)}\n\n**What to do:** {page.sentence(each.remedy)}"
        for each in shown
    ]
    cut = left_out(counted(more, "more finding") if more else "")
    return paragraphs(
        [
            f"### {name} {page.name(group.title)}: {group.counts}",
            page.sentence(group.why),
            folded(f"{counted(group.amount, 'finding')}, and what to do", paragraphs([*answered, cut])),
        ]
    )


def _finding(page: Page, finding: Finding) -> str:
    about = by_rule.subject(finding)
    lead = f"{finding.severity}, {page.name(about)}" if about else finding.severity
    return f"{bold(lead)}: {page.sentence(finding.seen)}"


def _apart(page: Page, every: Sequence[apart.Apart]) -> str:
    """What does not count, and why."""
    said = []
    for part in every:
        shown, more = first(part.groups, page.limits.findings)
        lines = [f"Note: {page.sentence(note)}" for note in part.notes]
        for group in shown:
            reason = f". Why: {page.sentence(group.reason)}" if group.reason else ""
            subjects = page.names(group.subjects, page.limits.findings)
            lines.append(f"{bold(page.text(group.lead))}: {subjects}{reason}")
        away = sum(max(len(group.subjects) - page.limits.findings, 0) for group in part.groups)
        cut = left_out(counted(more, "more rule") if more else "", counted(away, "more subject") if away else "")
        said.append(paragraphs([f"### {part.title}", page.sentence(part.said), bullets(lines), cut]))
    return paragraphs(["## Not counted", *said]) if said else ""


def _method() -> str:
    formulas = bullets(f"**{name}**: `{formula}`: {users}." for name, formula, users in content.FORMULAS)
    return paragraphs([content.METHOD, formulas, f"**{_WHY_QUESTION}** {content.WHY_NOMINAL}"])


def _assumptions(page: Page, audit: Audit) -> str:
    assumed, more = first(audit.scenario.assumptions, page.limits.listed)
    shown, others = first(thresholds.rows(audit), page.limits.listed)
    return paragraphs(
        [
            bullets(map(page.sentence, assumed)),
            page.table(("Threshold", "Value", "Meaning"), shown),
            left_out(
                counted(more, "more assumption") if more else "", counted(others, "more threshold") if others else ""
            ),
        ]
    )
