"""What the audit covers: what was read, what was not, and what was set apart."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from kubectl_cgaudit.audit import own_resources, unanswered
from kubectl_cgaudit.audit.cases import NodeCases
from kubectl_cgaudit.audit.model import Coverage, GapRecord
from kubectl_cgaudit.collect.model import Cluster, NodeKind, Pod
from kubectl_cgaudit.detect.reading import has_no_slice
from kubectl_cgaudit.text import capital, counted, named, these

_SPACES = 10
_READ = "read: top owners"


def cover(cluster: Cluster, unmatched: tuple[str, ...] = (), nodes: Sequence[NodeCases] = ()) -> Coverage:
    """The coverage of an audit of this cluster; of its nodes compared, too, if shares are shown of them."""
    reading = cluster.reading
    kinds: dict[str, NodeKind] = {node.name: node.kind for node in cluster.nodes}
    active = [pod for pod in cluster.pods if not pod.finished]
    placed = Counter(kinds[pod.node] for pod in active if pod.node in kinds)
    gaps = [GapRecord(gap.what, gap.why, gap.remedy, gap.kind, gap.members) for gap in reading.gaps]
    gaps += unanswered.gaps(cluster.kubelets or {})
    gaps += _no_match(cluster) + _unusable(cluster) + _missing(cluster) + _without_kubepods(cluster)
    # Where there is no cgroup, no handler decides its formula.
    in_cgroups = [pod for pod in active if pod.node and kinds.get(pod.node) not in ("windows", "virtual")]
    gaps += _unread_classes(in_cgroups, cluster) + _without_slice(nodes) + own_resources.gaps(cluster, active)
    return Coverage(
        complete=not gaps,
        source=reading.source,
        filter=reading.filter,
        gaps=tuple(gaps),
        notes=(
            *reading.notes,
            *_not_staying(cluster),
            *_with_own_cpus(cluster),
            *_annotations_left_out(active),
            *own_resources.notes(cluster, active),
        ),
        unmatched=unmatched,
        nodes_read=len(cluster.nodes),
        nodes_audited=sum(kind == "linux" for kind in kinds.values()),
        pods_read=len(cluster.pods),
        pods_audited=sum(pod.selected and pod.node is not None and kinds.get(pod.node) == "linux" for pod in active),
        pods_finished=len(cluster.pods) - len(active),
        pods_without_node=tuple(f"{pod.namespace}/{pod.name}" for pod in active if pod.node is None),
        windows_nodes=_of_kind(cluster, "windows"),
        virtual_nodes=_of_kind(cluster, "virtual"),
        pods_on_windows_nodes=placed["windows"],
        pods_on_virtual_nodes=placed["virtual"],
        workload_names={
            "Deployment": _READ if cluster.replicasets is not None else "derived from the pod-template-hash",
            "CronJob": _READ if cluster.jobs is not None else "derived from the Jobs' names",
        },
        ignored_kinds=reading.ignored,
        duplicates=reading.duplicates,
        kubelets_asked=cluster.kubelets is not None,
    )


def _no_match(cluster: Cluster) -> list[GapRecord]:
    """A filter that matches nothing is most often a typo, and what it was meant for was not audited."""
    if not cluster.reading.filter or not cluster.pods or any(pod.selected for pod in cluster.pods):
        return []
    first = cluster.reading.filter.partition(", ")[0]
    wanted = first.removeprefix("namespace ") if first.startswith("namespace ") else ""
    spaces = Counter(pod.namespace for pod in cluster.pods)
    if "," in wanted:
        remedy = "Run once for each namespace: -n takes one, as kubectl's does"
    elif wanted and wanted not in spaces:
        near = get_close_matches(wanted, sorted(spaces), n=1)
        perhaps = f", perhaps to {near[0]}" if near else ""
        remedy = f"Correct -n{perhaps}: there are pods in {named(sorted(spaces), _SPACES)}"
    else:
        where = f" of namespace {wanted}" if wanted else ""
        remedy = f"Correct -l: of {counted(spaces[wanted] or len(cluster.pods), 'pod')}{where} none has such labels"
    return [GapRecord(f"pods that match {cluster.reading.filter}", "no pod does", remedy)]


def _of_kind(cluster: Cluster, kind: NodeKind) -> tuple[str, ...]:
    return tuple(node.name for node in cluster.nodes if node.kind == kind)


def _not_staying(cluster: Cluster) -> Iterator[str]:
    """Nodes of which what is said may not hold for long, or no longer."""
    linux = [node for node in cluster.nodes if node.kind == "linux"]
    if old := [node.name for node in linux if node.standing == "not Ready"]:
        it, its, are = ("it", "its", "is") if len(old) == 1 else ("them", "their", "are")
        yield f"{capital(these('node', old))} {are} not Ready: what was read of {it}, and of {its} pods, is from before that"
    if leaving := [node.name for node in linux if node.standing == "being deleted"]:
        its, are = ("its", "is") if len(leaving) == 1 else ("their", "are")
        yield f"{capital(these('node', leaving))} {are} being deleted: {its} pods will run elsewhere"


def _with_own_cpus(cluster: Cluster) -> Iterator[str]:
    answers = cluster.kubelets or {}
    configs = {name: answers[name].config for name in _of_kind(cluster, "linux") if name in answers}
    names = [name for name, config in configs.items() if config and config.cpu_manager_policy == "static"]
    if names:
        yield (
            f"The CPU manager of {these('node', names)} is static: containers with CPUs of their own compete for no others, and "
            "the rest for what is left, but shares are shown of all of the node's CPU"
        )


def _annotations_left_out(pods: Sequence[Pod]) -> Iterator[str]:
    amount = sum(pod.alike.annotations_left_out for pod in pods)
    if amount:
        yield (
            f"{counted(amount, 'annotation')} for CRI-O or OpenShift {'is' if amount == 1 else 'are'} over 256 bytes and not "
            "read: what is asked there of weights or quotas is not predicted"
        )


def _unusable(cluster: Cluster) -> list[GapRecord]:
    names = _of_kind(cluster, "unusable")
    if not names:
        return []
    why, remedy = "no CPU in status.allocatable or status.capacity", "Wait until the kubelet has reported"
    return [GapRecord(these("node", names), why, remedy, "node without CPU", names)]


def _without_kubepods(cluster: Cluster) -> list[GapRecord]:
    """Nodes whose kubelet said that it makes no kubepods tree; Windows and virtual ones are set apart already."""
    answers = cluster.kubelets or {}
    linux = _of_kind(cluster, "linux")
    found = tuple(name for name in linux if name in answers and answers[name].without_kubepods)
    if not found:
        return []
    why = (
        "cgroupsPerQOS is false there, so there is no kubepods tree: the shares shown of its pods are not what they get"
    )
    remedy = "Set cgroupsPerQOS to true, its default, or leave the numbers of these pods aside"
    return [GapRecord(these("node", found), why, remedy, "node without kubepods", found)]


def _without_slice(nodes: Sequence[NodeCases]) -> list[GapRecord]:
    """Nodes without a system.slice, of which nobody said what stands in its place: else its default would be taken."""
    found = [each for each in nodes if has_no_slice(each.node) and each.state.system_slice is None]
    names = tuple(each.node.name for each in found)
    if not names:
        return []
    why = (
        "Talos has no system.slice: init, system and podruntime compete with pods at the root, and nobody said with what weight "
        "together"
    )
    remedy = "Say their sum with --states (system_slice: N), of what `talosctl cgroups --preset cpu` shows, and no root: of them"
    return [GapRecord(these("node", names), why, remedy, "node without system.slice", names)]


def _unread_classes(pods: Sequence[Pod], cluster: Cluster) -> list[GapRecord]:
    """Runtime classes that pods name and that were not read, or are gone: which handler they stand for decides their formula."""
    classes = {pod.runtime_class for pod in pods if pod.runtime_class}
    unread = tuple(sorted(classes - set(cluster.runtime_classes or ())))
    if not unread:
        return []
    it, it_is, it_was = ("it", "it is", "it was") if len(unread) == 1 else ("them", "they are", "they were")
    if cluster.runtime_classes is None:
        seen = f"{it_was} not read"
        remedy = (
            "Read RuntimeClasses too: kubectl get runtimeclasses -o json > runtimeclasses.json, and add -f runtimeclasses.json; "
            "live, list on runtimeclasses is enough"
        )
    else:
        seen = f"{it_is} not among the RuntimeClasses that were read"
        without = f"See kubectl get runtimeclasses: without {it} such pods cannot be created anew"
        remedy = f"{without}; if {it_is} there, read all of them"
    why = f"pods name {it}, and {seen}: the name is taken for the handler's"
    return [GapRecord(these("RuntimeClass", unread), why, remedy, "RuntimeClass not read", unread)]


def _missing(cluster: Cluster) -> list[GapRecord]:
    known = {node.name for node in cluster.nodes}
    homeless: dict[str, int] = defaultdict(int)
    for pod in cluster.pods:
        if pod.node and not pod.finished and pod.node not in known:
            homeless[pod.node] += 1
    if not homeless:
        return []
    names = tuple(sorted(homeless))
    count = sum(homeless.values())
    pods = "1 pod runs" if count == 1 else f"{count} pods run"
    why = f"{pods} there, but the Node is not among what was read"
    return [GapRecord(these("node", names), why, "Read all nodes together with the pods", "node not read", names)]
