"""`convert`: a CPU request, shares or a weight in both formulas."""

from typing import Any

from kubectl_cgaudit.cgroups.weights import (
    DEFAULT_SHARES,
    DEFAULT_WEIGHT,
    FORMULAS,
    MAX_SHARES,
    MIN_SHARES,
    Formula,
    linear_inverse,
    shares_with_weight,
    weight_of,
)


def of_shares(shares: int, milli: int | None) -> dict[str, Any]:
    """What both formulas make of shares; `milli` is the request they came from."""
    weights = {formula: weight_of(shares, formula) for formula in FORMULAS}
    return {
        "request_milli": milli,
        "shares": shares,
        "weights": [
            {
                "formula": formula,
                "weight": weight,
                "ratio_to_default": weight / DEFAULT_WEIGHT,
                **_same(weight, formula),
            }
            for formula, weight in weights.items()
        ],
        "read_back_shares": linear_inverse(weights["linear"]),
    }


def of_weight(weight: int) -> dict[str, Any]:
    """Which shares and requests have this weight."""
    return {
        "weight": weight,
        "ratio_to_default": weight / DEFAULT_WEIGHT,
        "weights": [{"formula": formula, "weight": weight, **_same(weight, formula)} for formula in FORMULAS],
        "read_back_shares": linear_inverse(weight),
    }


def _same(weight: int, formula: Formula) -> dict[str, Any]:
    """All shares and requests with this weight; the last request is None where there is no end."""
    first, last = shares_with_weight(weight, formula)
    least = 0 if first == MIN_SHARES else -(-first * 1000 // 1024)
    # Whatever asks for more has the greatest shares too.
    most = None if last == MAX_SHARES else ((last + 1) * 1000 - 1) // 1024
    return {"shares_with_this_weight": [first, last], "requests_milli": [least, most]}


def as_text(result: dict[str, Any]) -> str:
    """The result for a person."""
    lines = []
    if result.get("request_milli") is not None:
        lines.append(f"request     {result['request_milli']}m CPU")
    if "shares" in result:
        lines.append(
            f"cgroup v1   cpu.shares {result['shares']} ({result['shares'] / DEFAULT_SHARES:.3g} x the default 1024)"
        )
    for entry in result["weights"]:
        named = f"cpu.weight {entry['weight']} ({entry['weight'] / DEFAULT_WEIGHT:.3g} x the default 100)"
        lines += [f"{entry['formula']:11} {named}", f"{'':11} {_range(entry)}"]
    lines.append(
        f"inverse     {result['read_back_shares']} shares: what the kubelet and cAdvisor read back "
        f"from weight {result['weights'][0]['weight']}"
    )
    lines += [
        "linear: every kubelet, runc before 1.3.2, crun before 1.23",
        "quadratic: runc from 1.3.2 on, crun from 1.23 on, for containers only",
    ]
    return "\n".join(lines) + "\n"


def _range(entry: dict[str, Any]) -> str:
    requests = _from_to(entry["requests_milli"], "m")
    return f"the weight of shares {_from_to(entry['shares_with_this_weight'])}, requests {requests}"


def _from_to(ends: list[int | None], unit: str = "") -> str:
    first, last = ends
    if last is None:
        return f"{first}{unit} and more"
    return f"{first}{unit}" if first == last else f"{first}..{last}{unit}"
