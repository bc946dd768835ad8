"""What every rule gets to see, and how hits on pods become one finding a workload."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from kubectl_cgaudit.collect.model import Cluster, Pod
from kubectl_cgaudit.judge.audit import Finding, Severity, Subject
from kubectl_cgaudit.judge.compare import Comparison, PodCase
from kubectl_cgaudit.judge.condition import condition
from kubectl_cgaudit.judge.rules.catalogue import Rule
from kubectl_cgaudit.judge.scenario import Scenario
from kubectl_cgaudit.judge.thresholds import Thresholds
from kubectl_cgaudit.judge.workloads import Key, key


class Context(Struct, frozen=True):
    """The comparisons of all nodes, and what to measure them by."""

    cluster: Cluster
    comparisons: tuple[Comparison, ...]
    scenario: Scenario
    thresholds: Thresholds

    def pods(self) -> Iterator[tuple[Comparison, Pod, tuple[PodCase, ...]]]:
        """Every pod the user asked about, with its node and cases."""
        for comparison in self.comparisons:
            for pod, cases in comparison.pods():
                if pod.selected:
                    yield comparison, pod, cases


class Hit(Struct, frozen=True):
    """A rule that holds for a pod or container, in one case or in all."""

    workload: Key
    where: tuple[str, ...]
    """Pod and container: hits in several cases at one place are one."""
    when: str
    """The case, or empty if the rule holds in every case."""
    badness: float
    seen: str
    remedy: str


Look = tuple[float, str, str] | None
"""How bad it is, what was seen and what to do; None where the rule does not hold."""


def pod_hits(context: Context, pod: Pod, container: str, looks: Iterable[tuple[PodCase, Look]]) -> Iterator[Hit]:
    """The worst hit of a rule over the cases of one pod or container."""
    looked = list(looks)
    found = [(case.case.when, look) for case, look in looked if look is not None]
    if found:
        _, (badness, seen, remedy) = max(found, key=lambda entry: (entry[1][0], entry[0]))
        when = condition([when for when, _ in found], [case.case.when for case, _ in looked])
        yield Hit(key(pod, context.cluster), (pod.name, container), when, badness, seen, remedy)


def narrowed(hit: Hit, conditions: Iterable[str]) -> Hit:
    """The hit, holding only under further conditions."""
    further = " and ".join(conditions)
    return replace(hit, when=f"{hit.when} and {further}" if hit.when else f"if {further}") if further else hit


def by_workload(rule: Rule, hits: Iterable[Hit], severity: Callable[[float], Severity]) -> Iterator[Finding]:
    """One finding a workload: its worst hit, sure ones first, and how many others there are."""
    groups: dict[Key, list[Hit]] = defaultdict(list)
    for hit in hits:
        groups[hit.workload].append(hit)
    worst = [
        (max(hits, key=lambda hit: (hit.when == "", hit.badness, hit.where)), len(hits) - 1) for hits in groups.values()
    ]
    for hit, others in sorted(worst, key=lambda entry: (-entry[0].badness, entry[0].workload)):
        more = f" The same holds for {others} more of this workload." if others else ""
        namespace, owner = hit.workload
        subject = Subject("workload", owner.name, namespace, owner.kind)
        yield rule.finding(severity(hit.badness), subject, hit.when, hit.seen + more, hit.remedy)


def steps(*levels: tuple[float, Severity]) -> Callable[[float], Severity]:
    """A severity by size: the first level that is reached, else low."""
    return lambda badness: next((severity for least, severity in levels if badness >= least), "low")


def percent(fraction: float) -> str:
    """A fraction as a percentage with two figures that matter: 0.05%, 0.8%, 6.2%, 61%."""
    value = fraction * 100
    return f"{value:.0f}%" if abs(value) >= 10 else f"{value:.1f}%" if abs(value) >= 0.1 else f"{value:.2f}%"


def ratio(value: float) -> str:
    """A ratio with three figures that matter."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
