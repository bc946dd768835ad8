"""CGA201: workloads that lose priority against system processes."""

from collections.abc import Iterator

from kubectl_cgaudit.cgroups.pods import pod_level_resources
from kubectl_cgaudit.cgroups.weights import MAX_SHARES, MAX_WEIGHT, MIN_SHARES
from kubectl_cgaudit.collect.model import Node, Pod
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.reading import has_no_slice
from kubectl_cgaudit.detect.state import SYSTEM_SLICE, CgroupVersion, State, default_root_value, unit_of
from kubectl_cgaudit.judge.audit import Severity
from kubectl_cgaudit.judge.compare import Case, Comparison, PodCase
from kubectl_cgaudit.judge.condition import condition
from kubectl_cgaudit.judge.rounding import relative, rounded
from kubectl_cgaudit.judge.rules.catalogue import SYSTEM_LOSS, why_it_loses
from kubectl_cgaudit.judge.rules.context import Context, Hit, PodRule, graded, pod_hits
from kubectl_cgaudit.judge.rules.looks import Look
from kubectl_cgaudit.judge.rules.requests import more_cpu
from kubectl_cgaudit.judge.rules.reserve import Reserve, reserve_for
from kubectl_cgaudit.judge.thresholds import Thresholds
from kubectl_cgaudit.text import capital, number, percent, percents

_NEAR = 1.02
_GRADED = graded((0.5, "high"), (0.2, "medium"))


def no_slice(state: State) -> str:
    """What to do on a node that has no system.slice to give a value."""
    told = state.system_slice is not None
    asked = "" if told else "say their sum with --states (system_slice: N) before you believe this; "
    return f"Talos has no system.slice and sets the weights beside kubepods itself: {asked}there is nothing to set by hand."


def _severity(thresholds: Thresholds, change: float, keeps: bool) -> Severity | None:
    """That of a change against the system, where it is a loss; `keeps`: the pod keeps its share of the node."""
    if not thresholds.loses(change):
        return None
    return "low" if keeps else _GRADED(-change)


def _losses(context: Context, comparison: Comparison, placed: PlacedPod, cases: tuple[PodCase, ...]) -> Iterator[Hit]:
    pod, _ = placed
    yield from pod_hits(pod, None, [(case, _loss(context, comparison, pod, case)) for case in cases], _GRADED)


def _loss(context: Context, comparison: Comparison, pod: Pod, case: PodCase) -> Look | None:
    # As in the effects, the numbers that are shown decide.
    before = rounded(case.against_system(case.before.cgroup, after=False))
    after = rounded(case.against_system(case.after.cgroup, after=True))
    change = relative(before, after)
    if before is None or after is None or change is None or not context.thresholds.loses(change):
        return None

    def words() -> tuple[str, str]:
        share, share_after = percents(case.before.cgroup.share or 0, case.after.cgroup.share or 0)
        seen = (
            f"Pod {pod.namespace}/{pod.name} on {comparison.node.name}: {number(before)} times the CPU of system.slice now, "
            f"{number(after)} times after ({percent(change)}); {share} of the node's CPU now, {share_after} after, when "
            "everything wants CPU."
        )
        return seen, _loss_remedy(context, comparison, pod, case.case, change)

    # On a large node system.slice takes little, whatever its weight.
    of_node = relative(rounded(case.before.cgroup.share), rounded(case.after.cgroup.share))
    return Look(-change, words, mild=not context.thresholds.loses(of_node))


def _loss_remedy(context: Context, comparison: Comparison, pod: Pod, case: Case, change: float) -> str:
    if has_no_slice(comparison.node):
        return no_slice(comparison.state)
    version = case.then.kubelet_version
    now, of_node = _ratio(case)
    if _keeps(context, case):
        was, counts = (pod_level_resources(each.kubelet_version) for each in (case.now, case.then))
        uncounted = f"which the kubelet of {'now' if counts else 'then'} does not count"
        other = f", or follow what pods ask for as a whole, {uncounted}" if was != counts else ""
        more = capital(more_cpu(pod, version, by_containers=was and not counts))
        little = context.thresholds.system_loss / 2
        moves = "rises" if of_node > little else "hardly changes"
        nearest = "system.slice has the value that comes nearest to the ratio of now"
        why = nearest if of_node <= -little else f"The node's ratio of pods to system processes {moves}"
        return (
            f"{why}: this pod's own weight, or those of its siblings, are rounded{other}. {more}; `kubectl cgaudit "
            "explain` shows each level."
        )
    if now >= context.thresholds.outweighed:
        return (
            f"Pods have {number(now)} times the weight of system.slice on {comparison.node.name} now, which is more than "
            f"system processes need to stay alive (CGA202, {number(context.thresholds.outweighed)} : 1): losing some of that "
            "protects the node. Watch the workload after the move before changing anything."
            f"{_still_loses('Of its own it', context.thresholds, more_cpu(pod, version), _with_ratio(case, change, now))}"
        )
    return _keep_ratio(context, comparison.node, pod, case, change)


def _with_ratio(case: Case, change: float, ratio: float) -> float:
    """The change of a pod, as a fraction, if this were the ratio of pods to system processes after the move."""
    now, of_node = _ratio(case)
    return (1 + change) * ratio / (now * (1 + of_node)) - 1


def _still_loses(who: str, thresholds: Thresholds, more: str, left: float, with_reserve: float = 0.0) -> str:
    """What to do about what a pod loses in spite of the ratio, and of the reserve, as fractions. `more` gives it more weight."""
    if thresholds.loses(left):
        up_to = f", up to {percent(-with_reserve)} with the reserve" if with_reserve < left else ""
        return f" {who} still loses {percent(-left)} then{up_to}, as weights are rounded: {more} too."
    if thresholds.loses(with_reserve):
        return f" With the reserve the pod still loses up to {percent(-with_reserve)}."
    return ""


def _keep_ratio(context: Context, node: Node, pod: Pod, case: Case, change: float) -> str:
    """What system.slice needs to keep the ratio of now, the ways to set it, and what a pod that changes so loses even then."""
    now, _ = _ratio(case)
    kubepods, version = case.after.kubepods_value, case.then.cgroup
    setting, value = ("CPUShares" if version == "v1" else "CPUWeight"), _keeping(case, now)
    ratio = kubepods / value
    # systemd turns one into the other by a formula of its own: set for the other version, it moves the ratio away.
    start = (
        f"Once {node.name} is on cgroup {version}, not before, keep"
        if case.now.cgroup != version
        else f"On {node.name} keep"
    )
    advice = (
        f"{start} the ratio of now: {_freed(case)}give system.slice {unit_of(version)} {value} (pods : system {number(ratio)} : "
        f"1) with `systemctl set-property system.slice {setting}={value}`, which lasts as long as the node's /etc (a new node "
        "needs it again) and `systemctl revert system.slice` undoes"
    )
    reserve = _reserve(context, node, case, now) if version == "v2" else None
    with_reserve = _with_ratio(case, change, reserve.ratios[0]) if reserve else 0.0
    more = more_cpu(pod, case.then.kubelet_version)
    still = _still_loses("The pod", context.thresholds, more, _with_ratio(case, change, ratio), with_reserve)
    named_then = _named_then(context.thresholds, version, value, ratio, reserve)
    return f"{advice}{f'; or {reserve.words()}' if reserve else ''}.{named_then}{still}"


def _named_then(
    thresholds: Thresholds, version: CgroupVersion, value: int, ratio: float, reserve: Reserve | None
) -> str:
    """What CGA202 finds with this value of system.slice, which makes this ratio, or with the reserve in its place."""
    by_value = _outweighed_then(thresholds, version, value, ratio)
    by_reserve = (
        [_outweighed_then(thresholds, version, reserve.weight, each) for each in reserve.ratios]
        if reserve
        else [by_value]
    )
    if by_value and all(by_reserve):
        return f" CGA202 names the node then: {_judged(thresholds, version, value)}."
    with_value = f" With that {unit_of(version)} CGA202 names the node: {_judged(thresholds, version, value)}."
    said = with_value if by_value else ""
    if reserve and any(by_reserve):
        names = "names" if all(by_reserve) else "may name"
        said += f" With the reserve CGA202 {names} the node: {_judged(thresholds, version, reserve.weight)}."
    return said


def _outweighed_then(thresholds: Thresholds, version: CgroupVersion, value: int, ratio: float) -> bool:
    """Whether CGA202 finds a node whose system.slice has this value, with this ratio of pods to it."""
    return ratio >= thresholds.outweighed_from(lowered=value < default_root_value(version))


def _judged(thresholds: Thresholds, version: CgroupVersion, value: int) -> str:
    """By which limit CGA202 judges such a value of system.slice."""
    default = default_root_value(version)
    limit = number(thresholds.outweighed_from(lowered=value < default))
    return (
        f"below its default of {default}, system.slice is judged by {limit} : 1"
        if value < default
        else f"from {limit} : 1 on"
    )


def _reserve(context: Context, node: Node, case: Case, now: float) -> Reserve | None:
    """The reserve that keeps the ratio of now, at least so nearly that it makes no finding."""
    found = reserve_for(context.cluster, node, case, (now * _NEAR, now * _NEAR))
    return found if found and not context.thresholds.loses(found.ratios[0] / now - 1) else None


def _freed(case: Case) -> str:
    """What comes before system.slice is given a value: a kubelet that enforces a reserve there writes its own at every start."""
    off = "the enforcement off system.slice (its key out of enforceNodeAllocatable)"
    if SYSTEM_SLICE in case.then.enforced:
        return f"take {off}, as the kubelet writes its value again at every start, then "
    if not case.then.reserves_known and case.now.system_slice != default_root_value(case.now.cgroup):
        return f"if a kubelet's reserve set the value of now, take {off}, then "
    return ""


def _ratio(case: Case) -> tuple[float, float]:
    """Pods to system processes now, and how much that changes."""
    now, after = case.before.pods_to_system, case.after.pods_to_system
    return now, after / now - 1


def _keeping(case: Case, now: float) -> int:
    """What system.slice needs after the move for the ratio of now."""
    least, most = (MIN_SHARES, MAX_SHARES) if case.then.cgroup == "v1" else (1, MAX_WEIGHT)
    return max(least, min(most, round(case.after.kubepods_value / now)))


def _keeps(context: Context, case: Case) -> bool:
    """Whether a node's ratio of pods to system processes hardly falls, or no other value of system.slice comes nearer to it."""
    now, of_node = _ratio(case)
    return of_node > -context.thresholds.system_loss / 2 or _keeping(case, now) == case.then.system_slice


def _node_remedy(context: Context, comparison: Comparison) -> tuple[str, float | None]:
    """In a few words, for the case in which the node's pods lose most; and what is left then of 1 that a pod has after the move.

    None where nobody can say.
    """
    if has_no_slice(comparison.node):
        return "nothing to set by hand", None
    case = min(comparison.cases, key=lambda each: _ratio(each)[1])
    now, change = _ratio(case)
    if _keeps(context, case):
        return "nothing for system.slice", 1.0
    if now >= context.thresholds.outweighed:
        limit = number(context.thresholds.outweighed)
        return f"watch before changing anything (pods outweigh it by more than {limit} : 1 now)", 1 / (1 + change)
    then, value = case.then.cgroup, _keeping(case, now)
    late = f", once on cgroup {then}, not before" if case.now.cgroup != then else ""
    if_open = condition([each.when for each in comparison.cases if _ratio(each)[1] == change], comparison.whens)
    freed = ", with no reserve enforced on it" if _freed(case) else ""
    ratio = case.after.kubepods_value / value
    named_then = " (CGA202 names the node then)" if _outweighed_then(context.thresholds, then, value, ratio) else ""
    further = f"{named_then}{freed}{late}{f' ({if_open})' if if_open else ''}"
    words = f"{unit_of(then)} {value} for system.slice{further}{',' if further else ''}"
    return words, case.then.system_slice / value


LOSSES = PodRule(
    SYSTEM_LOSS,
    _losses,
    by_share=_severity,
    elsewhere=_node_remedy,
    why=lambda comparison: why_it_loses(comparison.cases[0].now.services),
)
"""CGA201."""
