"""Audits to compare, and what a comparison says without its line breaks."""

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kubectl_cgaudit.audit.saved import Saved
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.compare.diff.types import Diff, Measure, WorkloadDiff
from tests.support import STATES, V2_QUADRATIC, container, node, pod, saved


def told(of: Saved, **fields: Any) -> Saved:
    """The saved audit with other fields of the audit."""
    return of._replace(audit=replace(of.audit, **fields))


def now_of(found: Cluster, rules: str = "") -> Saved:
    """Any target does: of the second audit only its now counts."""
    return saved(found, rules, "v2")


def flat(found: Diff) -> dict[tuple[str, str, str, str], tuple[Any, ...]]:
    """Outcome, before, predicted and now, by workload, pod, container and what."""
    rows: dict[tuple[str, str, str, str], tuple[Any, ...]] = {}
    for workload in found.workloads:
        for each in workload.pods:
            parts: list[tuple[str, tuple[Measure, ...]]] = [("", each.measures)]
            parts += [(part.name, part.measures) for part in each.containers]
            for name, measures in parts:
                for m in measures:
                    rows[workload.title, each.now_name, name, m.what] = (m.outcome, m.before, m.predicted, m.now)
    return rows


def of_nodes(found: Diff) -> dict[tuple[str, str, str], tuple[Any, ...]]:
    return {
        (each.name, m.what, m.of): (m.outcome, m.before, m.predicted, m.now)
        for each in found.nodes
        for m in each.measures
    }


def only(found: Diff) -> WorkloadDiff:
    (workload,) = found.workloads
    return workload


A = pod("a", container("app", "1"), container("side", "100m"))


GONE = pod("gone", container("old", "500m"))


NEW = pod("new", container("fresh", "200m"))


N1, N2 = node("n1"), node("n2", cpu="8")


MOVED = Path(__file__).parent.parent / "docs" / "examples" / "moved.yaml"


BOTH = V2_QUADRATIC


def after_rules() -> str:
    return STATES.read_text() + MOVED.read_text()
