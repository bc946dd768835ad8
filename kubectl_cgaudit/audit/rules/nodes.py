"""CGA101, CGA102, CGA103, CGA202 and CGA207: what a node is, and what it gives to system processes.

A rule says for each case of a node whether it holds, how severe it is, and what it measured.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from kubectl_cgaudit.audit.cases import Case, NodeCases
from kubectl_cgaudit.audit.model import Measure, Severity
from kubectl_cgaudit.audit.thresholds import Thresholds
from kubectl_cgaudit.cgroups.version import refuses_v1
from kubectl_cgaudit.detect.state import default_root_value, unit_of
from kubectl_cgaudit.detect.target import WHO_SET

Moments = Mapping[str, Any]
"""A node at both moments of a case: a row of `Judged.nodes`."""


class NodeHit(Struct, frozen=True):
    """A rule that holds for a node in one case."""

    severity: Severity
    badness: float
    measures: tuple[Measure, ...] = ()
    detail: dict[str, Any] = {}
    today: bool = False


NodeRule = Callable[[NodeCases, Case, Moments, Thresholds], NodeHit | None]


def v1(_node: NodeCases, case: Case, _moments: Moments, _thresholds: Thresholds) -> NodeHit | None:
    """CGA101: the node is on cgroup v1, or goes there."""
    before, after = case.before, case.after
    if "v1" not in (before.cgroup, after.cgroup):
        return None
    detail = {
        "cgroupBefore": before.cgroup,
        "cgroupAfter": after.cgroup,
        "kubeletBefore": str(before.kubelet_version or ""),
        "kubeletAfter": str(after.kubelet_version or ""),
        "comesBack": not case.lost,
    }
    severity: Severity
    refused = refuses_v1(after.kubelet_version)
    if before.cgroup == "v2":
        severity = "critical" if refused else "medium"
    elif after.cgroup == "v2":
        severity = "low"
    elif refused and not refuses_v1(before.kubelet_version):
        # It runs today: only the new kubelet refuses the version.
        return NodeHit("critical", 0.0, (), detail)
    else:
        severity = "medium"
    return NodeHit(severity, 0.0, (), detail, today=before.cgroup == "v1")


def outweighed(_node: NodeCases, case: Case, moments: Moments, thresholds: Thresholds) -> NodeHit | None:
    """CGA202: pods have so much more weight than system.slice that system processes get little of a full node."""
    default = default_root_value(case.after.cgroup)
    lowered = case.after.system_slice < default
    limit = thresholds.outweighed_from(lowered=lowered)
    ratio = moments["after_kubepods"] / case.after.system_slice
    if ratio < limit or case.lost:
        return None
    excess = ratio / limit
    services = case.after.services
    return NodeHit(
        "high" if excess >= 5 else "medium" if excess >= 2 else "low",
        excess,
        (
            Measure("pods to system.slice", "times", moments["before_pods_to_system"], moments["after_pods_to_system"]),
            Measure(
                "share of system.slice",
                "fraction of the node",
                moments["before_system_share"],
                moments["after_system_share"],
            ),
        ),
        {
            "unit": unit_of(case.after.cgroup),
            "kubepods": moments["after_kubepods"],
            "systemSlice": case.after.system_slice,
            "default": default,
            "limit": limit,
            "services": services,
            "servicesValue": dict(case.after.root).get(services),
        },
        today=moments["before_kubepods"] / case.before.system_slice >= limit,
    )


def besteffort(node: NodeCases, case: Case, moments: Moments, _thresholds: Thresholds) -> NodeHit | None:
    """CGA207: on cgroup v2 BestEffort pods together get more of a full node than on v1."""
    was, will = moments["before_share_2"], moments["after_share_2"]
    moved = case.before.cgroup == "v1" and case.after.cgroup == "v2"
    if case.lost or not moved or will <= was:
        return None
    count = sum(pod.qos == "BestEffort" for pod, _ in node.placed)
    if count == len(node.placed):
        return None
    gain = will - was
    return NodeHit(
        "medium" if gain >= _MUCH else "low",
        gain,
        (Measure("share of the BestEffort pods", "fraction of the node", was, will),),
        {"pods": count},
    )


_MUCH = 0.01
BY_CASE: Mapping[str, NodeRule] = {"CGA101": v1, "CGA202": outweighed, "CGA207": besteffort}


def both_formulas(node: NodeCases) -> NodeHit | None:
    """CGA103: running containers of the node carry both formulas."""
    left = [each for each in node.state.leftovers if each.formula != "neither"]
    if left:
        containers = [
            {
                "namespace": each.namespace,
                "pod": each.pod,
                "container": each.container,
                "handler": each.handler,
                "weight": each.weight,
                "formula": each.formula,
            }
            for each in left
        ]
        return NodeHit("medium", 0.0, (), {"stale": containers, "handlers": _now(node)}, today=True)
    # What is open of the target only leaves no doubt of now.
    if len({id(case.before) for case in node.cases}) > 1 or node.cases[0].before.cgroup != "v2":
        return None
    handlers = _now(node)
    if not {"linear", "quadratic"} <= {node.cases[0].before.runtime(each).formula for each in handlers}:
        return None
    return NodeHit("low", 0.0, (), {"stale": [], "handlers": handlers}, today=True)


def _now(node: NodeCases) -> dict[str, str]:
    before = node.cases[0].before
    return {handler: str(before.runtime(handler)) for handler in node.handlers}


def unsettled(node: NodeCases, decided: Sequence[str]) -> NodeHit | None:
    """CGA102: something of the node is unknown or contradicts itself; or it is probable, and decides something.

    `decided` are the questions that decide what happens to a pod, or what is found.
    """
    unknown, probable = [], []
    for question in node.questions:
        if question.about == "runtime":
            parts = [(f"runtime:{handler}", confidence) for handler, confidence in question.handlers]
        elif question.about in ("cgroup", "reserve", "burstable"):
            parts = [(question.about, question.confidence)]
        else:
            continue
        unknown += [about for about, confidence in parts if confidence == "unknown"]
        if question.about in decided:
            probable += [about for about, confidence in parts if confidence == "probable"]
    who_set = _who_set(node)
    contradictions = node.state.contradictions
    if not (unknown or probable or who_set or contradictions):
        return None
    return NodeHit(
        "medium" if unknown or who_set or contradictions else "low",
        0.0,
        (),
        {
            "unknown": unknown,
            "probable": [_probable(node, about) for about in probable],
            "whoSet": who_set,
            "contradictions": list(contradictions),
            "hints": list(node.state.hints(node.handlers)),
        },
        today=True,
    )


def _probable(node: NodeCases, about: str) -> dict[str, Any]:
    basis, first = node.state.basis_of(about), node.cases[0].before
    if about == "cgroup":
        answer: str = first.cgroup
    elif about == "reserve":
        answer = f"{unit_of(first.cgroup)} {first.system_slice}"
    elif about == "burstable":
        answer = "partitioned" if first.partitioned else "all"
    else:
        answer = first.runtime(about.removeprefix("runtime:")).formula
    return {"about": about, "answer": answer, "source": basis.source, "override": basis.override}


def _who_set(node: NodeCases) -> list[dict[str, Any]]:
    """The values at the root of which systemd makes one thing on the way and a kubelet another."""
    first = next((each for each in node.cases if any(asked == WHO_SET for asked, _ in each.answers)), None)
    if first is None:
        return []
    ends: dict[str, list[int]] = defaultdict(list)
    for case in node.cases:
        if case.before is first.before:
            for name, value in case.after.top_level:
                ends[name].append(value)
    before = dict(first.before.top_level)
    return [
        {
            "name": name,
            "unit": unit_of(first.before.cgroup),
            "before": before[name],
            "after": list(dict.fromkeys(values)),
        }
        for name, values in ends.items()
        if len(set(values)) > 1 and name in before
    ]
