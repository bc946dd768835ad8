"""SARIF 2.1.0: the findings for code scanning and other viewers of analysis results."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from kubectl_cgaudit.judge.audit import Audit, ExceptedFinding, Finding, Severity, Subject
from kubectl_cgaudit.judge.findings import faces
from kubectl_cgaudit.judge.rules import catalogue
from kubectl_cgaudit.judge.rules.coverage import Behind
from kubectl_cgaudit.plain import indented
from kubectl_cgaudit.report.escape import json_text, visible
from kubectl_cgaudit.report.links import HOMEPAGE, finding_page
from kubectl_cgaudit.report.pieces import Pieces, together
from kubectl_cgaudit.text import NAMED, capital

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: dict[Severity, str] = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}
_OF_RULES = {rule.id: _LEVELS[rule.gravest] for rule in catalogue.RULES}
_Object = dict[str, Any]
_SAFE = re.compile(r"[\w.~-]+", re.ASCII)
_RESULT = "\n" + " " * 8
_NO_RESULTS = '\n      "results": []'
# Stands for a text of a result until it is known. No text that is shown has it: `visible` escapes it.
_OWN = "\ue000"


def pieces(audit: Audit) -> Pieces:
    """The audit as one SARIF run. Every result has a physical location: code scanning refuses results without."""
    return Pieces(together(_text(audit)))


def _text(audit: Audit) -> Iterator[str]:
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
        "results": [],
        "properties": {
            "schemaVersion": audit.schema_version,
            "verdict": _plain(audit.verdict.sentence),
            "scenario": audit.scenario.to,
            "assumptions": list(audit.scenario.assumptions),
        },
    }
    # No text in JSON holds a raw line break, so there is one such place.
    before, _, after = indented({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}).partition(_NO_RESULTS)
    yield before + _NO_RESULTS[:-1]
    between, end = "", ""
    for result in _results(audit, indices):
        yield f"{between}{_RESULT}{result}"
        between, end = ",", "\n      "
    yield f"{end}]{after}\n"


def _plain(text: str) -> str:
    """The text such that nothing in it acts; `](` would make a link of what stands before it."""
    return visible(text).replace("](", "] (")


def _rules(audit: Audit) -> list[_Object]:
    """Every rule of the catalogue, and what else the findings name, as audits are also read from files."""
    said: dict[str, tuple[list[str], list[str]]] = {}
    named = [(rule.id, rule.title, rule.why) for rule in catalogue.RULES]
    strange = any(rule not in catalogue.IDS for (_, rule, _), _ in faces(audit.findings))
    counted = audit.findings if strange else ()
    every = chain(counted, audit.known, (each.finding for each in audit.excepted), audit.fixed)
    named += [(each.rule, each.title, each.why) for each in every if each.rule not in catalogue.IDS]
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
        "shortDescription": {"text": f"{capital(title)}."},
        "fullDescription": {"text": why},
        "help": {"text": why, **({"markdown": why + more} if page else {})},
        "defaultConfiguration": {"level": _OF_RULES.get(id_, "error")},
        "properties": {"tags": ["kubernetes", "cgroup", "cpu"]},
    }
    return {**rule, "helpUri": page} if page else rule


class _Fixed(Struct, frozen=True):
    """What of a result there is in few kinds: results that have it in common are laid out once."""

    severity: Severity
    index: int
    confidence: str | None
    certainty: str
    has_namespace: bool
    baseline: str | None
    justifications: tuple[str, ...] | None
    """Of the suppressions; None where no result of the run has any."""


def _results(audit: Audit, indices: dict[str, int]) -> Iterator[str]:
    sure = {Subject("node", node.name): node.confidence for node in audit.nodes}
    sure |= {Subject("workload", each.name, each.namespace, each.kind): each.confidence for each in audit.workloads}
    gaps = Behind(audit.coverage.gaps)
    seen: Counter[int] = Counter()
    layouts: dict[_Fixed, str] = {}
    for finding, baseline, justifications in _stated(audit):
        about = finding.subject
        spaced = about.namespace is not None
        kind = finding.severity, indices[finding.rule], sure.get(about), finding.certainty
        fixed = _Fixed(*kind, spaced, baseline, justifications)
        layout = layouts.get(fixed)
        if layout is None:
            layout = layouts[fixed] = _layout(fixed)
        gap = gaps.of(finding)
        print_ = _fingerprint(finding, gap.members[NAMED:] if gap else ())
        seen[print_] += 1
        # Code scanning reads only the first, and expects a count after a colon.
        number = f'"{print_:016x}:{seen[print_]}"'
        title = _plain(
            "/".join(part for part in (about.namespace, about.workload_kind or about.kind, about.name) if part)
        )
        yield layout % (
            _quoted(finding.rule),
            _quoted(_message(finding)),
            _quoted(_path(about)),
            _quoted(_plain(about.name)),
            _quoted(title),
            _quoted(about.workload_kind or about.kind),
            *((_quoted(about.namespace),) if about.namespace is not None else ()),
            _quoted(about.name),
            number,
            number,
            _quoted(finding.when),
        )


def _layout(fixed: _Fixed) -> str:
    """A result with `%s` for each text that is its own, in their order."""
    result = {
        "ruleId": _OWN,
        "ruleIndex": fixed.index,
        "level": _LEVELS[fixed.severity],
        "message": {"text": _OWN},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": _OWN}, "region": {"startLine": 1}},
                "logicalLocations": [
                    {
                        "name": _OWN,
                        "fullyQualifiedName": _OWN,
                        "kind": "resource",
                        "properties": {
                            "kind": _OWN,
                            **({"namespace": _OWN} if fixed.has_namespace else {}),
                            "name": _OWN,
                        },
                    }
                ],
            }
        ],
        "partialFingerprints": {"primaryLocationLineHash": _OWN, "ruleAndSubject/v1": _OWN},
        "properties": {
            "severity": fixed.severity,
            "when": _OWN,
            **({"confidence": fixed.confidence} if fixed.confidence else {}),
            "certainty": fixed.certainty,
        },
        **({"baselineState": fixed.baseline} if fixed.baseline else {}),
        **({} if fixed.justifications is None else {"suppressions": list(map(_suppression, fixed.justifications))}),
    }
    return indented(result).replace("\n", _RESULT).replace("%", "%%").replace(indented(_OWN), "%s")


def _quoted(text: str) -> str:
    return json_text(msgspec.json.encode(text).decode())


def _stated(audit: Audit) -> Iterator[tuple[Finding, str | None, tuple[str, ...] | None]]:
    """Every finding with its baselineState and the grounds of its suppressions: where one result has them, all have.

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
    yield from sorted(found, key=lambda entry: entry[0].order) if audit.known or audit.excepted else found


def _justification(each: ExceptedFinding) -> str:
    until = f" Until {each.expires}." if each.expires else ""
    return _plain(f"{each.reason}{'' if each.reason.endswith('.') else '.'}{until} {each.source}")


def _suppression(justification: str) -> _Object:
    return {"kind": "external", "status": "accepted", "justification": justification}


def _message(finding: Finding) -> str:
    condition = f"{capital(finding.when)}: " if finding.when else ""
    return _plain(f"{condition}{finding.seen} {finding.remedy}")


def _fingerprint(finding: Finding, unnamed: Sequence[str]) -> int:
    """The rule and what it is about, with what its name leaves out, so that other numbers or words are the same alert."""
    about = finding.subject
    parts = (finding.rule, about.kind, about.namespace, about.workload_kind, about.name, *unnamed)
    return int.from_bytes(hashlib.sha256(msgspec.json.encode(parts)).digest()[:8], "big")


def _path(subject: Subject) -> str:
    if subject.kind == "audit":
        # What could not be read is no place in the cluster.
        return "cluster/audit"
    if subject.kind == "node":
        return f"cluster/nodes/{_segment(subject.name)}"
    parts = (subject.namespace or "", subject.workload_kind or "", subject.name)
    return f"cluster/namespaces/{'/'.join(map(_segment, parts))}"


def _segment(text: str) -> str:
    """A part of a path that is one part, whatever is in it."""
    if not text.strip("."):
        return f"_{text}"
    return text if _SAFE.fullmatch(text) else quote(text, safe="", errors="replace")


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
