"""The terminal's table: the worst first, in the screen's width; `wide` with every workload and number."""

from collections.abc import Sequence
from itertools import groupby

from kubectl_cgaudit.judge.audit import EFFECTS, Audit, Coverage, Finding
from kubectl_cgaudit.report import apart, table_nodes, table_workloads
from kubectl_cgaudit.report.colour import paint
from kubectl_cgaudit.report.screen import PLAIN, Screen, wrap
from kubectl_cgaudit.report.words import counted, named, number

_WIDE = 160
_ALWAYS_SAID = {"CGA002", "CGA103"}
HOW_TO_READ = (
    "A container competes only inside its pod, and pods carry the kubelet's weight: a new runc or crun changes no pod's CPU, "
    "only the split inside it. Against system processes the cgroup version and the reserves decide. "
    "`kubectl cgaudit explain NAMESPACE/POD` shows the arithmetic."
)


def render(audit: Audit, screen: Screen = PLAIN) -> str:
    """The audit in the screen's width, for a person at a terminal; a wider screen shows more columns."""
    return _Table(screen, screen.width, wide=False).render(audit)


def render_wide(audit: Audit, screen: Screen = PLAIN) -> str:
    """The audit with every workload, its containers' nominal weights and its shares; lines as long as they get."""
    return _Table(screen, _WIDE, wide=True).render(audit)


class _Table:
    """What every part of the table needs: the screen, the width of prose, and whether everything is wanted."""

    def __init__(self, screen: Screen, width: int, *, wide: bool) -> None:
        self.screen = screen
        self.width = width
        self.wide = wide

    def render(self, audit: Audit) -> str:
        wide, screen = self.wide, self.screen
        parts = [
            self.head(audit),
            table_nodes.wide(audit.nodes, screen) if wide else table_nodes.narrow(audit.nodes, screen),
            self.wrap(table_nodes.system_slice(audit.nodes)),
            table_workloads.wide(audit.workloads, screen) if wide else table_workloads.narrow(audit.workloads, screen),
            self.wrap(HOW_TO_READ),
            self.findings(audit.findings),
            self.apart(audit),
            self.steps(audit),
            self.coverage(audit.coverage),
            self.assumptions(audit) if wide else "",
        ]
        return screen.finished("\n\n".join(part for part in parts if part) + "\n")

    def wrap(self, text: str, first: str = "", rest: str = "") -> str:
        return wrap(self.screen.shown(text), self.width, first, rest)

    def paint(self, text: str) -> str:
        return paint(text, colour=self.screen.colour)

    def head(self, audit: Audit) -> str:
        coverage = audit.coverage
        what = f"{counted(coverage.nodes_audited, 'node')}, {counted(coverage.pods_audited, 'pod')}, "
        what += counted(len(audit.workloads), "workload")
        dated = f", {audit.generated_at}" if audit.generated_at else ""
        lines = [
            self.wrap(f"now -> {audit.scenario.to}: {audit.scenario.description}"),
            self.wrap(f"{what} from {coverage.source}{dated}"),
            "",
            self.wrap(audit.verdict.sentence),
        ]
        return "\n".join(lines)

    def findings(self, findings: Sequence[Finding]) -> str:
        if not findings:
            return ""
        lines = []
        for (severity, rule, title), group in groupby(findings, lambda f: (f.severity, f.rule, f.title)):
            members = list(group)
            counts = counted(len(members), members[0].subject.kind)
            headline = self.wrap(f"{rule} {title}: {counts}", " " * 9, " " * 9)
            lines.append(f"{self.paint(severity)}{headline[len(severity) :]}")
            if self.wide:
                lines += [
                    self.wrap(f"{member.subject.title}{_when(member)}: {member.seen}", " " * 9, " " * 11)
                    for member in members
                ]
                continue
            lines.append(self.wrap(named([m.subject.title + _when(m) for m in members], 4), " " * 9, " " * 9))
            if severity != "low" or rule in _ALWAYS_SAID:
                lines.append(self.wrap(members[0].seen, " " * 9, " " * 9))
        return "FINDINGS\n" + "\n".join(lines)

    def apart(self, audit: Audit) -> str:
        lines = []
        for part in apart.parts(audit):
            lines += [self.wrap(text, "", "  ") for text in (part.said, *part.notes)]
            for group in part.groups:
                names = ", ".join(group.subjects) if self.wide else named(group.subjects, 4)
                reason = f". Why: {group.reason}" if group.reason else ""
                lines.append(self.wrap(f"{group.lead}: {names}{reason}", "- ", "  "))
        return "NOT COUNTED\n" + "\n".join(lines) if lines else ""

    def steps(self, audit: Audit) -> str:
        lines = [self.wrap(step, f"{place}. ", "   ") for place, step in enumerate(audit.verdict.next_steps, start=1)]
        return "WHAT TO DO\n" + "\n".join(lines) if lines else ""

    def coverage(self, coverage: Coverage) -> str:
        gaps = [self.wrap(f"INCOMPLETE: {gap.what}: {gap.why}. {gap.remedy}.", "", "  ") for gap in coverage.gaps]
        label = len("INCOMPLETE")
        lines = [self.paint(text[:label]) + text[label:] for text in gaps]
        lines += [self.wrap(line, "", "  ") for line in _reading(coverage)]
        return "COVERAGE\n" + "\n".join(lines) if lines else ""

    def assumptions(self, audit: Audit) -> str:
        thresholds = ", ".join(f"{name} {number(value)}" for name, value in audit.scenario.thresholds.items())
        effects = f"Effects, strongest first: {', '.join(EFFECTS)}."
        lines = [*audit.scenario.assumptions, f"Thresholds: {thresholds}.", effects]
        return "ASSUMPTIONS\n" + "\n".join(self.wrap(line, "", "  ") for line in lines)


def _when(finding: Finding) -> str:
    return f" ({finding.when})" if finding.when else ""


def _reading(coverage: Coverage) -> list[str]:
    lines = [f"Only {coverage.filter} is reported; the other pods are read as its siblings."] if coverage.filter else []
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
    return lines + [f"{note}." for note in coverage.notes]
