"""Every pod and container as a row; pods of a workload that show the same are one."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from kubectl_cgaudit.judge.audit import CaseChange, PodAudit, WorkloadAudit
from kubectl_cgaudit.report import content
from kubectl_cgaudit.report.words import counted, percent

_Place = tuple[str, str]
"""A pod and its node."""


class Row(Struct, frozen=True):
    """Equal containers of a workload, or its equal pods. Strings are not escaped."""

    workload: WorkloadAudit
    where: str
    """The pod and its node, or how many there are of both."""
    container: str
    """Empty for the pod itself."""
    role: str
    when: str
    nominal: str
    share: str
    times_system: str
    in_pod: str
    quota: str


def rows(workloads: Iterable[WorkloadAudit]) -> Iterator[Row]:
    """The rows, workload by workload, made as they are asked for."""
    for workload in workloads:
        joined: dict[tuple[str, ...], list[_Place]] = {}
        for pod in workload.pods:
            place = pod.name, pod.node
            for face in _faces(pod):
                joined.setdefault(face, []).append(place)
        for face, places in joined.items():
            yield Row(workload, _where(places), *face)


def _where(places: Sequence[_Place]) -> str:
    (pod, node), nodes = places[0], len({node for _, node in places})
    if len(places) == 1:
        return f"{pod} on {node}"
    on = f"on {node}" if nodes == 1 else f"on {counted(nodes, 'node')}"
    return f"{counted(len(places), 'pod')}, such as {pod}, {on}"


def _faces(pod: PodAudit) -> Iterator[tuple[str, ...]]:
    parts = [("", "", pod.cases), *((each.name, each.role, each.cases) for each in pod.containers)]
    for name, role, cases in parts:
        for when, case in content.changes(cases):
            yield name, role, when, *_numbers(case, of_container=bool(name))


def _numbers(case: CaseChange, *, of_container: bool) -> tuple[str, ...]:
    return (
        content.of_case(case, content.nominal_value),
        content.of_case(case, lambda moment: percent(moment.share)),
        content.of_case(case, lambda moment: content.times(moment.against_system)),
        content.of_case(case, lambda moment: percent(moment.in_pod)) if of_container else "",
        content.of_case(case, content.quota),
    )
