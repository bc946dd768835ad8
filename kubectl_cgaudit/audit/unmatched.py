"""What the user said that speaks of nothing here, or is odd: most often a typo."""

from collections.abc import Iterator

from kubectl_cgaudit.audit.cases import NodeCases
from kubectl_cgaudit.cgroups.version import NEWEST
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.detect import runtime
from kubectl_cgaudit.detect.state import DEFAULT_HANDLER
from kubectl_cgaudit.detect.states import Rule
from kubectl_cgaudit.detect.target import Scenario
from kubectl_cgaudit.text import named, these

_NAMED = 5


def unmatched(
    cluster: Cluster, nodes: tuple[NodeCases, ...], rules: tuple[Rule, ...], scenario: Scenario
) -> Iterator[str]:
    """Yield rules and targets for which there is no node, handlers that no matching node has, and doubtful targets."""
    for rule in rules + scenario.rules:
        matched = [node for node in nodes if rule.matches(node.node)]
        if not any(rule.matches(node) for node in cluster.nodes):
            yield f"{rule.where} matches no node"
        there = sorted(set().union(*map(_handlers, matched)))
        for handler, _ in rule.runtimes:
            if matched and handler not in there:
                yield f"{rule.where} names the handler {handler}, which no matching node has; there is {named(there, _NAMED)}"
    for target in scenario.runtimes:
        runs = [run for each in nodes for case in each.cases for _, run in case.after.runtimes]
        if nodes and target not in runs:
            yield f"no node runs {target.name}, so --to {target.name}={target.version} changes nothing"

    yield from _unreleased(scenario)
    yield from _downgrades(nodes, scenario)


def _unreleased(scenario: Scenario) -> Iterator[str]:
    """Yield the versions that --to names and nobody is known to have released."""
    for target in scenario.runtimes:
        if why := runtime.unreleased(target):
            yield f"--to {target.name}={target.version} is taken for {target.formula}, but {why}"
    newest, date = NEWEST
    if scenario.kubelet and scenario.kubelet[:2] > newest:
        known = ".".join(map(str, newest))
        yield f"--to kubelet={scenario.kubelet} is taken for one as all so far, but the newest known here is {known} ({date})"


def _downgrades(nodes: tuple[NodeCases, ...], scenario: Scenario) -> Iterator[str]:
    """Yield what goes back to an older release, or to the older formula."""
    back: dict[str, list[str]] = {}
    for node in nodes:
        first, name = node.cases[0], node.node.name
        now, then = first.before.kubelet_version, first.after.kubelet_version
        if now and then and then < now:
            back.setdefault(f"from kubelet {now} back to {then}", []).append(name)
        open_ = {handler for question in node.questions for handler, _ in question.handlers}
        for handler in node.handlers:
            was, will = first.before.runtime(handler), first.after.runtime(handler)
            if handler not in open_ and runtime.older(will, was):
                back.setdefault(f"from {was} back to {will} (handler {handler})", []).append(name)
    for words, names in back.items():
        goes = "goes" if len(names) == 1 else "go"
        yield f"by --to {scenario.to}, {these('node', names)} {goes} {words}"


def _handlers(node: NodeCases) -> set[str]:
    return {DEFAULT_HANDLER, *node.handlers, *(each.name or DEFAULT_HANDLER for each in node.node.handlers)}
