"""What can be chosen about the job in the cluster, and the check of every choice."""

import ipaddress
import re
from typing import Self

from msgspec import Struct

from kubectl_cgaudit import __version__
from kubectl_cgaudit.errors import UsageError
from kubectl_cgaudit.manifests.schedule import is_schedule

IMAGE = f"kubectl-cgaudit:{__version__}"
NAMESPACE = "cgaudit"
# Daily, and not on the hour, when everybody else's jobs ask the API server too.
SCHEDULE = "17 5 * * *"
SINKS = ("pvc", "none")
MEMORY = "512Mi"
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII)
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,510}", re.ASCII)
REQUEST_MIB = 128
_MEMORY = re.compile(r"([1-9][0-9]{0,5})([MG])i", re.ASCII)
_MIB = {"M": 1, "G": 1024}
_PORTS = range(1, 1 << 16)
_DESTINATION = re.compile(r"(?:\[([^]%]*)\]|([^:]*)):([0-9]{1,5})(?:/(tcp|udp))?", re.ASCII)


class Destination(Struct, frozen=True):
    """Addresses and a port of theirs."""

    cidr: str
    port: int
    protocol: str
    """TCP or UDP, as a NetworkPolicy writes it."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read CIDR:PORT[/tcp|udp], where IPv6 stands in brackets. Raises UsageError."""
        found = _DESTINATION.fullmatch(text)
        try:
            network = ipaddress.ip_network((found[1] or found[2]) if found else "", strict=False)
        except ValueError:
            network = None
        if not found or network is None or int(found[3]) not in _PORTS:
            raise UsageError(
                f"--egress: {text!r} is not CIDR:PORT; write it such as 10.0.0.0/8:8080, [fd00::/8]:8080 or 10.0.0.10/32:53/udp"
            )
        return cls(str(network), int(found[3]), (found[4] or "tcp").upper())


class Settings(Struct, frozen=True):
    """The choices."""

    image: str = IMAGE
    namespace: str = NAMESPACE
    creates_namespace: bool = True
    schedule: str = SCHEDULE
    """In the time zone of the controller manager."""
    to: str | None = None
    fail_on: str | None = None
    kubelet: bool = False
    """Ask every kubelet at its own port."""
    owners: bool = False
    """Read ReplicaSets, Jobs, RuntimeClasses and events too."""
    sink: str = SINKS[0]
    memory: str = MEMORY
    """The limit: a cluster of 10,000 pods takes 100 MiB, one of 150,000 pods 283 MiB (docs/benchmarks.md)."""
    states: str | None = None
    """The ConfigMap that has the states file under the key states.yaml."""
    policy: str | None = None
    """The ConfigMap that has the policy under the key policy.yaml; it may be the same."""
    network_policy: bool = False
    """Let the job's pod connect to what it asks, and nobody to it."""
    api_ports: tuple[int, ...] = ()
    """Ports of the API server besides 443 and 6443."""
    egress: tuple[str, ...] = ()
    """Where else the pod may connect to, as `Destination` reads it."""
    formats: tuple[str, ...] = ()
    """The formats the audit can write; those that a sink keeps are chosen among them."""


def check(settings: Settings) -> None:
    """Raises UsageError for what the API server would refuse, or should not be given."""
    if not _LABEL.fullmatch(settings.namespace):
        raise UsageError(
            f"--namespace: {settings.namespace!r} is no name of a namespace; write lower case, digits and -"
        )
    if settings.creates_namespace and (settings.namespace == "default" or settings.namespace.startswith("kube-")):
        raise UsageError(
            f"--namespace: {settings.namespace} is there already, and its labels are not ours; add --existing-namespace"
        )
    if not _IMAGE.fullmatch(settings.image):
        raise UsageError(f"--image: {settings.image!r} is no image; write [REGISTRY/]NAME[:TAG][@DIGEST]")
    if not is_schedule(settings.schedule):
        raise UsageError(f"--schedule: {settings.schedule!r} is no schedule; write five fields such as '{SCHEDULE}'")
    if settings.sink not in SINKS:
        raise UsageError(f"--sink: {settings.sink!r} is not {' or '.join(SINKS)}{_why_not(settings.sink)}")
    memory = _MEMORY.fullmatch(settings.memory)
    if not memory:
        raise UsageError(f"--memory: {settings.memory!r} is no amount such as {MEMORY} or 2Gi")
    if int(memory[1]) * _MIB[memory[2]] < REQUEST_MIB:
        raise UsageError(f"--memory: {settings.memory} is less than the job requests; write {REQUEST_MIB}Mi or more")
    for flag, name in (("--states-configmap", settings.states), ("--policy-configmap", settings.policy)):
        if name is not None and not (_SUBDOMAIN.fullmatch(name) and len(name) <= 253):
            raise UsageError(f"{flag}: {name!r} is no name of a ConfigMap")
    _check_network(settings)


def _check_network(settings: Settings) -> None:
    for flag, given in (("--api-port", settings.api_ports), ("--egress", settings.egress)):
        if given and not settings.network_policy:
            raise UsageError(f"{flag} adds to the NetworkPolicy, which is not written; add --network-policy")
    for port in settings.api_ports:
        if port not in _PORTS:
            raise UsageError(f"--api-port: {port} is no port; write a number from 1 to {_PORTS[-1]}")
    for text in settings.egress:
        Destination.parse(text)


def _why_not(sink: str) -> str:
    if sink != "configmap":
        return ""
    return ": a ConfigMap holds 1 MiB at most, and writing one needs a permission that a tool that only reads should not have"
