"""`kubectl cgaudit manifests`."""

from typing import Any

import click

from kubectl_cgaudit.cli import options, output
from kubectl_cgaudit.cli.aside import say
from kubectl_cgaudit.cli.policy import LEVELS
from kubectl_cgaudit.errors import UsageError
from kubectl_cgaudit.manifests.render import RENDERERS
from kubectl_cgaudit.manifests.settings import IMAGE, MEMORY, NAMESPACE, SCHEDULE, SINKS, Settings

_NO_IMAGE = (
    f"note: {IMAGE} is in no registry; build it with the Containerfile, push it where your nodes can pull it, "
    "and name it with --image"
)


@click.command("manifests")
@click.option("--image", metavar="IMAGE", help=f"The image with this tool. [default: {IMAGE}, which you build]")
@click.option("-n", "--namespace", metavar="NS", default=NAMESPACE, show_default=True, help="Where the job runs.")
@click.option("--existing-namespace", is_flag=True, help="The namespace is there: do not write it, nor its labels.")
@click.option(
    "--schedule",
    metavar="CRON",
    default=SCHEDULE,
    show_default=True,
    help="When it runs, in the controller manager's time zone.",
)
@options.to("Where the nodes go, as for the audit; no file.")
@click.option("--fail-on", type=click.Choice(LEVELS), help="As for the audit: the job fails on such findings.")
@click.option("--states-configmap", metavar="NAME", help="A ConfigMap with the states file under the key states.yaml.")
@click.option("--policy-configmap", metavar="NAME", help="A ConfigMap with the policy under the key policy.yaml.")
@click.option("--kubelet", metavar="direct", help="Also measure; adds get on nodes/metrics and nodes/configz.")
@click.option("--owners", is_flag=True, help="Adds list on ReplicaSets, Jobs, RuntimeClasses and events.")
@click.option(
    "--sink", metavar="|".join(SINKS), default=SINKS[0], show_default=True, help="Where reports go besides the log."
)
@click.option(
    "--network-policy",
    is_flag=True,
    help="Adds a NetworkPolicy: the pod may connect to DNS, to the API server on 443 and 6443, and with --kubelet=direct to "
    "kubelets on 10250; nobody may connect to the pod.",
)
@click.option(
    "--api-port",
    "api_ports",
    type=int,
    multiple=True,
    metavar="PORT",
    help="With --network-policy: another port of the API server, such as 8443. Repeatable.",
)
@click.option(
    "--egress",
    multiple=True,
    metavar="CIDR:PORT",
    help="With --network-policy: where else the pod may connect to: 10.0.0.0/8:3128, 10.0.0.10/32:53/udp. Repeatable.",
)
@click.option("--memory", metavar="SIZE", default=MEMORY, show_default=True, help="The job's memory limit.")
@output.option(tuple(RENDERERS))
def manifests_command(outputs: tuple[str, ...], **flags: Any) -> int:
    """Print the objects that run the audit inside the cluster, on a schedule, with the minimum permissions.

    \b
    Example: kubectl cgaudit manifests --image registry.example/cgaudit:1 | kubectl apply -f -

    It asks no cluster and changes none.
    """
    from kubectl_cgaudit.manifests.build import build
    from kubectl_cgaudit.report.formats import FORMATS

    wanted = output.parse(outputs, tuple(RENDERERS))
    if flags["image"] == "":
        raise UsageError("--image is empty; give the image with this tool, or leave the flag out")
    settings = Settings(
        image=flags["image"] or IMAGE,
        namespace=flags["namespace"],
        creates_namespace=not flags["existing_namespace"],
        schedule=flags["schedule"],
        to=_target(flags["to"]),
        fail_on=flags["fail_on"],
        kubelet=_kubelet(flags["kubelet"]),
        owners=flags["owners"],
        sink=flags["sink"],
        memory=flags["memory"],
        states=flags["states_configmap"],
        policy=flags["policy_configmap"],
        network_policy=flags["network_policy"],
        api_ports=flags["api_ports"],
        egress=flags["egress"],
        formats=FORMATS,
    )
    objects = build(settings)
    if flags["image"] is None:
        say(_NO_IMAGE)
    output.deliver([(each, RENDERERS[each.format](objects)) for each in wanted])
    return 0


def _target(to: str | None) -> str | None:
    from kubectl_cgaudit.detect import target as targets

    if to is not None and targets.parse(to).file:
        raise UsageError(f"--to: {to} is a file here, which the job does not have; name the target, such as v2+runtime")
    return to


def _kubelet(said: str | None) -> bool:
    if said == "proxy":
        raise UsageError(
            "--kubelet=proxy needs nodes/proxy, which also allows running commands in every container; use direct"
        )
    if said not in (None, "direct"):
        raise UsageError(f"--kubelet: {said!r} is not direct, which is all that a job in the cluster can do")
    return said is not None
