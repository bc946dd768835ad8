"""All that an audit says of the tree, the cases and the effects, each under its place; and where two audits differ.

Part of the reference model: written from the documents alone, to be obviously right and not fast. It must never
import from kubectl_cgaudit.
"""

from collections.abc import Iterator

from tests.reference.objects import Raw

Answer = float | str | bool | list[str] | None

WITHIN = 6e-10
"""An audit rounds to nine digits after the point: half of the last, and what binary fractions add to it."""

_NODE = ("cgroup", "driver", "kubepods", "systemSlice", "podsPerSystem", "podsShare", "systemShare")
_QOS = ("pods", "value", "share")
_CGROUP = ("version", "value", "quotaUs", "inPod", "share", "againstSystem")


def differences(reference: Raw, tool: Raw) -> list[str]:
    """Where two audits differ, and what each says there."""
    one, other = dict(answers(reference)), dict(answers(tool))
    return [
        f"{place}: {_said(one, place)} by the reference model, {_said(other, place)} by the tool"
        for place in one | other
        if place not in one or place not in other or not _same(one[place], other[place])
    ]


def answers(audit: Raw) -> Iterator[tuple[str, Answer]]:
    """What an audit says: under `node n0, pod a/p1, container c0, if cgroup v1, now, quotaUs` one number."""
    for node in audit["nodes"]:
        where = f"node {node['name']}"
        yield f"{where}, cases", sorted(case["when"] for case in _cases(node))
        for case in _cases(node):
            at = _at(where, case)
            yield f"{at}, stops", case.get("stops", False)
            yield from _node(f"{at}, now", case["now"])
            yield from _node(f"{at}, after", case["after"])
    for workload in audit["workloads"]:
        where = f"workload {workload['kind']} {workload['namespace']}/{workload['name']}"
        yield f"{where}, pods", sorted(pod["name"] for pod in workload["pods"])
        yield f"{where}, effects", sorted(workload["effects"])
        for pod in workload["pods"]:
            yield from _pod(f"node {pod['node']}, pod {workload['namespace']}/{pod['name']}", pod)


def _pod(where: str, pod: Raw) -> Iterator[tuple[str, Answer]]:
    yield f"{where}, qos", pod["qos"]
    yield f"{where}, handler", pod["handler"]
    yield f"{where}, effects", sorted(pod["effects"])
    for part, changes in ((where, pod), *((f"{where}, container {each['name']}", each) for each in pod["containers"])):
        yield f"{part}, cases", sorted(case["when"] for case in _cases(changes))
        for case in _cases(changes):
            # Left out where the pod runs.
            yield f"{_at(part, case)}, stops", case.get("stops", False)
            for moment in ("now", "after"):
                for field in _CGROUP:
                    yield f"{_at(part, case)}, {moment}, {field}", case[moment][field]


def _node(where: str, moment: Raw) -> Iterator[tuple[str, Answer]]:
    for field in _NODE:
        yield f"{where}, {field}", moment[field]
    for name, value in moment["root"].items():
        yield f"{where}, root {name}", value
    for name, qos in moment["qos"].items():
        for field in _QOS:
            yield f"{where}, {name} {field}", qos[field]


def _cases(of: Raw) -> list[Raw]:
    """All cases: the tool has the most plausible one by itself."""
    return [of, *of["cases"]] if "now" in of else of["cases"]


def _at(where: str, case: Raw) -> str:
    return f"{where}, if {case['when']}" if case["when"] else where


def _same(one: Answer, other: Answer) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= WITHIN
    return one == other


def _said(found: dict[str, Answer], place: str) -> str:
    return repr(found[place]) if place in found else "nothing"
