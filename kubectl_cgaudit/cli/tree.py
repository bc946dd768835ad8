"""`kubectl cgaudit tree`."""

from collections.abc import Collection, Sequence
from typing import Any

import click

from kubectl_cgaudit.cli import options, output, spared
from kubectl_cgaudit.cli.aside import say
from kubectl_cgaudit.cli.codes import INCOMPLETE
from kubectl_cgaudit.cli.nearby import bare, in_doubt
from kubectl_cgaudit.cli.progress import Progress
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.detect.states import Rule
from kubectl_cgaudit.errors import InterruptedAuditError, NotFoundError, UnreadError, UsageError
from kubectl_cgaudit.judge.compare import Comparison
from kubectl_cgaudit.judge.scenario import Scenario
from kubectl_cgaudit.report.escape import visible
from kubectl_cgaudit.text import named

_NAMED = 10
_PROXY_WARNING = (
    "warning: --kubelet=proxy uses nodes/proxy; whoever may use that may also run commands in every container of the node "
    "(kubernetes#136550). Do not grant it for this tool alone: --kubelet=direct inside the cluster needs less."
)


@click.command("tree")
@click.argument("node", nargs=-1)
@options.source_options
@options.to_option
@output.option(output.VIEW)
def tree_command(node: tuple[str, ...], to: str, outputs: tuple[str, ...], **flags: Any) -> int:
    """Show the cgroup tree of NODE, or of all nodes: every weight, quota and share, before and after.

    \b
    Example: kubectl cgaudit tree worker-a --states states.yaml

    Pods of every namespace are shown, whatever -n says: they compete.
    """
    from kubectl_cgaudit.judge import scenario
    from kubectl_cgaudit.report import cgroups

    target = scenario.parse(to)
    wanted = output.parse(outputs, output.VIEW, spared.inputs(flags, target.file))
    cluster, comparisons = compare(target, flags)
    shown = of_nodes(node, cluster, comparisons)
    if not shown:
        say(f"there is no Linux node that reports its CPU; there are {visible(_others(cluster))}")
    output.deliver_view(wanted, lambda screen: cgroups.as_text(shown, screen), lambda: cgroups.data(shown))
    return exit_code(cluster, comparisons)


def read(chosen: options.Source, *, measured: bool = True) -> tuple[Cluster, tuple[Rule, ...]]:
    """Read the input, with progress for whoever watches, and the warning that nodes/proxy deserves."""
    rules = options.rules(chosen)
    if chosen.kubelet == "proxy":
        say(_PROXY_WARNING)
    with Progress() as progress:
        try:
            return options.collect(chosen, progress, measured=measured), rules
        except KeyboardInterrupt:
            raise InterruptedAuditError(progress.last) from None


def compare(target: "Scenario", flags: dict[str, Any], home: str = "") -> tuple[Cluster, tuple[Comparison, ...]]:
    """Read the input and compare its nodes. What of --states and --to speaks of nothing there is said on stderr.

    `home` is the namespace that is read where not all of them can be and none is chosen.
    """
    from kubectl_cgaudit.judge.compare import compare as compare_nodes
    from kubectl_cgaudit.judge.unmatched import unmatched

    chosen = options.source(flags)._replace(home=home)
    if chosen.selector:
        raise UsageError(
            "-l chooses the pods that an audit reports, not nodes, and would change nothing here; leave it out"
        )
    cluster, rules = read(chosen)
    with Progress("predicting") as progress:
        comparisons = compare_nodes(cluster, rules, target, progress)
    for what in unmatched(cluster, comparisons, rules, target):
        say(f"check what was said: {visible(what)}")
    return cluster, comparisons


def of_nodes(names: Sequence[str], cluster: Cluster, comparisons: tuple[Comparison, ...]) -> tuple[Comparison, ...]:
    """The nodes of these names, before which `node/` may stand; all where none is given. Raises NotFoundError."""
    if not names:
        return comparisons
    found = {find_node(bare(name, "node", "nodes", "no"), cluster, comparisons).node.name for name in names}
    return tuple(comparison for comparison in comparisons if comparison.node.name in found)


def _others(cluster: Cluster) -> str:
    """The nodes where none has a cgroup tree."""
    return named([f"{node.name} ({node.kind})" for node in cluster.nodes], _NAMED) or "none"


def find_node(name: str, cluster: Cluster, comparisons: tuple[Comparison, ...]) -> Comparison:
    """The node of that name. Raises NotFoundError that says why there is none."""
    for comparison in comparisons:
        if comparison.node.name == name:
            return comparison
    kinds = {node.name: node.kind for node in cluster.nodes}
    if name in kinds:
        raise NotFoundError(
            f"{name} is not a Linux node that reports its CPU ({kinds[name]}): it has no cgroup tree to show"
        )
    there = f"there are {named((c.node.name for c in comparisons), _NAMED) or _others(cluster)}"
    if in_doubt(cluster, "node") or any(pod.node == name for pod in cluster.pods):
        raise after_gaps(UnreadError(f"node {name!r} is not among what could be read; {there}"), cluster)
    raise NotFoundError(f"there is no node {name!r}; {there}")


def after_gaps(error: NotFoundError, cluster: Cluster) -> NotFoundError:
    """The error. What could not be read is said before it, where that may be why."""
    if isinstance(error, UnreadError):
        exit_code(cluster)
    return error


def exit_code(cluster: Cluster, comparisons: Sequence[Comparison] = (), told: Collection[str] = ()) -> int:
    """3 if something could not be read, else 0. What it was is said on stderr, but for kubelets whose nodes were all `told`.

    `comparisons` are for who shows shares: on some nodes they cannot be said.
    """
    from kubectl_cgaudit.judge import unanswered
    from kubectl_cgaudit.judge.coverage import cover

    coverage = cover(cluster, comparisons=comparisons)
    for gap in coverage.gaps:
        if gap.kind != unanswered.KIND or not set(gap.members) <= set(told):
            say(f"incomplete: {visible(gap.what)}: {visible(gap.why)}. {visible(gap.remedy)}.")
    return 0 if coverage.complete else INCOMPLETE


options.hide(tree_command, "selector")
