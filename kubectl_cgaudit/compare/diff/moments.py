"""The workloads of an audit with their pods, from the records of its containers."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

from msgspec import Struct

from kubectl_cgaudit.audit.model import Audit, Confidence, Coverage, Effect, Finding, NodeRecord, Target
from kubectl_cgaudit.audit.saved import Saved


class Moment(Struct, frozen=True, gc=False):
    """A pod's or container's cgroup at one moment, as a record has it."""

    version: Literal["v1", "v2"]
    value: int | None
    share: float | None
    against_system: float | None
    in_pod: float | None
    quota_us: int | None


class CaseChange(Struct, frozen=True, gc=False):
    """Before and after in one case."""

    when: str
    before: Moment
    after: Moment
    stops: bool


class ContainerCases(Struct, frozen=True, gc=False):
    """A container in every case."""

    name: str
    role: str
    request_milli: int | None
    limit_milli: int | None
    cases: tuple[CaseChange, ...]


class PodCases(Struct, frozen=True, gc=False):
    """A pod in every case."""

    name: str
    node: str
    qos: str
    handler: str
    confidence: Confidence
    effects: tuple[Effect, ...]
    cases: tuple[CaseChange, ...]
    containers: tuple[ContainerCases, ...]


class WorkloadPods(Struct, frozen=True):
    """A workload with its pods."""

    kind: str
    namespace: str
    name: str
    pods: tuple[PodCases, ...]
    pod_count: int
    unpredicted_pods: int

    @property
    def title(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


class Side(Struct, frozen=True):
    """One of the two audits, with its pods."""

    audit: Audit
    workloads: tuple[WorkloadPods, ...]

    @property
    def nodes(self) -> tuple[NodeRecord, ...]:
        """Its nodes."""
        return self.audit.nodes

    @property
    def coverage(self) -> Coverage:
        """What was read."""
        return self.audit.coverage

    @property
    def target(self) -> Target:
        """What was predicted."""
        return self.audit.target

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, whatever was set apart."""
        audit = self.audit
        return (*audit.findings, *audit.known, *(each.finding for each in audit.excepted))


def side(saved: Saved) -> Side:
    """Return an audit with its pods."""
    pods: dict[tuple[str, str, str], list[PodCases]] = defaultdict(list)
    for key, rows in _by_pod(saved):
        pods[key].append(_pod(rows))
    return Side(
        saved.audit,
        tuple(
            WorkloadPods(
                each.kind,
                each.namespace,
                each.name,
                tuple(pods.get((each.namespace, each.kind, each.name), ())),
                each.pods,
                each.unpredicted_pods,
            )
            for each in saved.audit.workloads
        ),
    )


def _by_pod(saved: Saved) -> Iterator[tuple[tuple[str, str, str], list[Mapping[str, Any]]]]:
    rows: list[Mapping[str, Any]] = []
    for table in saved.containers.frames():
        for row in table.select(_COLUMNS).iter_rows(named=True):
            if rows and (row["namespace"], row["pod"]) != (rows[0]["namespace"], rows[0]["pod"]):
                yield _key(rows[0]), rows
                rows = []
            rows.append(row)
    if rows:
        yield _key(rows[0]), rows


_COLUMNS = (
    *("namespace", "workload_kind", "workload", "pod", "node", "qos", "handler", "confidence", "effects"),
    *("container", "role", "request_milli", "limit_milli", "when", "stops"),
    *(f"{moment}_{name}" for moment in ("before", "after") for name in ("version", "in_pod")),
    *(
        f"{moment}_{of}{name}"
        for moment in ("before", "after")
        for of in ("", "pod_")
        for name in ("value", "share", "against_system", "quota_us")
    ),
    "cases",
)
"""What is compared: a record has three times as many columns."""


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["namespace"], row["workload_kind"], row["workload"]


def _pod(rows: list[Mapping[str, Any]]) -> PodCases:
    first = rows[0]
    return PodCases(
        first["pod"],
        first["node"],
        first["qos"],
        first["handler"],
        first["confidence"],
        cast("tuple[Effect, ...]", tuple(first["effects"])),
        tuple(_change(case, "pod_") for case in (first, *first["cases"])),
        tuple(
            ContainerCases(
                row["container"],
                row["role"],
                row["request_milli"],
                row["limit_milli"],
                tuple(_change(case, "") for case in (row, *row["cases"])),
            )
            for row in rows
        ),
    )


def _change(case: Mapping[str, Any], of: str) -> CaseChange:
    return CaseChange(case["when"], _moment(case, "before", of), _moment(case, "after", of), case["stops"])


def _moment(case: Mapping[str, Any], at: str, of: str) -> Moment:
    return Moment(
        case[f"{at}_version"],
        case[f"{at}_{of}value"],
        case[f"{at}_{of}share"],
        case[f"{at}_{of}against_system"],
        None if of else case[f"{at}_in_pod"],
        case[f"{at}_{of}quota_us"],
    )
