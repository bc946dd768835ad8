"""The terminal's table: the worst first, in the screen's width; `wide` with every workload and number."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from kubectl_cgaudit.judge.audit import EFFECTS, Audit, Coverage, Finding
from kubectl_cgaudit.judge.findings import faces
from kubectl_cgaudit.report import apart, table_nodes, table_workloads, thresholds
from kubectl_cgaudit.report.colour import paint
from kubectl_cgaudit.report.pieces import Pieces, together
from kubectl_cgaudit.report.screen import PLAIN, Screen, wrap
from kubectl_cgaudit.report.words import counted, named

_WIDE = 160
_NAMED = 4
_ALWAYS_SAID = {"CGA002", "CGA103"}
_COUNTED = {"CGA001": "gap", "CGA002": "exception"}
"""What the findings of a rule are about, where that is no part of the cluster."""
_LOW = "What was seen of the low ones: -o wide; what to do about each: -o markdown or html."
_OVERRIDDEN = "Only possible, where a default was overridden:"
HOW_TO_READ = (
    "A container competes only inside its pod, and pods carry the kubelet's weight: a new runc or crun changes no pod's CPU, "
    "only the split inside it. Against system processes the cgroup version and the reserves decide. "
    "`kubectl cgaudit explain NAMESPACE/POD` shows the arithmetic. Assumed: every container can use all CPUs of its node, and "
    "kernel threads want none."
)


def render(audit: Audit, screen: Screen = PLAIN) -> str:
    """The audit in the screen's width, for a person at a terminal; a wider screen shows more columns."""
    return "".join(_Table(screen, screen.width, wide=False).text(audit))


def pieces_wide(audit: Audit, screen: Screen = PLAIN) -> Pieces:
    """The audit with every workload, its containers' nominal weights and its shares; lines as long as they get."""
    return Pieces(together(_Table(screen, _WIDE, wide=True).text(audit)))


class _Table:
    """What every part of the table needs: the screen, the width of prose, and whether everything is wanted."""

    def __init__(self, screen: Screen, width: int, *, wide: bool) -> None:
        self.screen = screen
        self.width = width
        self.wide = wide

    def text(self, audit: Audit) -> Iterator[str]:
        wide, screen = self.wide, self.screen
        parts: list[Iterable[str]] = [
            self.head(audit),
            table_nodes.wide(audit.nodes, screen) if wide else table_nodes.narrow(audit.nodes, screen),
            self.prose(table_nodes.system_slice(audit.nodes)),
            table_workloads.wide(audit.workloads, screen) if wide else table_workloads.narrow(audit.workloads, screen),
            self.prose(HOW_TO_READ),
            self.titled("FINDINGS", self.findings(audit.findings)),
            self.titled("NOT COUNTED", self.apart(audit)),
            self.titled("WHAT TO DO", self.steps(audit)),
            self.titled("COVERAGE", self.coverage(audit.coverage)),
            self.titled("ASSUMPTIONS", self.assumptions(audit) if wide else ()),
        ]
        between = ""
        for part in parts:
            for line in part:
                yield screen.finished(between + line)
                between = "\n"
            between = "\n\n"
        yield "\n"

    def titled(self, title: str, lines: Iterable[str]) -> Iterator[str]:
        """The lines under their title, if there are any."""
        for place, line in enumerate(lines):
            yield line if place else f"{title}\n{line}"

    def prose(self, text: str) -> list[str]:
        return [self.wrap(text)] if text else []

    def wrap(self, text: str, first: str = "", rest: str = "") -> str:
        return wrap(self.screen.shown(text), self.width, first, rest)

    def paint(self, text: str) -> str:
        return paint(text, colour=self.screen.colour)

    def head(self, audit: Audit) -> list[str]:
        coverage = audit.coverage
        what = f"{counted(coverage.nodes_audited, 'node')}, {counted(coverage.pods_audited, 'pod')}, "
        what += counted(len(audit.workloads), "workload")
        own = thresholds.own(audit)
        dated = f", {audit.generated_at}" if audit.generated_at else ""
        return [
            self.wrap(f"now -> {audit.scenario.to}: {audit.scenario.description}"),
            self.wrap(f"{what} from {coverage.source}{dated}"),
            *self.prose(f"Thresholds: {own}." if own else ""),
            "",
            self.wrap(audit.verdict.sentence),
        ]

    def findings(self, findings: Sequence[Finding]) -> Iterator[str]:
        """Each rule's, the worst in full; of low ones the narrow table has the names, and says where the rest is."""
        yield from self.by_rule(findings)
        if not self.wide and findings and findings[-1].severity == "low":
            yield self.wrap(_LOW, " " * 9, " " * 9)

    def by_rule(self, findings: Sequence[Finding]) -> Iterator[str]:
        every = iter(findings)
        leading = True
        for _, amount in faces(findings):
            members = islice(every, amount)
            first = next(members)
            if leading and not first.leads:
                leading = False
                yield self.wrap(_OVERRIDDEN, " " * 9, " " * 9)
            counts = counted(amount, _COUNTED.get(first.rule, first.subject.kind))
            headline = self.wrap(f"{first.rule} {first.title}: {counts}", " " * 9, " " * 9)
            yield f"{self.paint(first.severity)}{headline[len(first.severity) :]}"
            if self.wide:
                for each in chain([first], members):
                    yield self.wrap(_told(each), " " * 9, " " * 11)
                continue
            in_full = first.severity != "low" or first.rule in _ALWAYS_SAID
            if amount == 1 and in_full and _names_itself(first):
                yield self.wrap(first.seen, " " * 9, " " * 9)
                continue
            names = [each.subject.title + _when(each) for each in chain([first], islice(members, _NAMED - 1))]
            more = f" and {amount - _NAMED} more" if amount > _NAMED else ""
            yield self.wrap(", ".join(names) + more, " " * 9, " " * 9)
            if in_full:
                yield self.wrap(first.seen, " " * 9, " " * 9)
            deque(members, maxlen=0)

    def apart(self, audit: Audit) -> list[str]:
        lines = []
        for part in apart.parts(audit):
            lines += [self.wrap(text, "", "  ") for text in (part.said, *part.notes)]
            for group in part.groups:
                names = ", ".join(group.subjects) if self.wide else named(group.subjects, 4)
                reason = f". Why: {group.reason}" if group.reason else ""
                lines.append(self.wrap(f"{group.lead}: {names}{reason}", "- ", "  "))
        return lines

    def steps(self, audit: Audit) -> list[str]:
        return [self.wrap(step, f"{place}. ", "   ") for place, step in enumerate(audit.verdict.next_steps, start=1)]

    def coverage(self, coverage: Coverage) -> list[str]:
        gaps = [self.wrap(f"INCOMPLETE: {gap.what}: {gap.why}. {gap.remedy}.", "", "  ") for gap in coverage.gaps]
        label = len("INCOMPLETE")
        lines = [self.paint(text[:label]) + text[label:] for text in gaps]
        return lines + [self.wrap(line, "", "  ") for line in _reading(coverage)]

    def assumptions(self, audit: Audit) -> list[str]:
        limits = ", ".join(f"{name} {value}" for name, value, _ in thresholds.rows(audit))
        effects = f"Effects, strongest first: {', '.join(EFFECTS)}."
        lines = [*audit.scenario.assumptions, f"Thresholds: {limits}.", effects]
        return [self.wrap(line, "", "  ") for line in lines]


def _names_itself(finding: Finding) -> bool:
    """Whether what was seen begins with its subject, which need not stand before it then."""
    title = finding.subject.title
    return not finding.when and finding.seen.startswith((f"{title}:", f"{title} "))


def _told(finding: Finding) -> str:
    before = "" if _names_itself(finding) else f"{finding.subject.title}{_when(finding)}: "
    return f"{before}{finding.seen}"


def _when(finding: Finding) -> str:
    return f" ({finding.when})" if finding.when else ""


def _reading(coverage: Coverage) -> list[str]:
    siblings = "; the other pods are read as its siblings" if coverage.complete else ""
    lines = [f"Only what matches {coverage.filter} is reported{siblings}."] if coverage.filter else []
    apart = (
        (coverage.windows_nodes, f"Windows nodes have no cgroups ({counted(coverage.pods_on_windows_nodes, 'pod')})"),
        (
            coverage.virtual_nodes,
            f"Virtual nodes have no cgroups to predict ({counted(coverage.pods_on_virtual_nodes, 'pod')})",
        ),
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
