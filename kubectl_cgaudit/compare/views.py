"""Nodes with the cgroup trees of all their cases, for who looks at single cgroups."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from kubectl_cgaudit.audit.cases import NodeCases, PodsOnNode
from kubectl_cgaudit.audit.confidence import taken_for_granted
from kubectl_cgaudit.audit.inputs import Tables, inputs
from kubectl_cgaudit.cgroups.quota import cannot_start
from kubectl_cgaudit.collect.model import COMPETING, Pod
from kubectl_cgaudit.compare.cgroups import NodeTree, Trees
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.state import Setup, State


class CaseView(Struct, frozen=True):
    """A case of a node with its trees."""

    when: str
    before: NodeTree
    after: NodeTree
    lost: bool
    """The node does not come back: `after` is never reached."""
    leads: bool
    """No default is overridden here."""

    @property
    def setups(self) -> tuple[Setup, Setup]:
        """Before and after."""
        return self.before.setup, self.after.setup


class NodeView(Struct, frozen=True):
    """A node with the trees of its cases."""

    known: NodeCases
    cases: tuple[CaseView, ...]

    @property
    def name(self) -> str:
        """The node's name."""
        return self.known.node.name

    @property
    def state(self) -> State:
        """What is known of it."""
        return self.known.state

    @property
    def placed(self) -> Sequence[PlacedPod]:
        """Its active pods with their handlers."""
        return self.known.placed

    def failing(self, case: CaseView) -> dict[tuple[str | None, str | None], str]:
        """Return why pods may not run as a whole after the move though the node comes back, by namespace and name."""
        found: dict[tuple[str | None, str | None], str] = {}
        for pod, used in self.placed if not case.lost else ():
            if any(cannot_start(pod, container, case.after.setup, used) for container in pod.containers):
                run = "run as a whole" if _runs_in_part(pod, used, case.after.setup) else "run"
                found[pod.namespace, pod.name] = run
        return found

    def taken(self, handler: str) -> list[str]:
        """Return what a failing start rests on and nobody said."""
        return taken_for_granted(self.state, handler)


Pods = Callable[[PodsOnNode], PodsOnNode]
"""Makes of the pods of a node those of after the move."""


def views(tables: Tables, then: Pods | None = None) -> Iterator[NodeView]:
    """Yield every node with the trees of its cases; they are made when they are asked for."""
    trees = Trees([node.on_node for node in tables.nodes], tables.inputs, tables.handlers)
    later = trees if then is None else _later([node.on_node for node in tables.nodes], then)
    most = max((len(node.cases) for node in tables.nodes), default=0)
    columns: list[tuple[list[NodeTree], list[NodeTree]]] = []
    for number in range(most):
        cases = [node.cases[min(number, len(node.cases) - 1)] for node in tables.nodes]
        columns.append((trees.under([case.before for case in cases]), later.under([case.after for case in cases])))
    for place, node in enumerate(tables.nodes):
        leading = node.leading[None]
        yield NodeView(
            node,
            tuple(
                CaseView(case.when, columns[number][0][place], columns[number][1][place], case.lost, leading[number])
                for number, case in enumerate(node.cases)
            ),
        )


def _runs_in_part(pod: Pod, used: str, setup: Setup) -> bool:
    """Return whether containers run beside one that does not start: only init containers and sidecars are waited for."""
    # https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers
    starts = [(each.role, not cannot_start(pod, each, setup, used)) for each in pod.containers]
    nothing_waits = all(well for role, well in starts if role != "app")
    return nothing_waits and any(well for role, well in starts if role in COMPETING)


def _later(nodes: Sequence[PodsOnNode], then: Pods) -> Trees:
    changed = [then(node) for node in nodes]
    return Trees(changed, *inputs(changed))


def view(node: NodeCases, then: Pods | None = None) -> NodeView:
    """Return one node with the trees of its cases."""
    made = Trees([node.on_node], *inputs([node.on_node]))
    later = made if then is None else _later([node.on_node], then)
    cases = tuple(
        CaseView(case.when, made.under([case.before])[0], later.under([case.after])[0], case.lost, leads)
        for case, leads in zip(node.cases, node.leading[None], strict=True)
    )
    return NodeView(node, cases)
