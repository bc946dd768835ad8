"""A pod in rows of numbers: what differs between equal pods apart from what does not, for who writes every pod."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from kubectl_cgaudit.detect.state import PERIOD_US, CgroupVersion, Setup, default_root_value
from kubectl_cgaudit.judge.audit import Confidence, Effect, PodAudit
from kubectl_cgaudit.judge.rounding import rounded, shown
from kubectl_cgaudit.predict.shape import PodShape
from kubectl_cgaudit.predict.tree import PodTrees


class Fixed(Struct, frozen=True, gc=False):
    """What of a cgroup at one moment is the same whatever node it is on. As a Moment has it."""

    version: CgroupVersion
    value: int | None
    nominal_ratio: float | None
    in_pod: float | None
    quota_us: int | None
    measured: bool = False


class Named(Struct, frozen=True, gc=False):
    """A container. CPU in thousandths."""

    name: str
    role: str
    request_milli: int | None
    limit_milli: int | None


class Form(Struct, frozen=True, gc=False):
    """What is the same in all pods that are alike."""

    containers: tuple[Named, ...]
    whens: tuple[tuple[str, ...], ...]
    """What each case assumes: of the pod, then of each container."""
    fixed: tuple[tuple[Fixed, ...], ...]
    """Likewise: before and after in each case."""
    stops: tuple[tuple[bool, ...], ...]
    """Likewise: whether the pod does not run after the move, in each case."""
    leading: tuple[bool, ...]
    """Of each case, whether it is a leading one."""


class Figures:
    """A pod: its form, and what is its own."""

    __slots__ = (
        "confidence",
        "effects",
        "form",
        "handler",
        "name",
        "node",
        "qos",
        "rows",
        "text",
        "texts",
        "values",
    )

    def __init__(
        self,
        name: str,
        node: str,
        qos: str,
        handler: str,
        confidence: Confidence,
        effects: tuple[Effect, ...],
        form: Form,
        values: list[float | None],
    ) -> None:
        self.name = name
        self.node = node
        self.qos = qos
        self.handler = handler
        self.confidence = confidence
        self.effects = effects
        self.form = form
        self.values = values
        """Share and share against the system: before and after in each case, of the pod and then of each container."""
        self.texts = msgspec.json.encode(values).decode()[1:-1].split(",")
        """The values as JSON has them."""
        self.text: str | None = None
        self.rows: list[list[str]] | None = None
        """What formats share, made by the first that asks."""


def fixed(shape: PodShape, setup: Setup) -> tuple[Fixed, ...]:
    """What a pod of this shape and its containers hold. Quotas become those of a period of 100000 us."""
    version, period_us = setup.cgroup, setup.period_us
    unit = default_root_value(version)
    measured, *of_containers = shape.measured
    pod = Fixed(version, shape.value, rounded(shape.value / unit), None, _of_usual(shape.quota_us, period_us), measured)
    containers = []
    for (shares, weight, quota), part, seen in zip(shape.containers, shape.part, of_containers, strict=True):
        value = None if shape.formula == "none" else shares if version == "v1" else weight
        ratio = None if value is None else rounded(value / unit)
        containers.append(
            Fixed(version, value, ratio, rounded(part) if shape.wants_cpu else None, _of_usual(quota, period_us), seen)
        )
    return (pod, *containers)


def _of_usual(quota_us: int | None, period_us: int) -> int | None:
    return quota_us if quota_us is None or period_us == PERIOD_US else quota_us * PERIOD_US // period_us


def of_audit(pod: PodAudit) -> Figures:
    """The figures of a pod as an audit has it."""
    all_cases = [pod.cases, *(container.cases for container in pod.containers)]
    moments = [[each for case in cases for each in (case.before, case.after)] for cases in all_cases]
    form = Form(
        tuple(Named(each.name, each.role, each.request_milli, each.limit_milli) for each in pod.containers),
        tuple(tuple(case.when for case in cases) for cases in all_cases),
        tuple(
            tuple(
                Fixed(each.version, each.value, each.nominal_ratio, each.in_pod, each.quota_us, each.measured)
                for each in row
            )
            for row in moments
        ),
        tuple(tuple(case.stops for case in cases) for cases in all_cases),
        tuple(case.leading for case in pod.cases),
    )
    values = [value for row in moments for each in row for value in (each.share, each.against_system)]
    return Figures(pod.name, pod.node, pod.qos, pod.handler, pod.confidence, pod.effects, form, values)


Pull = tuple[int, int | None, tuple[float | None, ...]]
"""QoS class by its place, what a pod competes with (None: it wants no CPU), and the parts of its containers."""


def shares(moments: Sequence[tuple[PodTrees, float]], pulls: Sequence[Pull]) -> list[float | None]:
    """The values of a pod, from its node's pods and the share of system.slice at each moment, and what the pod pulls with."""
    known: dict[tuple[float, float, int], tuple[list[float | None], list[float | None]]] = {}
    every = 2 * len(moments)
    values: list[float | None] = [None] * (every * (1 + len(pulls[0][2])))
    for place, ((trees, system), (qos, value, parts)) in enumerate(zip(moments, pulls, strict=True)):
        share = 0.0 if value is None else trees.fraction(qos, value)
        own = share, system, id(parts)
        row = known.get(own)
        if row is None:
            of_all = [share, *[None if part is None else share * part for part in parts]]
            against = [None if each is None else shown(each / system) for each in of_all]
            row = known[own] = [None if each is None else shown(each) for each in of_all], against
        values[2 * place :: every], values[2 * place + 1 :: every] = row
    return values
