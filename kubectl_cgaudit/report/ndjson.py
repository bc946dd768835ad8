"""Newline-delimited JSON for data tools: a flat record a container, every field in every record, always of one type."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from kubectl_cgaudit.judge.audit import Audit, Confidence, Effect, WorkloadAudit
from kubectl_cgaudit.judge.figures import Figures, Form
from kubectl_cgaudit.report.blanks import BLANK, Kept, filled, with_blanks
from kubectl_cgaudit.report.escape import json_text
from kubectl_cgaudit.report.pieces import Part, Pieces
from kubectl_cgaudit.report.ranges import CHANGES, OWN, Face, faces_of, held, parts_of, rows, versions
from kubectl_cgaudit.report.words import otherwise

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
    """A container over all leading cases. least and greatest are null where a case has no such number."""

    schema_version: Annotated[str, Meta(description="of the audit; fields are only added within a major version")]
    generated_at: Annotated[str | None, Meta(description="RFC 3339; null without SOURCE_DATE_EPOCH")]
    scenario: str
    namespace: str
    workload_kind: str
    workload: str
    effect: Annotated[Effect, Meta(description="the workload's strongest")]
    effects: Annotated[tuple[Effect, ...], Meta(description="the workload's, strongest first")]
    other_effects: Annotated[
        tuple[str, ...], Meta(description="the workload's where a default is overridden: `if cgroup v1: loses`")
    ]
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
        int, Meta(description="leading cases that were predicted: 1 if nothing is unknown, 0 if none was")
    ] = 0
    cases_stopping: Annotated[
        int,
        Meta(description="in how many of them the pod does not run after the move; these have no after and no change"),
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


def pieces(audit: Audit) -> Pieces:
    """A line a container."""
    parts, records = Kept(parts_of), Kept(_records)
    whole_audit = {
        "schema_version": audit.schema_version,
        "generated_at": audit.generated_at,
        "scenario": audit.scenario.to,
    }

    def each(workload: WorkloadAudit, _first: bool) -> Part:
        head = {
            **whole_audit,
            "namespace": workload.namespace,
            "workload_kind": workload.kind,
            "workload": workload.name,
            "effect": workload.effect,
            "effects": workload.effects,
            "other_effects": otherwise(workload),
            "confidence": workload.confidence,
        }
        begin = _record({**head, "pod": BLANK})[0].removesuffix('"pod":')
        alone = {**head, "unpredicted_pods": workload.unpredicted_pods}
        return Part(
            pod=lambda pod, _: _lines(pod, begin, records.of(pod.form), rows(pod, parts)),
            after=f"{json_text(''.join(_record(alone)))}\n" if workload.unpredicted_pods else "",
        )

    return Pieces([], each)


class _OfPod(Struct, gc=False):
    """The fields of a record that say of which pod it is: what stands between its workload and its container."""

    pod: str
    node: str
    qos: str
    handler: str
    pod_effects: tuple[Effect, ...]
    pod_confidence: Confidence


def _lines(pod: Figures, begin: str, records: Sequence[Sequence[str]], numbers: Sequence[Sequence[str]]) -> str:
    """The records of a pod, each with its line break. They begin with what they say of the workload."""
    own = _OfPod(pod.name, pod.node, pod.qos, pod.handler, pod.effects, pod.confidence)
    begin += msgspec.json.encode(own).decode()[1:-1]
    return json_text("".join([filled(begin, record, row) for record, row in zip(records, numbers, strict=True)]))


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


def _record(fields: dict[str, Any]) -> list[str]:
    return with_blanks(ContainerRecord(**fields))


def _records(form: Form) -> list[tuple[str, ...]]:
    """The record of each container of a pod, after what it says of the pod, with blanks for the pod's numbers."""
    return [_of_face(face) for face in faces_of(form)] or [_of_face(None)]


@lru_cache(maxsize=2048)
def _of_face(face: Face | None) -> tuple[str, ...]:
    fields = dict(_EMPTY)
    if face:
        container, moments, stops = face
        fields |= {
            "container": container.name,
            "role": container.role,
            "request_milli": container.request_milli,
            "limit_milli": container.limit_milli,
            "cases": len(moments) // 2,
            "cases_stopping": sum(stops),
        }
        for time, after in (("before", False), ("after", True)):
            fields[f"{time}_version"] = versions(face, after=after) or None
            for name, extremes in zip(("value", "quota_us"), held(face, after=after), strict=True):
                fields[f"{time}_{name}_least"], fields[f"{time}_{name}_greatest"] = extremes
    *texts, last = _record(fields)[len(_OfPod.__struct_fields__) :]
    return (*texts, f"{last}\n")


_EMPTY: dict[str, Any] = {
    **dict.fromkeys(("schema_version", "generated_at", "scenario", "namespace", "workload_kind", "workload"), ""),
    **dict.fromkeys(("effect", "effects", "other_effects", "confidence"), ""),
    **dict.fromkeys(("pod", "node", "qos", "handler", "pod_effects", "pod_confidence"), BLANK),
    **{
        f"{name}_{end}": BLANK
        for name in (*(f"{time}_{measure}" for time in ("before", "after") for measure in OWN), *CHANGES)
        for end in ("least", "greatest")
    },
}
"""A record with nothing in it but blanks."""
