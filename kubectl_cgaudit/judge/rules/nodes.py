"""CGA101, CGA102, CGA103: what a node is."""

from collections import defaultdict
from collections.abc import Collection, Iterator

from kubectl_cgaudit.cgroups.version import refuses_v1
from kubectl_cgaudit.collect.owners import workload
from kubectl_cgaudit.detect.runtime import named_by
from kubectl_cgaudit.detect.state import Question, Setup
from kubectl_cgaudit.judge.audit import SEVERITIES, Finding, Severity, Subject
from kubectl_cgaudit.judge.compare import Case, Comparison, PodCase
from kubectl_cgaudit.judge.condition import condition
from kubectl_cgaudit.judge.confidence import held
from kubectl_cgaudit.judge.rules.catalogue import (
    BOTH_FORMULAS,
    CONTRADICTED,
    PROBABLE_STATE,
    UNKNOWN_STATE,
    V1_NODE,
    WHO_SET,
)
from kubectl_cgaudit.judge.rules.context import Context, node_finding
from kubectl_cgaudit.judge.rules.looks import Worst, by_case
from kubectl_cgaudit.judge.scenario import WHO_SET as WHO_SET_IT

_OF_STATE = ("cgroup", "reserve", "burstable", "runtime")
_CANNOT = "a kubelet from 1.35 on does not start there"
_STAY = (
    "Leave the node on cgroup v2: v1 is on its way out (kubelet 1.35 refuses it, removal is planned for 1.38 or later)."
)
_RESTART = (
    "Containers keep the weight they were created with. Restart these pods, so that inside each pod one formula splits the "
    "CPU; `kubectl cgaudit verify` then shows no difference."
)
_NOTHING = (
    "Nothing for the CPU between pods. Do not compare cpu.weight of containers across pods; inside a pod the split follows "
    "the formula, see CGA204."
)


def v1(_context: Context, comparison: Comparison) -> Iterator[Finding]:
    """CGA101, one finding a node that is, or may be, on cgroup v1."""
    on_v1 = [case for case in comparison.cases if case.now.cgroup == "v1" or case.then.cgroup == "v1"]
    if not on_v1:
        return
    fates = {case.when: _v1_fate(comparison.node.name, case) for case in on_v1}
    severities = tuple([fates[when][0] if when in fates else None for when in comparison.whens])
    here = held(severities, comparison.leading[None], "certain")
    worst_first = sorted(fates, key=lambda when: (fates[when][0] != here.severity, SEVERITIES.index(fates[when][0])))
    least = SEVERITIES.index(here.severity)
    alike = [when for when in fates if SEVERITIES.index(fates[when][0]) <= least]
    words = tuple(by_case([(when, fates[when][part]) for when in worst_first], comparison.whens) for part in (1, 2))
    found = Worst(condition(alike, comparison.whens), 0.0, lambda: (words[0], words[1]), severities, here.severity)
    yield node_finding(V1_NODE, comparison, found)


def _v1_fate(name: str, case: Case) -> tuple[Severity, str, str]:
    """What becomes of a node that is, or goes to, cgroup v1."""
    now, then = case.now, case.then
    kubelet = now.kubelet_version or "of unknown version"
    if now.cgroup == "v2":
        refused = refuses_v1(then.kubelet_version)
        fate = (
            f"kubelet {then.kubelet_version} does not start there unless failCgroupV1 is false" if refused else _CANNOT
        )
        return ("critical" if refused else "medium"), f"{name} goes from cgroup v2 back to v1; {fate}.", _STAY
    here = f"{name} is on cgroup v1 with kubelet {kubelet}"
    allowed = refuses_v1(now.kubelet_version)
    when = "" if allowed else " before it gets a kubelet from 1.35 on"
    move = (
        f"Move the node to cgroup v2{when}: a newer OS image, the only way where systemd or the kernel (before 5.8) is too old "
        "for v2, as on Amazon Linux 2; or boot it with systemd.unified_cgroup_hierarchy=1. failCgroupV1: false in the kubelet's "
        "configuration only buys time."
    )
    if then.cgroup == "v2":
        return "low", f"{here}; this migration moves it to cgroup v2.", move
    if allowed:
        return "medium", f"{here}, which runs there only because failCgroupV1 is false.", move
    if refuses_v1(then.kubelet_version):
        fate = f"it stays on cgroup v1, and kubelet {then.kubelet_version} does not start there"
        return "critical", f"{here}; {fate}.", move
    return "medium", f"{here}; it stays on cgroup v1, and {_CANNOT}.", move


def unknown(comparison: Comparison, decided: Collection[str]) -> Iterator[Finding]:
    """Yield CGA102, for a node of which something is unknown, or probable where that decides something.

    `decided` are the questions that decide what happens to a pod, or what is found.
    """
    state, name = comparison.state, comparison.node.name
    if state.contradictions:
        seen = f"{name}: the evidence contradicts itself: {'; '.join(state.contradictions)}."
        remedy = "Look on the node, correct --states, or restart what was upgraded; `kubectl cgaudit nodes --evidence`."
        yield CONTRADICTED.finding("medium", Subject("node", name), "", seen, remedy)
    yield from _who_set(comparison)
    asked = [question for question in comparison.questions if question.about in _OF_STATE]
    open_ = [handler for question in asked for handler, confidence in question.handlers if confidence == "unknown"]
    version_open = any(question.about == "cgroup" and question.confidence == "unknown" for question in asked)
    if open_ or version_open:
        yield _unknown(comparison, open_, version_open=version_open)
    if probable := [
        each for question in asked if question.about in decided for each in _probable(comparison, question)
    ]:
        verb = "are" if len(probable) > 1 else "is"
        seen = f"{name}: probable, not checked, {verb} {'; '.join(probable)}."
        remedy = "`kubectl cgaudit nodes` has the commands that settle it, cheapest first, and the line for --states."
        yield PROBABLE_STATE.finding("low", Subject("node", name), "", seen, remedy)


def _unknown(comparison: Comparison, handlers: list[str], *, version_open: bool) -> Finding:
    state, name = comparison.state, comparison.node.name
    open_ = ["its cgroup version"] if version_open else []
    open_ += [f"the runtime of its handler {handler}" for handler in handlers]
    told = state.hints(comparison.handlers)
    hints = f" Hints: {'; '.join(told)}." if told else ""
    verb = "are" if len(open_) > 1 else "is"
    seen = f"{name}: not known {verb} {' and '.join(open_)}; predicted for each possibility.{hints}"
    remedy = _settle(comparison, handlers, version_open=version_open)
    return UNKNOWN_STATE.finding("medium", Subject("node", name), "", seen, remedy)


def _probable(comparison: Comparison, question: Question) -> Iterator[str]:
    """Yield the default, its ground and what overrides it, of each answer of a question that is probable."""
    state, first = comparison.state, comparison.cases[0].now
    abouts = [f"runtime:{handler}" for handler, confidence in question.handlers if confidence == "probable"]
    for about in abouts or ([question.about] if question.confidence == "probable" else []):
        basis = state.basis_of(about)
        if about == "cgroup":
            said = f"cgroup {first.cgroup}"
        elif about == "reserve":
            said = f"a reserve on system.slice ({_worth(first.system_slice, first)})"
        elif about == "burstable":
            counts = "does not count" if first.partitioned else "counts"
            said = f"a kubelet that {counts} pods with target.workload.openshift.io in the Burstable slice"
        else:
            handler = about.removeprefix("runtime:")
            said = f"a {first.runtime(handler).formula} runtime of handler {handler}"
        unless = f", unless overridden ({basis.override})" if basis.override else ""
        yield f"{said}: {basis.source}{unless}"


def _who_set(comparison: Comparison) -> Iterator[Finding]:
    """The values at the root of which systemd makes one thing on the way and a kubelet another."""
    first = next((each for each in comparison.cases if any(asked == WHO_SET_IT for asked, _ in each.answers)), None)
    if first is None:
        return
    ends = {each.then.top_level: each.then for each in comparison.cases if each.now is first.now}
    name, now, then = comparison.node.name, dict(first.now.top_level), first.then
    both = [dict(end) for end in ends]
    asked = [each for each in now if len({end[each] for end in both}) > 1]
    parts = [
        f"{each}: it is {_worth(now[each], first.now)} now and becomes {_worth(both[0][each], then)} if systemd did, "
        f"{both[-1][each]} if a kubelet's reserve did"
        for each in asked
    ]
    every = "all of them as systemd's and all as a kubelet's" if len(asked) > 1 else "each possibility"
    seen = f"{name}: not known is who set {'; '.join(parts)}; predicted for {every}."
    names = " ".join(asked)
    remedy = (
        f"See `systemctl cat {names}` on the node: CPUShares= or CPUWeight= in a file below /etc or /usr is systemd's; below "
        "/run, where a kubelet with the systemd driver sets it at every start, or in no file it is a kubelet's. Say it with "
        f"--states FILE: `- {{match: {{name: {name}}}, set_by: systemd}}`, or kubelet; --kubelet reads what kubelets enforce."
    )
    yield WHO_SET.finding("medium", Subject("node", name), "", seen, remedy)


def _worth(value: int, setup: Setup) -> str:
    return f"{value} shares" if setup.cgroup == "v1" else f"weight {value}"


def _settle(comparison: Comparison, handlers: list[str], *, version_open: bool) -> str:
    commands = [] if not version_open else ["`stat -fc %T /sys/fs/cgroup` (cgroup2fs is v2, tmpfs is v1)"]
    if handlers:
        commands.append("`runc --version` or `crun --version`")
    parts = ["cgroup: v1 or v2"] if version_open else []
    if handlers:
        seen = ", ".join(f"{handler}: {named_by(handler) or 'runc'} X.Y.Z" for handler in handlers)
        parts.append(f"runtimes: {{{seen}}}")
    rule = f"- {{match: {{name: {comparison.node.name}}}, {', '.join(parts)}}}"
    return (
        f"Look on the node with {' and '.join(commands)}, and say it with --states FILE, with what you saw: `{rule}`."
    )


def both_formulas(context: Context, comparison: Comparison) -> Iterator[Finding]:
    """CGA103, one finding a node whose running containers carry both formulas."""
    name = Subject("node", comparison.node.name)
    if any(each.formula != "neither" for each in comparison.state.leftovers):
        yield BOTH_FORMULAS.finding("medium", name, "", _left_over(comparison), _RESTART)
    elif len({id(case.now) for case in comparison.cases}) == 1 and comparison.cases[0].now.cgroup == "v2":
        # What is open of the target only leaves no doubt of now.
        handlers = _handlers(comparison)
        if handlers:
            seen = f"{comparison.node.name}: {handlers}.{_example(context, comparison)}"
            yield BOTH_FORMULAS.finding("low", name, "", seen, _NOTHING)


def _handlers(comparison: Comparison) -> str:
    """What the handlers in use run, if among them are both formulas."""
    case = comparison.cases[0]
    formulas = defaultdict(list)
    for handler in comparison.handlers:
        formulas[case.now.runtime(handler).formula].append(f"{handler}: {case.now.runtime(handler)}")
    both = {"linear", "quadratic"} <= set(formulas)
    return ", ".join(formulas["linear"] + formulas["quadratic"]) if both else ""


def _left_over(comparison: Comparison) -> str:
    """The containers that were created before their runtime was upgraded, all named."""
    left = [each for each in comparison.state.leftovers if each.formula != "neither"]
    names = ", ".join(
        f"{each.namespace}/{each.pod} {each.container} (weight {each.weight}, {each.formula})" for each in left
    )
    known = {each.handler: comparison.state.runtime(each.handler) for each in left}
    now = ", ".join(f"{handler} writes {runtime.formula}" for handler, runtime in sorted(known.items()) if runtime)
    many = f"{len(left)} running containers carry" if len(left) > 1 else "1 running container carries"
    other = (
        "another formula than their handler writes now"
        if now
        else "weights from before, it seems, their runtime was upgraded"
    )
    return f"{comparison.node.name}: {many} {other}{f' ({now})' if now else ''}: {names}."


def _example(context: Context, comparison: Comparison) -> str:
    """Two pods with equal requests whose containers differ in weight while the pods do not."""
    seen: dict[tuple[object, ...], PodCase] = {}
    for pod, cases in comparison.pods():
        tree = cases[0].before
        # A sandbox has no weight to compare with.
        shape = tuple((c.name, c.request_milli, c.limit_milli, own.weight is None) for c, own in tree.containers)
        shape_key = (pod.qos, tree.cgroup.weight, shape)
        other = seen.setdefault(shape_key, cases[0])
        for (container, mine), (_, theirs) in zip(tree.containers, other.before.containers, strict=True):
            if mine.weight != theirs.weight and container.request_milli:
                names = [f"{of.namespace}/{workload(of, context.cluster).name}" for of in (pod, other.before.pod)]
                return (
                    f" The pods of {names[0]} and {names[1]} ask for the same: "
                    f"the container {container.name} ({container.request_milli}m) has weight {mine.weight} in the one and "
                    f"{theirs.weight} in the other, but both pods have weight {tree.cgroup.weight}, "
                    "so neither pod gets more CPU than the other."
                )
    return ""
