"""`verify`: the differences between what is predicted and what the kubelets show."""

from collections.abc import Iterable, Iterator, Mapping

from kubectl_cgaudit.compare.causes import Cause
from kubectl_cgaudit.compare.verify import Difference, Verification
from kubectl_cgaudit.report.screen import PLAIN, Column, Screen, grid, wrap
from kubectl_cgaudit.text import counted, named

_HEADS = tuple(Column(title) for title in ("NODE", "LEVEL", "CGROUP OF", "PREDICTED", "MEASURED", "CAUSE"))
_EXPLAINED = tuple(Column(title) for title in ("NODE", "LEVEL", "CGROUP OF", "BY SPEC", "MEASURED", "CAUSE"))
_NAMED = 5
_MEANING = (
    "A container that differs was created before its runtime was upgraded, or its node runs another runtime than was said: "
    "restart it, or correct --states. A pod or slice that differs was written by a kubelet with other settings; but kubelets "
    "write a slice anew once a minute, so one that is greater may hold pods that are gone: verify again before you believe it. "
    "Numbers without a unit are cpu.weight on cgroup v2, cpu.shares on v1."
)
_CAUSES: dict[Cause, str] = {
    "annotation": "CRI-O's configuration does not heed {annotation}",
    "partitioned": "its kubelet does not count pods with target.workload.openshift.io, as OpenShift's does not",
    "every pod": "its kubelet counts pods with target.workload.openshift.io too: it is not OpenShift's",
    "capacity": "made from the node's capacity: enforceNodeAllocatable has no pods",
    "allocatable": "made from what is allocatable",
    "formula": "the other formula makes it: created before an upgrade, or another runtime than was said",
    "rounding": "rounded up to 10 ms by the one and not by the other: another release than was said",
    "unknown": "not known: another program may have written it",
}
_BEHIND: dict[Cause, str] = {
    "annotation": "{annotation}, which CRI-O heeds",
    "partitioned": "pods with target.workload.openshift.io are not counted",
    "capacity": "made from the node's capacity: enforceNodeAllocatable has no pods",
}


def as_text(result: Verification, screen: Screen = PLAIN) -> str:
    """What was compared, and the differences in rows as long as they get: whose cgroup differs is never cut."""
    lines = [wrap(screen.shown(text), screen.width, "", "  ") for text in _said(result)]
    if result.differences:
        rows = [[screen.shown(cell) for cell in _row(difference, _CAUSES)] for difference in result.differences]
        lines += ["", *grid(_HEADS, rows, screen, fit=False), "", wrap(_MEANING, screen.width)]
    if result.explained:
        rows = [[screen.shown(cell) for cell in _row(each, _BEHIND)] for each in result.explained]
        lines += [
            "",
            "As predicted, and not as the spec alone makes them:",
            "",
            *grid(_EXPLAINED, rows, screen, fit=False),
        ]
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
        if result.quotas:
            yield f"{counted(result.quotas, 'quota')} compared."
        yield "Kubelets do not show system.slice unless they are told to: its weight is not verified."
    for node, scopes in result.conmon.items():
        yield (
            f"{node}: {counted(scopes, 'conmon scope')} of weight 100 stand among the containers of its pods. They want CPU "
            "while they copy logs, and count against their pod's limit."
        )
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


def _row(difference: Difference, causes: Mapping[Cause, str]) -> list[str]:
    names = [difference.namespace, difference.pod, difference.container]
    of = "/".join(name for name in names if name) or difference.cgroup
    predicted = " or ".join(_worth(value, difference) for value in difference.predicted)
    cause = causes[difference.cause].format(annotation=difference.annotation)
    return [difference.node, difference.level, of, predicted, _worth(difference.measured, difference), cause]


def _worth(value: int | None, difference: Difference) -> str:
    if difference.what == "value":
        return "no weight" if value is None else str(value)
    return "no quota" if value is None else f"{value} us"
