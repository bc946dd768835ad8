"""The closer look at a workload: what it says decides, decides."""

import pytest

from kubectl_cgaudit.report.closer import closer
from tests.support import V1, audited, cluster, container, node, pod


@pytest.mark.parametrize(
    ("name", "why"),
    [
        # All pods together lose at the root; that the BestEffort one gains all the same is decided among the pods.
        ("b", "Inside kubepods its part goes 0.02% -> 0.3%, because n1 goes from cgroup v1 to v2: "),
        (
            "p",
            "At the root of the tree pods : system.slice goes 16 : 1 -> 6.25 : 1 (16384 : 1024 -> 625 : 100), because n1 ",
        ),
    ],
)
def test_the_closer_look_names_the_level_that_decides(name: str, why: str) -> None:
    besteffort = pod("b", container("c"), qos="BestEffort")
    audit = audited(cluster(node(cpu="16"), besteffort, pod("p", container("app", "10"))), V1, "v2")
    (workload,) = [each for each in audit.workloads if each.name == name]
    found = closer(workload, {each.name: each for each in audit.nodes}, {})
    assert found is not None
    assert found.why.startswith(why), found.why
