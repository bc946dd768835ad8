"""`kubectl cgaudit tree`."""

from typing import Any

import click

from kubectl_cgaudit.cli import options, output, spared
from kubectl_cgaudit.cli.aside import say
from kubectl_cgaudit.cli.gaps import exit_code
from kubectl_cgaudit.cli.named_nodes import of_nodes, without_trees
from kubectl_cgaudit.cli.reading import compare
from kubectl_cgaudit.report.escape import visible


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
        say(f"there is no Linux node that reports its CPU; there are {visible(without_trees(cluster))}")
    output.deliver_view(wanted, lambda screen: cgroups.as_text(shown, screen), lambda: cgroups.data(shown))
    return exit_code(cluster, comparisons)


options.hide(tree_command, "selector")
