"""The terminal's table: the worst first, in 80 columns; `wide` with every workload and number."""

import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec
from tabulate import tabulate

from kubectl_cgaudit.judge.audit import EFFECTS, Audit, Coverage, Finding, NodeAudit, NodeCase, WorkloadAudit
from kubectl_cgaudit.judge.condition import condition
from kubectl_cgaudit.report import content
from kubectl_cgaudit.report.escape import shorten, visible
from kubectl_cgaudit.report.words import (
    KIND_LETTERS,
    against_system,
    arrow,
    counted,
    named,
    nominal,
    number,
    percent,
    ratio_to_system,
)

_WIDTH = 80
_WIDE = 160
_MOST_ROWS = 25
_NAME = 28
_MOST_NODES = 15
_ALWAYS_SAID = {"CGA103"}
HOW_TO_READ = (
    "A container competes only inside its pod, and pods carry the kubelet's weight: a new runc or crun changes no pod's CPU, "
    "only the split inside it. Against system processes the cgroup version and the reserves decide. "
    "`kubectl cgaudit explain NAMESPACE/POD` shows the arithmetic."
)


def render(audit: Audit) -> str:
    """The audit in 80 columns, for a person at a terminal."""
    return _render(audit, wide=False)


def render_wide(audit: Audit) -> str:
    """The audit with every workload, its containers' nominal weights and its shares."""
    return _render(audit, wide=True)


def _render(audit: Audit, *, wide: bool) -> str:
    width = _WIDE if wide else _WIDTH
    parts = [
        _head(audit, width),
        _nodes(audit.nodes, wide=wide),
        _system_slice(audit.nodes, width),
        _workloads(audit.workloads, wide=wide),
        _wrap(HOW_TO_READ, width),
        _findings(audit.findings, width, wide=wide),
        _steps(audit, width),
        _coverage(audit.coverage, width),
        _assumptions(audit, width) if wide else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _wrap(text: str, width: int, first: str = "", rest: str = "") -> str:
    return textwrap.fill(
        visible(text),
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=True,
    )


def _head(audit: Audit, width: int) -> str:
    coverage = audit.coverage
    what = f"{counted(coverage.nodes_audited, 'node')}, {counted(coverage.pods_audited, 'pod')}, "
    what += counted(len(audit.workloads), "workload")
    dated = f", {audit.generated_at}" if audit.generated_at else ""
    lines = [
        _wrap(f"now -> {audit.scenario.to}: {audit.scenario.description}", width),
        _wrap(f"{what} from {coverage.source}{dated}", width),
        "",
        _wrap(audit.verdict.sentence, width),
    ]
    return "\n".join(lines)


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    align = ["right" if column in right else "left" for column in range(len(headers))]
    text = tabulate(list(rows), headers, tablefmt="plain", disable_numparse=True, colalign=align)
    return "\n".join(line.rstrip() for line in text.splitlines())


def _nodes(nodes: Sequence[NodeAudit], *, wide: bool) -> str:
    equal: dict[bytes, tuple[NodeAudit, list[str]]] = {}
    for node in nodes:
        same = msgspec.json.encode((node.cases, node.confidence))
        equal.setdefault(same, (node, []))[1].append(node.name)
    groups = list(equal.values())
    shown = groups if wide else groups[:_MOST_NODES]
    rows = [row for node, names in shown for row in _rows(names, node, wide=wide)]
    headers = ["NODE", "CGROUP", "PODS : SYSTEM", "CPU FOR PODS", "SURE", "WHEN"]
    if wide:
        headers[3:3] = ["KUBEPODS : SYSTEM.SLICE", "KUBELET", "RUNTIMES"]
    if not any(row[-1] for row in rows):
        headers, rows = headers[:-1], [row[:-1] for row in rows]
    hidden = len(groups) - _MOST_NODES
    more = f"\nand {counted(hidden, 'more group')} of nodes: see -o wide" if hidden > 0 and not wide else ""
    return _table(headers, rows) + more


def _system_slice(nodes: Sequence[NodeAudit], width: int) -> str:
    """Which numbers rest on a weight of system.slice that nobody measured or said."""
    assumed = [node.name for node in nodes if node.known["system_slice"].confidence == "hint"]
    if not assumed:
        return ""
    where = "every node" if len(assumed) == len(nodes) else named(assumed, 5)
    return _wrap(f"SURE leaves out system.slice, whose weight is assumed to be the default on {where}.", width)


def _rows(names: Sequence[str], node: NodeAudit, *, wide: bool) -> Iterable[list[str]]:
    """A row for each outcome; cases with the same outcome share one."""
    outcomes: dict[tuple[str, ...], list[str]] = {}
    for case in node.cases:
        outcomes.setdefault(_cells(case, wide=wide), []).append(case.when)
    every = [case.when for case in node.cases]
    name = visible(named(names, 20)) if wide else shorten(visible(named(names, 1)), _NAME - 10)
    for index, (cells, whens) in enumerate(outcomes.items()):
        when = condition(whens, every)
        first = index == 0
        yield [name if first else "", *cells, node.confidence if first else "", when if wide else shorten(when, 26)]


def _cells(case: NodeCase, *, wide: bool) -> tuple[str, ...]:
    before, after = case.before, case.after
    cells = [
        f"{before.cgroup} -> {after.cgroup}",
        arrow(ratio_to_system(before), ratio_to_system(after)),
        arrow(percent(before.pods_share), percent(after.pods_share)),
    ]
    if wide:
        values = arrow(f"{before.kubepods} : {before.system_slice}", f"{after.kubepods} : {after.system_slice}")
        runtimes = ", ".join(
            f"{handler}: {arrow(runtime, after.runtimes[handler])}" for handler, runtime in before.runtimes.items()
        )
        cells[2:2] = [values, arrow(before.kubelet, after.kubelet), visible(runtimes)]
    return tuple(cells)


def _workloads(workloads: Sequence[WorkloadAudit], *, wide: bool) -> str:
    if not workloads:
        return ""
    shown = list(workloads) if wide else [w for w in workloads if w.effect != "none"][:_MOST_ROWS]
    if wide:
        headers = [
            "WORKLOAD",
            "PODS",
            "EFFECT",
            "AGAINST SYSTEM",
            "WORST POD",
            "CPU OF NODE",
            "INSIDE POD",
            "NOMINAL WEIGHT",
        ]
        rows = [_wide_row(workload) for workload in shown]
    else:
        headers = ["WORKLOAD", "PODS", "EFFECT", "VS SYSTEM", "INSIDE POD"]
        rows = _narrow([_row(workload) for workload in shown], headers)
    hidden = len(workloads) - len(shown)
    unchanged = sum(workload.effect == "none" for workload in workloads)
    counts = [f"{counted(unchanged, 'workload')} unchanged"] if unchanged and not wide else []
    if not wide and hidden > unchanged:
        counts.append(f"{hidden - unchanged} more that change")
    note = f"\n{', '.join(counts)}: -o wide lists all." if counts else ""
    return (_table(headers, rows, right=(1,)) if rows else "") + note


def _title(workload: WorkloadAudit) -> str:
    kind = KIND_LETTERS.get(workload.kind, workload.kind.lower())
    return visible(f"{workload.namespace}/{workload.name} {kind}")


def _effect(workload: WorkloadAudit) -> str:
    return ", ".join(effect for effect in workload.effects if effect != "nominal") or workload.effect


def _pods(workload: WorkloadAudit) -> str:
    return (
        f"{workload.pod_count}+{workload.unpredicted_pods}?" if workload.unpredicted_pods else str(workload.pod_count)
    )


def _row(workload: WorkloadAudit) -> list[str]:
    return [
        middle(_title(workload), _NAME),
        _pods(workload),
        shorten(_effect(workload), 16),
        against_system(workload),
        visible(_inside(workload)),
    ]


def _inside(workload: WorkloadAudit) -> str:
    """The container that loses most of its pod's CPU; nothing where none does."""
    said = content.inside(workload)
    return "" if said in ("0%", "?") else said


def middle(text: str, most: int) -> str:
    """The text in at most `most` characters, cut in the middle: its end tells apart what begins alike."""
    if len(text) <= most:
        return text
    tail = (most - 1) * 2 // 3
    return f"{text[: most - 1 - tail]}…{text[-tail:]}"


def _narrow(rows: list[list[str]], headers: Sequence[str]) -> list[list[str]]:
    """The rows with their last column cut to what the others leave of the width: names give way, numbers do not."""
    others = _table([*headers[:-1], ""], [[*row[:-1], "x"] for row in rows], right=(1,)).splitlines()
    left = max(_WIDTH - max((len(line) for line in others[1:]), default=0) + 1, len(headers[-1]))
    return [[*row[:-1], _fitted(row[-1], left)] for row in rows]


def _fitted(text: str, most: int) -> str:
    name, _, numbers = text.rpartition(" ")
    return text if len(text) <= most else f"{shorten(name, max(most - len(numbers) - 1, 2))} {numbers}"


def _wide_row(workload: WorkloadAudit) -> list[str]:
    change, share = workload.against_system, workload.share
    worst = f"{number(change.before)} -> {number(change.after)} ({change.pod} on {change.node})" if change else "?"
    return [
        _title(workload),
        _pods(workload),
        ", ".join(workload.effects) or "none",
        workload.confidence,
        against_system(workload),
        visible(worst),
        arrow(percent(share.before), percent(share.after)) if share else "?",
        visible(_inside(workload)),
        visible("; ".join(f"{change.container}: {nominal(change)}" for change in workload.nominal)),
    ]


def _findings(findings: Sequence[Finding], width: int, *, wide: bool) -> str:
    if not findings:
        return ""
    lines = []
    for (severity, rule, title), group in groupby(findings, lambda f: (f.severity, f.rule, f.title)):
        members = list(group)
        lines.append(f"{severity:8} {rule} {title}: {counted(len(members), members[0].subject.kind)}")
        if wide:
            lines += [
                _wrap(f"{member.subject.title}{_when(member)}: {member.seen}", width, " " * 9, " " * 11)
                for member in members
            ]
        else:
            names = named([member.subject.title + _when(member) for member in members], 4)
            lines.append(_wrap(names, width, " " * 9, " " * 9))
            if severity != "low" or rule in _ALWAYS_SAID:
                lines.append(_wrap(members[0].seen, width, " " * 9, " " * 9))
    return "FINDINGS\n" + "\n".join(lines)


def _when(finding: Finding) -> str:
    return f" ({finding.when})" if finding.when else ""


def _steps(audit: Audit, width: int) -> str:
    lines = [_wrap(step, width, f"{number}. ", "   ") for number, step in enumerate(audit.verdict.next_steps, start=1)]
    return "WHAT TO DO\n" + "\n".join(lines) if lines else ""


def _coverage(coverage: Coverage, width: int) -> str:
    lines = [f"INCOMPLETE: {gap.what}: {gap.why}. {gap.remedy}." for gap in coverage.gaps]
    lines += (
        [f"Only {coverage.filter} is reported; the other pods are read as its siblings."] if coverage.filter else []
    )
    apart = (
        (coverage.windows_nodes, f"Windows nodes have no cgroups ({counted(coverage.pods_on_windows_nodes, 'pod')})"),
        (coverage.virtual_nodes, f"Virtual nodes have no kubelet ({counted(coverage.pods_on_virtual_nodes, 'pod')})"),
        (coverage.pods_without_node, "Pods without a node are not predicted"),
    )
    lines += [f"{what}: {named(names, 5)}." for names, what in apart if names]
    lines += [f"{kind} names are {how}." for kind, how in coverage.workload_names.items() if how.startswith("derived")]
    if coverage.ignored_kinds:
        ignored = ", ".join(f"{count} {kind}" for kind, count in coverage.ignored_kinds.items())
        lines.append(f"Not used: {ignored}.")
    if coverage.duplicates:
        lines.append(f"{counted(coverage.duplicates, 'object')} stood in the input more than once.")
    lines += [f"{note}." for note in coverage.notes]
    return "COVERAGE\n" + "\n".join(_wrap(line, width, "", "  ") for line in lines) if lines else ""


def _assumptions(audit: Audit, width: int) -> str:
    thresholds = ", ".join(f"{name} {number(value)}" for name, value in audit.scenario.thresholds.items())
    effects = f"Effects, strongest first: {', '.join(EFFECTS)}."
    lines = [*audit.scenario.assumptions, f"Thresholds: {thresholds}.", effects]
    return "ASSUMPTIONS\n" + "\n".join(_wrap(line, width, "", "  ") for line in lines)
