"""Findings by rule, those together that one remedy answers. Plain text, not escaped."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from kubectl_cgaudit.judge.audit import Finding
from kubectl_cgaudit.report.content import severity_counts


class Remedied(Struct, frozen=True):
    """The first findings of a rule that one remedy answers."""

    remedy: str
    findings: Sequence[Finding]


class RuleGroup(Struct, frozen=True):
    """The findings of a rule that have one title, and so one reason why they matter."""

    rule: str
    first: bool
    """Whether a link to the rule leads here: it may have several titles."""
    title: str
    why: str
    counts: str
    amount: int
    groups: Sequence[Remedied]
    """The first, of as many findings as were asked for."""


def rules(findings: Iterable[Finding], most: int) -> list[RuleGroup]:
    """The findings by rule and title, the worst first; within these those that one remedy answers together.

    Of each so many are kept that the first `most` can be shown.
    """
    severities: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    by_rule: dict[tuple[str, str], dict[str, list[Finding]]] = defaultdict(dict)
    for finding in findings:
        key = finding.rule, finding.title
        severities[key][finding.severity] += 1
        by_remedy = by_rule[key]
        answered = by_remedy.get(finding.remedy)
        if answered is None and len(by_remedy) < most:
            by_remedy[finding.remedy] = [finding]
        elif answered is not None and len(answered) < most:
            answered.append(finding)
    # Of several titles of a rule the last written stays: the first.
    places = dict(reversed(by_rule))
    return [_rule_group(severities[of], by_remedy, first=places[of[0]] == of[1]) for of, by_remedy in by_rule.items()]


def _rule_group(severities: Counter[str], by_remedy: Mapping[str, Sequence[Finding]], *, first: bool) -> RuleGroup:
    groups = [Remedied(remedy, answered) for remedy, answered in by_remedy.items()]
    any_ = groups[0].findings[0]
    return RuleGroup(any_.rule, first, any_.title, any_.why, severity_counts(severities), severities.total(), groups)


def within(group: RuleGroup, most: int) -> tuple[list[Remedied], int]:
    """The first findings of a rule, and how many are left out."""
    shown, left = [], most
    for answered in group.groups:
        kept = answered.findings[:left]
        left -= len(kept)
        if kept:
            shown.append(Remedied(answered.remedy, kept))
    return shown, group.amount - (most - left)


def subject(finding: Finding) -> str:
    """Who a finding is about, and under which condition; without the name where what was seen begins with it."""
    kind = f" ({finding.subject.workload_kind})" if finding.subject.workload_kind else ""
    name = "" if finding.seen.startswith(finding.subject.title) else f"{finding.subject.title}{kind}"
    return ", ".join(part for part in (name, finding.when) if part)
