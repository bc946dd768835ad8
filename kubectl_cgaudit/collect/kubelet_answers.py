"""What the bodies of a kubelet's answers say, or why they say nothing."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from kubectl_cgaudit.collect import configz, metrics
from kubectl_cgaudit.collect.model import KubeletAnswers
from kubectl_cgaudit.errors import InputError

CONFIGZ, METRICS, CADVISOR = "/configz", "/metrics", "/metrics/cadvisor"
ENDPOINTS = (CONFIGZ, METRICS, CADVISOR)
LARGEST = 64 << 20
"""Of a body, in bytes."""
FROM_SPEC = "shows shares from the spec (kubelet_metrics_provider cri): they prove nothing"
Pods = Mapping[str, set[tuple[str, str]]]
"""Namespace and name of the pods of each node."""
_SHOWN = 60
_Parsed = TypeVar("_Parsed")


def understand(
    node: str, bodies: Mapping[str, bytes], reasons: Mapping[str, str], pods: set[tuple[str, str]]
) -> KubeletAnswers:
    """The answers of a node from its bodies by endpoint, and the reasons for those that are missing."""
    unread = dict(reasons)

    def parse(endpoint: str, function: Callable[[bytes], _Parsed], otherwise: _Parsed) -> _Parsed:
        if endpoint in unread or endpoint not in bodies:
            return otherwise
        try:
            return function(bodies[endpoint])
        except InputError as error:
            unread[endpoint] = f"could not be used: {error}"
            return otherwise

    named = parse(METRICS, metrics.node_named, None)
    stranger = parse(CADVISOR, lambda text: _other_pods(text, pods), None)
    if named is None and stranger:
        return nothing(node, f"{CADVISOR} {stranger}: all answers were ignored")
    if named not in (None, node):
        return nothing(node, f"{METRICS} is of another node ({named[:253]!r}): all answers were ignored")
    if stranger:
        unread[CADVISOR] = stranger
    version = parse(METRICS, metrics.cgroup_version, None)
    not_known: bool | None = None
    from_spec = parse(METRICS, metrics.stats_from_spec, not_known)
    pod_level = parse(METRICS, metrics.pod_level, not_known)
    no_shares: dict[str, int] = {}
    shares = parse(CADVISOR, _some_shares, no_shares)
    no_quotas: dict[str, tuple[int, int]] | None = None
    quotas = parse(CADVISOR, metrics.quotas, no_quotas)
    config = parse(CONFIGZ, configz.config, None)
    return KubeletAnswers(
        node=node,
        # A damaged text proves nothing, not even by the rows before the damage.
        cgroup_version=None if METRICS in unread else version,
        stats_from_spec=from_spec,
        shares={} if CADVISOR in unread else shares,
        config=config,
        problems=(*_sentences(unread), *([FROM_SPEC] if from_spec else [])),
        pod_level=None if METRICS in unread else pod_level,
        quotas=quotas,
    )


def _some_shares(text: bytes) -> dict[str, int]:
    found = metrics.shares(text)
    if not found:
        raise InputError("there is no container_spec_cpu_shares in it; see whether the kubelet leaves cAdvisor out")
    kubernetes = [path for path in found if "kubepods" in path]
    if kubernetes and not any(path.startswith("/kubepods") for path in kubernetes):
        shown = min(kubernetes)[:_SHOWN]
        raise InputError(f"its pods are under {shown!r}: a kubelet with a --cgroup-root of its own is not modelled")
    return found


def _other_pods(text: bytes, pods: set[tuple[str, str]]) -> str | None:
    named = metrics.pods_named(text)
    if not named or not pods or named & pods:
        return None
    example = "/".join(min(named))[:253]
    return f"is of another node (it names {example!r} and none of the pods that run here)"


def _sentences(reasons: Mapping[str, str]) -> tuple[str, ...]:
    """One sentence for each reason, naming every endpoint it stands for."""
    by_reason: dict[str, list[str]] = {}
    for endpoint in ENDPOINTS:
        if endpoint in reasons:
            by_reason.setdefault(reasons[endpoint], []).append(endpoint)
    return tuple(f"{', '.join(endpoints)} {reason}" for reason, endpoints in by_reason.items())


def nothing(node: str, problem: str) -> KubeletAnswers:
    """Of a node of which no answer can be used."""
    return KubeletAnswers(
        node=node, cgroup_version=None, stats_from_spec=None, shares={}, config=None, problems=(problem,)
    )
