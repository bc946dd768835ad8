"""The cases of every node: each way in which what is not known of it may turn out, before and after the move."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.cgroups.version import KubeletVersion, refuses_v1
from kubectl_cgaudit.collect.model import Cluster, Node
from kubectl_cgaudit.collect.progress import Progress, silent
from kubectl_cgaudit.detect import measured, shown
from kubectl_cgaudit.detect.configured import platform_reserve
from kubectl_cgaudit.detect.handlers import PlacedPod, placed_pods
from kubectl_cgaudit.detect.settle import settle
from kubectl_cgaudit.detect.shown import NO_SLICES, ShownPod, ShownSlices
from kubectl_cgaudit.detect.state import DEFAULT_HANDLER, Leftover, Question, Setup, State, questions, setups
from kubectl_cgaudit.detect.states import Rule
from kubectl_cgaudit.detect.target import Scenario, Way, ways
from kubectl_cgaudit.errors import UsageError
from kubectl_cgaudit.same import Same
from kubectl_cgaudit.text import named

_ORDER = (
    "cgroup",
    "reserve",
    "burstable",
    "set_by",
    "like:cgroup",
    "like:reserve",
    "like:burstable",
    "like:runtime",
    "runtime",
    "unnamed",
)
"""The questions, those that decide most first."""
_NAMED = 5


class Case(Struct, frozen=True):
    """One way the open questions of a node may turn out. `when` is empty if nothing is open."""

    when: str
    before: Setup
    after: Setup
    lost: bool
    """The kubelet of after the move refuses to start, which that of now does not: `after` is never reached."""
    answers: tuple[tuple[Question, int], ...] = ()
    """Each open question, with the place of its answer; the first is the most plausible."""

    def leads(self, handler: str | None) -> bool:
        """Return whether no default is overridden here: for pods of a handler, or for the node where that is None."""
        return all(place == 0 or question.open_for(handler) != "probable" for question, place in self.answers)


class PodsOnNode(Struct, frozen=True):
    """The active pods of a node, and what its kubelet shows of them."""

    node: Node
    placed: Sequence[PlacedPod]
    shown: tuple[ShownPod, ...] = ()
    """Of each pod; empty where the kubelet was not asked."""
    slices: ShownSlices = NO_SLICES
    leftovers: tuple[Leftover, ...] = ()


class NodeCases(Struct, frozen=True):
    """A node with all its cases."""

    node: Node
    state: State
    placed: Sequence[PlacedPod]
    """Its active pods, without annotations that it is measured to ignore."""
    shown: tuple[ShownPod, ...]
    """What its kubelet shows of each pod; empty where it was not asked."""
    slices: ShownSlices
    handlers: tuple[str, ...]
    """Those its pods use."""
    cases: tuple[Case, ...]
    """The most plausible first."""
    by_name: bool
    """Whether the target speaks of runtimes by name: what becomes of a node rests on theirs."""
    leading: dict[str | None, tuple[bool, ...]]
    """Of each case, whether it is a leading one: to pods of a handler, and by None to the node."""

    @property
    def questions(self) -> tuple[Question, ...]:
        """What is open, of the node or of its target, in the order in which it is asked."""
        asked = dict.fromkeys(question for case in self.cases for question, _ in case.answers)
        return tuple(sorted(asked, key=lambda question: _ORDER.index(question.about)))

    @property
    def on_node(self) -> PodsOnNode:
        """Its pods, and what is shown of them."""
        return PodsOnNode(self.node, self.placed, self.shown, self.slices, self.state.leftovers)

    @property
    def conditions(self) -> tuple[str, ...]:
        """What each case assumes."""
        return tuple(case.when for case in self.cases)


def _refuses(setup: Setup) -> bool:
    return setup.cgroup == "v1" and refuses_v1(setup.kubelet_version)


def is_lost(before: Setup, after: Setup) -> bool:
    """Return whether a kubelet that starts before the move does not start after it."""
    return _refuses(after) and not _refuses(before)


def node_cases(
    cluster: Cluster, rules: tuple[Rule, ...], scenario: Scenario, progress: Progress = silent
) -> tuple[NodeCases, ...]:
    """Return the cases of every Linux node. Raises UsageError when a states or target file does not fit a node."""
    placed = placed_pods(cluster)
    same = Same()
    nodes = [node for node in cluster.nodes if node.kind == "linux"]
    like = _like(cluster, placed, rules, scenario.like)
    found = []
    for done, node in enumerate(nodes):
        progress("nodes", done, len(nodes))
        found.append(_of_node(node, placed.get(node.name, ()), cluster, rules, scenario, same, like))
    return tuple(found)


def _of_node(
    node: Node,
    placed: Sequence[PlacedPod],
    cluster: Cluster,
    rules: tuple[Rule, ...],
    scenario: Scenario,
    same: Same,
    like: "_Like",
) -> NodeCases:
    """Equal setups are held once, in `same`."""
    placed = _heeded(node, placed, cluster)
    state = settle(node, placed, cluster, rules)
    handlers = sorted({handler for _, handler in placed})
    seen, slices = _shown(node, placed, cluster, state)
    cases = []
    version_known = state.settled_cgroup is not None
    asked = questions(state, handlers)
    for answered in setups(state, handlers, platform_reserve(state.reserve, node)):
        now = same(replace(answered.setup, measured=bool(seen) or slices != NO_SLICES))
        own = tuple(zip(asked, answered.places, strict=True))
        for way in ways(scenario, node, now, handlers, like.ways(node, handlers), version_known=version_known):
            then = same(way.setup)
            words = ", ".join([answered.when, *way.words] if answered.when else way.words)
            cases.append(Case(words, now, then, is_lost(now, then), (*own, *way.answers)))
    cases.sort(key=_rank)
    leading = {of: tuple([case.leads(of) for case in cases]) for of in (None, *handlers)}
    by_name = bool(scenario.runtimes)
    return NodeCases(node, state, placed, seen, slices, tuple(handlers), tuple(cases), by_name, leading)


def _shown(
    node: Node, placed: Sequence[PlacedPod], cluster: Cluster, state: State
) -> tuple[tuple[ShownPod, ...], ShownSlices]:
    """Return what a node's kubelet shows of its pods and slices; nothing where it was not asked, or the unit is not known."""
    answers, version = (cluster.kubelets or {}).get(node.name), state.settled_cgroup
    if answers is None or version is None:
        return (), NO_SLICES
    return shown.pods(answers, placed, version), shown.slices(answers, version)


def _heeded(node: Node, placed: Sequence[PlacedPod], cluster: Cluster) -> Sequence[PlacedPod]:
    """Return the pods without annotations of which their kubelet shows that nothing comes of them."""
    answers, kubelet = (cluster.kubelets or {}).get(node.name), KubeletVersion.parse(node.kubelet_version)
    known = measured.cgroup_version(answers, placed, kubelet) if answers else None
    return shown.heeded(answers, placed, known[0], kubelet) if answers and known else placed


def _rank(case: Case) -> tuple[int, int, list[int]]:
    """To sort cases by: how many defaults are overridden, then how many unknowns have their second answer, then by question."""
    otherwise = [question.confidence for question, place in case.answers if place]
    places = {question.about: place for question, place in case.answers}
    return otherwise.count("probable"), otherwise.count("unknown"), [places.get(about, 0) for about in _ORDER]


class _Like(Struct, frozen=True):
    """The node that the others become like, if the target names one."""

    node: Node | None = None
    state: State | None = None
    handlers: tuple[str, ...] = ()

    def ways(self, node: Node, handlers: Collection[str]) -> list[Way]:
        """Return what a node becomes that becomes like it: more than one where something of it is open."""
        if self.node is None or self.state is None or node.name == self.node.name:
            return []
        asked = [handler for handler in handlers if handler in self.handlers]
        open_ = [Question(f"like:{question.about}", question.confidence) for question in questions(self.state, asked)]
        return [
            Way(
                tuple(f"{self.node.name}: {words}" for words in answered.when.split(", ") if words),
                tuple(zip(open_, answered.places, strict=True)),
                answered.setup,
            )
            for answered in setups(self.state, asked, platform_reserve(self.state.reserve, node))
        ]


def _like(
    cluster: Cluster, placed: Mapping[str, Sequence[PlacedPod]], rules: tuple[Rule, ...], name: str | None
) -> _Like:
    if name is None:
        return _Like()
    nodes = {node.name: node for node in cluster.nodes if node.kind == "linux"}
    if name not in nodes:
        raise UsageError(f"--to like={name}: there is no such node; there are {named(sorted(nodes), _NAMED) or 'none'}")
    here = placed.get(name, ())
    state = settle(nodes[name], here, cluster, rules)
    return _Like(nodes[name], state, tuple(sorted({DEFAULT_HANDLER, *(handler for _, handler in here)})))
