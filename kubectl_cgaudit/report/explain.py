"""`explain`: the way from the root to one pod and its containers, drawn as a tree with the arithmetic of each level."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest

from kubectl_cgaudit.audit.condition import condition
from kubectl_cgaudit.collect.model import Pod
from kubectl_cgaudit.compare.views import CaseView, NodeView
from kubectl_cgaudit.detect.state import Setup
from kubectl_cgaudit.report.levels import Level, levels
from kubectl_cgaudit.report.screen import PLAIN, Column, Screen, grid, middle, wrap
from kubectl_cgaudit.report.tree import below, beside, branches
from kubectl_cgaudit.text import number, percent

_HEADS = (
    Column("CGROUP", middle, 20),
    Column(""),
    Column("VALUE"),
    Column("AMONG SIBLINGS"),
    Column("OF NODE", right=True),
)
_WHEN = 1
_BAR = 8


def render(node: NodeView, pod: Pod, screen: Screen = PLAIN, of: str = "") -> str:
    """The tree in every case that differs here, now and after; `of` says of which workload the pod is."""
    index, handler = next((i, used) for i, (other, used) in enumerate(node.placed) if _is_same(other, pod))
    lines = _wrapped(
        [
            *([of] if of else []),
            f"{pod.namespace}/{pod.name} on {node.name}, QoS class {pod.qos}, runtime handler {handler}",
            f"how sure: {_sure(node, handler)}",
        ],
        screen,
    )

    def drawn(case: CaseView) -> tuple[str, ...]:
        fate = list(_stops(node, case, pod))
        return (*_wrapped(fate, screen), *_case(node, case, index, handler, screen, stops=bool(fate)))

    # What is open of other handlers makes cases in which this pod is the same.
    for when, case in _distinct(node.cases, drawn):
        if when:
            lines += ["", *_wrapped([when.upper()], screen)]
        lines += ["", *drawn(case)]
    return screen.finished("\n".join(lines) + "\n")


def _is_same(one: Pod, other: Pod) -> bool:
    return (one.namespace, one.name) == (other.namespace, other.name)


def _stops(node: NodeView, case: CaseView, pod: Pod) -> Iterator[str]:
    """Yield, before any number, that there may be none."""
    after = case.after.setup
    if case.lost:
        yield (
            f"AFTER THE MOVE IT DOES NOT RUN: kubelet {after.kubelet_version} does not start on cgroup v1 (CGA101). The "
            "numbers of after are those it would have."
        )
    run = node.failing(case).get((pod.namespace, pod.name))
    if run is not None:
        whole = " AS A WHOLE" if run != "run" else ""
        yield (
            f"AFTER THE MOVE IT MAY NOT RUN{whole}: a container's limit is more than its pod's, and it may not start (CGA301). "
            "The numbers of after are those it would have."
        )


def _distinct(
    cases: Sequence[CaseView], drawn: Callable[[CaseView], tuple[str, ...]]
) -> Iterator[tuple[str, CaseView]]:
    """Yield the cases that differ here, each with what it assumes; what is open of other handlers makes equal ones."""
    seen: dict[tuple[str, ...], list[CaseView]] = {}
    for case in cases:
        seen.setdefault(drawn(case), []).append(case)
    for alike in seen.values():
        yield condition([case.when for case in alike], [case.when for case in cases]), alike[0]


def _wrapped(texts: Iterable[str], screen: Screen, indent: str = "") -> list[str]:
    return [wrap(screen.shown(text), screen.width, indent, indent + "  ") for text in texts]


def _sure(node: NodeView, handler: str) -> str:
    """How surely each thing is known that the arithmetic starts from."""
    state = node.state
    asked = {
        "cgroup version": "cgroup",
        "kubelet": "kubelet",
        "runtime": f"runtime:{handler}",
        "system.slice": "system_slice",
    }
    return ", ".join(f"{what} {state.basis_of(about).confidence}" for what, about in asked.items())


def _case(node: NodeView, case: CaseView, index: int, handler: str, screen: Screen, *, stops: bool) -> Iterator[str]:
    now = list(levels(node.known.node, case.before, index))
    then = list(levels(node.known.node, case.after, index))
    before, after = _setup(case.before.setup, handler), _setup(case.after.setup, handler)
    if now == then:
        yield from _wrapped([f"{'NOW' if stops else 'NOW, AND NOTHING CHANGES'}: {before}"], screen)
    else:
        yield from _wrapped([f"NOW: {before}", f"AFTER: {after}"], screen)
    yield ""
    yield from _tree(now, then, screen)
    if now != then:
        yield ""
        yield "TOGETHER"
        yield from _wrapped(_together(case, index), screen, "  ")


def _setup(setup: Setup, handler: str) -> str:
    kubelet = setup.kubelet_version or "of unknown version"
    return (
        f"cgroup {setup.cgroup}, {setup.driver} driver, kubelet {kubelet} ({setup.kubelet_formula} formula), "
        f"{setup.runtime(handler)}"
    )


def _tree(now: Sequence[Level], then: Sequence[Level], screen: Screen) -> Iterator[str]:
    """A row for each level, or one for now and one for after; under it what it is made of."""
    pairs = [(was or _absent(will), will or _absent(was)) for was, will in beside(now, then, _at_root)]
    depths = [level.depth for level, _ in pairs]
    rows: list[list[str]] = []
    under: list[list[str]] = []
    for index, (before, after) in enumerate(pairs):
        label = branches(depths, index) + screen.shown(before.label)
        stem = below(depths, index)
        if _cells(before) == _cells(after):
            rows.append([label, "", *_cells(before)])
        else:
            rows += [[label, "now", *_cells(before)], [stem.rstrip(), "after", *_cells(after)]]
            under.append([])
        under.append(_wrapped(_notes(before.notes, after.notes), screen, stem))
    keep = [column for column in range(len(_HEADS)) if column != _WHEN or any(row[_WHEN] for row in rows)]
    drawn = grid([_HEADS[column] for column in keep], [[row[column] for column in keep] for row in rows], screen)
    yield drawn[0]
    for row, notes in zip(drawn[1:], under, strict=True):
        yield row
        yield from notes


def _at_root(level: Level) -> str | None:
    return level.label if level.depth == 0 and level.label != "kubepods" else None


def _absent(other: Level | None) -> Level:
    return Level(0, other.label if other else "", "not there", None, None)


def _cells(level: Level) -> tuple[str, str, str]:
    part = "-" if level.part is None else f"{bar(level.part)} {percent(level.part)}"
    return level.value, part, "-" if level.share is None else percent(level.share)


def _notes(now: Sequence[str], then: Sequence[str]) -> Iterator[str]:
    for before, after in zip_longest(now, then):
        if before == after:
            yield before
            continue
        if before is not None:
            yield f"now: {before}"
        if after is not None:
            yield f"after: {after}"


def _together(case: CaseView, index: int) -> Iterator[str]:
    before, after = case.before.pod(index), case.after.pod(index)
    rows = [("pod", before.cgroup, after.cgroup)]
    rows += [(c.name, was, will) for (c, was), (_, will) in zip(before.containers, after.containers, strict=True)]
    for name, was, will in rows:
        if was.share is None or will.share is None:
            continue
        systems = case.before.system_share, case.after.system_share
        ratios = [
            number(share / system) for share, system in zip((was.share, will.share), systems, strict=True) if system
        ]
        against = f"; {' -> '.join(ratios)} times system.slice" if len(ratios) == 2 else ""
        yield f"{name}: {percent(was.share)} -> {percent(will.share)} of the node's CPU{against}"


def bar(part: float) -> str:
    """Return a fraction (0..1) as eight blocks."""
    full = int(part * _BAR + 0.5)
    return "█" * full + "░" * (_BAR - full)
