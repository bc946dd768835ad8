"""A digest of what was read, by which two reports are known to be of the same input."""

from hashlib import sha256

import msgspec
from msgspec.structs import asdict, replace

from kubectl_cgaudit.collect.model import Alike, Cluster

_CHUNK = 10_000


def digest(cluster: Cluster) -> str:
    """Return SHA-256, in hexadecimal, of the nodes, the pods and what they run.

    Addresses, and what changes with every restart, are left out.
    A cluster and its snapshot have the same digest; so have an audit with measurements and one without.
    """
    found = sha256()
    encoder = msgspec.msgpack.Encoder(order="deterministic")
    for node in cluster.nodes:
        found.update(encoder.encode(replace(node, ready_since=None, address=None, kubelet_port=0)))
    forms: dict[int, bytes] = {}
    for first in range(0, len(cluster.pods), _CHUNK):
        parts = []
        for pod in cluster.pods[first : first + _CHUNK]:
            form = forms.get(id(pod.alike))
            if form is None:
                form = forms[id(pod.alike)] = sha256(encoder.encode(_lasting(pod.alike))).digest()
            parts.append((pod.name, pod.node, form))
        found.update(encoder.encode(parts))
    for table in (cluster.runtime_classes, cluster.cgroup_v1_warnings):
        found.update(encoder.encode(table))
    return found.hexdigest()


def _lasting(alike: Alike) -> dict[str, object]:
    said = asdict(alike)
    said["containers"] = [replace(each, runtime_id=None, started=None) for each in alike.containers]
    del said["selected"]
    return said
