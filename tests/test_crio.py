"""CRI-O and OpenShift: the recorded CRI-O node row by row, what annotations decide, and where conmon competes.

Sources: openshift/kubernetes pkg/kubelet/cm/qos_container_manager_linux.go (`setCPUCgroupConfig`); cri-o pkg/config/workloads.go
and internal/factory/container; machine-config-operator `conmon_cgroup`; the kernel's files of the node of tests/golden-crio.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_cgaudit.cli.main import run
from tests.support import container, listed, node, pod

CRIO = Path(__file__).parent / "golden-crio"
SETTINGS = ("openshift-like", "cgroupfs")
LEVELS = ("kubepods", "qos", "pod", "container")
SLICE = "/kubepods.slice/kubepods-burstable.slice"
RHCOS = "Red Hat Enterprise Linux CoreOS 9.6.20260301-0 (Plow)"
TARGET = {"target.workload.openshift.io/management": '{"effect": "PreferredDuringScheduling"}'}
LINEAR = "- {cgroup: v2, runtimes: {default: runc 1.1.15}}\n"
RUNC, CRUN = (f"- {{cgroup: v2, runtimes: {{default: {name}}}}}\n" for name in ("runc 1.1.15", "crun 1.28"))
Json = dict[str, Any]


def flags(setting: str, states: Path | None = None, *, kubelet: bool) -> list[str]:
    """Those that read the recorded node."""
    folder = CRIO / setting
    read = [word for name in ("nodes", "pods", "runtimeclasses") for word in ("-f", str(folder / f"{name}.json"))]
    return [
        *read,
        "--states",
        str(states or folder / "states.yaml"),
        *([f"--kubelet=files:{folder}"] if kubelet else []),
    ]


def printed(words: list[str], capsys: pytest.CaptureFixture[str], *, code: int = 0) -> str:
    assert run(words) == code
    return capsys.readouterr().out


def tree(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Json]:
    rows = json.loads(printed(["tree", *words, "--to", "v2", "-o", "json"], capsys))["cgroups"]
    return {row["cgroup"]: row for row in rows}


def truth(setting: str) -> list[Json]:
    """The kernel's values of every Kubernetes cgroup, and of system.slice."""
    rows: list[Json] = json.loads((CRIO / setting / "cgroups.json").read_text())
    return [row for row in rows if row["level"] in LEVELS or row["cgroup"] == "/system.slice"]


def wrong(setting: str, found: dict[str, Json]) -> list[tuple[str, Any, Any]]:
    """The cgroups that have another weight or quota than is said, with what is said and what is true."""
    fields = ("weight", "quota_us", "period_us")
    told = [(row, found[row["cgroup"]]["now"]) for row in truth(setting)]
    return [
        (row["cgroup"], [said[field] for field in fields], [row[field] for field in fields])
        for row, said in told
        if any(said[field] != row[field] for field in fields)
    ]


@pytest.mark.parametrize(("setting", "amount"), [("openshift-like", 91), ("cgroupfs", 85)])
def test_every_recorded_cgroup_is_as_the_kernel_has_it_with_the_kubelets_answers(
    setting: str, amount: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """176 of 176 together."""
    found = tree(flags(setting, kubelet=True), capsys)
    assert len(truth(setting)) == len(found) == amount
    assert wrong(setting, found) == []


def test_without_the_kubelet_only_the_slice_differs_that_openshifts_kubelet_makes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing of this node says who built its kubelet: the ordinary sum comes first, the other one is the second case."""
    found = tree(flags("openshift-like", kubelet=False), capsys)
    assert wrong("openshift-like", found) == [(SLICE, [225, None, 100000], [222, None, 100000])]
    assert [(case["when"], case["now"]["weight"]) for case in found[SLICE]["cases"]] == [
        ("management pods not counted", 222)
    ]
    assert wrong("cgroupfs", tree(flags("cgroupfs", kubelet=False), capsys)) == []
    states = tmp_path / "states.yaml"
    said = (CRIO / "openshift-like" / "states.yaml").read_text()
    states.write_text(said.replace("kubelet: linear", "kubelet: openshift"))
    assert wrong("openshift-like", tree(flags("openshift-like", states, kubelet=False), capsys)) == []


@pytest.mark.parametrize(("setting", "compared", "quotas"), [("openshift-like", 124, 45), ("cgroupfs", 84, 31)])
def test_verify_compares_what_is_predicted_and_names_each_cause(
    setting: str, compared: int, quotas: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(printed(["verify", *flags(setting, kubelet=True), "-o", "json"], capsys))
    assert (found["compared"], found["quotas"], found["differences"]) == (compared, quotas, [])
    causes = {(each["level"], each["pod"], each["container"], each["cause"]) for each in found["explained"]}
    openshift = setting == "openshift-like"
    expected = {
        ("pod", "noquota-crun", None, "annotation"),
        ("container", "noquota-crun", "app", "annotation"),
        ("inner" if openshift else "container", "unified-crun", "app", "annotation"),
        ("container", "unified-runc", "app", "annotation"),
        *(("container", f"mgmt-{name}", part, "annotation") for name in ("crun", "runc") for part in ("app", "side")),
    }
    assert causes - {("qos", None, None, "partitioned")} == expected
    assert (("qos", None, None, "partitioned") in causes) == openshift
    # 54 containers and the pause containers of the two pods that share their process namespace.
    assert found["conmon"] == ({"crio-node": 56} if openshift else {})


def test_what_a_kubelet_measured_stands_in_now_and_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    for kubelet in (True, False):
        words = [*flags("openshift-like", kubelet=kubelet), "--to", "v2+runtime", "-o", "json"]
        containers = json.loads(printed(words, capsys))["containers"]
        # The containers of an old runtime, as the move upgrades it: what comes after is predicted.
        old = next(each for each in containers if each["pod"] == "crun-old-one")
        assert (old["before_value"], old["after_value"]) == (4, 17)
        measured = [(each["before_measured"], each["before_pod_measured"]) for each in containers]
        assert {*measured} == {(kubelet, kubelet)}
        assert (old["after_measured"], old["after_pod_measured"]) == (False, False)


def test_where_conmon_competes_is_said_in_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    """Measured beside two containers of weights 29 and 6: 73%, 15%, and conmon 11% of the pod's CPU (chatty.txt)."""
    said = (
        "CRI-O's conmon wants no CPU. On node crio-node each container's has weight 100 in its pod and counts against the pod's "
        "limit: it takes its part while it copies logs."
    )
    for setting in SETTINGS:
        text = printed([*flags(setting, kubelet=True), "--to", "v2", "-o", "json"], capsys)
        assert (said in json.loads(text)["target"]["assumptions"]) == (setting == "openshift-like")


def test_management_pods_are_no_false_high_finding(capsys: pytest.CaptureFixture[str]) -> None:
    """By their specs they would go from weight 35 to 1 where a new container is created."""
    for setting in SETTINGS:
        text = printed([*flags(setting, kubelet=True), "--to", "v2+runtime", "-o", "json"], capsys)
        found = [each for each in json.loads(text)["findings"] if each["subject"]["name"].startswith("mgmt")]
        assert {each["rule"] for each in found} <= {"CGA205", "CGA206"}


def annotated(name: str, said: dict[str, str], *containers: Json, **more: Any) -> Json:
    raw = pod(name, *containers, **more)
    raw["metadata"]["annotations"] = said
    return raw


def files(tmp_path: Path, rules: str, *objects: Json) -> list[str]:
    (tmp_path / "cluster.json").write_text(listed(*objects))
    (tmp_path / "states.yaml").write_text(rules)
    return ["-f", str(tmp_path / "cluster.json"), "--states", str(tmp_path / "states.yaml")]


MIXED = (annotated("mgmt", TARGET, container("app", "500m")), pod("plain", container("app", "500m")))


@pytest.mark.parametrize(
    ("strings", "weights"),
    [
        ({"osImage": RHCOS, "containerRuntimeVersion": "cri-o://1.33.5-3.rhaos4.20.git1234567.el9"}, [20]),
        (
            {
                "osImage": "Red Hat Enterprise Linux 9.6 (Plow)",
                "containerRuntimeVersion": "cri-o://1.33.5-3.rhaos4.20.git1234567.el9",
            },
            [20],
        ),
        ({"osImage": "Ubuntu 24.04.2 LTS", "containerRuntimeVersion": "cri-o://1.33.5"}, [39, 20]),
        ({"osImage": "Ubuntu 24.04.2 LTS", "containerRuntimeVersion": "containerd://1.7.27"}, [39]),
    ],
    ids=["OpenShift", "MicroShift", "CRI-O", "containerd"],
)
def test_which_nodes_leave_management_pods_out_of_the_burstable_slice(
    strings: dict[str, str], weights: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """1000m is weight 39, 500m is 20. The pod's own slice keeps its weight."""
    found = tree(files(tmp_path, LINEAR, node(**strings), *MIXED), capsys)
    assert [
        found[SLICE]["now"]["weight"],
        *(case["now"]["weight"] for case in found[SLICE].get("cases", ())),
    ] == weights
    assert [row["now"]["weight"] for row in found.values() if row["level"] == "pod"] == [20, 20]


CRIO_NODE = node(osImage="Ubuntu 24.04.2 LTS", containerRuntimeVersion="cri-o://1.33.5")
WHOLE = container("app", "1", "1")


@pytest.mark.parametrize(
    ("rules", "said", "own", "expected"),
    [
        (RUNC, TARGET | {"resources.workload.openshift.io/app": '{"cpushares": 20}'}, container("app", "1"), (1, None)),
        # Without the target annotation CRI-O does not look for the resources.
        (RUNC, {"resources.workload.openshift.io/app": '{"cpushares": 20}'}, container("app", "1"), (39, None)),
        (RUNC, {"unified-cgroup.crio.io/app": "cpu.weight=500"}, container("app", "1"), (500, None)),
        (RUNC, {"unified-cgroup.crio.io/other": "cpu.weight=500"}, container("app", "1"), (39, None)),
        # crun writes it into the cgroup below the scope.
        (CRUN, {"unified-cgroup.crio.io/app": "cpu.weight=500"}, container("app", "1"), (100, None)),
        # A Burstable pod, or one without a RuntimeClass, keeps its quota.
        (RUNC, {"cpu-quota.crio.io": "disable"}, WHOLE, (39, 100000)),
        (RUNC, {"unknown.crio.io/app": "cpu.weight=500"}, container("app", "1"), (39, None)),
    ],
)
def test_what_an_annotation_decides(
    rules: str,
    said: dict[str, str],
    own: Json,
    expected: tuple[int, int | None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = tree(files(tmp_path, rules, CRIO_NODE, annotated("p", said, own)), capsys)
    (now,) = [row["now"] for row in found.values() if row["container"] == "app"]
    assert (now["weight"], now["quota_us"]) == expected


def test_a_quota_is_off_where_a_guaranteed_pod_of_a_class_asks_for_whole_cpus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = {"kind": "RuntimeClass", "apiVersion": "node.k8s.io/v1", "metadata": {"name": "fast"}, "handler": "default"}
    said = {"cpu-quota.crio.io": "disable"}
    raw = annotated("p", said, WHOLE, qos="Guaranteed", runtimeClassName="fast")
    words = files(tmp_path, RUNC, CRIO_NODE, kind, raw)
    found = tree(words, capsys)
    assert [row["now"]["quota_us"] for row in found.values() if row["pod"]] == [None, None]
    text = " ".join(printed(["explain", "default/p", *words, "--to", "v2"], capsys).replace("│", "").split())
    assert "limit 1000m: no quota, as an annotation cpu-quota.crio.io asks CRI-O" in text


def test_explain_names_the_annotation_that_a_value_comes_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = TARGET | {
        "resources.workload.openshift.io/app": '{"cpushares": 256}',
        "unified-cgroup.crio.io/side": "cpu.weight=500",
    }
    own = annotated("p", said, container("app"), container("side"))
    words = files(
        tmp_path, RUNC, node(osImage=RHCOS, containerRuntimeVersion="cri-o://1.33.5-3.rhaos4.20.git1234567.el9"), own
    )
    words += ["--to", "v2"]
    text = " ".join(printed(["explain", "default/p", *words], capsys).replace("│", "").split())
    assert "annotation resources.workload.openshift.io/app -> 256 shares -> 1 +" in text
    assert "annotation unified-cgroup.crio.io/side -> weight 500" in text
    assert "requests of 0 active Burstable pods, without 1 for a management partition 0m" in text


def test_of_annotations_only_those_that_decide_cpu_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = TARGET | {
        "team.example.com/token": "hunter2",
        "unified-cgroup.crio.io/app": f"cpu.weight=500;{'x' * 300}",
        "resources.workload.openshift.io/app": '{"cpushares": 20}',
    }
    words = files(tmp_path, RUNC, CRIO_NODE, annotated("p", said, container("app", "1")))
    (now,) = [row["now"] for row in tree(words, capsys).values() if row["container"] == "app"]
    assert now["weight"] == 1
    notes = json.loads(printed([*words, "-o", "json"], capsys))["coverage"]["notes"]
    assert notes[1:] == [
        "1 annotation for CRI-O or OpenShift is over 256 bytes and not read: what is asked there of weights or quotas is not "
        "predicted"
    ]
    saved = tmp_path / "saved.json"
    assert run(["snapshot", *words[:2], "-o", str(saved)]) == 0
    text = saved.read_text()
    assert ("hunter2" in text, "xxx" in text, "resources.workload.openshift.io/app" in text) == (False, False, True)
    again = ["-f", str(saved), *words[2:]]
    assert tree(again, capsys) == tree(words, capsys)
