"""Findings as records, from the tables that were judged and from what is known of nodes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
from polars import col

from kubectl_cgaudit.audit import limits
from kubectl_cgaudit.audit.cases import NodeCases
from kubectl_cgaudit.audit.condition import condition
from kubectl_cgaudit.audit.confidence import settled, taken_for_granted
from kubectl_cgaudit.audit.inputs import Tables
from kubectl_cgaudit.audit.judge import RULES, Found, Judged
from kubectl_cgaudit.audit.model import (
    CERTAINTIES,
    SEVERITIES,
    AtLeast,
    CaseSeverity,
    Certainty,
    Coverage,
    Finding,
    Graver,
    Measure,
    Severity,
    Subject,
    Where,
    Workload,
)
from kubectl_cgaudit.audit.rules import jvm, misreaders, nodes
from kubectl_cgaudit.audit.rules.base import MEASURES
from kubectl_cgaudit.audit.rules.misreaders import is_cadvisor
from kubectl_cgaudit.audit.rules.nodes import NodeHit
from kubectl_cgaudit.audit.thresholds import Thresholds
from kubectl_cgaudit.collect.model import Pod
from kubectl_cgaudit.detect.state import Setup

_RULE_IDS = tuple(RULES)


def findings(
    tables: Tables, judged: Judged, workloads: Sequence[Workload], coverage: Coverage, thresholds: Thresholds
) -> tuple[Finding, ...]:
    """Return every finding, the worst first."""
    of_nodes = (finding for _, finding in node_findings(tables, judged, thresholds))
    found = [*_of_coverage(coverage), *of_nodes, *_of_pods(tables, judged, workloads)]
    return tuple(sorted(found, key=order))


def order(finding: Finding) -> tuple[Any, ...]:
    """To sort by: what holds in a leading case, then the worst severity; of a rule the surest first."""
    return (
        not finding.leads,
        -SEVERITIES.index(finding.severity),
        finding.rule,
        CERTAINTIES.index(finding.certainty),
        -finding.detail.get("badness", 0.0),
        finding.id,
    )


def _of_coverage(coverage: Coverage) -> Iterator[Finding]:
    """CGA001: something was asked for and could not be read."""
    seen: dict[str, int] = defaultdict(int)
    for gap in coverage.gaps:
        seen[gap.what] += 1
        again = f"#{seen[gap.what]}" if seen[gap.what] > 1 else ""
        detail = {"why": gap.why, "remedy": gap.remedy, "kind": gap.kind, "members": list(gap.members)}
        subject = Subject("audit", gap.what)
        yield Finding(
            f"CGA001:{subject.key}{again}",
            "CGA001",
            "high",
            "certain",
            subject,
            (),
            (),
            Where(),
            today=True,
            detail=detail,
        )


def node_findings(tables: Tables, judged: Judged | Found, thresholds: Thresholds) -> Iterator[tuple[int, Finding]]:
    """Yield the findings about nodes, each with the place of its node in the tables."""
    moments: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for row in judged.nodes.sort("row", "case").iter_rows(named=True):
        moments[row["row"]].append(row)
    decided: dict[int, set[int]] = defaultdict(set)
    for row in judged.questions.iter_rows(named=True):
        decided[row["node"]].add(row["question"])
    for place, node in enumerate(tables.nodes):
        asked = {question.about for number, question in enumerate(node.questions) if number in decided[place]}
        for rule, judge in nodes.BY_CASE.items():
            hits = [judge(node, case, row, thresholds) for case, row in zip(node.cases, moments[place], strict=True)]
            if any(hits):
                yield place, _of_cases(rule, node, hits)
                asked |= _deciding(node, hits)
        for rule, hit in (
            ("CGA103", nodes.both_formulas(node)),
            ("CGA102", nodes.unsettled(node, sorted(asked))),
        ):
            if hit:
                subject, where = Subject("node", node.node.name), Where(nodes=(node.node.name,), node=node.node.name)
                yield place, Finding(
                    f"{rule}:{subject.key}", rule, hit.severity, "certain", subject, (), hit.measures, where, hit.today,
                    detail=hit.detail,
                )  # fmt: skip


def _deciding(node: NodeCases, hits: Sequence[NodeHit | None]) -> set[str]:
    """Return the questions that decide how severe a finding about a node is: two cases differ in one answer, and in severity."""
    found = set()
    graded = [hit and hit.severity for hit in hits]
    for place, case in enumerate(node.cases):
        for other, another in enumerate(node.cases):
            if graded[place] != graded[other]:
                mine, theirs = dict(_answers(case.answers)), dict(_answers(another.answers))
                differs = [about for about in mine if mine[about] != theirs.get(about)]
                found |= set(differs) if len(differs) == 1 else set()
    return found


def _answers(answers: Iterable[tuple[Any, int]]) -> Iterator[tuple[str, int]]:
    return ((question.about, place) for question, place in answers)


def _of_cases(rule: str, node: NodeCases, hits: Sequence[NodeHit | None]) -> Finding:
    """A finding about a node: the worst of the leading cases is told, or of the others where it holds in these only."""
    leading = node.leading[None]
    severities = [hit.severity if hit else None for hit in hits]
    in_leading = [place for place, hit in enumerate(hits) if hit and leading[place]]
    among = in_leading or [place for place, hit in enumerate(hits) if hit]
    told = max(among, key=lambda place: (_grade(severities[place]), hits[place].badness, -place))  # type: ignore[union-attr]
    hit = hits[told]
    assert hit is not None
    gravest: Severity = max((each for each in severities if each), key=SEVERITIES.index)
    subject = Subject("node", node.node.name)
    at_least = _at_least(severities, leading, settled(node, None))
    return Finding(
        id=f"{rule}:{subject.key}",
        rule=rule,
        severity=hit.severity,
        certainty=next(each.certainty for each in at_least if each.severity == hit.severity),
        subject=subject,
        cases=tuple(
            CaseSeverity(case.when, rank, leads, severity)
            for rank, (case, leads, severity) in enumerate(zip(node.cases, leading, severities, strict=True), start=1)
            if severity
        ),
        measures=hit.measures,
        where=Where(nodes=(node.node.name,), node=node.node.name),
        today=hit.today,
        graver=_graver(
            gravest, hit.severity, [(case.when, own) for case, own in zip(node.cases, severities, strict=True)], node
        ),
        at_least=at_least,
        detail={**hit.detail, "badness": hit.badness, "when": node.cases[told].when, **_conditions(node)},
    )


def _conditions(node: NodeCases) -> dict[str, Any]:
    """What every case assumes, where there is more than one."""
    return {"conditions": list(node.conditions)} if len(node.cases) > 1 else {}


def _grade(severity: Severity | None) -> int:
    return -1 if severity is None else SEVERITIES.index(severity)


def _graver(
    gravest: Severity, told: Severity, cases: Iterable[tuple[str, Severity | None]], node: NodeCases
) -> Graver | None:
    """The gravest severity if it is graver than what is told; `cases` are those of the place, which may be milder."""
    if SEVERITIES.index(gravest) <= SEVERITIES.index(told):
        return None
    found = [when for when, severity in cases if severity == gravest]
    words = condition(found, node.conditions) if found else ""
    return Graver(gravest, words.removeprefix("if ") if words.startswith("if ") else " or ".join(found))


def _at_least(severities: Sequence[Severity | None], leading: Sequence[bool], sure: Certainty) -> tuple[AtLeast, ...]:
    """How surely something is this severe or worse, the worst first; `sure` is how surely what holds in every case does."""
    found = []
    for grade in reversed(range(max(_grade(each) for each in severities) + 1)):
        holds = [_grade(each) >= grade for each in severities]
        if all(holds):
            certainty = sure
        elif any(leading) and all(here for here, leads in zip(holds, leading, strict=True) if leads):
            certainty = max(sure, "probable", key=CERTAINTIES.index)
        else:
            certainty = "possible"
        found.append(AtLeast(SEVERITIES[grade], certainty))
    return tuple(found)


def _of_pods(tables: Tables, judged: Judged, workloads: Sequence[Workload]) -> Iterator[Finding]:
    by_key = {(each.namespace, each.kind, each.name): each for each in workloads}
    about = [by_key[namespace, owner.kind, owner.name] for namespace, owner in tables.workloads]
    subjects = [Subject("workload", each.name, each.namespace, each.kind) for each in about]
    names = [node.node.name for node in tables.nodes]
    in_order = sorted(names)
    told = judged.findings.join(_everywhere(judged.spread, names), on=["rule", "workload"], how="left").with_columns(
        image=tables.inputs.containers["image"].gather(judged.findings["container"].fill_null(0)),
        handler=tables.inputs.pods["handler"].gather(judged.findings["row"]),
        pod=tables.pod_names.gather(judged.findings["row"]),
    )
    shared: dict[Any, Any] = {}
    for values in told.select(_TOLD).iter_rows():
        row = _Told(*values)
        where = Where(
            pods_hit=row.pods_hit,
            pods=about[row.workload].pods,
            nodes=tuple([in_order[place] for place in row.nodes]),
            node=names[row.node],
            pod=row.pod,
            container=tables.containers[row.name] if row.container is not None and row.name is not None else None,
        )
        yield _of_pod(row, tables, subjects[row.workload], where, shared)


class _Told(NamedTuple):
    """The place that is told of a rule and workload, and where else it holds."""

    rule: int
    workload: int
    row: int
    node: int
    case: int
    handler: int
    severity: int
    certainty: int
    is_likely: bool
    place: int
    container: int | None
    name: int | None
    image: int
    pod: str
    held: Sequence[Mapping[str, int]]
    badness: float
    moved: float
    today: bool
    first_before: float | None
    first_after: float | None
    second_before: float | None
    second_after: float | None
    pods_hit: int
    nodes: Sequence[int]
    """By their places in the order of names."""
    certainty_1: int | None
    certainty_2: int | None
    certainty_3: int | None
    certainty_4: int | None


_TOLD = _Told._fields


def _everywhere(spread: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return of each rule and workload: on how many pods and on which nodes it holds, and how surely at each severity.

    What holds in a leading case counts, where it does so anywhere. A node is its place in the order of names.
    """
    order = pl.Series(sorted(range(len(names)), key=names.__getitem__), dtype=pl.Int32)
    counts = ~(col.severity > 0).any() | (col.severity > 0)
    places = spread.with_columns(node=order.arg_sort().gather(spread["node"]))
    return places.group_by("rule", "workload").agg(
        pods_hit=col.pods.filter(counts).sum(),
        nodes=col.node.filter(counts).sort(),
        **{name: col(name).min() for name in _CERTAINTIES},
    )


_CERTAINTIES = tuple(f"certainty_{level}" for level in range(1, len(SEVERITIES) + 1))


def _of_pod(row: _Told, tables: Tables, subject: Subject, where: Where, shared: dict[Any, Any]) -> Finding:
    """The finding; parts that are equal in many are held once, in `shared`."""
    rule, node = _RULE_IDS[row.rule], tables.nodes[row.node]
    handler = tables.handlers[row.handler]
    severity: Severity = SEVERITIES[row.severity - 1]
    held = _held(row, node, handler, shared)
    at_least = _at_least_of(row, shared)
    first, second = MEASURES[rule]
    case = node.cases[row.case]
    detail: dict[str, Any] = {
        "badness": row.badness,
        "when": case.when,
        **_conditions(node),
        "moved": row.moved,
        "about": "container" if row.place >= 0 else "pod",
    }
    if rule == "CGA401":
        image = tables.images[row.image]
        detail |= {"image": image, **_program(image, row)}
    elif rule in ("CGA301", "CGA302"):
        detail |= _of_limit(row, tables.pods[row.row], where.container, case.after)
        if rule == "CGA301":
            detail["takenForGranted"] = taken_for_granted(node.state, handler)
            detail["leavesV2"] = case.before.cgroup == "v2"
    return Finding(
        id=f"{rule}:{subject.key}",
        rule=rule,
        severity=severity,
        certainty=CERTAINTIES[row.certainty],
        subject=subject,
        cases=held,
        measures=(
            Measure(*first, row.first_before, row.first_after),
            Measure(*second, row.second_before, row.second_after),
        ),
        where=where,
        today=row.today,
        graver=_graver(at_least[0].severity, severity, ((each.when, each.severity) for each in held), node),
        at_least=at_least,
        detail=detail,
    )


def _held(row: _Told, node: NodeCases, handler: str, shared: dict[Any, Any]) -> tuple[CaseSeverity, ...]:
    leading = node.leading[handler]
    key = tuple(
        [(each["case"], each["severity"], leading[each["case"]], node.cases[each["case"]].when) for each in row.held]
    )
    found: tuple[CaseSeverity, ...] | None = shared.get(key)
    if found is None:
        found = shared[key] = tuple(
            CaseSeverity(when, case + 1, leads, SEVERITIES[severity - 1]) for case, severity, leads, when in key
        )
    return found


def _at_least_of(row: _Told, shared: dict[Any, Any]) -> tuple[AtLeast, ...]:
    key = (row.certainty_4, row.certainty_3, row.certainty_2, row.certainty_1)
    found: tuple[AtLeast, ...] | None = shared.get(key)
    if found is None:
        pairs = zip(reversed(SEVERITIES), key, strict=True)
        found = shared[key] = tuple(AtLeast(each, CERTAINTIES[known]) for each, known in pairs if known is not None)
    return found


def _of_limit(row: _Told, pod: Pod, name: str | None, setup: Setup) -> dict[str, Any]:
    """What to write instead of a container's limit; measured are its limit, and its quota before and after."""
    if _RULE_IDS[row.rule] == "CGA301":
        return {"write": limits.that_starts(pod, int(row.first_after or 0), setup)}
    container = next(each for each in pod.containers if each.name == name)
    write = limits.as_it_acts(pod, container, int(row.second_after or 0), setup)
    return {"write": write, "periodUs": setup.period_us}


def _program(image: str, row: _Told) -> dict[str, Any]:
    """What misreads the number: an image may be known, and the container be told for the host's cgroups that it sees."""
    java = jvm.old_jvm(image)
    if row.badness < misreaders.BY_IMAGE:
        return {"program": "cgroup-mount"}
    if java and not (is_cadvisor(image) and row.first_before == row.first_after):
        return {"program": "jvm", "java": java[0], "fault": java[1], "fixedIn": jvm.FIXED_IN}
    return {"program": "cadvisor"}
