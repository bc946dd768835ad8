"""What owners of workloads can do: other requests, limits that the kernel takes, newer programs. CPU in thousandths."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import polars as pl
from msgspec import Struct
from polars import col

from kubectl_cgaudit.actions.candidate import Candidate, action
from kubectl_cgaudit.actions.change import Change, WorkloadChange, changed_pod
from kubectl_cgaudit.actions.rebalance import Balance, Measure, Requests, request_for, restored, spread, value
from kubectl_cgaudit.actions.whatif import Place, copies, places
from kubectl_cgaudit.audit.cases import NodeCases
from kubectl_cgaudit.audit.judge import RULES
from kubectl_cgaudit.audit.model import Finding
from kubectl_cgaudit.audit.rules.jvm import old_jvm
from kubectl_cgaudit.audit.run import Run
from kubectl_cgaudit.cgroups.pods import container_limit, pod_level_resources, pod_request
from kubectl_cgaudit.cgroups.quota import SMALLEST_QUOTA_US
from kubectl_cgaudit.collect.model import COMPETING, Container, Pod
from kubectl_cgaudit.detect.state import Setup

_STEP = 10
_MOST_TRIED = 100
"""So many findings, the worst, may have a change tried for them: each predicts the nodes of its workload again."""
_UNCHANGED = Change()


class _Told(NamedTuple):
    """The place of a finding that is told: its pod, and the node in that case."""

    finding: Finding
    row: int
    node: int
    case: int


def candidates(run: Run) -> Iterator[Candidate]:
    """Yield what may help in workloads, the worst finding first; the first of those with one id is the best known."""
    told = list(islice(_told(run), _MOST_TRIED))
    yield from _splits(run, [each for each in told if each.finding.rule == "CGA204"])
    limited: set[str] = set()
    for each in told:
        if each.finding.rule in ("CGA301", "CGA302") and each.finding.subject.key not in limited:
            limited.add(each.finding.subject.key)
            yield from _limits(run, each)
        elif each.finding.rule == "CGA401":
            yield from _programs(run, each)


def tried(run: Run) -> tuple[int, int]:
    """Return for how many findings a change is tried, and how many there are."""
    every = sum(map(_may_help, run.audit.findings))
    return min(every, _MOST_TRIED), every


def _may_help(finding: Finding) -> bool:
    # A quota that is no multiple of 10m now is none after the move: nothing happens.
    worth = finding.severity != "low" or (finding.rule == "CGA302" and not finding.today)
    return worth and finding.rule in ("CGA204", "CGA301", "CGA302", "CGA401")


def _told(run: Run) -> Iterator[_Told]:
    """Yield the findings that a workload's owner can do something about."""
    rules = list(RULES)
    rows = {}
    for row in run.judged.findings.select("rule", "workload", "row", "node", "case").iter_rows():
        namespace, owner = run.tables.workloads[row[1]]
        rows[f"{rules[row[0]]}:{namespace}/{owner.kind}/{owner.name}"] = row[2:]
    for finding in run.audit.findings:
        if _may_help(finding):
            yield _Told(finding, *rows[finding.id])


def _workload(finding: Finding, **fields: Any) -> WorkloadChange:
    subject = finding.subject
    return WorkloadChange(subject.namespace or "", subject.workload_kind or "", subject.name, **fields)


def _target(finding: Finding, containers: Sequence[str]) -> dict[str, Any]:
    subject = finding.subject
    return {
        "namespace": subject.namespace,
        "kind": subject.workload_kind,
        "name": subject.name,
        "containers": list(containers),
    }


class _Part(Struct, frozen=True):
    """A container before and after, with the change of its fraction of its pod's CPU."""

    container: Container
    before: int
    after: int
    was: float
    change: float


def _splits(run: Run, told: Sequence[_Told]) -> Iterator[Candidate]:
    """Yield requests that give a container its part of its pod's CPU back (CGA204)."""
    wanted = sorted({(each.node, each.case) for each in told})
    if not wanted:
        return
    built = copies(run.tables, [(node, _UNCHANGED) for node, _ in wanted])
    seen = dict(zip(wanted, places(built, [case for _, case in wanted]), strict=True))
    nodes, room = {node.node.name: node for node in run.tables.nodes}, _room(run, told)
    starts = run.tables.inputs.nodes["pods"].cum_sum() - run.tables.inputs.nodes["pods"]
    for each in told:
        place = seen[each.node, each.case]
        parts = _parts(run, each, place, each.row - int(starts[each.node]))
        if parts:
            yield from _split(run, each, parts, nodes, room)


def _parts(run: Run, told: _Told, place: Place, offset: int) -> list[_Part]:
    """Return the containers of the pod that is told which compete for its CPU."""
    pod = run.tables.pods[told.row]
    own = int(place.pods["index"][offset])
    rows = place.containers.filter((col.pod == own) & col.change.is_not_null())
    fields = rows.select("place", "before_value", "after_value", "before_in_pod", "change")
    return [_Part(pod.containers[number], *values) for number, *values in fields.iter_rows()]


def _split(
    run: Run, told: _Told, parts: Sequence[_Part], nodes: Mapping[str, NodeCases], room: "_Room"
) -> Iterator[Candidate]:
    finding, pod = told.finding, run.tables.pods[told.row]
    then = run.tables.nodes[told.node].cases[told.case].after
    handler = run.tables.handlers[run.tables.inputs.pods["handler"][told.row]]
    losing = next((part for part in parts if part.container.name == finding.where.container), None)
    if losing is None or not losing.before:
        return
    measure: Measure = "shares"
    if then.cgroup == "v2":
        measure = "linear" if then.runtime(handler).formula == "linear" else "quadratic"
    # What annotations decide, no request does.
    if any(value(_asks(part.container, pod, then), measure) != part.after for part in parts):
        return
    before, pods_now = run.tables.nodes[told.node].cases[told.case].before, pod_request(pod, then.kubelet_version)
    when = (
        "on-v2" if before.cgroup != then.cgroup else "new-runtime" if _other_formula(before, then, handler) else "now"
    )
    there = (nodes[name] for name in finding.where.nodes)
    setups = {_formulas(node, handler) for node in there if handler in node.handlers}
    counts = room.pods[told.row]
    others = sorted({run.tables.nodes[node].node.name for node in counts} - set(finding.where.nodes))
    for kind, requests in _plans(pod, then, losing, parts, measure, run.context.thresholds.pod_move):
        change = fitting(pod, _workload(finding, requests=tuple(sorted(requests.items()))))
        more = pod_request(changed_pod(pod, change), then.kubelet_version) - pods_now
        old = {each.name: _asks(each, pod, then) for each in pod.containers if each.name in requests}
        yield Candidate(
            action(
                "workload",
                f"request:{finding.subject.key}",
                _target(finding, sorted(requests)),
                as_data(change),
                (),
                {
                    "kind": kind,
                    "when": when,
                    "before": {"requests": old},
                    "container": losing.container.name,
                    "cost": {
                        "schedulableMilli": more,
                        "podRequestMilli": pods_now,
                        "pods": finding.where.pods,
                        "lacking": _lacking(run, room, counts, more),
                    },
                    "check": others if len(setups) == 1 else sorted({*others, *finding.where.nodes}),
                },
            ),
            Change(workloads=(change,)),
            told.node,
            told.case,
            told.row,
        )


class _Room(NamedTuple):
    """What workloads' pods ask more CPU from."""

    pods: Mapping[int, Mapping[int, int]]
    """By the row of a pod: how many pods of its workload each node has."""
    left: Mapping[str, int]
    """What each node has left to schedule, in thousandths."""


def _room(run: Run, told: Sequence[_Told]) -> _Room:
    of_pods = run.tables.inputs.pods
    rows = pl.Series("told", [each.row for each in told], dtype=pl.Int32)
    asked = pl.DataFrame({"told": rows, "workload": of_pods["workload"].gather(rows)}).unique()
    counts: dict[int, dict[int, int]] = {}
    for row, node, count in of_pods.join(asked, on="workload").group_by("told", "node").len().iter_rows():
        counts.setdefault(row, {})[node] = count
    return _Room(counts, {each.name: each.allocatable_milli - each.requested_milli for each in run.audit.nodes})


def _lacking(run: Run, room: _Room, counts: Mapping[int, int], more: int) -> list[str]:
    """Return the nodes of a workload's pods that have too little CPU left to schedule so much more for each of its pods."""
    names = ((run.tables.nodes[node].node.name, count) for node, count in counts.items())
    return sorted(name for name, count in names if more > 0 and more * count > room.left[name])


def _formulas(node: Any, handler: str) -> tuple[tuple[str, str, str], ...]:
    return tuple((case.before.cgroup, case.after.cgroup, case.after.runtime(handler).formula) for case in node.cases)


def _other_formula(before: Setup, then: Setup, handler: str) -> bool:
    return before.runtime(handler).formula != then.runtime(handler).formula


def _plans(
    pod: Pod, then: Setup, losing: _Part, parts: Sequence[_Part], measure: Measure, most_lost: float
) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield requests that may restore the split, the cheapest first: what they are, and by container those that change."""
    gainers = [part for part in parts if part.change > 0]
    rest = [part for part in parts if part is not losing and part.change <= 0]

    def balanced(changing: Sequence[_Part], staying: Sequence[_Part]) -> Balance:
        return Balance(
            loser=_asks(losing.container, pod, then),
            gainers=tuple(_asks(part.container, pod, then) for part in changing),
            ratios=tuple(part.before / losing.before for part in changing),
            measure=measure,
            most_lost=most_lost,
            rest=tuple(part.after for part in staying),
            rest_ratios=tuple(part.before / losing.before for part in staying),
        )

    def named(changing: Sequence[_Part], requests: Requests) -> dict[str, int]:
        mine, theirs = requests
        pairs = zip((losing, *changing), (mine, *theirs), strict=True)
        asked = {part.container: milli for part, milli in pairs}
        return {each.name: milli for each, milli in asked.items() if _asks(each, pod, then) != milli}

    balance = balanced(gainers, rest)
    if any(_of_pods_limit(part.container, pod, then) for part in (losing, *gainers)):
        lowered = balance.loser, balance.lowered(balance.loser)
        if balance.fair(lowered):
            yield "lower", named(gainers, lowered)
        return
    shifted, raised = restored(balance)
    up = {losing.container.name: raised} if raised > balance.loser else {}
    now = pod_request(pod, then.kubelet_version)
    free = up and pod_request(changed_pod(pod, _raised(up)), then.kubelet_version) == now
    if free:
        yield "raise", up
    if any(map(balance.too_much, balance.lacking(shifted))):
        asking = [part for part in (*gainers, *rest) if part.container.request_milli or part.container.limit_milli]
        # What asks for nothing has nothing to give, and keeps what it has.
        silent = [part for part in (*gainers, *rest) if part not in asking]
        if found := spread(balanced(asking, silent)):
            yield "shift", named(asking, found)
    if shifted[0] > balance.loser:
        yield "shift", named(gainers, shifted)
    if up and not free:
        yield "raise", up
    # Less for the others where they are short with all of it: nobody lacks more than half of what is a finding.
    least = losing.was * (1 - most_lost / 2)
    beside = sum(part.after for part in parts if part is not losing)
    near = request_for(math.ceil(beside * least / (1 - least)), measure) if least < 1 else 0
    if balance.loser < near < raised:
        yield "raise", {losing.container.name: near}


def _raised(requests: Mapping[str, int]) -> WorkloadChange:
    return WorkloadChange("", "", "", requests=tuple(requests.items()))


def fitting(pod: Pod, change: WorkloadChange) -> WorkloadChange:
    """Return the change with what an API server asks for beside it.

    It takes no limit below its request, and no request of a pod below those of its containers together. A pod stays Guaranteed
    only with limits that equal its requests.
    """
    requests, limits = dict(change.requests), dict(change.limits)
    guaranteed = pod.qos == "Guaranteed" and not pod.limit_milli
    for each in pod.containers:
        asked, limit = requests.get(each.name), limits.get(each.name)
        if guaranteed and asked is not None:
            limits[each.name] = asked
        elif guaranteed and limit is not None:
            requests[each.name] = limit
        elif asked is not None and each.limit_milli and asked > limits.get(each.name, each.limit_milli):
            limits[each.name] = -(-asked // _STEP) * _STEP
    made = WorkloadChange(
        change.namespace,
        change.kind,
        change.name,
        tuple(sorted(requests.items())),
        tuple(sorted(limits.items())),
        change.pod_request,
        change.pod_limit,
        change.updated,
    )
    return _of_pod(pod, made)


def _of_pod(pod: Pod, change: WorkloadChange) -> WorkloadChange:
    """Return the change with a larger request or limit of the pod itself, where its containers ask for more than that."""
    then = changed_pod(pod, change)
    together = sum(each.request_milli or 0 for each in then.containers if each.role in COMPETING)
    largest = max((each.limit_milli or 0 for each in then.containers), default=0)
    own, limit = change.pod_request, change.pod_limit
    if pod.request_milli is not None and own is None and together > pod.request_milli:
        own = together
    if pod.limit_milli and limit is None and max(together, largest) > pod.limit_milli:
        limit = max(together, largest)
    if pod.qos == "Guaranteed" and pod.limit_milli and (own or limit):
        own = limit = max(own or 0, limit or 0)
    return WorkloadChange(
        change.namespace, change.kind, change.name, change.requests, change.limits, own, limit, change.updated
    )


def as_data(change: WorkloadChange) -> dict[str, Any]:
    """Return what changes, as an action tells it."""
    said: dict[str, Any] = {"requests": dict(change.requests), "limits": dict(change.limits)}
    said |= {"podRequest": change.pod_request, "podLimit": change.pod_limit, "updated": list(change.updated)}
    return {name: value for name, value in said.items() if value}


def _of_pods_limit(container: Container, pod: Pod, setup: Setup) -> bool:
    """Whether a container has its shares from the limit of its pod."""
    own = container.request_milli is not None or container.limit_milli
    return not own and container_limit(container, pod, setup.kubelet_version) is not None


def _asks(container: Container, pod: Pod, setup: Setup) -> int:
    """Return its request, for which a limit alone stands, or that of its pod."""
    if container.request_milli is not None:
        return container.request_milli
    return container_limit(container, pod, setup.kubelet_version) or 0


def _limits(run: Run, told: _Told) -> Iterator[Candidate]:
    """Yield limits that are written as they are: multiples of 10m (CGA301, CGA302)."""
    finding, pod = told.finding, run.tables.pods[told.row]
    case = run.tables.nodes[told.node].cases[told.case]
    then = case.after
    limits = {
        each.name: step
        for each in pod.containers
        if each.limit_milli and (step := _stepped(each.limit_milli, then.period_us)) != each.limit_milli
    }
    of_pod = None
    if pod.limit_milli and pod_level_resources(then.kubelet_version):
        step = _stepped(pod.limit_milli, then.period_us)
        of_pod = step if step != pod.limit_milli else None
    if not limits and of_pod is None:
        return
    own = of_pod if of_pod and pod.qos == "Guaranteed" else None
    change = fitting(pod, _workload(finding, limits=tuple(sorted(limits.items())), pod_limit=of_pod, pod_request=own))
    version = then.kubelet_version
    more = pod_request(changed_pod(pod, change), version) - pod_request(pod, version)
    already = finding.today
    names = sorted(limits)
    yield Candidate(
        action(
            "workload",
            f"limit:{finding.subject.key}",
            _target(finding, names),
            as_data(change),
            (),
            {
                "when": "before-created" if already else "before-move",
                "before": {"limits": {each.name: each.limit_milli for each in pod.containers if each.name in limits}},
                "cost": {"schedulableMilli": more, "pods": finding.where.pods},
                "alternatives": [
                    {"kind": "stay-v2" if case.before.cgroup == "v2" else "v2-first"},
                    {"kind": "rounding-kubelet"},
                ]
                if finding.rule == "CGA301"
                else [],
            },
        ),
        Change(workloads=(change,)),
    )


def _stepped(milli: int, period_us: int) -> int:
    """Return the next limit that is stored as it is."""
    # The smallest quota may be that of more than a step.
    least = -(-SMALLEST_QUOTA_US * 1000 // period_us)
    steps: int = -(-max(milli, least) // _STEP)
    return steps * _STEP


def _programs(run: Run, told: _Told) -> Iterator[Candidate]:
    """Yield newer programs, of those that misread cpu.weight (CGA401)."""
    finding, pod = told.finding, run.tables.pods[told.row]
    old = [each for each in pod.containers if old_jvm(each.image)]
    if not old or finding.detail.get("program") != "jvm":
        return
    names = tuple(each.name for each in old)
    counted = [finding.measures[0].before]
    fault = old_jvm(old[0].image)
    yield Candidate(
        action(
            "workload",
            f"jvm:{finding.subject.key}",
            _target(finding, names),
            {"updated": list(names)},
            (),
            {
                "when": "before-move",
                "java": fault[0] if fault else "",
                "fault": fault[1] if fault else "",
                "fixedIn": finding.detail["fixedIn"],
                "images": sorted({each.image for each in old}),
                "cost": {"schedulableMilli": 0, "restart": "pods"},
                "alternatives": [{"kind": "processor-count", "cpus": counted[0]}]
                if fault and fault[1] != "blind"
                else [],
            },
        ),
        Change(workloads=(_workload(finding, updated=names),)),
    )
