"""Commands that read kubelets' answers: what they settle, and what differs from them."""

import json
import re
from pathlib import Path

import pytest

from kubectl_cgaudit.cli.main import run
from tests.support import GOLDEN, RECORDED_FLAGS, STATES, container, listed, node, pod

KUBELETS = [*RECORDED_FLAGS[:-2], f"--kubelet=files:{GOLDEN}"]


def test_nodes_says_what_is_known_and_what_would_settle_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["nodes", *RECORDED_FLAGS[:-2], "--evidence"]) == 0
    answer, lines = capsys.readouterr().out.split("\n\n", 1)
    assert " ".join(answer.split()) == (
        "0 of 3 nodes known, 1 on defaults that nobody checked, 2 partly unknown. "
        "Look first: `stat -fc %T /sys/fs/cgroup` on worker-b."
    )
    lines = lines.splitlines()
    assert lines[1].split() == [
        "worker-a",
        "v2",
        "(certain)",
        "crun",
        "unknown",
        "v1.36.2",
        "linear",
        "(certain)",
        "weight",
        "100",
        "(probable)",
        "unknown",
    ]
    assert lines[3].split() == ["runc-old", "not", "quadratic", "(likely)"]
    piece = lines.index("  likely   runtime:runc-old is not quadratic: node.status.runtimeHandlers:")
    assert lines[piece + 1] == "           userNamespaces is false"
    advice = lines[lines.index("TO SETTLE WHAT IS OPEN, WHAT DECIDES MOST FIRST") + 1 :]
    steps = " ".join(line.strip() for line in advice)
    assert [line[:2] for line in advice if line[:1].isdigit()] == ["1.", "2.", "3.", "4.", "5.", "6."]
    assert advice[0] == "1. cgroup version of node worker-b (probable): decides whether"
    assert (
        steps.index("stat -fc")
        < steps.index("kubectl debug node/worker-b")
        < steps.index("then say it with --states FILE")
    )
    assert steps.index("--states FILE") < steps.index("--kubelet=proxy") < steps.index("kubectl get events -A -o json")


def test_nodes_groups_equal_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "many.json"
    path.write_text(listed(*(node(f"n{number}") for number in range(9)), pod("p", container("c", "1"), on="n3")))
    states = tmp_path / "states.yaml"
    states.write_text("- {cgroup: v2, runtimes: {default: runc 1.3.6}}\n")
    assert run(["nodes", "-f", str(path), "--states", str(states)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["9 of 9 nodes known.", ""]
    lines = lines[2:]
    assert lines[2:] == ["", "Of like nodes three are named: -o json names all."]
    assert lines[1].startswith("n0, n1, n2 and 6 more  v2 (stated)  default  runc 1.3.6 (quadratic) (stated)")


def test_the_kubelets_answers_settle_the_recorded_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["nodes", *KUBELETS, "-o", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {each["name"]: each["confidence"] for each in data["nodes"]} == {
        "worker-a": "certain",
        "worker-b": "certain",
        "worker-c": "probable",
    }
    assert data["nodes"][1]["known"]["system_slice"] == {
        "value": "weight 20",
        "confidence": "certain",
        "source": "kubelet /configz: system-reserved-compressible is enforced on /system.slice with 500m CPU",
        "override": "",
    }
    assert run([*KUBELETS]) == 0
    assert "5 of 15 workloads lose CPU to system services (system.slice), all on" in capsys.readouterr().out


def test_verify_agrees_with_the_recorded_kubelets(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", *KUBELETS]) == 0
    assert capsys.readouterr().out == (
        "81 cgroups of 3 nodes compared with their kubelets: no difference.\n"
        "32 quotas compared.\n"
        "Kubelets do not show system.slice unless they are told to: its weight is not\n"
        "  verified.\n"
        "What worker-a, worker-b, worker-c should run, or part of it, nobody said: it was\n"
        "  taken from the kubelets themselves, so that it agrees says nothing of an\n"
        "  upgrade. Say the cgroup version and the runtimes with --states.\n"
    )
    # Where all of it is said, what agrees is verified.
    assert run(["verify", *KUBELETS, "--states", str(STATES)]) == 0
    assert "nobody said" not in capsys.readouterr().out


@pytest.mark.parametrize(("flags", "named"), [(["-n", "shop"], "-n"), (["-l", "app=web"], "-l")])
def test_verify_refuses_to_choose_among_pods(flags: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", *KUBELETS, *flags]) == 2
    assert capsys.readouterr().err == (
        "error: verify compares every cgroup of a node, as a slice holds the pods of all namespaces; "
        f"leave {named} out here\n"
    )
    # As with kubectl, -A takes -n back.
    assert run(["verify", *KUBELETS, "-A"]) == 0
    assert run(["verify", "--help"]) == 0
    assert not {"-n,", "-A,", "-l,"} & {*capsys.readouterr().out.split()}


def test_verify_exits_with_4_and_names_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    states = tmp_path / "states.yaml"
    states.write_text("- {match: {name: worker-a}, runtimes: {runc-old: runc 1.3.6}}\n")
    assert run(["verify", *KUBELETS, "--states", str(states)]) == 4
    text = capsys.readouterr().out
    assert text.startswith("81 cgroups of 3 nodes compared with their kubelets: 3 differences.\n")
    rows = [re.split("  +", line) for line in text.splitlines() if "legacy-gateway" in line]
    formula = "the other formula makes it: created before an upgrade, or another runtime than was said"
    rounded = "rounded up to 10 ms by the one and not by the other: another release than was said"
    assert rows == [
        ["worker-a", "container", "edge/legacy-gateway-315cc6eec-8cb1d/envoy", "40", "12", formula],
        ["worker-a", "container", "edge/legacy-gateway-315cc6eec-8cb1d/ext-authz", "11", "2", formula],
        ["worker-a", "container", "edge/legacy-gateway-315cc6eec-8cb1d/ext-authz", "8000 us", "7700 us", rounded],
    ]
    assert run(["verify", *KUBELETS, "--states", str(states), "-o", "json"]) == 4
    assert len(json.loads(capsys.readouterr().out)["differences"]) == 3


def test_verify_compares_no_numbers_of_a_node_on_another_cgroup_version(
    capsys: pytest.CaptureFixture[str],
) -> None:
    states = str(GOLDEN.parent.parent / "docs" / "examples" / "wrong-states.yaml")
    assert run(["verify", *KUBELETS, "--states", states]) == 4
    assert capsys.readouterr().out == (
        "52 cgroups of 2 nodes compared with their kubelets: no difference.\n"
        "21 quotas compared.\n"
        "Kubelets do not show system.slice unless they are told to: its weight is not\n"
        "  verified.\n"
        "What worker-a, worker-c should run, or part of it, nobody said: it was taken\n"
        "  from the kubelets themselves, so that it agrees says nothing of an upgrade.\n"
        "  Say the cgroup version and the runtimes with --states.\n"
        "worker-b: cgroup v1 is predicted, its kubelet says v2. Nothing else of it is\n"
        "  compared; correct --states.\n"
    )
    assert run(["verify", *KUBELETS, "--states", states, "-o", "json"]) == 4
    data = json.loads(capsys.readouterr().out)
    assert data["contradicted"] == {"worker-b": "cgroup v1 is predicted, its kubelet says v2"}
    assert (data["differences"], data["notCompared"]) == ([], {})


@pytest.mark.parametrize(
    ("left", "code", "said"),
    [
        ((), 3, "worker-c: its kubelet showed 0 of 11 running containers. The others are not\n"),
        (
            ("app", "cart", "metrics", "shipper", "postgres"),
            3,
            "worker-c: its kubelet showed 5 of 11 running containers.",
        ),
        (("app", "cart", "metrics", "shipper", "postgres", "payments"), 0, "5 predicted cgroups were not shown: ended"),
    ],
)
def test_verify_takes_few_containers_for_no_proof_of_the_others(
    left: tuple[str, ...], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in GOLDEN.glob("worker-*.txt"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    cadvisor = tmp_path / "worker-c.metrics-cadvisor.txt"
    kept = [
        line
        for line in cadvisor.read_text().splitlines(keepends=True)
        if 'container=""' in line or "container=" not in line or any(f'container="{name}"' in line for name in left)
    ]
    cadvisor.write_text("".join(kept))
    assert run(["verify", *KUBELETS[:-1], f"--kubelet=files:{tmp_path}"]) == code
    text = capsys.readouterr().out
    assert said in text
    headline = text.splitlines()[0]
    assert headline.endswith("no difference in these." if code else "no difference.")


def test_a_kubelet_without_answers_makes_the_audit_incomplete_and_no_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in GOLDEN.glob("worker-[ab].*.txt"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert run([*RECORDED_FLAGS[:-2], f"--kubelet=files:{tmp_path}", "-o", "json"]) == 3
    data = json.loads(capsys.readouterr().out)
    assert [gap["what"] for gap in data["coverage"]["gaps"]] == ["kubelet of worker-c"]
    assert [each["confidence"] for each in data["nodes"]] == ["certain", "certain", "probable"]


def test_verify_that_compared_nothing_is_no_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, saved = tmp_path / "windows.json", tmp_path / "saved"
    path.write_text(listed(node("w1", operatingSystem="windows"), pod("p", on="w1")))
    saved.mkdir()
    (saved / "other.metrics.txt").write_bytes((GOLDEN / "worker-a.metrics.txt").read_bytes())
    assert run(["verify", "-f", str(path), f"--kubelet=files:{saved}"]) == 3
    assert capsys.readouterr().out == "Nothing could be compared.\nNot compared: w1: it is a windows node.\n"


def test_verify_says_once_which_kubelets_did_not_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in GOLDEN.glob("worker-a.*.txt"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    why = f"no saved answers in {tmp_path} (their names are NODE.configz.txt, NODE.metrics.txt, NODE.metrics-cadvisor.txt)"
    words = ["verify", *RECORDED_FLAGS, f"--kubelet=files:{tmp_path}"]
    assert run(words) == 3
    said = capsys.readouterr()
    assert " ".join(said.out.split()).endswith(f" Not compared: worker-b, worker-c: {why}.")
    assert said.err == ""
    # A program's output goes elsewhere, and whoever watches should know.
    assert run([*words, "-o", "json"]) == 3
    assert capsys.readouterr().err.startswith(f"incomplete: kubelets of 2 nodes (worker-b, worker-c): {why}. ")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ["verify"],
            2,
            "verify needs the kubelets' answers; with -f add --kubelet=files:DIR, or give a snapshot taken with --kubelet",
        ),
        (["--kubelet=ssh"], 2, "--kubelet: 'ssh' is not proxy, direct or files:DIR"),
        (
            ["--kubelet=proxy"],
            2,
            "-f reads files and --kubelet=proxy asks a cluster; save the answers and give --kubelet=files:DIR",
        ),
        (["--kubelet=files:/nowhere"], 1, "/nowhere cannot be read: No such file or directory; "),
    ],
)
def test_kubelet_flags_are_checked(
    words: list[str], code: int, message: str, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "-f", str(small)]) == code
    assert capsys.readouterr().err.startswith(f"error: {message}")


def test_saved_answers_stand_beside_those_of_a_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken, folder = str(tmp_path / "taken.json.gz"), tmp_path / "answers"
    folder.mkdir()
    assert run(["snapshot", *KUBELETS, "-o", taken]) == 0
    (folder / "worker-b.configz.txt").write_bytes((GOLDEN / "worker-b.configz.txt").read_bytes())
    capsys.readouterr()
    assert run(["nodes", "-f", taken, f"--kubelet=files:{folder}", "-o", "json"]) == 3
    assert {each["name"]: each["problems"] for each in json.loads(capsys.readouterr().out)["nodes"]} == {
        "worker-a": [],
        "worker-b": [
            "/metrics was not saved (there is no worker-b.metrics.txt)",
            "/metrics/cadvisor was not saved (there is no worker-b.metrics-cadvisor.txt)",
        ],
        "worker-c": [],
    }
