"""What is new against an earlier audit: the findings that it has too are set apart, those that are gone are named."""

from collections import Counter
from collections.abc import Iterator, Sequence

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
    Known,
    NodeMoment,
    ScenarioRecord,
    Subject,
)
from kubectl_cgaudit.judge.counterparts import Counterparts
from kubectl_cgaudit.judge.naming import may_differ
from kubectl_cgaudit.judge.nodes import overridden
from kubectl_cgaudit.judge.rules import catalogue
from kubectl_cgaudit.judge.saved import decode
from kubectl_cgaudit.judge.standing import recounted
from kubectl_cgaudit.judge.waiting import waiting
from kubectl_cgaudit.text import NAMED, counted, named

_BY_THRESHOLD = {
    catalogue.SYSTEM_LOSS.id: {"system-loss"},
    catalogue.SYSTEM_OUTWEIGHED.id: {"outweighed", "outweighed-reserve"},
    catalogue.MOVES_INSIDE.id: {"pod-move"},
    catalogue.NOT_DIVISIBLE.id: {"divisible"},
}


class EarlierNode(Struct, frozen=True, rename="camel"):
    """What an earlier audit took for true of a node."""

    name: str
    known: dict[str, Known]
    after: NodeMoment


class Earlier(Struct, frozen=True, rename="camel"):
    """What is compared of an earlier audit; its pods are not even read."""

    schema_version: str
    tool_version: str
    generated_at: str | None
    scenario: ScenarioRecord
    coverage: Coverage
    nodes: tuple[EarlierNode, ...]
    findings: tuple[Finding, ...]
    known: tuple[Finding, ...] = ()


class Baseline(Struct, frozen=True):
    """An earlier audit, and what it is called."""

    source: str
    audit: Earlier


def load(data: bytes, source: str) -> Baseline:
    """The baseline in the JSON of an audit. Raises InputError where it is none, or one of another major version."""
    return Baseline(source, decode(data, source, Earlier))


def against(baseline: Baseline, audit: Audit) -> Audit:
    """The audit with only what is new among its findings; apply a policy first.

    A finding is known if the baseline has one of the same rule about the same subject that is as severe and holds as surely;
    a gap, if it has all that is missing now.
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
    left = Counterparts(_in_baseline(earlier, audit), earlier.coverage.gaps, audit.coverage.gaps)
    excepted = tuple(replace(each, in_baseline=left.take(each.finding)) for each in audit.excepted)
    new: list[Finding] = list(_overridden(baseline, audit))
    known: list[Finding] = []
    for finding in audit.findings:
        (known if left.take(finding) else new).append(finding)
    # What got worse, and what is excepted now, is not gone.
    grown = [(finding.subject.name, more) for finding in new if (more := left.outgrown(finding))]
    for each in excepted:
        if not each.in_baseline:
            left.outgrown(each.finding)
    fixed = left.left()
    open_, lax = _open(audit), _finding_less(earlier, audit)

    def untold(each: Finding) -> bool:
        subject = each.subject
        renamed = may_differ(subject.workload_kind, earlier.coverage, audit.coverage)
        return subject.title in open_ or each.rule in lax or renamed

    comparable = earlier.coverage.filter == audit.coverage.filter and audit.coverage.complete
    comparable = comparable and not _unasked(earlier, audit)
    gone = tuple(each for each in fixed if not untold(each)) if comparable else ()
    notes = tuple(_notes(earlier, audit, len(fixed) - len(gone), grown))
    record = BaselineRecord(baseline.source, earlier.tool_version, earlier.generated_at, notes)
    new.sort(key=lambda each: each.order)
    judged = replace(audit, findings=tuple(new), known=tuple(known), fixed=gone, excepted=excepted, baseline=record)
    return recounted(judged, _sentence(judged, baseline.source))


def _overridden(baseline: Baseline, audit: Audit) -> Iterator[Finding]:
    """Yield CGA102 for each node of which the baseline took a default that was overridden."""
    nodes = {node.name: node for node in audit.nodes}
    for was in baseline.audit.nodes:
        now = nodes.get(was.name)
        found = list(overridden(was.name, was.known, was.after, now.known)) if now else []
        if found:
            seen = f"{was.name}: {'; '.join(each.words() for each in found)}."
            remedy = (
                f"Of this node believe this audit, and of {baseline.source} its other cases. Look whether nodes of the same kind "
                "were changed likewise."
            )
            yield catalogue.OVERRIDDEN.finding("medium", Subject("node", was.name), "", seen, remedy)


def _unasked(earlier: Earlier, audit: Audit) -> bool:
    """Whether kubelets were asked then only: what they showed, or that they did not answer, is not seen any more."""
    return earlier.coverage.kubelets_asked and not audit.coverage.kubelets_asked


def _finding_less(earlier: Earlier, audit: Audit) -> set[str]:
    """The rules that find less now by another threshold: what they found may be there still."""
    then, now = earlier.scenario.thresholds, audit.scenario.thresholds
    found = set()
    for rule, names in _BY_THRESHOLD.items():
        for name in names & then.keys() & now.keys():
            # A weight is found below this one, everything else from it on.
            if now[name] < then[name] if name == "divisible" else now[name] > then[name]:
                found.add(rule)
    return found


def _open(audit: Audit) -> set[str]:
    """The nodes and workloads of which something cannot be said: a finding of theirs is not gone, it cannot be told."""
    nodes = {node.name for node in audit.nodes if node.confidence == "unknown"}
    workloads = {workload.title for workload in audit.workloads if "unknown" in workload.effects}
    return nodes | workloads | waiting(audit.coverage)


def _in_baseline(earlier: Earlier, audit: Audit) -> Iterator[Finding]:
    """What the baseline found, by the severities that hold now."""
    levels = audit.policy.severities if audit.policy else {}
    for finding in (*earlier.findings, *earlier.known):
        now = next((severity for severity in SEVERITIES if severity == levels.get(finding.rule)), finding.severity)
        yield replace(finding, severity=now)


def _notes(earlier: Earlier, audit: Audit, untold: int, grown: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """In what the two differ beside the cluster; of `untold` findings it cannot be told whether they are gone. `grown` are
    gaps of the baseline, and what they have more now.
    """
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
    for what, more in grown:
        yield f"Of {what} the baseline does not name {named(more, NAMED)}"
    if then.filter != now.filter:
        untold = 0
    if untold and not now.complete:
        yield "This audit is incomplete: what is gone cannot be told"
    elif untold and _unasked(earlier, audit):
        yield "The baseline asked the kubelets and this audit did not (--kubelet): what is gone cannot be told"
    elif untold:
        these, are = ("it", "is") if untold == 1 else ("they", "are")
        yield (
            f"Of {counted(untold, 'finding')} of the baseline it cannot be told whether {these} {are} gone: something of "
            "their nodes is not known now, pods wait for one, a threshold finds less, or owners were read of one audit only"
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
