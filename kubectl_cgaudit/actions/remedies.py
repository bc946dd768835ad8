"""The actions of an audit: what may help, each proven by predicting again with it alone."""

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

from msgspec.structs import replace

from kubectl_cgaudit.actions import nodes, requests
from kubectl_cgaudit.actions.candidate import Candidate, action
from kubectl_cgaudit.actions.change import Change
from kubectl_cgaudit.actions.chosen import Proposal
from kubectl_cgaudit.actions.whatif import Outcome, outcomes
from kubectl_cgaudit.audit.model import (
    SEVERITIES,
    Action,
    ActionEffect,
    Audit,
    CpuOfNode,
    Finding,
    Question,
)
from kubectl_cgaudit.audit.run import Run
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.collect.progress import Progress, silent

_GRAVE = ("medium", "high", "critical")
_NOTHING = Change()


def proposals(run: Run, cluster: Cluster, progress: Progress = silent) -> tuple[Proposal, ...]:
    """Return what to do: inspections that decide something grave first, then what clears the worst."""
    asking = [_inspection(question) for question in _asked(run.audit)]
    candidates = [*nodes.candidates(run, cluster), *requests.candidates(run)]
    progress("actions", 0, len(candidates))
    found = [*_proven(run, candidates), *(Proposal(each, _NOTHING) for each in _restarts(run.audit))]
    grades = {each.id: (each.leads, SEVERITIES.index(each.severity)) for each in run.audit.findings}
    found.sort(key=lambda each: _order(each.action, grades))
    certainty = {each.id: each.certainty for each in run.audit.findings}
    waiting = (Proposal(_waiting(each.action, certainty, asking), each.change) for each in found)
    return (*(Proposal(each, _NOTHING) for each in asking), *waiting)


def acted(run: Run, cluster: Cluster, progress: Progress = silent) -> Audit:
    """Return the run's audit with its actions; each finding names those that clear or lower it, in their order."""
    proven = tuple(each.action for each in proposals(run, cluster, progress))
    of_finding: dict[str, list[str]] = {}
    for each in proven:
        for finding in dict.fromkeys((*each.clears, *each.lowers)):
            of_finding.setdefault(finding, []).append(each.id)
    found = (
        replace(each, actions=tuple(of_finding[each.id])) if each.id in of_finding else each
        for each in run.audit.findings
    )
    tried, every = requests.tried(run)
    coverage = run.audit.coverage
    if tried < every:
        note = f"Changes of workloads were tried for the {tried} worst findings of {every}"
        coverage = replace(coverage, notes=(*coverage.notes, note))
    return replace(run.audit, findings=tuple(found), actions=proven, coverage=coverage)


def _proven(run: Run, candidates: Sequence[Candidate]) -> Iterator[Proposal]:
    """Yield of the candidates with one id the first that helps, and those that change nothing that is predicted."""
    predicted = [each for each in candidates if each.change != _NOTHING]
    by_id: dict[str, list[tuple[Candidate, Outcome]]] = {}
    for candidate, outcome in zip(predicted, outcomes(run, [each.change for each in predicted]), strict=True):
        if outcome.helps:
            by_id.setdefault(candidate.action.id, []).append((candidate, outcome))
    for (candidate, outcome), *others in by_id.values():
        own = candidate.action
        cpu = tuple(_cpu(run, candidate, outcome))
        effect = ActionEffect(len(outcome.cleared), len(outcome.lowered), len(outcome.caused), cpu)
        ways = [{**each.action.detail, "change": each.action.change} for each, _ in others]
        found = replace(
            own,
            effect=effect,
            clears=outcome.cleared,
            lowers=outcome.lowered,
            causes=outcome.caused,
            detail={**own.detail, "others": ways} if ways else own.detail,
        )
        yield Proposal(found, candidate.change)
    for candidate in candidates:
        if candidate.change == _NOTHING:
            told = tuple(candidate.action.detail.get("findings", ()))
            yield Proposal(replace(candidate.action, lowers=told), _NOTHING)


def _cpu(run: Run, candidate: Candidate, outcome: Outcome) -> Iterator[CpuOfNode]:
    """Yield what all pods get of the full node that an action about nodes tells of: now, after the move, and with it."""
    acted = outcome.pods_share.get((candidate.place, candidate.case))
    if candidate.action.kind == "node" and acted is not None:
        name = run.tables.nodes[candidate.place].node.name
        case = next(node for node in run.audit.nodes if node.name == name).cases[candidate.case]
        yield CpuOfNode("pods", name, case.before.pods_share, case.after.pods_share, round(acted, 9))


def _order(each: Action, grades: Mapping[str, tuple[bool, int]]) -> tuple[Any, ...]:
    worst = max((grades.get(one, (False, 0)) for one in (*each.clears, *each.lowers)), default=(False, -1))
    lacks = bool(each.detail.get("cost", {}).get("lacking"))
    return not worst[0], -worst[1], lacks, len(each.causes) - len(each.clears), -len(each.lowers), each.id


def _waiting(each: Action, certainty: Mapping[str, str], asking: Sequence[Action]) -> Action:
    """Return the action; one whose findings hang on what is open waits until that is known."""
    hangs = [certainty.get(one) for one in each.clears if not one.startswith("CGA102:")]
    if asking and hangs and all(one in ("possible", "probable") for one in hangs):
        return replace(each, waits_for=(asking[0].id,))
    return each


def _restarts(audit: Audit) -> Iterator[Action]:
    """Yield the pods to recreate, of nodes whose runtime was replaced (CGA103)."""
    for finding in audit.findings:
        stale: Sequence[Mapping[str, Any]] = finding.detail.get("stale", ())
        if finding.rule == "CGA103" and stale:
            pods = list(dict.fromkeys((each["namespace"], each["pod"]) for each in stale))
            node = finding.subject.name
            yield replace(
                action(
                    "workload",
                    f"restart:{node}",
                    {"nodes": [node], "pods": [f"{namespace}/{pod}" for namespace, pod in pods]},
                    {},
                    [f"kubectl delete pod -n {quote(namespace)} {quote(pod)}" for namespace, pod in pods[:5]],
                    {"when": "any"},
                ),
                clears=(finding.id,),
            )


def _matters(question: Question, found: Sequence[Finding]) -> bool:
    """Whether something grave hangs on a question."""
    return question.decides is not None and any(
        each.severity in _GRAVE and each.certainty in ("possible", "probable") for each in found
    )


def _asked(audit: Audit) -> list[Question]:
    """Return the questions that something grave hangs on; what one command answers on several nodes is asked once."""
    asked: dict[tuple[str, str], Question] = {}
    for question in audit.questions:
        if _matters(question, audit.findings):
            key = question.about, question.commands[0].command if question.commands else ""
            first = asked.get(key, question)
            asked[key] = replace(first, nodes=tuple(dict.fromkeys((*first.nodes, *question.nodes))))
    return list(asked.values())


def _inspection(question: Question) -> Action:
    return action(
        "inspect",
        f"inspect:{question.about}:{question.nodes[0]}",
        {"nodes": list(question.nodes)},
        {"states": question.states},
        [each.command for each in question.commands[:1]],
        {
            "about": question.about,
            "when": "before-move",
            "needs": [each.needs for each in question.commands[:1] if each.needs],
            "alternatives": [
                {"kind": "command", "run": each.command, "needs": each.needs} for each in question.commands[1:3]
            ],
        },
    )
