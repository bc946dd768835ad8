"""CPU quota: the kubelet's minimum, systemd's rounding, and who writes which."""

import pytest

from kubectl_cgaudit.cgroups.quota import as_limit, milli_to_quota, quota_to_milli, round_up
from kubectl_cgaudit.cgroups.version import KubeletVersion, rounds_pod_quota
from tests.support import cluster, container, node, pod, viewed


@pytest.mark.parametrize(
    ("milli", "quota"), [(1, 1000), (9, 1000), (10, 1000), (11, 1100), (77, 7700), (2000, 200_000)]
)
def test_quota_of_a_limit(milli: int, quota: int) -> None:
    assert milli_to_quota(milli) == quota


@pytest.mark.parametrize(
    ("quota", "rounded"), [(1000, 1000), (1100, 2000), (7700, 8000), (8000, 8000), (52_500, 53_000)]
)
def test_systemd_rounds_up_to_one_percent(quota: int, rounded: int) -> None:
    assert round_up(quota) == rounded


@pytest.mark.parametrize(
    ("quota", "period", "milli", "limit"),
    [
        (8000, 100_000, 80, "80m"),
        (7750, 100_000, 78, "77.5m"),
        (1234, 12_345, 100, "100m"),
        (1000, 12_345, 82, "81m"),
        (200_000, 100_000, 2000, "2000m"),
    ],
)
def test_the_limit_of_a_quota(quota: int, period: int, milli: int, limit: str) -> None:
    """The last but one: no quota is smaller than 1000 us, and 81m has that, too."""
    assert (quota_to_milli(quota, period), as_limit(quota, period)) == (milli, limit)


@pytest.mark.parametrize(
    ("version", "rounds"),
    [
        ("1.32.99", False),
        ("1.33.0", False),
        ("1.33.7", False),
        ("1.33.8", True),
        ("1.33.13", True),
        ("1.34.0", False),
        ("1.34.9", False),
        ("1.35.0", True),
        ("1.36.2", True),
        ("unknown", False),
    ],
)
def test_which_kubelets_round_the_pod_quota(version: str, rounds: bool) -> None:
    assert rounds_pod_quota(KubeletVersion.parse(version)) is rounds


@pytest.mark.parametrize(
    ("driver", "runtime", "kubelet", "container_quota", "pod_quota"),
    [
        ("systemd", "runc 1.1.15", "v1.33.13", 7700, 8000),
        ("systemd", "runc 1.3.1", "v1.32.9", 7700, 7700),
        ("systemd", "runc 1.3.2", "v1.34.2", 8000, 7700),
        ("systemd", "crun 1.21", "v1.34.2", 8000, 7700),
        ("systemd", "kata", "v1.36.2", None, 8000),
        ("cgroupfs", "runc 1.3.6", "v1.36.2", 7700, 7700),
    ],
)
def test_who_writes_the_rounded_value_on_v2(
    driver: str, runtime: str, kubelet: str, container_quota: int | None, pod_quota: int
) -> None:
    objects = cluster(node(kubelet=kubelet), pod("p", container("c", "50m", "77m")))
    rules = f"- {{cgroup: v2, driver: {driver}, runtimes: {{default: {runtime}}}}}"
    (comparison,) = viewed(objects, rules, "v2")
    (tree,) = comparison.cases[0].before.pods()
    assert (tree.containers[0][1].quota_us, tree.cgroup.quota_us) == (container_quota, pod_quota)


@pytest.mark.parametrize(("runtime", "quota"), [("crun 1.21", 7700), ("crun 1.28", 7700), ("runc 1.3.6", 8000)])
def test_on_v1_crun_writes_the_raw_value_last(runtime: str, quota: int) -> None:
    """More than its pod's the kernel takes of no container: what runc tries fails (CGA301), and crun's start."""
    objects = cluster(node(kubelet="v1.34.2"), pod("p", container("c", "50m", "77m")))
    (comparison,) = viewed(
        objects, f"- {{cgroup: v1, driver: systemd, runtimes: {{default: {runtime}}}}}", "kubelet=1.34.3"
    )
    (tree,) = comparison.cases[0].before.pods()
    assert (tree.containers[0][1].quota_us, tree.cgroup.quota_us) == (quota, 7700)
