"""What the reference model says of a cluster, in the shape of the JSON that the tool writes.

Part of the reference model: written from the documents alone, to be obviously right and not fast. It must never
import from kubectl_cgaudit.
"""

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction

from tests.reference.cases import Case, cases
from tests.reference.clusters import Cluster
from tests.reference.effects import Effects, in_case, over_cases
from tests.reference.objects import Pod, Raw, active_pods
from tests.reference.tree import Cgroup, NodeTree, predict

Predicted = list[tuple[Case, NodeTree, NodeTree]]
"""The cases of a node, with the trees before and after."""


def audit(cluster: Cluster) -> Raw:
    """The nodes and workloads of the audit, without what is not of the tree, the cases or the effects."""
    handlers = {each["metadata"]["name"]: each["handler"] for each in cluster.runtime_classes}
    pods = active_pods(cluster.pods, handlers)
    nodes = []
    members: dict[tuple[str, str, str], list[Raw]] = defaultdict(list)
    effects: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for node in cluster.nodes:
        name = node["metadata"]["name"]
        own = [pod for pod in pods if pod.node == name]
        predicted = [
            (case, predict(node, own, case.before), predict(node, own, case.after))
            for case in cases(node, own, cluster.states, cluster.target)
        ]
        nodes.append({"name": name, "cases": _cases(predicted, [case.lost for case, *_ in predicted], _node)})
        for pod in own:
            by_case = [in_case(pod, case, was.pods[pod.key], will.pods[pod.key]) for case, was, will in predicted]
            found = over_cases([found for found, (case, *_) in zip(by_case, predicted, strict=True) if case.leading])
            members[pod.workload].append(_pod(pod, predicted, by_case, found))
            effects[pod.workload] |= found
    workloads = [
        {"kind": key[0], "namespace": key[1], "name": key[2], "effects": sorted(effects[key]), "pods": members[key]}
        for key in members
    ]
    return {"nodes": nodes, "workloads": workloads}


def _cases(predicted: Predicted, stops: list[bool], moment: Callable[[NodeTree], Raw]) -> list[Raw]:
    return [
        {"when": case.when, "stops": stop, "now": moment(was), "after": moment(will)}
        for (case, was, will), stop in zip(predicted, stops, strict=True)
    ]


def _node(tree: NodeTree) -> Raw:
    return {
        "cgroup": tree.state.cgroup,
        "driver": tree.state.driver,
        "kubepods": tree.kubepods,
        "systemSlice": tree.system_slice,
        "root": tree.others,
        "podsPerSystem": tree.kubepods / tree.system_slice,
        "podsShare": float(tree.pods_share),
        "systemShare": float(tree.system_share),
        "qos": {
            name: {"pods": each.pods, "value": each.value, "share": float(each.share)}
            for name, each in tree.slices.items()
        },
    }


def _pod(pod: Pod, predicted: Predicted, by_case: list[Effects], effects: Effects) -> Raw:
    shown = [each.name for each in pod.containers if each.shown]
    stops = ["stops" in found for found in by_case]
    return {
        "name": pod.key[1],
        "node": pod.node,
        "qos": pod.qos,
        "handler": pod.handler,
        "effects": sorted(effects),
        "cases": _cases(predicted, stops, lambda tree: _cgroup(tree.pods[pod.key].own)),
        "containers": [{"name": name, "cases": _container(pod, name, predicted, stops)} for name in shown],
    }


def _container(pod: Pod, name: str, predicted: Predicted, stops: list[bool]) -> list[Raw]:
    return _cases(predicted, stops, lambda tree: _cgroup(tree.pods[pod.key].containers[name]))


def _cgroup(cgroup: Cgroup) -> Raw:
    return {
        "version": cgroup.version,
        "value": cgroup.value,
        "quotaUs": cgroup.quota,
        "inPod": _float(cgroup.in_pod),
        "share": _float(cgroup.share),
        "againstSystem": _float(cgroup.against_system),
    }


def _float(fraction: Fraction | None) -> float | None:
    return None if fraction is None else float(fraction)
