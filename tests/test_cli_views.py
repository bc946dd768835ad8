"""`tree`, `explain` and `convert` on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import structs

from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.cli.nearby import absent
from kubectl_cgaudit.collect.model import Cluster, Gap
from tests.support import GOLDEN, RECORDED_FLAGS, cluster, container, listed, node, pod


def test_a_tree_row_of_an_open_node_has_its_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tree", "worker-c", *RECORDED_FLAGS[:-2], "-o", "json", "--to", "v2"]) == 0
    rows = json.loads(capsys.readouterr().out)["cgroups"]
    kubepods = next(row for row in rows if row["level"] == "kubepods")
    assert kubepods["now"] == {
        "version": "v2",
        "shares": 3788,
        "weight": 145,
        "quota_us": None,
        "period_us": 100000,
        "share": 0.591836735,
    }
    assert (kubepods["confidence"], kubepods["when"]) == ("probable", "cgroup v2, linear runtime")
    assert kubepods["after"]["weight"] == 145
    assert [(case["when"], case["now"]["weight"]) for case in kubepods["cases"]] == [
        ("cgroup v2, quadratic runtime", 145),
        ("cgroup v1, linear runtime", None),
        ("cgroup v1, quadratic runtime", None),
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["nodes", *RECORDED_FLAGS],
        ["tree", "worker-c", *RECORDED_FLAGS[:-2]],
        ["explain", "shop/checkout-d5491e7e7-22276", *RECORDED_FLAGS],
        ["verify", *RECORDED_FLAGS, f"--kubelet=files:{GOLDEN}"],
        ["convert", "250m"],
        ["version"],
    ],
)
def test_what_shows_one_thing_writes_its_data_as_yaml_too(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "data.yaml"
    code = run([*words, "-o", "json", "-o", f"yaml={file}"])
    found = json.loads(capsys.readouterr().out)
    assert (code in (0, 3, 4), list(yaml.safe_load(file.read_text()).items())) == (True, list(found.items()))
    assert "&id" not in file.read_text()


def test_a_node_is_named_as_kubectl_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    def said(*words: str) -> str:
        assert run([*words, *RECORDED_FLAGS, "-o", "json"]) == 0
        return capsys.readouterr().out

    for name in ("no/worker-b", "node/worker-b", "Nodes/worker-b"):
        assert said("tree", name) == said("tree", "worker-b")
        assert said("nodes", name) == said("nodes", "worker-b")
    every = json.loads(said("nodes"))["nodes"]
    assert json.loads(said("nodes", "worker-b"))["nodes"] == [each for each in every if each["name"] == "worker-b"]
    two = json.loads(said("nodes", "worker-c", "no/worker-b", "worker-c"))["nodes"]
    assert two == [each for each in every if each["name"] != "worker-a"]
    trees = json.loads(said("tree", "worker-c", "no/worker-b"))["cgroups"]
    assert trees == [row for row in json.loads(said("tree"))["cgroups"] if row["node"] != "worker-a"]


def test_of_one_node_nothing_is_said_of_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text(listed(node(), node("n2"), node("win", operatingSystem="windows"), pod("p", container("c", "1"))))
    assert run(["nodes", "n2", "-f", str(path), "--evidence"]) == 0
    text = capsys.readouterr().out
    assert "n2 " in text
    assert "n1" not in text
    assert "win" not in text
    assert run(["nodes", "win", "-f", str(path)]) == 1
    assert capsys.readouterr().err == "error: win is a windows node: there is no cgroup tree to show\n"


@pytest.mark.parametrize(("capacity", "what"), [({"cpu": "4"}, "is a virtual node"), ({}, "reports no CPU")])
def test_why_a_node_has_no_tree_is_said(
    capacity: dict[str, str], what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of EKS Fargate are Linux nodes that report their CPU."""
    other = node("other", labels={"eks.amazonaws.com/compute-type": "fargate"} if capacity else {})
    other["status"]["capacity"] = other["status"]["allocatable"] = capacity
    path = tmp_path / "c.json"
    path.write_text(listed(node(), other, pod("p", container("c", "1"))))
    assert run(["tree", "other", "-f", str(path)]) == 1
    assert capsys.readouterr().err == f"error: other {what}: there is no cgroup tree to show\n"


def test_where_no_node_has_a_tree_the_nodes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text(listed(node("win", operatingSystem="windows"), pod("p", container("c", "1"), on="win")))
    assert run(["tree", "-f", str(path)]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "there is no Linux node that reports its CPU; there are win (windows)\n")
    assert run(["tree", "n1", "-f", str(path)]) == 1
    assert capsys.readouterr().err == "error: there is no node 'n1'; there are win (windows)\n"


def test_tree_draws_every_cgroup(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tree", "node/worker-b", *RECORDED_FLAGS]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "worker-b: cgroup v2 (how sure: stated)"
    assert lines[1].split() == ["CGROUP", "WEIGHT", "CPU", "OF", "NODE", "QUOTA"]
    assert lines[2].split() == ["system.slice", "20", "13%"]
    assert "│  └─ exporter" in "\n".join(lines)
    assert next(line for line in lines if "exporter" in line and "node" not in line).split()[3:] == [
        "1",
        "->",
        "6",
        "0.7%",
        "->",
        "1.4%",
        "25m",
        "->",
        "30m",
    ]


def test_explain_shows_the_arithmetic(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["explain", "edge/legacy-gateway-315cc6eec-8cb1d", *RECORDED_FLAGS]) == 0
    text = capsys.readouterr().out
    for line in (
        "how sure: cgroup version certain, kubelet certain, runtime stated, system.slice probable",
        "allocatable CPU 3700m -> 3700 * 1024 // 1000 = 3788 shares -> 1 + ((3788 - 2) * 9999) // 262142 = weight 145",
        "kubepods: 145 / (145 + system.slice 100) = 59% of the node",
        "requests of 8 active Burstable pods 2413m -> 2413 * 1024 // 1000 = 2470 shares",
        "request envoy 300m + ext-authz 50m = 350m -> 358 shares -> 1 + ((358 - 2) * 9999) // 262142 = weight 14",
        "now: envoy: 12 / (12 + ext-authz 2) = 86% of the pod",
        "L = log2(307) = 8.2621: weight 40",
        "now: limit 77m * 100000 us / 1000 = 7700 us: the quota",
        "after: limit 77m * 100000 us / 1000 = 7700 us, rounded up to 8000 us: the quota",
        "pod: 5.7% -> 5.7% of the node's CPU; 0.139 -> 0.139 times system.slice",
    ):
        assert line in text


@pytest.mark.parametrize("states", [RECORDED_FLAGS[-2:], []])
def test_explain_for_programs_is_what_tree_says_of_this_pod_and_of_no_pod(
    states: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    flags = [*RECORDED_FLAGS[:-2], *states, "-o", "json"]
    assert run(["tree", "worker-c", *flags]) == 0
    whole = json.loads(capsys.readouterr().out)["cgroups"]
    assert run(["explain", "po/checkout-d5491e7e7-22276", "-n", "shop", *flags]) == 0
    rows = json.loads(capsys.readouterr().out)["cgroups"]
    assert rows == [row for row in whole if row["pod"] in (None, "checkout-d5491e7e7-22276")]
    assert [(row["level"], row["container"]) for row in rows] == [
        ("root", None),
        ("kubepods", None),
        ("qos", None),
        ("pod", None),
        ("container", "app"),
        ("container", "istio-proxy"),
        ("qos", None),
    ]


def test_explain_goes_to_files_as_it_goes_to_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explain", "data/redis-0", *RECORDED_FLAGS]
    assert run(words) == 0
    shown = capsys.readouterr().out
    assert run([*words, "-o", f"text={tmp_path / 'redis.txt'}"]) == 0
    assert (capsys.readouterr().out, (tmp_path / "redis.txt").read_text()) == ("", shown)
    assert run([*words, "-o", f"json={RECORDED_FLAGS[1]}"]) == 2


def test_explain_of_what_needs_no_move_says_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "-n", "edge", "gateway-8a6b3c5e6-24ef2", *RECORDED_FLAGS]) == 0
    text = capsys.readouterr().out
    assert text.count("NOW, AND NOTHING CHANGES") == 1
    assert "AFTER" not in text


@pytest.mark.parametrize(
    "words",
    [
        ["shop/checkout"],
        ["checkout", "-n", "shop"],
        ["deploy/checkout", "-n", "shop"],
        ["Deployments/checkout", "-n", "shop"],
        ["deployment.apps/checkout", "-n", "shop"],
        ["shop/Deployment/checkout"],
        ["shop/deploy/checkout"],
    ],
)
def test_explain_of_a_workload_shows_its_worst_hit_pod(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """It is the one that finding CGA201 tells of."""
    assert run(["explain", *words, *RECORDED_FLAGS]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "Deployment shop/checkout: worst hit of 3 pods is"
    assert second.startswith("shop/checkout-d5491e7e7-22276 on worker-c, ")


def test_where_nothing_is_lost_the_pod_in_which_most_moves_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "edge/canary-gateway", *RECORDED_FLAGS]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("edge/canary-gateway-4f24eb827-cc763 on worker-b")
    assert run(["explain", "data/redis", "-o", "json", *RECORDED_FLAGS]) == 0
    rows = json.loads(capsys.readouterr().out)["cgroups"]
    assert {row["pod"] for row in rows} == {None, "redis-0"}


DEPLOYMENT = (
    "Deployment shop/checkout is no pod; explain one of its pods: "
    "shop/checkout-d5491e7e7-1fc23, shop/checkout-d5491e7e7-22276, shop/checkout-d5491e7e7-37202"
)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["deploy/checkout"], DEPLOYMENT),
        (
            ["sts/checkout", "-n", "shop"],
            "explain takes a pod, which sts shop/checkout is not; did you mean shop/checkout?",
        ),
        (
            ["svc/redis", "-n", "data"],
            "explain takes a pod, which svc data/redis is not; did you mean data/redis or data/redis-0?",
        ),
        (["po/redis-1", "-n", "data"], "there is no pod data/redis-1; did you mean data/redis-0 or data/redis?"),
        (["shop/chekout"], "there is no pod shop/chekout; did you mean shop/checkout?"),
        (["shpo/redis-0"], "there is no pod shpo/redis-0; did you mean data/redis-0?"),
        (
            ["shpo/foo"],
            "there is no pod shpo/foo; there are pods in shop, batch, data, edge, kube-system, platform",
        ),
        (
            ["shop/zzz"],
            "there is no pod shop/zzz; namespace shop has cart-8bfb4e1aa-af02c, cart-8bfb4e1aa-bf28a, "
            "checkout-d5491e7e7-1fc23, checkout-d5491e7e7-22276, checkout-d5491e7e7-37202 and 4 more",
        ),
    ],
)
def test_explain_of_what_is_no_pod_says_what_can_be_explained(
    words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", *words, *RECORDED_FLAGS]) == 1
    assert capsys.readouterr().err == f"error: {error}\n"


def test_of_many_pods_five_are_named_and_none_that_has_ended() -> None:
    pods = [pod(f"w-{number}", container("c", "1"), owner=("StatefulSet", "w")) for number in range(7)]
    done = pod("w-00", container("c", "1"), owner=("StatefulSet", "w"), phase="Succeeded")
    assert str(absent("default", "w", cluster(node(), done, *pods))) == (
        "StatefulSet default/w is no pod; explain one of its pods: "
        "default/w-0, default/w-1, default/w-2, default/w-3, default/w-4 and 2 more"
    )
    assert str(absent("default", "w", cluster(node(), done))) == (
        "StatefulSet default/w has no pod on a node now; try again when one runs"
    )
    assert str(absent("default", "w", cluster(node()))) == "there is no pod default/w; no pod was read"


def test_what_may_be_there_all_the_same_is_not_said_to_be_absent() -> None:
    def partly(what: str, *objects: dict[str, Any]) -> Cluster:
        whole = cluster(node(), *objects)
        return structs.replace(whole, reading=structs.replace(whole.reading, gaps=(Gap(what, "why", "Remedy"),)))

    done = pod("w-0", container("c", "1"), owner=("StatefulSet", "w"), phase="Succeeded")
    for name, error in (
        ("w", "StatefulSet default/w has no pod on a node among what could be read; try again when all is read"),
        ("w-1", "pod default/w-1 is not among what could be read; did you mean default/w-0?"),
    ):
        found = absent("default", name, partly("pods", done))
        assert (str(found), found.exit_code) == (error, 3)
    # No pod is unread because a kubelet did not answer, or a node was not read.
    for what in ("kubelet of n1", "nodes", "Node pod-1", "Podgroups"):
        found = absent("default", "w-1", partly(what, done))
        assert (str(found), found.exit_code) == ("there is no pod default/w-1; did you mean default/w-0?", 1)
    for what in ("3 Pods: a, b, c", "Pod a", "pods of 2 namespaces: a, b", "objects of a.json"):
        assert absent("default", "w-1", partly(what, done)).exit_code == 3


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"phase": "Succeeded"}, "pod default/p has finished: its cgroups are gone"),
        ({"phase": "Failed"}, "pod default/p has finished: its cgroups are gone"),
        ({"on": None, "phase": "Pending"}, "pod default/p has no node yet, so it has no place in a cgroup tree"),
        ({"namespace": "other"}, "there is no pod default/p; did you mean other/p?"),
    ],
)
def test_explain_of_a_pod_that_has_no_cgroup_says_why(
    fields: dict[str, Any], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.json"
    path.write_text(listed(node(), pod("p", container("c", "1"), **fields)))
    for words in (["default/p"], ["pod/p", "-n", "default"], ["pods/default/p"]):
        assert run(["explain", *words, "-f", str(path)]) == 1
        assert capsys.readouterr().err == f"error: {error}\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["250m"], {"shares": 256, "linear": 10, "quadratic": 35, "back": 237, "requests": [[233, 258], [250, 258]]}),
        (
            ["--shares", "1024"],
            {"shares": 1024, "linear": 39, "quadratic": 100, "back": 998, "requests": [[976, 1000], [989, 1000]]},
        ),
        (
            ["300"],
            {
                "shares": 262144,
                "linear": 10000,
                "quadratic": 10000,
                "back": 262144,
                "requests": [[256000, None], [255972, None]],
            },
        ),
        (["1"], {"shares": 1024, "linear": 39, "quadratic": 100, "back": 998, "requests": [[976, 1000], [989, 1000]]}),
    ],
)
def test_convert(words: list[str], expected: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", *words, "-o", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    weights = {entry["formula"]: entry for entry in data["weights"]}
    assert {
        "shares": data["shares"],
        "linear": weights["linear"]["weight"],
        "quadratic": weights["quadratic"]["weight"],
        "back": data["read_back_shares"],
        "requests": [entry["requests_milli"] for entry in data["weights"]],
    } == expected


def test_convert_in_words_says_which_runtimes_use_which_formula(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", "250m"]) == 0
    text = capsys.readouterr().out
    assert text == (
        "request     250m CPU\n"
        "cgroup v1   cpu.shares 256 (0.25 x the default 1024)\n"
        "linear      cpu.weight 10 (0.1 x the default 100)\n"
        "            the weight of shares 238..264, requests 233..258m\n"
        "quadratic   cpu.weight 35 (0.35 x the default 100)\n"
        "            the weight of shares 256..264, requests 250..258m\n"
        "inverse     237 shares: what the kubelet and cAdvisor read back from weight 10\n"
        "linear: every kubelet, runc before 1.3.2, crun before 1.23\n"
        "quadratic: runc from 1.3.2 on, crun from 1.23 on, for containers only\n"
    )
    assert run(["convert", "--shares", "256"]) == 0
    assert capsys.readouterr().out == text.partition("\n")[2]
    assert run(["convert", "--shares", "2"]) == 0
    assert capsys.readouterr().out.splitlines()[1:5] == [
        "linear      cpu.weight 1 (0.01 x the default 100)",
        "            the weight of shares 2..28, requests 0..28m",
        "quadratic   cpu.weight 1 (0.01 x the default 100)",
        "            the weight of shares 2, requests 0..2m",
    ]


def test_convert_for_programs_is_the_whole_result(capsys: pytest.CaptureFixture[str]) -> None:
    ranges = [([238, 264], [233, 258]), ([256, 264], [250, 258])]
    weights = [
        {
            "formula": formula,
            "weight": weight,
            "ratio_to_default": weight / 100,
            "shares_with_this_weight": shares,
            "requests_milli": requests,
        }
        for formula, weight, (shares, requests) in zip(("linear", "quadratic"), (10, 35), ranges, strict=True)
    ]
    assert run(["convert", "250m", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "request_milli": 250,
        "shares": 256,
        "weights": weights,
        "read_back_shares": 237,
    }
    assert run(["convert", "--weight", "10", "-o", "json"]) == 0
    back = json.loads(capsys.readouterr().out)
    assert list(back) == ["weight", "ratio_to_default", "weights", "read_back_shares"]
    assert (back["weight"], back["ratio_to_default"], back["read_back_shares"]) == (10, 0.1, 237)
    assert back["weights"][0] == {name: value for name, value in weights[0].items() if name != "ratio_to_default"}


@pytest.mark.parametrize(
    ("weight", "linear", "quadratic", "back"),
    [
        ("39 (0.39 x the default 100)", "999..1024, requests 976..1000m", "295..305, requests 289..298m", 998),
        # Whatever asks for more has the greatest weight too.
        (
            "10000 (100 x the default 100)",
            "262144, requests 256000m and more",
            "262115..262144, requests 255972m and more",
            262144,
        ),
    ],
)
def test_convert_a_weight_back(
    weight: str, linear: str, quadratic: str, back: int, capsys: pytest.CaptureFixture[str]
) -> None:
    number = weight.split()[0]
    assert run(["convert", "--weight", number]) == 0
    assert capsys.readouterr().out == (
        f"linear      cpu.weight {weight}\n"
        f"            the weight of shares {linear}\n"
        f"quadratic   cpu.weight {weight}\n"
        f"            the weight of shares {quadratic}\n"
        f"inverse     {back} shares: what the kubelet and cAdvisor read back from weight {number}\n"
        "linear: every kubelet, runc before 1.3.2, crun before 1.23\n"
        "quadratic: runc from 1.3.2 on, crun from 1.23 on, for containers only\n"
    )
