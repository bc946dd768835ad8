"""SARIF 2.1.0: the findings for code scanning and other viewers of analysis results."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec

from kubectl_cgaudit.judge.audit import Audit, ExceptedFinding, Finding, Severity, Subject
from kubectl_cgaudit.judge.rules import catalogue
from kubectl_cgaudit.report.escape import visible
from kubectl_cgaudit.report.links import HOMEPAGE, finding_page

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: dict[Severity, str] = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}
# The level of a rule whose severity is always the same, or the greatest of those that depend on a size.
_DEFAULTS = {"CGA102": "warning", "CGA103": "warning", "CGA203": "note", "CGA205": "note", "CGA206": "note"} | {
    "CGA207": "warning",
    "CGA002": "note",
    "CGA302": "note",
    "CGA401": "warning",
}
_Object = dict[str, Any]


def render(audit: Audit) -> str:
    """The audit as one SARIF run. Every result has a physical location: code scanning refuses results without."""
    rules = _rules(audit)
    indices = {rule["id"]: index for index, rule in enumerate(rules)}
    run = {
        "tool": {
            "driver": {
                "name": "kubectl-cgaudit",
                "version": audit.tool_version,
                "informationUri": HOMEPAGE,
                "rules": rules,
            }
        },
        "automationDetails": {"id": f"cgaudit/{quote(audit.scenario.to, safe='+,=.', errors='replace')}/"},
        "invocations": [_invocation(audit, indices)],
        "columnKind": "unicodeCodePoints",
        "results": list(_results(audit, indices)),
        "properties": {
            "schemaVersion": audit.schema_version,
            "verdict": _plain(audit.verdict.sentence),
            "scenario": audit.scenario.to,
            "assumptions": list(audit.scenario.assumptions),
        },
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(log), indent=2).decode() + "\n"


def _plain(text: str) -> str:
    """The text such that nothing in it acts; `](` would make a link of what stands before it."""
    return visible(text).replace("](", "] (")


def _rules(audit: Audit) -> list[_Object]:
    """Every rule of the catalogue, and what else the findings name, as audits are also read from files."""
    said: dict[str, tuple[list[str], list[str]]] = {}
    known = [rule for rule in vars(catalogue).values() if isinstance(rule, catalogue.Rule)]
    named = [(rule.id, rule.title, rule.why) for rule in known]
    ours = {rule.id for rule in known}
    every = (*audit.findings, *audit.known, *(each.finding for each in audit.excepted), *audit.fixed)
    named += [(each.rule, each.title, each.why) for each in every if each.rule not in ours]
    for id_, title, why in named:
        titles, whys = said.setdefault(id_, ([], []))
        titles += [title] if title not in titles else []
        whys += [why] if why not in whys else []
    return [_rule(id_, *said[id_]) for id_ in sorted(said)]


def _rule(id_: str, titles: list[str], whys: list[str]) -> _Object:
    title, why, page = _plain("; ".join(titles)), _plain(" ".join(whys)), finding_page(id_)
    more = f"\n\n[What it means and what to do]({page})" if page else ""
    rule = {
        "id": id_,
        "name": "".join(word.capitalize() for word in re.findall("[A-Za-z0-9]+", title)) or "Unnamed",
        "shortDescription": {"text": f"{title[:1].upper()}{title[1:]}."},
        "fullDescription": {"text": why},
        "help": {"text": why, **({"markdown": why + more} if page else {})},
        "defaultConfiguration": {"level": _DEFAULTS.get(id_, "error")},
        "properties": {"tags": ["kubernetes", "cgroup", "cpu"]},
    }
    return {**rule, "helpUri": page} if page else rule


def _results(audit: Audit, indices: dict[str, int]) -> Iterator[_Object]:
    sure = {Subject("node", node.name): node.confidence for node in audit.nodes}
    sure |= {Subject("workload", each.name, each.namespace, each.kind): each.confidence for each in audit.workloads}
    seen: Counter[str] = Counter()
    for finding, state in _stated(audit):
        print_ = _fingerprint(finding)
        seen[print_] += 1
        confidence = sure.get(finding.subject)
        yield {
            "ruleId": finding.rule,
            "ruleIndex": indices[finding.rule],
            "level": _LEVELS[finding.severity],
            "message": {"text": _message(finding)},
            "locations": [_location(finding.subject)],
            # Code scanning reads only the first, and expects a count after a colon.
            "partialFingerprints": {
                "primaryLocationLineHash": f"{print_}:{seen[print_]}",
                "ruleAndSubject/v1": f"{print_}:{seen[print_]}",
            },
            "properties": {
                "severity": finding.severity,
                "when": finding.when,
                **({"confidence": confidence} if confidence else {}),
            },
            **state,
        }


def _stated(audit: Audit) -> Iterator[tuple[Finding, _Object]]:
    """Every finding with its baselineState and suppressions: where one result has them, all have.

    Whatever became of it, a finding keeps its place among those of its rule and subject, and so its fingerprint.
    """
    suppressed = bool(audit.excepted)
    found: list[tuple[Finding, str, list[_Object]]] = [(each, "new", []) for each in audit.findings]
    found += [(each, "unchanged", []) for each in audit.known]
    found += [
        (each.finding, "unchanged" if each.in_baseline else "new", [_suppression(each)]) for each in audit.excepted
    ]
    ordered = sorted(found, key=lambda entry: entry[0].order) if len(found) > len(audit.findings) else found
    ordered += [(each, "absent", []) for each in audit.fixed]
    for finding, state, suppressions in ordered:
        baseline = {"baselineState": state} if audit.baseline else {}
        yield finding, {**baseline, **({"suppressions": suppressions} if suppressed else {})}


def _suppression(each: ExceptedFinding) -> _Object:
    until = f" Until {each.expires}." if each.expires else ""
    said = _plain(f"{each.reason}{'' if each.reason.endswith('.') else '.'}{until} {each.source}")
    return {"kind": "external", "status": "accepted", "justification": said}


def _message(finding: Finding) -> str:
    condition = f"{finding.when[:1].upper()}{finding.when[1:]}: " if finding.when else ""
    return _plain(f"{condition}{finding.seen} {finding.remedy}")


def _fingerprint(finding: Finding) -> str:
    """The rule and what it is about, so that other numbers or words are the same alert."""
    about = finding.subject
    parts = (finding.rule, about.kind, about.namespace, about.workload_kind, about.name)
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:16]


def _location(subject: Subject) -> _Object:
    if subject.kind == "audit":
        # What could not be read is no place in the cluster.
        parts: list[str] = ["audit"]
    elif subject.kind == "node":
        parts = ["nodes", subject.name]
    else:
        parts = ["namespaces", subject.namespace or "", subject.workload_kind or "", subject.name]
    path = "/".join(_segment(part) for part in ("cluster", *parts))
    facts = {"kind": subject.workload_kind or subject.kind, "namespace": subject.namespace, "name": subject.name}
    return {
        "physicalLocation": {"artifactLocation": {"uri": path}, "region": {"startLine": 1}},
        "logicalLocations": [
            {
                "name": _plain(subject.name),
                "fullyQualifiedName": _plain("/".join(part for part in (subject.namespace, *_ends(subject)) if part)),
                "kind": "resource",
                "properties": {name: value for name, value in facts.items() if value is not None},
            }
        ],
    }


def _ends(subject: Subject) -> tuple[str, str]:
    return (subject.workload_kind or subject.kind, subject.name)


def _segment(text: str) -> str:
    """A part of a path that is one part, whatever is in it."""
    return quote(text, safe="", errors="replace") if text.strip(".") else f"_{text}"


def _invocation(audit: Audit, indices: dict[str, int]) -> _Object:
    """What could not be read makes the run unsuccessful, so that an incomplete audit never looks like a clean one."""
    coverage = audit.coverage
    rule = {"id": catalogue.INCOMPLETE.id, "index": indices[catalogue.INCOMPLETE.id]}
    told = [
        {
            "level": "error",
            "message": {"text": _plain(f"{gap.what}: {gap.why}. {gap.remedy}.")},
            "associatedRule": rule,
        }
        for gap in coverage.gaps
    ]
    told += [{"level": "warning", "message": {"text": _plain(f"{text}.")}} for text in coverage.unmatched]
    told += [{"level": "note", "message": {"text": _plain(f"{text}.")}} for text in coverage.notes]
    ended = {"endTimeUtc": audit.generated_at} if audit.generated_at else {}
    return {"executionSuccessful": coverage.complete, **ended, "toolExecutionNotifications": told}
