"""What an action says: its title and labelled lines, from its data."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from kubectl_cgaudit.audit.model import Action, Audit
from kubectl_cgaudit.report.words import amount, counted, joined, named, number, percent, percents
from kubectl_cgaudit.text import these

_WHEN = {
    "on-v2": "once the node is on cgroup v2, not before",
    "new-runtime": "once the new runtime creates the containers, not before",
    "now": "now",
    "any": "at any time",
    "before-move": "before the move",
    "before-created": "before the containers are next created",
    "before-kubelet": "before the kubelet that refuses cgroup v1",
    "before-1.35": "before the nodes get kubelet 1.35 or later",
}
_ABOUT = {
    "cgroup": "cgroup version",
    "reserve": "reserve on system.slice",
    "burstable": "pods that the Burstable slice counts",
    "set_by": "origin of the root's values",
}
_TRY = "try"
"""The way that tries a change on one node and does not last, or not on new nodes."""
_MADE_TO_LAST = {
    "AKS": "not on new nodes: AKS has no setting for it, and a privileged DaemonSet would have to repeat the command",
    "Bottlerocket": "until the node restarts: a bootstrap container with mode=always would have to repeat the command; not tried",
    "Container-Optimized OS": (
        "until the node restarts: GKE has no setting for it, and a privileged DaemonSet would have to repeat the command"
    ),
}
"""How long a value lasts that is only tried, and what would make it last. Source: bottlerocket.dev, bootstrap containers; GKE,
node images."""


def told(action: Action) -> Action:
    """Return the action with its words: title, when, cost, undo and alternatives."""
    if action.title:
        return action
    detail = action.detail
    return replace(
        action,
        title=_TITLES[action.id.partition(":")[0]](action),
        when=_WHEN.get(detail.get("when", ""), ""),
        cost=_cost(action),
        undo=_undo(action),
        alternatives=tuple(_alternatives(action)),
    )


def _nodes(action: Action) -> str:
    names = action.target["nodes"]
    return str(names[0]) if len(names) == 1 else these("node", names)


def _workload(action: Action) -> str:
    return f"{action.target['namespace']}/{action.target['name']}"


def _weight(action: Action) -> str:
    return f"Give system.slice weight {action.change['systemSlice']} on {_nodes(action)}"


def _cgroup(action: Action) -> str:
    if action.detail["ways"] == ["stay"]:
        return f"Leave {_nodes(action)} on cgroup v2"
    return f"Move {_nodes(action)} to cgroup v2"


def _inspect(action: Action) -> str:
    about = action.detail["about"]
    handler = about.removeprefix("runtime:")
    what = _ABOUT.get(about, f"runtime of handler {handler}")
    return f"Find out the {what} of {_nodes(action)}"


def _changes(then: Mapping[str, int], now: Mapping[str, int]) -> str:
    pairs = (f"{name} {amount(now[name]) if now.get(name) else 'none'} -> {amount(then[name])}" for name in then)
    return ", ".join(pairs)


def _request(action: Action) -> str:
    asked, now = action.change["requests"], action.detail["before"]["requests"]
    if len(asked) == 1 and action.detail["kind"] == "raise":
        name = next(iter(asked))
        have = f" from {amount(now[name])}" if now.get(name) else ""
        return f"Raise the CPU request of {name} in {_workload(action)}{have} to {amount(asked[name])}"
    verb = "Lower" if action.detail["kind"] == "lower" else "Shift"
    return f"{verb} CPU requests in {_workload(action)}: {_changes(asked, now)}"


def _limit(action: Action) -> str:
    limits, of_pod = action.change.get("limits", {}), action.change.get("podLimit")
    parts = [f"{name} to {amount(limits[name])}" for name in limits]
    parts += [f"the pods to {amount(of_pod)}"] if of_pod else []
    return f"Set the CPU limit of {joined(parts)} in {_workload(action)}"


def _program(action: Action) -> str:
    return f"Update Java in {_workload(action)} ({joined(action.target['containers'])}) to {action.detail['fixedIn']}"


def _restart(action: Action) -> str:
    pods = counted(len(action.target["pods"]), "pod")
    return f"Restart {pods} on {_nodes(action)} that an earlier runtime created"


def _besteffort(action: Action) -> str:
    return f"Give BestEffort pods on {_nodes(action)} a CPU request"


_TITLES: Mapping[str, Callable[[Action], str]] = {
    "system-weight": _weight,
    "cgroup-v2": _cgroup,
    "inspect": _inspect,
    "request": _request,
    "limit": _limit,
    "jvm": _program,
    "restart": _restart,
    "besteffort": _besteffort,
}


def _cost(action: Action) -> str:
    cost: Mapping[str, Any] = action.detail.get("cost", {})
    parts = []
    if action.kind == "inspect":
        return f"needs {joined(action.detail['needs'])}" if action.detail.get("needs") else ""
    if "schedulableMilli" in cost:
        more = cost["schedulableMilli"]
        less = f"{amount(-more)} less" if more < 0 else f"{amount(more)} more"
        parts.append(f"{less} for each pod to schedule" if more else "no schedulable CPU")
    if cost.get("lacking"):
        have = "has" if len(cost["lacking"]) == 1 else "have"
        parts.append(f"{these('node', cost['lacking'])} {have} too little CPU left to schedule that")
    if "restart" in cost:
        parts.append("the node is drained and restarted" if cost["restart"] == "node" else "the pods restart")
    if action.id.startswith("restart:"):
        parts.append("the pods restart")
    if action.id.startswith("request:"):
        parts += list(_goes_with(action))
    return "; ".join(parts)


def _goes_with(action: Action) -> Iterator[str]:
    """Yield what an API server asks for beside the requests."""
    limits = action.change.get("limits", {})
    if limits:
        yield f"limits go up with it: {', '.join(f'{name} {amount(limits[name])}' for name in limits)}"
    for key, what in (("podRequest", "request"), ("podLimit", "limit")):
        if key in action.change:
            yield f"the pod's own {what} becomes {amount(action.change[key])}"


def _undo(action: Action) -> str:
    if "undo" in action.detail:
        return str(action.detail["undo"])
    before: Mapping[str, Mapping[str, int]] = action.detail.get("before", {})
    return "; ".join(
        f"set the {what[:-1]} of {joined(f'{name} back to {amount(milli)}' for name, milli in values.items())}"
        for what, values in before.items()
        if values
    )


def _alternatives(action: Action) -> Iterator[str]:
    for each in action.detail.get("alternatives", ()):
        yield _ALTERNATIVES[each["kind"]](each)
    for other in action.detail.get("others", ()):
        asked = other["change"].get("requests", {})
        if asked:
            more = other.get("cost", {}).get("schedulableMilli", 0)
            cost = f" ({amount(more)} more for each pod to schedule)" if more > 0 else ""
            verb = {"raise": "raise", "lower": "lower", "shift": "shift"}[other["kind"]]
            yield f"{verb} requests: {_changes(asked, other['before']['requests'])}{cost}"


def _reserve(of: Mapping[str, Any]) -> str:
    """Return the reserve that does the same as a weight, and what it leaves to schedule."""
    least, most = of["left"]
    left = f"{amount(least)} to {amount(most)}" if least < most else amount(most)
    parts = [f"leaves {left} to schedule, {amount(of['now'])} now"]
    # A kubelet admits all of its pods anew when it starts (kubernetes#105523).
    if of["asked"] > least:
        parts.append(f"pods ask for {amount(of['asked'])}: what does not fit may be refused when the kubelet starts")
    # kubelet/cm/node_container_manager_linux.go, getCgroupConfig: all of systemReserved becomes a limit.
    if of["key"] == "system-reserved":
        parts.append("memory and pids of systemReserved limit system.slice then, too")
    ratio = " to ".join(dict.fromkeys(number(each) for each in of["ratios"]))
    return (
        f"enforce {of['key']} on system.slice with {amount(of['milli'])} CPU (weight {of['weight']}, pods : system {ratio}): "
        f"{'; '.join(parts)}"
    )


def _command(of: Mapping[str, Any]) -> str:
    return f"{of['run']} (needs {of['needs']})" if of["needs"] else str(of["run"])


_ALTERNATIVES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "reserve": _reserve,
    "command": _command,
    "new-image": lambda _: "a newer OS image, where systemd or the kernel (before 5.8) is too old",
    "failCgroupV1": lambda _: "failCgroupV1: false in the kubelet's configuration, which buys time only",
    "stay-v2": lambda _: "leave the node on cgroup v2",
    "v2-first": lambda _: "move the node to cgroup v2 first",
    "rounding-kubelet": lambda _: (
        "take a kubelet that rounds the pod's quota too: 1.33.8 and later in 1.33, 1.34 and later on cgroup v2"
    ),
    "processor-count": lambda of: (
        f"-XX:ActiveProcessorCount={number(of['cpus'])}" if of["cpus"] else "set ActiveProcessorCount"
    ),
}


def fields(action: Action, audit: Audit) -> list[tuple[str, str]]:
    """Return label and text of each line below an action's title."""
    return [(label, text) for label, text in _fields(action, audit) if text]


def _fields(action: Action, audit: Audit) -> Iterator[tuple[str, str]]:
    ways = action.detail.get("ways", ())
    for place, command in enumerate(action.run):
        yield "try" if len(action.run) > 1 and place < len(ways) and ways[place] == _TRY else "run", command
    if ways and ways[0] == _TRY:
        yield "lasts", _MADE_TO_LAST.get(action.detail.get("platform", ""), "")
    yield "when", action.when
    yield "effect", effect(action)
    yield "cost", action.cost
    if action.detail.get("check"):
        yield "check", f"the pods on {named(action.detail['check'], 3)} first: another formula may split them"
    yield "undo", action.undo
    for alternative in action.alternatives:
        yield "or", alternative
    if action.waits_for:
        first = next((each.title for each in audit.actions if each.id == action.waits_for[0]), action.waits_for[0])
        yield "waits", f"until this is known: {first}"


def effect(action: Action) -> str:
    """Return what predicting again with the action gives."""
    found = action.effect
    if found is None:
        return ""
    parts = []
    if found.cleared or found.lowered or found.caused:
        counts = [
            f"clears {counted(found.cleared, 'finding')}" if found.cleared else "",
            f"lowers {found.lowered}" if found.lowered else "",
            f"causes {found.caused}" if found.caused else "",
        ]
        parts.append(joined(filter(None, counts)))
    for each in found.cpu[:2]:
        what = "pods get" if each.of == "pods" else f"{each.of} gets"
        parts.append(
            f"{what} {percent(each.acted)} of full {each.node} ({percents(each.before, each.after)} without it)"
        )
    return "; ".join(parts)


def whose(action: Action, audit: Audit) -> str:
    """Return `for 5 high (CGA201), node owners`."""
    ids = set(action.clears)
    cleared = [each for each in audit.findings if each.id in ids]
    severities = [each.severity for each in cleared]
    counts = [
        f"{severities.count(level)} {level}" for level in ("critical", "high", "medium", "low") if level in severities
    ]
    rules = ", ".join(sorted({each.rule for each in cleared}))
    clears = f"for {', '.join(counts)} ({rules}), " if counts else ""
    return f"{clears}{action.who}"
