"""Files laid out as kubectl prints them are read object by object, and say what they say when all of them is read."""

import gzip
import io
import json
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_cgaudit.collect import files, kubectl_list
from kubectl_cgaudit.collect.advice import SAVE
from kubectl_cgaudit.collect.input import opened, read_bytes
from kubectl_cgaudit.collect.model import Cluster
from kubectl_cgaudit.errors import CgauditError
from tests.support import GOLDEN, container, node, pod

EVENT: dict[str, Any] = {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "s"}}
OBJECTS = (node("n1"), node("n2"), pod("p", container("c", "250m")), EVENT, pod("q", container("c", "é\u2028")))
PODS = [pod(f"p{number}", container("c", "250m")) for number in range(3)]


def printed(*objects: dict[str, Any]) -> str:
    """As `kubectl get -o json` prints them."""
    whole = {
        "apiVersion": "v1",
        "items": [{"apiVersion": "v1", **each} for each in objects],
        "kind": "List",
        "metadata": {"resourceVersion": ""},
    }
    return json.dumps(whole, indent=4, sort_keys=True, ensure_ascii=False) + "\n"


def in_parts(text: bytes) -> list[Any]:
    return [json.loads(bytes(each)) for each in kubectl_list.objects(io.BytesIO(text))]


def outcome(read: Callable[[], Cluster]) -> Cluster | str:
    try:
        return read()
    except CgauditError as error:
        return str(error)


def of_file(text: bytes) -> Cluster | str:
    """What is read of a file; what it is called is left out of what is said."""
    handle, name = tempfile.mkstemp(suffix=".json")
    with os.fdopen(handle, "wb") as file:
        file.write(text)
    try:
        said = outcome(lambda: files.read((name,), lambda _n, _l: True, ""))
    finally:
        Path(name).unlink()
    return said.replace(name, "FILE") if isinstance(said, str) else _unnamed(said)


def of_whole(text: bytes) -> Cluster | str:
    """The same by the way of an input that is held as a whole."""
    said = outcome(lambda: files.of_bytes(text, "FILE"))
    return said if isinstance(said, str) else _unnamed(said)


def _unnamed(cluster: Cluster) -> Cluster:
    return replace(cluster, reading=replace(cluster.reading, source=""))


@pytest.fixture
def never_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file may be read as a whole."""

    def refuse(path: str, _remedy: str) -> bytes:
        raise AssertionError(f"all of {path} was read")

    monkeypatch.setattr(files, "read_bytes", refuse)


@pytest.mark.parametrize("block", [1, 7, 100, 1 << 20])
def test_each_object_comes_by_itself_wherever_a_block_ends(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubectl_list, "_BLOCK", max(block, len(kubectl_list.BEGINNING)))
    text = printed(*OBJECTS).encode()
    assert in_parts(text) == json.loads(text)["items"]
    assert in_parts(printed(OBJECTS[0]).encode()) == [{"apiVersion": "v1", **OBJECTS[0]}]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_no_such_file_is_held_as_a_whole(packed: bool, never_whole: None, tmp_path: Path) -> None:
    first, second = tmp_path / "nodes.json", tmp_path / "pods.json"
    for path in (first, second):
        data = (GOLDEN / path.name).read_bytes()
        path.write_bytes(gzip.compress(data) if packed else data)
    found = files.read((str(first), str(second)), lambda _namespace, _labels: True, "")
    expected = json.loads((GOLDEN / "pods.json").read_bytes())["items"]
    assert len(found.nodes) == 3
    assert sorted(each.name for each in found.pods) == sorted(each["metadata"]["name"] for each in expected)


def test_what_cannot_be_read_twice_is_read_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(printed(*OBJECTS[:4]))
    with path.open() as file:
        os.mkfifo(tmp_path / "pipe")
        for each in (f"/dev/fd/{file.fileno()}", "-", tmp_path, tmp_path / "pipe", tmp_path / "none"):
            with opened(str(each)) as found:
                assert found is None
    with opened(str(path)) as found:
        assert found
        assert found.read(9) == b'{\n    "ap'


def test_how_far_it_is_is_said_in_mebibytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "STEP", 1)
    path, told = tmp_path / "c.json", []
    text = printed(OBJECTS[0], {"kind": "Other", "text": "x" * (3 << 20)}).encode()
    for data in (text, gzip.compress(text)):
        path.write_bytes(data)
        files.read((str(path),), lambda _namespace, _labels: True, "", lambda *said: told.append(said))
    what = f"{path}: MiB"
    assert told == [(what, 0, 3), (what, 3, 3), (what, 0, None), (what, 3, None)]


def test_a_pipe_is_read_once_whatever_comes_after_it(tmp_path: Path) -> None:
    """What follows it has another layout, and that is seen late."""
    late = tmp_path / "late.json"
    late.write_text(printed(*PODS) + printed(EVENT))
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(printed(*OBJECTS[:4]),), daemon=True)
    writer.start()
    found = files.read((str(tmp_path / "pipe"), str(late)), lambda _namespace, _labels: True, "")
    writer.join(10)
    assert (len(found.nodes), len(found.pods), found.reading.duplicates) == (2, 4, 0)


def test_an_odd_file_makes_no_other_one_be_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {
        "a.json": printed(*OBJECTS[:2]),
        "b.json": printed(*PODS) * 2,
        "c.json": printed(OBJECTS[2]),
        "d.json": "{}",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "d.json").write_text(printed(EVENT)[:-20])
    whole: list[str] = []

    def spy(path: str, remedy: str) -> bytes:
        whole.append(Path(path).name)
        return read_bytes(path, remedy)

    monkeypatch.setattr(files, "read_bytes", spy)
    names = [str(tmp_path / name) for name in texts]
    found = files.read(tuple(names[:3]), lambda _namespace, _labels: True, "")
    assert (len(found.nodes), len(found.pods), found.reading.duplicates, whole) == (2, 4, 3, ["b.json"])
    whole.clear()
    with pytest.raises(CgauditError, match=r"d\.json is not valid JSON"):
        files.read(tuple(names), lambda _namespace, _labels: True, "")
    assert whole == ["b.json", "d.json"]


def test_other_layouts_are_read_as_a_whole(tmp_path: Path) -> None:
    shown = printed(*OBJECTS[:4])
    for text in (
        shown.replace("\n", "\r\n"),
        json.dumps(json.loads(shown)),
        shown + printed(*PODS),
        shown.replace('"kind": "List"', '"kind": "PodList"'),
        shown.replace(
            '"metadata": {\n        "resourceVersion"', '"items": [],\n    "metadata": {\n        "resourceVersion"'
        ),
        shown.replace('"kind": "List"', '"it\\u0065ms": [],\n    "kind": "List"'),
        printed(),
    ):
        assert of_file(text.encode()) == of_whole(text.encode())
    path = tmp_path / "two.json"
    path.write_text(shown + printed(*PODS))
    assert len(files.read((str(path),), lambda _namespace, _labels: True, "").pods) == 4


def test_what_looks_like_the_next_object_inside_of_one_is_a_part_of_it() -> None:
    deep = json.loads(printed(*OBJECTS[:2], {"kind": "Other", "parts": [{"apiVersion": "v1", "kind": "Node"}] * 2}))
    lines = json.dumps(deep, indent=4, sort_keys=True).splitlines()
    # Indented as if the parts were objects of the List.
    inside = next(index for index, line in enumerate(lines) if '"parts"' in line)
    shifted = [line[8:] if index > inside and line.startswith(" " * 16) else line for index, line in enumerate(lines)]
    text = "\n".join(shifted).encode()
    assert json.loads(text) == deep
    with pytest.raises((kubectl_list.OtherLayoutError, json.JSONDecodeError)):
        in_parts(text)
    found = of_file(text)
    assert isinstance(found, Cluster)
    assert ([each.name for each in found.nodes], found.reading.ignored) == (["n1", "n2"], {"Other": 1})


def test_an_object_larger_than_any_is_no_reason_to_search_it_over_and_over(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(OBJECTS[0], {"kind": "Other", "text": "x" * 5000}).encode()
    monkeypatch.setattr(kubectl_list, "_BLOCK", 500)
    monkeypatch.setattr(kubectl_list, "_LARGEST", 7000)
    assert len(in_parts(text)) == 2
    monkeypatch.setattr(kubectl_list, "_LARGEST", 4000)
    with pytest.raises(kubectl_list.OtherLayoutError):
        in_parts(text)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_damaged_one_is_told_as_if_all_of_it_had_been_read(packed: bool) -> None:
    text = printed(*OBJECTS[:4], *PODS).encode()
    if packed:
        text = gzip.compress(text)
    for end in range(0, len(text), 37):
        assert_same(text[:end])


def assert_same(text: bytes) -> None:
    if text[:2] == b"\x1f\x8b":
        try:
            text = gzip.decompress(text)
        except EOFError:
            assert of_file(text) == f"FILE is a damaged gzip file; {SAVE}"
            return
    if not text:
        assert of_file(text) == f"FILE is empty; {SAVE}"
        return
    assert of_file(text) == of_whole(text)


def test_a_bad_object_is_named_beside_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bad.json"
    path.write_text(printed(*OBJECTS))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(printed(*PODS).encode())))
    with pytest.raises(
        CgauditError, match=r"^.*bad\.json: Pod default/q: requests\.cpu of container c: .* is not a CPU quantity"
    ):
        files.read(("-", str(path)), lambda _namespace, _labels: True, "")


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_nothing_is_read_otherwise_than_as_a_whole(data: st.DataObject) -> None:
    text = printed(*OBJECTS[: data.draw(st.integers(1, 5))], *PODS).encode()
    for _ in range(data.draw(st.integers(0, 2))):
        begin = data.draw(st.integers(0, len(text) - 1))
        end = data.draw(st.integers(begin, min(len(text), begin + 400)))
        put = data.draw(
            st.sampled_from([b"", text[begin:end] * 2, b"}", b"{", b'"', b"\n", b"],", b"\n        }\n    ]", b"\xff"])
        )
        text = text[:begin] + put + text[end:]
    if text and not text.isspace():
        assert of_file(text) == of_whole(text)
