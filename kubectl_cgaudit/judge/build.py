"""The whole audit, from what was collected."""

from collections.abc import Iterator
from typing import cast

from msgspec.structs import replace

from kubectl_cgaudit import __version__
from kubectl_cgaudit.cgroups.version import was_checked
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.collect.progress import Progress, silent
from kubectl_cgaudit.detect.catalogue import catalogue, fits
from kubectl_cgaudit.detect.state import SYSTEM_SLICE
from kubectl_cgaudit.detect.states import Rule
from kubectl_cgaudit.judge import nodes
from kubectl_cgaudit.judge.audit import SCHEMA_VERSION, Audit, Coverage, Finding, ScenarioRecord
from kubectl_cgaudit.judge.compare import Comparison, compare
from kubectl_cgaudit.judge.coverage import cover
from kubectl_cgaudit.judge.findings import Findings
from kubectl_cgaudit.judge.questions import differing, settle
from kubectl_cgaudit.judge.rules import coverage as coverage_rule
from kubectl_cgaudit.judge.rules import inside, outweighed, quota, readers, system, weight
from kubectl_cgaudit.judge.rules import nodes as node_rules
from kubectl_cgaudit.judge.rules.context import Context
from kubectl_cgaudit.judge.scenario import Scenario
from kubectl_cgaudit.judge.thresholds import Thresholds
from kubectl_cgaudit.judge.unmatched import unmatched
from kubectl_cgaudit.judge.verdict import conclude
from kubectl_cgaudit.judge.workloads import Judged
from kubectl_cgaudit.text import capital, these

_NODE_RULES = (
    node_rules.v1,
    node_rules.both_formulas,
    outweighed.outweighed,
    weight.besteffort,
)
POD_RULES = (
    system.LOSSES,
    weight.CROSSINGS,
    inside.MOVES,
    weight.COLLISIONS,
    weight.INDIVISIBLE,
    quota.FAILING_STARTS,
    quota.CHANGED_LIMITS,
    readers.MISREADERS,
)


def audit(
    cluster: Cluster,
    rules: tuple[Rule, ...],
    scenario: Scenario,
    thresholds: Thresholds,
    generated_at: str | None,
    progress: Progress = silent,
) -> Audit:
    """Judge a cluster. Raises UsageError when a states or target file does not fit one of its nodes."""
    comparisons = compare(cluster, rules, scenario, progress)
    coverage = cover(cluster, tuple(unmatched(cluster, comparisons, rules, scenario)), comparisons)
    coverage = replace(coverage, notes=(*coverage.notes, *_next_releases(comparisons, scenario)))
    context = Context(cluster, thresholds)
    judged = Judged(context, comparisons, POD_RULES, progress)
    # Before the workloads are made, which lets go of what is kept of them.
    sure_losses = judged.sure_losses()
    workloads = judged.workloads()
    findings = Findings(_findings(context, comparisons, coverage, judged, progress))
    return Audit(
        schema_version=SCHEMA_VERSION,
        tool_version=__version__,
        generated_at=generated_at,
        scenario=ScenarioRecord(
            scenario.to,
            scenario.describe(),
            thresholds.by_name(),
            tuple(_assumptions(comparisons, scenario)),
            scenario.fingerprint(),
        ),
        verdict=conclude(workloads, findings, coverage, thresholds, sure_losses),
        coverage=coverage,
        nodes=nodes.judge(comparisons, cluster),
        settle=settle(comparisons),
        workloads=workloads,
        # Any sequence will do for who reads it.
        findings=cast("tuple[Finding, ...]", findings),
        weights=judged.weights(),
        container_count=judged.containers(),
    )


def _findings(
    context: Context, comparisons: tuple[Comparison, ...], coverage: Coverage, judged: Judged, progress: Progress
) -> Iterator[Finding]:
    yield from coverage_rule.gaps(coverage.gaps)
    for place, comparison in enumerate(comparisons):
        found = [finding for rule in _NODE_RULES for finding in rule(context, comparison)]
        yield from found
        decided = judged.decided[place].union(*(_decided(comparison, finding) for finding in found))
        yield from node_rules.unknown(comparison, decided)
    yield from judged.findings(progress)


def _decided(comparison: Comparison, finding: Finding) -> set[str]:
    """Return the questions that decide how severe a finding about a node is."""
    if not finding.cases:
        return set()
    by_rank = {case.rank: case.severity for case in finding.cases}
    return differing(comparison, [by_rank.get(rank) for rank in range(1, len(comparison.cases) + 1)])


def _assumptions(comparisons: tuple[Comparison, ...], scenario: Scenario) -> Iterator[str]:
    """What the numbers rest on and nobody measured."""
    yield "Shares are CPU fractions when everything wants CPU at once; with idle siblings every cgroup gets more."
    states = [comparison.state for comparison in comparisons]
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
    conmon = [comparison.node.name for comparison in comparisons if _conmon_in_pods(comparison)]
    if conmon:
        yield (
            f"CRI-O's conmon wants no CPU. On {these('node', conmon)} each container's has weight 100 in its pod and counts "
            "against the pod's limit: it takes its part while it copies logs."
        )
    if scenario.runtimes:
        yield (
            "A handler of which nobody says what it runs is taken to run runc; if --to names another runtime, that one is "
            "predicted too."
        )
    if any(not was_checked(case.then.kubelet_version) for comparison in comparisons for case in comparison.cases):
        yield "Kubelets before 1.25 and after 1.37, and of unknown version, are taken to use the linear formula; nobody looked."
    drivers = [state.basis_of("driver").source for state in states]
    if any(source.startswith("default") for source in drivers):
        yield "The cgroup driver is systemd where the states file does not say otherwise."
    if any(case.now.cgroup != case.then.cgroup for comparison in comparisons for case in comparison.cases):
        yield (
            "On the way to the other cgroup version a top-level cgroup at its default keeps the default; a value set in systemd "
            "keeps its ratio to that, one that a kubelet's reserve set follows the linear formula."
        )


def _conmon_in_pods(comparison: Comparison) -> bool:
    return dict(comparison.state.platform).get("conmon") == "pod"


def _next_releases(comparisons: tuple[Comparison, ...], scenario: Scenario) -> Iterator[str]:
    """Yield which nodes' next release changes what competes at the root, which no other target knows."""
    if scenario.platform or scenario.like:
        return
    for platform in catalogue().targets:
        if not platform.next_of:
            continue
        names = [each.node.name for each in comparisons if fits(each.node, platform.next_of, platform.next_within)]
        if names:
            yield (
                f"{capital(these('node', names))}: {platform.id} changes what competes with pods at the root, which --to "
                f"{scenario.to} leaves as it is: if the move ends there, use --to platform={platform.id}"
            )
