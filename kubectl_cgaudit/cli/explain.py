"""`kubectl cgaudit explain`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from kubectl_cgaudit.cli import options, output, spared
from kubectl_cgaudit.cli.gaps import after_gaps, exit_code
from kubectl_cgaudit.cli.named_nodes import find_node
from kubectl_cgaudit.cli.nearby import absent, bare, running
from kubectl_cgaudit.cli.reading import predict
from kubectl_cgaudit.collect.model import Cluster, Only, Owner, Pod
from kubectl_cgaudit.errors import NotFoundError, UsageError
from kubectl_cgaudit.text import counted

if TYPE_CHECKING:
    from kubectl_cgaudit.audit.inputs import Tables


@click.command("explain")
@click.argument("pod", metavar="NAMESPACE/NAME")
@options.source_options
@options.to_option
@options.what_if_option
@output.option(output.VIEW)
def explain_command(pod: str, to: str, outputs: tuple[str, ...], **flags: Any) -> int:
    """Show the arithmetic of one pod, from its spec to its share of the node's CPU, level by level.

    NAME is a pod or a workload. Of a workload, the worst hit pod is shown.

    \b
    Examples:
      kubectl cgaudit explain shop/checkout --states states.yaml
      kubectl cgaudit explain deploy/checkout -n shop
      kubectl cgaudit explain shop/checkout-d5491e7e7-37202 -o json

    -o json and -o yaml hold the rows of tree that belong to this pod, and those that belong to no pod.
    """
    from kubectl_cgaudit.compare.views import view
    from kubectl_cgaudit.detect import target as targets
    from kubectl_cgaudit.report import explain, tree

    target = targets.parse(to)
    wanted = output.parse(outputs, output.VIEW, spared.inputs(flags, target.file))
    before, _, name = bare(pod, "pod", "pods", "po").rpartition("/")
    # As a finding names a workload: shop/Deployment/checkout.
    space, _, said_kind = before.partition("/")
    given = flags["namespace"] or ""
    if not (before or given) or not name:
        missing = "namespace" if name else "pod"
        raise UsageError(f"{pod!r} names no {missing}; write NAMESPACE/POD, or give -n NAMESPACE")
    cluster, tables, then = predict(target, flags, home=space, only=Only(pod=(space or given, name)))
    kind = said_kind
    if given and before and all(each.namespace != space for each in cluster.pods):
        # As kubectl takes it: deploy/checkout -n shop.
        space, kind = given, before
    found = None if kind else _pod(space or given, name, cluster)
    owner, pods = (None, []) if found else running(space or given, name, cluster, kind)
    if owner:
        found = _worst(owner, pods, tables)
    if not found:
        raise after_gaps(absent(space or given, name, cluster, kind), cluster)
    node = view(find_node(found.node or "", cluster, tables.nodes), then)
    of = f"{owner.kind} {found.namespace}/{owner.name}: worst hit of {counted(len(pods), 'pod')} is" if owner else ""
    output.deliver_view(
        wanted,
        lambda screen: explain.render(node, found, screen, of),
        lambda: tree.data((node,), (found.namespace, found.name)),
    )
    return exit_code(cluster, tables.nodes)


def _worst(owner: Owner, pods: Sequence[Pod], tables: "Tables") -> Pod:
    """The pod that loses most to system services, else the one in which most moves between containers, else the first."""
    import polars as pl

    from kubectl_cgaudit.audit import judge
    from kubectl_cgaudit.audit.run import judging
    from kubectl_cgaudit.audit.thresholds import Thresholds

    judged = judge.judge(tables.inputs, tables.setups, tables.cases, judging(tables, Thresholds()), tables.after)
    places = {key: number for number, key in enumerate(tables.workloads)}
    number = places.get((pods[0].namespace, owner))
    for table, row in (("worst", "row"), ("split", "pod_row")):
        rows = judged.workloads[table].filter(pl.col("workload") == number, pl.col("change") < 0).sort("change", row)
        if len(rows):
            place: int = rows[row][0]
            return tables.pods[place]
    return pods[0]


def _pod(namespace: str, name: str, cluster: Cluster) -> Pod | None:
    for pod in cluster.pods:
        if (pod.namespace, pod.name) == (namespace, name):
            if pod.node is None:
                raise NotFoundError(f"pod {namespace}/{name} has no node yet, so it has no place in a cgroup tree")
            if pod.finished:
                raise NotFoundError(f"pod {namespace}/{name} has finished: its cgroups are gone")
            return pod
    return None


options.hide(explain_command, "selector")
