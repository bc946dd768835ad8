"""Reading files: shapes, encodings, and what is said of bad ones."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_cgaudit.collect import files, kubectl_list
from kubectl_cgaudit.collect.model import Cluster, Gap, Owner
from kubectl_cgaudit.collect.owners import workload
from kubectl_cgaudit.errors import InputError
from tests.support import container, node, pod, read_text, refused_text

N, P = node(), pod("p", container("c", "250m"))


def read(*paths: Path | str) -> Cluster:
    return files.read(tuple(str(path) for path in paths), lambda _namespace, _labels: True, "")


def listed(*objects: dict[str, Any], kind: str = "List") -> str:
    return json.dumps({"kind": kind, "apiVersion": "v1", "items": list(objects)})


def bare(obj: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


MEND = "correct the input, save it again with kubectl, or audit the running cluster, where one bad object is left out"


@pytest.mark.parametrize(
    "text",
    [
        listed(N, P),
        yaml.safe_dump(json.loads(listed(N, P))),
        json.dumps(N) + "\n" + json.dumps(P),
        listed(N) + listed(P),
        yaml.safe_dump_all([N, P]),
        listed(bare(N), kind="NodeList") + listed(bare(P), kind="PodList"),
        "\ufeff" + listed(N, P),
        listed(json.loads(listed(N)), json.loads(listed(json.loads(listed(bare(P), kind="PodList"))))),
        yaml.safe_dump(json.loads(listed(json.loads(listed(bare(N), kind="NodeList")), P))),
        json.dumps(json.loads(listed(json.loads(listed(N)), P)), indent=4, sort_keys=True),
    ],
    ids=["json", "yaml", "objects", "lists", "documents", "pages", "bom", "nested", "nested yaml", "nested by kubectl"],
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_every_shape_kubectl_prints_is_read(text: str, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    found = read(path)
    assert [each.name for each in found.nodes] == ["n1"]
    assert [(each.name, each.containers[0].request_milli) for each in found.pods] == [("p", 250)]
    assert found.reading.gaps == ()


def test_the_plain_texts_of_yaml_that_kubectl_writes_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    argued = {**P, "spec": {**P["spec"], "containers": [{**P["spec"]["containers"][0], "args": ["ARG", "OTHER"]}]}}
    text = yaml.safe_dump(json.loads(listed(N, argued)))
    path.write_text(text.replace("- ARG", "- =").replace("- OTHER", "- <<"))
    assert "- =\n" in path.read_text()
    assert [each.containers[0].request_milli for each in read(path).pods] == [250]


def test_standard_input_and_several_files_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "nodes.json"
    path.write_text(listed(N))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(listed(P).encode())))
    found = read(path, "-")
    assert (len(found.nodes), len(found.pods), found.reading.source) == (1, 1, "nodes.json, standard input")


def test_other_kinds_are_counted_and_doubles_kept_once(tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    path.write_text(listed(N, P, P, {"kind": "Service"}, {"kind": "Service"}, {"kind": "Secret", "data": {"a": 5}}))
    found = read(path)
    assert found.reading.ignored == {"Secret": 1, "Service": 2}
    assert (len(found.pods), found.reading.duplicates) == (1, 1)


def test_without_pods_the_audit_is_incomplete_but_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "nodes.json"
    path.write_text(listed(N))
    (gap,) = read(path).reading.gaps
    assert (gap.what, gap.why, gap.remedy) == (
        "pods",
        "there is no Pod in the input",
        "Save it with: kubectl get nodes,pods -A -o json",
    )


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_whole_pages_of_pods_may_be_what_kubectl_had_when_its_list_broke_off(tmp_path: Path, suffix: str) -> None:
    def notes(amount: int) -> tuple[str, ...]:
        pods = [pod(f"p{number}", container("c", "250m"), namespace=f"ns{number % 2}") for number in range(amount)]
        text = listed(N, *pods)
        path = tmp_path / f"cut.{suffix}"
        path.write_text(text if suffix == "json" else yaml.dump(json.loads(text), Dumper=yaml.CSafeDumper))
        return read(path).reading.notes

    told = (
        "Exactly {} pods were read, and kubectl lists 500 at a time: if it ended with an error, the rest is missing. "
        "See its exit code, or have kubectl cgaudit snapshot read the cluster"
    )
    assert notes(500) == (told.format(500),)
    assert notes(1000) == (told.format(1000),)
    assert notes(499) == notes(501) == ()


def test_pods_of_one_namespace_may_have_been_saved_without_all_the_others(tmp_path: Path) -> None:
    def notes(*spaces: str) -> tuple[str, ...]:
        path = tmp_path / "some.json"
        path.write_text(listed(N, *(pod(f"p{space}", container("c"), namespace=space) for space in spaces)))
        return read(path).reading.notes

    assert notes("shop") == (
        "All pods are of namespace shop: if others were left out, these get less CPU than is shown, for all of a node share "
        "it. Save them with -A: kubectl get nodes,pods -A -o json",
    )
    assert notes("shop", "kube-system") == notes("kube-system") == ()


def test_an_object_that_is_there_twice_and_not_alike_is_a_gap(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(listed(N, pod("p", container("c", "1")), pod("q", container("c", "1"))))
    new.write_text(listed(N, pod("p", container("c", "2")), pod("q", container("c", "1"))))
    both = read(old, new)
    assert both.reading.gaps == (
        Gap(
            "pod default/p",
            "read more than once, and not alike: the first was taken",
            "Give each object once: leave the older file out, and audit each cluster by itself",
            "object that is not alike",
            ("pod default/p",),
        ),
    )
    assert both.reading.duplicates == 3
    assert both.pods[0].containers[0].request_milli == 1000
    assert read(old, old).reading.gaps == ()


def test_a_pod_has_containers(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    cut = pod("p")
    del cut["spec"]["containers"]
    path.write_text(listed(N, cut))
    with pytest.raises(InputError, match=r"spec\.containers: it has none, and every Pod does; correct the input"):
        read(path)


SAVE = "save it with: kubectl get nodes,pods -A -o json"
AN_AUDIT = "is a saved audit, not a cluster; write it in other formats with: kubectl cgaudit report FILE"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "FILE is empty; " + SAVE),
        (b"hello", "FILE holds no Kubernetes object (there is no kind in it); " + SAVE),
        (b'{"kind": "List", "items": [', "FILE is not valid JSON: Input data was truncated; " + SAVE),
        (b'{"a": 1}', "FILE holds no Kubernetes object (there is no kind in it); " + SAVE),
        (
            b'{"kind": "List"} garbage',
            "FILE is not valid JSON: JSON is malformed: trailing characters (byte 18); " + SAVE,
        ),
        (
            b'{"kind": "List"}]{"kind": "List"}',
            "FILE is not valid JSON: JSON is malformed: trailing characters (byte 17); " + SAVE,
        ),
        (b'{"schemaVersion": "1.1", "scenario": {}}', "FILE " + AN_AUDIT),
        (b"schemaVersion: '1.1'\nscenario: {}\n", "FILE " + AN_AUDIT),
        (b"[1, 2]", "FILE holds no Kubernetes object; " + SAVE),
        (b"a: [b", "FILE is neither JSON nor YAML at line 1; " + SAVE),
        (b"\x00\x01\x02", "FILE is neither JSON nor YAML; " + SAVE),
        (b"\x1f\x8b broken", "FILE is a damaged gzip file; " + SAVE),
        (listed(P).encode(), "no Node in FILE, so nothing can be predicted; " + SAVE),
        (
            b"kind: List\nitems:\n- &a {kind: Node}\n- *a\n",
            "FILE is not what kubectl prints: it uses YAML anchors at line 3; " + SAVE,
        ),
        (
            listed(N, pod("bad", container("c", "1e400"))).encode(),
            "FILE: Pod default/bad: requests.cpu of container c: '1e400' is larger than any CPU quantity can be; "
            + MEND,
        ),
        (
            listed(
                N, pod("bad", container("c", "banana")), pod("worse", container("c", "1", "x")), node("n2", "?")
            ).encode(),
            "FILE: Pod default/bad: requests.cpu of container c: 'banana' is not a CPU quantity such as 250m or 2 "
            "(and 2 more objects like it); " + MEND,
        ),
        (
            listed(N, {**P, "spec": {"containers": "none"}}).encode(),
            "FILE: Pod default/p: spec.containers: expected `array | null`, got `str`; " + MEND,
        ),
        (
            listed(N, {"kind": "Pod"}).encode(),
            "FILE: Pod (unnamed): a Pod without metadata.name; " + MEND,
        ),
    ],
)
def test_a_bad_file_is_one_clear_sentence(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value) == message.replace("FILE", str(path), 1)


def test_a_file_may_be_named_like_a_pattern(tmp_path: Path) -> None:
    path = tmp_path / "a[1]*.json"
    path.write_text(listed(N, P))
    assert len(read(path).pods) == 1


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path / "none.json")
    assert str(caught.value) == f"{tmp_path}/none.json cannot be read: No such file or directory; check the path"


REPLICASET = {
    "kind": "ReplicaSet",
    "metadata": {
        "name": "web-abc12",
        "namespace": "default",
        "ownerReferences": [{"kind": "Rollout", "name": "web", "controller": True}],
    },
}
JOB = {
    "kind": "Job",
    "metadata": {
        "name": "night-29384756",
        "namespace": "default",
        "ownerReferences": [{"kind": "CronJob", "name": "night", "controller": True}],
    },
}


def named(listed_: dict[str, Any], name: str, **metadata: Any) -> dict[str, Any]:
    return listed_ | {"metadata": {"name": name, "namespace": "default", **metadata}}


@pytest.mark.parametrize(
    ("owner", "labels", "tables", "expected"),
    [
        (("ReplicaSet", "web-abc12"), {"pod-template-hash": "abc12"}, [], Owner("Deployment", "web")),
        (("ReplicaSet", "web-abc12"), {"pod-template-hash": "abc12"}, [REPLICASET], Owner("Rollout", "web")),
        # What its list says of an owner counts more than its name: nobody controls this one.
        (
            ("ReplicaSet", "web-abc12"),
            {"pod-template-hash": "abc12"},
            [named(REPLICASET, "web-abc12")],
            Owner("ReplicaSet", "web-abc12"),
        ),
        (
            ("ReplicaSet", "web-abc12"),
            {"pod-template-hash": "abc12"},
            [named(REPLICASET, "web-old")],
            Owner("Deployment", "web"),
        ),
        (("ReplicaSet", "web-abc12"), {}, [], Owner("ReplicaSet", "web-abc12")),
        (("ReplicaSet", "-abc12"), {"pod-template-hash": "abc12"}, [], Owner("ReplicaSet", "-abc12")),
        (("Job", "night-29384756"), {}, [], Owner("CronJob", "night")),
        (("Job", "night-29384756"), {}, [JOB], Owner("CronJob", "night")),
        (("Job", "night-29384756"), {}, [named(JOB, "night-29384756")], Owner("Job", "night-29384756")),
        (("Job", "night-29384756"), {}, [named(JOB, "night-29384755")], Owner("CronJob", "night")),
        (
            ("Job", "night-2"),
            {},
            [named(JOB, "night-2", ownerReferences=[{"kind": "CronJob", "name": "day", "controller": True}])],
            Owner("CronJob", "day"),
        ),
        (("Job", "migrate-2"), {}, [], Owner("Job", "migrate-2")),
        (("StatefulSet", "db-29384756"), {}, [], Owner("StatefulSet", "db-29384756")),
        (("StatefulSet", "db"), {}, [], Owner("StatefulSet", "db")),
        (("Node", "n1"), {}, [], Owner("Pod", "p")),
        (None, {}, [], Owner("Pod", "p")),
    ],
)
def test_a_workload_is_the_top_owner(
    owner: tuple[str, str] | None, labels: dict[str, str], tables: list[Any], expected: Owner, tmp_path: Path
) -> None:
    path = tmp_path / "input"
    path.write_text(listed(N, pod("p", container("c"), owner=owner, labels=labels), *tables))
    found = read(path)
    assert workload(found.pods[0], found) == expected


def test_leading_space_does_not_make_yaml_of_json(tmp_path: Path) -> None:
    found = read_text(tmp_path, " \n\t" + json.dumps({"kind": "List", "items": [N, P]}))
    assert ([each.name for each in found.nodes], [each.name for each in found.pods]) == (["n1"], ["p"])


def test_items_without_a_kind_are_of_the_kind_of_their_list(tmp_path: Path) -> None:
    bare = {key: value for key, value in N.items() if key != "kind"}
    for text in (
        json.dumps({"kind": "NodeList", "items": [bare, N | {"kind": "Node"}]}),
        "kind: NodeList\nitems:\n- " + json.dumps(bare),
        "---\n---\nkind: NodeList\nitems:\n- " + json.dumps(bare) + "\n---\n",
    ):
        assert [each.name for each in read_text(tmp_path, text).nodes] == ["n1"]


@pytest.mark.parametrize(
    "item",
    ["{}", "1", '"a"', "[]", "null", '{"kind": 1}', '{"kind": null}', '{"kind": ""}', '{"metadata": {"name": "p"}}'],
)
def test_items_of_no_kind_are_an_error_that_says_where(item: str, tmp_path: Path) -> None:
    is_none = f"is no Kubernetes object with a kind; correct it, or {SAVE}"
    for text, place in (
        (f'{{"kind": "List", "items": [{json.dumps(N)}, {item}]}}', "items[1]"),
        (json.dumps(N) + f'{{"kind": "List", "items": [{item}]}}', "items[0] of document 2"),
        (f"kind: List\nitems:\n- {json.dumps(N)}\n- {item}\n", "items[1]"),
        (f"---\n{json.dumps(N)}\n---\nkind: List\nitems:\n- {item}\n", "items[0] of document 2"),
        (listed(N, {"kind": "List", "items": [N, json.loads(item)]}), "items[1].items[1]"),
        (f"kind: List\nitems:\n- {{kind: List, items: [{item}]}}\n", "items[0].items[0]"),
    ):
        assert refused_text(tmp_path, text) == f"FILE: {place} {is_none}"


def test_an_object_of_no_kind_where_kubectl_prints_lists_is_the_same_error(tmp_path: Path) -> None:
    whole = {
        "apiVersion": "v1",
        "items": [N, {"apiVersion": "v1"}],
        "kind": "List",
        "metadata": {"resourceVersion": ""},
    }
    text = json.dumps(whole, indent=4, sort_keys=True) + "\n"
    assert text.encode().startswith(kubectl_list.BEGINNING)
    assert refused_text(tmp_path, text) == (
        f"FILE: items[1] is no Kubernetes object with a kind; correct it, or {SAVE}"
    )


@pytest.mark.parametrize("text", ["- 1\n", "kind: 1\n", "a: b\n", "kind: [Pod]\n"])
def test_yaml_without_a_kind_is_refused(text: str, tmp_path: Path) -> None:
    assert "holds no Kubernetes object (there is no kind in it)" in refused_text(tmp_path, text)


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
    found = read_text(tmp_path, f"{yaml.safe_dump(N)}---\n{said}")
    assert [each.name for each in found.pods[0].containers] == [text]


def test_a_kind_that_ends_as_lists_do_is_no_list_without_items(tmp_path: Path) -> None:
    text = listed(N, P, {"kind": "AllowList", "metadata": {"name": "a"}}, {"kind": "DenyList", "items": {}})
    for each in (text, yaml.safe_dump(json.loads(text))):
        assert read_text(tmp_path, each).reading.ignored == {"AllowList": 1, "DenyList": 1}


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


def test_yaml_may_be_nested_100_deep_and_no_deeper(tmp_path: Path) -> None:
    def nested(lists: int) -> str:
        return "kind: Other\na: " + "[" * lists + "]" * lists

    assert read_text(tmp_path, f"{nested(99)}\n---\n" + json.dumps(N)).reading.ignored == {"Other": 1}
    assert refused_text(tmp_path, nested(100)) == (
        f"FILE is not what kubectl prints: it is nested more than 100 levels deep at line 2; {SAVE}"
    )
