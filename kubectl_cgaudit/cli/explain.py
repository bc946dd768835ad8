"""`kubectl cgaudit explain`."""

from typing import Any

import click

from kubectl_cgaudit.cli import options, output, spared
from kubectl_cgaudit.cli.gaps import after_gaps, exit_code
from kubectl_cgaudit.cli.named_nodes import find_node
from kubectl_cgaudit.cli.nearby import absent, bare
from kubectl_cgaudit.cli.reading import predict
from kubectl_cgaudit.collect.model import Cluster, Only, Pod
from kubectl_cgaudit.errors import NotFoundError, UsageError


@click.command("explain")
@click.argument("pod", metavar="NAMESPACE/POD")
@options.source_options
@options.to_option
@options.what_if_option
@output.option(output.VIEW)
def explain_command(pod: str, to: str, outputs: tuple[str, ...], **flags: Any) -> int:
    """Show the arithmetic of one pod, from its spec to its share of the node's CPU, level by level.

    \b
    Example: kubectl cgaudit explain shop/checkout-d5491e7e7-37202 --states states.yaml

    -o json and -o yaml have the numbers without the arithmetic: of tree's what is this pod's, and what is no pod's.
    """
    from kubectl_cgaudit.compare.views import view
    from kubectl_cgaudit.detect import target as targets
    from kubectl_cgaudit.report import explain, tree

    target = targets.parse(to)
    wanted = output.parse(outputs, output.VIEW, spared.inputs(flags, target.file))
    before, _, name = bare(pod, "pod", "pods", "po").rpartition("/")
    given = flags["namespace"] or ""
    if not (before or given) or not name:
        missing = "namespace" if name else "pod"
        raise UsageError(f"{pod!r} names no {missing}; write NAMESPACE/POD, or give -n NAMESPACE")
    cluster, tables, then = predict(target, flags, home=before, only=Only(pod=(before or given, name)))
    if given and before and all(each.namespace != before for each in cluster.pods):
        # As kubectl takes it: deploy/checkout -n shop.
        raise after_gaps(absent(given, name, cluster, before), cluster)
    found = _find(before or given, name, cluster)
    node = view(find_node(found.node or "", cluster, tables.nodes), then)
    output.deliver_view(
        wanted,
        lambda screen: explain.render(node, found, screen),
        lambda: tree.data((node,), (found.namespace, found.name)),
    )
    return exit_code(cluster, tables.nodes)


def _find(namespace: str, name: str, cluster: Cluster) -> Pod:
    for pod in cluster.pods:
        if (pod.namespace, pod.name) == (namespace, name):
            if pod.node is None:
                raise NotFoundError(f"pod {namespace}/{name} has no node yet, so it has no place in a cgroup tree")
            if pod.finished:
                raise NotFoundError(f"pod {namespace}/{name} has finished: its cgroups are gone")
            return pod
    raise after_gaps(absent(namespace, name, cluster), cluster)


options.hide(explain_command, "selector")
