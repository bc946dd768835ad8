"""What kubelets were asked for and did not answer."""

from collections import defaultdict
from collections.abc import Mapping

from kubectl_cgaudit.audit.model import GapRecord
from kubectl_cgaudit.collect.model import KubeletAnswers
from kubectl_cgaudit.text import NAMED, capital, counted, named

KIND = "kubelet that did not answer"
_REASONS = 5
_ACTIONS = {
    "(403)": "ask for the permission it names",
    "refuses the credentials": "log in and run again",
    "not asked for": "run again with a shorter --request-timeout",
    "no saved answers": "save them under these names",
    "prove nothing": "",
}


def gaps(answers: Mapping[str, KubeletAnswers]) -> list[GapRecord]:
    """One gap for all: a cluster has thousands of kubelets, and why one does not answer changes from run to run.

    Other evidence of their nodes still counts.
    """
    by_problem: dict[str, list[str]] = defaultdict(list)
    for node in sorted(answers):
        for problem in answers[node].problems:
            by_problem[problem].append(node)
    nodes = tuple(sorted({node for of_it in by_problem.values() for node in of_it}))
    if not nodes:
        return []
    common = sorted(by_problem, key=lambda problem: (-len(by_problem[problem]), problem))
    said = [_where(problem, by_problem[problem], len(nodes)) for problem in common[:_REASONS]]
    rest = [counted(len(common) - _REASONS, "more reason")] if len(common) > _REASONS else []
    one = len(nodes) == 1
    what = f"kubelet of {nodes[0]}" if one else f"kubelets of {counted(len(nodes), 'node')} ({named(nodes, NAMED)})"
    check = f"check {'that kubelet' if one else 'those kubelets'} and run again"
    actions = [action for action in dict.fromkeys(_action(problem, check) for problem in common) if action]
    states = f"say what the {'node runs' if one else 'nodes run'} with --states"
    remedy = f"{'; '.join(actions)}, or {states}" if actions else states
    return [GapRecord(what, "; ".join([*said, *rest]), capital(remedy), KIND, nodes)]


def _where(problem: str, nodes: list[str], amount: int) -> str:
    return problem if len(nodes) == amount else f"on {named(nodes, NAMED)}: {problem}"


def _action(problem: str, otherwise: str) -> str:
    return next((action for sign, action in _ACTIONS.items() if sign in problem), otherwise)
