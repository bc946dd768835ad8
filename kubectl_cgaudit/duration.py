"""Durations as Go writes them, and so Kubernetes and kubectl: https://pkg.go.dev/time#ParseDuration."""

import re
from decimal import Decimal

_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_WHOLE = re.compile(f"(?:{_PART.pattern})+", re.ASCII)
_LONGEST = 64
_US = {
    "ns": Decimal("0.001"),
    **dict.fromkeys(("us", "µs", "μs"), Decimal(1)),
    "ms": Decimal(1000),
    "s": Decimal(1_000_000),
    "m": Decimal(60_000_000),
    "h": Decimal(3_600_000_000),
}


def microseconds(text: str) -> Decimal | None:
    """A duration such as 250ms or 1h.5m in microseconds; None for what is none, or negative."""
    if len(text) > _LONGEST or not _WHOLE.fullmatch(text):
        return None
    return sum((Decimal(amount) * _US[unit] for amount, unit in _PART.findall(text)), Decimal(0))
