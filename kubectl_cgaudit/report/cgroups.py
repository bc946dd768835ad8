"""`tree`: every cgroup of a node before and after, as a drawing or as JSON."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kubectl_cgaudit.judge.compare import Comparison
from kubectl_cgaudit.judge.confidence import of_handlers
from kubectl_cgaudit.predict.tree import Cgroup
from kubectl_cgaudit.report.escape import shorten, visible
from kubectl_cgaudit.report.words import arrow, percent

_COLUMN = 60
_DIGITS = 9


def as_json(comparisons: Sequence[Comparison]) -> str:
    """`{"cgroups": [...]}`, a row a cgroup.

    On a node with open questions a row has `cases`, one for each possibility, and `now` and `after` hold
    what all of them agree on, null for the rest.
    """
    rows = [row for comparison in comparisons for row in _rows(comparison)]
    return msgspec.json.format(msgspec.json.encode({"cgroups": rows}), indent=2).decode() + "\n"


def _rows(comparison: Comparison) -> Iterable[dict[str, Any]]:
    columns = [list(zip(case.before.cgroups(), case.after.cgroups(), strict=True)) for case in comparison.cases]
    for same in zip(*columns, strict=True):
        cgroup = same[0][0]
        moments = [(_moment(before), _moment(after)) for before, after in same]
        row: dict[str, Any] = {
            "node": comparison.node.name,
            "level": cgroup.level,
            "namespace": cgroup.namespace,
            "pod": cgroup.pod,
            "container": cgroup.container,
            "cgroup": cgroup.path,
            "now": _agreed([now for now, _ in moments]),
            "after": _agreed([after for _, after in moments]),
        }
        if len(moments) > 1:
            row["cases"] = [
                {"when": case.when, "now": now, "after": after}
                for case, (now, after) in zip(comparison.cases, moments, strict=True)
            ]
        yield row


def _moment(cgroup: Cgroup) -> dict[str, Any]:
    return {
        "version": cgroup.version,
        "shares": cgroup.shares,
        "weight": cgroup.weight,
        "quota_us": cgroup.quota_us,
        "period_us": cgroup.period_us,
        "share": None if cgroup.share is None else round(cgroup.share, _DIGITS),
    }


def _agreed(moments: Sequence[dict[str, Any]]) -> dict[str, Any]:
    first = moments[0]
    return {key: value if all(m[key] == value for m in moments) else None for key, value in first.items()}


def as_text(comparisons: Sequence[Comparison]) -> str:
    """The trees, drawn."""
    return "\n".join(_draw(comparison) for comparison in comparisons)


def _draw(comparison: Comparison) -> str:
    lines = []
    for case in comparison.cases:
        when = f", if {case.when}" if case.when else ""
        sure = of_handlers(comparison.state, comparison.handlers)
        head = f"{visible(comparison.node.name)}: cgroup {arrow(case.now.cgroup, case.then.cgroup)}{when} ({sure})"
        rows = list(zip(case.before.rows(), case.after.cgroups(), strict=True))
        depths = [depth for (depth, _), _ in rows]
        cells = [(shorten(head, _COLUMN), "VALUE", "CPU OF NODE", "QUOTA")]
        cells += [
            (shorten(_branches(depths, index) + visible(_label(before)), _COLUMN), *_cells(before, after))
            for index, ((_, before), after) in enumerate(rows)
        ]
        widths = [max(len(row[column]) for row in cells) for column in range(3)]
        lines += [
            "  ".join([cell.ljust(width) for cell, width in zip(row, widths, strict=False)] + [row[3]]).rstrip()
            for row in cells
        ]
        lines.append("")
    return "\n".join(lines)


def _cells(before: Cgroup, after: Cgroup) -> tuple[str, str, str]:
    share = arrow(percent(before.share), percent(after.share)) if before.share is not None else "-"
    return arrow(_value(before), _value(after)), share, arrow(_quota(before), _quota(after))


def _branches(depths: Sequence[int], index: int) -> str:
    """The lines that lead to a row: it is the last child if no later row is on its level before a higher one."""
    depth = depths[index]
    if depth == 0:
        return ""
    parts = []
    for level in range(1, depth + 1):
        later = next((other for other in depths[index + 1 :] if other <= level), 0)
        goes_on = later == level
        if level == depth:
            parts.append("├─ " if goes_on else "└─ ")
        else:
            parts.append("│  " if goes_on else "   ")
    return "".join(parts)


def _label(cgroup: Cgroup) -> str:
    if cgroup.container:
        return cgroup.container
    if cgroup.pod:
        return f"{cgroup.namespace}/{cgroup.pod}"
    return (cgroup.path or "").rsplit("/", 1)[1]


def _value(cgroup: Cgroup) -> str:
    if cgroup.value is None:
        return "not set"
    return f"{'shares' if cgroup.version == 'v1' else 'weight'} {cgroup.value}"


def _quota(cgroup: Cgroup) -> str:
    return "" if cgroup.quota_us is None else f"{cgroup.quota_us * 1000 // cgroup.period_us}m"
