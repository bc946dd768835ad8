"""What is new against an earlier audit: the findings that it has too are set apart, those that are gone are named."""

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.errors import UsageError
from kubectl_cgaudit.judge.audit import (
    SCHEMA_VERSION,
    SEVERITIES,
    Audit,
    BaselineRecord,
    Coverage,
    Finding,
    ScenarioRecord,
    Subject,
)
from kubectl_cgaudit.judge.rules import catalogue
from kubectl_cgaudit.judge.saved import decode
from kubectl_cgaudit.judge.standing import recounted
from kubectl_cgaudit.judge.waiting import waiting
from kubectl_cgaudit.text import counted

_Key = tuple[str, Subject]
_TITLES = frozenset(rule.title for rule in catalogue.RULES)


class Earlier(Struct, frozen=True, rename="camel"):
    """What is compared of an earlier audit; its pods are not even read."""

    schema_version: str
    tool_version: str
    generated_at: str | None
    scenario: ScenarioRecord
    coverage: Coverage
    findings: tuple[Finding, ...]
    known: tuple[Finding, ...] = ()


class Baseline(Struct, frozen=True):
    """An earlier audit, and what it is called."""

    source: str
    audit: Earlier | Audit


def load(data: bytes, source: str) -> Baseline:
    """The baseline in the JSON of an audit. Raises InputError where it is none, or one of another major version."""
    return Baseline(source, decode(data, source, Earlier))


def against(baseline: Baseline, audit: Audit) -> Audit:
    """The audit with only what is new among its findings; apply a policy first.

    A finding is known if the baseline has one of the same rule about the same subject that is as severe and holds as surely.
    What the baseline's policy excepted is not known: an exception that ends must show. Raises UsageError where the two
    judged other migrations.
    """
    earlier = baseline.audit
    # v2,runtime is v2+runtime.
    if earlier.scenario.description != audit.scenario.description:
        raise UsageError(
            f"--baseline {baseline.source} was audited with --to {earlier.scenario.to}, and this is --to {audit.scenario.to}; "
            "compare audits of the same target"
        )
    if None not in (then := earlier.scenario.rules, now := audit.scenario.rules) and then != now:
        raise UsageError(
            f"--baseline {baseline.source} was audited with another {earlier.scenario.to}: the file said something else then; "
            "make the baseline anew"
        )
    pool: dict[_Key, list[Finding]] = {}
    for finding in sorted(_in_baseline(earlier, audit), key=lambda each: each.order):
        pool.setdefault(_key(finding), []).append(finding)
    excepted = tuple(
        replace(each, in_baseline=_take(pool.get(_key(each.finding), []), each.finding)) for each in audit.excepted
    )
    new: list[Finding] = []
    known: list[Finding] = []
    for finding in audit.findings:
        (known if _take(pool.get(_key(finding), []), finding) else new).append(finding)
    # What got worse, and what is excepted now, is not gone.
    for finding in (*new, *(each.finding for each in excepted if not each.in_baseline)):
        left = pool.get(_key(finding), [])
        if of_it := next((each for each in left if _may_be(finding, each)), None):
            left.remove(of_it)
    fixed = tuple(sorted((each for rest in pool.values() for each in rest), key=lambda each: each.order))
    comparable = earlier.coverage.filter == audit.coverage.filter and audit.coverage.complete
    open_ = _open(audit)
    gone = tuple(each for each in fixed if each.subject.title not in open_) if comparable else ()
    notes = tuple(_notes(earlier, audit, len(fixed) - len(gone)))
    record = BaselineRecord(baseline.source, earlier.tool_version, earlier.generated_at, notes)
    judged = replace(audit, findings=tuple(new), known=tuple(known), fixed=gone, excepted=excepted, baseline=record)
    return recounted(judged, _sentence(judged, baseline.source))


def _open(audit: Audit) -> set[str]:
    """The nodes and workloads of which something cannot be said: a finding of theirs is not gone, it cannot be told."""
    nodes = {node.name for node in audit.nodes if node.confidence == "unknown"}
    workloads = {workload.title for workload in audit.workloads if "unknown" in workload.effects}
    return nodes | workloads | waiting(audit.coverage)


def _in_baseline(earlier: Earlier | Audit, audit: Audit) -> Iterator[Finding]:
    """What the baseline found, by the severities that hold now."""
    levels = audit.policy.severities if audit.policy else {}
    for finding in (*earlier.findings, *earlier.known):
        now = next((severity for severity in SEVERITIES if severity == levels.get(finding.rule)), finding.severity)
        yield replace(finding, severity=now)


def _key(finding: Finding) -> _Key:
    return finding.rule, finding.subject


def _take(left: list[Finding], finding: Finding) -> bool:
    """Take the finding's counterpart out of what is left of the baseline, if it has one."""
    same = [each for each in left if _may_be(finding, each) and not _worse(finding, each)]
    if same:
        left.remove(min(same, key=lambda each: each.title != finding.title))
    return bool(same)


def _may_be(now: Finding, then: Finding) -> bool:
    """Whether it is the same rule: some share an id, and a title that is none of theirs was worded otherwise once."""
    return then.title == now.title or then.title not in _TITLES


def _worse(now: Finding, then: Finding) -> bool:
    """Whether it is more severe than it was, or holds for sure where it only might, however severe."""
    graver = SEVERITIES.index(now.severity) < SEVERITIES.index(then.severity)
    return graver or (bool(then.when) and not now.when)


def _notes(earlier: Earlier | Audit, audit: Audit, untold: int) -> Iterator[str]:
    """In what the two differ beside the cluster; of `untold` findings it cannot be told whether they are gone."""
    if _minor(earlier.schema_version) > _minor(SCHEMA_VERSION):
        yield (
            f"The baseline has schema {earlier.schema_version}, newer than {SCHEMA_VERSION}: "
            "what this release does not know of it is not compared"
        )
    then, now = earlier.coverage, audit.coverage
    if then.filter != now.filter:
        yield (
            f"The baseline reports {then.filter or 'everything'}, this audit {now.filter or 'everything'}: "
            "what is gone cannot be told"
        )
    if not then.complete:
        yield "The baseline is incomplete: what is new may only have been unread then"
    if then.filter != now.filter:
        untold = 0
    if untold and not now.complete:
        yield "This audit is incomplete: what is gone cannot be told"
    elif untold:
        these, are = ("it", "is") if untold == 1 else ("they", "are")
        yield (
            f"Of {counted(untold, 'finding')} of the baseline it cannot be told whether {these} {are} gone: something of "
            "their nodes is not known now, or pods wait for one"
        )
    moved = [
        f"{name} {earlier.scenario.thresholds.get(name, 0):g} -> {value:g}"
        for name, value in audit.scenario.thresholds.items()
        if earlier.scenario.thresholds.get(name) != value
    ]
    if moved:
        yield f"The thresholds differ from the baseline's: {', '.join(moved)}"


def _minor(version: str) -> int:
    minor = version.partition(".")[2]
    return int(minor) if minor.isascii() and minor.isdigit() else 0


def _sentence(audit: Audit, source: str) -> str:
    amounts = Counter(finding.severity for finding in audit.findings)
    counts = ", ".join(f"{amounts[each]} {each}" for each in SEVERITIES if amounts[each])
    verb = "is" if len(audit.findings) == 1 else "are"
    new = f"{counted(len(audit.findings), 'finding')} {verb} new ({counts})" if audit.findings else "nothing is new"
    gone = (
        f"; {len(audit.fixed)} of its findings {'is' if len(audit.fixed) == 1 else 'are'} gone" if audit.fixed else ""
    )
    return (
        f"Against the baseline {source} {new}; {len(audit.known)} known from it "
        f"{'is' if len(audit.known) == 1 else 'are'} not counted{gone}. With what is known: {audit.verdict.sentence}"
    )
