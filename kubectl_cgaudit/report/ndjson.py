"""Newline-delimited JSON for data tools: a flat record a container, every field in every record, always of one type."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from kubectl_cgaudit.judge.audit import (
    Audit,
    Confidence,
    ContainerAudit,
    Effect,
    Moment,
    PodAudit,
    WorkloadAudit,
)
from kubectl_cgaudit.report.pieces import Pieces, whole
from kubectl_cgaudit.report.ranges import change, ends, measured, versions

Versions = Annotated[
    Literal["v1", "v2", "v1;v2"] | None, Meta(description="cgroup version; both if it depends on the case")
]
Value = Annotated[
    int | None, Meta(description="cpu.shares on v1, cpu.weight on v2; null if the version depends on the case")
]
Share = Annotated[float | None, Meta(description="fraction of the node's CPU when everything wants CPU")]
AgainstSystem = Annotated[float | None, Meta(description="share / share of system.slice")]
InPod = Annotated[float | None, Meta(description="fraction of the pod's CPU")]
Quota = Annotated[int | None, Meta(description="CPU quota in microseconds a period of 100000; null for none")]
Relative = Annotated[float | None, Meta(description="after / before - 1")]
OfPod = Annotated[str | None, Meta(description="null in the record of a workload's unpredicted pods")]
OfContainer = Annotated[str | None, Meta(description="null in a record that stands for no container")]
Milli = Annotated[int | None, Meta(description="thousandths of a CPU; null if the container has none")]


class ContainerRecord(Struct, frozen=True):
    """A container over all cases. least and greatest are null where a case has no such number."""

    schema_version: Annotated[str, Meta(description="of the audit; fields are only added within a major version")]
    generated_at: Annotated[str | None, Meta(description="RFC 3339; null without SOURCE_DATE_EPOCH")]
    scenario: str
    namespace: str
    workload_kind: str
    workload: str
    effect: Annotated[Effect, Meta(description="the workload's strongest")]
    effects: Annotated[tuple[Effect, ...], Meta(description="the workload's, strongest first")]
    confidence: Annotated[Confidence, Meta(description="the workload's: that of its least sure pod")]
    unpredicted_pods: Annotated[int, Meta(description="active pods this record stands for, in place of containers")] = 0
    pod: OfPod = None
    node: OfPod = None
    qos: OfPod = None
    handler: OfPod = None
    pod_effects: tuple[Effect, ...] = ()
    pod_confidence: Confidence | None = None
    container: OfContainer = None
    role: OfContainer = None
    request_milli: Milli = None
    limit_milli: Milli = None
    cases: Annotated[
        int, Meta(description="possibilities that were predicted: 1 if nothing is open, 0 if none was")
    ] = 0
    before_version: Versions = None
    before_value_least: Value = None
    before_value_greatest: Value = None
    before_share_least: Share = None
    before_share_greatest: Share = None
    before_against_system_least: AgainstSystem = None
    before_against_system_greatest: AgainstSystem = None
    before_in_pod_least: InPod = None
    before_in_pod_greatest: InPod = None
    before_quota_us_least: Quota = None
    before_quota_us_greatest: Quota = None
    after_version: Versions = None
    after_value_least: Value = None
    after_value_greatest: Value = None
    after_share_least: Share = None
    after_share_greatest: Share = None
    after_against_system_least: AgainstSystem = None
    after_against_system_greatest: AgainstSystem = None
    after_in_pod_least: InPod = None
    after_in_pod_greatest: InPod = None
    after_quota_us_least: Quota = None
    after_quota_us_greatest: Quota = None
    change_against_system_least: Relative = None
    change_against_system_greatest: Relative = None
    change_in_pod_least: Relative = None
    change_in_pod_greatest: Relative = None
    pod_change_against_system_least: Relative = None
    pod_change_against_system_greatest: Relative = None


_FRACTIONS = ("share", "against_system", "in_pod")


def pieces(audit: Audit) -> Pieces:
    """A line a container."""
    return Pieces([], lambda workload, _: "".join(lines(workload, audit)), [])


def render(audit: Audit) -> str:
    """All of it."""
    return whole(pieces(audit), audit)


def lines(workload: WorkloadAudit, audit: Audit) -> Iterator[str]:
    """The records of one workload, each with its line break. Its pods are read once, in their order."""
    head = {
        "schema_version": audit.schema_version,
        "generated_at": audit.generated_at,
        "scenario": audit.scenario.to,
        "namespace": workload.namespace,
        "workload_kind": workload.kind,
        "workload": workload.name,
        "effect": workload.effect,
        "effects": workload.effects,
        "confidence": workload.confidence,
    }
    for pod in workload.pods:
        of_pod = {**head, **_pod(pod)}
        for container in pod.containers:
            yield _line({**of_pod, **_container(container)})
        if not pod.containers:
            yield _line(of_pod)
    if workload.unpredicted_pods:
        yield _line({**head, "unpredicted_pods": workload.unpredicted_pods})


def schema() -> str:
    """The JSON Schema of a record, as it lies beside this module in `container.schema.json`."""
    # Every field is in every record, whatever the Struct's defaults say.
    made = msgspec.json.schema(ContainerRecord)
    record = made["$defs"]["ContainerRecord"]
    for field in record["properties"].values():
        field.pop("default", None)
    record["required"] = list(record["properties"])
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "kubectl cgaudit -o ndjson: one line"}
    return json.dumps({**head, **made}, indent=1) + "\n"


def _line(fields: dict[str, Any]) -> str:
    return msgspec.json.encode(ContainerRecord(**fields)).decode() + "\n"


def _pod(pod: PodAudit) -> dict[str, Any]:
    least, greatest = ends([change(case, lambda moment: moment.against_system) for case in pod.cases])
    return {
        "pod": pod.name,
        "node": pod.node,
        "qos": pod.qos,
        "handler": pod.handler,
        "pod_effects": pod.effects,
        "pod_confidence": pod.confidence,
        "pod_change_against_system_least": least,
        "pod_change_against_system_greatest": greatest,
    }


def _container(container: ContainerAudit) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "container": container.name,
        "role": container.role,
        "request_milli": container.request_milli,
        "limit_milli": container.limit_milli,
        "cases": len(container.cases),
    }
    fields |= _moments("before", [case.before for case in container.cases])
    fields |= _moments("after", [case.after for case in container.cases])
    for name, read in (
        ("against_system", lambda moment: moment.against_system),
        ("in_pod", lambda moment: moment.in_pod),
    ):
        extremes = ends([change(case, read) for case in container.cases])
        fields[f"change_{name}_least"], fields[f"change_{name}_greatest"] = extremes
    return fields


def _moments(time: str, moments: list[Moment]) -> dict[str, Any]:
    fields: dict[str, Any] = {f"{time}_version": versions(moments) or None}
    for measure, extremes in measured(moments):
        least, greatest = map(_float, extremes) if measure in _FRACTIONS else extremes
        fields[f"{time}_{measure}_least"], fields[f"{time}_{measure}_greatest"] = least, greatest
    return fields


def _float(value: float | None) -> float | None:
    """A whole number stays a fraction's type: data tools take a column's type from its first lines."""
    return None if value is None else float(value)
