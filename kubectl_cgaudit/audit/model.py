"""The audit as data: what JSON holds, and all that a renderer gets to see.

CPU is in thousandths of a CPU (`...Milli`), quotas in microseconds a period (`...Us`). Shares of CPU are fractions from 0 to 1
of a full node.
"""

from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta, Struct

SCHEMA = "cgaudit.audit/1"

Severity = Literal["low", "medium", "high", "critical"]
Certainty = Literal["certain", "stated", "likely", "probable", "possible"]
Confidence = Literal["certain", "stated", "likely", "probable", "unknown"]
Effect = Literal["stops", "may-stop", "loses", "unknown", "moves", "gains", "nominal", "none"]
SEVERITIES: tuple[Severity, ...] = ("low", "medium", "high", "critical")
"""Mildest first."""
CERTAINTIES: tuple[Certainty, ...] = ("certain", "stated", "likely", "probable", "possible")
CONFIDENCES: tuple[Confidence, ...] = ("certain", "stated", "likely", "probable", "unknown")
EFFECTS: tuple[Effect, ...] = ("stops", "may-stop", "loses", "unknown", "moves", "gains", "nominal", "none")
"""Strongest first."""
Standing = Literal["", "known", "excepted"]
SubjectKind = Literal["audit", "node", "workload"]


class Rule(NamedTuple):
    """A rule of the catalogue. Ids are stable."""

    id: str
    about: SubjectKind
    gravest: Severity
    """The greatest severity it has where no policy sets another."""


RULES = (
    Rule("CGA001", "audit", "high"),
    Rule("CGA002", "audit", "low"),
    Rule("CGA101", "node", "critical"),
    Rule("CGA102", "node", "medium"),
    Rule("CGA103", "node", "medium"),
    Rule("CGA201", "workload", "high"),
    Rule("CGA202", "node", "high"),
    Rule("CGA203", "workload", "low"),
    Rule("CGA204", "workload", "high"),
    Rule("CGA205", "workload", "low"),
    Rule("CGA206", "workload", "low"),
    Rule("CGA207", "node", "medium"),
    Rule("CGA301", "workload", "critical"),
    Rule("CGA302", "workload", "low"),
    Rule("CGA401", "workload", "medium"),
)


class Record(Struct, frozen=True, rename="camel"):
    """A part of the audit."""


class Subject(Record, frozen=True):
    """What a finding or an action is about."""

    kind: SubjectKind
    name: str
    namespace: str | None = None
    workload_kind: str | None = None

    @property
    def title(self) -> str:
        """`namespace/name`, or the name."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def key(self) -> str:
        """`namespace/Kind/name`, or the name: part of a finding's id."""
        return f"{self.namespace}/{self.workload_kind}/{self.name}" if self.namespace else self.name


class Measure(Record, frozen=True):
    """A number before and after; null where there is none."""

    name: str
    unit: str
    before: float | None
    after: float | None


class CaseSeverity(Record, frozen=True):
    """How severe a finding is in a case of the place that is told."""

    when: Annotated[str, Meta(description="what the case assumes; empty where nothing is open")]
    rank: Annotated[int, Meta(description="1 for the most plausible case", ge=1)]
    leading: Annotated[bool, Meta(description="no default is overridden in this case")]
    severity: Severity


class Graver(Record, frozen=True):
    """A graver severity, somewhere else or in less plausible cases."""

    severity: Severity
    when: str


class AtLeast(Record, frozen=True):
    """How surely a finding is this severe or worse, at some place of its subject."""

    severity: Severity
    certainty: Certainty


class Where(Record, frozen=True):
    """Where a finding holds: how many of its subject's pods, on which nodes, and the place that is told."""

    pods_hit: int = 0
    pods: int = 0
    nodes: tuple[str, ...] = ()
    node: str | None = None
    pod: str | None = None
    container: str | None = None


class Finding(Record, frozen=True):
    """A rule that holds for a subject."""

    id: Annotated[str, Meta(description="RULE:namespace/Kind/name, or RULE:name; the same in every run")]
    rule: str
    severity: Annotated[
        Severity, Meta(description="in the most plausible cases; in the others if it holds in these only")
    ]
    certainty: Certainty
    subject: Subject
    cases: tuple[CaseSeverity, ...]
    measures: tuple[Measure, ...]
    where: Where
    today: Annotated[bool, Meta(description="it is so already, whether or not the nodes move")] = False
    graver: Graver | None = None
    at_least: tuple[AtLeast, ...] = ()
    detail: Annotated[dict[str, Any], Meta(description="what this rule saw beside its measures")] = {}
    actions: Annotated[tuple[str, ...], Meta(description="ids of the actions that clear or lower it")] = ()
    title: str = ""
    message: str = ""

    @property
    def leads(self) -> bool:
        """Whether it holds in one of the most plausible cases."""
        return not self.cases or any(case.leading for case in self.cases)


class Change(Record, frozen=True):
    """A change of one pod or container in one case; `change` is after / before - 1."""

    pod: str
    node: str
    container: str | None
    when: str
    before: float
    after: float
    change: float


class OtherEffects(Record, frozen=True):
    """What happens to a workload if a default is overridden."""

    when: str
    effects: Annotated[tuple[Effect, ...], Meta(description="strongest first")]
    loss: Annotated[
        float | None, Meta(description="greatest change against system.slice, after / before - 1; null for no loss")
    ]


class Span(Record, frozen=True):
    """The values of a container of a workload, over its pods and the most plausible cases."""

    container: str
    before_unit: Literal["shares", "weight"]
    before_least: int
    before_greatest: int
    after_unit: Literal["shares", "weight"]
    after_least: int
    after_greatest: int


class Workload(Record, frozen=True):
    """What the migration changes for a workload, the top owner of its pods."""

    kind: str
    namespace: str
    name: str
    effects: Annotated[tuple[Effect, ...], Meta(description="in the most plausible cases, strongest first")]
    other_effects: Annotated[tuple[OtherEffects, ...], Meta(description="what less plausible cases bring instead")]
    confidence: Annotated[Confidence, Meta(description="the confidence of its least sure pod")]
    pods: int
    pods_hit: Annotated[int, Meta(description="pods that have the strongest effect")]
    unpredicted_pods: Annotated[int, Meta(description="active pods on nodes that could not be read")]
    nodes_hit: Annotated[tuple[str, ...], Meta(description="nodes of these pods")]
    share: Annotated[Change | None, Meta(description="fraction of the node's CPU, of the pod where it changes most")]
    against_system: Annotated[
        Change | None, Meta(description="share over the share of system.slice, of the pod that loses most")
    ]
    against_system_best: Annotated[
        Change | None, Meta(description="the same, of the pod that loses least or gains most")
    ]
    sure_loss: Annotated[
        Change | None, Meta(description="the greatest loss that holds in every most plausible case of its pod")
    ]
    sure_share: Annotated[Change | None, Meta(description="the fraction of the node's CPU of that pod, in that case")]
    split: Annotated[Change | None, Meta(description="fraction of its pod's CPU, of the container that loses most")]
    split_best: Annotated[Change | None, Meta(description="the same container where it loses least or gains most")]
    values: tuple[Span, ...]
    cases: Annotated[int, Meta(description="most plausible cases of any of its pods: 1 where nothing is unknown")]
    standing: Annotated[
        Standing,
        Meta(description="known: it has findings, none new against the baseline; excepted: all of them are excepted"),
    ] = ""

    @property
    def effect(self) -> Effect:
        """The strongest effect."""
        return self.effects[0] if self.effects else "none"

    @property
    def title(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def key(self) -> str:
        """`namespace/Kind/name`."""
        return f"{self.namespace}/{self.kind}/{self.name}"


class Known(Record, frozen=True):
    """What is taken for true of a node, how surely, and why."""

    value: Annotated[str | None, Meta(description="null if nothing says it")]
    confidence: Confidence
    source: str
    override: Annotated[str, Meta(description="of a default: what may have made this node differ")] = ""


class EvidenceRecord(Record, frozen=True):
    """A piece of evidence."""

    about: str
    value: str
    strength: Literal["certain", "likely", "probable", "hint"]
    source: str
    saw: str
    override: str = ""


class QosMoment(Record, frozen=True):
    """The pods of a QoS class at one moment. Guaranteed pods have no slice: theirs is the sum over the pods."""

    pods: int
    value: int
    share: float
    measured: Annotated[bool, Meta(description="the value is what the kubelet shows of it, not what is predicted")] = (
        False
    )


class NodeMoment(Record, frozen=True):
    """A node at one moment. Values at the root are shares on v1 and weights on v2."""

    cgroup: Literal["v1", "v2"]
    driver: str
    kubelet: str
    kubepods: int
    system_slice: int
    root: Annotated[dict[str, int], Meta(description="what else competes at the root, by its name")]
    pods_per_system: Annotated[float, Meta(description="kubepods / system.slice")]
    pods_share: float
    system_share: float
    qos: dict[str, QosMoment]
    runtimes: dict[str, str]
    enforced: Annotated[tuple[str, ...], Meta(description="top-level cgroups whose value the kubelet writes")]
    services: Annotated[str, Meta(description="the top-level cgroup of the kubelet and the container runtime")]
    measured: Annotated[bool, Meta(description="kubepods is what the kubelet shows of it, not what is predicted")] = (
        False
    )


class NodeCase(Record, frozen=True):
    """A node before and after in one case."""

    when: str
    rank: int
    leading: Annotated[bool, Meta(description="no default is overridden in this case")]
    before: NodeMoment
    after: NodeMoment
    stops: Annotated[bool, Meta(description="the kubelet of after does not start: after is never reached")] = False


class NodeRecord(Record, frozen=True):
    """A Linux node."""

    name: str
    kubelet_version: str
    container_runtime: str
    os_image: str
    kernel: str
    capacity_milli: int
    allocatable_milli: int
    requested_milli: int
    pods: int
    confidence: Confidence
    known: dict[str, Known]
    hints: tuple[str, ...]
    evidence: tuple[EvidenceRecord, ...]
    contradictions: tuple[str, ...]
    problems: Annotated[tuple[str, ...], Meta(description="what its kubelet was asked for and did not answer")]
    cases: Annotated[tuple[NodeCase, ...], Meta(description="the most plausible first")]


class SettleCommand(Record, frozen=True):
    """A way to answer a question."""

    command: str
    needs: Annotated[str, Meta(description="what it takes beside list on nodes and pods; empty if nothing")]
    shows: Annotated[str, Meta(description="how to read what it prints")]


class Question(Record, frozen=True):
    """Something that is not settled of nodes that are alike, and how to settle it."""

    about: Annotated[str, Meta(description="cgroup, reserve, burstable, runtime:HANDLER, or set_by")]
    confidence: Confidence
    answer: Annotated[
        str, Meta(description="the probable answer, as a states file says it; empty where nothing is probable")
    ]
    nodes: tuple[str, ...]
    decides: Annotated[
        Change | None, Meta(description="the greatest loss that one of its answers makes, and another does not")
    ]
    commands: Annotated[tuple[SettleCommand, ...], Meta(description="the cheapest first")]
    states: Annotated[str, Meta(description="the line of a states file that says the answer, here the probable one")]


ActionKind = Literal["inspect", "node", "workload"]


class CpuOfNode(Record, frozen=True):
    """What all pods, system processes or one pod get of a full node: now, after the move, and after it with the action."""

    of: Annotated[str, Meta(description="pods, system.slice, or namespace/pod")]
    node: str
    before: float
    after: float
    acted: float


class ActionEffect(Record, frozen=True):
    """What predicting again with the action alone gives."""

    cleared: int
    lowered: int
    caused: int
    cpu: tuple[CpuOfNode, ...] = ()


class Action(Record, frozen=True):
    """What somebody does about findings. `title`, `when`, `cost`, `undo` and `alternatives` are words, made from the rest."""

    id: Annotated[str, Meta(description="stable, as system-weight:worker-c")]
    kind: ActionKind
    title: str
    target: Annotated[dict[str, Any], Meta(description="nodes, or namespace, kind, name and containers of a workload")]
    change: Annotated[
        dict[str, Any], Meta(description="what --what-if applies: values at the root, requests, limits, version")
    ]
    run: Annotated[tuple[str, ...], Meta(description="commands; where there are two, the persistent way first")]
    when: str
    effect: Annotated[ActionEffect | None, Meta(description="null where nothing is predicted, as for an inspection")]
    cost: str
    undo: str
    alternatives: tuple[str, ...]
    who: Annotated[Literal["node owners", "workload owners", "cluster owners"], Meta(description="who can do it")]
    clears: Annotated[tuple[str, ...], Meta(description="ids of findings that are gone with it")] = ()
    lowers: Annotated[
        tuple[str, ...], Meta(description="ids of findings that are less severe with it, or hit fewer pods")
    ] = ()
    causes: Annotated[
        tuple[str, ...], Meta(description="ids of findings that are new or more severe with it, or hit more pods")
    ] = ()
    waits_for: Annotated[tuple[str, ...], Meta(description="ids of inspections that decide whether it is needed")] = ()
    detail: Annotated[dict[str, Any], Meta(description="when, cost, undo and alternatives as data")] = {}


class GapRecord(Record, frozen=True):
    """Something asked for that could not be read."""

    what: str
    why: str
    remedy: str
    kind: Annotated[str, Meta(description="what the members are, the same in every run; empty if it has none")] = ""
    members: Annotated[tuple[str, ...], Meta(description="the whole list; `what` names the first of it")] = ()


class Coverage(Record, frozen=True):
    """What was read, what was not, and what was set apart."""

    complete: bool
    source: str
    filter: Annotated[str, Meta(description="what -n and -l selected; empty for everything")]
    gaps: tuple[GapRecord, ...]
    notes: tuple[str, ...]
    unmatched: Annotated[
        tuple[str, ...], Meta(description="parts of --states and --to that speak of nothing here, or are doubtful")
    ]
    nodes_read: int
    nodes_audited: int
    pods_read: int
    pods_audited: int
    pods_finished: int
    pods_without_node: tuple[str, ...]
    windows_nodes: tuple[str, ...]
    virtual_nodes: tuple[str, ...]
    pods_on_windows_nodes: int
    pods_on_virtual_nodes: int
    workload_names: dict[str, str]
    ignored_kinds: dict[str, int]
    duplicates: int
    kubelets_asked: Annotated[bool, Meta(description="whether --kubelet was given")] = False


class Target(Record, frozen=True):
    """The migration that was judged."""

    to: str
    description: str
    thresholds: dict[str, float]
    assumptions: tuple[str, ...]
    rules: Annotated[
        str | None, Meta(description="SHA-256 of what the rules of a --to file say; null for a target in words")
    ] = None
    what_if: Annotated[
        tuple[str, ...], Meta(description="what --what-if named: changed in addition after the move")
    ] = ()


class Verdict(Record, frozen=True):
    """The answer, and the numbers behind it."""

    workloads: Annotated[dict[str, int], Meta(description="workloads by strongest effect")]
    findings: Annotated[dict[str, int], Meta(description="findings by severity")]
    sentence: Annotated[str, Meta(description="at most 80 words")] = ""


class WeightCount(Record, frozen=True):
    """How many containers ask for an amount of CPU and get certain values, in the most plausible cases."""

    request_milli: Annotated[int | None, Meta(description="request, else limit; null for neither")]
    before_version: Literal["v1", "v2"]
    before: Annotated[int | None, Meta(description="cpu.shares or cpu.weight; null if the runtime sets none")]
    after_version: Literal["v1", "v2"]
    after: int | None
    containers: int


class ExceptedFinding(Record, frozen=True):
    """A finding that the policy does not count, and why."""

    finding: Finding
    reason: str
    expires: Annotated[str | None, Meta(description="the last day it holds, YYYY-MM-DD; null for no end")]
    source: Annotated[str, Meta(description="the place in the policy file")]
    in_baseline: Annotated[bool, Meta(description="whether the baseline has it; false without a baseline")] = False


class PolicyRecord(Record, frozen=True):
    """The policy the findings were judged by; its thresholds are among those of the target."""

    source: str
    severities: Annotated[dict[str, str], Meta(description="rules whose severity it sets; off: all are excepted")]


class BaselineRecord(Record, frozen=True):
    """The earlier audit that findings were compared with."""

    source: str
    tool_version: str
    time: str | None
    notes: Annotated[tuple[str, ...], Meta(description="in what it differs, so that the comparison may mislead")]


class Audit(Record, frozen=True):
    """The whole audit, but its containers, which are a table (`audit/records.py`)."""

    schema: str
    tool_version: str
    time: Annotated[str | None, Meta(description="RFC 3339; null in reproducible runs")]
    cluster: Annotated[dict[str, str], Meta(description="name, context, uid, as far as they are known")]
    input: Annotated[
        str, Meta(description="SHA-256 of what was read: nodes, pods and what they run; empty if it was not made")
    ]
    target: Target
    verdict: Verdict
    coverage: Coverage
    nodes: tuple[NodeRecord, ...]
    questions: Annotated[tuple[Question, ...], Meta(description="what is open, the greatest loss first")]
    workloads: Annotated[tuple[Workload, ...], Meta(description="the worst first")]
    findings: Annotated[tuple[Finding, ...], Meta(description="the worst first")]
    actions: Annotated[tuple[Action, ...], Meta(description="inspections first, then what clears most")] = ()
    weights: tuple[WeightCount, ...] = ()
    container_count: Annotated[int, Meta(description="how many containers were audited")] = 0
    policy: PolicyRecord | None = None
    excepted: Annotated[
        tuple[ExceptedFinding, ...], Meta(description="findings that the policy does not count; not in findings")
    ] = ()
    baseline: BaselineRecord | None = None
    known: Annotated[tuple[Finding, ...], Meta(description="findings that the baseline has too; not in findings")] = ()
    fixed: Annotated[tuple[Finding, ...], Meta(description="findings of the baseline that are gone")] = ()
