"""JUnit XML: a test suite a rule, a test case for each node or workload it was asked about."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple, TextIO, cast
from xml.sax.saxutils import XMLGenerator

from kubectl_cgaudit.audit.model import Audit, Finding, GapRecord, Subject
from kubectl_cgaudit.report import rules, sections
from kubectl_cgaudit.report.escape import shorten, visible
from kubectl_cgaudit.report.findings import described
from kubectl_cgaudit.report.options import Options, Rendered

if TYPE_CHECKING:
    from io import TextIOBase

_FAILS = frozenset({"critical", "high", "medium"})
_OPEN = frozenset({"probable", "possible"})
_NODE = "What the node runs is not settled, so this is not a pass."
_WORKLOAD = "What its nodes run is not settled, or they were not read, so this is not a pass."
_START = "Whether its containers start depends on a default that was not checked, so this is not a pass."
_LONGEST_TEXT = 3000
Outcome = Literal["failure", "error", "passed"]
_COUNTED: tuple[tuple[str, Outcome], ...] = (("failures", "failure"), ("errors", "error"))


class _Case(NamedTuple):
    """A test case."""

    place: str
    """The namespace of a workload, else `node` or `audit`."""
    name: str
    outcome: Outcome = "passed"
    kind: str = ""
    message: str = ""
    lines: tuple[str, ...] = ()


class _Suite(NamedTuple):
    """A rule and its cases."""

    rule: str
    name: str
    cases: Sequence[_Case]


def write(saved: Rendered, out: TextIO, options: Options) -> None:  # noqa: ARG001
    """Write the JUnit XML of an audit, as Jenkins' junit-10.xsd describes it."""
    audit = described(saved.audit)
    suites = list(_suites(audit))
    counts = [Counter(case.outcome for case in suite.cases) for suite in suites]
    xml = _Writer(out)
    total = {name: str(sum(each[outcome] for each in counts)) for name, outcome in _COUNTED}
    tests = str(sum(each.total() for each in counts))
    xml.begin("testsuites", {"name": "kubectl cgaudit", "tests": tests, **total, "time": "0"})
    for suite, each in zip(suites, counts, strict=True):
        _write_suite(xml, suite, each, audit)
    xml.end("testsuites")
    xml.finish()


def _suites(audit: Audit) -> Iterator[_Suite]:
    """Yield a suite for every rule of the catalogue and every other rule that the findings name, by its id."""
    found: dict[str, dict[Subject, list[Finding]]] = defaultdict(lambda: defaultdict(list))
    for finding in audit.findings:
        found[finding.rule][finding.subject].append(finding)
    apart = _apart(audit)
    asked = _asked(audit)
    for rule in sorted({*rules.BY_ID, *found, *apart}):
        of_rule = found.get(rule, {})
        name = rules.name_of(rule, chain.from_iterable(of_rule.values()))
        if rule == rules.INCOMPLETE:
            yield _Suite(rule, name, list(_coverage(audit)))
        elif rule == rules.EXCEPTION:
            if audit.policy or of_rule:
                cases = [_case(about, "", told, ()) for about, told in of_rule.items()]
                yield _Suite(rule, name, cases or [_Case("audit", "exceptions")])
        else:
            of_apart = apart.get(rule, {})
            every = asked.get(rule, asked["workload"])
            more = {each: asked["any"].get(each, "") for each in chain(of_rule, of_apart) if each not in every}
            about = {**every, **more}
            cases = [
                _case(each, about[each], of_rule.get(each, ()), of_apart.get(each, ()))
                for each in sorted(about, key=_place)
            ]
            yield _Suite(rule, name, cases)


def _asked(audit: Audit) -> dict[str, dict[Subject, str]]:
    """Return the subjects each rule was asked about, with why silence is not a pass; `workload` is for all other rules."""
    nodes = {Subject("node", node.name): _NODE if node.confidence == "unknown" else "" for node in audit.nodes}
    versions = {
        Subject("node", node.name): _NODE if "cgroup" not in node.known or node.known["cgroup"].value is None else ""
        for node in audit.nodes
    }
    workloads: dict[Subject, str] = {}
    starts: dict[Subject, str] = {}
    for each in audit.workloads:
        about = Subject("workload", each.name, each.namespace, each.kind)
        # With one case alone only whether it starts can be unknown.
        unsettled = "unknown" in each.effects and (each.confidence == "unknown" or each.cases != 1)
        workloads[about] = _WORKLOAD if unsettled or each.unpredicted_pods else ""
        open_ = "unknown" in each.effects or "may-stop" in each.effects
        starts[about] = workloads[about] or (_START if open_ else "")
    of_nodes = {rule.id: nodes for rule in rules.RULES if rule.about == "node"}
    return {
        **of_nodes,
        rules.V1_NODE: versions,
        rules.STARTS: starts,
        "workload": workloads,
        "any": {**nodes, **workloads},
    }


def _coverage(audit: Audit) -> Iterator[_Case]:
    """Yield an error for each gap: what it hides was not tested."""
    gaps: Sequence[GapRecord] = audit.coverage.gaps
    if not audit.coverage.complete and not gaps:
        gaps = (GapRecord("coverage", "the audit is incomplete", "Run it again"),)
    seen: Counter[str] = Counter()
    for gap in gaps:
        seen[gap.what] += 1
        again = f" #{seen[gap.what]}" if seen[gap.what] > 1 else ""
        text = f"{gap.what}: {gap.why}."
        yield _Case("audit", gap.what + again, "error", "incomplete", text, (f"{text} {gap.remedy}.",))
    if not gaps:
        yield _Case("audit", "coverage")


def _apart(audit: Audit) -> dict[str, dict[Subject, list[str]]]:
    """Return what is known or excepted, by rule and subject: it breaks no build, but is told."""
    found: dict[str, dict[Subject, list[str]]] = defaultdict(lambda: defaultdict(list))
    for finding in audit.known:
        found[finding.rule][finding.subject].append(f"known from the baseline: {_line(finding)}")
    for each in audit.excepted:
        until = f", until {each.expires}" if each.expires else ""
        why = f"excepted ({each.source}: {each.reason}{until})"
        found[each.finding.rule][each.finding.subject].append(f"{why}: {_line(each.finding)}")
    return found


def _case(about: Subject, why_open: str, findings: Sequence[Finding], apart: Sequence[str]) -> _Case:
    """Return the case of a subject under a rule.

    A finding of medium severity or worse is a failure. Where it hangs on an open case (probable or possible) it is an error:
    nobody can say whether the test passes.
    """
    place, name = _place(about)
    lines = (*map(_line, findings), *apart)
    failing = next((each for each in findings if _severe(each) == "failure"), None)
    if failing:
        return _Case(place, name, "failure", failing.severity, _message(failing), lines)
    hanging = next((each for each in findings if _severe(each) == "error"), None)
    if hanging:
        return _Case(place, name, "error", hanging.certainty, _hangs(hanging), lines)
    if why_open:
        return _Case(place, name, "error", "unknown", why_open, lines)
    return _Case(place, name, lines=lines)


def _severe(finding: Finding) -> Outcome:
    """Return whether a finding of medium severity or worse holds for sure, hangs on an open case, or is none."""
    grave = [each.certainty for each in finding.at_least if each.severity in _FAILS]
    grave += [finding.certainty] if finding.severity in _FAILS and not finding.at_least else []
    if any(certainty not in _OPEN for certainty in grave):
        return "failure"
    return "error" if grave or (finding.graver and finding.graver.severity in _FAILS) else "passed"


def _hangs(finding: Finding) -> str:
    """Return the message, behind what a graver severity assumes where the finding itself is mild."""
    if finding.severity not in _FAILS and finding.graver and finding.graver.when:
        return f"{finding.graver.severity} if {finding.graver.when}: {_message(finding)}"
    return _message(finding)


def _message(finding: Finding) -> str:
    return finding.message or finding.title or rules.name_of(finding.rule)


def _line(finding: Finding) -> str:
    page = rules.page_of(finding.rule)
    actions = f" Actions: {', '.join(finding.actions)}." if finding.actions else ""
    more = f" See {page}" if page else ""
    return f"{finding.severity} {finding.rule} ({finding.certainty}): {_message(finding)}{actions}{more}"


def _place(subject: Subject) -> tuple[str, str]:
    """Return the class and the name of a subject's test cases, also to sort by."""
    name = f"{subject.workload_kind} {subject.name}" if subject.workload_kind else subject.name
    return subject.namespace or subject.kind, name


def _write_suite(xml: "_Writer", suite: _Suite, counts: Counter[Outcome], audit: Audit) -> None:
    failed = {name: str(counts[outcome]) for name, outcome in _COUNTED}
    when = {"timestamp": audit.time} if audit.time else {}
    head = {"name": f"{suite.rule} {suite.name}", "tests": str(counts.total()), **failed, "skipped": "0", "time": "0"}
    xml.begin("testsuite", {**head, **when})
    xml.begin("properties", {})
    for name, value in _facts(audit).items():
        xml.element("property", {"name": name, "value": value})
    xml.end("properties")
    for case in suite.cases:
        attributes = {"classname": f"{suite.rule}.{case.place}", "name": case.name, "time": "0"}
        body = "\n".join(shorten(visible(line), _LONGEST_TEXT) for line in case.lines)
        if case.outcome == "passed" and not body:
            xml.element("testcase", attributes)
            continue
        xml.begin("testcase", attributes)
        if case.outcome == "passed":
            xml.element("system-out", {}, body)
        else:
            xml.element(case.outcome, {"type": case.kind, "message": case.message}, body)
        xml.end("testcase")
    xml.end("testsuite")


def _facts(audit: Audit) -> Mapping[str, str]:
    facts = {
        "version": audit.tool_version,
        "target": audit.target.to,
        "cluster": sections.cluster_name(audit),
        "source": audit.coverage.source,
        "input": audit.input,
        "findings": sections.severity_counts(audit.verdict.findings),
    }
    return {name: value for name, value in facts.items() if value}


class _Writer:
    """The standard library's XML writer, an element a line, in which no text holds a character that XML has no place for."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._xml = XMLGenerator(cast("TextIOBase", out), encoding="UTF-8", short_empty_elements=True)
        self._xml.startDocument()

    def begin(self, name: str, attributes: Mapping[str, str]) -> None:
        """Write a start tag."""
        self._start(name, attributes)
        self._xml.ignorableWhitespace("\n")

    def end(self, name: str) -> None:
        """Write an end tag."""
        self._xml.endElement(name)
        self._xml.ignorableWhitespace("\n")

    def element(self, name: str, attributes: Mapping[str, str], text: str = "") -> None:
        """Write an element with its text, whose characters are all visible."""
        self._start(name, attributes)
        if text:
            self._xml.characters(text)
        self.end(name)

    def finish(self) -> None:
        """Flush what is not written yet."""
        self._xml.endDocument()

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        shown = {key: shorten(visible(text), _LONGEST_TEXT) for key, text in attributes.items()}
        self._xml.startElement(name, shown)  # type: ignore[arg-type]
