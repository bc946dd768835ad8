"""A policy on an audit: severities are set, what is excepted is set apart, and exceptions that do nothing are found."""

from collections.abc import Callable, Iterator
from datetime import date

from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import SEVERITIES, AtLeast, Audit, ExceptedFinding, Finding, PolicyRecord, Subject
from kubectl_cgaudit.judge.policy.types import AgreedException, Policy
from kubectl_cgaudit.judge.rules.catalogue import EXCEPTION
from kubectl_cgaudit.judge.standing import recounted, surely
from kubectl_cgaudit.text import counted


def apply(policy: Policy, audit: Audit, today: date | None) -> Audit:
    """The audit under a policy; its thresholds are the audit's already.

    `today` is asked for where an exception expires, else it may be None.
    """
    holding = [each for each in policy.exceptions if not _expired(each, today)]
    off = {rule for rule, level in policy.severities if level == "off"}

    def covered(finding: Finding) -> bool:
        return finding.rule in off or any(each.fits(finding) for each in holding)

    said = [_set(policy, each) for each in (*audit.findings, *_idle(policy, audit, today, covered))]
    left: list[Finding] = []
    excepted: list[ExceptedFinding] = []
    for finding in sorted(said, key=lambda each: each.order):
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
    judged = replace(audit, findings=tuple(left), excepted=tuple(excepted), policy=record)
    return recounted(judged, _sentence(policy, audit, len(excepted)))


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
        at_least=tuple(AtLeast(each, sure) for each in SEVERITIES[SEVERITIES.index(level) :]),
    )


def _idle(policy: Policy, audit: Audit, today: date | None, covered: Callable[[Finding], bool]) -> Iterator[Finding]:
    """A finding for each exception that is over, or that matches nothing. `covered`: what the rest of the policy excepts."""
    for exception in policy.exceptions:
        amount = sum(map(exception.fits, audit.findings))
        subject = Subject("audit", f"exception of {' and '.join(exception.rules)} ({exception.match})")
        if exception.expires is not None and _expired(exception, today):
            seen = f"{exception.where} ({exception.reason}) held until {exception.expires}."
            again = sum(exception.fits(each) and not covered(each) for each in audit.findings)
            remedy = "Look at what it covered: agree on a new day, or remove it."
            yield EXCEPTION.finding("low", subject, "", seen + _again(again, amount), remedy)
        # With a filter nobody knows what it would have matched elsewhere.
        elif not amount and not audit.coverage.filter:
            seen = f"{exception.where} ({exception.reason}) matches no finding."
            unread = " The audit is incomplete: it may speak of what could not be read." * (not audit.coverage.complete)
            yield EXCEPTION.finding("low", subject, "", seen + unread, "Check its rule and its match, or remove it.")


def _again(amount: int, spoken_of: int) -> str:
    """How many of the findings that an exception speaks of count again, now that it is over."""
    if not spoken_of:
        return " It matches no finding."
    if not amount:
        return " All that it speaks of is excepted by the rest of the policy."
    these = counted(amount, "finding") if amount == spoken_of else f"{amount} of {counted(spoken_of, 'finding')}"
    return f" {these} that it speaks of {'counts' if amount == 1 else 'count'} again."


def _sentence(policy: Policy, audit: Audit, amount: int) -> str:
    if not amount:
        return audit.verdict.sentence
    verb = "is" if amount == 1 else "are"
    return f"{audit.verdict.sentence} {counted(amount, 'finding')} {verb} excepted by {policy.source} and not counted."
