"""Which cgroups a tree holds, where they lie, and who competes."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.cgroups.version import KubeletVersion
from kubectl_cgaudit.detect.runtime import parse
from kubectl_cgaudit.predict.shape import Shapes
from kubectl_cgaudit.predict.tree import NodeTree, predict
from tests.support import V1, V2_LINEAR, V2_QUADRATIC, cluster, compared, container, node, pod


def tree(*pods: dict[str, Any], rules: str = V2_LINEAR, **of_node: Any) -> NodeTree:
    (comparison,) = compared(cluster(node(**of_node), *pods), rules, "v2")
    return comparison.cases[0].before


def running(raw: dict[str, Any], **ids: str) -> dict[str, Any]:
    raw["status"]["containerStatuses"] = [
        {"name": name, "state": {"running": {}}, "containerID": identifier} for name, identifier in ids.items()
    ]
    return raw


def paths(of: NodeTree) -> list[str | None]:
    return [cgroup.path for cgroup in of.cgroups()]


GUARANTEED = pod("g", container("c", "1", "1"), qos="Guaranteed")


@pytest.mark.parametrize(
    ("runtime_id", "driver", "expected"),
    [
        ("containerd://abc", "systemd", "/kubepods.slice/kubepods-poduid_g.slice/cri-containerd-abc.scope"),
        ("cri-o://abc", "systemd", "/kubepods.slice/kubepods-poduid_g.slice/crio-abc.scope"),
        ("docker://abc", "systemd", "/kubepods.slice/kubepods-poduid_g.slice/docker-abc.scope"),
        ("containerd://abc", "cgroupfs", "/kubepods/poduid-g/abc"),
        ("cri-o://abc", "cgroupfs", "/kubepods/poduid-g/crio-abc"),
    ],
)
def test_paths_of_both_drivers_and_every_runtime(runtime_id: str, driver: str, expected: str) -> None:
    raw = running(pod("g", container("c", "1", "1"), qos="Guaranteed"), c=runtime_id)
    rules = f"- {{cgroup: v2, driver: {driver}, runtimes: {{default: linear}}}}"
    assert expected in paths(tree(raw, rules=rules))


def test_a_static_pod_lies_under_the_uid_its_kubelet_gave_it() -> None:
    raw = pod("etcd-n1", container("etcd", "100m"), owner=("Node", "n1"))
    raw["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "0a1b2c", "other": "secret"}
    assert "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b2c.slice" in paths(tree(raw))


def test_finished_pods_and_other_nodes_pods_do_not_count() -> None:
    of = tree(
        pod("done", container("c", "1"), phase="Succeeded"),
        pod("failed", container("c", "1"), phase="Failed"),
        pod("elsewhere", container("c", "1"), on="n2"),
        pod("pending", container("c", "100m"), phase="Pending"),
    )
    assert [each.pod.name for each in of.pods] == ["pending"]
    assert of.burstable.shares == 102


def test_empty_slices_have_the_least_and_compete_with_nobody() -> None:
    of = tree(GUARANTEED)
    assert (of.burstable.weight, of.besteffort.weight) == (1, 1)
    assert (of.burstable.share, of.besteffort.share) == (0.0, 0.0)
    assert of.pods[0].cgroup.share == of.kubepods.share


def test_a_sidecar_competes_an_ended_init_container_does_not() -> None:
    raw = pod(
        "p",
        container("app", "200m"),
        initContainers=[container("vault", "50m", restartPolicy="Always"), container("migrate", "600m")],
    )
    names = [container.name for container, _ in tree(raw).pods[0].containers]
    assert names == ["vault", "app"]


def test_a_running_init_container_is_shown_but_does_not_compete() -> None:
    raw = pod("p", container("app", "200m"), initContainers=[container("migrate", "600m")])
    raw["status"]["initContainerStatuses"] = [{"name": "migrate", "state": {"running": {}}}]
    of = tree(raw).pods[0]
    assert next((c.name, cgroup.weight, cgroup.share) for c, cgroup in of.containers) == ("migrate", 24, None)
    assert of.containers[1][1].share == of.cgroup.share


@pytest.mark.parametrize(
    ("policy", "exit_code", "there"),
    [("Always", 0, True), ("OnFailure", 1, True), ("OnFailure", 0, False), ("Never", 1, False)],
)
def test_an_ended_container_stays_only_if_it_is_restarted(policy: str, exit_code: int, there: bool) -> None:
    raw = pod("p", container("a", "1"), container("b", "1"), restartPolicy=policy)
    raw["status"]["containerStatuses"] = [{"name": "a", "state": {"terminated": {"exitCode": exit_code}}}]
    assert ("a" in [c.name for c, _ in tree(raw).pods[0].containers]) is there


@pytest.mark.parametrize(
    ("pods_policy", "own", "exit_code", "there"),
    [
        ("Always", "Never", 0, False),
        ("Never", "Always", 0, True),
        ("Never", "OnFailure", 1, True),
        ("Always", None, 0, True),
    ],
)
def test_a_containers_own_restart_policy_wins(pods_policy: str, own: str | None, exit_code: int, there: bool) -> None:
    raw = pod("p", container("a", "100m", **({"restartPolicy": own} if own else {})), container("b", "100m"))
    raw["spec"]["restartPolicy"] = pods_policy
    raw["status"]["containerStatuses"] = [{"name": "a", "state": {"terminated": {"exitCode": exit_code}}}]
    assert ("a" in [c.name for c, _ in tree(raw).pods[0].containers]) is there


def test_a_pod_whose_containers_are_gone_wants_nothing_but_its_request_counts() -> None:
    done = pod("done", container("a", "1"), restartPolicy="Never")
    done["status"]["containerStatuses"] = [{"name": "a", "state": {"terminated": {"exitCode": 0}}}]
    of = tree(done, pod("live", container("c", "1")))
    assert [each.cgroup.share for each in of.pods] == [0.0, 157 / 257]
    assert of.burstable.shares == 2048
    assert [each.cgroup.share for each in tree(done).pods] == [0.0]


def test_a_running_debug_container_has_the_least_shares_and_does_not_count() -> None:
    """Whatever is migrated, pods are created anew, and it is not."""
    raw = pod("p", container("app", "1"), ephemeralContainers=[{"name": "debug"}])
    raw["status"]["ephemeralContainerStatuses"] = [{"name": "debug", "state": {"running": {}}}]
    of = tree(raw).pods[0]
    assert [(c.name, cgroup.shares) for c, cgroup in of.containers] == [("app", 1024), ("debug", 2)]
    assert of.cgroup.shares == 1024
    assert of.parts == (1.0, None)


def test_kata_sets_no_weight_on_the_host() -> None:
    rules = "- {cgroup: v2, runtimes: {default: linear, kata: kata}}"
    raw = pod("p", container("app", "1"), runtimeClassName="kata")
    (each,) = tree(raw, rules=rules).pods
    cgroup = each.containers[0][1]
    assert (cgroup.shares, cgroup.weight, cgroup.share) == (None, None, None)
    assert each.cgroup.weight == 39


def test_a_runtime_class_leads_to_its_handler() -> None:
    objects = cluster(
        node(),
        pod("p", container("app", "1"), runtimeClassName="fast"),
        {"kind": "RuntimeClass", "metadata": {"name": "fast"}, "handler": "crun"},
    )
    (comparison,) = compared(objects, "- {cgroup: v2, runtimes: {default: linear, crun: crun 1.28}}", "v2")
    assert comparison.handlers == ("crun",)
    assert comparison.cases[0].before.pods[0].containers[0][1].weight == 100


@pytest.mark.parametrize("rules", [V1, V2_LINEAR, V2_QUADRATIC])
def test_shares_of_the_hungry_add_up_at_every_level(rules: str) -> None:
    of = tree(
        GUARANTEED,
        pod("b1", container("a", "100m"), container("b", "30m")),
        pod("b2", container("a", "700m")),
        pod("be", container("a"), container("b"), qos="BestEffort"),
        rules=rules,
    )
    assert of.kubepods.share is not None
    assert sum(c.share or 0 for c in of.root) + of.kubepods.share == pytest.approx(1)
    assert sum(each.cgroup.share or 0 for each in of.pods) == pytest.approx(of.kubepods.share)
    for each in of.pods:
        assert sum(c.share or 0 for _, c in each.containers) == pytest.approx(each.cgroup.share)


SETUPS: dict[str, Any] = {
    "cgroup": ("v1", "v2"),
    "kubelet_formula": ("linear", "quadratic"),
    "kubelet_version": (KubeletVersion(1, 33, 5), KubeletVersion(1, 36, 0)),
    "driver": ("systemd", "cgroupfs"),
    "cfs_quota": (True, False),
    "period_us": (100_000, 10_000),
    "runtimes": tuple((("default", parse(said)),) for said in ("runc 1.1.15", "runc 1.3.6", "kata")),
}


@pytest.mark.parametrize("field", SETUPS)
def test_shapes_of_one_setup_are_not_those_of_another(field: str) -> None:
    """With one table for all setups each comes out as with a table of its own, and the settings tell."""
    limited = pod("p", container("a", "300m", "755m"), container("b", "50m", "77m"))
    objects = cluster(node(), limited, pod("q", container("a", "2")))
    (comparison,) = compared(objects, V2_LINEAR, "v2")
    start, shared = comparison.cases[0].now, Shapes()
    seen = set()
    for value in SETUPS[field]:
        setup = replace(start, **{field: value})
        trees = [predict(comparison.node, comparison.placed, setup, shapes) for shapes in (shared, Shapes())]
        first, second = [tuple(tree.cgroups()) for tree in trees]
        assert first == second
        seen.add(first)
    assert len(seen) == len(SETUPS[field])
