"""Two audits compared: what the first predicted, held against what the second found."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

from kubectl_cgaudit import __version__
from kubectl_cgaudit.audit.baseline import may_differ, waiting
from kubectl_cgaudit.audit.model import NodeRecord
from kubectl_cgaudit.audit.nodes import overridden
from kubectl_cgaudit.audit.saved import Saved
from kubectl_cgaudit.audit.thresholds import Thresholds
from kubectl_cgaudit.collect.progress import Progress, silent
from kubectl_cgaudit.compare.diff import match, moments, nodes, pods, summary
from kubectl_cgaudit.compare.diff.moments import WorkloadPods
from kubectl_cgaudit.compare.diff.outcome import Limit, worst
from kubectl_cgaudit.compare.diff.types import (
    OUTCOMES,
    SCHEMA_VERSION,
    ContainerValues,
    Diff,
    LoneWorkload,
    Side,
    Value,
    WorkloadDiff,
)
from kubectl_cgaudit.compare.diff.unseen import Unseen
from kubectl_cgaudit.errors import InputError

Key = tuple[str, str, str]


def diff(before: Saved, after: Saved, progress: Progress = silent) -> Diff:
    """Hold the predictions of `before` against the first moment of `after`; what that one predicts does not matter.

    Raises InputError where the two report different parts of a cluster.
    """
    if before.audit.coverage.filter != after.audit.coverage.filter:
        first, second = (each.audit.coverage.filter or "everything" for each in (before, after))
        raise InputError(f"the first reports {first} and the second {second}; make both with the same -n and -l")
    return _Comparison(moments.side(before), moments.side(after)).result(progress)


class _Comparison:
    """Both audits, with what their nodes and pods are looked up by."""

    def __init__(self, before: moments.Side, after: moments.Side) -> None:
        self.before, self.after = before, after
        said, default = before.target.thresholds, Thresholds()
        system = Limit(said.get("system-loss", default.system_loss), said.get("system-gain", default.system_gain))
        move = said.get("pod-move", default.pod_move)
        self.limits = pods.Limits(system, Limit(move, move))
        self.unseen = Unseen(before.coverage.gaps), Unseen(after.coverage.gaps)
        self.nodes = match.nodes(before.nodes, after.nodes, self._apart())
        self.stood_for = {new.name: old.name for old, new in self.nodes.pairs}
        self.old = {node.name: node for node in before.nodes}
        self.new = {node.name: node for node in after.nodes}
        self.facts = {node.name: match.facts(node) for node in before.nodes}
        self.failing = {
            (each.subject.namespace, each.subject.name, each.subject.workload_kind)
            for each in before.findings
            if each.rule == "CGA301"
        }
        self.beside = [_populations(audit) for audit in (before, after)]
        self._seen: dict[tuple[str, str], pods.Around] = {}

    def result(self, progress: Progress) -> Diff:
        """The whole comparison."""
        before, after = ({_key(each): each for each in audit.workloads} for audit in (self.before, self.after))
        found_nodes = tuple(nodes.compare(old, new, self.limits.system) for old, new in self.nodes.pairs)
        both, keys = [], sorted(set(before) & set(after))
        for done, key in enumerate(keys):
            progress("workloads", done, len(keys))
            both.append(self._workload(before[key], after[key]))
        found = tuple(sorted(both, key=lambda each: OUTCOMES.index(each.outcome)))
        was_read, is_read = self.before.coverage.complete, self.after.coverage.complete
        was_waiting, is_waiting = waiting(self.before.coverage), waiting(self.after.coverage)

        def is_new(each: WorkloadPods) -> bool:
            return was_read and each.title not in was_waiting and not self._may_differ(each)

        def is_gone(each: WorkloadPods) -> bool:
            return is_read and each.title not in is_waiting and not self._may_differ(each)

        result = Diff(
            schema_version=SCHEMA_VERSION,
            tool_version=__version__,
            to=self.before.target.to,
            description=self.before.target.description,
            thresholds={
                name: value
                for name, value in self.before.target.thresholds.items()
                if name in ("system-loss", "system-gain", "pod-move")
            },
            before=_side(self.before),
            after=_side(self.after),
            summary=summary.NOTHING,
            nodes=found_nodes,
            new_nodes=tuple(nodes.alone(node, sure=was_read) for node in self.nodes.new),
            gone_nodes=tuple(nodes.alone(node, sure=is_read) for node in self.nodes.gone),
            workloads=found,
            new_workloads=_only_in(after, before, is_new),
            gone_workloads=_only_in(before, after, is_gone),
        )
        baseless = [new.name for old, new in self.nodes.pairs if not nodes.same_ground(old, new)]
        unseen = sorted(new for (old, new), around in self._seen.items() if around.unseen)
        defaults = [
            f"{default.node} ({default.words()})"
            for old, new in self.nodes.pairs
            if old.name == new.name
            for default in overridden(old.name, old.known, old.cases[0].after, new.known)
        ]
        doubts = summary.Doubts(self.nodes.ambiguous, baseless, unseen, self._rounded(found), defaults)
        return summary.concluded(result, self.before.nodes, self.after.nodes, doubts)

    def _may_differ(self, workload: WorkloadPods) -> bool:
        return may_differ(workload.kind, self.before.coverage, self.after.coverage)

    def _apart(self) -> set[str]:
        """Nodes that one audit lacks and that may be there all the same: nothing takes their place."""
        was, now = self.unseen
        gone = {node.name for node in self.before.nodes if now.node(node.name)}
        return gone | {node.name for node in self.after.nodes if was.node(node.name)}

    def _workload(self, before: WorkloadPods, after: WorkloadPods) -> WorkloadDiff:
        matched = match.pods(
            before.pods,
            after.pods,
            self.facts.__getitem__,
            lambda name: self.facts.get(self.stood_for.get(name, "")),
            self.stood_for.get,
        )
        found = tuple(
            pods.compare(old, new, self._around(old.node, new.node), self.limits, may_fail=_key(before) in self.failing)
            for old, new in matched.pairs
        )
        # Where nothing could be compared, or pods could not be read, nothing can be said of the whole.
        unread = bool(before.unpredicted_pods or after.unpredicted_pods or not found)
        outcomes = [each.outcome for each in found]
        return WorkloadDiff(
            kind=before.kind,
            namespace=before.namespace,
            name=before.name,
            outcome=worst([*outcomes, "unknown"] if unread else outcomes),
            pods=found,
            new_pods=tuple(pod.name for pod in matched.new),
            gone_pods=tuple(pod.name for pod in matched.gone),
            unpredicted_pods=after.unpredicted_pods,
        )

    def _rounded(self, found: Iterable[WorkloadDiff]) -> Sequence[str]:
        """Nodes now where a quota is open because how it is rounded is taken for granted."""
        names = set()
        for pod in (pod for workload in found for pod in workload.pods):
            around = self._seen[pod.node, pod.now_node]
            measures = (*pod.measures, *(measure for each in pod.containers for measure in each.measures))
            is_open = any(each.what == "quota-us" and each.outcome == "unknown" for each in measures)
            if is_open and (around.unnamed or not around.driver_known):
                names.add(pod.now_node)
        return sorted(names)

    def _is_unseen(self, side: int, node: NodeRecord) -> bool:
        """Whether what competes on a node of one audit may not all be known; audits of schema 1.0 count others only."""
        counted_only = not node.cases[0].before.qos and self.beside[side][node.name].total() < node.pods
        return counted_only or self.unseen[side].shares(node.name)

    def _around(self, old: str, new: str) -> pods.Around:
        """What is around the pods that were on one node and are on another, or on the same."""
        if (old, new) not in self._seen:
            was, now = self.old[old], self.new[new]
            stood_for = self.stood_for.get(new)
            self._seen[old, new] = pods.Around(
                other_node=stood_for is None or self.facts[stood_for] != self.facts[old],
                other_pods=was.allocatable_milli != now.allocatable_milli
                or was.pods != now.pods
                or self.beside[0][old] != self.beside[1][new]
                or not nodes.as_many(was, now),
                unseen=self._is_unseen(0, was) or self._is_unseen(1, now),
                version_known=len({case.before.cgroup for case in now.cases}) == 1,
                untold=nodes.untold(was, now),
                same_ground=nodes.same_ground(was, now),
                driver_known=nodes.driver_known(was, now),
                unnamed=nodes.unnamed(was) | nodes.unnamed(now),
                contradictions=nodes.against(was, now),
                contested=nodes.contested(was, now, measured=True),
                guessed=nodes.contested(was, now, measured=False),
                same_evidence=nodes.same_evidence(was, now),
                lost=any(case.stops for case in was.cases),
                kubelets=(was.kubelet_version, now.kubelet_version),
            )
        return self._seen[old, new]


def _key(workload: WorkloadPods) -> Key:
    return workload.namespace, workload.name, workload.kind


def _populations(audit: moments.Side) -> dict[str, Counter[Hashable]]:
    """What runs on each node, by workload and by what its pods ask for."""
    found: dict[str, Counter[Hashable]] = {node.name: Counter() for node in audit.nodes}
    for workload in audit.workloads:
        for pod in workload.pods:
            found[pod.node][_key(workload), match.spec(pod)] += 1
    return found


def _side(of: moments.Side) -> Side:
    audit, coverage = of.audit, of.coverage
    return Side(
        source=coverage.source,
        tool_version=audit.tool_version,
        generated_at=audit.time,
        filter=coverage.filter,
        complete=coverage.complete,
        gaps=tuple(f"{gap.what}: {gap.why}" for gap in coverage.gaps),
        nodes=len(audit.nodes),
        workloads=len(audit.workloads),
        input=audit.input,
    )


def _only_in(
    one: Mapping[Key, WorkloadPods], other: Mapping[Key, WorkloadPods], is_sure: Callable[[WorkloadPods], bool]
) -> tuple[LoneWorkload, ...]:
    """What one audit has and the other has not, if that is sure."""
    lone = [one[key] for key in sorted(set(one) - set(other))]
    return tuple(_alone(each, sure=is_sure(each)) for each in lone)


def _alone(workload: WorkloadPods, *, sure: bool) -> LoneWorkload:
    names = dict.fromkeys(each.name for pod in workload.pods for each in pod.containers)
    return LoneWorkload(
        kind=workload.kind,
        namespace=workload.namespace,
        name=workload.name,
        pod_count=workload.pod_count + workload.unpredicted_pods,
        sure=sure,
        containers=tuple(ContainerValues(name, tuple(sorted(set(_values(workload, name))))) for name in names),
    )


def _values(workload: WorkloadPods, name: str) -> Iterator[Value]:
    for pod in workload.pods:
        for container in pod.containers:
            if container.name == name:
                yield from (nodes.in_unit(case.before.version, case.before.value) for case in container.cases)
