"""The verdict: what changes, for whom, where, how bad on a full node, what prevents it, and how sure that is."""

from collections import Counter
from collections.abc import Sequence

from kubectl_cgaudit.audit.condition import condition
from kubectl_cgaudit.audit.model import Audit, NodeCase, NodeRecord, Question, Workload
from kubectl_cgaudit.report.words import (
    ONLY_WHEN_FULL,
    SYSTEM,
    both_percents,
    capital,
    counted,
    each_loses,
    named,
    on,
    percent,
    sentence,
)

_NODES = 3


def verdict(audit: Audit) -> str:
    """Return the answer, at most 80 words."""
    if not audit.workloads:
        return _nothing(audit)
    losing = [each for each in audit.workloads if "loses" in each.effects]
    stopping = [each for each in audit.workloads if each.effect in ("stops", "may-stop")]
    parts = [
        _stopping(audit, stopping),
        _losing(audit, losing),
        ONLY_WHEN_FULL if losing else "",
        _moving(audit, losing),
        _open(audit),
    ]
    if not any(parts):
        parts.append(_calm(audit))
    return sentence(
        _what_if(audit), _incomplete(audit), *parts, _beside(audit), _otherwise(audit), _first_action(audit)
    )


def _nothing(audit: Audit) -> str:
    coverage = audit.coverage
    if coverage.filter and coverage.pods_read and not coverage.pods_audited:
        return f"No pod was audited: none matches {coverage.filter}."
    incomplete = "" if coverage.complete else " Not everything could be read: see coverage."
    return f"No pod was audited.{incomplete}"


def _what_if(audit: Audit) -> str:
    return f"With --what-if {named(audit.target.what_if, _NODES)}:" if audit.target.what_if else ""


def _incomplete(audit: Audit) -> str:
    return "" if audit.coverage.complete else "Incomplete, so this is no pass: not everything could be read."


def _stopping(audit: Audit, stopping: Sequence[Workload]) -> str:
    stops = [each for each in stopping if each.effect == "stops"]
    may = [each for each in stopping if each.effect == "may-stop"]
    lost = [node.name for node in audit.nodes if node.cases[0].stops and all(c.stops for c in node.cases if c.leading)]
    open_ = [node for node in audit.nodes if node.name not in lost and any(case.stops for case in node.cases)]
    parts = []
    if lost:
        does = "does" if len(lost) == 1 else "do"
        parts.append(
            f"{capital(counted(len(lost), 'node'))} ({named(lost, _NODES)}) {does} not come back: the new kubelet refuses "
            "cgroup v1."
        )
        if stops:
            parts.append(f"{counted(len(stops), 'workload')} {'has' if len(stops) == 1 else 'have'} pods there.")
    if open_:
        when = condition([case.when for case in open_[0].cases if case.stops], [case.when for case in open_[0].cases])
        names = named([node.name for node in open_], _NODES)
        parts.append(
            f"{capital(counted(len(open_), 'node'))} ({names}) may not come back from the kubelet upgrade, {when}."
        )
    if may:
        have = "has a container that" if len(may) == 1 else "have containers that"
        parts.append(
            f"{counted(len(may), 'workload')} {have} may not start ({named([each.title for each in may], _NODES)})."
        )
    return " ".join(parts)


def _losing(audit: Audit, losing: Sequence[Workload]) -> str:
    if not losing:
        return ""
    nodes = _losing_nodes(audit, losing)
    total = counted(len(audit.workloads), "workload")
    where = on(nodes, _NODES)
    all_on = "all " if len(losing) > 1 and len(nodes) == 1 else ""
    comma = f", {all_on}{where}" if where else ""
    parts = [f"{len(losing)} of {total} {each_loses(len(losing))} CPU to {SYSTEM}{comma}{_only_mover(audit, nodes)}."]
    worst = min((each for each in losing if each.sure_share), key=_worst_first, default=None)
    moved = _root(audit, nodes)
    if moved:
        parts.append(moved)
    if worst and worst.sure_share:
        before, after = both_percents(worst.sure_share.before, worst.sure_share.after)
        lead = "; " if moved else ""
        text = f"{worst.title} falls from {before} to {after}"
        if lead:
            parts[-1] = f"{parts[-1].rstrip('.')}; {text}."
        else:
            parts.append(f"Worst is {text.replace(' falls', ', which falls')} of a full node.")
    return " ".join(parts)


def _losing_nodes(audit: Audit, losing: Sequence[Workload]) -> list[str]:
    """Return the nodes on which these lose in every leading case; where there is none, all on which they may."""
    told = {each.subject.key: each.where.nodes for each in audit.findings if each.rule == "CGA201"}
    nodes = {node for each in losing for node in told.get(each.key, each.nodes_hit)}
    sure = {node.name for node in audit.nodes if all(_falls(case) for case in node.cases if case.leading)}
    return sorted(nodes & sure or nodes)


def _falls(case: NodeCase) -> bool:
    """Whether pods get less against system services."""
    return case.after.pods_per_system < case.before.pods_per_system


def _worst_first(workload: Workload) -> tuple[float, str]:
    share = workload.sure_share
    return (share.after - share.before if share else 0.0, workload.title)


def _moves(node: NodeRecord) -> bool:
    """Whether it moves to cgroup v2, or may."""
    return any(case.before.cgroup != case.after.cgroup for case in node.cases)


def _only_mover(audit: Audit, nodes: Sequence[str]) -> str:
    moving = [node.name for node in audit.nodes if _moves(node)]
    return (
        ", the only node that moves to cgroup v2"
        if len(audit.nodes) > 1 and moving == list(nodes) and len(nodes) == 1
        else ""
    )


def _root(audit: Audit, nodes: Sequence[str]) -> str:
    """What all pods of the nodes get of them when they are full."""
    firsts = [node.cases[0] for node in audit.nodes if node.name in set(nodes)]
    pairs = Counter(
        both_percents(case.before.pods_share, case.after.pods_share)
        for case in firsts
        if case.after.pods_share < case.before.pods_share
    )
    if len(pairs) != 1 or len(firsts) != sum(pairs.values()):
        return ""
    (before, after), count = next(iter(pairs.items()))
    it = nodes[0] if count == 1 else "such a node"
    return f"When {it} is full, its pods get less of its CPU: {before} -> {after}."


def _moving(audit: Audit, losing: Sequence[Workload]) -> str:
    moving = [each for each in audit.workloads if "moves" in each.effects]
    if not moving:
        return ""
    also = "the new runtime also shifts" if losing else "the new runtime shifts"
    amount = counted(len(moving), "workload")
    if not losing and _rests_on_defaults(audit):
        return f"Probably {also} CPU between containers of a pod in {amount}."
    return f"In {amount} {also} CPU between containers of a pod."


def _rests_on_defaults(audit: Audit) -> bool:
    """Whether some node was taken to be what its platform starts with, and nobody looked."""
    return any(node.known["cgroup"].confidence == "probable" for node in audit.nodes)


def _open(audit: Audit) -> str:
    unread = [each for each in audit.workloads if each.unpredicted_pods]
    open_ = [each for each in audit.workloads if "unknown" in each.effects and not each.unpredicted_pods]
    parts = []
    if open_:
        its = "its" if len(open_) == 1 else "their"
        parts.append(f"{_outcome(open_)} what {its} nodes run, which is unknown{_at_worst(open_)}.")
    if unread:
        parts.append(f"{_outcome(unread)} nodes that could not be read{_at_worst(unread)}.")
    return " ".join(parts)


def _at_worst(workloads: Sequence[Workload]) -> str:
    losses = [(each.against_system.change, each.title) for each in workloads if each.against_system]
    loss, name = min(losses, default=(0.0, ""))
    return f"; at worst {name} gets {percent(-loss)} less against system services" if loss < 0 else ""


def _outcome(workloads: Sequence[Workload]) -> str:
    return f"For {counted(len(workloads), 'workload')} the outcome depends on"


def _calm(audit: Audit) -> str:
    every = counted(len(audit.workloads), "workload")
    gains = sum("gains" in each.effects for each in audit.workloads)
    nominal = sum(each.effect == "nominal" for each in audit.workloads)
    loss, move = (percent(audit.target.thresholds[name]) for name in ("system-loss", "pod-move"))
    limits = f"{loss} of its CPU to system services, and no container {move} of its pod's"
    more = f" {gains} {'gets' if gains == 1 else 'get'} more." if gains else ""
    number = f" In {nominal} only the number in cpu.weight changes." if nominal and not gains else ""
    return f"No workload loses {limits} CPU ({every} audited).{more}{number}"


def _beside(audit: Audit) -> str:
    """What is no change of CPU and must not be missed."""
    misread = {each.subject.key for each in audit.findings if each.rule == "CGA401"}
    against = [node.name for node in audit.nodes if node.contradictions]
    parts = []
    if misread:
        parts.append(f"Programs of {counted(len(misread), 'workload')} may misread cpu.weight (CGA401).")
    if against:
        parts.append(f"The evidence contradicts itself {on(against, _NODES)} (CGA102).")
    return " ".join(parts)


def _otherwise(audit: Audit) -> str:
    """What happens instead where a default is overridden."""
    worse: dict[str, set[str]] = {}
    for each in audit.workloads:
        for other in each.other_effects:
            if {"loses", "stops", "may-stop"} & {*other.effects} - {*each.effects}:
                worse.setdefault(other.when, set()).add(each.key)
    if not worse:
        return ""
    parts = [when.split(", ") for when in worse]
    common = [part for part in parts[0] if all(part in other for other in parts)]
    if common:
        when, hit = ", ".join(common), set().union(*worse.values())
    else:
        when, hit = max(worse.items(), key=lambda entry: (len(entry[1]), entry[0]))
    defaults = [node.name for node in audit.nodes if node.known["cgroup"].confidence == "probable"]
    assumed = f"Assumed, not checked: {named(defaults, _NODES)} on their platform's default." if defaults else ""
    loses = f"{counted(len(hit), 'workload')} {each_loses(len(hit))} CPU on a full node"
    return sentence(assumed, f"If {when} after all, {loses}.")


def _first_action(audit: Audit) -> str:
    grave = {each.id for each in audit.findings if each.severity in ("critical", "high", "medium")}
    wanted = [each for each in audit.actions if each.kind == "inspect" or grave & {*each.clears, *each.lowers}]
    if wanted:
        first = wanted[0]
        if first.kind == "inspect" and first.run:
            return f"Check first: `{first.run[0]}` {on(first.target.get('nodes', ()), _NODES)}."
        losing = sum("loses" in each.effects for each in audit.workloads)
        prevented = len({each.id for each in audit.findings if each.rule == "CGA201"} & {*first.clears})
        if prevented and losing:
            every = "the loss" if losing == 1 else f"all {losing} losses"
            return f"{first.title}: prevents {every if prevented >= losing else f'{prevented} of {losing} losses'}."
        cleared = first.effect.cleared if first.effect else 0
        return f"{first.title}: clears {counted(cleared, 'finding')}." if cleared else f"First: {first.title}."
    settling = _settling(audit.questions)
    return f"Check first: `{settling}`." if settling else ""


def _settling(questions: Sequence[Question]) -> str:
    return next((each.commands[0].command for each in questions if each.commands and each.decides), "")
