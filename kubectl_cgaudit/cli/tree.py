"""`kubectl cgaudit tree`."""

from typing import Any

import click

from kubectl_cgaudit.cli import options, output, spared
from kubectl_cgaudit.cli.aside import say
from kubectl_cgaudit.cli.gaps import exit_code
from kubectl_cgaudit.cli.named_nodes import of_nodes, without_trees
from kubectl_cgaudit.cli.nearby import bare
from kubectl_cgaudit.cli.reading import predict
from kubectl_cgaudit.collect.model import Only
from kubectl_cgaudit.report.escape import visible


@click.command("tree")
@click.argument("node", nargs=-1)
@options.source_options
@options.to_option
@options.what_if_option
@output.option(output.VIEW)
def tree_command(node: tuple[str, ...], to: str, outputs: tuple[str, ...], **flags: Any) -> int:
    """Show the cgroup tree of NODE, or of all nodes: every weight, quota and share, before and after.

    \b
    Example: kubectl cgaudit tree worker-a --states states.yaml

    Pods of every namespace are shown, whatever -n says: they compete.
    """
    from kubectl_cgaudit.compare.views import views
    from kubectl_cgaudit.detect import target as targets
    from kubectl_cgaudit.report import tree

    target = targets.parse(to)
    wanted = output.parse(outputs, output.VIEW, spared.inputs(flags, target.file))
    names = tuple(bare(each, "node", "nodes", "no") for each in node)
    cluster, tables, then = predict(target, flags, only=Only(names) if names else None)
    shown = {each.node.name for each in of_nodes(node, cluster, tables.nodes)}
    if not shown:
        say(f"there is no Linux node that reports its CPU; there are {visible(without_trees(cluster))}")
    found = [each for each in views(tables, then) if each.name in shown]
    output.deliver_view(wanted, lambda screen: tree.as_text(found, screen), lambda: tree.data(found))
    return exit_code(cluster, tables.nodes)


options.hide(tree_command, "selector")
