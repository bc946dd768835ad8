"""What a kubelet's own answers prove: real weights, cgroup version, driver.

cAdvisor shows a v2 weight as `2 + ((weight - 1) * 262142) // 9999` shares, and v1 shares as they are; a value
that no weight gives proves nothing. Rows made from the spec (`kubelet_metrics_provider` cri) prove nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from kubectl_cgaudit.cgroups import crio, paths
from kubectl_cgaudit.cgroups.paths import Driver
from kubectl_cgaudit.cgroups.pods import (
    container_shares,
    may_count_pod_level,
    pod_level_resources,
    pod_shares,
    spec_request,
)
from kubectl_cgaudit.cgroups.version import RESIZES_FROM, KubeletVersion
from kubectl_cgaudit.cgroups.weights import (
    DEFAULT_WEIGHT,
    MAX_WEIGHT,
    MIN_SHARES,
    Formula,
    linear,
    linear_inverse,
    milli_to_shares,
    quadratic,
)
from kubectl_cgaudit.collect.model import KubeletAnswers, Pod
from kubectl_cgaudit.detect import configured
from kubectl_cgaudit.detect.evidence import Evidence, Strength
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.runtime import named_by, sets_none
from kubectl_cgaudit.detect.state import DEFAULT_HANDLER, PERIOD_US, SYSTEM_SLICE, CgroupVersion

CADVISOR = "kubelet /metrics/cadvisor"
_CONMON = "/crio-conmon-"
INNER = "/container"
"""What crun adds to a scope for the cgroup that it runs the container in."""


class WeighedContainer(Struct, frozen=True):
    """A running container whose weight decides which formula its runtime used."""

    namespace: str
    pod: str
    container: str
    handler: str
    formula: Literal["linear", "quadratic", "neither"]
    weight: int
    shares: int
    started: str


def weight_of_shown(shown: int) -> int | None:
    """The weight that cAdvisor shows as `shown` shares, or None if no weight is shown so."""
    weight = 1 - (-(shown - 2) * 9999 // 262142)
    return weight if 1 <= weight <= MAX_WEIGHT and linear_inverse(weight) == shown else None


def usable(answers: KubeletAnswers) -> bool:
    """Whether the shares were read from cgroups, and not made from the spec."""
    return bool(answers.shares) and answers.stats_from_spec is False


def cgroup_version(
    answers: KubeletAnswers, placed: Iterable[PlacedPod] = (), kubelet: KubeletVersion | None = None
) -> tuple[CgroupVersion, str] | None:
    """The cgroup version, and what shows it: the kubelet's own word (from 1.31 on), or the shares of its pods.

    On v1 these are what the pods ask for, on v2 a weight made back into shares; some numbers are both.
    """
    if answers.cgroup_version:
        return answers.cgroup_version, f"kubelet_cgroup_version is {answers.cgroup_version.removeprefix('v')}"
    if not usable(answers):
        return None
    kubernetes = [
        shown for path, shown in answers.shares.items() if path.startswith("/kubepods") and shown > MIN_SHARES
    ]
    if any(weight_of_shown(shown) is None for shown in kubernetes):
        return "v1", "it shows shares that no cgroup v2 weight gives"
    by_path = driver(answers)
    told = [_told_by(answers, pod, by_path, kubelet) for pod, _ in placed if by_path]
    seen = {version for version in told if version}
    if len(seen) != 1:
        return None
    (version,) = seen
    what = "the shares that its pods ask for" if version == "v1" else "weights of its pods, made back into shares"
    return version, f"it shows {what}"


def _told_by(
    answers: KubeletAnswers, pod: Pod, by_path: Driver, kubelet: KubeletVersion | None
) -> CgroupVersion | None:
    """The cgroup version by which a pod's row is what the kubelet makes of its request, if it is by one alone."""
    shown = shares_at(answers, paths.pod(pod, by_path)) if _decides(pod, answers, kubelet) else None
    asked = pod_shares(pod, kubelet)
    on_v2 = linear_inverse(linear(asked))
    if shown is None or asked == on_v2 or shown not in (asked, on_v2):
        return None
    return "v1" if shown == asked else "v2"


def _decides(pod: Pod, answers: KubeletAnswers, kubelet: KubeletVersion | None) -> bool:
    """Whether it is known what the kubelet asks for a pod: a resize blurs it for a while, and so does a feature gate for one
    with resources of its own.
    """
    if pod.resizing:
        return False
    counted = pod_level_resources(kubelet)
    as_taken = answers.pod_level == counted or (answers.pod_level is None and not may_count_pod_level(kubelet))
    return as_taken or not (pod.request_milli is not None or pod.limit_milli)


def without_kubepods(pieces: Iterable[Evidence]) -> bool:
    """Whether a node has no kubepods tree: it is not modelled."""
    return any((piece.about, piece.value) == ("kubepods", "none") for piece in pieces)


def driver(answers: KubeletAnswers) -> Driver | None:
    """The cgroup driver, by the paths of the rows."""
    if any(path.startswith("/kubepods.slice") for path in answers.shares):
        return "systemd"
    return "cgroupfs" if any(path.startswith("/kubepods") for path in answers.shares) else None


def evidence(
    answers: KubeletAnswers, placed: Iterable[PlacedPod], kubelet: KubeletVersion | None, known: CgroupVersion | None
) -> Iterator[Evidence]:
    """Everything a kubelet's answers say of its node. `known` is the cgroup version that everything else says."""
    pods = list(placed)
    version, saw = cgroup_version(answers, pods, kubelet) or (None, "")
    if version:
        yield Evidence("cgroup", version, "certain", "kubelet /metrics" if answers.cgroup_version else CADVISOR, saw)
    by_path = driver(answers)
    if by_path:
        yield Evidence("driver", by_path, "certain", CADVISOR, "the paths of the kubepods cgroups")
    shown = tuple(_of_system(answers, version or known))
    if answers.config:
        kernel = {each.about: each.value for each in shown}
        yield from configured.evidence(answers.config, version or known, by_path, kubelet, kernel)
    yield from shown
    if answers.config is None:
        yield from _of_periods(answers)
    now = version or known
    if now is None or by_path is None or not usable(answers):
        return
    yield from _of_burstable(value_at(answers, paths.qos("Burstable", by_path), now), pods, now, kubelet)
    yield from _of_conmon(answers, pods, by_path)
    if now == "v2":
        yield from _of_pods(answers, pods, by_path, kubelet)
        yield from _of_handlers(container_formulas(answers, pods, kubelet), kubelet)


def _of_periods(answers: KubeletAnswers) -> Iterator[Evidence]:
    """The period of quotas, where all have one that is not the default."""
    periods = {period for path, (_, period) in (answers.quotas or {}).items() if path.startswith("/kubepods")}
    if len(periods) == 1 and periods != {PERIOD_US}:
        yield Evidence("period", str(*periods), "certain", CADVISOR, f"quotas have a period of {periods.pop()} us")


def _of_conmon(answers: KubeletAnswers, placed: Sequence[PlacedPod], by_path: Driver) -> Iterator[Evidence]:
    """Where CRI-O's conmon runs, of a node whose pods show it."""
    if by_path != "systemd" or not any(
        (c.runtime_id or "").startswith(crio.SCHEME) for p, _ in placed for c in p.present
    ):
        return
    if conmon_scopes(answers):
        yield Evidence("conmon", "pod", "certain", CADVISOR, "scopes of conmon among the containers of pods")
    else:
        yield Evidence("conmon", "system", "certain", CADVISOR, "no scope of conmon among the containers of pods")


def conmon_scopes(answers: KubeletAnswers) -> int:
    """Return how many scopes of CRI-O's conmon a kubelet shows among the containers of its pods."""
    return sum(path.startswith("/kubepods") and _CONMON in path for path in answers.shares)


def _of_burstable(
    value: int | None, placed: Sequence[PlacedPod], version: CgroupVersion, kubelet: KubeletVersion | None
) -> Iterator[Evidence]:
    """Whether pods for management partitions are counted in the Burstable slice, where its value tells that."""
    pods = [pod for pod, _ in placed if pod.qos == "Burstable"]
    asked = [(spec_request(pod, kubelet), crio.asked(pod).partitioned) for pod in pods]
    everything = _slice_value(sum(milli for milli, _ in asked), version)
    without = _slice_value(sum(milli for milli, left_out in asked if not left_out), version)
    if value == everything != without:
        saw = f"the Burstable slice has {value}, the sum of all its pods; without management pods it were {without}"
        yield Evidence("burstable", "all", "certain", CADVISOR, saw)
    elif value == without != everything:
        saw = f"the Burstable slice has {value}, without management pods; with them it were {everything}"
        yield Evidence("burstable", "partitioned", "certain", CADVISOR, saw)


def _slice_value(milli: int, version: CgroupVersion) -> int:
    shares = milli_to_shares(milli)
    return shares if version == "v1" else linear(shares)


def _of_system(answers: KubeletAnswers, version: CgroupVersion | None) -> Iterator[Evidence]:
    """What system.slice has, which a kubelet shows only if it is told to watch it."""
    shown = answers.shares.get(f"/{SYSTEM_SLICE}") if usable(answers) else None
    if shown is None or version is None:
        return
    value = shown if version == "v1" else weight_of_shown(shown)
    if value:
        saw = f"it shows {shown} shares of /{SYSTEM_SLICE}"
        yield Evidence("system_slice", str(value), "certain", CADVISOR, saw)


def _of_pods(
    answers: KubeletAnswers, placed: Sequence[PlacedPod], by_path: Driver, kubelet: KubeletVersion | None
) -> Iterator[Evidence]:
    """The kubelet's formula, from a pod whose weight decides it."""
    seen: dict[str, list[str]] = defaultdict(list)
    for pod, _ in placed:
        if not _decides(pod, answers, kubelet):
            continue
        weight = _weight(answers, paths.pod(pod, by_path))
        formula = decide(pod_shares(pod, kubelet), weight)
        if formula:
            seen[formula].append(f"pod {pod.namespace}/{pod.name} has weight {weight}")
    for found, saw in sorted(seen.items()):
        if found != "neither":
            yield Evidence("kubelet", found, "certain", CADVISOR, _first(saw))


def container_formulas(
    answers: KubeletAnswers, placed: Iterable[PlacedPod], kubelet: KubeletVersion | None
) -> list[WeighedContainer]:
    """Every running container of a cgroup v2 node whose weight decides its formula."""
    by_path = driver(answers)
    if by_path is None or not usable(answers):
        return []
    found = []
    for pod, handler in placed:
        parent = paths.pod(pod, by_path) if _decides(pod, answers, kubelet) else None
        annotated = crio.asked(pod).weights
        for container in pod.containers:
            weight = _weight(answers, paths.container(container.runtime_id, parent, by_path))
            by_crio = (container.runtime_id or "").startswith(crio.SCHEME)
            shares = container_shares(container, pod, kubelet, by_crio=by_crio)
            # What an annotation writes no formula makes.
            formula = None if by_crio and container.name in annotated else decide(shares, weight)
            if formula and weight:
                started = container.started or ""
                found.append(
                    WeighedContainer(pod.namespace, pod.name, container.name, handler, formula, weight, shares, started)
                )
    return found


def decide(shares: int, weight: int | None) -> Literal["linear", "quadratic", "neither"] | None:
    """Which formula makes this weight of these shares; None if both do, or the weight is not known."""
    made = linear(shares), quadratic(shares)
    if weight is None or made == (weight, weight):
        return None
    if weight == made[0]:
        return "linear"
    return "quadratic" if weight == made[1] else "neither"


def shares_at(answers: KubeletAnswers, path: str | None) -> int | None:
    """The shares that a kubelet shows of a cgroup; None if it shows none, or the path is not known."""
    if path is None:
        return None
    # crun runs the container one cgroup below its scope; both carry the weight.
    return answers.shares.get(path, answers.shares.get(f"{path}{INNER}"))


def value_at(answers: KubeletAnswers, path: str, version: CgroupVersion) -> int | None:
    """Return what a kubelet shows of the cgroup at this path: shares on v1, the weight on v2; None where it shows none."""
    shown = answers.shares.get(path)
    return shown if shown is None or version == "v1" else weight_of_shown(shown)


def _weight(answers: KubeletAnswers, path: str | None) -> int | None:
    shown = shares_at(answers, path)
    return None if shown is None else weight_of_shown(shown)


def current_formula(containers: Iterable[WeighedContainer], kubelet: KubeletVersion | None) -> Formula | None:
    """What a handler uses now: the formula of the containers that were created last.

    None where those of the other one are not all older: a resize writes a weight anew, and keeps the time of the start. So does
    linear after quadratic look like an older release, and is as well a newer one with which older containers were resized,
    where the kubelet resizes in place (feature gate InPlacePodVerticalScaling, on by default from 1.33).
    """
    started: dict[str, list[str]] = {"linear": [], "quadratic": []}
    for each in containers:
        if each.formula != "neither":
            started[each.formula].append(each.started)
    if _came_after(started["quadratic"], started["linear"]):
        return "quadratic"
    resizes = kubelet is None or kubelet >= RESIZES_FROM
    if started["quadratic"] and resizes:
        return None
    return "linear" if _came_after(started["linear"], started["quadratic"]) else None


def _came_after(new: Sequence[str], old: Sequence[str]) -> bool:
    return bool(new) and (not old or (max(old) <= min(new) and max(old) < max(new)))


def _of_handlers(containers: list[WeighedContainer], kubelet: KubeletVersion | None) -> Iterator[Evidence]:
    by_handler: dict[str, list[WeighedContainer]] = defaultdict(list)
    for each in containers:
        by_handler[each.handler].append(each)
    for handler, members in sorted(by_handler.items()):
        if all(each.weight == DEFAULT_WEIGHT for each in members):
            yield from _at_default(handler, members, kubelet)
            continue
        formula = current_formula(members, kubelet)
        if formula:
            saw = [
                f"container {each.container} of {each.namespace}/{each.pod} has weight {each.weight} for {each.shares} shares"
                for each in members
                if each.formula == formula
            ]
            yield Evidence(f"runtime:{handler}", formula, "certain", CADVISOR, _first(saw))


def _at_default(
    handler: str, members: Sequence[WeighedContainer], kubelet: KubeletVersion | None
) -> Iterator[Evidence]:
    """What it says of a handler that all its containers have the weight that nobody need have set.

    The quadratic formula makes it of 989m to 1 CPU, the linear one of 2538m to 2562m; one container may have been given it by
    hand. Where all could be of one formula, a runtime that sets none is the rarer one; of a handler whose name speaks of no
    runtime not even that can be said.
    """
    about, asked = f"runtime:{handler}", sorted({each.shares for each in members})
    shares = f"{', '.join(map(str, asked[:-1]))} and {asked[-1]}" if len(asked) > 1 else f"{asked[0]}"
    saw = f"all its containers have weight {DEFAULT_WEIGHT}, for {shares} shares"
    name = named_by(handler)
    formula = current_formula(members, kubelet)
    if len(asked) > 1 and any(each.formula != formula for each in members):
        yield Evidence(about, "none", "certain", CADVISOR, f"{saw}: no formula makes that, nobody set it")
    elif name and sets_none(handler):
        yield Evidence(about, name, "likely", CADVISOR, f"{saw}, and the handler's name speaks of {name}")
    elif formula:
        sure: Strength = "likely" if name or handler == DEFAULT_HANDLER else "hint"
        yield Evidence(about, formula, sure, CADVISOR, f"{saw}, which is also what a runtime leaves that sets none")


def _first(saw: list[str]) -> str:
    return saw[0] + (f", and {len(saw) - 1} more like it" if len(saw) > 1 else "")
