"""What the evidence settles of each node."""

from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.detect.state import State
from tests.support import (
    compared,
)


def settled(objects: Cluster) -> dict[str, State]:
    return {each.node.name: each.state for each in compared(objects)}


def told(state: State) -> dict[str, tuple[str | None, str]]:
    found = {"cgroup": (state.cgroup, state.basis_of("cgroup").confidence)}
    for name, run in state.runtimes:
        found[name] = (run.formula, state.basis_of(f"runtime:{name}").confidence)
    return found
