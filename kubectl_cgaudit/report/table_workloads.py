"""The workloads' part of the table. Names give way to the width; numbers do not, until nothing else is left."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from kubectl_cgaudit.judge.audit import WorkloadAudit
from kubectl_cgaudit.report import content
from kubectl_cgaudit.report.screen import WIDEST, Column, Screen, columns, cut, lines, middle
from kubectl_cgaudit.report.stopping import stopping
from kubectl_cgaudit.report.words import (
    against_system,
    arrow,
    counted,
    number,
    otherwise,
    percent,
    span,
    with_kind,
)

_MOST_ROWS = 25
_MEDIUM = 120


def _inside_cut(text: str, most: int) -> str:
    """`node-exp… -10%`: the container's name is cut, never what it loses."""
    name, _, numbers = text.rpartition(" ")
    return text if columns(text) <= most else f"{cut(name, max(most - columns(numbers) - 1, 2))} {numbers}"


class _Part(Struct, frozen=True):
    """A column and what stands in it, not escaped. `from_width` is the least width of a screen that shows it."""

    column: Column
    cell: Callable[[WorkloadAudit], str]
    from_width: int = 0


def _title(workload: WorkloadAudit) -> str:
    return with_kind(workload.title, workload.kind)


def _pods(workload: WorkloadAudit) -> str:
    return (
        f"{workload.pod_count}+{workload.unpredicted_pods}?" if workload.unpredicted_pods else f"{workload.pod_count}"
    )


def _effect(workload: WorkloadAudit) -> str:
    return ", ".join(effect for effect in workload.effects if effect != "nominal") or workload.effect


def _cpu_of_node(workload: WorkloadAudit) -> str:
    if workload.may_stop:
        return content.stopping_share(workload)
    share = workload.share
    return arrow(percent(share.before), percent(share.after)) if share else "?"


def _cpu_of_named(workload: WorkloadAudit) -> str:
    """The same, and of which pod, where that is not the one of WORST POD."""
    share, worst = workload.share, workload.against_system
    said = _cpu_of_node(workload)
    if share is None or workload.may_stop or (worst and share.pod == worst.pod):
        return said
    return f"{said} ({share.pod} on {share.node})"


def _worst_pod(workload: WorkloadAudit) -> str:
    if stops := stopping(workload):
        return f"{content.times(stops.against_system)} -> stops ({stops.pod} on {stops.node})"
    change = workload.against_system
    return f"{number(change.before)} -> {number(change.after)} ({change.pod} on {change.node})" if change else "?"


def _inside(workload: WorkloadAudit) -> str:
    """The container that loses most of its pod's CPU; nothing where none does or all is said, `?` where it cannot be said."""
    said = content.inside(workload)
    return "" if said in ("0%", "stops") else said


def _nominal(workload: WorkloadAudit) -> str:
    """Of the container that INSIDE POD names, else of the first."""
    if not workload.nominal:
        return ""
    worst = workload.inside_pod.container if workload.inside_pod else None
    said = next((change for change in workload.nominal if change.container == worst), workload.nominal[0])
    before, after = f"{said.before_unit} {span(said.before)}", f"{said.after_unit} {span(said.after)}"
    if said.before_unit == said.after_unit:
        after = before if said.before == said.after else span(said.after)
    others = len(workload.nominal) - 1
    return f"{said.container}: {arrow(before, after)}" + (f"; {others} more…" if others else "")


def _nominals(workload: WorkloadAudit) -> str:
    return "; ".join(content.nominals(workload))


_NARROW = (
    _Part(Column("WORKLOAD", middle, 26, whole=True), _title),
    _Part(Column("PODS", right=True), _pods),
    _Part(Column("EFFECT", painted=True), _effect),
    _Part(Column("SURE", painted=True), lambda workload: workload.confidence, _MEDIUM),
    _Part(Column("VS SYSTEM"), against_system),
    _Part(Column("CPU OF NODE"), _cpu_of_node, _MEDIUM),
    _Part(Column("WORST POD", cut, 20), _worst_pod, WIDEST),
    _Part(Column("INSIDE POD", _inside_cut, 16), _inside),
    _Part(Column("NOMINAL", cut, 20), _nominal, WIDEST),
)
_WIDE = (
    _Part(Column("WORKLOAD"), _title),
    _Part(Column("PODS", right=True), _pods),
    _Part(Column("EFFECT", painted=True), lambda workload: ", ".join(workload.effects) or "none"),
    _Part(Column("SURE", painted=True), lambda workload: workload.confidence),
    _Part(Column("AGAINST SYSTEM"), against_system),
    _Part(Column("WORST POD"), _worst_pod),
    _Part(Column("CPU OF NODE"), _cpu_of_named),
    _Part(Column("INSIDE POD"), _inside),
    _Part(Column("NOMINAL WEIGHT"), _nominals),
    _Part(Column("OTHERWISE"), lambda workload: "; ".join(otherwise(workload))),
)


class _Rows(Struct, frozen=True):
    """The shown cells of workloads, made each time they are asked for: those of a large cluster would fill the memory."""

    parts: Sequence[_Part]
    workloads: Sequence[WorkloadAudit]
    screen: Screen

    def __iter__(self) -> Iterator[list[str]]:
        shown, cells = self.screen.shown, [part.cell for part in self.parts]
        return ([shown(cell(workload)) for cell in cells] for workload in self.workloads)


def narrow(workloads: Sequence[WorkloadAudit], screen: Screen) -> Iterable[str]:
    """The workloads that change, the worst first, in the screen's width; what is left out is counted."""
    changed = [workload for workload in workloads if workload.effect != "none"]
    parts = _standing([part for part in _NARROW if screen.width >= part.from_width], changed)
    drawn = list(_drawn(parts, changed[:_MOST_ROWS], screen, fit=True)) if changed else []
    left_out = []
    if len(changed) < len(workloads):
        left_out.append(f"{counted(len(workloads) - len(changed), 'workload')} unchanged")
    if len(changed) > _MOST_ROWS:
        left_out.append(f"{len(changed) - _MOST_ROWS} more that change")
    if any("…" in line for line in drawn):
        left_out.append("cells cut at …")
    return [*drawn, f"{', '.join(left_out)}: -o wide shows all."] if left_out else drawn


def wide(workloads: Sequence[WorkloadAudit], screen: Screen) -> Iterable[str]:
    """Every workload with every number, in lines as long as they get."""
    return _drawn(_standing(_WIDE, workloads), workloads, screen, fit=False) if workloads else ()


def _standing(parts: Sequence[_Part], shown: Sequence[WorkloadAudit]) -> Sequence[_Part]:
    """With a column for what a baseline or a policy says, if it says anything."""
    said = _Part(Column("FINDINGS"), lambda workload: workload.standing)
    return [*parts[:3], said, *parts[3:]] if any(workload.standing for workload in shown) else parts


def _drawn(parts: Sequence[_Part], shown: Sequence[WorkloadAudit], screen: Screen, *, fit: bool) -> Iterator[str]:
    return lines([part.column for part in parts], _Rows(parts, shown, screen), screen, fit=fit)
