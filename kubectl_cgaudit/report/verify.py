"""`verify`: the differences between what is predicted and what the kubelets show."""

from collections.abc import Iterable, Iterator, Mapping

from kubectl_cgaudit.judge.verify import Difference, Verification
from kubectl_cgaudit.report.screen import PLAIN, Column, Screen, grid, wrap
from kubectl_cgaudit.report.words import counted, named

_HEADS = tuple(Column(title) for title in ("NODE", "LEVEL", "CGROUP OF", "PREDICTED", "MEASURED"))
_NAMED = 5
_MEANING = (
    "A container that differs was created before its runtime was upgraded, or its node runs another runtime than was said: "
    "restart it, or correct --states. A pod or slice that differs was written by a kubelet with other settings; but kubelets "
    "write a slice anew once a minute, so one that is greater may hold pods that are gone: verify again before you believe it. "
    "Numbers are cpu.weight on cgroup v2, cpu.shares on v1."
)


def as_text(result: Verification, screen: Screen = PLAIN) -> str:
    """What was compared, and the differences in rows as long as they get: whose cgroup differs is never cut."""
    lines = [wrap(screen.shown(text), screen.width, "", "  ") for text in _said(result)]
    if result.differences:
        rows = [[screen.shown(cell) for cell in _row(difference)] for difference in result.differences]
        lines += ["", *grid(_HEADS, rows, screen, fit=False), "", wrap(_MEANING, screen.width)]
    return screen.finished("\n".join(lines) + "\n")


def _said(result: Verification) -> Iterator[str]:
    few = result.few_containers
    if not result.nodes:
        yield "Nothing could be compared."
    else:
        what = f"{counted(result.compared, 'cgroup')} of {counted(len(result.nodes), 'node')}"
        differ = counted(len(result.differences), "difference") if result.differences else "no difference"
        yield f"{what} compared with their kubelets: {differ}{' in these' if few else ''}."
        if result.unmeasured:
            were = "was" if result.unmeasured == 1 else "were"
            why = "" if few else ": ended since, or not created yet"
            yield f"{counted(result.unmeasured, 'predicted cgroup')} {were} not shown{why}."
        yield "Kubelets do not show system.slice unless they are told to: its weight is not verified."
    if result.as_measured:
        yield (
            f"What {named(result.as_measured, _NAMED)} should run, or part of it, nobody said: it was taken from the kubelets "
            "themselves, so that it agrees says nothing of an upgrade. Say the cgroup version and the runtimes with --states."
        )
    if result.late:
        yield (
            f"The Burstable slice of {named(result.late, _NAMED)} is not verified: it may still hold pods that have ended, as "
            "kubelets write it anew once a minute. Verify again."
        )
    for why, nodes in _alike(result.contradicted):
        of = "it" if len(nodes) == 1 else "them"
        yield f"{named(nodes, _NAMED)}: {why}. Nothing else of {of} is compared; correct --states."
    if few:
        shown, running = (sum(each) for each in zip(*few.values(), strict=True))
        kubelets = "its kubelet" if len(few) == 1 else "their kubelets"
        yield (
            f"{named(few, _NAMED)}: {kubelets} showed {shown} of {counted(running, 'running container')}. The others are "
            "not verified: ask again, and see whether /metrics/cadvisor has their rows."
        )
    not_compared = {node: "; ".join(reasons) for node, reasons in result.not_compared.items()}
    yield from (f"Not compared: {named(nodes, _NAMED)}: {why}." for why, nodes in _alike(not_compared))


def _alike(reasons: Mapping[str, str]) -> Iterable[tuple[str, list[str]]]:
    """Each reason with the nodes that have it."""
    found: dict[str, list[str]] = {}
    for node, why in reasons.items():
        found.setdefault(why, []).append(node)
    return found.items()


def _row(difference: Difference) -> list[str]:
    names = [difference.namespace, difference.pod, difference.container]
    of = "/".join(name for name in names if name) or difference.cgroup
    predicted = " or ".join(str(value) for value in difference.predicted)
    measured = "no weight" if difference.measured is None else str(difference.measured)
    return [difference.node, difference.level, of, predicted, measured]
