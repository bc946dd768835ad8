"""Why a measured value is not the predicted one, or is it and not what the spec alone makes it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Literal

from msgspec.structs import replace

from kubectl_cgaudit.cgroups import crio
from kubectl_cgaudit.cgroups.quota import round_up, runtime_quota
from kubectl_cgaudit.cgroups.weights import FORMULAS, weight_of
from kubectl_cgaudit.collect.model import CPU_QUOTA, RESOURCES, UNIFIED, Node
from kubectl_cgaudit.compare.cgroups import Cgroup, NodeTree, asked_weight, predicted_trees
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.measured import INNER
from kubectl_cgaudit.detect.state import Setup

What = Literal["value", "quota"]
Cause = Literal["annotation", "partitioned", "every pod", "capacity", "allocatable", "formula", "rounding", "unknown"]
"""annotation: CRI-O heeds it, or does not. partitioned, every pod: what the Burstable slice is summed from. capacity,
allocatable: what kubepods is made from. formula, rounding: those of another release."""
Same = tuple[Cgroup, ...]
"""A cgroup in every case."""


def read(cgroup: Cgroup, what: What) -> int | None:
    """Return what a cgroup has: what it competes with, or its quota."""
    return cgroup.value if what == "value" else cgroup.quota_us


def in_order(values: Iterable[int | None]) -> tuple[int | None, ...]:
    """Return the values from the least to the greatest, none last."""
    return tuple(sorted(values, key=lambda value: (value is None, value or 0)))


def cgroups(node: Node, placed: Sequence[PlacedPod], under: Sequence[Setup]) -> Iterator[Same]:
    """Yield each cgroup in every case, with those that crun makes below the scopes of containers."""
    return zip(*map(_with_inner, predicted_trees(node, placed, under)), strict=True)


def _with_inner(tree: NodeTree) -> Iterator[Cgroup]:
    """Yield the cgroups of a tree; after a container's that in which crun would run it, of level `inner`."""
    setup = tree.setup
    below = setup.inner and setup.cgroup == "v2" and setup.driver == "systemd"
    pods = {(pod.namespace, pod.name): (pod, setup.runtime(used)) for pod, used in tree.placed}
    for cgroup in tree.cgroups():
        yield cgroup
        if cgroup.level != "container" or not below:
            continue
        pod, runtime = pods[cgroup.namespace or "", cgroup.pod or ""]
        container = next(each for each in pod.containers if each.name == cgroup.container)
        yield replace(
            cgroup,
            level="inner",
            path=cgroup.path and f"{cgroup.path}{INNER}",
            weight=cgroup.weight and (asked_weight(container, pod, setup) or cgroup.weight),
            quota_us=runtime_quota(container, pod, setup, runtime),
        )


class Causes:
    """The causes of a node's values, each found by predicting without it."""

    def __init__(self, node: Node, placed: Sequence[PlacedPod], under: Sequence[Setup]) -> None:
        self._node = node
        self._placed = placed
        self._under = under
        self._pods = {(pod.namespace, pod.name): pod for pod, _ in placed}

    def of_difference(self, cgroup: Cgroup, shown: int | None, what: What) -> tuple[Cause, str]:
        """Return why a cgroup shows what is not predicted of it, and the annotation's key where that is the cause."""
        for cause, _, predicted in self._otherwise:
            if shown in _read_all(predicted(), cgroup, what):
                return cause, self._key(cgroup, what) if cause == "annotation" else ""
        if what == "quota":
            least, most = sorted([shown or 0, cgroup.quota_us or 0])
            return ("rounding" if least and round_up(least, cgroup.period_us) == most else "unknown"), ""
        of_runtime = cgroup.level in ("container", "inner") and cgroup.version == "v2" and cgroup.shares is not None
        if of_runtime and shown in [weight_of(cgroup.shares or 0, formula) for formula in FORMULAS]:
            return "formula", ""
        return "unknown", ""

    def of_agreement(self, cgroup: Cgroup, what: What) -> tuple[Cause, str, tuple[int | None, ...]] | None:
        """Return what beside the spec makes a cgroup what it is, the annotation's key, and what it would be without.

        None where the spec alone makes it.
        """
        for _, cause, predicted in self._otherwise:
            found = (
                _read_all(predicted(), cgroup, what) if cause in ("annotation", "partitioned", "capacity") else set()
            )
            if found and read(cgroup, what) not in found:
                return cause, self._key(cgroup, what) if cause == "annotation" else "", in_order(found)
        return None

    @cached_property
    def _otherwise(self) -> list[tuple[Cause, Cause, Callable[[], dict[str, Same]]]]:
        """What may be otherwise than it is taken to be: the cause where it is, that where it is not, and the cgroups then."""
        first = self._under[0]
        found: list[tuple[Cause, Cause, Callable[[], dict[str, Same]]]] = []
        if first.crio and any(pod.annotations for pod in self._pods.values()):
            found.append(("annotation", "annotation", _once(self._without_annotations)))
        if any(crio.asked(pod).partitioned for pod in self._pods.values()):
            sums: tuple[Cause, Cause] = ("every pod", "partitioned")
            other, this = sums if first.partitioned else sums[::-1]
            found.append((other, this, _once(lambda: self._under_all(partitioned=not first.partitioned))))
        ends: tuple[Cause, Cause] = ("allocatable", "capacity")
        other, this = ends if first.from_capacity else ends[::-1]
        found.append((other, this, _once(lambda: self._under_all(from_capacity=not first.from_capacity))))
        return found

    def _without_annotations(self) -> dict[str, Same]:
        plain = [(replace(pod, alike=replace(pod.alike, annotations=())), used) for pod, used in self._placed]
        # Which pods are counted in the slice is another question.
        return {
            path: same
            for path, same in _by_path(cgroups(self._node, plain, self._under)).items()
            if same[0].pod is not None
        }

    def _under_all(self, **changes: bool) -> dict[str, Same]:
        return _by_path(cgroups(self._node, self._placed, [replace(setup, **changes) for setup in self._under]))

    def _key(self, cgroup: Cgroup, what: What) -> str:
        """Return the key of the annotation that speaks of a cgroup."""
        pod = self._pods[cgroup.namespace or "", cgroup.pod or ""]
        if what == "quota":
            return next((key for key, _ in pod.annotations if key.startswith(CPU_QUOTA)), "")
        return f"{UNIFIED if cgroup.container in crio.asked(pod).weights else RESOURCES}{cgroup.container}"


def _once(make: Callable[[], dict[str, Same]]) -> Callable[[], dict[str, Same]]:
    known: list[dict[str, Same]] = []

    def made() -> dict[str, Same]:
        if not known:
            known.append(make())
        return known[0]

    return made


def _by_path(found: Iterator[Same]) -> dict[str, Same]:
    return {same[0].path: same for same in found if same[0].path is not None}


def _read_all(found: dict[str, Same], cgroup: Cgroup, what: What) -> set[int | None]:
    return {read(each, what) for each in found.get(cgroup.path or "", ()) if each.version == cgroup.version}
