"""Random statuses of containers: running or not, and in the middle of a resize.

Part of the reference model: written from the documents alone, to be obviously right and not fast. It must never
import from kubectl_cgaudit.
"""

from random import Random

from tests.reference.amounts import milli
from tests.reference.objects import Raw

STATES: list[Raw] = [
    *[{"running": {"startedAt": "2026-11-01T00:00:00Z"}}] * 4,
    {"terminated": {"exitCode": 0, "reason": "Completed"}},
    {"waiting": {"reason": "CrashLoopBackOff"}},
]
# What the kubelet says of a resize from 1.33 on, and said before.
WAITING: list[Raw] = [
    {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]},
    {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]},
    {"resize": "Proposed"},
    {"resize": "Infeasible"},
]
IN_PROGRESS: list[Raw] = [
    {"conditions": [{"type": "PodResizeInProgress", "status": "True"}]},
    {"resize": "InProgress"},
]
LESS_CPU, MORE_CPU = ("60m", "90m"), ("470m", "3")


def statuses(random: Random, spec: Raw) -> Raw:
    """Those of all containers of a pod, or of none."""
    if random.random() < 0.3:
        return {}
    # A pod with resources of its own cannot be resized.
    resize = random.choice([*[{}] * 6, *WAITING[:1], *WAITING, *IN_PROGRESS]) if "resources" not in spec else {}
    found = dict(resize)
    for members, key in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
        if members in spec:
            found[key] = [_status(random, each, members, resize) for each in spec[members]]
    return found


def _status(random: Random, container: Raw, members: str, resize: Raw) -> Raw:
    wanted, name = container["resources"], container["name"]
    found = {"name": name, "containerID": f"containerd://{name}", "state": random.choice(STATES)}
    resizable = members == "containers" or container.get("restartPolicy") == "Always"
    if resize and resizable and "cpu" in wanted.get("requests", {}):
        had = _smaller_or_greater(random, wanted)
        allocated = wanted if resize in IN_PROGRESS else had
        return found | {"resources": had, "allocatedResources": allocated["requests"]}
    if random.random() < 0.5:
        return found | {"resources": wanted, "allocatedResources": wanted.get("requests", {})}
    return found


def _smaller_or_greater(random: Random, wanted: Raw) -> Raw:
    """What a container had before the resize. Its QoS class stays."""
    less, more = random.choice(LESS_CPU), random.choice(MORE_CPU)
    had = {kind: dict(amounts) for kind, amounts in wanted.items()}
    if "cpu" not in wanted.get("limits", {}):
        had["requests"]["cpu"] = random.choice([less, more])
    elif milli(wanted["limits"]["cpu"]) == milli(wanted["requests"]["cpu"]):
        had["requests"]["cpu"] = had["limits"]["cpu"] = random.choice([less, more])
    else:
        had["requests"]["cpu"], had["limits"]["cpu"] = less, more
    return had
