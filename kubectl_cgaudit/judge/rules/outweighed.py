"""CGA202: nodes where pods outweigh system processes."""

import math
from collections.abc import Iterator

from kubectl_cgaudit.cgroups.weights import MAX_SHARES, MAX_WEIGHT
from kubectl_cgaudit.detect.reading import has_no_slice
from kubectl_cgaudit.detect.state import SYSTEM_SLICE, Setup, default_root_value, unit_of
from kubectl_cgaudit.judge.audit import Finding
from kubectl_cgaudit.judge.compare import Case, Comparison
from kubectl_cgaudit.judge.rules.catalogue import SYSTEM_OUTWEIGHED, why_it_outweighs
from kubectl_cgaudit.judge.rules.context import Context, graded, node_finding
from kubectl_cgaudit.judge.rules.looks import Look, worst
from kubectl_cgaudit.judge.rules.reserve import reserve_for
from kubectl_cgaudit.judge.rules.system import no_slice
from kubectl_cgaudit.text import number, percent

_EXCESS = graded((5.0, "high"), (2.0, "medium"))


def outweighed(context: Context, comparison: Comparison) -> Iterator[Finding]:
    """CGA202, one finding a node."""
    looks = [(case.when, _outweighed(context, comparison, case)) for case in comparison.cases]
    if found := worst(looks, comparison.leading[None], _EXCESS):
        yield node_finding(SYSTEM_OUTWEIGHED, comparison, found, why_it_outweighs(comparison.cases[0].then.services))


def _outweighed(context: Context, comparison: Comparison, case: Case) -> Look | None:
    kubepods, system = case.after.kubepods_value, case.then.system_slice
    lowered = system < default_root_value(case.then.cgroup)
    limit = context.thresholds.outweighed_from(lowered=lowered)
    now, after = case.before.pods_to_system, case.after.pods_to_system
    if after < limit or case.lost:
        return None
    unit = unit_of(case.then.cgroup)
    cause = f", below its default of {default_root_value(case.then.cgroup)}" if lowered else ""
    beside = dict(case.then.root).get(case.then.services)
    kubelet = f", and {case.then.services} with the kubelet and the container runtime {beside}" if beside else ""
    seen = (
        f"{comparison.node.name}: kubepods has {unit} {kubepods}, system.slice {system}{cause}{kubelet}: pods : system is "
        f"{number(after)} : 1 after the move ({number(now)} : 1 now), so system processes keep "
        f"{percent(case.after.system_share)} of the node's CPU when everything wants it."
    )
    return Look(after / limit, lambda: (seen, _raise_system(context, comparison, case, limit) + _also(case.then)))


def _also(then: Setup) -> str:
    """Return what else to raise where the kubelet and the container runtime run beside system.slice."""
    if then.services == SYSTEM_SLICE:
        return ""
    return (
        f" The kubelet and the container runtime are in {then.services} there: raise it likewise, as system.slice does nothing "
        "for them."
    )


def _raise_system(context: Context, comparison: Comparison, case: Case, limit: float) -> str:
    node = comparison.node
    if has_no_slice(node):
        return no_slice(comparison.state)
    then, pods, thresholds = case.then, case.after.kubepods_value, context.thresholds
    default = default_root_value(then.cgroup)
    wanted = _beyond(pods, limit)
    if wanted >= default:
        # From its default on system.slice is judged by the other threshold.
        limit = thresholds.outweighed
        wanted = max(default, _beyond(pods, limit))
    under = f"brings it under {number(limit)} : 1"
    most = MAX_SHARES if then.cgroup == "v1" else MAX_WEIGHT
    if wanted > most:
        return (
            f"No value of system.slice is enough: the greatest is {unit_of(then.cgroup)} {most}. Judge by another --threshold: "
            "system processes need no ratio as small as this."
        )
    direct = (
        f"`systemctl set-property system.slice {'CPUShares' if then.cgroup == 'v1' else 'CPUWeight'}={wanted}` {under}"
    )
    # A kubelet that enforces a reserve writes its value again at every start, whatever systemd was told.
    enforced = SYSTEM_SLICE in then.enforced
    open_ = not then.reserves_known and then.system_slice != default
    if then.cgroup == "v1":
        again = "; a kubelet that enforces a reserve there writes its own at every start: raise that reserve instead"
        return f"{direct}{again if enforced or open_ else ''}."
    # A reserve may itself take system.slice below its default, where less is too much.
    limits = min(limit, thresholds.outweighed), min(limit, thresholds.outweighed_reserve)
    found = reserve_for(context.cluster, node, case, limits)
    reserve = found.words() if found else None
    if enforced and reserve:
        return f"Raise the reserve: {reserve} {under}."
    if enforced:
        then_it = f", then {direct}" if wanted > default else f": it then has the default weight of {default} again"
        return (
            "No reserve of a sensible size is enough. Take the enforcement off system.slice (its key out of "
            f"enforceNodeAllocatable){then_it}."
        )
    if open_:
        return f"{direct} if systemd set it; if a kubelet's reserve did, {reserve or 'take its enforcement off system.slice'}."
    return f"{direct}{f'; or {reserve}' if reserve else ''}."


def _beyond(kubepods: int, limit: float) -> int:
    """The least value of system.slice beside which pods are under a limit: the rule holds from the limit on."""
    least = max(1, math.floor(kubepods / limit))
    # The quotient may be a whole number but for its last digit: what decides is the division of the rule.
    while kubepods / least >= limit:
        least += 1
    return least
