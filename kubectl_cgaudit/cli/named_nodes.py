"""The nodes of the names that were given, or why there is none."""

from collections.abc import Sequence

from kubectl_cgaudit.audit.cases import NodeCases
from kubectl_cgaudit.cli.gaps import after_gaps
from kubectl_cgaudit.cli.nearby import bare, in_doubt
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.errors import NotFoundError, UnreadError
from kubectl_cgaudit.text import named

_NAMED = 10


def of_nodes(names: Sequence[str], cluster: Cluster, nodes: tuple[NodeCases, ...]) -> tuple[NodeCases, ...]:
    """The nodes of these names, before which `node/` may stand; all where none is given. Raises NotFoundError."""
    if not names:
        return nodes
    found = {find_node(bare(name, "node", "nodes", "no"), cluster, nodes).node.name for name in names}
    return tuple(node for node in nodes if node.node.name in found)


def find_node(name: str, cluster: Cluster, nodes: tuple[NodeCases, ...]) -> NodeCases:
    """The node of that name. Raises NotFoundError that says why there is none."""
    for node in nodes:
        if node.node.name == name:
            return node
    kinds = {node.name: node.kind for node in cluster.nodes}
    if name in kinds:
        what = "reports no CPU" if kinds[name] == "unusable" else f"is a {kinds[name]} node"
        raise NotFoundError(f"{name} {what}: there is no cgroup tree to show")
    there = f"there are {named((each.node.name for each in nodes), _NAMED) or without_trees(cluster)}"
    if in_doubt(cluster, "node") or any(pod.node == name for pod in cluster.pods):
        raise after_gaps(UnreadError(f"node {name!r} is not among what could be read; {there}"), cluster)
    raise NotFoundError(f"there is no node {name!r}; {there}")


def without_trees(cluster: Cluster) -> str:
    """The nodes where none has a cgroup tree."""
    return named([f"{node.name} ({node.kind})" for node in cluster.nodes], _NAMED) or "none"
