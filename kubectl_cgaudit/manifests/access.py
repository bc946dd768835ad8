"""What the job may read, and where it may connect to.

It may write nothing, and never gets nodes/proxy, which would let it run commands in containers.
"""

from kubectl_cgaudit.manifests.parts import NAME, NAME_LABEL, Object, labels, metadata
from kubectl_cgaudit.manifests.settings import Destination, Settings

_RBAC = "rbac.authorization.k8s.io"
_DNS, _KUBELET = 53, 10250
_API = (443, 6443)
"""The port of the API server's Service, and that of its endpoints, which most networks compare with a policy."""


def rules(settings: Settings) -> list[Object]:
    """Exactly what the audit asks for."""
    found = [_rule("", ["nodes", "pods"], "list")]
    if settings.owners:
        found += [
            _rule("apps", ["replicasets"], "list"),
            _rule("batch", ["jobs"], "list"),
            _rule("node.k8s.io", ["runtimeclasses"], "list"),
            _rule("", ["events"], "list"),
        ]
    if settings.kubelet:
        found.append(_rule("", ["nodes/metrics", "nodes/configz"], "get"))
    return found


def cluster_role(settings: Settings) -> Object:
    """The rules for the whole cluster: nodes have no namespace, and pods of all namespaces compete."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": _name(settings), "labels": labels()},
        "rules": rules(settings),
    }


def binding(settings: Settings) -> Object:
    """Gives the rules to the job's ServiceAccount and to nobody else."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": _name(settings), "labels": labels()},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": _name(settings)},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": settings.namespace}],
    }


def network_policy(settings: Settings) -> Object:
    """Nobody may connect to the job's pod. It may connect to DNS, the API server, kubelets it asks, and what was added."""
    egress = [_egress(("UDP", _DNS), ("TCP", _DNS)), _egress(*(("TCP", port) for port in (*_API, *settings.api_ports)))]
    if settings.kubelet:
        egress.append(_egress(("TCP", _KUBELET)))
    for destination in map(Destination.parse, settings.egress):
        to = {"to": [{"ipBlock": {"cidr": destination.cidr}}]}
        egress.append(to | _egress((destination.protocol, destination.port)))
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(settings),
        "spec": {
            # Not the version: pods of the last one may still run.
            "podSelector": {"matchLabels": NAME_LABEL},
            # Ingress without a rule: nothing.
            "policyTypes": ["Ingress", "Egress"],
            "egress": egress,
        },
    }


def _egress(*ports: tuple[str, int]) -> Object:
    return {"ports": [{"protocol": protocol, "port": port} for protocol, port in ports]}


def _name(settings: Settings) -> str:
    # With the namespace in it, so that a second installation does not take the first one's binding.
    return f"kubectl-cgaudit:{settings.namespace}"


def _rule(group: str, resources: list[str], verb: str) -> Object:
    return {"apiGroups": [group], "resources": resources, "verbs": [verb]}
