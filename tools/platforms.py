"""Write docs/platforms.md: what the tool says of the nodes of each platform, beside what is true.

`python -m tools.platforms > docs/platforms.md` after a change of `tests/platform_nodes.yaml`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

NODES = Path(__file__).parent.parent / "tests" / "platform_nodes.yaml"
_HEAD = """\
# Platforms: what is known from nodes and pods alone

What `kubectl cgaudit nodes` says of a node that nobody said anything of, by its strings in the API. The tests hold every row
against the tool. How sure each answer is: [the ladder](method.md#how-surely-a-node-is-known). What a platform does by default
is a row of [the catalogue](../kubectl_cgaudit/detect/catalogue.yaml), with its source and its date.
"""
_WRONG = """\
Who overrode a default is who is hurt by believing it: that a node is probably on cgroup v2 says nothing of a kernel command line
that somebody wrote. So a probable answer keeps its other case, `--fail-on` exits with 3 where that case holds something
severe, and `kubectl cgaudit nodes` says what settles it.
"""
_LEGEND = """\
`*`: put together from what the platform documents; all others are Nodes seen in public code, with the providerID that their
platform sets. `true`: what the source says of a node that nobody changed; `-`: no source decides it."""


def rows() -> list[dict[str, Any]]:
    """Return the rows of the file."""
    found: list[dict[str, Any]] = yaml.safe_load(NODES.read_text(encoding="utf-8"))
    return found


def page(every: Sequence[dict[str, Any]]) -> str:
    """Return the page, ended with a line break."""
    answered = {what: sum(row["says"][what] != "not known" for row in every) for what in ("cgroup", "formula")}
    wrong = [row for row in every for what in ("cgroup", "formula") if is_wrong(row, what)]
    counts = (
        f"Of {len(every)} nodes, {len(seen(every))} of them seen in public code, the cgroup version is probable or better for "
        f"{answered['cgroup']}, the runtime's formula for {answered['formula']}. Of these answers {len(wrong)} "
        f"{'is' if len(wrong) == 1 else 'are'} wrong:"
    )
    named = [f"- {row['platform']}: {row['says']['cgroup']}, overridden by {row['overridden']}" for row in wrong]
    head = ("platform", "kubelet, runtime", "OS image, kernel, labels", "cgroup", "true", "formula", "true", "source")
    table = [head, ("---",) * len(head), *map(_cells, every)]
    lines = [f"| {' | '.join(cells)} |" for cells in table]
    return "\n".join([_HEAD, counts, "", *named, "", _WRONG, *lines, "", _LEGEND]) + "\n"


def seen(every: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows whose strings were seen as they are."""
    return [row for row in every if not row.get("made")]


def is_wrong(row: dict[str, Any], what: str) -> bool:
    """Return whether what the tool says first is not what is true."""
    truth, said = row["truth"][what], row["says"][what]
    return truth is not None and said != "not known" and _value(said) != truth


def _value(said: str) -> str:
    value = said.partition(" (")[0]
    return "linear" if value == "not quadratic" else value


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    truth, says = row["truth"], row["says"]
    return (
        row["platform"] + ("*" if row.get("made") else ""),
        f"`{row['kubelet']}`, `{row['runtime']}`",
        ", ".join([row["os"], *_others(row)]),
        says["cgroup"],
        truth["cgroup"] or "-",
        says["formula"],
        truth["formula"] or "-",
        row["source"],
    )


def _others(row: dict[str, Any]) -> list[str]:
    labels = (f"{key}={value}" for key, value in row.get("labels", {}).items())
    return [f"`{each}`" for each in (row["kernel"], *labels) if each]


if __name__ == "__main__":
    sys.stdout.write(page(rows()))
