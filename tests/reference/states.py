"""What a node runs: the rules of a states file.

Part of the reference model: written from the documents alone, to be obviously right and not fast. It must never
import from kubectl_cgaudit.
"""

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from tests.reference.objects import Raw
from tests.reference.platforms import PLATFORMS, Platform, platform_of
from tests.reference.runtimes import Runtime, runtime_of


@dataclass(frozen=True)
class State:
    """What is known of a node; empty words and missing handlers are open. Values at the root have its unit."""

    kubelet: str = ""
    cgroup: str = ""
    driver: str = ""
    runtimes: dict[str, Runtime] = field(default_factory=dict)
    root: dict[str, int] = field(default_factory=dict)
    """Of system.slice and others that compete with kubepods, where it is said."""
    set_by: str = ""
    """systemd or kubelet: who set those."""
    platform: Platform = PLATFORMS["custom"]
    counts_partitioned: bool = True
    """Whether the Burstable slice counts pods for management partitions."""


def before(node: Raw, rules: list[Raw]) -> State:
    """What the rules say of a node, but for its kubelet: that the node says itself."""
    own = node["status"]["nodeInfo"]["kubeletVersion"]
    platform = platform_of(node)
    state = replace(ruled(State(), node, rules), kubelet=own, platform=platform)
    return replace(state, counts_partitioned=platform.counts_partitioned is not False)


def ruled(state: State, node: Raw, rules: list[Raw]) -> State:
    """The state with what the rules say instead; later ones win."""
    for rule in rules:
        if _matches(rule, node):
            state = _with(state, rule)
    return state


def _matches(rule: Raw, node: Raw) -> bool:
    match, labels = rule.get("match", {}), node["metadata"]["labels"]
    named = fnmatchcase(node["metadata"]["name"], match.get("name", "*"))
    return named and all(labels.get(key) == value for key, value in match.get("labels", {}).items())


def _with(state: State, rule: Raw) -> State:
    # A kubelet's formula may stand beside its version or alone; every kubelet's is linear.
    versions = [word for word in rule.get("kubelet", "").split() if word != "linear"]
    system = {"system.slice": rule["system_slice"]} if "system_slice" in rule else {}
    return replace(
        state,
        kubelet=versions[0] if versions else state.kubelet,
        cgroup=rule.get("cgroup", state.cgroup),
        driver=rule.get("driver", state.driver),
        runtimes=state.runtimes | {name: runtime_of(text) for name, text in rule.get("runtimes", {}).items()},
        root=state.root | system | rule.get("root", {}),
        set_by=rule.get("set_by", state.set_by),
    )
