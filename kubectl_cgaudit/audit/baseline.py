"""What is new against an earlier audit: the findings that it has too are set apart, those that are gone are named."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kubectl_cgaudit.audit.findings import order
from kubectl_cgaudit.audit.model import (
    SEVERITIES,
    Audit,
    BaselineRecord,
    Coverage,
    Finding,
    Subject,
    Where,
)
from kubectl_cgaudit.audit.nodes import overridden
from kubectl_cgaudit.audit.standing import recounted
from kubectl_cgaudit.errors import UsageError
from kubectl_cgaudit.text import NAMED, counted, named

_BY_THRESHOLD = {
    "CGA201": {"system-loss"},
    "CGA202": {"outweighed", "outweighed-reserve"},
    "CGA204": {"pod-move"},
    "CGA206": {"divisible"},
}
_NAMED_BY_PODS = frozenset({"Pod", "StatefulSet", "DaemonSet"})

_OPEN = ("probable", "possible")


def against(earlier: Audit, source: str, audit: Audit) -> Audit:
    """Return the audit with only what is new among its findings; apply a policy first.

    A finding is known if the baseline has one of the same rule about the same subject that is as severe and holds as surely;
    a gap, if it has all that is missing now. What the baseline's policy excepted is not known: an exception that ends must
    show. Raises UsageError where the two judged other migrations.
    """
    # v2,runtime is v2+runtime.
    if earlier.target.description != audit.target.description:
        raise UsageError(
            f"--baseline {source} was audited with --to {earlier.target.to}, and this is --to {audit.target.to}; "
            "compare audits of the same target"
        )
    if None not in (then := earlier.target.rules, now := audit.target.rules) and then != now:
        raise UsageError(
            f"--baseline {source} was audited with another {earlier.target.to}: the file said something else then; "
            "make the baseline anew"
        )
    if earlier.target.what_if != audit.target.what_if:
        raise UsageError(
            f"--baseline {source} was audited with another --what-if than this; compare audits of the same migration"
        )
    left = {_key(finding): finding for finding in _by_severities_of_now(earlier, audit)}
    new: list[Finding] = list(_overridden(earlier, source, audit))
    known: list[Finding] = []
    grown: list[tuple[str, Sequence[str]]] = []
    for finding in audit.findings:
        was = left.pop(_key(finding), None)
        if was is not None and not _worse(finding, was):
            known.append(finding)
            continue
        new.append(finding)
        if was is not None and (more := _more(finding, was)):
            grown.append((finding.subject.name, more))
    excepted = []
    for each in audit.excepted:
        was = left.pop(_key(each.finding), None)
        excepted.append(replace(each, in_baseline=was is not None and not _worse(each.finding, was)))
    fixed = sorted(left.values(), key=order)
    gone = _gone(fixed, earlier, audit)
    notes = tuple(_notes(earlier, audit, len(fixed) - len(gone), grown))
    record = BaselineRecord(source, earlier.tool_version, earlier.time, notes)
    new.sort(key=order)
    judged = replace(
        audit, findings=tuple(new), known=tuple(known), fixed=gone, excepted=tuple(excepted), baseline=record
    )
    return recounted(judged)


def _key(finding: Finding) -> str:
    """What a finding is known by: a gap by the kind of what is missing, as its name counts them."""
    kind = finding.detail.get("kind") if finding.rule == "CGA001" else None
    return f"{finding.rule}:{kind}" if kind else finding.id


def _worse(now: Finding, then: Finding) -> bool:
    """Return whether it is more severe than it was, holds for sure where it hung on an open question, or tells of more."""
    graver = SEVERITIES.index(now.severity) > SEVERITIES.index(then.severity)
    surer = then.certainty in _OPEN and now.certainty not in _OPEN
    return graver or surer or bool(_more(now, then)) or not _unsettled(now) <= _unsettled(then)


def _unsettled(finding: Finding) -> set[str]:
    """Return in what ways the state of a node is not settled: what contradicts itself now may only have been unknown then."""
    if finding.rule != "CGA102":
        return set()
    found = {"contradictions"} if finding.detail.get("contradictions") else set()
    return found | {"open" for name in ("unknown", "probable", "whoSet") if finding.detail.get(name)}


def _more(now: Finding, then: Finding) -> Sequence[str]:
    """Return what a gap has that it did not have."""
    had = set(then.detail.get("members", ()))
    return [each for each in now.detail.get("members", ()) if each not in had] if now.rule == "CGA001" else ()


def _by_severities_of_now(earlier: Audit, audit: Audit) -> Iterator[Finding]:
    """Yield what the baseline found, by the severities that hold now."""
    levels = audit.policy.severities if audit.policy else {}
    for finding in (*earlier.findings, *earlier.known):
        now = next((severity for severity in SEVERITIES if severity == levels.get(finding.rule)), finding.severity)
        yield replace(finding, severity=now)


def _overridden(earlier: Audit, source: str, audit: Audit) -> Iterator[Finding]:
    """Yield CGA102 for each node of which the baseline took a default that was overridden."""
    nodes = {node.name: node for node in audit.nodes}
    for was in earlier.nodes:
        now = nodes.get(was.name)
        found = list(overridden(was.name, was.known, was.cases[0].after, now.known)) if now else []
        if found:
            detail = {
                "overridden": [
                    {"about": each.about, "was": each.was.value, "wasFrom": each.was.source, "now": each.now.value,
                     "nowFrom": each.now.source}
                    for each in found
                ],
                "baseline": source,
            }  # fmt: skip
            subject, where = Subject("node", was.name), Where(nodes=(was.name,), node=was.name)
            identity = f"CGA102:{subject.key}#overridden"
            yield Finding(identity, "CGA102", "medium", "certain", subject, (), (), where, today=True, detail=detail)


def _gone(fixed: Sequence[Finding], earlier: Audit, audit: Audit) -> tuple[Finding, ...]:
    """Return what is gone for sure."""
    comparable = earlier.coverage.filter == audit.coverage.filter and audit.coverage.complete
    if not comparable or _unasked(earlier, audit):
        return ()
    open_, lax = _open(audit), _finding_less(earlier, audit)
    return tuple(
        each
        for each in fixed
        if each.subject.title not in open_
        and each.rule not in lax
        and not may_differ(each.subject.workload_kind, earlier.coverage, audit.coverage)
    )


def may_differ(kind: str | None, one: Coverage, other: Coverage) -> bool:
    """Return whether a workload of this kind in one audit may be one of another kind or name in the other.

    A Rollout is taken for a Deployment where its ReplicaSet was not read.
    """
    return one.workload_names != other.workload_names and kind is not None and kind not in _NAMED_BY_PODS


def _unasked(earlier: Audit, audit: Audit) -> bool:
    """Return whether kubelets were asked then only: what they showed, or that they did not answer, is not seen any more."""
    return earlier.coverage.kubelets_asked and not audit.coverage.kubelets_asked


def _finding_less(earlier: Audit, audit: Audit) -> set[str]:
    """Return the rules that find less now by another threshold: what they found may be there still."""
    then, now = earlier.target.thresholds, audit.target.thresholds
    found = set()
    for rule, names in _BY_THRESHOLD.items():
        for name in names & then.keys() & now.keys():
            # A weight is found below this one, everything else from it on.
            if now[name] < then[name] if name == "divisible" else now[name] > then[name]:
                found.add(rule)
    return found


def _open(audit: Audit) -> set[str]:
    """Return the nodes and workloads of which something cannot be said: whether a finding of theirs is gone cannot be told."""
    nodes = {node.name for node in audit.nodes if node.confidence == "unknown"}
    workloads = {workload.title for workload in audit.workloads if "unknown" in workload.effects}
    return nodes | workloads | waiting(audit.coverage)


def waiting(coverage: Coverage) -> frozenset[str]:
    """Return all that pods without a node may belong to, as `namespace/name`.

    Of them nothing is predicted, and what they belong to is not gone. Their names are its name, or go on after a hyphen.
    """
    found = set()
    for pod in coverage.pods_without_node:
        parts = pod.split("-")
        found |= {"-".join(parts[:end]) for end in range(1, len(parts) + 1)}
    return frozenset(found)


def _notes(earlier: Audit, audit: Audit, untold: int, grown: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """Yield in what the two differ beside the cluster; of `untold` findings it cannot be told whether they are gone."""
    then, now = earlier.coverage, audit.coverage
    if then.filter != now.filter:
        yield (
            f"The baseline reports {then.filter or 'everything'}, this audit {now.filter or 'everything'}: "
            "what is gone cannot be told"
        )
        untold = 0
    if not then.complete:
        yield "The baseline is incomplete: what is new may only have been unread then"
    for what, more in grown:
        yield f"Of {what} the baseline does not name {named(more, NAMED)}"
    if untold and not now.complete:
        yield "This audit is incomplete: what is gone cannot be told"
    elif untold and _unasked(earlier, audit):
        yield "The baseline asked the kubelets and this audit did not (--kubelet): what is gone cannot be told"
    elif untold:
        these, are = ("it", "is") if untold == 1 else ("they", "are")
        yield (
            f"Of {counted(untold, 'finding')} of the baseline it cannot be told whether {these} {are} gone: something of "
            "their nodes is unknown now, pods wait for one, a threshold finds less, or owners were read of one audit only"
        )
    moved = [
        f"{name} {earlier.target.thresholds.get(name, 0):g} -> {value:g}"
        for name, value in audit.target.thresholds.items()
        if earlier.target.thresholds.get(name) != value
    ]
    if moved:
        yield f"The thresholds differ from the baseline's: {', '.join(moved)}"
