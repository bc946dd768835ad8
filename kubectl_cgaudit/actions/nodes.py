"""What owners of nodes can do: give system.slice another value or a reserve, leave cgroup v1, recreate stale containers."""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import polars as pl
from msgspec.structs import asdict
from polars import col

from kubectl_cgaudit.actions.candidate import Candidate, action
from kubectl_cgaudit.actions.change import Change, NodeChange
from kubectl_cgaudit.actions.reserve import Reserve, reserve_for
from kubectl_cgaudit.audit.cases import Case, NodeCases
from kubectl_cgaudit.audit.judge import RULES
from kubectl_cgaudit.audit.model import Finding
from kubectl_cgaudit.audit.run import Run
from kubectl_cgaudit.cgroups.weights import DEFAULT_WEIGHT, MAX_WEIGHT
from kubectl_cgaudit.collect.model import Cluster, Node
from kubectl_cgaudit.detect.reading import has_no_slice
from kubectl_cgaudit.detect.state import SYSTEM_SLICE
from kubectl_cgaudit.detect.target import Scenario

_MEDIUM = 2
_NEAR = 1.02
"""How many times today's ratio a reserve may leave pods at the most."""
_POOLS = (
    "eks.amazonaws.com/nodegroup",
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "machine.openshift.io/cluster-api-machineset",
    "node.kubernetes.io/pool",
    "pool",
)
"""Labels that name the pool of a node."""
_DROP_IN = "/etc/systemd/system/system.slice.d/50-cpu.conf"
_TO_V2 = Scenario("v2", v2=True, new_runtime=False, runtimes=(), kubelet=None, rules=())
_NO_V2 = ("Amazon Linux 2", "CentOS Linux 7", "Red Hat Enterprise Linux Server 7")
"""Systems whose systemd has no usable cgroup v2."""
Moments = Mapping[tuple[int, int], Mapping[str, Any]]


def candidates(run: Run, cluster: Cluster) -> Iterator[Candidate]:
    """Yield what may help on nodes; nodes for which it is the same are one candidate."""
    moments = {(row["row"], row["case"]): row for row in run.judged.nodes.iter_rows(named=True)}
    by_rule: dict[str, dict[str, Finding]] = defaultdict(dict)
    for finding in run.audit.findings:
        if finding.subject.kind == "node":
            by_rule[finding.rule][finding.subject.name] = finding
    yield from _weights(run, cluster, moments, by_rule["CGA202"])
    yield from _cgroup_v2(run, by_rule["CGA101"])
    yield from _besteffort(run, by_rule["CGA207"])


class _Wanted:
    """A value of system.slice, and the case that it is for."""

    def __init__(self, value: int, case: int, why: str) -> None:
        self.value, self.case, self.why = value, case, why


def _weights(run: Run, cluster: Cluster, moments: Moments, outweighed: Mapping[str, Finding]) -> Iterator[Candidate]:
    losing = _losing(run)
    requested = {node.name: node.requested_milli for node in run.audit.nodes}
    groups: dict[tuple[Any, ...], list[tuple[int, _Wanted]]] = defaultdict(list)
    for place, node in enumerate(run.tables.nodes):
        name = node.node.name
        if has_no_slice(node.node) or not (place in losing or name in outweighed):
            continue
        wanted = None
        if name in outweighed:
            wanted = _under_limit(run, place, node, moments)
        if wanted is None and place in losing:
            wanted = _as_today(run, place, node, moments)
        if wanted is not None:
            case = node.cases[wanted.case]
            moves = case.before.cgroup != "v2"
            groups[wanted.value, moves, wanted.why, _way(node.node, wanted.value)].append((place, wanted))
    for (value, moves, why, way), members in groups.items():
        nodes = [run.tables.nodes[place] for place, _ in members]
        names = [node.node.name for node in nodes]
        place, wanted = members[0]
        row = moments[place, wanted.case]
        reserves = [
            found
            for node, (there, own) in zip(nodes[:1], members, strict=False)
            if (found := _reserve(run, cluster, node, own, moments[there, own.case], requested[node.node.name]))
        ]
        change = NodeChange(system_slice=value)
        yield Candidate(
            action(
                "node",
                f"system-weight:{group_name(names, run.tables.nodes)}",
                {"nodes": names},
                {"systemSlice": value, "cgroup": "v2"},
                way[1],
                {
                    "why": why,
                    "when": "on-v2" if moves else "now",
                    "ways": list(way[0]),
                    "platform": way[2],
                    "ratio": {
                        "before": row["before_pods_to_system"],
                        "after": row["after_pods_to_system"],
                        "acted": row["after_kubepods"] / value,
                    },
                    "cost": {"schedulableMilli": 0},
                    "undo": "systemctl revert system.slice" if way[0][0] == "systemd" else "",
                    "alternatives": [{"kind": "reserve", **_reserve_data(each)} for each in reserves],
                },
            ),
            Change(nodes=tuple((name, change) for name in names)),
            place,
            wanted.case,
        )


def _losing(run: Run) -> set[int]:
    """Return the nodes on which a pod loses enough to system processes in any case."""
    grave = pl.any_horizontal(
        col.severity >= _MEDIUM, *(col(f"certainty_{level}").is_not_null() for level in (2, 3, 4))
    )
    rule = list(RULES).index("CGA201")
    return set(run.judged.spread.filter((col.rule == rule) & grave)["node"])


def _may_set(case: Case) -> bool:
    """Whether a value of system.slice lasts: a kubelet that enforces a reserve there writes its own at every start."""
    return case.after.cgroup == "v2" and not case.lost and SYSTEM_SLICE not in case.after.enforced


def _ranked(node: NodeCases) -> list[int]:
    """Return the numbers of the cases, those first in which no default is overridden."""
    leading = node.leading[None]
    return sorted(range(len(node.cases)), key=lambda number: (not leading[number], number))


def _as_today(run: Run, place: int, node: NodeCases, moments: Moments) -> _Wanted | None:
    """Return the value that keeps today's ratio of pods to system.slice; None where the ratio hardly falls."""
    limits = run.context.thresholds
    for number in _ranked(node):
        case, row = node.cases[number], moments[place, number]
        now, then = row["before_kubepods"] / case.before.system_slice, row["after_kubepods"] / case.after.system_slice
        if not _may_set(case) or then / now - 1 > -limits.system_loss / 2:
            continue
        value = max(1, min(MAX_WEIGHT, round(row["after_kubepods"] / now)))
        if now >= limits.outweighed:
            # System processes need some of what pods lose: so far that CGA202 does not name the node.
            value = max(value, _beyond(row["after_kubepods"], limits.outweighed_reserve))
        if value < case.after.system_slice:
            return _Wanted(value, number, "ratio")
    return None


def _under_limit(run: Run, place: int, node: NodeCases, moments: Moments) -> _Wanted | None:
    """Return the least value with which pods do not outweigh system processes (CGA202)."""
    limits = run.context.thresholds
    for number in _ranked(node):
        case, row = node.cases[number], moments[place, number]
        kubepods, now = row["after_kubepods"], case.after.system_slice
        if not _may_set(case) or kubepods / now < limits.outweighed_from(lowered=now < DEFAULT_WEIGHT):
            continue
        value = _beyond(kubepods, limits.outweighed_from(lowered=now < DEFAULT_WEIGHT))
        if now < DEFAULT_WEIGHT <= value:
            # From its default on system.slice is judged by the other threshold.
            value = max(DEFAULT_WEIGHT, _beyond(kubepods, limits.outweighed))
        return _Wanted(value, number, "limit") if now < value <= MAX_WEIGHT else None
    return None


def _beyond(kubepods: int, limit: float) -> int:
    """Return the least value of system.slice beside which pods are under a limit."""
    least = max(1, math.floor(kubepods / limit))
    # The quotient may be a whole number but for its last digit: what decides is the division of the rule.
    while kubepods / least >= limit:
        least += 1
    return least


def _reserve(
    run: Run, cluster: Cluster, node: NodeCases, wanted: _Wanted, row: Mapping[str, Any], requested: int
) -> Reserve | None:
    """Return the enforced reserve that does the same; None if none of a sensible size does."""
    limits, case = run.context.thresholds, node.cases[wanted.case]
    if wanted.why == "limit":
        # A reserve may itself take system.slice below its default, where less is too much.
        most = limits.outweighed, min(limits.outweighed, limits.outweighed_reserve)
        return reserve_for(cluster, node.node, case, most, requested)
    now = row["before_kubepods"] / case.before.system_slice
    found = reserve_for(cluster, node.node, case, (now * _NEAR, now * _NEAR), requested)
    return found if found and not limits.loses(found.ratios[0] / now - 1) else None


def _reserve_data(reserve: Reserve) -> dict[str, Any]:
    return {**asdict(reserve), "weight": reserve.weight, "ratios": list(reserve.ratios)}


_Way = tuple[tuple[str, ...], tuple[str, ...], str]
"""The ways to set a value: what each is, its command, and the platform where there is no lasting one."""


def _way(node: Node, value: int) -> _Way:
    """Return how to give system.slice a weight: the platform's lasting way first, then how to try it on one node."""
    setting = f"systemctl set-property system.slice CPUWeight={value}"
    drop_in = (
        f"mkdir -p {_DROP_IN.rpartition('/')[0]} && printf '[Slice]\\nCPUWeight={value}\\n' > {_DROP_IN} && "
        "systemctl daemon-reload"
    )
    image, labels = node.os_image, node.labels
    if "CoreOS" in image and "cri-o" in node.runtime_version:
        return ("machineconfig", "try"), (_machine_config(node, value), setting), "OpenShift"
    for name in ("Bottlerocket", "Container-Optimized OS"):
        if image.startswith(name):
            return ("try",), (f"systemctl set-property --runtime system.slice CPUWeight={value}",), name
    if "-eks-" in node.kubelet_version or "eks.amazonaws.com/nodegroup" in labels:
        return ("user-data", "try"), (drop_in, setting), "EKS"
    if node.provider == "azure" or "kubernetes.azure.com/cluster" in labels:
        return ("try",), (setting,), "AKS"
    return ("systemd",), (setting,), ""


def _machine_config(node: Node, value: int) -> str:
    role = "master" if "node-role.kubernetes.io/master" in node.labels else "worker"
    contents = quote(f"[Slice]\nCPUWeight={value}\n")
    manifest = {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {
            "name": f"99-{role}-system-slice-weight",
            "labels": {"machineconfiguration.openshift.io/role": role},
        },
        "spec": {
            "config": {
                "ignition": {"version": "3.2.0"},
                "storage": {"files": [{"path": _DROP_IN, "mode": 420, "contents": {"source": f"data:,{contents}"}}]},
            }
        },
    }
    return f"echo '{json.dumps(manifest)}' | oc apply -f -"


def group_name(names: Sequence[str], every: Sequence[NodeCases]) -> str:
    """Return a stable name of some nodes: the node's, their pool's if they are all of it, else the first and how many more."""
    if len(names) == 1:
        return names[0]
    inside = set(names)
    for label in _POOLS:
        pools = {node.node.labels.get(label) for node in every if node.node.name in inside}
        pool = pools.pop() if len(pools) == 1 else None
        if pool and all(node.node.name in inside for node in every if node.node.labels.get(label) == pool):
            return pool
    return f"{min(names)}+{len(names) - 1}"


def _cgroup_v2(run: Run, on_v1: Mapping[str, Finding]) -> Iterator[Candidate]:
    """Yield for nodes that stay on cgroup v1, or go there, to be on v2 instead."""
    groups: dict[tuple[str, bool, bool], list[int]] = defaultdict(list)
    for place, node in enumerate(run.tables.nodes):
        finding = on_v1.get(node.node.name)
        if finding is None or finding.severity == "low":
            continue
        leaves = finding.detail["cgroupBefore"] == "v2"
        stops = not finding.detail["comesBack"] or finding.severity == "critical"
        groups[_to_v2(node.node, leaves=leaves), leaves, stops].append(place)
    for (how, leaves, stops), members in groups.items():
        names = [run.tables.nodes[place].node.name for place in members]
        change = NodeChange(target=_TO_V2)
        yield Candidate(
            action(
                "node",
                f"cgroup-v2:{group_name(names, run.tables.nodes)}",
                {"nodes": names},
                {"cgroup": "v2"},
                _RUN_V2.get(how, ()),
                {
                    "when": "before-kubelet" if stops else "before-1.35",
                    "ways": [how],
                    "cost": {} if leaves else {"schedulableMilli": 0, "restart": "node"},
                    "undo": _UNDO_V2.get(how, ""),
                    "alternatives": [
                        *([{"kind": "new-image"}] if how == "boot" else []),
                        *([{"kind": "failCgroupV1"}] if stops else []),
                    ],
                },
            ),
            Change(nodes=tuple((name, change) for name in names)),
            members[0],
            0,
        )


_RUN_V2 = {
    "boot": ("grubby --update-kernel=ALL --args=systemd.unified_cgroup_hierarchy=1", "reboot"),
    "openshift": ("""oc patch nodes.config.openshift.io cluster --type merge -p '{"spec":{"cgroupMode":"v2"}}'""",),
    "gke": ("gcloud container node-pools update POOL --cluster CLUSTER --system-config-from-file v2.yaml",),
}
_UNDO_V2 = {"boot": "grubby --update-kernel=ALL --args=systemd.unified_cgroup_hierarchy=0"}


def _to_v2(node: Node, *, leaves: bool) -> str:
    """Return how a node gets to cgroup v2."""
    if leaves:
        return "stay"
    if node.os_image.startswith(_NO_V2):
        return "new-image"
    if "CoreOS" in node.os_image and "cri-o" in node.runtime_version:
        return "openshift"
    return "gke" if "-gke." in node.kubelet_version else "boot"


def _besteffort(run: Run, found: Mapping[str, Finding]) -> Iterator[Candidate]:
    grave = {name: each for name, each in found.items() if each.severity != "low"}
    if grave:
        names = sorted(grave)
        detail = {"when": "any", "cost": {"schedulableMilli": 0}, "findings": [grave[name].id for name in names]}
        identity = f"besteffort:{group_name(names, run.tables.nodes)}"
        yield Candidate(action("workload", identity, {"nodes": names}, {}, (), detail), Change())
