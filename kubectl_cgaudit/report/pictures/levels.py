"""How a pod comes to its share: at every level of the cgroup tree, its part among its siblings."""

from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from kubectl_cgaudit.judge.audit import CaseChange, ContainerAudit, Moment, NodeMoment, PodAudit

Role = Literal["own", "system", "sibling"]


class Part(Struct, frozen=True):
    """A cgroup, or several siblings together, and its fraction of the level's CPU."""

    label: str
    fraction: float
    role: Role


class Level(Struct, frozen=True):
    """The siblings at one level of the tree."""

    title: str
    writer: str
    """Who writes these weights."""
    parts: tuple[Part, ...]

    @property
    def own(self) -> Part:
        """The part that the next level divides; of the last level the container in question."""
        return next(part for part in self.parts if part.role == "own")


def _levels(
    node: NodeMoment, pod: PodAudit, moment: Moment, containers: Sequence[tuple[str, Moment]]
) -> Iterator[Level]:
    rest = max(0.0, 1 - node.pods_share - node.system_share)
    root = [Part("all pods", node.pods_share, "own"), Part("system.slice", node.system_share, "system")]
    if rest > 1e-6:
        root.append(Part("other cgroups", rest, "sibling"))
    yield Level("root of the node", "kubelet", tuple(root))
    classes = {qos: each for qos, each in node.qos.items() if each.share > 0}
    own = classes.get(pod.qos)
    if own is None or not moment.share or not node.pods_share:
        return
    yield Level(
        "QoS class",
        "kubelet",
        tuple(
            Part(qos, each.share / node.pods_share, "own" if qos == pod.qos else "sibling")
            for qos, each in classes.items()
        ),
    )
    fraction = min(moment.share / own.share, 1.0)
    others = own.pods - 1
    beside = [Part(f"{others} other{'s' if others > 1 else ''}", 1 - fraction, "sibling")] if others else []
    yield Level("pod", "kubelet", (Part("this pod", fraction, "own"), *beside))
    inside = [(name, each.in_pod) for name, each in containers if each.in_pod is not None]
    if inside:
        yield Level(
            "container",
            "runtime",
            tuple(Part(name, part, "own" if index == 0 else "sibling") for index, (name, part) in enumerate(inside)),
        )


def of_case(
    node: NodeMoment, pod: PodAudit, index: int, containers: Sequence[ContainerAudit], *, after: bool
) -> tuple[Level, ...]:
    """The levels from the root to the containers, in the pod's case `index`, now or after.

    There are fewer where nothing is known or nothing competes. Of `containers` the one in question comes first.
    """
    moments = [(each.name, _moment(each.cases[index], after=after)) for each in containers]
    return tuple(_levels(node, pod, _moment(pod.cases[index], after=after), moments))


def _moment(case: CaseChange, *, after: bool) -> Moment:
    return case.after if after else case.before
