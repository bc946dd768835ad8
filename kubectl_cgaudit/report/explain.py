"""`explain`: the arithmetic of one pod, from its spec to its share of the node's CPU, level by level."""

import math
from collections.abc import Iterator

from kubectl_cgaudit.cgroups.pods import container_limit, pod_level_resources, pod_limit, pod_request
from kubectl_cgaudit.cgroups.version import KubeletVersion
from kubectl_cgaudit.cgroups.weights import Formula
from kubectl_cgaudit.collect.model import Container, Pod
from kubectl_cgaudit.detect.runtime import Runtime
from kubectl_cgaudit.detect.state import Setup
from kubectl_cgaudit.judge.compare import Case, Comparison
from kubectl_cgaudit.predict.quota import milli_to_quota
from kubectl_cgaudit.predict.tree import Cgroup, NodeTree, PodTree
from kubectl_cgaudit.report.escape import visible
from kubectl_cgaudit.report.words import counted, number, percent

_MOST_SIBLINGS = 8


def render(comparison: Comparison, pod: Pod, handler: str) -> str:
    """The arithmetic in every case, now and after."""
    index = next(i for i, (other, _) in enumerate(comparison.pods()) if other is pod)
    lines = [f"{pod.namespace}/{pod.name} on {comparison.node.name}, QoS class {pod.qos}, runtime handler {handler}"]
    lines.append(f"how sure: {_sure(comparison, handler)}")
    for case in comparison.cases:
        if case.when:
            lines += ["", f"IF {case.when.upper()}"]
        now = list(_moment(comparison, case.before, index, case.now, handler))
        then = list(_moment(comparison, case.after, index, case.then, handler))
        if now == then:
            lines += ["", f"NOW, AND NOTHING CHANGES: {_setup(case.now, handler)}", *now]
            continue
        lines += ["", f"NOW: {_setup(case.now, handler)}", *now]
        lines += ["", f"AFTER: {_setup(case.then, handler)}", *then]
        lines += ["", "TOGETHER", *_together(case, index)]
    return "\n".join(visible(line) for line in lines) + "\n"


def _sure(comparison: Comparison, handler: str) -> str:
    """How surely each thing is known that the arithmetic starts from."""
    state = comparison.state
    asked = {
        "cgroup version": "cgroup",
        "kubelet": "kubelet",
        "runtime": f"runtime:{handler}",
        "system.slice": "system_slice",
    }
    return ", ".join(f"{what} {state.basis_of(about).confidence}" for what, about in asked.items())


def _setup(setup: Setup, handler: str) -> str:
    kubelet = setup.kubelet_version or "of unknown version"
    return (
        f"cgroup {setup.cgroup}, {setup.driver} driver, kubelet {kubelet} ({setup.kubelet_formula} formula), "
        f"{setup.runtime(handler)}"
    )


def _moment(comparison: Comparison, tree: NodeTree, index: int, setup: Setup, handler: str) -> Iterator[str]:
    pod_tree = tree.pods[index]
    milli = comparison.node.allocatable_milli
    yield "  root: all pods against system processes (the kubelet writes kubepods)"
    yield f"    allocatable CPU {milli}m -> {milli} * 1024 // 1000 = {_value(tree.kubepods, setup.kubelet_formula)}"
    yield f"    {_share('kubepods', tree.kubepods, [(c.path or '', c) for c in tree.root])}"
    yield from _qos(tree, pod_tree, setup)
    yield from _pod(tree, pod_tree, setup)
    yield from _containers(pod_tree, setup, setup.runtime(handler))


def _value(cgroup: Cgroup, formula: Formula | str) -> str:
    """`3788 shares`, and on v2 how they become a weight."""
    shares = cgroup.shares
    if cgroup.version == "v1" or shares is None:
        return f"{shares} shares"
    return f"{shares} shares -> {weight_words(shares, formula, cgroup.weight)}"


def weight_words(shares: int, formula: Formula | str, weight: int | None) -> str:
    """How a formula makes a weight of shares."""
    if formula == "linear":
        return f"1 + (({shares} - 2) * 9999) // 262142 = weight {weight}"
    if formula == "quadratic":
        return (
            f"ceil(10 ** ((L*L + 125*L) / 612 - 7/34)), L = log2({shares}) = {math.log2(shares):.4f}: weight {weight}"
        )
    return "no weight: this runtime sets none on the host"


def _share(name: str, own: Cgroup, others: list[tuple[str, Cgroup]], whole: float = 1.0, of: str = "the node") -> str:
    """`kubepods 145 / (145 + system.slice 100) = 59% of the node`."""
    listed = [f"{other.strip('/')} {cgroup.value}" for other, cgroup in others[:_MOST_SIBLINGS]]
    if len(others) > _MOST_SIBLINGS:
        rest = sum(cgroup.value or 0 for _, cgroup in others[_MOST_SIBLINGS:])
        listed.append(f"{len(others) - _MOST_SIBLINGS} others {rest}")
    total = (own.value or 0) + sum(cgroup.value or 0 for _, cgroup in others)
    part = (own.value or 0) / total if total else 0.0
    against = " + ".join([str(own.value), *listed])
    product = f" = {percent(own.share)} of the node" if whole != 1.0 else ""
    return f"{name}: {own.value} / ({against}) = {percent(part)} of {of}{product}"


def _qos(tree: NodeTree, pod_tree: PodTree, setup: Setup) -> Iterator[str]:
    whole = tree.kubepods.share or 0.0
    competing = {
        "kubepods-burstable": (tree.burstable, "Burstable"),
        "kubepods-besteffort": (tree.besteffort, "BestEffort"),
    }
    if pod_tree.pod.qos == "Guaranteed":
        yield "  QoS class: Guaranteed pods lie directly in kubepods, beside the two slices"
        return
    own = tree.burstable if pod_tree.pod.qos == "Burstable" else tree.besteffort
    yield f"  QoS class: the {pod_tree.pod.qos} slice inside kubepods (written by the kubelet)"
    if own is tree.burstable:
        pods = [other.pod for other in tree.pods if other.pod.qos == "Burstable"]
        total = sum(pod_request(pod, setup.kubelet_version) for pod in pods)
        made = f"requests of {counted(len(pods), 'active Burstable pod')} {total}m -> {total} * 1024 // 1000"
        yield f"    {made} = {_value(own, setup.kubelet_formula)}"
    else:
        yield f"    BestEffort always has {_value(own, setup.kubelet_formula)}"
    others = [(name, cgroup) for name, (cgroup, _) in competing.items() if cgroup is not own and cgroup.share]
    others += [(_name(other), other.cgroup) for other in tree.pods if other.pod.qos == "Guaranteed"]
    yield f"    {_share('slice', own, others, whole, 'kubepods')}"


def _name(tree: PodTree) -> str:
    return f"{tree.pod.namespace}/{tree.pod.name}"


def _pod(tree: NodeTree, pod_tree: PodTree, setup: Setup) -> Iterator[str]:
    pod = pod_tree.pod
    yield "  pod: against the other pods beside it (written by the kubelet)"
    made = "BestEffort" if pod.qos == "BestEffort" else _request(pod, setup.kubelet_version)
    yield f"    {made} -> {_value(pod_tree.cgroup, setup.kubelet_formula)}"
    others = [(_name(o), o.cgroup) for o in tree.pods if o.pod.qos == pod.qos and o is not pod_tree and o.cgroup.share]
    of, whole = f"the {pod.qos} slice", 0.0
    if pod.qos == "Guaranteed":
        slices = [("kubepods-burstable", tree.burstable), ("kubepods-besteffort", tree.besteffort)]
        others, of = [*((name, cgroup) for name, cgroup in slices if cgroup.share), *others], "kubepods"
    yield f"    {_share('pod', pod_tree.cgroup, others, whole, of)}"
    limit = pod_limit(pod, setup.kubelet_version)
    if limit is not None:
        yield f"    {_quota(limit, pod_tree.cgroup)}"


def _request(pod: Pod, kubelet: KubeletVersion | None) -> str:
    total = pod_request(pod, kubelet)
    overhead = f" + overhead {pod.overhead_milli}m" if pod.overhead_milli else ""
    if pod.request_milli is not None and pod_level_resources(kubelet):
        return f"pod-level request {pod.request_milli}m{overhead} = {total}m"
    running = [c for c in pod.containers if c.role in ("app", "sidecar")]
    text = " + ".join(f"{c.name} {c.request_milli or 0}m" for c in running)
    starting, sidecars = [], 0
    for container in pod.containers:
        amount = container.request_milli or 0
        if container.role == "sidecar":
            sidecars += amount
        elif container.role == "init":
            before = f" + sidecars before it {sidecars}m" if sidecars else ""
            starting.append(f"init {container.name} {amount}m{before}")
    if starting:
        text = f"the larger of ({text}) and ({'), ('.join(starting)})"
    return f"request {text}{overhead} = {total}m"


def _containers(pod_tree: PodTree, setup: Setup, runtime: Runtime) -> Iterator[str]:
    yield f"  containers: against each other inside the pod (written by the runtime, {runtime})"
    competing = [(container, cgroup) for container, cgroup in pod_tree.containers if cgroup.share is not None]
    for container, cgroup in pod_tree.containers:
        yield f"    {container.name}: {_amount(container, pod_tree.pod, setup)} -> {_value(cgroup, runtime.formula)}"
        if cgroup.share is None:
            why = (
                "runs before the others" if container.role == "init" else "how the pod's CPU is split is not in cgroups"
            )
            yield f"      {why}"
        else:
            others = [(other.name, theirs) for other, theirs in competing if other is not container]
            yield f"      {_share(container.name, cgroup, others, 0.0, 'the pod')}"
        if cgroup.quota_us is not None:
            limit = container_limit(container, pod_tree.pod, setup.kubelet_version)
            yield f"      {_quota(limit or 0, cgroup)}"


def _quota(limit: int, cgroup: Cgroup) -> str:
    """`limit 77m * 100000 us / 1000 = 7700 us, rounded up to 8000 us`."""
    raw = milli_to_quota(limit, cgroup.period_us)
    exact = limit * cgroup.period_us // 1000
    least = f", raised to the least of {raw} us" if raw != exact else ""
    rounded = f", rounded up to {cgroup.quota_us} us" if cgroup.quota_us != raw else ""
    return f"limit {limit}m * {cgroup.period_us} us / 1000 = {exact} us{least}{rounded}: the quota"


def _amount(container: Container, pod: Pod, setup: Setup) -> str:
    if container.request_milli is not None:
        return f"request {container.request_milli}m"
    limit = container_limit(container, pod, setup.kubelet_version)
    if limit is None:
        return "no request"
    return f"no request, so its limit {limit}m" if container.limit_milli else f"no request, so the pod's limit {limit}m"


def _together(case: Case, index: int) -> Iterator[str]:
    before, after = case.before.pods[index], case.after.pods[index]
    rows = [("pod", before.cgroup, after.cgroup)]
    rows += [(c.name, was, will) for (c, was), (_, will) in zip(before.containers, after.containers, strict=True)]
    for name, was, will in rows:
        if was.share is None or will.share is None:
            continue
        systems = case.before.system.share or 0.0, case.after.system.share or 0.0
        ratios = [
            number(share / system) for share, system in zip((was.share, will.share), systems, strict=True) if system
        ]
        against = f"; {' -> '.join(ratios)} times system.slice" if len(ratios) == 2 else ""
        yield f"  {name}: {percent(was.share)} -> {percent(will.share)} of the node's CPU{against}"
