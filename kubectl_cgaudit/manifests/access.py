"""What the job may read. It may write nothing, and never gets nodes/proxy, which would let it run commands in containers."""

from kubectl_cgaudit.manifests.parts import NAME, Object, labels
from kubectl_cgaudit.manifests.settings import Settings

_RBAC = "rbac.authorization.k8s.io"


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


def _name(settings: Settings) -> str:
    # With the namespace in it, so that a second installation does not take the first one's binding.
    return f"kubectl-cgaudit:{settings.namespace}"


def _rule(group: str, resources: list[str], verb: str) -> Object:
    return {"apiGroups": [group], "resources": resources, "verbs": [verb]}
