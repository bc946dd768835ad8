"""Metrics for node exporter's textfile collector or a Pushgateway. Few series, whatever the size of the cluster."""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from kubectl_cgaudit.judge.audit import CONFIDENCES, EFFECTS, SEVERITIES, Audit
from kubectl_cgaudit.judge.findings import faces
from kubectl_cgaudit.judge.rules import catalogue
from kubectl_cgaudit.report.escape import visible

_Sample = tuple[Mapping[str, str], int]
_OTHER = "other"


def render(audit: Audit) -> str:
    """Prometheus' text format. Every series is there also at 0, so that an alert ends; never a pod's or container's name."""
    return "".join(_text(audit))


def _text(audit: Audit) -> Iterator[str]:
    for name, help_, samples in _metrics(audit):
        yield f"# HELP cgaudit_{name} {help_}\n# TYPE cgaudit_{name} gauge\n"
        for labels, value in samples:
            # Without the scenario on each, two jobs with two targets would write the same series.
            shown = ",".join(f'{key}="{_label(text)}"' for key, text in {**labels, "to": audit.scenario.to}.items())
            yield f"cgaudit_{name}{{{shown}}} {value}\n"


def _label(text: str) -> str:
    """Line breaks are escaped by `visible` already."""
    return visible(text).replace("\\", "\\\\").replace('"', '\\"')


def _metrics(audit: Audit) -> Iterator[tuple[str, str, Iterable[_Sample]]]:
    coverage = audit.coverage
    versions = {"version": audit.tool_version, "schema_version": audit.schema_version}
    yield "info", "Which cgaudit wrote this, and the scenario it judged.", [(versions, 1)]
    when = _seconds(audit.generated_at)
    if when is not None:
        yield "last_run_timestamp_seconds", "SOURCE_DATE_EPOCH of the run, in seconds since 1970.", [({}, when)]
    yield "coverage_complete", "1 if all that was asked for was read, else 0.", [({}, int(coverage.complete))]
    yield "coverage_gaps", "What was asked for and could not be read.", [({}, len(coverage.gaps))]
    yield "nodes_read", "Nodes that were read.", [({}, coverage.nodes_read)]
    confidences = Counter(node.confidence for node in audit.nodes)
    nodes: list[_Sample] = [({"confidence": each}, confidences[each]) for each in CONFIDENCES]
    yield "nodes", "Linux nodes, by how surely it is known what they run.", nodes
    groups = Counter(known.value if (known := node.known.get("cgroup")) else None for node in audit.nodes)
    of_version: list[_Sample] = [({"cgroup": each}, groups[each]) for each in ("v1", "v2")]
    of_version.append(({"cgroup": "unknown"}, len(audit.nodes) - groups["v1"] - groups["v2"]))
    yield "nodes_cgroup", "Linux nodes, by the cgroup version they run now, or probably run.", of_version
    yield "pods_read", "Pods that were read.", [({}, coverage.pods_read)]
    yield "pods_audited", "Pods whose CPU share was predicted.", [({}, coverage.pods_audited)]
    missing = sum(workload.unpredicted_pods for workload in audit.workloads)
    yield "pods_unpredicted", "Active pods on nodes that could not be read.", [({}, missing)]
    workloads: list[_Sample] = [({"effect": effect}, audit.verdict.workloads.get(effect, 0)) for effect in EFFECTS]
    yield "workloads", "Workloads by their strongest effect. unknown is no pass.", workloads
    unknown = sum("unknown" in workload.effects for workload in audit.workloads)
    yield "workloads_unknown", "Workloads of which something cannot be said, also where they lose.", [({}, unknown)]
    probable = sum(bool(workload.other_effects) for workload in audit.workloads)
    help_ = "Workloads to which something else happens if a default is overridden."
    yield "workloads_probable", help_, [({}, probable)]
    states: list[_Sample] = [
        ({"state": "counted"}, len(audit.findings)),
        ({"state": "known"}, len(audit.known)),
        ({"state": "excepted"}, len(audit.excepted)),
        ({"state": "fixed"}, len(audit.fixed)),
    ]
    yield (
        "findings_state",
        "Findings that count, and those a baseline knows, a policy excepts, or that are gone.",
        states,
    )
    yield "findings", "Findings that count, by rule and severity.", list(_findings(audit))


def _findings(audit: Audit) -> Iterator[_Sample]:
    """Rules that are none of ours are one, as audits are also read from files, and labels stay few."""
    found: Counter[tuple[str, str]] = Counter()
    for (severity, rule, _), amount in faces(audit.findings):
        found[rule if rule in catalogue.IDS else _OTHER, severity] += amount
    rules = [*catalogue.IDS, *([_OTHER] if any(rule == _OTHER for rule, _ in found) else [])]
    for rule in rules:
        for severity in SEVERITIES:
            yield {"rule": rule, "severity": severity}, found[rule, severity]


def _seconds(generated_at: str | None) -> int | None:
    with contextlib.suppress(ValueError):
        when = datetime.strptime(generated_at or "", "%Y-%m-%dT%H:%M:%SZ")
        return int(when.replace(tzinfo=UTC).timestamp())
    return None
