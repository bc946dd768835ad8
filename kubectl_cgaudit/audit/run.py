"""The whole audit, from what was collected."""

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl
from msgspec.structs import replace

from kubectl_cgaudit import __version__
from kubectl_cgaudit.audit import judge
from kubectl_cgaudit.audit.cases import NodeCases, node_cases
from kubectl_cgaudit.audit.coverage import cover
from kubectl_cgaudit.audit.findings import findings
from kubectl_cgaudit.audit.inputs import Tables, tables
from kubectl_cgaudit.audit.judge import Judged
from kubectl_cgaudit.audit.model import EFFECTS, SCHEMA, SEVERITIES, Audit, Coverage, Target, Verdict
from kubectl_cgaudit.audit.nodes import node_records
from kubectl_cgaudit.audit.questions import questions
from kubectl_cgaudit.audit.rules import misreaders
from kubectl_cgaudit.audit.rules.base import Context
from kubectl_cgaudit.audit.thresholds import Thresholds
from kubectl_cgaudit.audit.unmatched import unmatched
from kubectl_cgaudit.audit.workloads import weights, workloads
from kubectl_cgaudit.cgroups.version import was_checked
from kubectl_cgaudit.collect.digest import digest
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.collect.progress import Progress, silent
from kubectl_cgaudit.detect.catalogue import catalogue, fits
from kubectl_cgaudit.detect.state import SYSTEM_SLICE
from kubectl_cgaudit.detect.states import Rule
from kubectl_cgaudit.detect.target import Scenario
from kubectl_cgaudit.text import capital, these


class Run(NamedTuple):
    """An audit, and the tables it was made from."""

    audit: Audit
    tables: Tables
    judged: Judged
    context: Context


def run(
    cluster: Cluster,
    rules: tuple[Rule, ...],
    scenario: Scenario,
    thresholds: Thresholds,
    time: str | None,
    progress: Progress = silent,
) -> Run:
    """Audit a cluster. Raises UsageError when a states or target file does not fit one of its nodes.

    `time` is RFC 3339, or None in reproducible runs.
    """
    nodes = node_cases(cluster, rules, scenario, progress)
    coverage = cover(cluster, tuple(unmatched(cluster, nodes, rules, scenario)), nodes)
    coverage = replace(coverage, notes=(*coverage.notes, *_next_releases(nodes, scenario)))
    return judged_run(cluster, tables(nodes, cluster), scenario, thresholds, coverage, time, progress)


def judged_run(
    cluster: Cluster,
    built: Tables,
    scenario: Scenario,
    thresholds: Thresholds,
    coverage: Coverage,
    time: str | None,
    progress: Progress = silent,
) -> Run:
    """Return the audit of tables that are made."""
    nodes = built.nodes
    context = judging(built, thresholds)
    judged = judge.judge(built.inputs, built.setups, built.cases, context, built.after, progress)
    of_workloads = workloads(built, judged, cluster)
    found = findings(built, judged, of_workloads, coverage, thresholds)
    effects = [workload.effect for workload in of_workloads]
    audit = Audit(
        schema=SCHEMA,
        tool_version=__version__,
        time=time,
        cluster=dict(cluster.reading.named),
        input=digest(cluster),
        target=Target(
            scenario.to,
            scenario.describe(),
            thresholds.by_name(),
            tuple(_assumptions(nodes, scenario)),
            scenario.fingerprint(),
        ),
        verdict=Verdict(
            {effect: effects.count(effect) for effect in EFFECTS},
            {severity: sum(each.severity == severity for each in found) for severity in reversed(SEVERITIES)},
        ),
        coverage=coverage,
        nodes=node_records(built, judged, cluster),
        questions=questions(built, judged),
        workloads=of_workloads,
        findings=found,
        weights=weights(judged),
        container_count=_containers(built),
    )
    return Run(audit, built, judged, context)


def judging(built: Tables, thresholds: Thresholds, images: pl.DataFrame | None = None) -> Context:
    """Return what the rules judge by; `images` are the traits of the images, where they are known already."""
    traits = misreaders.traits(list(built.images) or [""]) if images is None else images
    return Context(thresholds, built.inputs.nodes["capacity"], traits)


def _containers(built: Tables) -> int:
    selected = built.inputs.pods["selected"].gather(built.inputs.containers["pod"])
    return int((built.inputs.containers["present"] & selected).sum())


def _assumptions(nodes: tuple[NodeCases, ...], scenario: Scenario) -> Iterator[str]:
    """What the numbers rest on and nobody measured."""
    yield "Shares are CPU fractions when everything wants CPU at once; with idle siblings every cgroup gets more."
    states = [node.state for node in nodes]
    if any(state.system_slice is None and SYSTEM_SLICE not in dict(state.reserved) for state in states):
        yield "system.slice has its default (1024 shares on v1, weight 100 on v2) where the states file does not say otherwise."
    if not all(state.root for state in states):
        yield "Beside kubepods only system.slice wants CPU at the root, where the states file names no other cgroup."
    yield "CPU limits do not cap the shares: a container may be held below its share by its own limit."
    yield "Pause, init and debug containers never want CPU; every other container of an active pod does."
    yield (
        "Every container can use all CPUs of its node. One with fewer runnable threads than CPUs has its whole weight on fewer "
        "CPUs."
    )
    yield (
        "Kernel threads want no CPU. Each competes at the root as if it had weight 100: on v2 they gain against pods, and "
        "raising system.slice does nothing for them."
    )
    conmon = [node.node.name for node in nodes if dict(node.state.platform).get("conmon") == "pod"]
    if conmon:
        yield (
            f"CRI-O's conmon wants no CPU. On {these('node', conmon)} each container's has weight 100 in its pod and counts "
            "against the pod's limit: it takes its part while it copies logs."
        )
    if scenario.runtimes:
        yield (
            "A handler of unknown runtime is taken to run runc; if --to names another runtime, that one is predicted too."
        )
    if any(not was_checked(case.after.kubelet_version) for node in nodes for case in node.cases):
        yield "Kubelets before 1.25 and after 1.37, and of unknown version, are taken to use the linear formula; not checked."
    if any(state.basis_of("driver").source.startswith("default") for state in states):
        yield "The cgroup driver is systemd where the states file does not say otherwise."
    if any(case.before.cgroup != case.after.cgroup for node in nodes for case in node.cases):
        yield (
            "On the way to the other cgroup version a top-level cgroup at its default keeps the default. A value set in systemd "
            "keeps its ratio to the default. A value set by a kubelet's reserve follows the linear formula."
        )


def _next_releases(nodes: tuple[NodeCases, ...], scenario: Scenario) -> Iterator[str]:
    """Yield which nodes' next release changes what competes at the root, which no other target knows."""
    if scenario.platform or scenario.like:
        return
    for platform in catalogue().targets:
        if not platform.next_of:
            continue
        names = [each.node.name for each in nodes if fits(each.node, platform.next_of, platform.next_within)]
        if names:
            yield (
                f"{capital(these('node', names))}: {platform.id} changes what competes with pods at the root, which --to "
                f"{scenario.to} leaves unchanged: if the move ends there, use --to platform={platform.id}"
            )
