"""Markdown for change tickets, as GitHub and GitLab render it. The HTML page says the same, in the same order."""

from collections.abc import Iterable, Sequence

from kubectl_cgaudit.judge.audit import (
    CONFIDENCES,
    Audit,
    Coverage,
    Effect,
    Finding,
    NodeAudit,
    WorkloadAudit,
)
from kubectl_cgaudit.report import content
from kubectl_cgaudit.report.escape import markdown, prose, shorten, visible
from kubectl_cgaudit.report.words import (
    against_system,
    arrow,
    counted,
    percent,
)


class _Live(str):
    """Text that is Markdown already; any other string is escaped when it goes into a table."""

    __slots__ = ()


def render(audit: Audit) -> str:
    """The audit as a Markdown document."""
    parts = [
        f"# CPU priority audit: now → {_cell(audit.scenario.to)}",
        f"**{_prose(audit.verdict.sentence)}**",
        _incomplete(audit.coverage),
        "## Next steps",
        _steps(audit),
        "## Key facts",
        _table(("", ""), [(_Live(f"**{what}**"), _text(value)) for what, value in content.facts(audit)]),
        "## How sure",
        _sureness(audit),
        "## Nodes",
        _nodes(audit.nodes),
        "## Workloads",
        _workloads(audit.workloads),
        "## Findings",
        _findings(audit.findings),
        "## Method",
        _method(),
        "## Assumptions and thresholds",
        _assumptions(audit),
        "## Coverage",
        _coverage(audit.coverage),
        "## Every container",
        _appendix(audit.workloads),
        f"---\n\nkubectl-cgaudit {_cell(audit.tool_version)}{_generated(audit)}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _cell(text: str) -> str:
    return markdown(shorten(visible(_arrowed(text)), content.LONGEST_NAME))


def _text(text: str) -> _Live:
    """A cell that may hold more than a name."""
    return _Live(markdown(shorten(visible(_arrowed(text)), content.LONGEST_TEXT)))


def _prose(text: str) -> str:
    return prose(shorten(visible(_arrowed(text)), content.LONGEST_TEXT))


def _arrowed(text: str) -> str:
    """`->` as one character, as `>` must be escaped and `-&gt;` is no joy to read in a ticket."""
    return text.replace(" -> ", " → ")


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell if isinstance(cell, _Live) else _cell(cell) for cell in cells)} |"


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, without the columns that are empty in every row."""
    body = list(rows)
    used = [index for index in range(len(headers)) if any(row[index] for row in body)]
    lines = [_row(row[index] for index in used) for row in [headers, *body]]
    return "\n".join([lines[0], f"|{' --- |' * len(used)}", *lines[1:]]) if body else ""


def _details(summary: str, body: str) -> str:
    """A part that opens on a click; the summary is our own words only, as HTML is read there and not Markdown."""
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>" if body else ""


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _generated(audit: Audit) -> str:
    return f", {_cell(audit.generated_at)}" if audit.generated_at is not None else ""


def _incomplete(coverage: Coverage) -> str:
    if coverage.complete:
        return ""
    gaps = _list(f"{_prose(gap.what)}: {_prose(gap.why)}. {_prose(gap.remedy)}." for gap in coverage.gaps)
    return f"**INCOMPLETE: this could not be read, and is not in the numbers.**\n\n{gaps}".rstrip()


def _steps(audit: Audit) -> str:
    steps = [f"{index}. {_prose(step)}" for index, step in enumerate(audit.verdict.next_steps, start=1)]
    return "\n".join(steps) or "No finding asks for a step."


def _sureness(audit: Audit) -> str:
    headers = ("Number of nodes where it is", *CONFIDENCES)
    table = _table(headers, [(what, *map(str, amounts)) for what, amounts in content.sureness(audit.nodes)])
    open_ = audit.verdict.workloads.get("unknown", 0)
    note = (
        f"**For {counted(open_, 'workload')} the effect cannot be said.** That {content.UNKNOWN_NOTE}" if open_ else ""
    )
    return "\n\n".join(part for part in (table, note) if part)


def _nodes(nodes: Sequence[NodeAudit]) -> str:
    if not nodes:
        return "No Linux node was audited."
    headers = (
        "Node",
        "If",
        "cgroup",
        "kubepods : system.slice",
        "Pods : system",
        "CPU for pods",
        "CPU for system.slice",
    )
    rows = [
        (
            node.name,
            when,
            arrow(case.before.cgroup, case.after.cgroup),
            content.root_values(case),
            content.ratios(case),
            arrow(percent(case.before.pods_share), percent(case.after.pods_share)),
            arrow(percent(case.before.system_share), percent(case.after.system_share)),
        )
        for node in nodes
        for when, case in content.node_cases(node)
    ]
    legend = "CPU as a fraction of the node's when everything wants CPU."
    return "\n\n".join([_table(headers, rows), legend, _known(nodes), _described(nodes)])


def _known(nodes: Sequence[NodeAudit]) -> str:
    headers = ("Node", "What", "Now", "After", "How sure", "From")
    rows = [
        (node.name, what, _open(value, confidence), after, _open(confidence, confidence), _text(source))
        for node in nodes
        for what, value, after, confidence, source in content.known_rows(node)
    ]
    return _details("What is known of each node, and on what ground", _table(headers, rows))


def _open(text: str, confidence: str) -> str:
    return _Live(f"**{_cell(text)}**") if confidence == "unknown" else text


def _described(nodes: Sequence[NodeAudit]) -> str:
    headers = ("Node", "kubelet", "Container runtime", "OS", "Kernel", "Allocatable CPU", "Pods", "Hints")
    rows = [
        (
            node.name,
            node.kubelet_version,
            node.container_runtime,
            node.os_image,
            node.kernel,
            f"{node.allocatable_milli}m",
            str(node.pod_count),
            _text("; ".join(node.hints)),
        )
        for node in nodes
    ]
    return _details("What the API says of each node", _table(headers, rows))


def _workloads(workloads: Sequence[WorkloadAudit]) -> str:
    if not workloads:
        return "No workload was audited: nothing can be said about workloads."
    headers = (
        "Workload",
        "Kind",
        "Pods",
        "Effect",
        "How sure",
        "Against system",
        "CPU of the node, where it changes most",
        "Inside the pod",
        "Nominal, no CPU share",
    )
    rows = [
        (
            workload.title,
            workload.kind,
            content.pods(workload),
            _strong(content.effect_words(workload), workload.effect),
            workload.confidence,
            against_system(workload),
            content.share(workload),
            content.inside(workload),
            _Live("<br>".join(map(_cell, content.nominals(workload))) or "?"),
        )
        for workload in workloads
    ]
    return f"{_table(headers, rows)}\n\n{' '.join(content.WORKLOAD_LEGEND)}"


def _strong(text: str, effect: Effect) -> str:
    return _Live(f"**{_cell(text)}**") if effect in ("stops", "loses", "unknown") else text


def _findings(findings: Sequence[Finding]) -> str:
    return "\n\n".join(_rule(group) for group in content.rules(findings)) or "None."


def _rule(group: content.RuleGroup) -> str:
    head = f"### {_cell(group.rule)} {_cell(group.title)}: {group.counts}\n\n{_prose(group.why)}"
    return "\n\n".join([head, *map(_remedied, group.groups)])


def _remedied(group: content.Remedied) -> str:
    seen = _list(f"**{_lead(finding)}**: {_prose(finding.seen)}" for finding in group.findings)
    return f"{seen}\n\n  What to do: {_prose(group.remedy)}"


def _lead(finding: Finding) -> str:
    about = content.subject(finding)
    return f"{finding.severity}, {_cell(about)}" if about else finding.severity


def _method() -> str:
    formulas = _list(f"**{name}**: `{formula}`: {users}." for name, formula, users in content.FORMULAS)
    return f"{content.METHOD}\n\n{formulas}\n\n**Why a nominal 39 → 100 does not change a CPU share.** {content.WHY_NOMINAL}"


def _assumptions(audit: Audit) -> str:
    table = _table(("Threshold", "Value", "Meaning"), content.thresholds(audit))
    return "\n\n".join(part for part in (_list(map(_prose, audit.scenario.assumptions)), table) if part)


def _coverage(coverage: Coverage) -> str:
    state = "**INCOMPLETE**" if not coverage.complete else "Complete: everything that was asked for was read."
    gaps = _table(
        ("Not read", "Why", "What to do"),
        [(_Live(f"**{_text(gap.what)}**"), _text(gap.why), _text(gap.remedy)) for gap in coverage.gaps],
    )
    facts_ = _list(f"{_cell(what)}: {prose(value)}" for what, value in content.coverage_facts(coverage))
    notes = _list(f"Note: {_prose(note)}" for note in content.notes(coverage))
    return "\n\n".join(part for part in (state, gaps, facts_, notes) if part)


def _appendix(workloads: Sequence[WorkloadAudit]) -> str:
    headers = (
        "Pod",
        "Container",
        "Node",
        "If",
        "Nominal (x default)",
        "CPU of the node",
        "x system.slice",
        "Of its pod",
        "Quota",
    )
    rows = [row for workload in workloads for row in _container_rows(workload)]
    return _details("Every pod and container, before and after", _table(headers, rows))


def _container_rows(workload: WorkloadAudit) -> Iterable[tuple[str, ...]]:
    for pod in workload.pods:
        parts = [("(pod)", pod.cases), *((f"{c.name} ({c.role})", c.cases) for c in pod.containers)]
        for name, cases in parts:
            for when, case in content.changes(cases):
                yield (
                    f"{workload.namespace}/{pod.name}",
                    name,
                    pod.node,
                    when,
                    content.nominal_change(case),
                    arrow(percent(case.before.share), percent(case.after.share)),
                    content.times_system(case),
                    "" if name == "(pod)" else arrow(percent(case.before.in_pod), percent(case.after.in_pod)),
                    content.quota_change(case),
                )
