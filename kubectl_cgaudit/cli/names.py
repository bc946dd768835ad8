"""Names for tab completion, from the kubeconfig or the cluster: quick, and nothing rather than an error."""

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from kubectl_cgaudit.collect import wire
from kubectl_cgaudit.collect.http import Answer

if TYPE_CHECKING:
    from kubectl_cgaudit.collect.kubeconfig import Section

SECONDS = 2.0
"""How long somebody who pressed Tab waits for a cluster."""
_LIMIT = 500


def of_kubeconfig(given: dict[str, Any], section: "Section") -> Iterable[str]:
    """The names in `contexts`, `clusters` or `users` of the kubeconfig. Raises ClusterError."""
    from kubectl_cgaudit.collect import kubeconfig

    return kubeconfig.names(given.get("kubeconfig") or None, section)


def pods(given: dict[str, Any], incomplete: str) -> Iterable[str]:
    """NAMESPACE/POD once the namespace is known, namespaces with a slash before."""
    namespace, slash, _ = incomplete.partition("/")
    if slash:
        return [f"{namespace}/{name}" for name in listed(given, f"/api/v1/namespaces/{quote(namespace)}/pods")]
    chosen = given.get("namespace")
    if chosen:
        return listed(given, f"/api/v1/namespaces/{quote(chosen)}/pods")
    return [f"{name}/" for name in listed(given, "/api/v1/namespaces")]


def listed(given: dict[str, Any], path: str) -> list[str]:
    """The names of a list of the cluster, at most 500; none after two seconds, without access, or when files are read."""
    if given.get("files"):
        return []
    found: list[str] = []

    def ask() -> None:
        try:
            found.extend(_ask(given, path))
        except Exception:  # noqa: BLE001 - there is nobody to tell
            return

    # Credential plugins, resolvers and slow servers each have their own time; this bounds all of it.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(SECONDS)
    return list(found)


def _ask(given: dict[str, Any], path: str) -> list[str]:
    from kubectl_cgaudit.collect.kubeconfig import Connection
    from kubectl_cgaudit.collect.transport import Api

    connection = Connection(
        kubeconfig=given.get("kubeconfig"),
        context=given.get("context"),
        cluster=given.get("cluster"),
        user=given.get("user"),
        as_user=given.get("as_user"),
        as_groups=tuple(given.get("as_groups") or ()),
        timeout_seconds=SECONDS,
    )
    with Api(connection) as api:
        return api.fetch(f"{path}?limit={_LIMIT}", _names)


def _names(answer: Answer) -> list[str]:
    page = msgspec.json.decode(answer.body, type=wire.Page)
    return [msgspec.json.decode(raw, type=wire.Owned).metadata.name for raw in page.items or ()]
