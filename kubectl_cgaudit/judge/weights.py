"""How many containers ask for an amount of CPU and get certain numbers."""

from collections.abc import Iterator, Mapping

from kubectl_cgaudit.collect.model import Container
from kubectl_cgaudit.detect.state import CgroupVersion
from kubectl_cgaudit.judge.audit import ContainerAudit, Moment, PodAudit, WeightCount
from kubectl_cgaudit.judge.figures import Fixed

Combination = tuple[int | None, CgroupVersion, int | None, CgroupVersion, int | None]
"""Request, else limit; then cgroup version and number now, and after. The fields of a WeightCount but its count."""


def combinations(pod: PodAudit) -> Iterator[Combination]:
    """Those of each container of a pod, each once, however many cases have it."""
    for container in pod.containers:
        yield from {combination(container, case.before, case.after) for case in container.cases}


def combination(container: Container | ContainerAudit, before: Fixed | Moment, after: Fixed | Moment) -> Combination:
    """That of a container in one case."""
    milli = container.request_milli if container.request_milli is not None else container.limit_milli
    return milli, before.version, before.value, after.version, after.value


def counts(containers: Mapping[Combination, int]) -> tuple[WeightCount, ...]:
    """The counts as the audit shows them: by request, then by numbers, what has none first."""
    return tuple(WeightCount(*key, containers[key]) for key in sorted(containers, key=_order))


def _order(key: Combination) -> tuple[int, str, int, str, int]:
    milli, before_version, before, after_version, after = key
    first, second, third = (-1 if value is None else value for value in (milli, before, after))
    return first, before_version, second, after_version, third
