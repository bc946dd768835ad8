"""`kubectl cgaudit verify`."""

from typing import Any

import click

from kubectl_cgaudit.cli import options, output, spared
from kubectl_cgaudit.cli.codes import FOUND, INCOMPLETE
from kubectl_cgaudit.cli.gaps import exit_code
from kubectl_cgaudit.cli.reading import read
from kubectl_cgaudit.errors import UsageError

_NOT_ASKED = "verify needs the kubelets' answers; add --kubelet=proxy, --kubelet=direct or --kubelet=files:DIR"
_NOT_SAVED = (
    "verify needs the kubelets' answers; with -f add --kubelet=files:DIR, or give a snapshot taken with --kubelet"
)


@click.command("verify")
@options.source_options
@output.option(output.VIEW)
def verify_command(outputs: tuple[str, ...], **flags: Any) -> int:
    """Compare what is predicted with what the kubelets measure, cgroup by cgroup: to check an upgrade afterwards.

    \b
    Example: kubectl cgaudit verify --kubelet=proxy --states after.yaml

    Exits with 4 if anything differs, with 3 if nothing was compared, a kubelet did not answer, or left out most of its
    containers.
    """
    from kubectl_cgaudit.compare.verify import verify
    from kubectl_cgaudit.report import verify as report

    wanted = output.parse(outputs, output.VIEW, spared.inputs(flags))
    chosen = options.source(flags)
    options.refuse_choice(chosen, "verify compares every cgroup of a node, as a slice holds the pods of all namespaces")
    if chosen.kubelet is None and not chosen.files:
        raise UsageError(_NOT_ASKED)
    cluster, rules = read(chosen)
    if cluster.kubelets is None:
        raise UsageError(_NOT_SAVED)
    result = verify(cluster, rules)
    output.deliver_view(wanted, lambda screen: report.as_text(result, screen), lambda: result)
    shown = output.Output("text", None) in wanted
    incomplete = exit_code(cluster, told=set(result.not_compared) if shown else ())
    if result.differences or result.contradicted:
        return FOUND
    return INCOMPLETE if result.few_containers or not result.compared else incomplete


options.hide(verify_command, "namespace", "all_namespaces", "selector")
