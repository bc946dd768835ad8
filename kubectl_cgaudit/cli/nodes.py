"""`kubectl cgaudit nodes`."""

from collections.abc import Callable
from typing import Any

import click

from kubectl_cgaudit.cli import options, output, spared
from kubectl_cgaudit.cli.options import DEFAULT_TO
from kubectl_cgaudit.cli.tree import compare, exit_code, of_node

_FORMATS = ("text", "json")


@click.command("nodes")
@click.argument("node", required=False)
@options.source_options
@click.option("--evidence", is_flag=True, help="Show every piece of evidence.")
@output.option(_FORMATS)
def nodes_command(node: str | None, outputs: tuple[str, ...], *, evidence: bool, **flags: Any) -> int:
    """Show what each node, or NODE, runs: cgroup version, runtimes, kubelet, reserves, and how surely that is known.

    \b
    Example: kubectl cgaudit nodes --evidence

    It ends with what would settle the unknowns, cheapest first. Every Linux node is shown, whatever -n and -l say.
    """
    from kubectl_cgaudit.judge import nodes as judged
    from kubectl_cgaudit.report import nodes

    wanted = output.parse(outputs, _FORMATS, spared.inputs(flags))
    cluster, comparisons = compare(DEFAULT_TO, flags)
    found = judged.judge(of_node(node, cluster, comparisons), cluster)
    read = cluster.cgroup_v1_warnings is not None
    others = [f"{each.name} ({each.kind})" for each in cluster.nodes if each.kind != "linux" and node is None]
    texts: dict[str, Callable[[output.Output], str]] = {
        "text": lambda each: nodes.as_text(
            found, evidence=evidence, events_read=read, others=others, screen=output.screen(each)
        ),
        "json": lambda _: nodes.as_json(found, events_read=read),
    }
    output.deliver([(each, texts[each.format](each)) for each in wanted])
    return exit_code(cluster, comparisons)
