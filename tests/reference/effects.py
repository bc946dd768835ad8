"""What a move does to a pod, in a word or two: README, "Read the result".

Part of the reference model: written from the documents alone, to be obviously right and not fast. It must never
import from kubectl_cgaudit.
"""

from fractions import Fraction

from tests.reference.amounts import DEFAULT
from tests.reference.cases import Case
from tests.reference.objects import Pod
from tests.reference.tree import Cgroup, PodTree, may_not_start

Effects = frozenset[str]

LOSS, GAIN, MOVE = Fraction(-10, 100), Fraction(10, 100), Fraction(-5, 100)
"""The thresholds where none is given."""
OF_CPU = frozenset({"stops", "loses", "gains", "moves"})


def in_case(pod: Pod, case: Case, before: PodTree, after: PodTree) -> Effects:
    """The effects on a pod in one case. On a node that does not come back it stops, and nothing else is true of it."""
    if case.lost:
        return frozenset({"stops"})
    pairs = [(own, after.containers[name]) for name, own in before.containers.items()]
    change = _change(before.own.against_system, after.own.against_system)
    found = {
        "loses": change <= LOSS,
        "gains": change >= GAIN,
        "moves": any(_change(was.in_pod, will.in_pod) <= MOVE for was, will in pairs),
        "nominal": any(_nominal(was) != _nominal(will) for was, will in pairs),
        "may-stop": may_not_start(pod, case.after),
    }
    return frozenset(effect for effect, true in found.items() if true)


def over_cases(found: list[Effects]) -> Effects:
    """What holds in every leading case. A change of CPU that holds only in some makes the effect unknown: docs/method.md."""
    sure, some = frozenset.intersection(*found), frozenset.union(*found)
    unknown = {"unknown"} if (some - sure) & OF_CPU else set()
    return sure | unknown | (some & {"nominal", "may-stop"})


def _change(before: Fraction | None, after: Fraction | None) -> Fraction:
    """After / before - 1; 0 where there is nothing to compare."""
    return after / before - 1 if before and after is not None else Fraction(0)


def _nominal(cgroup: Cgroup) -> Fraction | None:
    return None if cgroup.value is None else Fraction(cgroup.value, DEFAULT[cgroup.version])
