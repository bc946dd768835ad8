"""What the HTML and the Markdown report both show, as rows of plain text that are not escaped yet."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

import msgspec

from kubectl_cgaudit.audit.model import (
    CONFIDENCES,
    SEVERITIES,
    Action,
    Audit,
    Change,
    Coverage,
    Effect,
    Finding,
    NodeCase,
    NodeMoment,
    NodeRecord,
    Question,
    Severity,
    Subject,
    Workload,
)
from kubectl_cgaudit.report import rules
from kubectl_cgaudit.report.words import (
    EFFECTS,
    SIGNS,
    asked,
    capital,
    change,
    counted,
    named,
    number,
    percent,
    percents,
)
from kubectl_cgaudit.report.words import arrow as arrow

AFFECTED: tuple[Effect, ...] = ("stops", "may-stop", "loses", "unknown")
"""Effects for which somebody must decide something."""
METHOD = (
    "A weight counts only against its siblings in the cgroup tree. When everything wants CPU at once, a cgroup's share of the "
    "node is a product from the root down: at each level its weight over the sum of its siblings' weights (shares on cgroup "
    "v1). Where a sibling is idle, the others divide its part. So a share says who wins on a full node, not what anyone uses "
    "today."
)
FORMULAS = (
    (
        "Linear",
        "weight = 1 + (shares - 2) * 9999 // 262142",
        "the kubelet in every version so far, for pods and everything above them; runc up to 1.3.1 and crun up to 1.22 for "
        "containers",
    ),
    (
        "Quadratic",
        "weight = ceil(10 ** ((L*L + 125*L) / 612 - 7/34)), L = log2(shares)",
        "runc 1.3.2+ and crun 1.23+, for containers only",
    ),
)
WHY_NOMINAL = (
    "A container that requests 1 CPU shows 39 in cpu.weight under the linear formula and 100 under the quadratic one. That alone "
    "gives it no more CPU: it competes only with the containers of its own pod, and the pod's weight is the kubelet's. A new "
    "runtime moves CPU only between the containers of one pod. The move from cgroup v1 to v2 changes what all pods get against "
    "system services."
)
CONFIDENCE_WORDS = (
    "certain: measured on the node. stated: from the states file. likely: a verified rule about this platform and release. "
    "probable: the platform's default, which may have been overridden; the other case is predicted too. possible: holds only in "
    "a less plausible case. unknown: nothing says it; every answer is predicted."
)
THRESHOLDS: dict[str, tuple[str, Callable[[float], str]]] = {
    "system-loss": ("smallest loss against system services that counts as losing", percent),
    "system-gain": ("smallest gain against system services that counts as gaining", percent),
    "pod-move": ("smallest loss of a container's part of its pod that is reported", percent),
    "outweighed": ("smallest ratio of pods to system.slice at which pods outweigh it", number),
    "outweighed-reserve": ("the same where an enforced reserve lowers system.slice below its default", number),
    "divisible": ("smallest weight that can be divided among child cgroups", number),
}
_KNOWN = {
    "cgroup": "cgroup version",
    "driver": "cgroup driver",
    "kubelet": "kubelet's formula",
    "system_slice": "system.slice",
    "root": "other cgroups at the root",
    "reserve": "enforced reserve",
    "burstable": "weight of Burstable pods",
    "set_by": "who set a value at the root",
}


def severity_counts(amounts: Mapping[Severity, int] | Mapping[str, int]) -> str:
    """Return `5 high, 2 medium`, without what there is none of."""
    return ", ".join(f"{amounts[severity]} {severity}" for severity in reversed(SEVERITIES) if amounts.get(severity))


def cluster_name(audit: Audit) -> str:
    """Return what the cluster is called: its name or context, else what was read."""
    return audit.cluster.get("name") or audit.cluster.get("context") or audit.coverage.source


def headline(audit: Audit) -> tuple[str, str]:
    """Return the verdict's first sentence, and the rest of it."""
    sentence = audit.verdict.sentence
    begin, dot, rest = sentence.partition(". ")
    return (begin, rest) if dot else (sentence.removesuffix("."), "")


def read(audit: Audit) -> str:
    """Return `3 nodes, 27 pods, 15 workloads, all read`."""
    coverage = audit.coverage
    amounts = (
        counted(coverage.nodes_audited, "node"),
        counted(coverage.pods_audited, "pod"),
        counted(len(audit.workloads), "workload"),
        "all read" if coverage.complete else f"INCOMPLETE: {counted(len(coverage.gaps), 'gap')}",
    )
    return ", ".join(amounts)


def facts(audit: Audit) -> list[tuple[str, str]]:
    """Return what a change ticket asks first: name and value, without what is not known."""
    coverage, named_ = audit.coverage, audit.cluster
    found = [
        ("Cluster", cluster_name(audit)),
        ("Context", named_.get("context", "") if named_.get("name") else ""),
        ("Cluster id", named_.get("uid", "")),
        ("Target", f"{audit.target.description} ({asked(audit.target)})"),
        ("Date", audit.time or ""),
        ("Nodes audited", f"{coverage.nodes_audited} of {coverage.nodes_read} read{_but(_other_nodes(coverage))}"),
        ("Pods audited", f"{coverage.pods_audited} of {coverage.pods_read} read{_but(_other_pods(audit))}"),
        ("Containers audited", str(audit.container_count)),
        ("Findings", (severity_counts(audit.verdict.findings) or "none") + _apart_counts(audit)),
        (
            "Coverage",
            "complete" if coverage.complete else f"INCOMPLETE: {counted(len(coverage.gaps), 'gap')}",
        ),
        ("Read from", coverage.source),
        ("Only", coverage.filter),
        ("Tool", f"kubectl-cgaudit {audit.tool_version}"),
        ("Digest of the input", f"sha256:{audit.input}" if audit.input else ""),
    ]
    return [(what, value) for what, value in found if value]


def _but(others: Mapping[str, int]) -> str:
    """Return how many were set apart and why, so that the sum is right."""
    words = ", ".join(f"{amount} {what}" for what, amount in others.items() if amount > 0)
    return f" ({words})" if words else ""


def _other_nodes(coverage: Coverage) -> dict[str, int]:
    return {"Windows": len(coverage.windows_nodes), "virtual": len(coverage.virtual_nodes)}


def _other_pods(audit: Audit) -> dict[str, int]:
    coverage = audit.coverage
    others = {
        "finished": coverage.pods_finished,
        "without a node": len(coverage.pods_without_node),
        "on Windows nodes": coverage.pods_on_windows_nodes,
        "on virtual nodes": coverage.pods_on_virtual_nodes,
        "on nodes that could not be read": sum(workload.unpredicted_pods for workload in audit.workloads),
    }
    rest = coverage.pods_read - coverage.pods_audited - sum(others.values())
    return {**others, "not asked for": rest} if coverage.filter else others


def _apart_counts(audit: Audit) -> str:
    words = [f"{len(audit.known)} known from {audit.baseline.source}"] if audit.baseline else []
    words += [f"{len(audit.fixed)} of it gone"] if audit.baseline and audit.fixed else []
    words += [f"{len(audit.excepted)} excepted by {audit.policy.source}"] if audit.policy else []
    return f"; not counted: {', '.join(words)}" if words else ""


class Line(NamedTuple):
    """A workload as a row of a table."""

    workload: Workload
    sign: str
    effect: str
    pods: str
    nodes: str
    cpu: str
    system: str
    split: str
    when: str
    """What the numbers assume; empty where nothing is open."""
    others: tuple[str, ...]
    """What happens where a default was overridden, and whether it is known or excepted."""


def line(workload: Workload, most_nodes: int = 3) -> Line:
    """Return a workload as a row of a table."""
    share, system = _told(workload)
    words = EFFECTS[workload.effect]
    unpredicted = f", {workload.unpredicted_pods} not read" if workload.unpredicted_pods else ""
    standing = {"known": "nothing new against the baseline", "excepted": "excepted by the policy"}
    split = workload.split
    return Line(
        workload,
        SIGNS[workload.effect],
        words,
        f"{workload.pods_hit} of {workload.pods}{unpredicted}",
        named(list(workload.nodes_hit), most_nodes),
        _cpu(workload, share),
        "?" if system is None else change(system.change),
        f"{split.container} {percents(split.before, split.after)}" if split and _moves(split) else "",
        next((each.when for each in (system, share, split) if each and each.when), ""),
        (
            *(_other(each.when, each.effects, each.loss) for each in workload.other_effects),
            *((standing[workload.standing],) if workload.standing else ()),
        ),
    )


def _told(workload: Workload) -> tuple[Change | None, Change | None]:
    """Return the change of the node's CPU and that against system.slice that tell most."""
    if workload.effect == "loses" and workload.sure_loss:
        return workload.sure_share, workload.sure_loss
    if workload.effect == "gains" and workload.against_system_best:
        return workload.share, workload.against_system_best
    return workload.share, workload.against_system


def _cpu(workload: Workload, share: Change | None) -> str:
    if share is None:
        return "?"
    if workload.effect in ("stops", "may-stop"):
        return f"{percent(share.before)} -> {'stops' if workload.effect == 'stops' else 'may stop'}"
    return percents(share.before, share.after)


def _moves(split: Change) -> bool:
    return change(split.change) != change(0.0)


def _other(when: str, effects: Sequence[Effect], loss: float | None) -> str:
    words = " and ".join(EFFECTS[effect] for effect in effects) or EFFECTS["none"]
    return f"if {when.removeprefix('if ')}: {words}{f' ({change(loss)})' if loss is not None else ''}"


def affected(workloads: Iterable[Workload]) -> list[Workload]:
    """Return the workloads for which somebody must decide something."""
    return [each for each in workloads if each.effect in AFFECTED]


def the_rest(workloads: Sequence[Workload], shown: Sequence[Effect]) -> str:
    """Return `2 gain CPU, 6 ...`: how many workloads there are of each effect that is not shown."""
    amounts = Counter(each.effect for each in workloads)
    words: dict[Effect, str] = {
        "stops": "do not start after the move",
        "may-stop": "may not start after the move",
        "loses": "lose CPU to system services",
        "unknown": "depend on what is not settled",
        "moves": "only split CPU differently inside the pod",
        "gains": "gain CPU",
        "nominal": "only change the number in cpu.weight",
        "none": "do not change above the thresholds",
    }
    left = [f"{amounts[effect]} {words[effect]}" for effect in words if effect not in shown and amounts[effect]]
    return f"{', '.join(left)}." if left else ""


class RuleGroup(NamedTuple):
    """The findings of a rule."""

    rule: str
    name: str
    why: str
    page: str | None
    counts: str
    findings: Sequence[Finding]


def by_rule(findings: Iterable[Finding]) -> list[RuleGroup]:
    """Return the findings by rule, in the order of the worst finding of each."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.rule, []).append(finding)
    return [
        RuleGroup(
            rule,
            rules.name_of(rule, of_rule),
            rules.BY_ID[rule].why if rule in rules.BY_ID else "",
            rules.page_of(rule),
            severity_counts(Counter(each.severity for each in of_rule)),
            of_rule,
        )
        for rule, of_rule in found.items()
    ]


def subject(about: Subject) -> str:
    """Return `shop/checkout (Deployment)`, `node worker-c`, or what an audit's finding is about."""
    if about.kind == "node":
        return f"node {about.name}"
    return f"{about.title} ({about.workload_kind})" if about.workload_kind else about.title


def numbers(audit: Audit) -> dict[str, list[int]]:
    """Return the numbers of the actions that clear or lower a finding, by its id."""
    found: dict[str, list[int]] = {}
    for place, action in enumerate(audit.actions, start=1):
        for finding in dict.fromkeys((*action.clears, *action.lowers)):
            found.setdefault(finding, []).append(place)
    return found


def cleared(action: Action, findings: Mapping[str, Finding]) -> str:
    """Return `clears 5 high`: what an action is for; ids that are not among the findings count without a severity."""
    counts = Counter(findings[each].severity for each in action.clears if each in findings)
    lost = sum(each not in findings for each in action.clears)
    parts = [severity_counts(counts), counted(lost, "finding") if lost else ""]
    words = " and ".join(part for part in parts if part)
    if words:
        return f"clears {words}"
    return f"lowers {counted(len(action.lowers), 'finding')}" if action.lowers else ""


class NodeGroup(NamedTuple):
    """Nodes that run the same and change the same, at least one."""

    nodes: tuple[NodeRecord, ...]

    @property
    def node(self) -> NodeRecord:
        """One that stands for all."""
        return self.nodes[0]

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [node.name for node in self.nodes]

    @property
    def pods(self) -> int:
        """Pods on all of them."""
        return sum(node.pods for node in self.nodes)

    def distinct(self, field: str) -> list[str]:
        """Return the different values of a field, or the different items of a field that is a list."""
        values = [getattr(node, field) for node in self.nodes]
        flat = [item for value in values for item in (value if isinstance(value, tuple) else (value,))]
        return list(dict.fromkeys(map(str, flat)))


def node_groups(nodes: Iterable[NodeRecord]) -> list[NodeGroup]:
    """Return the groups: those whose pods lose most first, then the least surely known, then by name."""
    found: dict[bytes, list[NodeRecord]] = {}
    for node in nodes:
        known = [(what, each.value, each.confidence, each.source) for what, each in node.known.items()]
        cases = [(case.when, _root(case), tuple(case.after.runtimes.items())) for case in node.cases]
        face = (node.kubelet_version, node.container_runtime, node.allocatable_milli, node.confidence, known, cases)
        found.setdefault(sha256(msgspec.json.encode(face)).digest(), []).append(node)
    return sorted((NodeGroup(tuple(members)) for members in found.values()), key=_badness)


def _root(case: NodeCase) -> tuple[object, ...]:
    moments = (
        (moment.cgroup, moment.kubepods, moment.system_slice, moment.pods_share, moment.system_share, moment.kubelet)
        for moment in (case.before, case.after)
    )
    return (*moments, case.stops)


def _badness(group: NodeGroup) -> tuple[float, int, list[str]]:
    ratios = [_loss(case) for case in group.node.cases]
    return min(ratios, default=1.0), -CONFIDENCES.index(group.node.confidence), group.names


def _loss(case: NodeCase) -> float:
    return 0.0 if case.stops else case.after.pods_per_system / (case.before.pods_per_system or 1.0)


class CaseLine(NamedTuple):
    """A node in the cases that do not differ at the root of its tree."""

    when: str
    case: NodeCase
    cgroup: str
    pods: str
    system: str
    ratio: str
    values: str


def case_lines(node: NodeRecord) -> list[CaseLine]:
    """Return the cases of a node that differ in what pods get against system services, the most plausible first."""
    groups: dict[object, list[NodeCase]] = {}
    for case in node.cases:
        groups.setdefault(_root(case)[:], []).append(case)
    every = [case.when for case in node.cases]
    return [
        CaseLine(
            _telling([case.when for case in group], every),
            group[0],
            _of(group[0], lambda moment: moment.cgroup),
            _shares(group[0], lambda moment: moment.pods_share),
            _shares(group[0], lambda moment: moment.system_share),
            _of(group[0], lambda moment: number(moment.pods_per_system)),
            _of(group[0], lambda moment: f"{moment.kubepods} : {moment.system_slice}"),
        )
        for group in groups.values()
    ]


def _of(case: NodeCase, words: Callable[[NodeMoment], str]) -> str:
    return arrow(words(case.before), "does not start" if case.stops else words(case.after))


def _shares(case: NodeCase, of: Callable[[NodeMoment], float]) -> str:
    was = of(case.before)
    return f"{percent(was)} -> does not start" if case.stops else percents(was, of(case.after))


def _telling(found: Sequence[str], every: Sequence[str]) -> str:
    """Return what these cases have in common and not all cases have: `cgroup v1`."""
    if len(found) == len(every):
        return every[0] if len(every) == 1 else ""
    parts = [when.split(", ") for when in every]
    mine = [part for part in found[0].split(", ") if all(part in when.split(", ") for when in found)]
    telling = [part for part in mine if not all(part in when for when in parts)]
    return ", ".join(telling) or (found[0] if len(found) == 1 else f"{found[0]} and {len(found) - 1} more cases")


def known_lines(node: NodeRecord) -> list[tuple[str, str, str, str, str]]:
    """Return what is known of a node: what, now, after, how surely, why with what may have overridden a default."""
    found: list[tuple[str, str, str, str, str]] = []
    for key, known in node.known.items():
        source = f"{known.source}; overridden by: {known.override}" if known.override else known.source
        now = known.value and (_values([case.before for case in node.cases], key) or known.value)
        after = _values([None if case.stops else case.after for case in node.cases], key)
        found.append((what_of(key), now or "not known", after, known.confidence, source))
    return found


def what_of(key: str) -> str:
    """Return what a key of what is known, or of a question, is about."""
    handler = key.removeprefix("runtime:")
    return f"runtime of handler {handler}" if handler != key else _KNOWN.get(key, key)


def _values(moments: Iterable[NodeMoment | None], key: str) -> str:
    """Return what a key of what is known is at these moments; None is a node that does not start."""
    values = dict.fromkeys("does not start" if each is None else _value(each, key) for each in moments)
    return " or ".join(value for value in values if value)


def _value(moment: NodeMoment, key: str) -> str:
    unit = "weight" if moment.cgroup == "v2" else "shares"
    root = ", ".join(f"{name} ({unit} {value})" for name, value in moment.root.items())
    values = {
        "cgroup": moment.cgroup,
        "driver": moment.driver,
        "kubelet": moment.kubelet,
        "system_slice": f"{unit} {moment.system_slice}",
        "root": root or "no other cgroup",
    }
    return values.get(key, moment.runtimes.get(key.removeprefix("runtime:"), ""))


def sureness(nodes: Sequence[NodeRecord]) -> list[tuple[str, str]]:
    """Return on how many nodes each thing is known how surely; of several runtimes the least sure one counts."""
    asked = {
        "cgroup version": "cgroup",
        "runtimes": "runtime:",
        "kubelet": "kubelet",
        "system.slice": "system_slice",
    }
    found = []
    for what, prefix in asked.items():
        places = [
            [CONFIDENCES.index(known.confidence) for key, known in node.known.items() if key.startswith(prefix)]
            for node in nodes
        ]
        worst = Counter(max(each) for each in places if each)
        words = ", ".join(f"{confidence} on {worst[at]}" for at, confidence in enumerate(CONFIDENCES) if worst[at])
        if words:
            found.append((what, f"{words} of {counted(len(nodes), 'node')}"))
    return found


def question(asked: Question, most_nodes: int) -> tuple[str, str]:
    """Return what is asked of which nodes, and why the answer matters."""
    nodes = named(list(asked.nodes), most_nodes)
    answer = f"probably {asked.answer}" if asked.answer else "nothing says it"
    title = f"{capital(what_of(asked.about))} of {nodes}: {answer}"
    loss = asked.decides
    if loss is None:
        return title, ""
    where = f"{loss.container} in {loss.pod}" if loss.container else loss.pod
    if loss.container:
        numbers_ = f"{percents(loss.before, loss.after)} of its pod"
    else:
        numbers_ = f"{change(loss.change)} against system services"
    return (
        title,
        f"It decides a loss of up to {change(loss.change)}: {where} on {loss.node} ({numbers_}) if {loss.when}.",
    )


def coverage_facts(coverage: Coverage, names: Callable[[Sequence[str]], str]) -> list[tuple[str, str]]:
    """Return what was set apart and how names were found; `names` joins a list of them."""
    found = [
        ("Finished pods, which want no CPU", str(coverage.pods_finished)),
        ("Pods without a node, not predicted", names(coverage.pods_without_node) or "none"),
        (
            f"Windows nodes, not predicted ({counted(coverage.pods_on_windows_nodes, 'pod')})",
            names(coverage.windows_nodes),
        ),
        (
            f"Virtual nodes, not predicted ({counted(coverage.pods_on_virtual_nodes, 'pod')})",
            names(coverage.virtual_nodes),
        ),
        *((f"Names of {kind}s", how) for kind, how in coverage.workload_names.items()),
        (
            "Objects not needed",
            names([f"{amount} {kind}" for kind, amount in coverage.ignored_kinds.items()]),
        ),
        ("Objects read more than once", str(coverage.duplicates) if coverage.duplicates else ""),
    ]
    return [(what, value) for what, value in found if value]


def notes(coverage: Coverage) -> list[str]:
    """Return notes on the reading, first what the user stated that matches nothing here."""
    return [f"Check: {what}" for what in coverage.unmatched] + list(coverage.notes)


def thresholds(audit: Audit) -> list[tuple[str, str, str]]:
    """Return name, value and meaning of each threshold."""
    return [
        (name, THRESHOLDS.get(name, ("", number))[1](value), THRESHOLDS.get(name, ("",))[0])
        for name, value in audit.target.thresholds.items()
    ]


class Apart(NamedTuple):
    """Findings that do not count, and why."""

    title: str
    text: str
    groups: list[tuple[str, tuple[str, ...], str]]
    """Of one rule and severity: `high CGA201`, the subjects, the reason."""
    notes: tuple[str, ...] = ()


def apart(audit: Audit) -> list[Apart]:
    """Return what a policy and a baseline set apart; nothing where there was neither."""
    found = []
    if audit.policy:
        levels = ", ".join(f"{rule} {level}" for rule, level in audit.policy.severities.items())
        sets = f" It sets severities: {levels}." if levels else ""
        groups = _grouped(
            (each.finding, f"{each.reason}{f', until {each.expires}' if each.expires else ''} ({each.source})")
            for each in audit.excepted
        )
        text = f"{audit.policy.source} excepts {counted(len(audit.excepted), 'finding')}.{sets}"
        found.append(Apart("Excepted by the policy", text, groups))
    if audit.baseline:
        dated = f" of {audit.baseline.time}" if audit.baseline.time else ""
        are = "is" if len(audit.known) == 1 else "are"
        text = f"{counted(len(audit.known), 'finding')} {are} in the baseline {audit.baseline.source}{dated} too."
        known = _grouped((each, "") for each in audit.known)
        found.append(Apart("Known from the baseline", text, known, tuple(f"{each}." for each in audit.baseline.notes)))
        if audit.fixed:
            are = "is" if len(audit.fixed) == 1 else "are"
            gone = f"{counted(len(audit.fixed), 'finding')} of the baseline {are} gone."
            found.append(Apart("Fixed since the baseline", gone, _grouped((each, "") for each in audit.fixed)))
    return found


def _grouped(findings: Iterable[tuple[Finding, str]]) -> list[tuple[str, tuple[str, ...], str]]:
    groups: dict[tuple[str, str], list[str]] = {}
    for finding, reason in findings:
        lead = f"{finding.severity} {finding.rule} {rules.name_of(finding.rule, (finding,))}"
        groups.setdefault((lead, reason), []).append(subject(finding.subject))
    return [(lead, tuple(subjects), reason) for (lead, reason), subjects in groups.items()]
