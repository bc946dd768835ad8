"""`verify`: the differences between what is predicted and what the kubelets show."""

from collections.abc import Iterator

import msgspec

from kubectl_cgaudit.judge.verify import Difference, Verification
from kubectl_cgaudit.report.screen import PLAIN, Column, Screen, grid, wrap
from kubectl_cgaudit.report.words import counted

_HEADS = tuple(Column(title) for title in ("NODE", "LEVEL", "CGROUP OF", "PREDICTED", "MEASURED"))
_MEANING = (
    "A container that differs was created before its runtime was upgraded, or its node runs another runtime than was said: "
    "restart it, or correct --states. A pod or slice that differs was written by a kubelet with other settings."
)


def as_json(result: Verification) -> str:
    """The verification for programs."""
    return msgspec.json.format(msgspec.json.encode(result), indent=2).decode() + "\n"


def as_text(result: Verification, screen: Screen = PLAIN) -> str:
    """What was compared, and the differences in rows as long as they get: whose cgroup differs is never cut."""
    lines = [wrap(screen.shown(text), screen.width, "", "  ") for text in _said(result)]
    if result.differences:
        rows = [[screen.shown(cell) for cell in _row(difference)] for difference in result.differences]
        lines += ["", *grid(_HEADS, rows, screen, fit=False), "", wrap(_MEANING, screen.width)]
    return screen.finished("\n".join(lines) + "\n")


def _said(result: Verification) -> Iterator[str]:
    if not result.nodes:
        yield "Nothing could be compared."
    else:
        what = f"{counted(result.compared, 'cgroup')} of {counted(len(result.nodes), 'node')}"
        count = len(result.differences)
        yield f"{what} compared with their kubelets: {counted(count, 'difference') if count else 'no difference'}."
        if result.unmeasured:
            shown = "was" if result.unmeasured == 1 else "were"
            yield f"{counted(result.unmeasured, 'predicted cgroup')} {shown} not shown: ended since, or not created yet."
        yield "Kubelets do not show system.slice unless they are told to: its weight is not verified."
    yield from (f"Not compared: {node}: {'; '.join(why)}." for node, why in result.not_compared.items())


def _row(difference: Difference) -> list[str]:
    names = [difference.namespace, difference.pod, difference.container]
    of = "/".join(name for name in names if name) or difference.cgroup
    predicted = " or ".join(str(value) for value in difference.predicted)
    measured = "no weight" if difference.measured is None else str(difference.measured)
    return [difference.node, difference.level, of, predicted, measured]
