"""Findings as records, from the tables that were judged and from what is known of nodes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

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
    spread: dict[tuple[int, int], list[Mapping[str, Any]]] = defaultdict(list)
    for row in judged.spread.iter_rows(named=True):
        spread[row["rule"], row["workload"]].append(row)
    images = judged.findings.select(container=col.container)["container"]
    rows = tables.inputs.containers["image"].gather(images.fill_null(0)) if len(images) else images
    for row, image in zip(judged.findings.iter_rows(named=True), rows, strict=True):
        namespace, owner = tables.workloads[row["workload"]]
        workload = by_key[namespace, owner.kind, owner.name]
        yield _of_pod(row, spread[row["rule"], row["workload"]], tables, workload, tables.images[image])


def _of_pod(
    row: Mapping[str, Any], spread: Sequence[Mapping[str, Any]], tables: Tables, workload: Workload, image: str
) -> Finding:
    rule, node = _RULE_IDS[row["rule"]], tables.nodes[row["node"]]
    subject = Subject("workload", workload.name, workload.namespace, workload.kind)
    pod, handler = tables.pods[row["row"]], tables.handlers[tables.inputs.pods["handler"][row["row"]]]
    leading = node.leading[handler]
    severity: Severity = SEVERITIES[row["severity"] - 1]
    held = tuple(
        CaseSeverity(
            node.cases[each["case"]].when, each["case"] + 1, leading[each["case"]], SEVERITIES[each["severity"] - 1]
        )
        for each in row["held"]
    )
    leads = row["is_likely"]
    there = [each for each in spread if each["severity"] > 0] if leads else spread
    at_least = _merged(spread)
    gravest = at_least[0].severity
    container = tables.containers[row["name"]] if row["container"] is not None and row["name"] is not None else None
    first, second = MEASURES[rule]
    detail: dict[str, Any] = {
        "badness": row["badness"],
        "when": node.cases[row["case"]].when,
        **_conditions(node),
        "moved": row["moved"],
        "about": "container" if row["place"] >= 0 else "pod",
    }
    if rule == "CGA401":
        detail |= {"image": image, **_program(image, row)}
    elif rule in ("CGA301", "CGA302"):
        detail |= _of_limit(row, pod, container, node.cases[row["case"]].after)
        if rule == "CGA301":
            detail["takenForGranted"] = taken_for_granted(node.state, handler)
            detail["leavesV2"] = node.cases[row["case"]].before.cgroup == "v2"
    return Finding(
        id=f"{rule}:{subject.key}",
        rule=rule,
        severity=severity,
        certainty=CERTAINTIES[row["certainty"]],
        subject=subject,
        cases=held,
        measures=(
            Measure(*first, row["first_before"], row["first_after"]),
            Measure(*second, row["second_before"], row["second_after"]),
        ),
        where=Where(
            pods_hit=sum(each["pods"] for each in there),
            pods=workload.pods,
            nodes=tuple(sorted(tables.nodes[each["node"]].node.name for each in there)),
            node=node.node.name,
            pod=pod.name,
            container=container,
        ),
        today=bool(row["today"]),
        graver=_graver(gravest, severity, [(each.when, each.severity) for each in held], node),
        at_least=at_least,
        detail=detail,
    )


def _of_limit(row: Mapping[str, Any], pod: Pod, name: str | None, setup: Setup) -> dict[str, Any]:
    """What to write instead of a container's limit; measured are its limit, and its quota before and after."""
    if _RULE_IDS[row["rule"]] == "CGA301":
        return {"write": limits.that_starts(pod, int(row["first_after"]), setup)}
    container = next(each for each in pod.containers if each.name == name)
    write = limits.as_it_acts(pod, container, int(row["second_after"]), setup)
    return {"write": write, "periodUs": setup.period_us}


def _merged(spread: Sequence[Mapping[str, Any]]) -> tuple[AtLeast, ...]:
    found = []
    for level in reversed(range(1, len(SEVERITIES) + 1)):
        known = [each[f"certainty_{level}"] for each in spread if each[f"certainty_{level}"] is not None]
        if known:
            found.append(AtLeast(SEVERITIES[level - 1], CERTAINTIES[min(known)]))
    return tuple(found)


def _program(image: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """What misreads the number: an image may be known, and the container be told for the host's cgroups that it sees."""
    java = jvm.old_jvm(image)
    if row["badness"] < misreaders.BY_IMAGE:
        return {"program": "cgroup-mount"}
    if java and not (is_cadvisor(image) and row["first_before"] == row["first_after"]):
        return {"program": "jvm", "java": java[0], "fault": java[1], "fixedIn": jvm.FIXED_IN}
    return {"program": "cadvisor"}
