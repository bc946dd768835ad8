"""The reserve that CGA201 and CGA202 name: what it makes of the node is what they say."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.collect.assemble import with_answers
from kubectl_cgaudit.collect.model import Cluster
from tests.measured_support import CONFIG, answers
from tests.support import ONE, V1, V2_LINEAR, audited, cluster, node, of_rule, pod


def reserving(cpu: str, allocatable: int) -> dict[str, Any]:
    """A node with so much allocatable, in thousandths of a CPU."""
    raw = node(cpu=cpu)
    raw["status"]["allocatable"]["cpu"] = f"{allocatable}m"
    return raw


def answering(objects: Cluster, system: int | None, *, version: str = "v2", **more: Any) -> Cluster:
    """The cluster whose kubelet says how much it reserves for the system, in thousandths of a CPU."""
    config = replace(CONFIG, system_reserved_milli=system, **more)
    return with_answers(objects, {"n1": answers(config=config, cgroup_version=version)})


@pytest.mark.parametrize(
    ("system", "said"),
    [
        # 2800m would be enough beside 28000m, but leaves 29200m; what is reserved is never advised to be less.
        (4000, "4000m CPU (weight 157, pods : system 6.97 : 1; leaves 28000m to schedule, as now)."),
        (2795, "2795m CPU (weight 110, pods : system 9.95 : 1; leaves 28000m to schedule, as now)."),
        (2705, "2800m CPU (weight 110, pods : system 9.91 : 1; leaves 27905m to schedule, 95m less than now)."),
        (0, "2540m CPU (weight 100, pods : system 9.95 : 1; leaves 25460m to schedule, 2540m less than now)."),
    ],
)
def test_the_least_reserve_is_what_is_reserved_now(system: int, said: str) -> None:
    objects = answering(cluster(reserving("32", 28000), ONE), system)
    assert of_rule(audited(objects, "", "v2"), "CGA202")["n1"].remedy.partition("system.slice with ")[2] == said


def test_what_is_reserved_now_is_tried_though_it_is_more_than_a_quarter() -> None:
    objects = answering(cluster(reserving("32", 22000), pod("p")), 9000, enforce_node_allocatable=())
    (finding,) = of_rule(audited(objects, "", "v2", "outweighed=4"), "CGA202").values()
    assert finding.remedy.endswith(
        "with 9000m CPU (weight 352, pods : system 3.55 : 1; leaves 22000m to schedule, as now)."
    )


def test_without_configz_a_reserve_is_held_to_the_most_that_pods_may_have() -> None:
    """Of the 4000m reserved now all, some or nothing may be for the system."""
    (finding,) = of_rule(audited(cluster(reserving("32", 28000), ONE), V2_LINEAR, "v2"), "CGA202").values()
    assert finding.remedy.endswith(
        "with 2900m CPU (weight 114, pods : system 8.61 to 9.97 : 1; leaves 25100m to 29100m to schedule, 28000m now, "
        "depending on how much is kubeReserved)."
    )


@pytest.mark.parametrize(
    ("allocatable", "said"),
    [
        # 800m may be kubeReserved: 930m for the system then leave 2270m, and the ratio is 2.41 : 1 instead of 3.2 : 1.
        (3200, ""),
        (
            3700,
            "830m CPU (weight 33, pods : system 3.39 to 3.76 : 1; leaves 2870m to 3170m to schedule, 3700m now, depending on how "
            "much is kubeReserved).",
        ),
        (4000, "780m CPU (weight 31, pods : system 4.06 : 1; leaves 3220m to schedule, 780m less than now)."),
    ],
)
def test_without_configz_a_reserve_keeps_the_ratio_however_much_is_kube_reserved(allocatable: int, said: str) -> None:
    (finding,) = of_rule(audited(cluster(reserving("4", allocatable), ONE), V1, "v2"), "CGA201").values()
    assert finding.remedy.partition("on system.slice with ")[2] == said
