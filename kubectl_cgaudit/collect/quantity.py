"""Kubernetes quantities, exactly."""

import re
from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache

from kubectl_cgaudit.errors import InputError

_QUANTITY = re.compile(
    r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([eE][+-]?\d{1,3})|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?", re.ASCII
)
_LONGEST = 64
LARGEST_MILLI = 2**63 - 1
"""What Kubernetes can hold, in thousandths of a CPU."""
_EXACT = Context(prec=1100)
_SUFFIX = {
    **{letter: Decimal(10) ** (3 * power) for power, letter in enumerate("num kMGTPE", start=-3)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}


@lru_cache(maxsize=4096)
def milli(text: str | int | float) -> int:
    """A CPU quantity in thousandths of a CPU, rounded up as `Quantity.MilliValue` does.

    Raises InputError when it is no quantity, negative, or beyond LARGEST_MILLI.
    """
    written = str(text)
    found = _QUANTITY.fullmatch(written) if len(written) <= _LONGEST else None
    if not found:
        raise InputError(f"{written[:_LONGEST]!r} is not a CPU quantity such as 250m or 2")
    if found[1] == "-" and Decimal(found[2]):
        raise InputError(f"{written!r} is negative, which no CPU quantity may be")
    scale = Decimal(f"1{found[3]}") if found[3] else _SUFFIX[found[4] or " "]
    value = _EXACT.multiply(_EXACT.multiply(Decimal(found[2]), scale), Decimal(1000))
    whole = value.to_integral_value(ROUND_CEILING, context=_EXACT)
    if whole > LARGEST_MILLI:
        raise InputError(f"{written!r} is larger than any CPU quantity can be")
    return int(whole)
