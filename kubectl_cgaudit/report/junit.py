"""JUnit XML: a test suite a rule, a test case for each node or workload it was asked about."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from typing import Literal

from msgspec import Struct

from kubectl_cgaudit.judge.audit import Audit, Finding, GapRecord, Subject
from kubectl_cgaudit.judge.rules import catalogue
from kubectl_cgaudit.report.escape import visible
from kubectl_cgaudit.report.links import finding_page
from kubectl_cgaudit.report.pieces import Pieces, together, whole

_ABOUT_NODES = frozenset({"CGA101", "CGA102", "CGA103", "CGA202", "CGA207"})
_FAILS = frozenset({"critical", "high", "medium"})
_Calm = dict[tuple[str, Subject], list[str]]
"""What is said of findings that are set apart, by rule and subject."""
Outcome = Literal["failure", "error", "passed"]
_COUNTED: tuple[tuple[str, Outcome], ...] = (("failures", "failure"), ("errors", "error"))


class _Case(Struct, frozen=True, gc=False):
    """A test case. `lines` are what was seen; those of one that passed are of low severity, known or excepted."""

    attributes: str
    """Behind the rule in `classname`; escaped."""
    outcome: Outcome
    kind: str = ""
    message: str = ""
    lines: tuple[str, ...] = ()


class _Suite(Struct, frozen=True):
    """A rule and its cases. They are made each time they are asked for: all at once would fill the memory."""

    rule: str
    title: str
    cases: Callable[[], Iterator[_Case]]


class _Asked(Struct, frozen=True):
    """What the rules were asked about, and what they found."""

    findings: Sequence[Finding]
    places: Mapping[str, Sequence[int]]
    """Of a rule's findings."""
    calm: _Calm
    silent: Mapping[Subject, _Case]
    """The case of each node and workload under a rule that says nothing of it."""
    nodes: Sequence[Subject]
    workloads: Sequence[Subject]

    def found(self, rule: str) -> dict[Subject, list[Finding]]:
        """What a rule found, by subject."""
        found: dict[Subject, list[Finding]] = {}
        for place in self.places.get(rule, ()):
            finding = self.findings[place]
            found.setdefault(finding.subject, []).append(finding)
        return found

    def spoken_of(self, rule: str, found: Iterable[Subject]) -> dict[Subject, None]:
        """The subjects of what a rule found, and of what is set apart, in their order."""
        return dict.fromkeys([*found, *(about for of, about in self.calm if of == rule)])


def pieces(audit: Audit) -> Pieces:
    """JUnit XML as Jenkins' junit-10.xsd describes it."""
    return Pieces(together(_document(audit)))


def render(audit: Audit) -> str:
    """All of it."""
    return whole(pieces(audit), audit)


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
    for rule in vars(catalogue).values():
        if isinstance(rule, catalogue.Rule):
            titles[rule.id] = f"{titles[rule.id]}; {rule.title}" if rule.id in titles else rule.title
    places: dict[str, list[int]] = defaultdict(list)
    for place, finding in enumerate(audit.findings):
        titles.setdefault(finding.rule, finding.title)
        places[finding.rule].append(place)
    asked = _asked(audit, places)
    for rule in sorted(titles):
        if rule == catalogue.INCOMPLETE.id:
            yield _Suite(rule, titles[rule], partial(_coverage, audit))
        elif rule == catalogue.EXCEPTION.id:
            if audit.policy or places[rule]:
                yield _Suite(rule, titles[rule], partial(_exceptions, asked))
        else:
            every = asked.nodes if rule in _ABOUT_NODES else asked.workloads
            yield _Suite(rule, titles[rule], partial(_cases, rule, every, asked))


def _asked(audit: Audit, places: Mapping[str, Sequence[int]]) -> _Asked:
    nodes = {Subject("node", node.name): node.confidence == "unknown" for node in audit.nodes}
    workloads = {
        Subject("workload", each.name, each.namespace, each.kind): "unknown" in each.effects
        or each.unpredicted_pods > 0
        for each in audit.workloads
    }
    silent = {
        about: _case(about, (), (), is_open=is_open) for of in (nodes, workloads) for about, is_open in of.items()
    }
    return _Asked(
        audit.findings, places, _set_apart(audit), silent, sorted(nodes, key=_order), sorted(workloads, key=_order)
    )


def _cases(rule: str, every: Sequence[Subject], asked: _Asked) -> Iterator[_Case]:
    """Of all that the rule was asked about, and of what else it speaks of."""
    found = asked.found(rule)
    more = asked.spoken_of(rule, found)
    for about in every:
        more.pop(about, None)
    for about in sorted([*every, *more], key=_order) if more else every:
        silent = asked.silent.get(about)
        findings, calm = found.get(about, ()), asked.calm.get((rule, about), ())
        if silent and not findings and not calm:
            yield silent
        else:
            yield _case(about, findings, calm, is_open=silent is not None and silent.outcome == "error")


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
    rule = catalogue.EXCEPTION.id
    found = asked.found(rule)
    subjects = asked.spoken_of(rule, found)
    for about in subjects:
        yield _case(about, found.get(about, ()), asked.calm.get((rule, about), ()), is_open=False)
    if not subjects:
        yield _Case(_attributes("audit", "exceptions"), "passed")


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


def _order(subject: Subject) -> tuple[str, str]:
    """The class and the name of its test cases."""
    name = f"{subject.workload_kind} {subject.name}" if subject.workload_kind else subject.name
    return subject.namespace or subject.kind, name


def _case(subject: Subject, findings: Sequence[Finding], calm: Iterable[str], *, is_open: bool) -> _Case:
    attributes = _attributes(*_order(subject))
    lines = (*map(_line, findings), *calm)
    failing = [finding for finding in findings if finding.severity in _FAILS]
    if failing:
        first = failing[0]
        return _Case(attributes, "failure", first.severity, f"{_condition(first)}{first.seen}", lines)
    if is_open:
        said = "It cannot be said: what its nodes run is not known, or they were not read. Not a pass."
        if subject.kind == "node":
            said = "It cannot be said: what the node runs is not known. Not a pass."
        return _Case(attributes, "error", "unknown", said, lines)
    return _Case(attributes, "passed", lines=lines)


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
    if case.outcome == "passed" and not case.lines:
        return "/>\n"
    body = "\n".join(map(_text, case.lines))
    if case.outcome == "passed":
        return f">\n<system-out>{body}</system-out>\n</testcase>\n"
    start = _tag(case.outcome, {"type": case.kind, "message": case.message})
    return f">\n{start}{body}</{case.outcome}>\n</testcase>\n"


def _tag(name: str, attributes: Mapping[str, object], end: str = ">") -> str:
    written = "".join(f' {key}="{_text(str(value))}"' for key, value in attributes.items())
    return f"<{name}{written}{end}"


def _text(text: str) -> str:
    """XML 1.0 has no place for control characters, not even escaped; `visible` writes them out."""
    return escape(visible(text))
