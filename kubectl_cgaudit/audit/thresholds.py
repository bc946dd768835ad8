"""From where on a change is a finding. Each can be set."""

import msgspec
import polars as pl
from msgspec import Struct

from kubectl_cgaudit.errors import UsageError

_NEARLY = 1e-7
"""What is compared is made of numbers with nine digits: what is a threshold but for their last one reaches it."""


def reached(part: float, threshold: float) -> bool:
    """Whether what is lost or gained, a fraction of what there was, reaches a threshold. Nothing reaches none, however small."""
    return part > 0 and part >= threshold - _NEARLY


def _reached(part: pl.Expr, threshold: float) -> pl.Expr:
    """`reached` of a column; what cannot be compared (null) reaches nothing."""
    return ((part > 0) & (part >= threshold - _NEARLY)).fill_null(value=False)


class Thresholds(Struct, frozen=True, rename="kebab"):
    """Fractions are of the value before; ratios are plain numbers."""

    system_loss: float = 0.10
    """CGA201: a pod loses at least this fraction of its CPU against system processes."""
    system_gain: float = 0.10
    """A workload counts as gaining from this fraction on."""
    pod_move: float = 0.05
    """CGA204: a container loses at least this fraction of its part of its pod's CPU."""
    outweighed: float = 10.0
    """CGA202: pods have at least this many times the weight of system.slice."""
    outweighed_reserve: float = 5.0
    """CGA202: the same, where an enforced reserve lowers system.slice below its default."""
    divisible: float = 5.0
    """CGA206: a smaller weight cannot be divided among child cgroups."""

    def loses(self, change: float | None) -> bool:
        """Whether a pod that changes so against the system loses. None, for what cannot be compared, does not."""
        return change is not None and reached(-change, self.system_loss)

    def gains(self, change: float | None) -> bool:
        """Whether such a pod gains."""
        return change is not None and reached(change, self.system_gain)

    def moves(self, change: float | None) -> bool:
        """Whether a container whose part of its pod changes so loses enough of it."""
        return change is not None and reached(-change, self.pod_move)

    def outweighed_from(self, *, lowered: bool) -> float:
        """From how many times the weight of system.slice on pods outweigh it; lowered: it has less than its default."""
        return self.outweighed_reserve if lowered else self.outweighed

    def lost(self, change: pl.Expr) -> pl.Expr:
        """`loses` of a column of changes."""
        return _reached(-change, self.system_loss)

    def gained(self, change: pl.Expr) -> pl.Expr:
        """`gains` of a column of changes."""
        return _reached(change, self.system_gain)

    def moved(self, change: pl.Expr) -> pl.Expr:
        """`moves` of a column of changes."""
        return _reached(-change, self.pod_move)

    def by_name(self) -> dict[str, float]:
        """Return all of them by the names they have outside, sorted."""
        named: dict[str, float] = msgspec.to_builtins(self, order="sorted")
        return named


_PARTS = ("system-loss", "pod-move")
"""Nothing loses all it has: a threshold that is never reached would turn its rule off in silence."""


def parse(settings: tuple[str, ...]) -> Thresholds:
    """Read `NAME=VALUE`, a value such as 0.1, 10% or 10. Raises UsageError for another name or value."""
    values = Thresholds().by_name()
    for setting in settings:
        name, _, text = setting.partition("=")
        if name not in values:
            raise UsageError(f"--threshold: there is no {name!r}; there are {', '.join(values)}")
        values[name] = _value(name, text)
    return msgspec.convert(values, Thresholds)


def _value(name: str, text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    is_part = name in _PARTS
    if not 0 < value < 1e6:
        such = "part such as 0.1 or 10%" if is_part else "number such as 0.1, 10% or 5"
        raise UsageError(f"--threshold: {name}: {text!r} is not a positive {such}")
    if is_part and value >= 1:
        raise UsageError(
            f"--threshold: {name}: nothing loses {value:.0%} of what it has; write a part such as 0.1 or 10%"
        )
    return value
