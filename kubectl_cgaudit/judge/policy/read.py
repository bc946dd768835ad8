"""The policy file, in YAML.

thresholds: {system-loss: 15%}          # as --threshold, which wins
severities: {CGA203: off, CGA302: medium}
exceptions:
  - rule: CGA201                        # or a list
    match: {namespace: shop, kind: Deployment, name: check*}   # globs; node: for findings about nodes
    reason: agreed in CHG-123
    expires: 2026-12-31                 # the last day it holds
"""

import re
from datetime import date
from pathlib import Path

from kubectl_cgaudit import settings
from kubectl_cgaudit.errors import UsageError
from kubectl_cgaudit.judge import thresholds
from kubectl_cgaudit.judge.audit import SEVERITIES
from kubectl_cgaudit.judge.policy.types import AgreedException, Level, Match, Policy
from kubectl_cgaudit.judge.rules import catalogue

_KEYS = ("thresholds", "severities", "exceptions")
_EXCEPTION_KEYS = ("rule", "match", "reason", "expires")
_MATCH_KEYS = ("namespace", "kind", "name", "node")
_LEVELS: dict[str, Level] = {**{severity: severity for severity in SEVERITIES}, "off": "off"}
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


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
    if text not in catalogue.IDS:
        raise UsageError(
            f"{where}: there is no rule {settings.shown(text)}{settings.meant(text.upper(), catalogue.IDS, 'there are')}"
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
    if catalogue.EXCEPTION.id in found:
        raise UsageError(
            f"{where}: rule: {catalogue.EXCEPTION.id} speaks of the exceptions themselves; mend or remove the exception"
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
