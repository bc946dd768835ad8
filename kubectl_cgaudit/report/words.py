"""How numbers, amounts and names are written, the same in every format."""

from collections.abc import Iterable, Sequence

from kubectl_cgaudit.audit.model import Change, Effect, Target, Workload
from kubectl_cgaudit.text import capital as capital
from kubectl_cgaudit.text import counted as counted
from kubectl_cgaudit.text import named as named
from kubectl_cgaudit.text import number as number
from kubectl_cgaudit.text import percent as percent
from kubectl_cgaudit.text import percents as _percents

ONLY_WHEN_FULL = "On a node with CPU to spare, no workload loses."
SYSTEM = "system services (system.slice)"
_KINDS = {
    "Deployment": "deploy",
    "StatefulSet": "sts",
    "DaemonSet": "ds",
    "CronJob": "cj",
    "Job": "job",
    "ReplicaSet": "rs",
    "Pod": "pod",
}
EFFECTS: dict[Effect, str] = {
    "stops": "does not run after the move: its node does not come back",
    "may-stop": "may not start after the move",
    "loses": "loses CPU to system services",
    "unknown": "depends on what is not known",
    "moves": "CPU moves between the containers of its pods",
    "gains": "gets more CPU against system services",
    "nominal": "only the number in cpu.weight changes",
    "none": "nothing changes",
}
SIGNS: dict[Effect, str] = {
    "stops": "!",
    "may-stop": "!",
    "loses": "-",
    "unknown": "?",
    "moves": "~",
    "gains": "+",
    "nominal": " ",
    "none": " ",
}


both_percents = _percents
"""Two fractions as percentages, with the digits that tell them apart."""


def arrow(before: str, after: str) -> str:
    """Return `a -> b`, or `a` alone if both are the same."""
    return before if before == after else f"{before} -> {after}"


def percents(before: float, after: float) -> str:
    """Return two fractions as `27% -> 20%`, with the digits that tell them apart."""
    if before == after:
        return percent(before)
    return arrow(*both_percents(before, after))


def change(fraction: float) -> str:
    """Return a relative change: -62%, +18%, -4.7%, 0%."""
    value = fraction * 100
    if abs(value) < 0.05:
        return "0%"
    if -1 < fraction <= -0.5:
        return percent(fraction)
    return f"{value:+.0f}%" if abs(value) >= 9.95 else f"{value:+.1f}%"


def amount(milli: float) -> str:
    """Return an amount of CPU in thousandths as a spec writes it: 250m."""
    return f"{milli:.0f}m"


def value(number_: float | None, unit: str) -> str:
    """Return `weight 39`, `1024 shares`; of what a runtime sets none, that it is not set."""
    if number_ is None:
        return "not set"
    return f"{number_:.0f} shares" if unit == "shares" else f"weight {number_:.0f}"


def title(workload: Workload) -> str:
    """Return `shop/checkout deploy`."""
    return f"{workload.title} {_KINDS.get(workload.kind, workload.kind.lower())}"


def kind(name: str) -> str:
    """Return a kind as kubectl shortens it."""
    return _KINDS.get(name, name.lower())


def on(nodes: Sequence[str], most: int = 3) -> str:
    """Return `on worker-c`, `on 12 nodes (a, b, c and 9 more)`."""
    if not nodes:
        return ""
    if len(nodes) <= most:
        return f"on {' and '.join([', '.join(nodes[:-1]), nodes[-1]] if len(nodes) > 1 else nodes)}"
    return f"on {counted(len(nodes), 'node')} ({named(nodes, most)})"


def is_are(count: int) -> str:
    """Return `is` or `are`."""
    return "is" if count == 1 else "are"


def each_loses(count: int) -> str:
    """Return `loses` or `lose`."""
    return "loses" if count == 1 else "lose"


def split(of: Change | None) -> str:
    """Return `app 91% -> 85%`; empty where nothing moves."""
    if of is None or of.container is None or change(of.change) == "0%":
        return ""
    return f"{of.container} {percents(of.before, of.after)}"


def sentence(*parts: str) -> str:
    """Return the parts that are there, with a space between."""
    return " ".join(filter(None, parts))


def joined(names: Iterable[str], word: str = "and") -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    listed = list(names)
    return f"{', '.join(listed[:-1])} {word} {listed[-1]}" if len(listed) > 1 else "".join(listed)


def with_kind(name: str, of_kind: str) -> str:
    """Return a workload's title and its kind as kubectl shortens it: `shop/checkout deploy`."""
    return f"{name} {kind(of_kind)}"


def asked(target: Target) -> str:
    """Return the flags that say what was predicted: `--to v2 --what-if 1`."""
    return " ".join((f"--to {target.to}", *(f"--what-if {each}" for each in target.what_if)))
