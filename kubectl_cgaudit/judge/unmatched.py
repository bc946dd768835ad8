"""What the user said that speaks of nothing here, or is odd: most often a typo."""

from collections.abc import Iterator

from kubectl_cgaudit.cgroups.version import NEWEST
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.detect import runtime
from kubectl_cgaudit.detect.state import DEFAULT_HANDLER
from kubectl_cgaudit.detect.states import Rule
from kubectl_cgaudit.judge.compare import Comparison
from kubectl_cgaudit.judge.scenario import Scenario
from kubectl_cgaudit.text import named, these

_NAMED = 5


def unmatched(
    cluster: Cluster, comparisons: tuple[Comparison, ...], rules: tuple[Rule, ...], scenario: Scenario
) -> Iterator[str]:
    """Yield rules and targets for which there is no node, handlers that no matching node has, and doubtful targets."""
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

    yield from _unreleased(scenario)
    yield from _downgrades(comparisons, scenario)


def _unreleased(scenario: Scenario) -> Iterator[str]:
    """Yield the versions that --to names and nobody is known to have released."""
    for target in scenario.runtimes:
        if why := runtime.unreleased(target):
            yield f"--to {target.name}={target.version} is taken for {target.formula}, but {why}"
    newest, date = NEWEST
    if scenario.kubelet and scenario.kubelet[:2] > newest:
        known = ".".join(map(str, newest))
        yield f"--to kubelet={scenario.kubelet} is taken for one as all so far, but the newest known here is {known} ({date})"


def _downgrades(comparisons: tuple[Comparison, ...], scenario: Scenario) -> Iterator[str]:
    """Yield what goes back to an older release, or to the older formula."""
    back: dict[str, list[str]] = {}
    for comparison in comparisons:
        first, node = comparison.cases[0], comparison.node
        now, then = first.now.kubelet_version, first.then.kubelet_version
        if now and then and then < now:
            back.setdefault(f"from kubelet {now} back to {then}", []).append(node.name)
        open_ = {handler for question in comparison.questions for handler, _ in question.handlers}
        for handler in comparison.handlers:
            was, will = first.now.runtime(handler), first.then.runtime(handler)
            if handler not in open_ and runtime.older(will, was):
                back.setdefault(f"from {was} back to {will} (handler {handler})", []).append(node.name)
    for words, names in back.items():
        goes = "goes" if len(names) == 1 else "go"
        yield f"by --to {scenario.to}, {these('node', names)} {goes} {words}"


def _handlers(comparison: Comparison) -> set[str]:
    return {DEFAULT_HANDLER, *comparison.handlers, *(each.name or DEFAULT_HANDLER for each in comparison.node.handlers)}
