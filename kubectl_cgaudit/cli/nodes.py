"""`kubectl cgaudit nodes`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from kubectl_cgaudit.cli import options, output, spared
from kubectl_cgaudit.cli.gaps import exit_code
from kubectl_cgaudit.cli.named_nodes import of_nodes
from kubectl_cgaudit.cli.options import DEFAULT_TO
from kubectl_cgaudit.cli.reading import read_audited

if TYPE_CHECKING:
    from kubectl_cgaudit.audit.model import Question


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
    from kubectl_cgaudit.detect import target as targets
    from kubectl_cgaudit.report import nodes

    wanted = output.parse(outputs, output.VIEW, spared.inputs(flags))
    cluster, run = read_audited(targets.parse(DEFAULT_TO), flags)
    names = {each.node.name for each in of_nodes(node, cluster, run.tables.nodes)}
    found = [each for each in run.audit.nodes if each.name in names]
    settle = list(_of_nodes(run.audit.questions, names))
    read = cluster.cgroup_v1_warnings is not None
    others = [f"{each.name} ({each.kind})" for each in cluster.nodes if each.kind != "linux" and not node]
    output.deliver_view(
        wanted,
        lambda screen: nodes.as_text(found, settle, evidence=evidence, events_read=read, others=others, screen=screen),
        lambda: nodes.data(found, settle),
    )
    return exit_code(cluster, run.tables.nodes)


def _of_nodes(questions: "Sequence[Question]", names: set[str]) -> "Iterator[Question]":
    """Yield what is open about these nodes; what it decides only where that is on one of them."""
    from msgspec.structs import replace

    for question in questions:
        nodes = tuple(name for name in question.nodes if name in names)
        decides = question.decides if question.decides and question.decides.node in names else None
        if nodes:
            there, here = f"node/{question.nodes[0]} ", f"node/{nodes[0]} "
            commands = (replace(each, command=each.command.replace(there, here)) for each in question.commands)
            yield replace(question, nodes=nodes, decides=decides, commands=tuple(commands))


options.hide(nodes_command, "selector")
