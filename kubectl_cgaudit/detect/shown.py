"""What a kubelet shows of single cgroups, in place of what would be predicted of them."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, structs

from kubectl_cgaudit.cgroups import crio, paths
from kubectl_cgaudit.cgroups.paths import Driver
from kubectl_cgaudit.cgroups.pods import container_shares
from kubectl_cgaudit.cgroups.version import KubeletVersion
from kubectl_cgaudit.cgroups.weights import linear, quadratic
from kubectl_cgaudit.collect.model import CPU_QUOTA, RESOURCES, UNIFIED, KubeletAnswers, Pod
from kubectl_cgaudit.detect.handlers import PlacedPod
from kubectl_cgaudit.detect.measured import INNER, driver, usable, value_at
from kubectl_cgaudit.detect.state import SYSTEM_SLICE, CgroupVersion


class Shown(Struct, frozen=True, gc=False):
    """What a kubelet shows of a cgroup."""

    value: int | None = None
    """Shares on v1, a weight on v2; None where it is not shown."""
    quota_us: int | None = None
    """None for no quota, where `has_quota`; else it is not shown."""
    has_quota: bool = False


NOTHING = Shown()


class ShownPod(Struct, frozen=True, gc=False):
    """What a kubelet shows of a pod, and of its containers that are not gone."""

    own: Shown
    containers: tuple[Shown, ...]


class ShownSlices(Struct, frozen=True, gc=False):
    """The values of system.slice and of the cgroups above the pods, as a kubelet shows them; None where it does not."""

    system: int | None = None
    kubepods: int | None = None
    burstable: int | None = None
    besteffort: int | None = None


NO_SLICES = ShownSlices()


def slices(answers: KubeletAnswers, version: CgroupVersion) -> ShownSlices:
    """Return what a kubelet shows of system.slice and of the cgroups above the pods."""
    by_path = driver(answers)
    if by_path is None or not usable(answers):
        return NO_SLICES
    of_pods = paths.kubepods(by_path), paths.qos("Burstable", by_path), paths.qos("BestEffort", by_path)
    return ShownSlices(*(value_at(answers, path, version) for path in (f"/{SYSTEM_SLICE}", *of_pods)))


def pods(answers: KubeletAnswers, placed: Iterable[PlacedPod], version: CgroupVersion) -> tuple[ShownPod, ...]:
    """Return what a kubelet shows of each pod; nothing at all where it shows no cgroups."""
    by_path = driver(answers)
    if by_path is None or not usable(answers):
        return ()
    return tuple(_of_pod(answers, pod, by_path, version) for pod, _ in placed)


def _of_pod(answers: KubeletAnswers, pod: Pod, by_path: Driver, version: CgroupVersion) -> ShownPod:
    parent = paths.pod(pod, by_path)
    weights = crio.asked(pod).weights
    of_containers = []
    for container in pod.present:
        scope = paths.container(container.runtime_id, parent, by_path)
        shown, inner = of_cgroup(answers, scope, version), inner_of(answers, scope, version)
        if shown is NOTHING and inner is not NOTHING:
            # What an annotation writes stands in the inner cgroup alone; and of a quota the scope has what systemd makes of it.
            value = None if container.name in weights else inner.value
            shown = Shown(value, None, inner.has_quota and inner.quota_us is None)
        of_containers.append(shown)
    return ShownPod(of_cgroup(answers, parent, version), tuple(of_containers))


def of_cgroup(answers: KubeletAnswers, path: str | None, version: CgroupVersion) -> Shown:
    """Return what a kubelet shows of the cgroup at this path."""
    if path is None or path not in answers.shares:
        return NOTHING
    quota = (answers.quotas or {}).get(path)
    return Shown(value_at(answers, path, version), quota[0] if quota else None, answers.quotas is not None)


def inner_of(answers: KubeletAnswers, scope: str | None, version: CgroupVersion) -> Shown:
    """Return what a kubelet shows of the cgroup that crun makes below a scope."""
    return of_cgroup(answers, None if scope is None else f"{scope}{INNER}", version)


def heeded(
    answers: KubeletAnswers, placed: Sequence[PlacedPod], version: CgroupVersion, kubelet: KubeletVersion | None
) -> Sequence[PlacedPod]:
    """Return the pods without those annotations of which their cgroups show that CRI-O does not heed them."""
    by_path = driver(answers)
    if by_path is None or not usable(answers) or not any(pod.annotations for pod, _ in placed):
        return placed
    return [(_heeded(answers, pod, by_path, version, kubelet), used) for pod, used in placed]


def _heeded(
    answers: KubeletAnswers, pod: Pod, by_path: Driver, version: CgroupVersion, kubelet: KubeletVersion | None
) -> Pod:
    ignored = set(_ignored(answers, pod, by_path, version, kubelet)) if pod.annotations else set()
    if not ignored:
        return pod
    left = tuple(each for each in pod.annotations if each[0] not in ignored)
    return structs.replace(pod, alike=structs.replace(pod.alike, annotations=left))


def _ignored(
    answers: KubeletAnswers, pod: Pod, by_path: Driver, version: CgroupVersion, kubelet: KubeletVersion | None
) -> Iterator[str]:
    """Yield the keys of the annotations of which it is measured that they decide nothing."""
    asked, parent = crio.asked(pod), paths.pod(pod, by_path)
    for container in pod.present:
        scope = paths.container(container.runtime_id, parent, by_path)
        inner = inner_of(answers, scope, version)
        value = (of_cgroup(answers, scope, version) if inner is NOTHING else inner).value
        weight, shares = asked.weights.get(container.name), asked.shares.get(container.name)
        usual = _values(container_shares(container, pod, kubelet), version)
        if weight is not None and value in usual and value != weight:
            yield f"{UNIFIED}{container.name}"
        if shares is not None and value in usual and value not in _values(shares, version):
            yield f"{RESOURCES}{container.name}"
    if asked.unlimited and of_cgroup(answers, parent, version).quota_us is not None:
        yield from (key for key, _ in pod.annotations if key.startswith(CPU_QUOTA))


def _values(shares: int, version: CgroupVersion) -> set[int]:
    """Return what the kernel may show of these shares, by whichever formula."""
    return {shares} if version == "v1" else {linear(shares), quadratic(shares)}
