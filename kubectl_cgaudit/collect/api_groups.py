"""The API group of a kind: others have kinds of the same name (Longhorn's Node, Volcano's Job)."""

_GROUPS = {
    "Node": (),
    "Pod": (),
    "ReplicaSet": ("apps", "extensions"),
    "Job": ("batch",),
    "RuntimeClass": ("node.k8s.io",),
    "Event": ("events.k8s.io",),
}
"""Kinds that are read, and the groups beside the core one that may have them."""


def qualified(kind: str, api_version: object) -> str:
    """The kind; `Node.longhorn.io` of one that only has the name of those that are read."""
    if kind not in _GROUPS or not isinstance(api_version, str):
        return kind
    group = api_version.rpartition("/")[0]
    return f"{kind}.{group}" if group and group not in _GROUPS[kind] else kind


def is_read(kind: str) -> bool:
    """Whether objects of this kind, as `qualified` gives it, are read."""
    return kind in _GROUPS
