"""`kubectl cgaudit nodes`."""

from typing import Any

import click

from kubectl_cgaudit.cli import options, output, spared
from kubectl_cgaudit.cli.gaps import exit_code
from kubectl_cgaudit.cli.named_nodes import of_nodes
from kubectl_cgaudit.cli.options import DEFAULT_TO
from kubectl_cgaudit.cli.reading import compare


@click.command("nodes")
@click.argument("node", nargs=-1)
@options.source_options
@click.option("--evidence", is_flag=True, help="Show every piece of evidence.")
@output.option(output.VIEW)
def nodes_command(node: tuple[str, ...], outputs: tuple[str, ...], *, evidence: bool, **flags: Any) -> int:
    """Show what each node, or NODE, runs: cgroup version, runtimes, kubelet, reserves, and how surely that is known.

    \b
    Example: kubectl cgaudit nodes --evidence

    It ends with what would settle what is open, as commands, the cheapest first. Every Linux node is shown, whatever -n says.
    """
    from kubectl_cgaudit.judge import nodes as judged
    from kubectl_cgaudit.judge import questions, scenario
    from kubectl_cgaudit.report import nodes

    wanted = output.parse(outputs, output.VIEW, spared.inputs(flags))
    cluster, comparisons = compare(scenario.parse(DEFAULT_TO), flags)
    shown = of_nodes(node, cluster, comparisons)
    found = judged.judge(shown, cluster)
    settle = questions.settle(shown)
    read = cluster.cgroup_v1_warnings is not None
    others = [f"{each.name} ({each.kind})" for each in cluster.nodes if each.kind != "linux" and not node]
    output.deliver_view(
        wanted,
        lambda screen: nodes.as_text(found, settle, evidence=evidence, events_read=read, others=others, screen=screen),
        lambda: nodes.data(found, settle),
    )
    return exit_code(cluster, comparisons)


options.hide(nodes_command, "selector")
