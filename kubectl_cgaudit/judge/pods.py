"""A pod before and after, as the audit shows it."""

from collections.abc import Iterable, Sequence

from kubectl_cgaudit.collect.model import COMPETING, Pod
from kubectl_cgaudit.judge.audit import (
    EFFECTS,
    CaseChange,
    ContainerAudit,
    Effect,
    Moment,
    OtherEffects,
    PodAudit,
    in_ranks,
)
from kubectl_cgaudit.judge.compare import Case, Comparison
from kubectl_cgaudit.judge.condition import condition
from kubectl_cgaudit.judge.confidence import of_pod
from kubectl_cgaudit.judge.figures import Fixed, fixed
from kubectl_cgaudit.judge.rounding import relative, rounded
from kubectl_cgaudit.judge.thresholds import Thresholds
from kubectl_cgaudit.predict.quota import cannot_start
from kubectl_cgaudit.predict.tree import NodeTree

_STOPS: frozenset[Effect] = frozenset({"stops"})
_MAY_STOP: frozenset[Effect] = frozenset({"may-stop"})
_LOSES: frozenset[Effect] = frozenset({"loses"})
_GAINS: frozenset[Effect] = frozenset({"gains"})
NEITHER: frozenset[Effect] = frozenset()
"""Neither loses nor gains, as what does not come back does not."""


def audited(comparison: Comparison, index: int, thresholds: Thresholds) -> PodAudit:
    """The pod of a node, by its place among the node's pods."""
    pod, used = comparison.placed[index]
    cases, leading = comparison.cases, comparison.leading[used]
    moments = [(_moments(comparison, index, case.before), _moments(comparison, index, case.after)) for case in cases]
    fates = [fate(pod, used, case) for case in cases]
    changes, *of_containers = (
        [
            CaseChange(case.when, before[place], after[place], "stops" in found, rank, leads)
            for rank, (case, leads, (before, after), found) in enumerate(
                zip(cases, leading, moments, fates, strict=True), start=1
            )
        ]
        for place in range(len(moments[0][0]))
    )
    found = []
    for place, (case, here) in enumerate(zip(cases, fates, strict=True)):
        if not case.lost:
            pairs = [(each[place].before, each[place].after) for each in of_containers]
            here |= by_share(system_change(changes[place]), thresholds) | inside(pairs, thresholds)
        found.append(here)
    return PodAudit(
        pod.name,
        comparison.node.name,
        pod.qos,
        used,
        of_pod(comparison, pod, used),
        effects([here for here, leads in zip(found, leading, strict=True) if leads]),
        *in_ranks(changes),
        tuple(
            ContainerAudit(each.name, each.role, each.request_milli, each.limit_milli, *in_ranks(own))
            for each, own in zip(pod.present, of_containers, strict=True)
        ),
    )


def _moments(comparison: Comparison, index: int, tree: NodeTree) -> list[Moment]:
    """The pod at one moment, then its containers."""
    shape = tree.pods.shapes[comparison.outlines[index]]
    share, system = tree.pods.share(shape), tree.system_share
    found = []
    for each, part in zip(fixed(shape, tree.setup), (1.0, *shape.part), strict=True):
        own = None if part is None else share * part
        against = None if own is None else own / system
        found.append(
            Moment(
                each.version,
                each.value,
                each.nominal_ratio,
                rounded(own),
                rounded(against),
                each.in_pod,
                each.quota_us,
                each.measured,
            )
        )
    return found


def system_change(pod: CaseChange) -> float | None:
    """How much a pod gains or loses against the system."""
    return relative(pod.before.against_system, pod.after.against_system)


def by_share(change: float | None, thresholds: Thresholds) -> frozenset[Effect]:
    """What a change against the system comes to."""
    if thresholds.loses(change):
        return _LOSES
    return _GAINS if thresholds.gains(change) else NEITHER


def inside(containers: Iterable[tuple[Fixed | Moment, Fixed | Moment]], thresholds: Thresholds) -> set[Effect]:
    """What changes between the containers of a pod, and in their numbers, before and after."""
    found: set[Effect] = set()
    for before, after in containers:
        if thresholds.moves(relative(before.in_pod, after.in_pod)):
            found.add("moves")
        if before.nominal_ratio != after.nominal_ratio:
            found.add("nominal")
    return found


def fate(pod: Pod, used: str, case: Case) -> frozenset[Effect]:
    """Return `stops` where the pod's node does not come back, `may-stop` where one of its containers may not start.

    The second is a race: the kubelet gives systemd the rounded quota and writes the raw one, and the last write wins.
    Source: runc#4982, containerd#12496.
    """
    if case.lost:
        return _STOPS
    fails = any(cannot_start(pod, container, case.then, used) for container in pod.containers)
    return _MAY_STOP if fails else NEITHER


def runs_in_part(pod: Pod, used: str, case: Case) -> bool:
    """Return whether containers run beside one that does not start: only init containers and sidecars are waited for."""
    # https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers
    starts = [(each.role, not cannot_start(pod, each, case.then, used)) for each in pod.containers]
    nothing_waits = all(well for role, well in starts if role != "app")
    return nothing_waits and any(well for role, well in starts if role in COMPETING)


def effects(cases: Sequence[frozenset[Effect]]) -> tuple[Effect, ...]:
    """Return what holds in every of these cases; what may stop in some may stop, and a change of CPU that holds only in some is
    unknown, never left out.
    """
    sure = frozenset.intersection(*cases)
    open_ = frozenset.union(*cases) - sure
    found = set(sure)
    if open_ & {"stops", "unknown", "loses", "gains", "moves"}:
        found.add("unknown")
    found |= open_ & {"may-stop", "nominal"}
    return tuple(effect for effect in EFFECTS if effect in found)


def other_effects(
    comparison: Comparison, leading: Sequence[bool], found: Sequence[frozenset[Effect]], changes: Sequence[float | None]
) -> tuple[OtherEffects, ...]:
    """Return what holds in the cases in which a default is overridden, where that is something else than in the leading ones.

    From what holds in each case, and the change against the system there. Cases with the same effects are told together.
    """
    # Another number in cpu.weight is no news.
    of_cpu = [here - {"nominal"} for here in found]
    led = {here for here, leads in zip(of_cpu, leading, strict=True) if leads}
    groups: dict[frozenset[Effect], list[int]] = {}
    for place, (here, leads) in enumerate(zip(of_cpu, leading, strict=True)):
        if not leads and led != {here}:
            groups.setdefault(here, []).append(place)
    whens = comparison.whens
    return tuple(
        OtherEffects(
            condition([whens[place] for place in places], whens),
            tuple(effect for effect in EFFECTS if effect in here),
            min((change for place in places if (change := changes[place]) is not None and change < 0), default=None),
        )
        for here, places in groups.items()
    )
