"""The plain objects: Namespace, ServiceAccount, PersistentVolumeClaim."""

from typing import Any

from kubectl_cgaudit import __version__
from kubectl_cgaudit.manifests.settings import Settings

Object = dict[str, Any]
NAME = "cgaudit"
NAME_LABEL = {"app.kubernetes.io/name": "kubectl-cgaudit"}
_STORAGE = "1Gi"
_PROFILES = ("enforce", "audit", "warn")


def labels() -> dict[str, str]:
    """The labels every object has."""
    return NAME_LABEL | {"app.kubernetes.io/version": __version__}


def metadata(settings: Settings) -> Object:
    """The metadata of a namespaced object."""
    return {"name": NAME, "namespace": settings.namespace, "labels": labels()}


def namespace(settings: Settings) -> Object:
    """A namespace that takes no pod outside the Pod Security standard `restricted`."""
    security = {f"pod-security.kubernetes.io/{profile}": "restricted" for profile in _PROFILES}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": settings.namespace, "labels": labels() | security},
    }


def service_account(settings: Settings) -> Object:
    """The job's identity; only the job's pod asks for its token."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(settings),
        "automountServiceAccountToken": False,
    }


def claim(settings: Settings) -> Object:
    """Where the reports are kept, of the default storage class."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(settings),
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": _STORAGE}}},
    }
