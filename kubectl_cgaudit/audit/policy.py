"""The policy file: thresholds, severities and exceptions that a team agreed on, and an audit under them.

thresholds: {system-loss: 15%}          # as --threshold, which wins
severities: {CGA203: off, CGA302: medium}
exceptions:
  - rule: CGA201                        # or a list
    match: {namespace: shop, kind: Deployment, name: check*}   # globs; node: for findings about nodes
    reason: agreed in CHG-123
    expires: 2026-12-31                 # the last day it holds
"""

import re
from collections.abc import Callable, Iterator
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit import settings
from kubectl_cgaudit.audit import thresholds
from kubectl_cgaudit.audit.findings import order
from kubectl_cgaudit.audit.model import (
    RULES,
    SEVERITIES,
    AtLeast,
    Audit,
    ExceptedFinding,
    Finding,
    PolicyRecord,
    Severity,
    Subject,
    Where,
)
from kubectl_cgaudit.audit.standing import recounted, surely
from kubectl_cgaudit.errors import UsageError

_KEYS = ("thresholds", "severities", "exceptions")
_EXCEPTION_KEYS = ("rule", "match", "reason", "expires")
_MATCH_KEYS = ("namespace", "kind", "name", "node")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EXCEPTION = "CGA002"
_IDS = tuple(rule.id for rule in RULES)

Level = Severity | Literal["off"]
"""off: the rule's findings are excepted, which every report shows."""


class Match(Struct, frozen=True):
    """Globs; None matches everything, also what is about something else."""

    namespace: str | None = None
    kind: str | None = None
    name: str | None = None
    node: str | None = None

    def fits(self, finding: Finding) -> bool:
        """Whether a finding is about what this speaks of."""
        about = finding.subject
        is_node = about.kind == "node"
        asked = (
            (self.namespace, about.namespace),
            (self.kind, about.workload_kind),
            (self.name, None if is_node else about.name),
            (self.node, about.name if is_node else None),
        )
        return all(glob is None or (value is not None and fnmatchcase(value, glob)) for glob, value in asked)

    def __str__(self) -> str:
        said = [f"{field} {value}" for field in self.__struct_fields__ if (value := getattr(self, field)) is not None]
        return ", ".join(said) or "everything"


class AgreedException(Struct, frozen=True):
    """Findings that somebody agreed to live with."""

    where: str
    """`policy.yaml exception 2`."""
    rules: tuple[str, ...]
    match: Match
    reason: str
    expires: date | None
    """The last day it holds."""

    def fits(self, finding: Finding) -> bool:
        """Whether it speaks of this finding."""
        return finding.rule in self.rules and self.match.fits(finding)


class Policy(Struct, frozen=True):
    """A policy file."""

    source: str
    thresholds: tuple[str, ...] = ()
    """`NAME=VALUE`, as --threshold takes them."""
    severities: tuple[tuple[str, Level], ...] = ()
    exceptions: tuple[AgreedException, ...] = ()

    @property
    def dated(self) -> bool:
        """Whether anything in it depends on the day."""
        return any(each.expires for each in self.exceptions)


_LEVELS: dict[str, Level] = {**{severity: severity for severity in reversed(SEVERITIES)}, "off": "off"}


def load(path: str) -> Policy:
    """Read a policy file. Raises UsageError that names the place and what is wrong with it."""
    return parse(settings.read(path, "policy file"), Path(path).name)


def parse(text: str, source: str) -> Policy:
    """Read the text of a policy file; `source` names it in messages and reports."""
    held = settings.loaded(text, source)
    if held is None:
        raise UsageError(f"{source} is empty; add one of {', '.join(_KEYS)}")
    if isinstance(held, list):
        raise UsageError(
            f"{source} is a list, as a states file is; give that with --states, or write a policy with {', '.join(_KEYS)}"
        )
    said = settings.mapping(held, source, _KEYS)
    if not said:
        raise UsageError(f"{source} says nothing; add one of {', '.join(_KEYS)}")
    exceptions = said.get("exceptions", [])
    if not isinstance(exceptions, list):
        raise UsageError(f"{source}: exceptions must be a list, such as: - {{rule: CGA201, reason: agreed in CHG-123}}")
    return Policy(
        source=source,
        thresholds=_thresholds(said.get("thresholds", {}), f"{source}: thresholds"),
        severities=_severities(said.get("severities", {}), f"{source}: severities"),
        exceptions=tuple(
            _exception(each, f"{source} exception {number}") for number, each in enumerate(exceptions, start=1)
        ),
    )


def _thresholds(value: object, where: str) -> tuple[str, ...]:
    names = tuple(thresholds.Thresholds().by_name())
    said = settings.texts(settings.mapping(value, where, names), where)
    found = tuple(f"{name}={amount}" for name, amount in said.items())
    try:
        thresholds.parse(found)
    except UsageError as error:
        raise UsageError(f"{where}: {str(error).removeprefix('--threshold: ')}") from None
    return found


def _severities(value: object, where: str) -> tuple[tuple[str, Level], ...]:
    found = []
    for rule, level in settings.texts(value, where).items():
        if level not in _LEVELS:
            near = settings.meant(level, tuple(_LEVELS), "it may be")
            raise UsageError(f"{where}: {_rule(rule, where)}: there is no severity {settings.shown(level)}{near}")
        found.append((_rule(rule, where), _LEVELS[level]))
    return tuple(sorted(found))


def _rule(text: str, where: str) -> str:
    if text not in _IDS:
        raise UsageError(
            f"{where}: there is no rule {settings.shown(text)}{settings.meant(text.upper(), _IDS, 'there are')}"
        )
    return text


def _exception(value: object, where: str) -> AgreedException:
    said = settings.mapping(value, where, _EXCEPTION_KEYS)
    for key in ("rule", "reason"):
        if key not in said:
            raise UsageError(f"{where} has no {key}; add one")
    reason = settings.text(said["reason"], f"{where}: reason").strip()
    if not reason:
        raise UsageError(f"{where}: reason is empty; say who agreed to it, and why")
    match = {
        key: settings.text(each, f"{where}: match: {key}")
        for key, each in settings.mapping(said.get("match", {}), f"{where}: match", _MATCH_KEYS).items()
    }
    if "match" in said and not match:
        raise UsageError(f"{where}: match is empty; leave it out to except every finding of the rule")
    if "node" in match and len(match) > 1:
        raise UsageError(f"{where}: match: node stands alone, as a node has no namespace, kind or workload; split it")
    return AgreedException(where, _rules(said["rule"], where), Match(**match), reason, _expires(said, where))


def _rules(value: object, where: str) -> tuple[str, ...]:
    listed = value if isinstance(value, list) and value else [value]
    found = tuple(_rule(settings.text(each, f"{where}: rule"), f"{where}: rule") for each in listed)
    if _EXCEPTION in found:
        raise UsageError(
            f"{where}: rule: {_EXCEPTION} speaks of the exceptions themselves; mend or remove the exception"
        )
    return found


def _expires(said: dict[str, object], where: str) -> date | None:
    if "expires" not in said:
        return None
    text = settings.text(said["expires"], f"{where}: expires")
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise UsageError(f"{where}: expires: {settings.shown(text)} is not a day such as 2026-12-31")


def apply(policy: Policy, audit: Audit, today: date | None) -> Audit:
    """Return the audit under a policy; its thresholds are the audit's already.

    `today` is asked for where an exception expires, else it may be None.
    """
    holding = [each for each in policy.exceptions if not _expired(each, today)]
    off = {rule for rule, level in policy.severities if level == "off"}

    def covered(finding: Finding) -> bool:
        return finding.rule in off or any(each.fits(finding) for each in holding)

    said = [_set(policy, each) for each in (*audit.findings, *_idle(policy, audit, today, covered))]
    left: list[Finding] = []
    excepted: list[ExceptedFinding] = []
    for finding in sorted(said, key=order):
        exception = next((each for each in holding if each.fits(finding)), None)
        if exception:
            expires = exception.expires.isoformat() if exception.expires else None
            excepted.append(ExceptedFinding(finding, exception.reason, expires, exception.where))
        elif finding.rule in off:
            reason = f"{policy.source} sets the severity of {finding.rule} to off"
            excepted.append(ExceptedFinding(finding, reason, None, f"{policy.source} severities"))
        else:
            left.append(finding)
    record = PolicyRecord(policy.source, dict(policy.severities))
    return recounted(replace(audit, findings=tuple(left), excepted=tuple(excepted), policy=record))


def _expired(exception: AgreedException, today: date | None) -> bool:
    return exception.expires is not None and today is not None and exception.expires < today


def _set(policy: Policy, finding: Finding) -> Finding:
    level = dict(policy.severities).get(finding.rule, "off")
    if level == "off":
        return finding
    # However severe it was in a case, it is as severe as that in each in which it holds.
    sure = surely(finding, "low") or finding.certainty
    return replace(
        finding,
        severity=level,
        certainty=sure,
        cases=tuple(replace(case, severity=level) for case in finding.cases),
        graver=None,
        at_least=tuple(AtLeast(each, sure) for each in reversed(SEVERITIES[: SEVERITIES.index(level) + 1])),
    )


def _idle(policy: Policy, audit: Audit, today: date | None, covered: Callable[[Finding], bool]) -> Iterator[Finding]:
    """Yield CGA002 for each exception that is over, or that matches nothing. `covered`: what the rest of the policy excepts."""
    for exception in policy.exceptions:
        amount = sum(map(exception.fits, audit.findings))
        subject = Subject("audit", f"exception of {' and '.join(exception.rules)} ({exception.match})")
        detail: dict[str, Any] = {"where": exception.where, "reason": exception.reason, "speaksOf": amount}
        if exception.expires is not None and _expired(exception, today):
            again = sum(exception.fits(each) and not covered(each) for each in audit.findings)
            detail |= {"state": "expired", "expires": exception.expires.isoformat(), "countsAgain": again}
        # With a filter nobody knows what it would have matched elsewhere.
        elif not amount and not audit.coverage.filter:
            detail |= {"state": "unused", "complete": audit.coverage.complete}
        else:
            continue
        yield Finding(
            f"{_EXCEPTION}:{exception.where}",
            _EXCEPTION,
            "low",
            "certain",
            subject,
            (),
            (),
            Where(),
            today=True,
            detail=detail,
        )
