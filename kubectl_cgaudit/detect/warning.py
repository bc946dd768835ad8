"""The Warning event `CgroupV1`: what a kubelet found when it started."""

from datetime import datetime, timedelta

from kubectl_cgaudit.collect.model import Node
from kubectl_cgaudit.detect.evidence import Evidence

# The kubelet warns as it starts, and is Ready shortly afterwards.
_STARTING = timedelta(minutes=10)


def evidence(node: Node, warned: str) -> Evidence:
    """The node is on cgroup v1, if the warning is of the start that made it Ready; an older one is only a hint."""
    when, ready = _time(warned), _time(node.ready_since or "")
    current = when is not None and (ready is None or ready - when <= _STARTING)
    saw = f"the kubelet warned of cgroup v1 at {warned or 'an unknown time'}"
    if when is not None and not current:
        saw += ", before the node last became Ready"
    return Evidence("cgroup", "v1", "likely" if current else "hint", "Event CgroupV1", saw, "", "kubelet", ("events",))


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return found if found.tzinfo else None
