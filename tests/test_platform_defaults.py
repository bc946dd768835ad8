"""What nodes and pods alone say of platforms, and what a target that is a platform makes of a node: one small cluster each."""

import html
import json
from pathlib import Path
from typing import Any

import pytest

from kubectl_cgaudit.cli.main import run
from tests.support import GOLDEN, RECORDED_FLAGS, container, listed, node, pod

Json = dict[str, Any]
BLIND = RECORDED_FLAGS[:-2]
RHCOS = "Red Hat Enterprise Linux CoreOS 9.6.20260301-0 (Plow)"
TWO = container("app", "1"), container("side", "50m")


def openshift(name: str, release: str, kubelet: str, os: str = RHCOS, role: str = "worker") -> Json:
    """A node of OpenShift with 4 CPUs, of which 500m are reserved."""
    found = node(
        name,
        kubelet=kubelet,
        osImage=os,
        containerRuntimeVersion=f"cri-o://{release}",
        labels={f"node-role.kubernetes.io/{role}": ""},
    )
    found["status"]["allocatable"]["cpu"] = "3500m"
    return found


def files(tmp_path: Path, rules: str, *objects: Json) -> list[str]:
    (tmp_path / "cluster.json").write_text(listed(*objects))
    (tmp_path / "states.yaml").write_text(rules)
    states = ["--states", str(tmp_path / "states.yaml")] if rules else []
    return ["-f", str(tmp_path / "cluster.json"), *states]


def said(words: list[str], capsys: pytest.CaptureFixture[str], *, code: int = 0) -> Json:
    assert run([*words, "-o", "json"]) == code
    found: Json = json.loads(capsys.readouterr().out)
    return found


def known(words: list[str], what: str, capsys: pytest.CaptureFixture[str]) -> tuple[str | None, str]:
    (only,) = said(["nodes", *words], capsys)["nodes"]
    return only["known"][what]["value"], only["known"][what]["confidence"]


def test_false_features_of_a_docker_node_say_nothing_of_its_runtime(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """cri-dockerd writes userNamespaces: false whatever the runtime is: Mirantis/cri-dockerd PR #370."""
    for runtime, expected in (
        ("docker://28.5.1", (None, "unknown")),
        ("containerd://2.1.9", ("not quadratic", "likely")),
    ):
        of = node(osImage="Custom", containerRuntimeVersion=runtime)
        of["status"]["runtimeHandlers"] = [{"name": "", "features": {"userNamespaces": False}}]
        assert known(files(tmp_path, "", of, pod("p", *TWO)), "runtime:default", capsys) == expected


def root(words: list[str], to: str, capsys: pytest.CaptureFixture[str]) -> tuple[float, float, list[str]]:
    """Pods to system now and after, and the findings CGA202, of the most plausible case."""
    found = said([*words, "--to", to], capsys)
    return (*ratios(found), [each["rule"] for each in found["findings"] if each["id"] == "CGA202:w1"])


def ratios(found: Json) -> tuple[float, float]:
    """Pods to system of the first node, now and after, of the most plausible case."""
    case = found["nodes"][0]["cases"][0]
    return round(case["before"]["podsPerSystem"], 2), round(case["after"]["podsPerSystem"], 2)


def test_openshift_4_22_enforces_its_reserve_on_system_slice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """machine-config-operator release-4.22 templates/worker: 500m are weight 20, so 137 : 20."""
    worker = openshift("w1", "1.35.1-3.rhaos4.22.git1234567.el9", "v1.35.2")
    words = files(tmp_path, "", worker, pod("p", *TWO, on="w1"))
    assert root(words, "v2", capsys) == (6.85, 6.85, ["CGA202"])
    assert said([*words, "--to", "v2"], capsys)["nodes"][0]["cases"][0]["before"]["podsShare"] == 0.872611465
    older = openshift("w1", "1.34.1-3.rhaos4.21.git1234567.el9", "v1.34.2")
    assert root(files(tmp_path, "", older, pod("p", *TWO, on="w1")), "v2", capsys) == (1.37, 1.37, [])
    control = openshift("w1", "1.35.1-3.rhaos4.22.git1234567.el9", "v1.35.2", role="control-plane")
    assert root(files(tmp_path, "", control, pod("p", *TWO, on="w1")), "v2", capsys) == (1.37, 1.37, [])


V1 = "- {match: {name: w1}, cgroup: v1, runtimes: {default: runc 1.1.12}}\n"
OLD = openshift(
    "w1", "1.31.5-3.rhaos4.18.git1234567.el9", "v1.31.5", "Red Hat Enterprise Linux CoreOS 418.94.202502100215-0"
)
NEW = openshift("w2", "1.35.1-3.rhaos4.22.git1234567.el9", "v1.35.2")
NEXT = (
    "Node w1: openshift-4.22 changes what competes with pods at the root, which --to v2 leaves unchanged: if the move ends "
    "there, use --to platform=openshift-4.22"
)


@pytest.mark.parametrize(
    ("to", "after", "notes"),
    [("v2", 1.37, [NEXT]), ("platform=openshift-4.22", 6.85, []), ("like=w2", 6.85, [])],
)
def test_openshift_4_18_on_v1_moves_to_another_sign_than_v2_alone_says(
    to: str, after: float, notes: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*files(tmp_path, V1, OLD, NEW, pod("p", *TWO, on="w1")), "--to", to]
    found = said(words, capsys)
    assert ratios(found) == (3.5, after)
    assert [each for each in found["coverage"]["notes"] if "openshift" in each] == notes
    (workload,) = found["workloads"]
    assert ("loses" in workload["effects"], "gains" in workload["effects"]) == (to == "v2", to != "v2")


def test_a_node_that_is_of_the_platform_already_keeps_its_kubelets_patch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = files(tmp_path, "", NEW, pod("p", *TWO, on="w2"))
    assert run([*words, "--to", "platform=openshift-4.22"]) == 0
    assert "back to" not in capsys.readouterr().err


def test_openshift_4_21_rounds_a_pods_quota_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its kubelet is 1.34, which upstream writes it raw: opencontainers/cgroups v0.0.3."""
    limited = pod("p", container("app", "10m", "77m"), on="w1")
    quotas = {}
    for of in (openshift("w1", "1.34.2-3.rhaos4.21.git1234567.el9", "v1.34.2"), node("w1", kubelet="v1.34.2")):
        words = files(tmp_path, "- {cgroup: v2, driver: systemd, runtimes: {default: runc 1.1.5}}", of, limited)
        rows = said(["tree", *words, "--to", "v2"], capsys)["cgroups"]
        quotas[of["status"]["nodeInfo"].get("osImage")] = [row["now"]["quota_us"] for row in rows if row["pod"]]
    assert quotas == {RHCOS: [8000, 7700], None: [7700, 7700]}


def test_kata_and_gvisor_are_known_by_the_name_of_their_handler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    classes = [
        {"kind": "RuntimeClass", "apiVersion": "node.k8s.io/v1", "metadata": {"name": name}, "handler": name}
        for name in ("kata-qemu", "runsc")
    ]
    pods = [pod(name, *TWO, runtimeClassName=name) for name in ("kata-qemu", "runsc")]
    words = files(tmp_path, "- {cgroup: v2}\n", node(), *classes, *pods)
    assert known(words, "runtime:kata-qemu", capsys) == ("kata (none)", "likely")
    assert known(words, "runtime:runsc", capsys) == ("runsc (none)", "likely")
    assert said(["nodes", *words], capsys)["settle"] == []


def test_eks_al2023_has_its_kubelet_in_runtime_slice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """amazon-eks-ami, kubelet.service and 00-runtime-slice.conf: a slice of weight 100 beside system.slice."""
    of = node(
        cpu="64",
        kubelet="v1.33.11-eks-3385e9b",
        osImage="Amazon Linux 2023.11.20260526",
        containerRuntimeVersion="containerd://2.2.3+unknown",
    )
    words = [*files(tmp_path, "- {cgroup: v2}\n", of, pod("p", *TWO)), "--to", "v2"]
    found = said(words, capsys)
    assert found["nodes"][0]["cases"][0]["before"]["root"] == {"runtime.slice": 100}
    (finding,) = [each for each in found["findings"] if each["rule"] == "CGA202"]
    assert (finding["measures"][0]["after"], finding["severity"]) == (25, "medium")
    # Raising system.slice does nothing for the kubelet and the container runtime.
    assert (finding["detail"]["services"], finding["detail"]["servicesValue"]) == ("runtime.slice", 100)


@pytest.mark.parametrize(
    ("kubelet", "version"),
    [
        ("v1.25.8-gke.500", ("v1", "probable")),
        ("v1.26.5-gke.100", (None, "unknown")),
        ("v1.32.4-gke.1106000", (None, "unknown")),
        ("v1.33.5-gke.1308000", ("v2", "probable")),
    ],
)
def test_a_kubelet_of_gke_from_1_26_to_1_32_proves_nothing(
    kubelet: str, version: tuple[str | None, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """v2 is the default of clusters created at 1.26 or later; older pools were migrated by 1.33: GKE documentation."""
    of = node(kubelet=kubelet, osImage="Container-Optimized OS from Google", kernelVersion="6.6.72+")
    assert known(files(tmp_path, "", of, pod("p", *TWO)), "cgroup", capsys) == version


@pytest.mark.parametrize(
    ("to", "warning"),
    [
        ("runc=9.9.9", "--to runc=9.9.9 is taken for quadratic, but the newest runc known here is 1.5.1 (2026-08-22)"),
        (
            "runc=1.4.0-rc.0",
            "--to runc=1.4.0-rc.0 is taken for quadratic, but runc numbers its release candidates from 1 on",
        ),
        (
            "kubelet=1.99",
            "--to kubelet=1.99.0 is taken for one as all so far, but the newest known here is 1.37 (2026-11-23)",
        ),
        ("kubelet=1.30", "by --to kubelet=1.30, node n1 goes from kubelet 1.33.13 back to 1.30.0"),
        (
            "runc=1.1.5",
            "by --to runc=1.1.5, node n1 goes from runc 1.3.6 (quadratic) back to runc 1.1.5 (linear) (handler default)",
        ),
        ("runc=1.4.0", None),
    ],
)
def test_a_doubtful_target_is_warned_of_and_audited(
    to: str, warning: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = files(tmp_path, "- {cgroup: v2, runtimes: {default: runc 1.3.6}}\n", node(), pod("p", *TWO))
    assert run([*words, "--to", to]) == 0
    printed = capsys.readouterr()
    assert printed.err == (f"check what was said: {warning}\n" if warning else "")
    assert f"\nTarget   every {to.partition('=')[0]} at " in printed.out


def test_a_fresh_pool_of_ubuntu_26_04_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its systemd 259 knows no cgroup v1, and every runc packaged for it is quadratic: both other cases are excluded."""
    strings = {"osImage": "Ubuntu 26.04 LTS", "containerRuntimeVersion": "containerd://2.2.1"}
    nodes = [node(name, kubelet="v1.36.1", **strings) for name in ("a", "b")]
    words = files(tmp_path, "", *nodes, pod("p", *TWO, on="a"), pod("q", *TWO, on="b"))
    assert run([*words, "--fail-on", "high"]) == 0
    printed = capsys.readouterr()
    assert (printed.err, "Assumed, not checked" in printed.out) == ("", False)
    for what, value in (("cgroup", "v2"), ("runtime:default", "quadratic")):
        for each in said(["nodes", *words], capsys)["nodes"]:
            assert (each["known"][what]["value"], each["known"][what]["confidence"]) == (value, "likely")


COMMAND = (
    "--fail-on high cannot be decided: CGA201 (shop/checkout) is high or worse if cgroup v1. Settle it with `stat -fc %T "
    "/sys/fs/cgroup` on worker-b (cgroup2fs is v2, tmpfs is v1); or accept the default with --states FILE: `- {cgroup: v2}`\n"
)


@pytest.mark.parametrize(
    ("certainty", "code", "err"),
    [
        *((certainty, 3, COMMAND) for certainty in ("certain", "stated", "likely", "probable")),
        ("possible", 4, "--fail-on: 9 findings of severity high or worse\n"),
    ],
)
def test_the_recorded_cluster_by_its_strings_is_no_false_green(
    certainty: str, code: int, err: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """worker-c is probable v2 by its strings and v1 in truth."""
    assert run([*BLIND, "--fail-on", "high", "--fail-on-certainty", certainty]) == code
    printed = capsys.readouterr()
    assert printed.err == err
    assert " ".join(printed.out.split()).count("Assumed, not checked: ") == 1


def test_who_accepts_the_default_passes_and_who_knows_better_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rule, code in (
        ("- {cgroup: v2}", 0),
        ("- {match: {name: worker-c}, cgroup: v1}\n- {match: {name: worker-b}, cgroup: v2}", 4),
    ):
        (tmp_path / "states.yaml").write_text(rule)
        assert run([*BLIND, "--to", "v2", "--states", str(tmp_path / "states.yaml"), "--fail-on", "high"]) == code
        capsys.readouterr()


ASSUMED = (
    "Every container can use all CPUs of its node. One with fewer runnable threads than CPUs has its whole weight on fewer CPUs.",
    "Kernel threads want no CPU. Each competes at the root as if it had weight 100: on v2 they gain against pods, and raising "
    "system.slice does nothing for them.",
)


def test_every_report_says_what_the_numbers_assume(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("json", "yaml", "html", "markdown", "sarif"):
        assert run([*RECORDED_FLAGS, "-o", name]) == 0
        text = " ".join(html.unescape(capsys.readouterr().out).split())
        assert all(each in text for each in ASSUMED), name


def test_a_later_audit_names_a_default_that_was_overridden(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    baseline, kubelets = tmp_path / "base.json", f"--kubelet=files:{GOLDEN}"
    assert run([*BLIND, "--to", "v2", "-o", f"json={baseline}"]) == 0
    found = said([*BLIND, "--to", "v2", kubelets, "--baseline", str(baseline)], capsys)
    (finding,) = [each for each in found["findings"] if "overridden" in each["detail"]]
    assert (finding["rule"], finding["severity"], finding["subject"]["name"]) == ("CGA102", "medium", "worker-c")
    (overridden,) = finding["detail"]["overridden"]
    assert overridden == {
        "about": "cgroup",
        "was": "v2",
        "wasFrom": "platform rule debian-v2: os Debian GNU/Linux 12 (bookworm): Debian starts with cgroup v2 from 11 on unless "
        "told otherwise",
        "now": "v1",
        "nowFrom": "kubelet /metrics: kubelet_cgroup_version is 1",
    }
    words = f"cgroup v2 was taken ({overridden['wasFrom']}), and it is v1 ({overridden['nowFrom']})"
    before, after = tmp_path / "before.json.gz", tmp_path / "after.json.gz"
    assert run(["snapshot", *BLIND, "-o", str(before)]) == 0
    assert run(["snapshot", *BLIND, kubelets, "-o", str(after)]) == 0
    capsys.readouterr()
    notes = said(["diff", str(before), str(after)], capsys)["summary"]["notes"]
    note = (
        f"The first audit took a default that was overridden, so what it said first did not hold: worker-c ({words})."
    )
    assert notes.count(note) == 1


def test_what_the_states_file_says_against_a_default_is_no_contradiction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of = node(osImage="Ubuntu 24.04.2 LTS")
    words = files(tmp_path, "- {cgroup: v1, driver: systemd, runtimes: {default: runc 1.1.5}}\n", of, pod("p", *TWO))
    (only,) = said(["nodes", *words], capsys)["nodes"]
    assert (only["known"]["cgroup"]["value"], only["known"]["cgroup"]["confidence"]) == ("v1", "stated")
    assert only["contradictions"] == []
    assert [(each["value"], each["strength"]) for each in only["evidence"] if each["about"] == "cgroup"] == [
        ("v2", "probable")
    ]


@pytest.mark.parametrize(
    ("name", "kernel", "expected"),
    [
        ("kind-control-plane", "6.12.5-amd64", ("v2", "probable")),
        ("worker-1", "6.12.5-linuxkit", ("v2", "probable")),
        ("worker-1", "6.12.5-amd64", ("v2", "likely")),
    ],
)
def test_two_defaults_that_agree_are_likely_but_in_a_container(
    name: str, kernel: str, expected: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A kind node has its host's cgroup version, whatever its image starts with."""
    of = node(name, kubelet="v1.36.1", osImage="Debian GNU/Linux 12 (bookworm)", kernelVersion=kernel)
    assert known(files(tmp_path, "", of, pod("p", *TWO, on=name)), "cgroup", capsys) == expected


@pytest.mark.parametrize(
    ("strings", "kubelet", "first", "login"),
    [
        (
            {"osImage": "Container-Optimized OS from Google"},
            "v1.30.5-gke.1355000",
            "gcloud container node-pools describe ",
            True,
        ),
        (
            {
                "osImage": "Red Hat Enterprise Linux CoreOS 415.92.202402130021-0",
                "containerRuntimeVersion": "cri-o://1.28.5-3.rhaos4.15.git1234567.el9",
            },
            "v1.28.5",
            "oc get nodes.config.openshift.io cluster ",
            True,
        ),
        ({"osImage": "Talos (v1.9.1)", "kernelVersion": "6.12.6-talos"}, "v1.32.0", "talosctl -n n1 cgroups ", False),
        ({"osImage": "Some OS"}, "v1.32.0", "stat -fc %T /sys/fs/cgroup", True),
    ],
)
def test_the_platforms_own_command_comes_first(
    strings: dict[str, str], kubelet: str, first: str, login: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = files(tmp_path, "", node(kubelet=kubelet, **strings), pod("p", *TWO))
    code = 3 if "Talos" in strings["osImage"] else 0
    (settle, *_) = [each for each in said(["nodes", *words], capsys, code=code)["settle"] if each["about"] == "cgroup"]
    commands = [each["command"] for each in settle["commands"]]
    assert commands[0].startswith(first)
    assert any(each.startswith("kubectl debug node/n1 ") for each in commands) is login
    assert commands[-1] == "kubectl cgaudit --kubelet=proxy"
