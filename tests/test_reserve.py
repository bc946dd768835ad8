"""The reserve that stands beside a weight of system.slice: what it makes of the node is what it says."""

import random
from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.audit.model import Audit
from kubectl_cgaudit.collect.assemble import with_answers
from kubectl_cgaudit.collect.model import Cluster
from tests.measured_support import CONFIG, answers
from tests.support import ONE, V1, V2_LINEAR, audited_with_actions, cluster, container, node, of_rule, pod, viewed


def reserving(cpu: str, allocatable: int) -> dict[str, Any]:
    """A node with so much allocatable, in thousandths of a CPU."""
    raw = node(cpu=cpu)
    raw["status"]["allocatable"]["cpu"] = f"{allocatable}m"
    return raw


def answering(objects: Cluster, system: int | None, *, version: str = "v2", **more: Any) -> Cluster:
    """The cluster whose kubelet says how much it reserves for the system, in thousandths of a CPU."""
    config = replace(CONFIG, system_reserved_milli=system, **more)
    return with_answers(objects, {"n1": answers(config=config, cgroup_version=version)})


def reserves(found: Audit) -> list[tuple[Any, ...]]:
    """Amount, weight, ratios and what is left to schedule, of each reserve that does the same as an action."""
    return [
        (each["milli"], each["weight"], [round(ratio, 2) for ratio in each["ratios"]], each["left"])
        for action in found.actions
        for each in action.detail.get("alternatives", ())
        if each["kind"] == "reserve"
    ]


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        # 2800m would be enough beside 28000m, but leaves 29200m; what is reserved is never advised to be less.
        (4000, (4000, 157, [6.97, 6.97], (28000, 28000))),
        (2795, (2795, 110, [9.95, 9.95], (28000, 28000))),
        (2705, (2800, 110, [9.91, 9.91], (27905, 27905))),
        (0, (2540, 100, [9.95, 9.95], (25460, 25460))),
    ],
)
def test_the_least_reserve_is_what_is_reserved_now(system: int, expected: tuple[Any, ...]) -> None:
    objects = answering(cluster(reserving("32", 28000), ONE), system)
    assert reserves(audited_with_actions(objects, "", "v2")) == [expected]


def test_what_is_reserved_now_is_tried_though_it_is_more_than_a_quarter() -> None:
    objects = answering(cluster(reserving("32", 22000), pod("p")), 9000, enforce_node_allocatable=())
    assert reserves(audited_with_actions(objects, "", "v2", "outweighed=4")) == [
        (9000, 352, [3.55, 3.55], (22000, 22000))
    ]


def test_without_configz_a_reserve_is_held_to_the_most_that_pods_may_have() -> None:
    """Of the 4000m reserved now all, some or nothing may be for the system."""
    found = audited_with_actions(cluster(reserving("32", 28000), ONE), V2_LINEAR, "v2")
    assert reserves(found) == [(2900, 114, [8.61, 9.97], (25100, 29100))]


@pytest.mark.parametrize(
    ("allocatable", "expected"),
    [
        # 800m may be kubeReserved: 930m for the system then leave 2270m, and the ratio is 2.41 : 1 instead of 3.2 : 1.
        (3200, []),
        (3700, [(830, 33, [3.39, 3.76], (2870, 3170))]),
        (4000, [(780, 31, [4.06, 4.06], (3220, 3220))]),
    ],
)
def test_without_configz_a_reserve_keeps_the_ratio_however_much_is_kube_reserved(
    allocatable: int, expected: list[Any]
) -> None:
    assert reserves(audited_with_actions(cluster(reserving("4", allocatable), ONE), V1, "v2")) == expected


def test_no_reserve_is_named_with_which_a_kubelet_would_not_start() -> None:
    """Of the CPUs that it reserves by number it takes no systemReservedCgroup."""
    objects = answering(cluster(reserving("32", 28000), ONE), None, reserves_whole_cpus=True)
    found = audited_with_actions(objects, "", "v2")
    assert reserves(found) == []
    assert [each.run for each in found.actions] == [("systemctl set-property system.slice CPUWeight=110",)]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        # 780m reserved leave 3220m.
        (("1000m", "2220m"), False),
        (("1000m", "2221m"), True),
    ],
)
def test_a_reserve_that_leaves_less_than_the_pods_of_the_node_ask_for_says_so(
    asked: tuple[str, str], *, said: bool
) -> None:
    """Guaranteed pods and BestEffort ones are counted with the Burstable; one that is finished is not."""
    first, second = asked
    pods = (
        pod("g", container("c", first, first), qos="Guaranteed"),
        pod("b", container("c", second)),
        pod("e", container("c"), qos="BestEffort"),
        pod("done", container("c", "500m"), phase="Succeeded"),
    )
    (action, *_) = audited_with_actions(cluster(node(), *pods), V1, "v2").actions
    assert ("pods ask for 3221m: what does not fit may be refused" in action.alternatives[0]) is said


@pytest.mark.parametrize(
    ("kubelet", "key"), [("v1.31.14", "system-reserved"), ("v1.32.0", "system-reserved-compressible")]
)
def test_before_kubelet_132_a_reserve_of_cpu_alone_cannot_be_enforced(kubelet: str, key: str) -> None:
    (action, *_) = audited_with_actions(cluster(node(kubelet=kubelet), ONE), V1, "v2").actions
    assert action.detail["alternatives"][0]["key"] == key
    assert ("memory and pids of systemReserved" in action.alternatives[0]) is (key == "system-reserved")


def then(weight: int) -> str:
    """The states file of a node whose system.slice has this weight."""
    return f"- {{cgroup: v2, runtimes: {{default: runc 1.1.5}}, system_slice: {weight}, set_by: systemd}}"


def ratio(objects: Cluster, weight: int) -> float:
    """Pods to system processes, by weight, of the only node."""
    (view,) = viewed(objects, then(weight), "v2")
    return view.cases[0].after.pods_to_system


@pytest.mark.parametrize("sizes", [(1, 2, 4, 5, 7, 8), (32, 48, 64, 96)], ids=["small", "large"])
def test_a_reserve_makes_of_random_nodes_what_it_says(sizes: tuple[int, ...]) -> None:
    """On small nodes beside the weight that keeps today's ratio, on large ones beside the one that brings it under the limit."""
    seen = 0
    for seed in range(30):
        dice = random.Random(seed)
        cpus = dice.choice(sizes)
        system, kube = (dice.choice((0, 50, 105, 300, cpus * 90)) for _ in range(2))
        asked = [dice.choice((29, 54, 100, 250, 700)) for _ in range(dice.randint(1, 4))]
        pods = [pod(f"p{n}", container("c", f"{cpu}m")) for n, cpu in enumerate(asked)]
        objects = cluster(reserving(str(cpus), cpus * 1000 - system - kube), *pods)
        large = sizes[0] > 8
        known = dice.random() < 0.5
        judged = answering(objects, system, version="v2" if large else "v1") if known else objects
        for milli, weight, _, (least, most) in reserves(audited_with_actions(judged, V2_LINEAR if large else V1, "v2")):
            for reserved in (kube,) if known else (0, (system + kube) // 2, system + kube):
                left = cpus * 1000 - reserved - milli
                changed = cluster(reserving(str(cpus), left), *pods)
                assert least <= left <= most
                if large:
                    assert of_rule(audited_with_actions(changed, then(weight), "v2"), "CGA202") == {}
                else:
                    (before,) = viewed(objects, V1, "v2")
                    now = before.cases[0].before.pods_to_system
                    assert -0.1 < ratio(changed, weight) / now - 1 <= 0.02
                seen += 1
    assert seen > 15
