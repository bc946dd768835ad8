"""CGA201: when it fires, when it does not, and the numbers of its remedy."""

from pathlib import Path

import pytest

from kubectl_cgaudit.text import percent
from tests.support import (
    ONE,
    V1,
    V2_LINEAR,
    audited,
    cluster,
    container,
    node,
    of_rule,
    pod,
    recorded_audit,
    the_finding,
)


def test_201_the_loss_and_the_weight_that_undoes_it() -> None:
    findings = of_rule(recorded_audit(), "CGA201")
    assert set(findings) == {
        "data/postgres",
        "kube-system/kube-proxy",
        "platform/node-exporter",
        "shop/checkout",
        "shop/payments",
    }
    findings["data/postgres"]


@pytest.mark.parametrize(("threshold", "found"), [("system-loss=10%", 1), ("system-loss=0.7", 0)])
def test_201_follows_its_threshold(threshold: str, found: int) -> None:
    assert len(of_rule(audited(cluster(node(), ONE), V1, "v2", threshold), "CGA201")) == found


@pytest.mark.parametrize(
    ("weight", "severity"), [(790, "low"), (874, "low"), (875, "medium"), (1399, "medium"), (1400, "high")]
)
def test_201_is_the_graver_the_more_is_lost(weight: int, severity: str, tmp_path: Path) -> None:
    """system.slice goes from 700 to more: 700 / 875 is 20% less, 700 / 1400 half."""
    (tmp_path / "to.yaml").write_text(f"- {{system_slice: {weight}}}")
    rules = f"{V2_LINEAR}\n- {{system_slice: 700, set_by: systemd}}"
    assert the_finding("CGA201", rules, str(tmp_path / "to.yaml"), node(), ONE).severity == severity


def test_201_the_page_says_what_a_pod_loses_of_nodes_of_each_size() -> None:
    lost = {}
    for cpu in (4, 16, 64):
        case = audited(cluster(node(cpu=str(cpu)), ONE), V1, "v2").nodes[0].cases[0]
        lost[cpu] = 1 - case.after.pods_share / case.before.pods_share
    small, *larger = (f"{percent(part)} with {cpu}" for cpu, part in lost.items())
    page = (Path(__file__).parent.parent / "docs" / "findings" / "CGA201.md").read_text()
    assert f"of the node: {small} CPUs, {', '.join(larger)}." in page


@pytest.mark.parametrize(
    ("kubelet", "to", "loser", "told"),
    [
        ("v1.33.8", "kubelet=1.36", "q", "the kubelet of now does not count. Raise its CPU request;"),
        (
            "v1.36.0",
            "kubelet=1.33.8",
            "p",
            "the kubelet of then does not count. Raise the CPU requests of its containers;",
        ),
    ],
)
def test_201_says_which_kubelet_does_not_count_what_a_pod_asks_for_as_a_whole(
    kubelet: str, to: str, loser: str, told: str
) -> None:
    whole = {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}}
    pods = pod("p", container("a", "500m"), **whole), pod("q", container("a", "1"))
    found = of_rule(audited(cluster(node(kubelet=kubelet), *pods), V2_LINEAR, to), "CGA201")
    assert list(found) == [f"default/{loser}"]


MEMORY_ALONE = {"name": "c", "resources": {"requests": {"memory": "64Mi"}}}


def test_201_a_loss_that_only_the_rounded_weight_brings_to_the_threshold_is_said(tmp_path: Path) -> None:
    """With the 3.8 : 1 of now the pod would lose 9.2%; 75 : 20 is 3.75 : 1."""
    small = node(cpu="1900m")
    asked = {"p": "250m", "q": "100m", "r": "54m", "s": "29m"}
    objects = cluster(small, *(pod(name, container("c", cpu)) for name, cpu in asked.items()))
    rules = "- {cgroup: v1, runtimes: {default: runc 1.1.5}, system_slice: 512, set_by: systemd}"
    (tmp_path / "to.yaml").write_text("- {cgroup: v2, system_slice: 20}")
    applied = of_rule(audited(objects, rules, str(tmp_path / "to.yaml")), "CGA201")
    assert list(applied) == ["default/p"]
