"""Metrics for node exporter's textfile collector or a Pushgateway. Few series, whatever the size of the cluster."""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TextIO

from kubectl_cgaudit.audit.model import CONFIDENCES, EFFECTS, SEVERITIES, ActionKind, Audit
from kubectl_cgaudit.report import rules
from kubectl_cgaudit.report.escape import visible
from kubectl_cgaudit.report.options import Options, Rendered

_Sample = tuple[Mapping[str, str], int]
_KINDS: tuple[ActionKind, ...] = ("inspect", "node", "workload")
_OTHER = "other"


def write(saved: Rendered, out: TextIO, options: Options) -> None:  # noqa: ARG001
    """Write the metrics of an audit."""
    out.write(render(saved.audit))


def render(audit: Audit) -> str:
    """Return Prometheus' text format. Every series is there also at 0, so that an alert ends; never a name of the cluster."""
    return "".join(_text(audit))


def _text(audit: Audit) -> Iterator[str]:
    for name, help_, samples in _metrics(audit):
        yield f"# HELP cgaudit_{name} {help_}\n# TYPE cgaudit_{name} gauge\n"
        for labels, value in samples:
            # Without the target on each, two jobs with two targets would write the same series.
            shown = ",".join(f'{key}="{_label(text)}"' for key, text in {**labels, "to": audit.target.to}.items())
            yield f"cgaudit_{name}{{{shown}}} {value}\n"


def _label(text: str) -> str:
    """Escape a label's value; line breaks are escaped by `visible` already."""
    return visible(text).replace("\\", "\\\\").replace('"', '\\"')


def _metrics(audit: Audit) -> Iterator[tuple[str, str, Iterable[_Sample]]]:
    yield (
        "info",
        "Which cgaudit wrote this, for which target.",
        [({"version": audit.tool_version, "schema": audit.schema}, 1)],
    )
    when = _seconds(audit.time)
    if when is not None:
        yield "last_run_timestamp_seconds", "Time of the run, in seconds since 1970.", [({}, when)]
    yield from _of_reading(audit)
    yield from _of_nodes(audit)
    yield from _of_workloads(audit)
    yield from _of_findings(audit)
    kinds = Counter(action.kind for action in audit.actions)
    yield "actions", "Proposed actions, by kind.", [({"kind": kind}, kinds[kind]) for kind in _KINDS]


def _of_reading(audit: Audit) -> Iterator[tuple[str, str, Iterable[_Sample]]]:
    coverage = audit.coverage
    unpredicted = sum(workload.unpredicted_pods for workload in audit.workloads)
    yield "coverage_complete", "1 if everything that was asked for was read, else 0.", [({}, int(coverage.complete))]
    yield "coverage_gaps", "What was asked for and could not be read.", [({}, len(coverage.gaps))]
    yield "nodes_read", "Nodes that were read.", [({}, coverage.nodes_read)]
    yield "pods_read", "Pods that were read.", [({}, coverage.pods_read)]
    yield "pods_audited", "Pods whose CPU share was predicted.", [({}, coverage.pods_audited)]
    yield "pods_unpredicted", "Active pods on nodes that could not be read.", [({}, unpredicted)]


def _of_nodes(audit: Audit) -> Iterator[tuple[str, str, Iterable[_Sample]]]:
    confidences = Counter(node.confidence for node in audit.nodes)
    by_confidence: list[_Sample] = [({"confidence": each}, confidences[each]) for each in CONFIDENCES]
    yield "nodes", "Linux nodes, by how surely it is known what they run.", by_confidence
    groups = Counter(known.value if (known := node.known.get("cgroup")) else None for node in audit.nodes)
    by_version: list[_Sample] = [({"cgroup": each}, groups[each]) for each in ("v1", "v2")]
    by_version.append(({"cgroup": "unknown"}, len(audit.nodes) - groups["v1"] - groups["v2"]))
    yield "nodes_cgroup", "Linux nodes, by the cgroup version they run now, or probably run.", by_version


def _of_workloads(audit: Audit) -> Iterator[tuple[str, str, Iterable[_Sample]]]:
    effects = Counter(workload.effect for workload in audit.workloads)
    by_effect: list[_Sample] = [({"effect": effect}, effects[effect]) for effect in EFFECTS]
    yield "workloads", "Workloads by their strongest effect. unknown is not a pass.", by_effect
    unknown = sum("unknown" in workload.effects for workload in audit.workloads)
    yield "workloads_unknown", "Workloads with an effect that depends on an open question.", [({}, unknown)]
    probable = sum(bool(workload.other_effects) for workload in audit.workloads)
    yield "workloads_probable", "Workloads with another effect if a default was overridden.", [({}, probable)]


def _of_findings(audit: Audit) -> Iterator[tuple[str, str, Iterable[_Sample]]]:
    states: list[_Sample] = [
        ({"state": "counted"}, len(audit.findings)),
        ({"state": "known"}, len(audit.known)),
        ({"state": "excepted"}, len(audit.excepted)),
        ({"state": "fixed"}, len(audit.fixed)),
    ]
    yield "findings_state", "Findings that count, are in a baseline, are excepted by a policy, or are gone.", states
    # Rules that are none of ours are one, as audits are also read from files, and labels stay few.
    found = Counter((each.rule if each.rule in rules.BY_ID else _OTHER, each.severity) for each in audit.findings)
    named = [*rules.BY_ID, *([_OTHER] if any(rule == _OTHER for rule, _ in found) else [])]
    by_rule: list[_Sample] = [
        ({"rule": rule, "severity": severity}, found[rule, severity]) for rule in named for severity in SEVERITIES
    ]
    yield "findings", "Findings that count, by rule and severity.", by_rule


def _seconds(time: str | None) -> int | None:
    with contextlib.suppress(ValueError):
        return int(datetime.strptime(time or "", "%Y-%m-%dT%H:%M:%S%z").timestamp())
    return None
