"""JUnit XML: a test suite a rule, a test case for each node or workload it was asked about."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Literal

from msgspec import Struct

from kubectl_cgaudit.judge.audit import Audit, Finding, GapRecord, Subject
from kubectl_cgaudit.judge.rules import catalogue
from kubectl_cgaudit.report.escape import visible
from kubectl_cgaudit.report.links import finding_page

_ABOUT_NODES = frozenset({"CGA101", "CGA102", "CGA103", "CGA202", "CGA207"})
_FAILS = frozenset({"critical", "high", "medium"})
_Calm = dict[tuple[str, Subject], list[str]]
"""What is said of findings that are set apart, by rule and subject."""
Outcome = Literal["failure", "error", "passed"]


class Case(Struct, frozen=True):
    """A test case. `lines` are what was seen; those of one that passed are of low severity, known or excepted."""

    classname: str
    name: str
    outcome: Outcome
    kind: str = ""
    message: str = ""
    lines: tuple[str, ...] = ()


class Suite(Struct, frozen=True):
    """A rule and its cases."""

    rule: str
    title: str
    cases: tuple[Case, ...]

    def count(self, outcome: Outcome) -> int:
        """How many of its cases ended so."""
        return sum(case.outcome == outcome for case in self.cases)


def render(audit: Audit) -> str:
    """JUnit XML as Jenkins' junit-10.xsd describes it."""
    return "".join(f"{line}\n" for line in _document(audit))


def _document(audit: Audit) -> Iterator[str]:
    suites = tuple(_suites(audit))
    sums = {name: sum(suite.count(each) for suite in suites) for name, each in _COUNTED}
    total = {"name": "kubectl cgaudit", "tests": sum(len(suite.cases) for suite in suites), **sums, "time": 0}
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield _tag("testsuites", total)
    for suite in suites:
        yield from _suite(suite, audit)
    yield "</testsuites>"


_COUNTED: tuple[tuple[str, Outcome], ...] = (("failures", "failure"), ("errors", "error"))


def _suites(audit: Audit) -> Iterator[Suite]:
    titles: dict[str, str] = {}
    for rule in vars(catalogue).values():
        if isinstance(rule, catalogue.Rule):
            titles[rule.id] = f"{titles[rule.id]}; {rule.title}" if rule.id in titles else rule.title
    found: dict[str, dict[Subject, list[Finding]]] = defaultdict(lambda: defaultdict(list))
    for finding in audit.findings:
        titles.setdefault(finding.rule, finding.title)
        found[finding.rule][finding.subject].append(finding)
    calm = _set_apart(audit)
    nodes = {Subject("node", node.name): node.confidence == "unknown" for node in audit.nodes}
    workloads = {
        Subject("workload", each.name, each.namespace, each.kind): "unknown" in each.effects
        or each.unpredicted_pods > 0
        for each in audit.workloads
    }
    for rule in sorted(titles):
        if rule == catalogue.INCOMPLETE.id:
            yield Suite(rule, titles[rule], tuple(_coverage(audit)))
            continue
        if rule == catalogue.EXCEPTION.id:
            if audit.policy or found[rule]:
                yield Suite(rule, titles[rule], tuple(_exceptions(found[rule], calm)))
            continue
        asked = {
            **(nodes if rule in _ABOUT_NODES else workloads),
            **dict.fromkeys([*found[rule], *(about for of, about in calm if of == rule)], False),
        }
        known = nodes | workloads
        cases = [_case(rule, each, found[rule].get(each, []), known.get(each, False), calm) for each in asked]
        yield Suite(rule, titles[rule], tuple(sorted(cases, key=lambda case: (case.classname, case.name))))


def _coverage(audit: Audit) -> Iterator[Case]:
    """A gap is an error: what it hides was not tested."""
    rule = catalogue.INCOMPLETE.id
    gaps = audit.coverage.gaps
    if not audit.coverage.complete and not gaps:
        gaps = (GapRecord("coverage", "the audit is incomplete", "Run it again"),)
    for gap in gaps:
        text = f"{gap.what}: {gap.why}. {gap.remedy}."
        yield Case(f"{rule}.audit", gap.what, "error", "incomplete", f"{gap.what}: {gap.why}.", (text,))
    if not gaps:
        yield Case(f"{rule}.audit", "coverage", "passed")


def _exceptions(found: Mapping[Subject, list[Finding]], calm: _Calm) -> Iterator[Case]:
    """Those of the policy that are over or match nothing; else one that says there is none."""
    subjects = dict.fromkeys([*found, *(about for rule, about in calm if rule == catalogue.EXCEPTION.id)])
    for each in subjects:
        yield _case(catalogue.EXCEPTION.id, each, found.get(each, []), False, calm)
    if not subjects:
        yield Case(f"{catalogue.EXCEPTION.id}.audit", "exceptions", "passed")


def _set_apart(audit: Audit) -> _Calm:
    """What is known or excepted breaks no build, but is said."""
    said: _Calm = defaultdict(list)
    for finding in audit.known:
        said[finding.rule, finding.subject].append(f"known from the baseline: {_line(finding)}")
    for each in audit.excepted:
        until = f", until {each.expires}" if each.expires else ""
        why = f"excepted ({each.source}: {each.reason}{until})"
        said[each.finding.rule, each.finding.subject].append(f"{why}: {_line(each.finding)}")
    return said


def _case(rule: str, subject: Subject, findings: list[Finding], is_open: bool, calm: _Calm) -> Case:
    name = f"{subject.workload_kind} {subject.name}" if subject.workload_kind else subject.name
    classname = f"{rule}.{subject.namespace or subject.kind}"
    lines = (*map(_line, findings), *calm.get((rule, subject), ()))
    failing = [finding for finding in findings if finding.severity in _FAILS]
    if failing:
        first = failing[0]
        return Case(classname, name, "failure", first.severity, f"{_condition(first)}{first.seen}", lines)
    if is_open:
        said = "It cannot be said: what its nodes run is not known, or they were not read. Not a pass."
        if subject.kind == "node":
            said = "It cannot be said: what the node runs is not known. Not a pass."
        return Case(classname, name, "error", "unknown", said, lines)
    return Case(classname, name, "passed", lines=lines)


def _condition(finding: Finding) -> str:
    return f"{finding.when}: " if finding.when else ""


def _line(finding: Finding) -> str:
    page = finding_page(finding.rule)
    more = f" See {page}" if page else ""
    return f"{finding.severity} {finding.rule}: {_condition(finding)}{finding.seen} {finding.remedy}{more}"


def _suite(suite: Suite, audit: Audit) -> Iterator[str]:
    counts = {name: suite.count(each) for name, each in _COUNTED}
    when = {"timestamp": audit.generated_at} if audit.generated_at else {}
    head = {"name": f"{suite.rule} {suite.title}", "tests": len(suite.cases), **counts, "skipped": 0, "time": 0, **when}
    yield _tag("testsuite", head)
    yield "<properties>"
    facts = {"version": audit.tool_version, "scenario": audit.scenario.to, "source": audit.coverage.source}
    for name, value in facts.items():
        yield _tag("property", {"name": name, "value": value}, end="/>")
    yield "</properties>"
    for case in suite.cases:
        yield from _element(case)
    yield "</testsuite>"


def _element(case: Case) -> Iterator[str]:
    head = {"classname": case.classname, "name": case.name, "time": 0}
    if case.outcome == "passed" and not case.lines:
        yield _tag("testcase", head, end="/>")
        return
    yield _tag("testcase", head)
    body = "\n".join(_text(line) for line in case.lines)
    if case.outcome == "passed":
        yield f"<system-out>{body}</system-out>"
    else:
        yield f"{_tag(case.outcome, {'type': case.kind, 'message': case.message})}{body}</{case.outcome}>"
    yield "</testcase>"


def _tag(name: str, attributes: Mapping[str, object], end: str = ">") -> str:
    return f"<{name}{''.join(_attributes(attributes.items()))}{end}"


def _attributes(pairs: Iterable[tuple[str, object]]) -> Iterator[str]:
    for key, value in pairs:
        yield f' {key}="{_text(str(value))}"'


def _text(text: str) -> str:
    """XML 1.0 has no place for control characters, not even escaped; `visible` writes them out."""
    return escape(visible(text))
