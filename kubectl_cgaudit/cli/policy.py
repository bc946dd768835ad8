"""The flags that judge an audit's findings: `--policy`, `--baseline`, `--fail-on`."""

import os
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from kubectl_cgaudit.cli.aside import say
from kubectl_cgaudit.cli.codes import FOUND, INCOMPLETE
from kubectl_cgaudit.cli.options import refuse_empty
from kubectl_cgaudit.cli.repeatable import Once
from kubectl_cgaudit.errors import UsageError
from kubectl_cgaudit.report.escape import visible

if TYPE_CHECKING:
    from kubectl_cgaudit.audit.model import Audit, Certainty, Finding, Question, Severity
    from kubectl_cgaudit.audit.policy import Policy

F = TypeVar("F", bound=Callable[..., Any])
LEVELS = ("none", "low", "medium", "high", "critical")
# Who reads the file says why it cannot be read, and what to do.
_PATH = click.Path(readable=False)
CERTAINTIES = ("certain", "stated", "likely", "probable", "possible")
_FLAGS = (
    click.option(
        "--policy",
        cls=Once,
        instead="write both into one file",
        metavar="FILE",
        type=_PATH,
        help="Thresholds, severities and exceptions that were agreed on: YAML (see docs/policy.md).",
    ),
    click.option(
        "--baseline",
        cls=Once,
        instead="give the audit that counts",
        metavar="FILE",
        type=_PATH,
        help="Count only what is new against this audit, which -o json wrote; only -o json may replace it.",
    ),
    click.option(
        "--fail-on",
        type=click.Choice(LEVELS),
        default="none",
        show_default=True,
        help="Exit with 4 if a finding of this severity or worse is left, with 3 if one may be.",
    ),
    click.option(
        "--fail-on-certainty",
        type=click.Choice(CERTAINTIES),
        default="probable",
        show_default=True,
        help="The certainty that a finding needs for that 4; with less it is 3. possible: also what hangs on an open question.",
    ),
)


class Judging(NamedTuple):
    """What the flags ask for."""

    fail_on: "Severity | None"
    certainty: "Certainty"
    policy: "Policy | None"
    baseline: "tuple[str, Audit] | None"
    """Its name, and what it found."""

    def thresholds(self, flags: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the policy and those of --threshold, which win."""
        return (*(self.policy.thresholds if self.policy else ()), *flags)


def policy_options(command: F) -> F:
    """The flags; the command gets them as `policy`, `baseline`, `fail_on` and `fail_on_certainty`."""
    for option in reversed(_FLAGS):
        command = option(command)
    return command


def read(policy: str | None, baseline: str | None, fail_on: str, fail_on_certainty: str) -> Judging:
    """Read the files, before a cluster is asked. Raises UsageError and InputError."""
    from kubectl_cgaudit.audit.model import CERTAINTIES as ALL
    from kubectl_cgaudit.audit.model import SEVERITIES
    from kubectl_cgaudit.audit.policy import load
    from kubectl_cgaudit.audit.saved import REMEDY, load_audit
    from kubectl_cgaudit.collect.input import read_bytes

    for flag, path in (("--policy", policy), ("--baseline", baseline)):
        refuse_empty(flag, (path,))
        if path == "-":
            raise UsageError(f"{flag} - would share standard input; give the path of a file")
    return Judging(
        next((severity for severity in SEVERITIES if severity == fail_on), None),
        next(certainty for certainty in ALL if certainty == fail_on_certainty),
        load(policy) if policy else None,
        (Path(baseline).name, load_audit(read_bytes(baseline, REMEDY), Path(baseline).name)) if baseline else None,
    )


def judged(audit: "Audit", judging: Judging) -> "Audit":
    """The audit under the policy, and against the baseline. Raises UsageError where it is another migration's."""
    if judging.policy:
        from kubectl_cgaudit.audit.policy import apply

        audit = apply(judging.policy, audit, _today() if judging.policy.dated else None)
    if judging.baseline:
        from kubectl_cgaudit.audit.baseline import against

        source, earlier = judging.baseline
        audit = against(earlier, source, audit)
    return audit


def again(audit: "Audit", judging: Judging, source: str) -> "Audit":
    """The same for a saved audit. Raises UsageError for what was settled when it was made."""
    from kubectl_cgaudit.audit.thresholds import parse

    for flag, given, had in (
        ("--policy", judging.policy, audit.policy),
        ("--baseline", judging.baseline, audit.baseline),
    ):
        if given and had:
            raise UsageError(f"{source} was made with {flag} {had.source} already; leave {flag} out")
    if judging.policy and audit.baseline:
        raise UsageError(f"{source} was compared with a baseline, and a policy comes before that; audit anew with both")
    said = judging.thresholds(())
    wanted = parse(said).by_name()
    for name in [each.partition("=")[0] for each in said]:
        if audit.target.thresholds.get(name) != wanted[name]:
            raise UsageError(
                f"{source} was audited with another threshold {name} than the policy sets; audit anew with --policy"
            )
    return judged(audit, judging)


def exit_code(audit: "Audit", judging: Judging) -> int:
    """Return 4 for findings at or above --fail-on, 3 where that cannot be decided or the audit is incomplete, else 0.

    Why, and what would decide it, is said on stderr in one line.
    """
    from kubectl_cgaudit.audit.standing import at_or_above
    from kubectl_cgaudit.text import counted

    complete = 0 if audit.coverage.complete else INCOMPLETE
    if not judging.fail_on:
        return complete
    amount, undecided = at_or_above(audit.findings, judging.fail_on, judging.certainty)
    if amount:
        worse = "" if judging.fail_on == "critical" else " or worse"
        say(f"--fail-on: {counted(amount, 'finding')} of severity {judging.fail_on}{worse}")
        return FOUND
    if undecided:
        say(visible(f"--fail-on {judging.fail_on} cannot be decided: {_undecided(audit, undecided, judging.fail_on)}"))
        return INCOMPLETE
    return complete


def _undecided(audit: "Audit", findings: "list[Finding]", level: "Severity") -> str:
    """Return which finding it hangs on, the command that settles it, and the line that accepts the default."""
    from kubectl_cgaudit.audit.standing import surely

    first, question = _deciding(audit, findings)
    worse = "" if level == "critical" else " or worse"
    words = _condition(first) or f"with certainty {surely(first, level)}"
    what = f"{first.rule} ({first.subject.title}) is {level}{worse} {words}"
    if question is None:
        return f"{what}. `kubectl cgaudit nodes` says how surely each node is known; --kubelet measures it."
    command = question.commands[0]
    where = "" if question.nodes[0] in command.command else f" on {question.nodes[0]}"
    answer = "accept the default" if question.confidence == "probable" else "say what you saw"
    look = f"`{command.command}`{where} ({command.shows})"
    return f"{what}. Settle it with {look}; or {answer} with --states FILE: `{question.states}`"


def _condition(finding: "Finding") -> str:
    """What it depends on, in words; empty where it holds in every case."""
    from kubectl_cgaudit.audit.condition import condition

    if finding.graver and finding.graver.when:
        return f"if {finding.graver.when}"
    every = finding.detail.get("conditions", [])
    as_severe = [case.when for case in finding.cases if case.severity == finding.severity]
    return condition(as_severe, every) if every and as_severe else ""


def _deciding(audit: "Audit", findings: "list[Finding]") -> "tuple[Finding, Question | None]":
    """Return the finding that hangs on the question that decides most, and that question."""
    for question in audit.questions:
        words = _WORDS.get(question.about.partition(":")[0], "")
        for finding in findings:
            if words and words in _condition(finding) and question.commands:
                return finding, question
    return findings[0], None


_WORDS = {"cgroup": "cgroup v", "runtime": " runtime", "reserve": "reserve on", "set_by": " set "}
"""What the condition of a finding says that hangs on a question."""


def _today() -> date:
    """The day that decides what has expired, in UTC. Raises UsageError where SOURCE_DATE_EPOCH is no time."""
    when = epoch()
    return (when or datetime.now(UTC)).date()


def now() -> datetime:
    """Return this moment in UTC, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


def epoch() -> datetime | None:
    """The time of SOURCE_DATE_EPOCH (`now` is this moment), in UTC; None where it is not set.

    Raises UsageError where it is no time.
    """
    said = os.environ.get("SOURCE_DATE_EPOCH")
    if not said:
        return None
    if said == "now":
        # As a job's manifest cannot know the time, and its metrics must tell when it last ran.
        return now()
    try:
        return datetime.fromtimestamp(int(said), UTC)
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"SOURCE_DATE_EPOCH is {said!r}, which is neither a time in seconds nor the word now"
        ) from None
