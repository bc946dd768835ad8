"""The table for a terminal: the result, the workloads that change, the actions, and the nodes."""

from collections.abc import Iterable, Iterator, Sequence

from tabulate import tabulate

from kubectl_cgaudit.audit.model import Audit, Finding, NodeRecord, Workload
from kubectl_cgaudit.report import actions
from kubectl_cgaudit.report.colour import paint
from kubectl_cgaudit.report.screen import PLAIN, Screen, columns, cut, middle, wrap
from kubectl_cgaudit.report.words import (
    SIGNS,
    arrow,
    asked,
    change,
    counted,
    kind,
    number,
    percents,
    split,
)

_MOST_WORKLOADS = 20
_MOST_ACTIONS = 4
_MOST_NODES = 10
_MOST_FINDINGS = 10
_LABEL = 9
_ARROW = "\N{NO-BREAK SPACE}->\N{NO-BREAK SPACE}"
_NAME = 44
_HEADS = ("WORKLOAD", "PODS HIT", "ON", "CPU OF FULL NODE", "VS SYS", "SPLIT INSIDE THE POD")
_SHORT_HEADS = ("WORKLOAD", "PODS", "ON", "FULL NODE", "SPLIT IN THE POD")
_MORE = "More: every finding -o wide; all actions -o markdown; the arithmetic explain NAMESPACE/POD"
_LEGEND = "- loses   + gains   ~ CPU moves between the pod's containers   ! may not run   ? unknown"


def table(audit: Audit, screen: Screen = PLAIN) -> str:
    """Return what matters most, in at most 60 lines for a small cluster."""
    return _table(audit, screen, wide=False)


def wide(audit: Audit, screen: Screen = PLAIN) -> str:
    """Return all workloads, findings, actions and nodes."""
    return _table(audit, screen, wide=True)


def _table(audit: Audit, screen: Screen, *, wide: bool) -> str:
    parts = [
        _result(audit, screen),
        _head(audit, screen),
        _workloads(audit, screen, wide=wide),
        _actions(audit, screen, wide=wide),
        _findings(audit, screen, wide=wide),
        _nodes(audit, screen, wide=wide),
        _apart(audit, screen, wide=wide),
        [] if wide else [wrap(_MORE, screen.width)],
    ]
    lines = "\n\n".join("\n".join(part) for part in parts if part)
    return screen.finished(f"{lines}\n")


def _labelled(label: str, text: str, screen: Screen) -> str:
    # What was and what will be stay on one line.
    whole = screen.shown(text).replace(" -> ", _ARROW)
    return wrap(whole, screen.width, f"{label:<{_LABEL}}", " " * _LABEL).replace(_ARROW, " -> ")


def _head(audit: Audit, screen: Screen) -> list[str]:
    coverage = audit.coverage
    read = "all read" if coverage.complete else "NOT ALL READ"
    counts = (
        f"{counted(coverage.nodes_audited, 'node')}, {counted(coverage.pods_audited, 'pod')}, "
        f"{counted(len(audit.workloads), 'workload')}, {read}"
    )
    named = [audit.cluster[key] for key in ("name", "context") if audit.cluster.get(key)]
    filtered = f"; only {coverage.filter}" if coverage.filter else ""
    files = coverage.source.split(", ")
    source = coverage.source if len(files) < 3 else counted(len(files), "file")
    return [
        _labelled("Target", f"{audit.target.description} ({asked(audit.target)})", screen),
        _labelled("Input", f"{counts}, from {', '.join([*named, source]) or 'the cluster'}{filtered}", screen),
        *([_labelled("Time", audit.time, screen)] if audit.time else []),
    ]


def _result(audit: Audit, screen: Screen) -> list[str]:
    severities = ", ".join(f"{count} {severity}" for severity, count in audit.verdict.findings.items() if count)
    found = [_labelled("RESULT", audit.verdict.sentence, screen)]
    if audit.actions and audit.actions[0].run and audit.actions[0].kind != "inspect":
        found.append(_labelled("", audit.actions[0].run[0], screen))
    found.append(_labelled("", f"Findings: {severities or 'none'}.", screen))
    found += [
        _labelled("", f"Not read: {gap.what}: {gap.why}. {gap.remedy}.", screen) for gap in audit.coverage.gaps[:3]
    ]
    if len(audit.coverage.gaps) > 3:
        found.append(_labelled("", f"{counted(len(audit.coverage.gaps) - 3, 'more gap')}: -o json has all.", screen))
    return found


def _workloads(audit: Audit, screen: Screen, *, wide: bool) -> list[str]:
    changing = [each for each in audit.workloads if each.effect not in ("nominal", "none")]
    shown = audit.workloads if wide else changing[:_MOST_WORKLOADS]
    if not shown:
        return []
    lines = _grid(*_fitted(_HEADS, [_row(each, screen) for each in shown], screen), screen)
    rest = len(audit.workloads) - len(shown)
    more = []
    if len(changing) > len(shown):
        more.append(f"{len(changing) - len(shown)} more change")
    if rest and len(audit.workloads) > len(changing) and not wide:
        more.append(f"{len(audit.workloads) - len(changing)} more stay below the thresholds")
    return [*lines, *([f"{'; '.join(more)}."] if more else []), wrap(_LEGEND, screen.width)]


def _row(workload: Workload, screen: Screen) -> tuple[str, ...]:
    share, against = workload.share, workload.against_system
    if workload.effect in ("loses", "stops", "may-stop") and workload.sure_share:
        share, against = workload.sure_share, workload.sure_loss
    if workload.effect == "gains":
        against = workload.against_system_best
    nodes = workload.nodes_hit
    where = nodes[0] if len(nodes) == 1 else counted(len(nodes), "node") if nodes else "-"
    pods = workload.pods + workload.unpredicted_pods
    return (
        f"{SIGNS[workload.effect]} {middle(screen.shown(f'{workload.title} {kind(workload.kind)}'), _NAME)}",
        f"{workload.pods_hit} of {pods}" if workload.effect not in ("nominal", "none") else str(pods),
        middle(screen.shown(where), 24),
        percents(share.before, share.after) if share else "-",
        change(against.change) if against else "-",
        screen.shown(split(workload.split)) if workload.split and "moves" in workload.effects else "",
    )


def _fitted(
    heads: Sequence[str], rows: Sequence[Sequence[str]], screen: Screen
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the columns of workloads for a screen: on a narrow one short heads, and no ratio."""
    if sum(max(map(columns, column)) + 2 for column in zip(heads, *rows, strict=True)) - 2 <= screen.width:
        return heads, rows
    kept = [place for place, head in enumerate(heads) if head != "VS SYS"]
    return _SHORT_HEADS, [[row[place] for place in kept] for row in rows]


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]], screen: Screen) -> list[str]:
    """Rows under their heads; where they are wider than the screen the longest texts are cut."""
    limits = [max(map(columns, column)) for column in zip(heads, *rows, strict=True)]
    while sum(limits) + 2 * (len(limits) - 1) > screen.width and max(limits) > 8:
        limits[limits.index(max(limits))] -= 1
    fitted = [[middle(cell, limit) for cell, limit in zip(row, limits, strict=True)] for row in rows]
    fitted_heads = [cut(head, limit) for head, limit in zip(heads, limits, strict=True)]
    # As a row: heads of their own are padded by two columns more.
    text = tabulate([fitted_heads, *fitted], tablefmt="plain", disable_numparse=True)
    return [line.rstrip() for line in text.splitlines()]


def _actions(audit: Audit, screen: Screen, *, wide: bool) -> list[str]:
    shown = audit.actions if wide else audit.actions[:_MOST_ACTIONS]
    if not shown:
        return []
    lines = ["ACTIONS"]
    for place, action in enumerate(shown, start=1):
        head = f"{place}. {action.title}  ({actions.whose(action, audit)})"
        lines.append(wrap(screen.shown(head), screen.width, "", "   "))
        # How else to find out is said by `nodes`.
        alternatives = wide or action.kind != "inspect"
        for label, text in actions.fields(action, audit):
            if label == "or" and not alternatives:
                continue
            lines.append(wrap(screen.shown(text), screen.width, f"   {label:<7} ", " " * 11))
    rest = len(audit.actions) - len(shown)
    return [*lines, *([f"{counted(rest, 'more action')}: -o wide, -o markdown"] if rest else [])]


def _findings(audit: Audit, screen: Screen, *, wide: bool) -> list[str]:
    """What the move causes, then what is so today; of few severities, unless all are asked for."""
    grave = [each for each in audit.findings if wide or each.severity in ("critical", "high", "medium")]
    told = [each for each in grave if wide or not _in_table(each, audit)]
    if not told:
        return []
    lines = []
    for head, found in (
        ("FINDINGS", [each for each in told if not each.today]),
        ("TRUE TODAY", [each for each in told if each.today]),
    ):
        if found:
            lines += [head, *_lines(found if wide else found[:_MOST_FINDINGS], screen)]
            if not wide and len(found) > _MOST_FINDINGS:
                lines.append(f"{counted(len(found) - _MOST_FINDINGS, 'more finding')}: -o wide")
    return lines


def _in_table(finding: Finding, audit: Audit) -> bool:
    """Whether the result or the workloads' rows say it already."""
    return finding.rule in ("CGA001", "CGA201", "CGA204") and bool(audit.workloads)


def _lines(findings: Iterable[Finding], screen: Screen) -> Iterator[str]:
    for each in findings:
        text = f"{each.severity} {each.rule} ({each.certainty}) {each.message}"
        yield paint(wrap(screen.shown(text), screen.width, "", "  "), colour=screen.colour)


def _nodes(audit: Audit, screen: Screen, *, wide: bool) -> list[str]:
    if not audit.nodes:
        return []
    groups: dict[tuple[str, ...], list[NodeRecord]] = {}
    for node in audit.nodes:
        groups.setdefault(_of_node(node), []).append(node)
    order = sorted(groups.items(), key=lambda entry: (not _changes(entry[1][0]), entry[1][0].name))
    shown = order if wide else order[:_MOST_NODES]
    heads = ("NODE", "CGROUP", "CPU FOR PODS", "PODS : SYSTEM", "CGROUP IS", "RUNTIME IS")
    rows = [
        (
            screen.shown(nodes[0].name if len(nodes) == 1 else f"{nodes[0].name} and {len(nodes) - 1} more"),
            *(screen.shown(cell) for cell in cells),
        )
        for cells, nodes in shown
    ]
    rest = len(order) - len(shown)
    return [
        *_grid(heads, rows, screen),
        *([f"{counted(rest, 'more group of nodes', 'more groups of nodes')}: -o wide"] if rest else []),
    ]


def _changes(node: NodeRecord) -> bool:
    first = node.cases[0]
    return (first.before.cgroup, first.before.pods_share) != (first.after.cgroup, first.after.pods_share)


def _of_node(node: NodeRecord) -> tuple[str, ...]:
    first = node.cases[0]
    runtimes = sorted({known.confidence for about, known in node.known.items() if about.startswith("runtime:")})
    return (
        arrow(first.before.cgroup, "does not come back" if first.stops else first.after.cgroup),
        percents(first.before.pods_share, first.after.pods_share),
        arrow(number(first.before.pods_per_system), number(first.after.pods_per_system)),
        node.known["cgroup"].confidence,
        ", ".join(runtimes) or "-",
    )


def _apart(audit: Audit, screen: Screen, *, wide: bool) -> list[str]:
    """What was set apart, and notes of what was read."""
    lines = []
    if audit.excepted:
        lines.append(
            f"{counted(len(audit.excepted), 'finding')} excepted by the policy and not counted"
            f"{':' if wide else ': -o wide lists them.'}"
        )
        for each in audit.excepted if wide else ():
            until = f", until {each.expires}" if each.expires else ""
            of = each.finding
            lines.append(f"- {of.severity} {of.rule} {of.subject.title}: {each.reason}{until} ({each.source})")
    if audit.baseline:
        lines.append(
            f"Against the baseline {audit.baseline.source}: {len(audit.findings)} new, {len(audit.known)} known, "
            f"{len(audit.fixed)} gone."
        )
        lines += list(audit.baseline.notes)
    lines += [*audit.coverage.notes, *audit.coverage.unmatched]
    return [wrap(screen.shown(line), screen.width, "", "  ") for line in lines]
