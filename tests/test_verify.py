"""`verify` where lists and kubelets do not speak of the same moment, or of the same tree."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.cgroups.weights import linear_inverse
from kubectl_cgaudit.collect.assemble import with_answers
from kubectl_cgaudit.collect.model import Cluster, KubeletAnswers
from kubectl_cgaudit.detect import states
from kubectl_cgaudit.judge.verify import Verification, verify
from tests.support import cluster, container, node, pod, recorded, with_kubelets

SLICE = "/kubepods.slice/kubepods-burstable.slice"
KATA = {"kind": "RuntimeClass", "metadata": {"name": "kata"}, "handler": "kata"}


def running(name: str, **more: Any) -> dict[str, Any]:
    """A pod with one running container that asks for 1 CPU."""
    raw = pod(name, container("app", "1"), **more)
    started = {"running": {"startedAt": "2026-11-01T00:00:00Z"}}
    raw["status"]["containerStatuses"] = [{"name": "app", "containerID": f"containerd://{name}", "state": started}]
    return raw


def shown(*pods: str, burstable: int, containers: bool = True) -> dict[str, int]:
    """What the kubelet of a 4 CPU node shows of pods with one container of weight 39 each."""
    rows = {"/kubepods.slice": 157, SLICE: burstable, "/kubepods.slice/kubepods-besteffort.slice": 1}
    for name in pods:
        own = f"{SLICE}/kubepods-burstable-poduid_{name}.slice"
        rows |= {own: 39} | ({f"{own}/cri-containerd-{name}.scope": 39} if containers else {})
    return {path: linear_inverse(weight) for path, weight in rows.items()}


def verified(objects: Cluster, shares: dict[str, int], rules: str = "", **config: Any) -> Verification:
    known = (with_kubelets(recorded()).kubelets or {})["worker-a"].config
    assert known is not None
    answers = KubeletAnswers("n1", "v2", False, shares, replace(known, **config), ())
    return verify(with_answers(objects, {"n1": answers}), states.parse(rules, "test") if rules else ())


def differing(found: Verification) -> list[str]:
    return [each.cgroup for each in found.differences]


def test_a_slice_is_the_sum_of_its_pods() -> None:
    both = cluster(node(), running("a"), running("b"))
    assert differing(verified(both, shown("a", "b", burstable=79))) == []
    assert differing(verified(both, shown("a", "b", burstable=80))) == [SLICE]


@pytest.mark.parametrize(
    ("listed", "seen"), [(("a",), ("a", "b")), (("a", "b"), ("a",))], ids=["ended since", "not started yet"]
)
def test_pods_that_come_and_go_are_no_difference_of_their_slice(listed: tuple[str, ...], seen: tuple[str, ...]) -> None:
    found = verified(cluster(node(), *map(running, listed)), shown(*seen, burstable=60))
    assert differing(found) == []
    assert found.unmeasured >= 1


def test_a_resize_is_no_difference_of_the_slice_that_it_is_in() -> None:
    resized = running("a")
    resized["status"]["conditions"] = [{"type": "PodResizeInProgress", "status": "True"}]
    assert differing(verified(cluster(node(), resized, running("b")), shown("a", "b", burstable=43))) == []


def test_what_sets_no_weight_on_the_host_is_not_missed_there() -> None:
    pods = [running("a"), *(running(f"k{n}", runtimeClassName="kata") for n in range(3))]
    shares = shown("a", burstable=157) | shown("k0", "k1", "k2", burstable=157, containers=False)
    found = verified(cluster(node(), KATA, *pods), shares)
    assert (differing(found), found.few_containers, found.unmeasured) == ([], {}, 0)


def test_another_driver_is_named_as_what_it_is() -> None:
    found = verified(cluster(node(), running("a")), shown("a", burstable=39), "- {driver: cgroupfs}")
    assert found.contradicted == {"n1": "another cgroup driver is predicted, its cgroups are named as by systemd"}
    assert (found.nodes, found.few_containers) == ((), {})


def test_a_node_without_a_kubepods_tree_is_not_asked_again() -> None:
    found = verified(cluster(node(), running("a")), {"/": 1024}, cgroups_per_qos=False)
    assert found.not_compared == {"n1": ("its kubelet makes no kubepods tree (cgroupsPerQOS is false)",)}
    assert found.few_containers == {}
