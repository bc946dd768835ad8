"""What a finding says, in one title and one message, from its data."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from kubectl_cgaudit.audit.condition import condition
from kubectl_cgaudit.audit.model import Audit, Finding
from kubectl_cgaudit.cgroups.quota import as_limit
from kubectl_cgaudit.detect.state import PERIOD_US
from kubectl_cgaudit.report.actions import told as told_action
from kubectl_cgaudit.report.rules import name_of
from kubectl_cgaudit.report.verdict import verdict
from kubectl_cgaudit.report.words import amount, change, counted, joined, named, number, on, percent, percents, value

_NAMED = 3


def described(audit: Audit) -> Audit:
    """Return the audit with the words of every finding and action, and the sentence of the verdict."""
    told = replace(
        audit,
        findings=tuple(map(_described, audit.findings)),
        known=tuple(map(_described, audit.known)),
        fixed=tuple(map(_described, audit.fixed)),
        excepted=tuple(replace(each, finding=_described(each.finding)) for each in audit.excepted),
        actions=tuple(map(told_action, audit.actions)),
    )
    return replace(told, verdict=replace(told.verdict, sentence=verdict(told)))


def _described(finding: Finding) -> Finding:
    return finding if finding.message else replace(finding, title=name_of(finding.rule), message=message(finding))


def message(finding: Finding) -> str:
    """Return who and where, then how much, then under which condition; of an unknown rule nothing."""
    say = _MESSAGES.get(finding.rule)
    if say is None:
        return ""
    return " ".join(
        filter(None, (say(finding), _how_many(finding), _condition(finding), _today(finding), _graver(finding)))
    )


def _place(finding: Finding) -> str:
    where = finding.where
    return f"{finding.subject.namespace}/{where.pod} on {where.node}"


def _container(finding: Finding) -> str:
    return f"Container {finding.where.container} of {_place(finding)}"


def _how_many(finding: Finding) -> str:
    where = finding.where
    if where.pods < 2:
        return ""
    return f"{where.pods_hit} of its {where.pods} pods {'is' if where.pods_hit == 1 else 'are'} affected, {on(where.nodes)}."


def _condition(finding: Finding) -> str:
    """What it depends on: the cases in which it holds, or is so severe, where these are not all."""
    every = finding.detail.get("conditions", []) if finding.cases else []
    words = condition([case.when for case in finding.cases], every) if every else ""
    taken = " and ".join(finding.detail.get("takenForGranted", ()))
    if taken:
        words = f"{words} and {taken}" if words.startswith("if ") else f"{words} if {taken}".strip()
    if words:
        return f"This holds {words}."
    as_severe = [case.when for case in finding.cases if case.severity == finding.severity]
    words = condition(as_severe, every) if every and finding.graver is None else ""
    return f"It is {finding.severity} {words}." if words else ""


def _today(finding: Finding) -> str:
    return "It is so today, whether or not the node moves." if finding.today and finding.rule in _TODAY else ""


def _graver(finding: Finding) -> str:
    if finding.graver is None:
        return ""
    when = f" if {finding.graver.when}" if finding.graver.when else " elsewhere"
    return f"It is {finding.graver.severity}{when}."


_TODAY = {"CGA202", "CGA205", "CGA206", "CGA301", "CGA302"}


def _incomplete(finding: Finding) -> str:
    return f"{finding.subject.name}: {finding.detail.get('why', '')}. {finding.detail.get('remedy', '')}."


def _exception(finding: Finding) -> str:
    detail = finding.detail
    first = f"{detail.get('where')} ({detail.get('reason')})"
    if detail.get("state") == "expired":
        again = detail.get("countsAgain", 0)
        counts = (
            f"{counted(again, 'finding')} {'counts' if again == 1 else 'count'} again"
            if again
            else "no finding counts again"
        )
        return f"{first} held until {detail.get('expires')}: {counts}. Agree on a new day, or remove it."
    unread = "" if detail.get("complete", True) else " The audit is incomplete: it may speak of what could not be read."
    return f"{first} matches no finding. Check its rule and its match, or remove it.{unread}"


def _v1(finding: Finding) -> str:
    detail, node = finding.detail, finding.subject.name
    kubelet = detail.get("kubeletAfter") or "unknown"
    if detail.get("cgroupBefore") == "v2":
        fate = (
            f"kubelet {kubelet} does not start there"
            if not detail.get("comesBack", True)
            else "kubelet 1.35+ will not start there"
        )
        return f"{node} goes from cgroup v2 back to v1, and {fate} unless failCgroupV1 is false."
    if detail.get("cgroupAfter") == "v2":
        return f"{node} is on cgroup v1 with kubelet {detail.get('kubeletBefore') or 'unknown'}; this move takes it to cgroup v2."
    if not detail.get("comesBack", True):
        return f"{node} stays on cgroup v1, and kubelet {kubelet} does not start there: the node does not come back."
    return f"{node} stays on cgroup v1, where kubelet 1.35+ does not start unless failCgroupV1 is false."


def _unsettled(finding: Finding) -> str:
    node, detail = finding.subject.name, finding.detail
    parts = []
    if detail.get("overridden"):
        first = detail["overridden"][0]
        return (
            f"{node}: the baseline took {_about(first['about'])} to be {first['was']} ({first['wasFrom']}), and it is "
            f"{first['now']} ({first['nowFrom']})."
        )
    if detail.get("contradictions"):
        parts.append(f"{node}: the evidence contradicts itself: {'; '.join(detail['contradictions'])}.")
    if detail.get("unknown"):
        parts.append(f"{node}: unknown: {joined(map(_about, detail['unknown']))}. Every possibility is predicted.")
    if detail.get("whoSet"):
        told = joined(
            f"{each['name']} ({value(each['before'], each['unit'])} now, {' or '.join(map(str, each['after']))} after)"
            for each in detail["whoSet"]
        )
        parts.append(f"{node}: unknown: whether systemd or a kubelet set {told}.")
    if detail.get("probable"):
        told = "; ".join(_probable(each) for each in detail["probable"])
        parts.append(f"{node}: probable, not checked: {told}.")
    if detail.get("hints"):
        parts.append(f"Hints: {'; '.join(detail['hints'])}.")
    return " ".join(parts)


def _about(about: str) -> str:
    if about.startswith("runtime:"):
        return f"the runtime of handler {about.removeprefix('runtime:')}"
    return {
        "cgroup": "the cgroup version",
        "reserve": "a reserve on system.slice",
        "burstable": "what the Burstable slice counts",
    }.get(about, about)


def _probable(each: Mapping[str, Any]) -> str:
    unless = f", unless {each['override']}" if each.get("override") else ""
    return f"{_about(each['about'])} is {each['answer']} ({each['source']}{unless})"


def _both_formulas(finding: Finding) -> str:
    node, stale = finding.subject.name, finding.detail.get("stale", [])
    if stale:
        told = named((f"{each['namespace']}/{each['pod']} {each['container']}" for each in stale), _NAMED)
        have = "container has" if len(stale) == 1 else "containers have"
        return f"{node}: {len(stale)} running {have} the weight of an earlier runtime: {told}. Restart these pods."
    handlers = ", ".join(f"{name}: {runtime}" for name, runtime in finding.detail.get("handlers", {}).items())
    return f"{node} runs both formulas ({handlers}). Between pods nothing differs."


def _loses(finding: Finding) -> str:
    against, share = finding.measures
    return (
        f"{_place(finding)} falls from {percents(share.before or 0, share.after or 0).replace(' -> ', ' to ')} of a full node: "
        f"{number(against.before or 0)} times the CPU of system services before, {number(against.after or 0)} times after "
        f"({change((against.after or 0) / against.before - 1) if against.before else '?'})."
        if percent(share.before) != percent(share.after)
        else f"{_place(finding)} keeps {percent(share.after)} of a full node, but {number(against.before or 0)} times the CPU of "
        f"system services becomes {number(against.after or 0)} times."
    )


def _outweighed(finding: Finding) -> str:
    ratio, share = finding.measures
    return (
        f"On {finding.subject.name} pods have {number(ratio.after or 0)} times the weight of system.slice after the move "
        f"({number(ratio.before or 0)} times before). When the node is full, system services get {percent(share.after)} of its "
        "CPU."
    )


def _crosses(finding: Finding) -> str:
    was, will = finding.measures[0].before, finding.measures[0].after
    return f"{_container(finding)}: its value goes from {number(was or 0)} to {number(will or 0)}, across the default."


def _moves(finding: Finding) -> str:
    part = finding.measures[0]
    parts = percents(part.before or 0, part.after or 0).replace(" -> ", " to ")
    return f"{_container(finding)} falls from {parts} of its pod's CPU."


def _collides(finding: Finding) -> str:
    whose = _container(finding) if finding.detail.get("about") == "container" else f"Pod {_place(finding)}"
    return f"{whose} asks for {amount(finding.measures[0].after or 0)} and gets weight 1, the least there is."


def _indivisible(finding: Finding) -> str:
    return (
        f"{_container(finding)} has weight {number(finding.measures[1].after or 0)}: too small to divide among child cgroups, "
        "if it makes any."
    )


def _besteffort(finding: Finding) -> str:
    share = finding.measures[0]
    pods = counted(finding.detail.get("pods", 0), "BestEffort pod")
    return (
        f"{pods} on {finding.subject.name} can take {percents(share.before or 0, share.after or 0)} of the full node."
    )


def _may_not_start(finding: Finding) -> str:
    limit, quota = finding.measures
    return (
        f"{_container(finding)} may not start, and stays broken until its pod is recreated: its limit of "
        f"{amount(limit.after or 0)} is written as {number(quota.before or 0)} us, more than the "
        f"{number(quota.after or 0)} us of its pod."
    )


def _limit(finding: Finding) -> str:
    limit, quota = finding.measures
    acts = as_limit(int(quota.after or 0), finding.detail.get("periodUs", PERIOD_US))
    return f"{_container(finding)}: a limit of {amount(limit.after or 0)} acts as {acts}."


def _misreads(finding: Finding) -> str:
    cpus, weight = finding.measures
    program = finding.detail.get("program")
    if program == "jvm":
        if cpus.after is None:
            return f"{_container(finding)} runs a JVM that does not know cgroup v2: it sees all CPUs and memory of the node."
        counts = f"{counted(round(cpus.before or 0), 'CPU')} before and {counted(round(cpus.after), 'CPU')} after"
        return f"{_container(finding)} runs a JVM that counts {counts}."
    if program == "cadvisor":
        return f"{_container(finding)} is cAdvisor: container_spec_cpu_shares changes although no CPU share does."
    was, will = (number(each or 0) for each in (weight.before, weight.after))
    return f"{_container(finding)} sees the host's cgroups: it may read {was} before and {will} after."


_MESSAGES: Mapping[str, Callable[[Finding], str]] = {
    "CGA001": _incomplete,
    "CGA002": _exception,
    "CGA101": _v1,
    "CGA102": _unsettled,
    "CGA103": _both_formulas,
    "CGA201": _loses,
    "CGA202": _outweighed,
    "CGA203": _crosses,
    "CGA204": _moves,
    "CGA205": _collides,
    "CGA206": _indivisible,
    "CGA207": _besteffort,
    "CGA301": _may_not_start,
    "CGA302": _limit,
    "CGA401": _misreads,
}
