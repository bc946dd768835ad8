"""What to say of a pod that is not there: whose name it is instead, or which others there are."""

import re
from difflib import get_close_matches

from kubectl_cgaudit.collect.model import Cluster, Owner, Pod
from kubectl_cgaudit.collect.owners import workload
from kubectl_cgaudit.errors import NotFoundError, UnreadError
from kubectl_cgaudit.text import named

_PODS = 5
_NEAR = 3
_SPACES = 10
_SHORT = {
    "Deployment": "deploy",
    "StatefulSet": "sts",
    "DaemonSet": "ds",
    "CronJob": "cj",
    "ReplicaSet": "rs",
}
"""Kinds as kubectl shortens them; the others are written as they are."""


def in_doubt(cluster: Cluster, kind: str) -> bool:
    """Whether a `node` or `pod` that is not among what was read may be there all the same: a gap tells of such, or of all."""
    of_kind = re.compile(rf"(\d+ )?({kind}s?|objects)\b", re.IGNORECASE)
    return any(of_kind.match(gap.what) for gap in cluster.reading.gaps)


def running(namespace: str, name: str, cluster: Cluster, kind: str = "") -> tuple[Owner | None, list[Pod]]:
    """Return the workload of this name in a namespace, and its pods on nodes; None where no pod says that it is there."""
    found: dict[Owner, list[Pod]] = {}
    for pod in cluster.pods:
        owner = workload(pod, cluster)
        if pod.namespace == namespace and owner.name == name and _is(kind, owner.kind) and owner.kind != "Pod":
            found.setdefault(owner, []).append(pod)
    for owner, pods in found.items():
        if on_nodes := [pod for pod in pods if pod.node and not pod.finished]:
            return owner, on_nodes
    return None, []


def absent(namespace: str, name: str, cluster: Cluster, kind: str = "") -> NotFoundError:
    """The error for a pod that is not there: why, and what can be asked for.

    A `kind` says that a workload's name was given on purpose.
    """
    owners = [(pod, workload(pod, cluster)) for pod in cluster.pods]
    owned = [(pod, owner) for pod, owner in owners if owner.name == name and _is(kind, owner.kind)]
    if owned:
        first, owner = next((each for each in owned if each[0].namespace == namespace), owned[0])
        pods = [pod for pod, other in owned if (pod.namespace, other) == (first.namespace, owner)]
        running = [f"{pod.namespace}/{pod.name}" for pod in pods if pod.node and not pod.finished]
        what = f"{owner.kind} {first.namespace}/{name}"
        if running:
            return NotFoundError(f"{what} is no pod; explain one of its pods: {named(running, _PODS)}")
        if in_doubt(cluster, "pod"):
            return UnreadError(f"{what} has no pod on a node among what could be read; try again when all is read")
        return NotFoundError(f"{what} has no pod on a node now; try again when one runs")
    asked = f"{kind or 'pod'} {namespace}/{name}"
    instead = _instead(namespace, name, cluster, [owner.name for pod, owner in owners if pod.namespace == namespace])
    if in_doubt(cluster, "pod"):
        return UnreadError(f"{asked} is not among what could be read; {instead}")
    if kind:
        # It may be there all the same: other kinds are not read, and of a workload only what owns a pod.
        return NotFoundError(f"explain takes a pod, which {asked} is not; {instead}")
    return NotFoundError(f"there is no {asked}; {instead}")


def bare(said: str, *kinds: str) -> str:
    """The name without the kind before it, as kubectl lets it be written: po/checkout-1, Nodes/worker-a."""
    kind, _, name = said.partition("/")
    return name if kind.lower() in kinds else said


def _instead(namespace: str, name: str, cluster: Cluster, owners: list[str]) -> str:
    """What is there and may have been meant; `owners` are the workloads of the namespace."""
    here = [pod.name for pod in cluster.pods if pod.namespace == namespace]
    names = dict.fromkeys([*here, *owners])
    alike = [f"{pod.namespace}/{name}" for pod in cluster.pods if pod.name == name]
    alike += [f"{namespace}/{near}" for near in get_close_matches(name, names, n=_NEAR)]
    if alike:
        return f"did you mean {' or '.join(alike[:_NEAR])}?"
    if here:
        return f"namespace {namespace} has {named(here, _PODS)}"
    spaces = sorted({pod.namespace for pod in cluster.pods})
    near = get_close_matches(namespace, spaces, n=1)
    listed = named([*near, *(space for space in spaces if space not in near)], _SPACES)
    return f"there are pods in {listed}" if spaces else "no pod was read"


def _is(said: str, kind: str) -> bool:
    """Whether a kind is the one that was said, as kubectl lets it be written: deploy, Deployments, deployment.apps."""
    short = _SHORT.get(kind, kind.lower())
    written = (short, kind.lower(), f"{kind.lower()}s")
    return said.partition(".")[0].lower() in written if said else kind != "Pod"
