"""From where on a change counts, in words."""

from collections.abc import Callable

from kubectl_cgaudit.judge.audit import Audit
from kubectl_cgaudit.judge.thresholds import Thresholds
from kubectl_cgaudit.report.words import number, percent

_MEANINGS: dict[str, tuple[str, Callable[[float], str]]] = {
    "system-loss": ("a workload loses from this much less CPU against system.slice on", percent),
    "system-gain": ("a workload gains from this much more CPU against system.slice on", percent),
    "pod-move": ("CPU moves inside a pod once a container loses this much of its part of it", percent),
    "outweighed": ("pods outweigh system.slice from this ratio on", number),
    "outweighed-reserve": ("the same, where an enforced reserve lowers system.slice below its default", number),
    "divisible": ("a smaller weight cannot be divided among child cgroups", number),
}


def rows(audit: Audit) -> list[tuple[str, str, str]]:
    """Name, value and meaning of each threshold."""
    said = audit.scenario.thresholds.items()
    return [(name, _written(name, value), _MEANINGS.get(name, ("",))[0]) for name, value in said]


def own(audit: Audit) -> str:
    """Those that are not the default, each with it; empty if there is none."""
    usual = Thresholds().by_name()
    return ", ".join(
        f"{name} {_written(name, value)} in place of {_written(name, usual[name])}"
        for name, value in audit.scenario.thresholds.items()
        if value != usual.get(name, value)
    )


def _written(name: str, value: float) -> str:
    return _MEANINGS.get(name, ("", number))[1](value)
