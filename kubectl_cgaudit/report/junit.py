"""JUnit XML: a test suite a rule, a test case for each node or workload it was asked about."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from html import escape
from itertools import chain
from typing import Literal

from msgspec import Struct

from kubectl_cgaudit.judge.audit import Audit, Finding, GapRecord, Subject
from kubectl_cgaudit.judge.findings import faces
from kubectl_cgaudit.judge.rules import catalogue
from kubectl_cgaudit.report.escape import visible
from kubectl_cgaudit.report.links import finding_page
from kubectl_cgaudit.report.pieces import Pieces, together

_ABOUT_NODES = frozenset(rule.id for rule in catalogue.RULES if rule.about == "node")
_FAILS = frozenset({"critical", "high", "medium"})
_NODE = "It cannot be said: what the node runs is not known. Not a pass."
_WORKLOAD = "It cannot be said: what its nodes run is not known, or they were not read. Not a pass."
Outcome = Literal["failure", "error", "passed"]
_Said = tuple[Finding | str, ...]
"""What a rule says of a node or workload: what it found, then the words of what is set apart."""
_COUNTED: tuple[tuple[str, Outcome], ...] = (("failures", "failure"), ("errors", "error"))


class _Case(Struct, frozen=True, gc=False):
    """A test case."""

    attributes: str
    """Behind the rule in `classname`; escaped."""
    outcome: Outcome
    kind: str = ""
    message: str = ""
    said: _Said = ()
    """In one that passed it is of low severity, known or excepted."""


class _Suite(Struct, frozen=True):
    """A rule and its cases. They are made each time they are asked for: all at once would fill the memory."""

    rule: str
    title: str
    cases: Callable[[], Iterator[_Case]]


class _Asked(Struct, frozen=True):
    """What the rules were asked about, and what they found."""

    findings: Sequence[Finding]
    places: Mapping[str, Sequence[range]]
    """Of a rule's findings."""
    apart: Mapping[str, Sequence[tuple[Subject, str]]]
    """What is said of findings of a rule that are set apart."""
    nodes: Mapping[Subject, _Case]
    """In the order of their cases, with the one under a rule that says nothing."""
    versions: Mapping[Subject, _Case]
    """Of the nodes under a rule that asks for their cgroup version alone."""
    workloads: Mapping[Subject, _Case]

    def said(self, rule: str) -> dict[Subject, _Said]:
        """What a rule says, by subject."""
        said: dict[Subject, _Said] = {}
        for place in chain(*self.places.get(rule, ())):
            finding = self.findings[place]
            said[finding.subject] = (*said.get(finding.subject, ()), finding)
        for about, words in self.apart.get(rule, ()):
            said[about] = (*said.get(about, ()), words)
        return said

    def about(self, rule: str) -> Mapping[Subject, _Case]:
        """What a rule was asked about."""
        if rule == catalogue.V1_NODE.id:
            return self.versions
        return self.nodes if rule in _ABOUT_NODES else self.workloads

    def case(self, about: Subject) -> _Case:
        """The case of something of which nothing is said."""
        return self.nodes.get(about) or self.workloads.get(about) or _silent(about)


def pieces(audit: Audit) -> Pieces:
    """JUnit XML as Jenkins' junit-10.xsd describes it."""
    return Pieces(together(_document(audit)))


def _document(audit: Audit) -> Iterator[str]:
    suites = list(_suites(audit))
    counts = [Counter(case.outcome for case in suite.cases()) for suite in suites]
    sums = {name: sum(each[outcome] for each in counts) for name, outcome in _COUNTED}
    total = {"name": "kubectl cgaudit", "tests": sum(each.total() for each in counts), **sums, "time": 0}
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n{_tag("testsuites", total)}\n'
    for suite, each in zip(suites, counts, strict=True):
        yield from _suite(suite, each, audit)
    yield "</testsuites>\n"


def _suites(audit: Audit) -> Iterator[_Suite]:
    titles: dict[str, str] = {}
    for known in catalogue.RULES:
        titles[known.id] = f"{titles[known.id]}; {known.title}" if known.id in titles else known.title
    places: dict[str, list[range]] = defaultdict(list)
    start = 0
    for (_, rule, title), amount in faces(audit.findings):
        titles.setdefault(rule, title)
        places[rule].append(range(start, start + amount))
        start += amount
    for finding in chain(audit.known, (each.finding for each in audit.excepted)):
        titles.setdefault(finding.rule, finding.title)
    asked = _asked(audit, places)
    for rule in sorted(titles):
        if rule == catalogue.INCOMPLETE.id:
            yield _Suite(rule, titles[rule], partial(_coverage, audit))
        elif rule == catalogue.EXCEPTION.id:
            if audit.policy or places[rule]:
                yield _Suite(rule, titles[rule], partial(_exceptions, asked))
        else:
            yield _Suite(rule, titles[rule], partial(_cases, rule, asked))


def _asked(audit: Audit, places: Mapping[str, Sequence[range]]) -> _Asked:
    nodes = {Subject("node", node.name): _NODE if node.confidence == "unknown" else "" for node in audit.nodes}
    versions = {
        Subject("node", node.name): _NODE if "cgroup" not in node.known or node.known["cgroup"].value is None else ""
        for node in audit.nodes
    }
    workloads = {}
    for each in audit.workloads:
        about = Subject("workload", each.name, each.namespace, each.kind)
        workloads[about] = _WORKLOAD if each.unsettled or each.unpredicted_pods else ""
    of_each = (
        {about: _silent(about, of[about]) for about in sorted(of, key=_order)} for of in (nodes, versions, workloads)
    )
    return _Asked(audit.findings, places, _set_apart(audit), *of_each)


def _cases(rule: str, asked: _Asked) -> Iterator[_Case]:
    """Of all that the rule was asked about, and of what else it speaks of."""
    said, every = asked.said(rule), asked.about(rule)
    more = {about: asked.case(about) for about in said if about not in every}
    listed = dict(sorted({**every, **more}.items(), key=lambda entry: _order(entry[0]))) if more else every
    for about, silent in listed.items():
        of_it = said.get(about)
        yield _telling(silent, of_it) if of_it else silent


def _coverage(audit: Audit) -> Iterator[_Case]:
    """A gap is an error: what it hides was not tested."""
    gaps = audit.coverage.gaps
    if not audit.coverage.complete and not gaps:
        gaps = (GapRecord("coverage", "the audit is incomplete", "Run it again"),)
    for gap in gaps:
        text = f"{gap.what}: {gap.why}. {gap.remedy}."
        yield _Case(_attributes("audit", gap.what), "error", "incomplete", f"{gap.what}: {gap.why}.", (text,))
    if not gaps:
        yield _Case(_attributes("audit", "coverage"), "passed")


def _exceptions(asked: _Asked) -> Iterator[_Case]:
    """Those of the policy that are over or match nothing; else one that says there is none."""
    said = asked.said(catalogue.EXCEPTION.id)
    for about, of_it in said.items():
        yield _telling(_silent(about), of_it)
    if not said:
        yield _Case(_attributes("audit", "exceptions"), "passed")


def _set_apart(audit: Audit) -> dict[str, list[tuple[Subject, str]]]:
    """What is known or excepted breaks no build, but is said."""
    said = defaultdict(list)
    for finding in audit.known:
        said[finding.rule].append((finding.subject, f"known from the baseline: {_line(finding)}"))
    for each in audit.excepted:
        until = f", until {each.expires}" if each.expires else ""
        why = f"excepted ({each.source}: {each.reason}{until})"
        said[each.finding.rule].append((each.finding.subject, f"{why}: {_line(each.finding)}"))
    return said


def _order(subject: Subject) -> tuple[str, str]:
    """The class and the name of its test cases."""
    name = f"{subject.workload_kind} {subject.name}" if subject.workload_kind else subject.name
    return subject.namespace or subject.kind, name


def _silent(subject: Subject, why_open: str = "") -> _Case:
    """The case under a rule that says nothing, and why that is no pass if it is none."""
    attributes = _attributes(*_order(subject))
    return _Case(attributes, "error", "unknown", why_open) if why_open else _Case(attributes, "passed")


def _telling(silent: _Case, said: _Said) -> _Case:
    """The case under a rule that says this."""
    findings = [each for each in said if isinstance(each, Finding)]
    serious = [each for each in findings if each.severity in _FAILS]
    failing = next((each for each in serious if each.certainty != "possible"), None)
    if failing:
        return _Case(silent.attributes, "failure", failing.severity, f"{_condition(failing)}{failing.seen}", said)
    hanging = next(
        (each for each in findings if each in serious or (each.graver and each.graver.severity in _FAILS)), None
    )
    if hanging:
        return _Case(silent.attributes, "error", "possible", f"{_hangs(hanging)}{hanging.seen}", said)
    return _Case(silent.attributes, silent.outcome, silent.kind, silent.message, said)


def _hangs(finding: Finding) -> str:
    """Return what it hangs on that a finding is of medium severity or worse."""
    if finding.graver and finding.graver.severity in _FAILS and finding.severity not in _FAILS:
        return f"{finding.graver.severity} {finding.graver.when}: " if finding.graver.when else ""
    return _condition(finding)


def _attributes(place: str, name: str) -> str:
    return f'{_text(place)}" name="{_text(name)}" time="0"'


def _condition(finding: Finding) -> str:
    return f"{finding.when}: " if finding.when else ""


def _line(finding: Finding) -> str:
    page = finding_page(finding.rule)
    more = f" See {page}" if page else ""
    return f"{finding.severity} {finding.rule}: {_condition(finding)}{finding.seen} {finding.remedy}{more}"


def _suite(suite: _Suite, counts: Counter[Outcome], audit: Audit) -> Iterator[str]:
    failed = {name: counts[outcome] for name, outcome in _COUNTED}
    when = {"timestamp": audit.generated_at} if audit.generated_at else {}
    head = {"name": f"{suite.rule} {suite.title}", "tests": counts.total(), **failed, "skipped": 0, "time": 0, **when}
    facts = {"version": audit.tool_version, "scenario": audit.scenario.to, "source": audit.coverage.source}
    properties = (_tag("property", {"name": name, "value": value}, end="/>\n") for name, value in facts.items())
    yield f"{_tag('testsuite', head)}\n<properties>\n{''.join(properties)}</properties>\n"
    start = f'<testcase classname="{_text(suite.rule)}.'
    for case in suite.cases():
        yield f"{start}{case.attributes}{_rest(case)}"
    yield "</testsuite>\n"


def _rest(case: _Case) -> str:
    """What comes behind the attributes."""
    if not case.said:
        return _unsaid(case.outcome, case.kind, case.message)
    body = "\n".join(_text(each if isinstance(each, str) else _line(each)) for each in case.said)
    if case.outcome == "passed":
        return f">\n<system-out>{body}</system-out>\n</testcase>\n"
    return _failed(case.outcome, case.kind, case.message, body)


# Most cases are such, and they are of few kinds.
@cache
def _unsaid(outcome: Outcome, kind: str, message: str) -> str:
    return "/>\n" if outcome == "passed" else _failed(outcome, kind, message, "")


def _failed(outcome: Outcome, kind: str, message: str, body: str) -> str:
    return f'>\n<{outcome} type="{_text(kind)}" message="{_text(message)}">{body}</{outcome}>\n</testcase>\n'


def _tag(name: str, attributes: Mapping[str, object], end: str = ">") -> str:
    written = "".join(f' {key}="{_text(str(value))}"' for key, value in attributes.items())
    return f"<{name}{written}{end}"


def _text(text: str) -> str:
    """XML 1.0 has no place for control characters, not even escaped; `visible` writes them out."""
    return escape(visible(text))
