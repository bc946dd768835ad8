"""CGA204: what its remedy does to limits, and to requests and limits of the pod itself."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kubectl_cgaudit.text import percent
from tests.support import V1, V2_LINEAR, audited, cluster, container, node, of_rule, pod, the_finding


@pytest.mark.parametrize(
    ("placed", "said"),
    [
        (
            pod("p", container("app", "1", "1"), container("side", "100m")),
            ["The limit of app (1000m) must go up with it."] * 2,
        ),
        (pod("p", container("app", "1", "4"), container("side", "100m")), []),
        (
            pod(
                "p",
                container("app", "1"),
                container("side", "100m"),
                resources={"requests": {"cpu": "1100m"}, "limits": {"cpu": "1500m"}},
            ),
            ["The limit of the pod (1500m) must go up with it."],
        ),
        (
            pod("p", container("app", "1", "1"), container("side", "100m", "100m"), qos="Guaranteed"),
            ["Limits go with requests, as the pod is Guaranteed."] * 2,
        ),
    ],
)
def test_204_names_the_limits_that_a_request_would_exceed(placed: Any, said: list[str]) -> None:
    """For the shift, and for raising one alone, which takes more."""
    found = of_rule(audited(cluster(node(cpu="8", kubelet="v1.34.1"), placed), V2_LINEAR, "runtime"), "CGA204")
    remedy = found["default/p"].remedy
    assert "Raising app alone takes 1883m" in remedy
    assert re.findall(r"The limit of .*? with it\.|Limits go .*?\.", remedy) == said


def test_204_a_request_of_the_pod_itself_pays_for_the_containers() -> None:
    raw = pod("p", container("app", "200m"), container("sidecar", "20m"), resources={"requests": {"cpu": "500m"}})
    (finding,) = of_rule(audited(cluster(node(kubelet="v1.34.2"), raw), V2_LINEAR, "runtime"), "CGA204").values()
    assert finding.remedy == (
        "Raise the request, which costs nothing to schedule and keeps the pod's weight, as the pod's request stays 500m: "
        "app 200m -> 380m; weights app : sidecar = 48 : 6, against 8 : 1 now. "
        "Not before the new runtime creates the containers."
    )
    small = pod("p", container("app", "200m"), container("sidecar", "20m"), resources={"requests": {"cpu": "300m"}})
    (finding,) = of_rule(audited(cluster(node(kubelet="v1.34.2"), small), V2_LINEAR, "runtime"), "CGA204").values()
    assert finding.remedy.endswith(
        "Raising app alone takes 380m, 100m more a pod to schedule. The pod's own request of 300m must go up to 400m with it. "
        "Not before the new runtime creates the containers."
    )


def test_204_the_limits_of_a_guaranteed_pod_go_with_the_requests() -> None:
    same = pod("p", container("a", "200m", "200m"), container("z", "20m", "20m"), qos="Guaranteed")
    limits = " Limits go with requests, as the pod is Guaranteed."
    assert limits in the_finding("CGA204", V2_LINEAR, "runtime", node(), same).remedy
    # By the limit of the pod itself it is so whatever its containers have: only what is exceeded goes up.
    of_all = of_the_pod(
        pod("p", container("a", "200m", "205m"), container("z", "20m", "90m"), qos="Guaranteed"), "220m", "220m"
    )
    shift, _, alone = the_finding("CGA204", V2_LINEAR, "runtime", node(kubelet="v1.34.1"), of_all).remedy.partition(
        " Raising "
    )
    assert shift.endswith(" The limit of a (205m) must go up with it.")
    assert alone == (
        "a alone takes 380m, 180m more a pod to schedule. The pod's own request of 220m must go up to 400m with it. The limit of "
        "a (205m) and of the pod (220m) must go up with it. Not before the new runtime creates the containers."
    )
    less = pod("p", container("a", "200m"), container("z", "20m"))
    assert limits not in the_finding("CGA204", V2_LINEAR, "runtime", node(), less).remedy


def of_the_pod(raw: dict[str, Any], request: str, limit: str) -> dict[str, Any]:
    raw["spec"]["resources"] = {"requests": {"cpu": request}, "limits": {"cpu": limit}}
    return raw


@pytest.mark.parametrize(
    ("kubelet", "others", "amounts", "rules", "to", "remedy"),
    [
        (
            "v1.34.0",
            "20m",
            ("400m", "400m"),
            "runc 1.2.5",
            "runtime",
            "Give those that gain a smaller request, which costs nothing to schedule: b 20m -> 6m; weights a : b = 49 : 3, "
            "against 16 : 1 now. Not before the new runtime creates the containers.",
        ),
        # The kubelet of now does not know the pod's limit, so a has the least there is.
        (
            "v1.31.0",
            "10m",
            ("2", "3"),
            "runc 1.3.6",
            "kubelet=1.34",
            "Give those that gain a smaller request, which costs nothing to schedule: a 3000m (the limit of the pod) -> 2m; "
            "weights b : a = 4 : 1, against 4 : 1 now. Then CGA205 names a (weight 1).",
        ),
        (
            "v1.34.0",
            "3m",
            ("40m", "40m"),
            "runc 1.2.5",
            "runtime",
            "Give those that gain a smaller request, which costs nothing to schedule: a 40m (the limit of the pod) -> 10m; "
            "weights b : a = 2 : 4, against 1 : 2 now. Not before the new runtime creates the containers.",
        ),
        # The least request is more than none, and the pod's own has nothing to spare.
        (
            "v1.31.0",
            "400m",
            ("400m", "500m"),
            "runc 1.3.6",
            "kubelet=1.34",
            "Give those that gain a smaller request: a 500m (the limit of the pod) -> 2m; weights b : a = 49 : 1, against "
            "49 : 1 now. The pod's own request of 400m must go up to 402m with it. Then CGA205 names a (weight 1). The pod's "
            "request goes from 400m to 402m, its weight stays 16.",
        ),
        (
            "v1.31.0",
            "400m",
            ("400m", "400m"),
            "runc 1.3.6",
            "kubelet=1.34",
            "Give those that gain a smaller request: a 400m (the limit of the pod) -> 2m; weights b : a = 49 : 1, against "
            "49 : 1 now. The pod's own request of 400m must go up to 402m with it. The limit of the pod (400m) must go up "
            "with it. Then CGA205 names a (weight 1). The pod's request goes from 400m to 402m, its weight stays 16.",
        ),
    ],
)
def test_204_where_a_container_has_its_weight_from_the_pods_limit(
    kubelet: str, others: str, amounts: tuple[str, str], rules: str, to: str, remedy: str
) -> None:
    raw = of_the_pod(pod("p", container("a"), container("b", others)), *amounts)
    found = audited(cluster(node(kubelet=kubelet), raw), f"- {{cgroup: v2, runtimes: {{default: {rules}}}}}", to)
    assert of_rule(found, "CGA204")["default/p"].remedy == remedy


def test_204_a_smaller_request_of_those_that_gain_leaves_another_too_little_and_says_so() -> None:
    """20 of 71 shares before; of the weights 1 : 2 : 1 : 1 one has 20%."""
    others = (container(name, milli) for name, milli in (("b", "29m"), ("c", "20m"), ("d", "20m")))
    raw = of_the_pod(pod("p", container("a"), *others), "119m", "219m")
    remedy = the_finding("CGA204", V1, "v2+kubelet=1.34", node(kubelet="v1.33.1"), raw).remedy
    assert remedy == (
        "Give those that gain a smaller request, which costs nothing to schedule: a 219m (the limit of the pod) -> 2m; weights "
        "b : a = 2 : 1, against 29 : 2 now. Then c still lacks 29% of its part of now, d 29%. Then CGA205 names a (weight "
        "1). Not before the node is on cgroup v2, with the runtime it has then."
    )
    assert percent(1 - 1 / 5 / (20 / 71)) == "29%"


def test_204_who_gains_and_has_the_least_already_is_not_told_to_ask_for_less() -> None:
    others = (container("b", "2m"), container("c", "5m"))
    raw = of_the_pod(pod("p", container("a"), *others), "110m", "220m")
    assert the_finding("CGA204", V1, "v2+runtime", node(kubelet="v1.34.0"), raw).remedy == (
        "Give those that gain a smaller request, which costs nothing to schedule: c 5m -> 2m; weights a : b : c = 31 : 1 : 1, "
        "against 225 : 2 : 5 now. Then CGA205 names c (weight 1). "
        "Not before the node is on cgroup v2, with the runtime it has then."
    )


def test_204_where_the_least_request_is_still_too_much_it_says_so() -> None:
    """11 : 1 before; beside weight 2 even the least has a third."""
    raw = of_the_pod(pod("p", container("a"), container("b", "50m")), "50m", "100m")
    rules = "- {cgroup: v2, runtimes: {default: runc 1.3.6}}"
    finding = the_finding("CGA204", rules, "runc=1.2.5,kubelet=1.34", node(kubelet="v1.31.0"), raw)
    assert "b has 92% of its pod's CPU now and 33% after (-64%)" in finding.seen
    assert finding.remedy == "No smaller request of those that gain restores the old ratio."


def test_204_the_overhead_is_no_part_of_the_pods_own_request_and_limit() -> None:
    """380m and 20m are the 400m of the limit; with the overhead the pod asks for 650m."""
    raw = of_the_pod(pod("p", container("app", "200m"), container("side", "20m")), "300m", "400m")
    raw["spec"]["overhead"] = {"cpu": "250m"}
    remedy = the_finding("CGA204", V2_LINEAR, "runtime", node(kubelet="v1.34.2"), raw).remedy
    assert remedy.endswith(
        " Raising app alone takes 380m, 100m more a pod to schedule. The pod's own request of 300m must go up to 400m with it. "
        "Not before the new runtime creates the containers."
    )


def test_204_a_shift_names_the_limit_that_it_would_exceed() -> None:
    objects = cluster(node(), pod("p", container("app", "50m", "60m"), container("side", "200m")))
    (finding,) = of_rule(
        audited(objects, "- {cgroup: v2, runtimes: {default: crun 1.28}}", "crun=1.21"), "CGA204"
    ).values()
    shift, _, alone = finding.remedy.partition(" Raising app alone ")
    assert "app 50m -> 68m" in shift
    assert shift.endswith(" now. The limit of app (60m) must go up with it.")
    assert alone.startswith("takes 54m, 4m more a pod to schedule. Not before")


SYSTEMD, CGROUPFS = (
    f"- {{cgroup: v1, driver: {driver}, runtimes: {{default: runc 1.1.5}}}}" for driver in ("systemd", "cgroupfs")
)


@pytest.mark.parametrize(
    ("amounts", "qos", "rules", "of_shift", "of_raising"),
    [
        # 500m -> 533m, 50m -> 20m, 5m -> 2m.
        ((500, 50, 5), "Burstable", SYSTEMD, ["CGA205 names c2 (weight 1)"], []),
        # Limits go with requests: 1051m and 49m, or 1955m.
        (
            (1000, 100),
            "Guaranteed",
            SYSTEMD,
            ["CGA302 names c0 and c1 (no multiple of 10m)"],
            ["CGA302 names c0 (no multiple of 10m)"],
        ),
        (
            (500, 50, 5),
            "Guaranteed",
            SYSTEMD,
            ["CGA205 names c2 (weight 1), CGA302 names c0 (no multiple of 10m)"],
            ["CGA302 names c0 (no multiple of 10m)"],
        ),
        ((1000, 100), "Guaranteed", CGROUPFS, [], []),
        ((1000, 100), "Burstable", SYSTEMD, [], []),
        # Neither were they before.
        ((1001, 101), "Guaranteed", SYSTEMD, [], []),
    ],
)
def test_204_names_the_rules_that_its_own_requests_make(
    amounts: tuple[int, ...], qos: str, rules: str, of_shift: list[str], of_raising: list[str]
) -> None:
    remedy = the_finding("CGA204", rules, "v2+runtime", node(cpu="8"), asking(amounts, qos)).remedy
    shift, raising = remedy.split(" Raising c0 alone ")
    assert re.findall(r"Then (CGA.*?)\.", shift) == of_shift
    assert re.findall(r"Then (CGA.*?)\.", raising) == of_raising


def test_204_on_cgroup_v1_no_request_is_too_small_to_be_told_apart(tmp_path: Path) -> None:
    """25m would have the linear weight 1, as 5m has."""
    (tmp_path / "back.yaml").write_text("- {cgroup: v1}\n")
    remedy = the_finding("CGA204", V2_LINEAR, str(tmp_path / "back.yaml"), node(), asking((5, 33), "Burstable")).remedy
    assert remedy == (
        "Shift the request inside the pod, which costs nothing to schedule and keeps the pod's weight: c0 5m -> 13m, "
        "c1 33m -> 25m; shares c0 : c1 = 13 : 25, as 1 : 2 now. Raising c0 alone takes 17m, 12m more a pod to schedule. "
        "Not before the node is on cgroup v1, with the runtime it has then."
    )


def asking(amounts: Sequence[int], qos: str) -> dict[str, Any]:
    """A pod whose containers ask for so much, in thousandths of a CPU; limits are the same where it is Guaranteed."""
    texts = [f"{milli}m" for milli in amounts]
    return pod(
        "p", *(container(f"c{n}", text, text if qos == "Guaranteed" else None) for n, text in enumerate(texts)), qos=qos
    )


@pytest.mark.parametrize("seed", range(3))
def test_204_a_shift_makes_no_finding_that_it_does_not_name(seed: int) -> None:
    """Each is applied and audited again: what CGA205 and CGA302 then find of the pod, and did not, is what was said."""
    random = Random(seed)
    named: Counter[str] = Counter()
    for _ in range(80):
        amounts = random.choices((1, 5, 10, 20, 25, 50, 77, 100, 200, 500, 1000, 2000), k=random.choice((2, 3)))
        qos, rules = random.choice(("Burstable", "Guaranteed")), random.choice((SYSTEMD, CGROUPFS, V2_LINEAR))
        first = audited(cluster(node(cpu="8"), asking(amounts, qos)), rules)
        found = of_rule(first, "CGA204").get("default/p")
        shift = re.match(r"Shift.*?(?= Raising | Not before |$)", found.remedy) if found else None
        if not shift:
            continue
        moved = {int(n): int(milli) for n, milli in re.findall(r"c(\d) \d+m -> (\d+)m", shift[0])}
        again = [moved.get(n, milli) for n, milli in enumerate(amounts)]
        then = audited(cluster(node(cpu="8"), asking(again, qos)), rules)
        for rule in ("CGA205", "CGA302"):
            if not of_rule(first, rule):
                assert (rule in shift[0]) == bool(of_rule(then, rule)), (amounts, qos, rules)
                named[rule] += rule in shift[0]
    assert min(named["CGA205"], named["CGA302"]) > 2
