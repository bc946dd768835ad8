"""The comparison of two moments: what `diff -o json` holds, and all that its renderers get to see.

Its version is `SCHEMA_VERSION`; fields are only added within a major version.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from kubectl_cgaudit.audit.model import Confidence

SCHEMA_VERSION = "1.0"

Outcome = Literal["unpredicted", "otherwise", "as-before", "unknown", "other-cause", "came-true", "unchanged"]
OUTCOMES: tuple[Outcome, ...] = (
    "unpredicted",
    "otherwise",
    "as-before",
    "unknown",
    "other-cause",
    "came-true",
    "unchanged",
)
"""What wants attention first.

unpredicted: it moved, and no change was predicted. otherwise: it moved, but not as predicted. as-before: a change was
predicted, and it is still as before. unknown: it cannot be said. other-cause: it is not as predicted, and something else
than the migration explains it. came-true: as predicted. unchanged: no change was predicted, and none came.
"""
NOT_PREDICTED: tuple[Outcome, ...] = ("unpredicted", "otherwise")
"""Something moved that nobody predicted."""

What = Literal[
    "cgroup",
    "kubepods",
    "system-slice",
    "pods-per-system",
    "runtime",
    "weight",
    "quota-us",
    "share",
    "against-system",
    "in-pod",
    "fate",
]
"""fate: whether it runs after the move."""
Value = str | float


class _Record(Struct, frozen=True, rename="camel"):
    """A part of the comparison."""


def contradicted(node: str) -> str:
    """How a `because` begins that is a contradiction on `node`."""
    return f"the evidence on {node} contradicts what was said: "


SAID_TO_STOP = "it was said not to run after the move, and it runs; its kubelet "
"""How a `because` begins that tells of the kubelet of what was said to stop."""


def said_to_stop(was: str, now: str) -> str:
    """Whether the move was made at all, by the releases of its kubelet before and now."""
    return f"{SAID_TO_STOP}is still {now}" if was == now else f"{SAID_TO_STOP}was {was} and is {now}"


class Measure(_Record, frozen=True):
    """One number or word: as it was, as it was predicted, and as it is now. Unchanged ones are left out."""

    what: What
    of: Annotated[str, Meta(description="the runtime's handler; empty for everything else")]
    outcome: Outcome
    before: Annotated[tuple[Value, ...], Meta(description="more than one where an open question allows several")]
    predicted: tuple[Value, ...]
    now: tuple[Value, ...]


class ContainerDiff(_Record, frozen=True):
    """A container that is in both, or that is gone and of which a change was predicted."""

    name: str
    outcome: Outcome
    measures: tuple[Measure, ...]


class PodDiff(_Record, frozen=True):
    """A pod, or the replica that stands in for it now."""

    name: str
    now_name: Annotated[str, Meta(description="another name where a replica took its place")]
    node: str
    now_node: str
    outcome: Annotated[Outcome, Meta(description="the first of OUTCOMES among the pod's and its containers' measures")]
    confidence: Annotated[Confidence, Meta(description="how sure it is what the pod runs on now")]
    because: Annotated[
        tuple[str, ...], Meta(description="other causes than the migration; evidence against what was said of its node")
    ]
    measures: tuple[Measure, ...]
    containers: tuple[ContainerDiff, ...]


class WorkloadDiff(_Record, frozen=True):
    """A workload that is in both."""

    kind: str
    namespace: str
    name: str
    outcome: Outcome
    pods: tuple[PodDiff, ...]
    new_pods: Annotated[tuple[str, ...], Meta(description="replicas that stand in for none")]
    gone_pods: tuple[str, ...]
    unpredicted_pods: Annotated[int, Meta(description="pods now on nodes that could not be read")]

    @property
    def title(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


class NodeDiff(_Record, frozen=True):
    """A node that is in both, or the one that took its place."""

    name: str
    replaces: Annotated[str | None, Meta(description="the gone node it is compared with; null if the name is the same")]
    outcome: Outcome
    confidence: Confidence
    because: tuple[str, ...]
    measures: tuple[Measure, ...]


class ContainerValues(_Record, frozen=True):
    """What a container has, over the pods and cases of its workload."""

    name: str
    values: tuple[Value, ...]


class LoneWorkload(_Record, frozen=True):
    """A workload that is in one of the two only."""

    kind: str
    namespace: str
    name: str
    pod_count: int
    sure: Annotated[bool, Meta(description="false where the other audit is incomplete: it may be there, unread")]
    containers: tuple[ContainerValues, ...]

    @property
    def title(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


class LoneNode(_Record, frozen=True):
    """A node that is in one of the two only."""

    name: str
    allocatable_milli: int
    pod_count: int
    sure: bool
    cgroup: tuple[Value, ...]


class Side(_Record, frozen=True):
    """One of the two audits."""

    source: str
    tool_version: str
    generated_at: str | None
    filter: str
    complete: bool
    gaps: Annotated[tuple[str, ...], Meta(description="what could not be read")]
    nodes: int
    workloads: int
    input: Annotated[str, Meta(description="SHA-256 of what was read, as in the audit")] = ""


class Summary(_Record, frozen=True):
    """The answer in one sentence, and the numbers behind it."""

    sentence: str
    moved: Annotated[bool, Meta(description="whether something moved that nobody predicted: --exit-code is 4")]
    nodes: Annotated[dict[str, int], Meta(description="nodes by outcome")]
    workloads: Annotated[dict[str, int], Meta(description="workloads by outcome")]
    notes: tuple[str, ...]


class Diff(_Record, frozen=True):
    """The whole comparison."""

    schema_version: str
    tool_version: str
    to: str
    description: Annotated[str, Meta(description="the migration that was predicted before")]
    thresholds: dict[str, float]
    before: Side
    after: Side
    summary: Summary
    nodes: tuple[NodeDiff, ...]
    new_nodes: tuple[LoneNode, ...]
    gone_nodes: tuple[LoneNode, ...]
    workloads: tuple[WorkloadDiff, ...]
    new_workloads: tuple[LoneWorkload, ...]
    gone_workloads: tuple[LoneWorkload, ...]
