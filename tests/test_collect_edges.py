"""What tells one input from another by a single condition: names, gaps, reasons."""

import json
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_cgaudit.collect import failure, files, kubelet
from kubectl_cgaudit.collect.assemble import pods_by_node, with_answers
from kubectl_cgaudit.collect.model import Cluster, KubeletAnswers, Owner
from kubectl_cgaudit.collect.owners import workload
from kubectl_cgaudit.errors import InputError
from tests.support import cluster, container, node, pod


def read(tmp_path: Path, text: str) -> Cluster:
    path = tmp_path / "f"
    path.write_text(text)
    return files.read((str(path),), lambda _namespace, _labels: True, "")


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    return str(error.value).replace(str(tmp_path / "f"), "FILE").replace("f:", "FILE:")


N, P = node(), pod("p", container("c", "1"))


def test_leading_space_does_not_make_yaml_of_json(tmp_path: Path) -> None:
    found = read(tmp_path, " \n\t" + json.dumps({"kind": "List", "items": [N, P]}))
    assert ([each.name for each in found.nodes], [each.name for each in found.pods]) == (["n1"], ["p"])


def test_items_without_a_kind_are_of_the_kind_of_their_list(tmp_path: Path) -> None:
    bare = {key: value for key, value in N.items() if key != "kind"}
    for text in (
        json.dumps({"kind": "NodeList", "items": [bare, N | {"kind": "Node"}]}),
        "kind: NodeList\nitems:\n- " + json.dumps(bare),
        "---\n---\nkind: NodeList\nitems:\n- " + json.dumps(bare) + "\n---\n",
    ):
        assert [each.name for each in read(tmp_path, text).nodes] == ["n1"]


@pytest.mark.parametrize("item", ["{}", "1", '"a"', "[]", '{"kind": 1}', '{"kind": null}'])
def test_items_of_no_kind_are_counted_and_left_aside(item: str, tmp_path: Path) -> None:
    for text in (
        f'{{"kind": "List", "items": [{json.dumps(N)}, {item}]}}',
        f"kind: List\nitems:\n- {json.dumps(N)}\n- {item}\n",
    ):
        assert read(tmp_path, text).reading.ignored == {"(no kind)": 1}


@pytest.mark.parametrize("text", ["- 1\n", "kind: 1\n", "a: b\n", "kind: [Pod]\n"])
def test_yaml_without_a_kind_is_refused(text: str, tmp_path: Path) -> None:
    assert "holds no Kubernetes object (there is no kind in it)" in refused(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "0000-00-00",
        "9999-99-99",
        "2026-13-45",
        "2025-02-30",
        "2024-12-31T24:00:00Z",
        "0x_",
        "0b_",
        "2001-12-14 21:59:43.10 -5",
    ],
)
def test_texts_that_kubectl_prints_plain_are_texts(text: str, tmp_path: Path) -> None:
    """YAML 1.1 makes dates and numbers of them, or fails; kubectl's YAML is 1.2."""
    said = f"kind: Pod\nmetadata: {{name: p}}\nspec: {{containers: [{{name: {text}, env: [{{name: A, value: {text}}}]}}]}}\n"
    found = read(tmp_path, f"{yaml.safe_dump(N)}---\n{said}")
    assert [each.name for each in found.pods[0].containers] == [text]


def test_objects_that_only_have_the_name_of_a_kind_are_left_out(tmp_path: Path) -> None:
    foreign = [
        {"kind": "Node", "apiVersion": "longhorn.io/v1beta2", "metadata": {"name": "n1"}},
        {"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "metadata": {"name": "j", "namespace": "default"}},
    ]
    mine = [N | {"apiVersion": "v1"}, P, {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "j"}}]
    path = tmp_path / "c.json"
    for text in (
        json.dumps({"kind": "List", "items": [*foreign, *mine]}),
        "\n".join(map(json.dumps, [*foreign, *mine])),
    ):
        path.write_text(text)
        read = files.read((str(path),), lambda _namespace, _labels: True, "")
        assert [each.allocatable_milli for each in read.nodes] == [4000]
        assert dict(read.reading.ignored) == {"Node.longhorn.io": 1, "Job.batch.volcano.sh": 1}
        assert read.reading.duplicates == 0


def test_an_answer_takes_away_what_a_snapshot_says_was_not_answered() -> None:
    first = with_answers(cluster(N, P), {"n1": KubeletAnswers("n1", None, None, {}, None, ("no saved answers in x",))})
    assert [gap.what for gap in first.reading.gaps] == ["kubelet of n1"]
    assert with_answers(first, {"n1": KubeletAnswers("n1", "v2", False, {}, None, ())}).reading.gaps == ()


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/kubepods.slice/x", None),
        (
            "/kubelet.slice/kubelet-kubepods.slice/x",
            "/metrics/cadvisor could not be used: its pods are under '/kubelet.slice/kubelet-kubepods.slice/x': a kubelet with a "
            "--cgroup-root of its own is not modelled",
        ),
    ],
)
def test_a_kubelet_with_a_root_of_its_own_is_said_to_be_left_out(path: str, problem: str | None) -> None:
    bodies = {
        "/metrics": b'kubelet_cgroup_version 2\nkubelet_node_name{node="n1"} 1\n',
        "/metrics/cadvisor": f'container_spec_cpu_shares{{id="{path}"}} 1026\n'.encode(),
        "/configz": b'{"kubeletconfig": {}}',
    }
    found = kubelet.understand("n1", bodies, {}, set())
    assert (found.problems, bool(found.shares)) == ((problem,) if problem else (), problem is None)


@pytest.mark.parametrize(("name", "kept"), [("n1", True), ("", False)])
def test_a_kubelet_that_says_its_name_needs_no_pod_to_prove_it(name: str, kept: bool) -> None:
    said = f'kubelet_node_name{{node="{name}"}} 1\n' if name else ""
    bodies = {
        "/metrics": f"kubelet_cgroup_version 2\n{said}".encode(),
        "/metrics/cadvisor": b'container_spec_cpu_shares{id="/kubepods.slice/x",namespace="z",pod="z"} 1026\n',
        "/configz": b'{"kubeletconfig": {}}',
    }
    found = kubelet.understand("n1", bodies, {}, {("default", "p")})
    assert (found.cgroup_version == "v2") is kept


@pytest.mark.parametrize(
    ("status", "limit"),
    [
        ({"resources": {"limits": {"cpu": "200m"}}}, 200),
        ({"resources": {}}, None),
        ({}, 400),
        ({"allocatedResources": {"cpu": "50m"}}, 400),
        ({"allocatedResources": {"cpu": "50m"}, "resources": {"limits": {"cpu": "100m"}}}, 100),
    ],
)
def test_while_a_resize_is_pending_the_limit_is_the_one_that_is_there(
    status: dict[str, object], limit: int | None
) -> None:
    raw = pod("p", container("c", "100m", "400m"))
    raw["status"]["conditions"] = [{"type": "PodResizePending", "status": "True"}]
    raw["status"]["containerStatuses"] = [{"name": "c", **status}]
    (found,) = cluster(N, raw).pods
    assert found.containers[0].limit_milli == limit


def test_how_many_more_objects_are_bad(tmp_path: Path) -> None:
    def bad(*names: str) -> str:
        pods = [{"kind": "Pod", "metadata": {"name": name}, "spec": 1} for name in names]
        return refused(tmp_path, json.dumps({"kind": "List", "items": [N, *pods]}))

    assert "Pod a: " in bad("a")
    assert "like it" not in bad("a")
    assert "(and 1 more object like it); correct the input" in bad("a", "b")
    assert "(and 2 more objects like it); correct the input" in bad("a", "b", "c")


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({"name": "p", "namespace": "x"}, "Pod x/p: "),
        ({"name": "p"}, "Pod p: "),
        ({"namespace": "x"}, "Pod (unnamed): "),
        (None, "Pod (unnamed): "),
        ({"name": ""}, "Pod (unnamed): "),
    ],
)
def test_a_bad_object_is_named_as_far_as_it_can_be(metadata: Any, name: str, tmp_path: Path) -> None:
    raw = {"kind": "Pod", "spec": 1} | ({} if metadata is None else {"metadata": metadata})
    assert name in refused(tmp_path, json.dumps({"kind": "List", "items": [N, raw]}))


def test_an_object_without_a_name_is_refused(tmp_path: Path) -> None:
    for raw in (N, P):
        assert f"a {raw['kind']} without metadata.name" in refused(
            tmp_path, json.dumps({"kind": "List", "items": [raw | {"metadata": {"name": ""}}]})
        )


def event(when: str, reason: str = "CgroupV1", name: str = "n1") -> dict[str, Any]:
    return {
        "kind": "Event",
        "metadata": {"name": f"e-{when}"},
        "reason": reason,
        "lastTimestamp": when,
        "involvedObject": {"kind": "Node", "name": name},
    }


@pytest.mark.parametrize("turn", [1, -1])
def test_the_last_warning_of_a_node_counts_whatever_the_order(turn: int) -> None:
    events = [event("2026-11-01T00:00:00Z"), event("2026-11-02T00:00:00Z"), event("2026-11-03T00:00:00Z", "Other")]
    found = cluster(N, *events[::turn], event("2026-10-01T00:00:00Z", name="n2"))
    assert found.cgroup_v1_warnings == {"n1": "2026-11-02T00:00:00Z", "n2": "2026-10-01T00:00:00Z"}
    assert found.reading.ignored == {"Event": 1}


def test_only_active_pods_on_a_node_are_asked_of_its_kubelet() -> None:
    found = cluster(
        N, P, pod("q", container("c"), on=None), pod("r", container("c"), phase="Succeeded"), pod("s", container("c"))
    )
    assert pods_by_node(found) == {"n1": {("default", "p"), ("default", "s")}}


def test_what_a_kubelet_did_not_answer_is_a_gap_with_its_remedy_in_order() -> None:
    problems = {
        "n2": ("403 (nodes/metrics)", "x"),
        "n1": ("its rows are made from the spec and prove nothing", "timed out"),
    }
    answers = {name: KubeletAnswers(name, None, None, {}, None, said) for name, said in problems.items()}
    gaps = with_answers(cluster(N, P), answers).reading.gaps
    check = "Check that kubelet and run again, or say what the node runs with --states"
    assert [(each.what, each.why, each.remedy) for each in gaps] == [
        ("kubelet of n1", "its rows are made from the spec and prove nothing", "Say what the node runs with --states"),
        ("kubelet of n1", "timed out", check),
        (
            "kubelet of n2",
            "403 (nodes/metrics)",
            "Ask for the permission it names, or say what the node runs with --states",
        ),
        ("kubelet of n2", "x", check),
    ]


def tls(reason: str | None, strerror: str | None = None) -> ssl.SSLError:
    error = ssl.SSLError(1, strerror) if strerror else ssl.SSLError()
    error.reason = reason  # type: ignore[misc]
    return error


@pytest.mark.parametrize(
    ("error", "seconds", "why"),
    [
        (tls("WRONG_VERSION_NUMBER", "text"), 1.0, "TLS failed: wrong version number"),
        (tls(None, "some_text"), 1.0, "TLS failed: some text"),
        (tls(None), 1.0, "TLS failed: unknown"),
        (socket.gaierror(-2, "Name or service not known"), None, "its name cannot be resolved"),
        (ConnectionRefusedError(111, "refused"), None, "connection refused"),
        (OSError(113, "No route to host"), None, "No route to host"),
        (ValueError("a\nb\x1b[31m"), None, "a b?[31m"),
        (ValueError("x" * 300), None, "x" * 200),
        (TimeoutError(), None, "no connection within a few seconds"),
        (TimeoutError(), 2.5, "no answer within 2.5 s"),
        (TimeoutError(), 0.0, "no answer within 0 s"),
    ],
)
def test_why_there_is_no_answer(error: Exception, seconds: float | None, why: str) -> None:
    found = failure.no_answer(error, "host", seconds)
    assert str(found).startswith(f"host cannot be asked: {why}; ")
    assert found.silent == (seconds is not None)
    outer = ValueError("outer")
    outer.__cause__ = error
    if not isinstance(error, ValueError):
        assert str(failure.no_answer(outer, "host", seconds)) == str(found)


def test_a_bad_certificate_says_what_is_wrong_without_a_full_stop() -> None:
    error = ssl.SSLCertVerificationError(1, "failed")
    error.verify_message = "certificate has expired."  # type: ignore[misc]
    assert ": certificate has expired; check certificate-authority" in str(failure.no_answer(error, "host", None))


def test_yaml_may_be_nested_100_deep_and_no_deeper(tmp_path: Path) -> None:
    def nested(lists: int) -> str:
        return "kind: Other\na: " + "[" * lists + "]" * lists

    assert read(tmp_path, f"{nested(99)}\n---\n" + json.dumps(N)).reading.ignored == {"Other": 1}
    assert "is nested too deeply to be what kubectl prints" in refused(tmp_path, nested(100))


@pytest.mark.parametrize(
    ("api_version", "owner"),
    [
        ("batch/v1", ("CronJob", "train")),
        (None, ("CronJob", "train")),
        ("batch.volcano.sh/v1alpha1", ("Job.batch.volcano.sh", "train-20251105")),
    ],
)
def test_an_owner_of_another_group_is_none_of_kubernetes_own(api_version: str | None, owner: tuple[str, str]) -> None:
    raw = pod("p", container("c", "1"), owner=("Job", "train-20251105"))
    raw["metadata"]["ownerReferences"][0]["apiVersion"] = api_version
    found = cluster(N, raw)
    assert workload(found.pods[0], found) == Owner(*owner)
