"""CGA201: what it says of the nodes and pods of a workload that are not the worst."""

from typing import Any

from tests.support import container, pod


def replicas(*nodes: str) -> list[dict[str, Any]]:
    return [
        pod(f"w-{place}", container("c", "2"), on=name, owner=("StatefulSet", "w")) for place, name in enumerate(nodes)
    ]
