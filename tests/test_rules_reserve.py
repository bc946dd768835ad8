"""The reserve that CGA201 and CGA202 name: what it makes of the node is what they say."""

import random
import re
from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.collect.assemble import with_answers
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.judge.thresholds import Thresholds
from kubectl_cgaudit.text import number, percent
from tests.measured_support import CONFIG, answers
from tests.support import ONE, V1, V2_LINEAR, audited, cluster, compared, container, node, of_rule, pod


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


def test_no_reserve_is_named_with_which_a_kubelet_would_not_start() -> None:
    """Of the CPUs that it reserves by number it takes no systemReservedCgroup."""
    objects = answering(cluster(reserving("32", 28000), ONE), None, reserves_whole_cpus=True)
    assert of_rule(audited(objects, "", "v2"), "CGA202")["n1"].remedy == (
        "`systemctl set-property system.slice CPUWeight=110` brings it under 10 : 1."
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        # 780m reserved leave 3220m.
        (("1000m", "2220m"), ""),
        (
            ("1000m", "2221m"),
            "; its pods ask for 3221m: what does not fit may be refused (OutOfcpu) when the kubelet starts",
        ),
    ],
)
def test_a_reserve_that_leaves_less_than_the_pods_of_the_node_ask_for_says_so(
    asked: tuple[str, str], said: str
) -> None:
    """Guaranteed pods and BestEffort ones are counted with the Burstable; one that is finished is not."""
    first, second = asked
    pods = (
        pod("g", container("c", first, first), qos="Guaranteed"),
        pod("b", container("c", second)),
        pod("e", container("c"), qos="BestEffort"),
        pod("done", container("c", "500m"), phase="Succeeded"),
    )
    finding = of_rule(audited(cluster(node(), *pods), V1, "v2"), "CGA201")["default/b"]
    assert finding.remedy.partition(" less than now")[2] == f"{said})."


@pytest.mark.parametrize(
    ("kubelet", "said"),
    [
        ("v1.31.14", "; what systemReserved has of memory and pid limits system.slice then, too)."),
        ("v1.32.0", ")."),
    ],
)
def test_before_kubelet_132_a_reserve_of_cpu_alone_cannot_be_enforced(kubelet: str, said: str) -> None:
    (finding,) = of_rule(audited(cluster(node(kubelet=kubelet), ONE), V1, "v2"), "CGA201").values()
    assert finding.remedy.partition(" less than now")[2] == said


_WEIGHT = re.compile(r"give system\.slice weight (\d+) \(pods : system (\S+) : 1\)")
_RESERVE = re.compile(
    r"with (\d+)m CPU \(weight (\d+), pods : system (\S+)(?: to (\S+))? : 1; leaves (\d+)m(?: to (\d+)m)? to schedule"
)
_SEEDS = range(60)


def scene(seed: int, sizes: tuple[int, ...]) -> tuple[random.Random, str, int, int, list[dict[str, Any]]]:
    """A node's CPUs, what it reserves for the system and for kubernetes, in thousandths of a CPU, and its pods."""
    dice = random.Random(seed)
    cpus = dice.choice(sizes)
    system, kube = (dice.choice((0, 50, 105, 300, cpus * 90)) for _ in range(2))
    asked = [dice.choice((29, 54, 100, 250, 700)) for _ in range(dice.randint(1, 4))]
    return dice, str(cpus), system, kube, [pod(f"p{n}", container("c", f"{cpu}m")) for n, cpu in enumerate(asked)]


def then(weight: str) -> str:
    """The states file of a node whose system.slice has this weight."""
    return f"- {{cgroup: v2, runtimes: {{default: runc 1.1.5}}, system_slice: {weight}, set_by: systemd}}"


def ratio(objects: Cluster, weight: str) -> float:
    """Pods to system processes, by weight, of the only node."""
    tree = compared(objects, then(weight), "v2")[0].cases[0].after
    return tree.pods_to_system


def against_system(objects: Cluster, rules: str, *, after: bool) -> dict[str, float]:
    """Of each pod: its CPU by that of system.slice."""
    cases = {w.name: w.pods[0].cases[0] for w in audited(objects, rules, "v2").workloads}
    return {name: (case.after if after else case.before).against_system or 0 for name, case in cases.items()}


def check_reserve(remedy: str, cpu: str, reserved: tuple[int, int], *, known: bool) -> list[tuple[str, dict[str, Any]]]:
    """What a node may be with the reserve that is named, each with the weight of system.slice; its claims are true of each."""
    found = _RESERVE.search(remedy)
    if not found:
        return []
    milli, weight, low, high, least, most = found.groups()
    system, kube = reserved
    nodes = []
    for each in (kube,) if known else (0, (system + kube) // 2, system + kube):
        left = int(cpu) * 1000 - each - int(milli)
        nodes.append((weight, reserving(cpu, left)))
        assert int(least) <= left <= int(most or least)
        assert float(low) <= float(number(ratio(cluster(nodes[-1][1], ONE), weight))) <= float(high or low)
    return nodes


@pytest.mark.parametrize("seed", _SEEDS)
def test_what_201_names_keeps_what_it_says(seed: int) -> None:
    dice, cpu, system, kube, pods = scene(seed, (1, 2, 4, 5, 7, 8))
    known = dice.random() < 0.5
    small = reserving(cpu, int(cpu) * 1000 - system - kube)
    objects = cluster(small, *pods)
    judged = answering(objects, system, version="v1") if known else objects
    findings = of_rule(audited(judged, V1, "v2"), "CGA201")
    before = against_system(objects, V1, after=False)
    assert findings
    for title, finding in findings.items():
        name = title.split("/")[1]
        named = _WEIGHT.search(finding.remedy)
        if not named:
            assert finding.remedy.startswith("The node's ratio of pods to system processes hardly changes")
            continue
        weight, claimed = named.groups()
        assert number(ratio(objects, weight)) == claimed
        change = against_system(objects, then(weight), after=True)[name] / before[name] - 1
        changed = check_reserve(finding.remedy, cpu, (system, kube), known=known)
        lefts = [
            against_system(cluster(each, *pods), then(reserve), after=True)[name] / before[name] - 1
            for reserve, each in changed
        ]
        more = f", up to {percent(-min(lefts))} with the reserve" if lefts and min(lefts) < change else ""
        still = (
            f" The pod still loses {percent(-change)} then{more}, as weights are rounded: raise its CPU request too."
        )
        if not Thresholds().loses(change):
            still = f" With the reserve the pod still loses up to {percent(-min(lefts, default=0))}."
        loses = any(map(Thresholds().loses, (change, *lefts)))
        assert (still in finding.remedy) is ("still loses" in finding.remedy) is loses
        named = [names_the_node(objects, weight), *(names_the_node(cluster(each), by) for by, each in changed)]
        assert re.findall(r"(?:With \S+ \S+ )?CGA202 .*? the node(?: then)?", finding.remedy) == said_of_202(named)


def names_the_node(objects: Cluster, weight: str) -> bool:
    return "n1" in of_rule(audited(objects, then(weight), "v2"), "CGA202")


def said_of_202(named: list[bool]) -> list[str]:
    """What is said of a node that CGA202 names with the weight, and then with the reserve, whatever is kubeReserved."""
    by_weight, *by_reserve = named
    if all(named):
        return ["CGA202 names the node then"]
    of_reserve = f"With the reserve CGA202 {'names' if all(by_reserve) else 'may name'} the node"
    return ["With that weight CGA202 names the node"] * by_weight + [of_reserve] * any(by_reserve)


@pytest.mark.parametrize("seed", _SEEDS)
def test_what_202_names_brings_it_under_its_limit(seed: int) -> None:
    dice, cpu, system, kube, pods = scene(seed, (32, 48, 64, 96))
    known = dice.random() < 0.5
    objects = cluster(reserving(cpu, int(cpu) * 1000 - system - kube), *pods)
    judged = answering(objects, system) if known else objects
    (finding,) = of_rule(audited(judged, V2_LINEAR, "v2"), "CGA202").values()
    nodes = check_reserve(finding.remedy, cpu, (system, kube), known=known)
    assert nodes
    for weight, changed in nodes:
        assert of_rule(audited(cluster(changed, *pods), then(weight), "v2"), "CGA202") == {}
