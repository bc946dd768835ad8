"""The audit: what the JSON output holds, and all that a renderer gets to see.

Its version is `SCHEMA_VERSION`; fields are only added within a major version. What a case holds is `now` and `after`; of several
cases the most plausible one stands by itself, and the others in `cases`.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from kubectl_cgaudit.detect.evidence import Confidence as Confidence
from kubectl_cgaudit.detect.evidence import Strength

SCHEMA_VERSION = "2.0"

Severity = Literal["critical", "high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("critical", "high", "medium", "low")
Effect = Literal["stops", "may-stop", "loses", "unknown", "moves", "gains", "nominal", "none"]
EFFECTS: tuple[Effect, ...] = ("stops", "may-stop", "loses", "unknown", "moves", "gains", "nominal", "none")
SubjectKind = Literal["audit", "node", "workload"]
Standing = Literal["", "known", "excepted"]
CONFIDENCES: tuple[Confidence, ...] = ("certain", "stated", "likely", "probable", "unknown")
"""Surest first. stated: the states file says so. probable: a default that may have been overridden."""
Certainty = Literal["certain", "stated", "likely", "probable", "possible"]
CERTAINTIES: tuple[Certainty, ...] = ("certain", "stated", "likely", "probable", "possible")
"""Of a finding, surest first. probable: where no default is overridden. possible: only as some open question turns out."""

When = Annotated[str, Meta(description="what the case assumes of an open question; empty if nothing is open")]
Stops = Annotated[
    bool,
    Meta(
        description="the node does not come back, so what is audited does not run after the move; after is what it would have"
    ),
]
Rank = Annotated[int, Meta(ge=1, description="1 is the most plausible case")]
Leading = Annotated[
    bool, Meta(description="no default is overridden in this case: it differs from the first in what is unknown only")
]
Value = Annotated[int, Meta(ge=1, le=262144)]
"""What a cgroup competes with: cpu.shares up to 262144, or a weight up to 10000."""
Fraction = Annotated[float, Meta(ge=0, le=1)]
Ratio = Annotated[float, Meta(ge=0, le=262144)]
Milli = Annotated[int, Meta(ge=0)]
"""CPU in thousandths."""
_PodsPerSystem = Annotated[float, Meta(gt=1e-6, le=262144)]
"""kubepods has 2 shares or weight 1 at the least; what it competes with, 262144 shares or weight 10000 at the most."""


class _Record(Struct, frozen=True, rename="camel"):
    """A part of the audit."""


Measured = Annotated[
    bool, Meta(description="the value is what the kubelet shows of the cgroup; left out where it is predicted")
]


class Moment(_Record, frozen=True, omit_defaults=True):
    """A pod's or container's cgroup at one moment."""

    version: Literal["v1", "v2"]
    value: Annotated[
        Value | None, Meta(description="cpu.shares on v1, cpu.weight on v2; null if the runtime sets none")
    ]
    nominal_ratio: Annotated[Ratio | None, Meta(description="value / default: shares/1024 on v1, weight/100 on v2")]
    share: Annotated[Fraction | None, Meta(description="fraction of the node's CPU when everything wants CPU")]
    against_system: Annotated[Ratio | None, Meta(description="share / share of system.slice")]
    in_pod: Annotated[Fraction | None, Meta(description="containers: fraction of the pod's CPU; null for pods")]
    quota_us: Annotated[int | None, Meta(description="CPU quota a 100000 us period; null for none")]
    measured: Measured = False


class CaseChange(_Record, frozen=True, omit_defaults=True):
    """Now and after in one case."""

    when: When
    before: Moment = field(name="now")
    after: Moment
    stops: Stops = False
    rank: Rank = 1
    leading: Leading = False


OtherChanges = Annotated[tuple[CaseChange, ...], Meta(description="the other cases, the most plausible first")]


def in_ranks(cases: Sequence[CaseChange]) -> tuple[str, Moment, Moment, bool, tuple[CaseChange, ...]]:
    """Return the fields of a record that hold these cases: the most plausible by itself, and the others."""
    first, *others = cases
    return first.when, first.before, first.after, first.stops, tuple(others)


class ContainerAudit(_Record, frozen=True):
    """A container of a pod, in the most plausible case and in the others. CPU in thousandths."""

    name: str
    role: str
    request_milli: Milli | None
    limit_milli: Milli | None
    when: When
    before: Moment = field(name="now")
    after: Moment
    stops: Stops
    others: OtherChanges = field(name="cases")

    @property
    def cases(self) -> tuple[CaseChange, ...]:
        """All cases, the most plausible first."""
        return CaseChange(self.when, self.before, self.after, self.stops, 1, leading=True), *self.others


class PodAudit(_Record, frozen=True):
    """A pod of a workload, in the most plausible case and in the others."""

    name: str
    node: str
    qos: str
    handler: str
    confidence: Annotated[Confidence, Meta(description="the weakest of what its numbers rest on, system.slice aside")]
    effects: Annotated[tuple[Effect, ...], Meta(description="in the leading cases, strongest first")]
    when: When
    before: Moment = field(name="now")
    after: Moment
    stops: Stops
    others: OtherChanges = field(name="cases")
    containers: tuple[ContainerAudit, ...]

    @property
    def cases(self) -> tuple[CaseChange, ...]:
        """All cases, the most plausible first."""
        return CaseChange(self.when, self.before, self.after, self.stops, 1, leading=True), *self.others


class Change(_Record, frozen=True):
    """A change of one pod or container in one case; `change` is after / before - 1."""

    pod: str
    container: str | None
    node: str
    when: When
    before: float
    after: float
    change: float


class Span(_Record, frozen=True):
    """The least and greatest value over pods and cases."""

    least: float
    greatest: float


class NominalChange(_Record, frozen=True):
    """The nominal weight of a container, over the pods and cases of its workload that have the same units."""

    container: str
    before: Span
    after: Span
    ratio_before: Span
    ratio_after: Span
    before_unit: Literal["shares", "weight"]
    after_unit: Literal["shares", "weight"]


class OtherEffects(_Record, frozen=True):
    """What happens to a workload if a default is overridden."""

    when: str
    effects: Annotated[tuple[Effect, ...], Meta(description="strongest first")]
    against_system: Annotated[float | None, Meta(description="the greatest loss, after / before - 1; null for none")]


class WorkloadAudit(_Record, frozen=True):
    """A workload: the top owner of its pods."""

    kind: str
    namespace: str
    name: str
    effects: Annotated[tuple[Effect, ...], Meta(description="in the leading cases, strongest first")]
    confidence: Annotated[Confidence, Meta(description="that of its least sure pod")]
    pod_count: int
    unpredicted_pods: Annotated[int, Meta(description="active pods on nodes that could not be read")]
    share: Annotated[Change | None, Meta(description="fraction of the node's CPU, of the pod where it changes most")]
    against_system: Annotated[Change | None, Meta(description="of the pod that loses most")]
    against_system_best: Annotated[Change | None, Meta(description="of the pod that loses least or gains most")]
    inside_pod: Annotated[Change | None, Meta(description="of the container that loses most of its pod's CPU")]
    nominal: tuple[NominalChange, ...]
    pods: tuple[PodAudit, ...]
    """Of an audit just made, any sequence: they are made when they are asked for."""
    inside_pod_best: Annotated[
        Change | None, Meta(description="where the container of insidePod loses least or gains most")
    ] = None
    possibilities: Annotated[
        int, Meta(description="most leading cases of any of its pods; 1 where nothing is unknown")
    ] = 0
    may_stop: Annotated[
        bool, Meta(description="the node of one of its pods does not come back in some leading case, or in all of them")
    ] = False
    other_effects: Annotated[
        tuple[OtherEffects, ...], Meta(description="where a default is overridden, as far as it is something else")
    ] = ()
    standing: Annotated[
        Standing,
        Meta(description="known: it has findings, none new against the baseline; excepted: all of them are excepted"),
    ] = ""

    @property
    def effect(self) -> Effect:
        """The strongest effect."""
        return self.effects[0] if self.effects else "none"

    @property
    def unsettled(self) -> bool:
        """Whether what it gains or loses cannot be said."""
        return "unknown" in self.effects

    @property
    def title(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


class Known(_Record, frozen=True):
    """What is taken for true of a node, and on what ground."""

    value: Annotated[str | None, Meta(description="the probable one where nothing is sure; null if it is not known")]
    confidence: Confidence
    source: str
    override: Annotated[str, Meta(description="of a default: what may have made this node differ")] = ""


class EvidenceRecord(_Record, frozen=True):
    """A piece of evidence."""

    about: str
    value: str
    strength: Strength
    source: str
    saw: str
    override: str = ""


class QosMoment(_Record, frozen=True, omit_defaults=True):
    """The pods of a QoS class at one moment. Guaranteed pods have no slice: theirs is the sum over the pods."""

    pods: int
    value: Annotated[int, Meta(description="what competes inside kubepods: shares on v1, weight on v2", ge=0)]
    share: Annotated[Fraction, Meta(description="fraction of the node's CPU; 0 if none of the pods wants CPU")]
    measured: Measured = False


class NodeMoment(_Record, frozen=True):
    """A node at one moment. Values at the root are shares on v1 and weights on v2."""

    cgroup: Literal["v1", "v2"]
    kubepods: Value
    system_slice: Value
    pods_per_system: Annotated[_PodsPerSystem, Meta(description="kubepods / system.slice")]
    pods_share: Annotated[
        Fraction, Meta(description="fraction of the node's CPU for all pods, when everything wants CPU")
    ]
    system_share: Fraction
    kubelet: str
    runtimes: dict[str, str]
    qos: Annotated[dict[str, QosMoment], Meta(description="by QoS class; empty in audits of schema 1.0")] = {}
    driver: Annotated[str, Meta(description="the cgroup driver; empty in audits of schema 1.0")] = ""
    root: Annotated[dict[str, Value], Meta(description="what else competes at the root, by its name")] = {}
    measured: Annotated[bool, Meta(description="kubepods is what the kubelet shows of it, not what is predicted")] = (
        False
    )


class NodeCase(_Record, frozen=True, omit_defaults=True):
    """Now and after in one case."""

    when: When
    before: NodeMoment = field(name="now")
    after: NodeMoment
    stops: Stops = False
    rank: Rank = 1
    leading: Leading = False


class NodeAudit(_Record, frozen=True):
    """A Linux node."""

    name: str
    kubelet_version: str
    container_runtime: str
    os_image: str
    kernel: str
    allocatable_milli: Milli
    pod_count: int
    confidence: Annotated[Confidence, Meta(description="the weakest of cgroup version, runtimes in use and kubelet")]
    known: dict[str, Known]
    hints: tuple[str, ...]
    evidence: tuple[EvidenceRecord, ...]
    contradictions: tuple[str, ...]
    problems: Annotated[tuple[str, ...], Meta(description="what its kubelet was asked for and did not answer")]
    when: When
    before: NodeMoment = field(name="now")
    after: NodeMoment
    stops: Stops
    others: Annotated[tuple[NodeCase, ...], Meta(description="the other cases, the most plausible first")] = field(
        name="cases"
    )

    @property
    def cases(self) -> tuple[NodeCase, ...]:
        """All cases, the most plausible first."""
        return NodeCase(self.when, self.before, self.after, self.stops, 1, leading=True), *self.others

    @property
    def leading(self) -> tuple[NodeCase, ...]:
        """The cases in which no default is overridden."""
        return tuple(case for case in self.cases if case.leading)


class Subject(_Record, frozen=True, gc=False):
    """What a finding is about."""

    kind: SubjectKind
    name: str
    namespace: str | None = None
    workload_kind: str | None = None

    @property
    def title(self) -> str:
        """`namespace/name` or the name."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class FindingCase(_Record, frozen=True, gc=False):
    """A case in which a finding holds, at the place that it tells of."""

    when: When
    rank: Rank
    leading: Leading
    severity: Severity


class AtLeast(_Record, frozen=True, gc=False):
    """How surely a finding is this severe or worse, somewhere."""

    severity: Severity
    certainty: Certainty


class Graver(_Record, frozen=True, gc=False):
    """What a finding comes to in another case or at another place, where that is worse than what it tells."""

    severity: Severity
    when: str


class Finding(_Record, frozen=True, gc=False):
    """One finding."""

    rule: str
    severity: Annotated[Severity, Meta(description="in the leading cases; in the others, if it holds in these only")]
    title: str
    subject: Subject
    when: Annotated[str, Meta(description="empty if it holds in every case; else what it depends on")]
    seen: str
    why: str
    remedy: str
    certainty: Annotated[
        Certainty, Meta(description="how surely it is as severe as that; possible: only as an open question turns out")
    ] = "certain"
    cases: tuple[FindingCase, ...] = ()
    graver: Graver | None = None
    at_least: Annotated[
        tuple[AtLeast, ...],
        Meta(description="how surely there is a place where it is as severe, by severity; worst first"),
    ] = ()

    @property
    def leads(self) -> bool:
        """Whether it holds where no default is overridden."""
        return not self.cases or any(case.leading for case in self.cases)

    @property
    def order(self) -> tuple[bool, int, str, str, int]:
        """To sort by: what holds in a leading case, then the worst severity; of a rule the surest first."""
        return not self.leads, SEVERITIES.index(self.severity), self.rule, self.title, CERTAINTIES.index(self.certainty)


class ExceptedFinding(_Record, frozen=True):
    """A finding that the policy does not count, and why."""

    finding: Finding
    reason: str
    expires: Annotated[str | None, Meta(description="the last day it holds, YYYY-MM-DD; null for no end")]
    source: Annotated[str, Meta(description="the place in the policy file")]
    in_baseline: Annotated[bool, Meta(description="whether the baseline has it; false without a baseline")] = False


class PolicyRecord(_Record, frozen=True):
    """The policy the findings were judged by; its thresholds are among those of the scenario."""

    source: str
    severities: Annotated[dict[str, str], Meta(description="rules whose severity it sets; off: all are excepted")]


class BaselineRecord(_Record, frozen=True):
    """The earlier audit that findings were compared with."""

    source: str
    tool_version: str
    generated_at: str | None
    notes: Annotated[tuple[str, ...], Meta(description="in what it differs, so that the comparison may mislead")]


class GapRecord(_Record, frozen=True):
    """Something asked for that could not be read."""

    what: str
    why: str
    remedy: str
    kind: Annotated[str, Meta(description="what the members are, the same in every run; empty if it has none")] = ""
    members: Annotated[tuple[str, ...], Meta(description="all of a list of which `what` names the first")] = ()


class Coverage(_Record, frozen=True):
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


class SettleCommand(_Record, frozen=True):
    """A way to answer a question."""

    command: str
    needs: Annotated[str, Meta(description="what it takes beside list on nodes and pods; empty if nothing")]
    shows: Annotated[str, Meta(description="how to read what it prints")]


class Settle(_Record, frozen=True):
    """A question about nodes that are alike, and how to answer it."""

    about: Annotated[str, Meta(description="cgroup, reserve, burstable, runtime:HANDLER, or set_by")]
    confidence: Confidence
    nodes: tuple[str, ...]
    decides: Annotated[
        Change | None, Meta(description="the greatest loss that one of its answers makes, and another does not")
    ]
    commands: Annotated[tuple[SettleCommand, ...], Meta(description="the cheapest first")]
    states: Annotated[str, Meta(description="the line of a states file that says the answer, here the probable one")]


class ScenarioRecord(_Record, frozen=True):
    """The migration that was judged."""

    to: str
    description: str
    thresholds: dict[str, float]
    assumptions: tuple[str, ...]
    rules: Annotated[
        str | None, Meta(description="SHA-256 of what the rules of a --to file say; null for a target in words")
    ] = None


class Verdict(_Record, frozen=True):
    """The answer in one sentence, and the numbers behind it."""

    sentence: str
    workloads: dict[str, Annotated[int, Meta(description="workloads by strongest effect")]]
    findings: dict[str, Annotated[int, Meta(description="findings by severity")]]
    next_steps: tuple[str, ...]


class WeightCount(_Record, frozen=True):
    """How many containers ask for an amount of CPU and get certain numbers: a container has a count for each pair it may get."""

    request_milli: Annotated[Milli | None, Meta(description="request, else limit; null for neither")]
    before_version: Literal["v1", "v2"]
    before: Annotated[Value | None, Meta(description="cpu.shares or cpu.weight; null if the runtime sets none")]
    after_version: Literal["v1", "v2"]
    after: Value | None
    containers: Annotated[int, Meta(ge=1)]


class Audit(_Record, frozen=True):
    """The whole audit."""

    schema_version: str
    tool_version: str
    generated_at: Annotated[str | None, Meta(description="RFC 3339; null without SOURCE_DATE_EPOCH")]
    scenario: ScenarioRecord
    verdict: Verdict
    coverage: Coverage
    nodes: tuple[NodeAudit, ...]
    settle: Annotated[tuple[Settle, ...], Meta(description="what would settle the open questions")]
    workloads: tuple[WorkloadAudit, ...]
    findings: tuple[Finding, ...]
    """Of an audit just made, any sequence: they are packed."""
    weights: tuple[WeightCount, ...] = ()
    container_count: int = 0
    policy: PolicyRecord | None = None
    excepted: Annotated[
        tuple[ExceptedFinding, ...], Meta(description="findings that the policy does not count; not in findings")
    ] = ()
    baseline: BaselineRecord | None = None
    known: Annotated[tuple[Finding, ...], Meta(description="findings that the baseline has too; not in findings")] = ()
    fixed: Annotated[tuple[Finding, ...], Meta(description="findings of the baseline that are gone")] = ()
