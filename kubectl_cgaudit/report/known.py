"""What is known of nodes, and how surely. Plain text, not escaped."""

from collections.abc import Iterable

from kubectl_cgaudit.detect.state import unit_of
from kubectl_cgaudit.judge.audit import CONFIDENCES, NodeAudit, NodeCase

_WHAT = {
    "cgroup": "cgroup version",
    "driver": "cgroup driver",
    "kubelet": "kubelet's formula",
    "system_slice": "system.slice",
    "root": "what else wants CPU at the root",
}


def known_rows(node: NodeAudit) -> list[tuple[str, str, str, str, str]]:
    """What is known of a node: what, now, after, how surely, on what ground. Unknown is never left blank."""
    return [
        (_what(key), known.value or "not known", _after(node, key), known.confidence, known.source)
        for key, known in node.known.items()
    ]


def _what(key: str) -> str:
    if key.startswith("runtime:"):
        return f"runtime of handler {key.removeprefix('runtime:')}"
    return _WHAT.get(key, key)


def _after(node: NodeAudit, key: str) -> str:
    seen = [_of_moment(case, key) for case in node.cases]
    return " or ".join(dict.fromkeys(seen))


def _of_moment(case: NodeCase, key: str) -> str:
    if case.stops:
        return "stops"
    after, unit_ = case.after, unit_of(case.after.cgroup)
    root = ", ".join(f"{name} ({unit_} {value})" for name, value in after.root.items())
    values = {
        "cgroup": after.cgroup,
        "driver": after.driver,
        "kubelet": after.kubelet,
        "system_slice": f"{unit_} {after.system_slice}",
        # What schema 1.0 did not say stays empty.
        "root": root or ("no other cgroup" if after.driver else ""),
    }
    return values.get(key, after.runtimes.get(key.removeprefix("runtime:"), ""))


def sureness(nodes: Iterable[NodeAudit]) -> list[tuple[str, tuple[int, ...]]]:
    """On how many nodes each thing is known how surely; of several runtimes the least sure one counts."""
    asked = {
        "cgroup version": "cgroup",
        "formula of the runtimes": "runtime:",
        "kubelet's formula": "kubelet",
        "weight of system.slice": "system_slice",
    }
    rows = []
    for what, prefix in asked.items():
        found = [
            [CONFIDENCES.index(known.confidence) for key, known in node.known.items() if key.startswith(prefix)]
            for node in nodes
        ]
        worst = [max(each) for each in found if each]
        rows.append((what, tuple(worst.count(index) for index in range(len(CONFIDENCES)))))
    return rows
