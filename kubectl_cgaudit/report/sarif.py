"""SARIF 2.1.0: the findings for code scanning and other viewers of analysis results."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TextIO
from urllib.parse import quote

import msgspec

from kubectl_cgaudit.audit.model import (
    CERTAINTIES,
    SEVERITIES,
    Action,
    Audit,
    ExceptedFinding,
    Finding,
    Severity,
    Subject,
)
from kubectl_cgaudit.plain import indented
from kubectl_cgaudit.report import actions, rules
from kubectl_cgaudit.report.cuts import first
from kubectl_cgaudit.report.escape import markdown, shorten, visible
from kubectl_cgaudit.report.findings import described
from kubectl_cgaudit.report.options import Options, Rendered
from kubectl_cgaudit.text import NAMED

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: dict[Severity, str] = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}
_Object = dict[str, Any]
_SAFE = re.compile(r"[\w.~-]+", re.ASCII)
_RESULTS = '\n      "results": []'
_RESULT = "\n" + " " * 8
_LONGEST_TEXT = 3000
_ACTIONS_IN_HELP = 20


def write(saved: Rendered, out: TextIO, options: Options) -> None:  # noqa: ARG001
    """Write the SARIF log of an audit."""
    for part in parts(saved.audit):
        out.write(part)


def render(audit: Audit) -> str:
    """Return the audit as one SARIF run."""
    return "".join(parts(audit))


def parts(audit: Audit) -> Iterator[str]:
    """Yield the text of the log. Every result has a physical location: code scanning refuses results without."""
    audit = described(audit)
    listed = _rules(audit)
    indices = {rule["id"]: index for index, rule in enumerate(listed)}
    run = {
        "tool": {
            "driver": {
                "name": "kubectl-cgaudit",
                "version": audit.tool_version,
                "informationUri": rules.HOMEPAGE,
                "rules": listed,
            }
        },
        "automationDetails": {"id": f"cgaudit/{quote(audit.target.to, safe='+,=.', errors='replace')}/"},
        "invocations": [_invocation(audit, indices)],
        "columnKind": "unicodeCodePoints",
        "results": [],
        "properties": {
            "schema": audit.schema,
            "verdict": _plain(audit.verdict.sentence),
            "target": _plain(audit.target.to),
            "cluster": {key: _plain(value) for key, value in audit.cluster.items()},
            **({"input": audit.input} if audit.input else {}),
            "assumptions": [_plain(text) for text in audit.target.assumptions],
        },
    }
    # No text in JSON holds a raw line break, so there is one such place.
    before, _, after = indented({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}).partition(_RESULTS)
    yield before + _RESULTS[:-1]
    between, end = "", ""
    for result in _results(audit, indices):
        yield between + _RESULT + indented(result).replace("\n", _RESULT)
        between, end = ",", "\n      "
    yield f"{end}]{after}\n"


def _plain(text: str) -> str:
    """Return the text such that nothing in it acts; `](` would make a link of what stands before it."""
    return shorten(visible(text), _LONGEST_TEXT).replace("](", "] (")


def _rules(audit: Audit) -> list[_Object]:
    """Return every rule of the catalogue, and what else the findings name, as audits are also read from files."""
    excepted = (each.finding for each in audit.excepted)
    strange: dict[str, Finding] = {}
    remedies: dict[str, dict[str, None]] = {}
    for finding in chain(audit.findings, audit.known, excepted, audit.fixed):
        if finding.rule not in rules.BY_ID:
            strange.setdefault(finding.rule, finding)
        remedies.setdefault(finding.rule, {}).update(dict.fromkeys(finding.actions))
    by_id = {action.id: (number, action) for number, action in enumerate(audit.actions, start=1)}
    # A finding of an older file may not name its actions.
    of_rules = {finding.id: finding.rule for finding in audit.findings}
    for action in audit.actions:
        for cleared in (*action.clears, *action.lowers):
            if cleared in of_rules:
                remedies.setdefault(of_rules[cleared], {})[action.id] = None
    found = []
    for id_ in sorted({*rules.BY_ID, *strange}):
        of_it = sorted((by_id[each] for each in remedies.get(id_, ()) if each in by_id), key=lambda pair: pair[0])
        found.append(_rule(id_, strange.get(id_), of_it, audit))
    return found


def _rule(id_: str, strange: Finding | None, remedies: Sequence[tuple[int, Action]], audit: Audit) -> _Object:
    known, page = rules.BY_ID.get(id_), rules.page_of(id_)
    name = _plain(known.name if known else rules.name_of(id_, (strange,) if strange else ()))
    why = known.why if known else name
    steps = [_step(number, action, audit) for number, action in first(remedies, _ACTIONS_IN_HELP)[0]]
    more = len(remedies) - len(steps)
    listed = [*steps, *([f"{more} more actions are in the other reports."] if more > 0 else [])]
    text = " ".join([why, *listed])
    links = [f"[What it means]({page})"] if page else []
    written = "\n\n".join([why, *map(markdown, listed), *links])
    rule = {
        "id": id_,
        "name": "".join(word[:1].upper() + word[1:] for word in re.findall("[A-Za-z0-9]+", name)) or "Unnamed",
        "shortDescription": {"text": f"{name}."},
        "fullDescription": {"text": why},
        "help": {"text": text, **({"markdown": written} if page else {})},
        "defaultConfiguration": {"level": _LEVELS[known.gravest] if known else "error"},
        "properties": {"tags": ["kubernetes", "cgroup", "cpu"]},
    }
    return {**rule, "helpUri": page} if page else rule


def _step(number: int, action: Action, audit: Audit) -> str:
    """Return an action in a line: its title, its first command, when, and what it brings and costs."""
    fields = dict(actions.fields(action, audit))
    words = [
        action.title,
        f"Run: {action.run[0]}" if action.run else "",
        *(
            f"{label.capitalize()}: {fields[label]}"
            for label in ("when", "effect", "cost", "undo")
            if fields.get(label)
        ),
    ]
    return _plain(f"Action {number}: {'. '.join(word.rstrip('.') for word in words if word)}.")


def _results(audit: Audit, indices: Mapping[str, int]) -> Iterator[_Object]:
    sure = {Subject("node", node.name): node.confidence for node in audit.nodes}
    sure |= {Subject("workload", each.name, each.namespace, each.kind): each.confidence for each in audit.workloads}
    seen: Counter[str] = Counter()
    for finding, baseline, justifications in _stated(audit):
        about = finding.subject
        members = finding.detail.get("members", ()) if finding.rule == rules.INCOMPLETE else ()
        print_ = _fingerprint(finding, members[NAMED:])
        seen[print_] += 1
        # Code scanning reads only the first, and expects a count after a colon.
        number = f"{print_}:{seen[print_]}"
        names = (about.namespace, about.workload_kind or about.kind, about.name)
        spaced = {"namespace": about.namespace} if about.namespace is not None else {}
        yield {
            "ruleId": finding.rule,
            "ruleIndex": indices[finding.rule],
            "level": _LEVELS[finding.severity],
            "message": {"text": _message(finding)},
            "locations": [
                {
                    "physicalLocation": {"artifactLocation": {"uri": _path(about)}, "region": {"startLine": 1}},
                    "logicalLocations": [
                        {
                            "name": _plain(about.name),
                            "fullyQualifiedName": _plain("/".join(part for part in names if part)),
                            "kind": "resource",
                            "properties": {"kind": about.workload_kind or about.kind, **spaced, "name": about.name},
                        }
                    ],
                }
            ],
            "partialFingerprints": {"primaryLocationLineHash": number, "ruleAndSubject/v1": number},
            "properties": {
                "id": finding.id,
                "severity": finding.severity,
                "certainty": finding.certainty,
                "when": finding.detail.get("when") or "",
                **({"confidence": sure[about]} if about in sure else {}),
                "actions": list(finding.actions),
            },
            **({"baselineState": baseline} if baseline else {}),
            **({} if justifications is None else {"suppressions": list(map(_suppression, justifications))}),
        }


def _message(finding: Finding) -> str:
    return _plain(finding.message or finding.title or rules.name_of(finding.rule))


def _stated(audit: Audit) -> Iterator[tuple[Finding, str | None, tuple[str, ...] | None]]:
    """Yield every finding with its baselineState and the grounds of its suppressions: where one result has them, all have.

    What is gone is no result: code scanning reads no `absent`, and would open an alert for it. Whatever became of it, a finding
    keeps its place among those of its rule and subject, and so its fingerprint.
    """
    none = () if audit.excepted else None
    new, unchanged = ("new", "unchanged") if audit.baseline else (None, None)
    found: Iterable[tuple[Finding, str | None, tuple[str, ...] | None]] = chain(
        ((each, new, none) for each in audit.findings),
        ((each, unchanged, none) for each in audit.known),
        ((each.finding, unchanged if each.in_baseline else new, (_justification(each),)) for each in audit.excepted),
    )
    yield from sorted(found, key=lambda entry: _order(entry[0])) if audit.known or audit.excepted else found


def _order(finding: Finding) -> tuple[Any, ...]:
    """To sort by as the audit does: what holds in a leading case, then the worst severity; of a rule the surest first."""
    grade, sure = -SEVERITIES.index(finding.severity), CERTAINTIES.index(finding.certainty)
    return not finding.leads, grade, finding.rule, sure, -finding.detail.get("badness", 0.0), finding.id


def _justification(each: ExceptedFinding) -> str:
    until = f" Until {each.expires}." if each.expires else ""
    return _plain(f"{each.reason}{'' if each.reason.endswith('.') else '.'}{until} {each.source}")


def _suppression(justification: str) -> _Object:
    return {"kind": "external", "status": "accepted", "justification": justification}


def _fingerprint(finding: Finding, unnamed: Sequence[str]) -> str:
    """Return a digest of the rule and its subject, with what a gap's name leaves out: other numbers or words, same alert."""
    about = finding.subject
    parts_ = (finding.rule, about.kind, about.namespace, about.workload_kind, about.name, *unnamed)
    return hashlib.sha256(msgspec.json.encode(parts_)).hexdigest()[:16]


def _path(subject: Subject) -> str:
    if subject.kind == "audit":
        # What could not be read is no place in the cluster.
        return "cluster/audit"
    if subject.kind == "node":
        return f"cluster/nodes/{_segment(subject.name)}"
    names = (subject.namespace or "", subject.workload_kind or "", subject.name)
    return f"cluster/namespaces/{'/'.join(map(_segment, names))}"


def _segment(text: str) -> str:
    """Return a part of a path that is one part, whatever is in it."""
    if not text.strip("."):
        return f"_{text}"
    return text if _SAFE.fullmatch(text) else quote(text, safe="", errors="replace")


def _invocation(audit: Audit, indices: Mapping[str, int]) -> _Object:
    """Return how the run went: what could not be read makes it unsuccessful, so that it never looks like a clean one."""
    coverage = audit.coverage
    rule = {"id": rules.INCOMPLETE, "index": indices[rules.INCOMPLETE]}
    told: list[_Object] = [
        {
            "level": "error",
            "message": {"text": _plain(f"{gap.what}: {gap.why}. {gap.remedy}.")},
            "associatedRule": rule,
        }
        for gap in coverage.gaps
    ]
    told += [{"level": "warning", "message": {"text": _plain(f"{text}.")}} for text in coverage.unmatched]
    told += [{"level": "note", "message": {"text": _plain(f"{text}.")}} for text in coverage.notes]
    ended = {"endTimeUtc": audit.time} if audit.time else {}
    return {"executionSuccessful": coverage.complete, **ended, "toolExecutionNotifications": told}
