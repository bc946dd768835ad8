"""`kubectl cgaudit check`."""

from typing import Any

import click

from kubectl_cgaudit.cli import options, output, spared
from kubectl_cgaudit.cli.progress import Progress
from kubectl_cgaudit.errors import UsageError


@click.command("check")
@options.source_options
@output.option(output.VIEW)
def check_command(outputs: tuple[str, ...], **flags: Any) -> int:
    """Check whether an audit may read what it needs, how many pages that is, and about how long it takes.

    \b
    Example: kubectl cgaudit check --context prod

    The first page of each list is read. Exit codes: 0 all that is needed may be read, 3 a part, 1 nothing.
    """
    from kubectl_cgaudit.collect.kubeconfig import Connection
    from kubectl_cgaudit.collect.reach import reach
    from kubectl_cgaudit.report import check

    wanted = output.parse(outputs, output.VIEW, spared.inputs(flags))
    chosen = options.source(flags)
    if chosen.files:
        raise UsageError("check asks a running cluster, and -f reads files; leave -f out")
    connection = Connection(
        kubeconfig=chosen.kubeconfig,
        context=chosen.context,
        cluster=chosen.cluster,
        user=chosen.user,
        as_user=chosen.as_user,
        as_groups=chosen.as_groups,
        timeout_seconds=chosen.timeout_seconds,
    )
    with Progress("checking") as progress:
        source, found = reach(connection, progress)
    output.deliver_view(wanted, lambda screen: check.render(source, found, screen), lambda: check.data(source, found))
    return {"yes": 0, "in part": 3, "no": 1}[check.verdict(found)]


options.hide(
    check_command, "selector", "namespace", "all_namespaces", "files", "states", "kubelet", "kubelet_insecure_tls"
)
