"""The Burstable slice is the sum of what specs ask for; pods and containers have what the kubelet has allocated.

Facts: kubernetes pkg/kubelet/cm/qos_container_manager_linux.go, `setCPUCgroupConfig`, 1.33 to 1.36: `PodRequests(pod)` over the
API's pods, without what the status says.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_cgaudit.cli.main import run
from tests.support import V2_LINEAR, container, listed, node, pod

SLICE = "/kubepods.slice/kubepods-burstable.slice"
INFEASIBLE = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]}
IN_PROGRESS = {"conditions": [{"type": "PodResizeInProgress", "status": "True"}]}


def tree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *objects: dict[str, Any], rules: str = V2_LINEAR, to: str = "v2"
) -> list[dict[str, Any]]:
    """The rows of `tree -o json`."""
    (tmp_path / "cluster.json").write_text(listed(*objects))
    (tmp_path / "states.yaml").write_text(rules)
    flags = ["-f", str(tmp_path / "cluster.json"), "--states", str(tmp_path / "states.yaml"), "--to", to]
    assert run(["tree", *flags, "-o", "json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["cgroups"]
    return found


def weights(rows: list[dict[str, Any]]) -> dict[str, int]:
    """The weight of the Burstable slice, of each pod and of each container."""
    named = {SLICE if row["cgroup"] == SLICE else row["container"] or row["pod"]: row["now"]["weight"] for row in rows}
    return {name: weight for name, weight in named.items() if name}


def resized(name: str, wants: str, has: str, status: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A pod whose spec asks for another amount of CPU than its kubelet has allocated."""
    raw = pod(name, container(f"{name}-app", wants), **spec)
    allocated = {"requests": {"cpu": has}}
    raw["status"] |= status
    raw["status"]["containerStatuses"] = [
        {"name": f"{name}-app", "allocatedResources": {"cpu": has}, "resources": allocated}
    ]
    return raw


@pytest.mark.parametrize("status", [INFEASIBLE, {"resize": "Deferred"}], ids=["condition", "field"])
def test_a_resize_that_is_not_granted_counts_in_the_slice_alone(
    status: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tree(tmp_path, capsys, node(), resized("p", "3", "1", status), pod("q", container("app", "500m")))
    # 3500m in the slice: 3584 shares. 1 CPU in the pod and its container: 1024.
    assert weights(rows) == {SLICE: 137, "p": 39, "p-app": 39, "q": 20, "app": 20}
    assert next(row["now"]["shares"] for row in rows if row["cgroup"] == SLICE) == 3584
    assert {row["after"]["weight"] for row in rows if row["cgroup"] == SLICE} == {137}


def test_a_resize_to_less_leaves_the_slice_less_than_its_pod(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tree(tmp_path, capsys, node(), resized("p", "500m", "3", INFEASIBLE))
    assert weights(rows) == {SLICE: 20, "p": 118, "p-app": 118}


def test_a_resize_that_is_granted_is_the_same_in_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tree(tmp_path, capsys, node(), resized("p", "3", "3", IN_PROGRESS))
    assert weights(rows) == {SLICE: 118, "p": 118, "p-app": 118}


def test_what_a_pod_as_a_whole_asks_for_counts_in_the_slice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = pod("p", container("app"), resources={"requests": {"cpu": "2"}}, overhead={"cpu": "250m"})
    raw["status"] |= INFEASIBLE | {"allocatedResources": {"cpu": "1250m"}}
    rows = tree(tmp_path, capsys, node(kubelet="v1.36.2"), raw)
    # 2250m in the slice, 1250m in the pod: 2304 and 1280 shares.
    assert weights(rows) == {SLICE: 88, "p": 49, "app": 1}


def test_sidecars_and_init_containers_count_as_their_specs_have_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    side = container("side", "1", restartPolicy="Always")
    raw = pod("p", container("app", "100m"), initContainers=[side, container("first", "500m")])
    raw["status"] |= INFEASIBLE
    raw["status"]["initContainerStatuses"] = [
        {"name": "side", "allocatedResources": {"cpu": "200m"}, "resources": {"requests": {"cpu": "200m"}}}
    ]
    rows = tree(tmp_path, capsys, node(), raw)
    # The larger is first + side: 1500m by the spec, 700m as allocated.
    assert weights(rows) == {SLICE: 59, "p": 28, "app": 4, "side": 8}


def test_explain_says_that_the_slice_counts_what_specs_ask_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cluster.json").write_text(listed(node(), resized("p", "3", "1", INFEASIBLE)))
    (tmp_path / "states.yaml").write_text(V2_LINEAR)
    flags = ["-f", str(tmp_path / "cluster.json"), "--states", str(tmp_path / "states.yaml"), "--to", "v2"]
    assert run(["explain", "default/p", *flags]) == 0
    printed = " ".join(capsys.readouterr().out.replace("│", "").split())
    assert "requests of 1 active Burstable pod, as their specs have them 3000m -> 3000 * 1024 // 1000" in printed
    assert "request p-app 1000m = 1000m -> 1024 shares" in printed
