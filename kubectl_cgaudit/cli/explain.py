"""`kubectl cgaudit explain` and `kubectl cgaudit convert`."""

from typing import Any

import click

from kubectl_cgaudit.cgroups.weights import MAX_SHARES, MAX_WEIGHT, MIN_SHARES, MIN_WEIGHT
from kubectl_cgaudit.cli import options, output
from kubectl_cgaudit.cli.tree import compare, exit_code, find_node
from kubectl_cgaudit.collect.model import Cluster, Pod
from kubectl_cgaudit.errors import InputError, NotFoundError, UsageError

_FORMATS = ("text", "json")


@click.command("explain")
@click.argument("pod", metavar="NAMESPACE/POD")
@options.source_options
@options.to_option
def explain_command(pod: str, to: str, **flags: Any) -> int:
    """Show the arithmetic of one pod, from its spec to its share of the node's CPU, level by level.

    \b
    Example: kubectl cgaudit explain shop/checkout-d5491e7e7-37202 --states states.yaml
    """
    from kubectl_cgaudit.detect.handlers import handler
    from kubectl_cgaudit.report import explain

    namespace, _, name = pod.removeprefix("pod/").removeprefix("pods/").rpartition("/")
    namespace = namespace or flags["namespace"] or ""
    if not namespace or not name:
        raise UsageError(f"{pod!r} names no namespace; write NAMESPACE/POD, or give -n NAMESPACE")
    cluster, comparisons = compare(to, flags)
    found = _find(namespace, name, cluster)
    comparison = find_node(found.node or "", cluster, comparisons)
    screen = output.screen(output.Output("text", None))
    output.show(explain.render(comparison, found, handler(found, cluster), screen))
    return exit_code(cluster)


def _find(namespace: str, name: str, cluster: Cluster) -> Pod:
    for pod in cluster.pods:
        if (pod.namespace, pod.name) == (namespace, name):
            if pod.node is None:
                raise NotFoundError(f"pod {namespace}/{name} has no node yet, so it has no place in a cgroup tree")
            if pod.finished:
                raise NotFoundError(f"pod {namespace}/{name} has finished: its cgroups are gone")
            return pod
    raise NotFoundError(f"there is no pod {namespace}/{name}; kubectl get pods -n {namespace} lists them")


@click.command("convert")
@click.argument("request", required=False)
@click.option("--shares", type=int, metavar="N", help=f"cgroup v1 shares, {MIN_SHARES}..{MAX_SHARES}.")
@click.option("--weight", type=int, metavar="N", help=f"cgroup v2 weight, {MIN_WEIGHT}..{MAX_WEIGHT}.")
@click.option("-o", "--output", "outputs", multiple=True, metavar="FORMAT[=FILE]", help="text or json. [default: text]")
def convert_command(request: str | None, shares: int | None, weight: int | None, outputs: tuple[str, ...]) -> int:
    """Convert a CPU REQUEST such as 250m, shares or a weight with both formulas, and back.

    \b
    Example: kubectl cgaudit convert 250m
    """
    from kubectl_cgaudit.report import convert

    wanted = output.parse(outputs, _FORMATS)
    if sum(value is not None for value in (request, shares, weight)) != 1:
        raise UsageError("convert takes one of a CPU request such as 250m, --shares or --weight")
    if request is not None:
        result = _of_request(request)
    elif shares is not None:
        result = convert.of_shares(_within(shares, MIN_SHARES, MAX_SHARES, "--shares"), None)
    else:
        result = convert.of_weight(_within(weight or 0, MIN_WEIGHT, MAX_WEIGHT, "--weight"))
    write = {"text": convert.as_text, "json": convert.as_json}
    output.deliver([(each, write[each.format](result)) for each in wanted])
    return 0


def _of_request(text: str) -> dict[str, Any]:
    from kubectl_cgaudit.cgroups.weights import milli_to_shares
    from kubectl_cgaudit.collect.quantity import milli
    from kubectl_cgaudit.report import convert

    try:
        amount = milli(text)
    except InputError as error:
        raise UsageError(str(error)) from None
    return convert.of_shares(milli_to_shares(amount), amount)


def _within(value: int, least: int, most: int, flag: str) -> int:
    if not least <= value <= most:
        raise UsageError(f"{flag} {value} is out of range; it must be {least}..{most}")
    return value
