"""Pods that wait for a node: of them nothing is predicted, and what they belong to is not gone."""

from kubectl_cgaudit.judge.audit import Coverage


def waiting(coverage: Coverage) -> frozenset[str]:
    """All that pods without a node may belong to, as `namespace/name`: their names are, or go on after a hyphen, its name."""
    found = set()
    for pod in coverage.pods_without_node:
        parts = pod.split("-")
        found |= {"-".join(parts[:end]) for end in range(1, len(parts) + 1)}
    return frozenset(found)
