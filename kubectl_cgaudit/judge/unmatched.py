"""What the user said that speaks of nothing here: most often a typo."""

from collections.abc import Iterator

from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.detect.state import DEFAULT_HANDLER
from kubectl_cgaudit.detect.states import Rule
from kubectl_cgaudit.judge.compare import Comparison
from kubectl_cgaudit.judge.scenario import Scenario
from kubectl_cgaudit.text import named

_NAMED = 5


def unmatched(
    cluster: Cluster, comparisons: tuple[Comparison, ...], rules: tuple[Rule, ...], scenario: Scenario
) -> Iterator[str]:
    """Rules and targets for which there is no node, and handlers that no matching node has."""
    for rule in rules + scenario.rules:
        matched = [comparison for comparison in comparisons if rule.matches(comparison.node)]
        if not any(rule.matches(node) for node in cluster.nodes):
            yield f"{rule.where} matches no node"
        there = sorted(set().union(*map(_handlers, matched)))
        for handler, _ in rule.runtimes:
            if matched and handler not in there:
                yield f"{rule.where} names the handler {handler}, which no matching node has; there is {named(there, _NAMED)}"
    for target in scenario.runtimes:
        runs = [run for each in comparisons for case in each.cases for _, run in case.then.runtimes]
        if comparisons and target not in runs:
            yield f"no node runs {target.name}, so --to {target.name}={target.version} changes nothing"


def _handlers(comparison: Comparison) -> set[str]:
    return {DEFAULT_HANDLER, *comparison.handlers, *(each.name or DEFAULT_HANDLER for each in comparison.node.handlers)}
