"""Each node's cgroup tree before and after the migration, under every answer to what is not known of it."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kubectl_cgaudit.cgroups.version import refuses_v1
from kubectl_cgaudit.collect.model import Cluster, Node, Pod
from kubectl_cgaudit.collect.progress import Progress, silent
from kubectl_cgaudit.detect.handlers import PlacedPod, placed_pods
from kubectl_cgaudit.detect.settle import settle
from kubectl_cgaudit.detect.state import Setup, State, setups
from kubectl_cgaudit.detect.states import Rule
from kubectl_cgaudit.judge.scenario import Scenario, ways
from kubectl_cgaudit.predict.shape import Shapes
from kubectl_cgaudit.predict.tree import Cgroup, NodeTree, PodTree, predict
from kubectl_cgaudit.same import Same


class Case(Struct, frozen=True):
    """One way the open questions may turn out. `when` is empty if nothing is open."""

    when: str
    now: Setup
    then: Setup
    before: NodeTree
    after: NodeTree
    lost: bool
    """The kubelet of after the move refuses to start, which that of now does not: `after` is never reached."""


class Comparison(Struct, frozen=True):
    """A node with all its cases; the pods of every tree come in the same order."""

    node: Node
    state: State
    handlers: tuple[str, ...]
    """Those its pods use."""
    cases: tuple[Case, ...]
    by_name: bool
    """Whether the target speaks of runtimes by name: what becomes of a node rests on theirs."""

    @property
    def placed(self) -> Sequence[PlacedPod]:
        """The node's active pods."""
        return self.cases[0].before.pods.placed

    @property
    def outlines(self) -> Sequence[int]:
        """Of each active pod: pods with the same have the same shapes in every case."""
        return self.cases[0].before.pods.outlines

    @property
    def trees(self) -> dict[int, NodeTree]:
        """Every tree of its cases once, by identity: many cases have one before or after."""
        return {id(tree): tree for case in self.cases for tree in (case.before, case.after)}

    @property
    def whens(self) -> tuple[str, ...]:
        """What each case assumes."""
        return tuple(case.when for case in self.cases)

    def pod(self, index: int) -> tuple["PodCase", ...]:
        """The trees of an active pod in every case."""
        # What is made of a pod's tree is kept.
        pods = {of: tree.pods[index] for of, tree in self.trees.items()}
        return tuple([PodCase(case, pods[id(case.before)], pods[id(case.after)]) for case in self.cases])

    def pods(self) -> Iterator[tuple[Pod, tuple["PodCase", ...]]]:
        """Each active pod with its trees in every case, made one after another."""
        for index, (pod, _) in enumerate(self.placed):
            yield pod, self.pod(index)


class PodCase(Struct, frozen=True):
    """A pod in one case."""

    case: Case
    before: PodTree
    after: PodTree

    def against_system(self, cgroup: Cgroup, *, after: bool) -> float | None:
        """A cgroup's CPU fraction divided by that of system.slice; None where the fraction cannot be said."""
        system = (self.case.after if after else self.case.before).system_share
        return cgroup.share / system if cgroup.share is not None else None


def _refuses(setup: Setup) -> bool:
    return setup.cgroup == "v1" and refuses_v1(setup.kubelet_version)


def compare(
    cluster: Cluster, rules: tuple[Rule, ...], scenario: Scenario, progress: Progress = silent
) -> tuple[Comparison, ...]:
    """Compare every Linux node. Raises UsageError when a states or target file does not fit a node."""
    placed = placed_pods(cluster)
    shapes = Shapes()
    same = Same()
    nodes = [node for node in cluster.nodes if node.kind == "linux"]
    found = []
    for done, node in enumerate(nodes):
        progress("trees", done, len(nodes))
        found.append(_compare_node(node, placed.get(node.name, ()), cluster, rules, scenario, shapes, same))
    return tuple(found)


def _compare_node(
    node: Node,
    placed: Sequence[PlacedPod],
    cluster: Cluster,
    rules: tuple[Rule, ...],
    scenario: Scenario,
    shapes: Shapes,
    same: Same,
) -> Comparison:
    """Equal setups are held once, in `same`."""
    state = settle(node, placed, cluster, rules)
    handlers = sorted({handler for _, handler in placed})
    outlines = shapes.outlines(placed, state.leftovers)
    cases = []
    trees: dict[int, NodeTree] = {}

    def tree(setup: Setup) -> NodeTree:
        # Many ways lead to one setup.
        known = trees.get(id(setup))
        if known is None:
            known = trees[id(setup)] = predict(node, placed, setup, shapes, outlines)
        return known

    for when, found in setups(state, handlers):
        now = same(found)
        for further, will in ways(scenario, node, now, handlers, version_known=state.cgroup is not None):
            then = same(will)
            words = ", ".join([when, *further] if when else further)
            cases.append(Case(words, now, then, tree(now), tree(then), _refuses(then) and not _refuses(now)))
    return Comparison(node, state, tuple(handlers), tuple(cases), bool(scenario.runtimes))
