"""A saved page of a list is not taken for the whole list."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_cgaudit.cli.main import run
from kubectl_cgaudit.collect import files, kubectl_list
from kubectl_cgaudit.collect.model import Gap
from tests.support import container, node, pod

N, PODS = node(), [pod(f"p{number}", container("c", "1"), namespace="kube-system") for number in range(4)]
FIRST = {"resourceVersion": "7", "continue": "abc", "remainingItemCount": 50}
TOGETHER = "kubectl get nodes,pods -A -o json"


def page(kind: str, items: list[dict[str, Any]], metadata: Any, *, after: bool = False) -> dict[str, Any]:
    """As an API server sends it, its metadata before its items or after them."""
    bare = [{key: value for key, value in each.items() if key not in ("kind", "apiVersion")} for each in items]
    parts = {"metadata": metadata, "items": bare}
    return {"kind": kind, "apiVersion": "v1", **(dict(reversed(parts.items())) if after else parts)}


def gaps(tmp_path: Path, *documents: dict[str, Any], suffix: str = "json") -> tuple[Gap, ...]:
    path = tmp_path / f"page.{suffix}"
    path.write_text("\n".join(map(json.dumps, documents)) if suffix == "json" else yaml.safe_dump_all(documents))
    return files.read((str(path),), lambda _namespace, _labels: True, "").reading.gaps


def gap(what: str, more: str, command: str, suffix: str = "json") -> Gap:
    why = f"it is one page of a list; {more}"
    return Gap(f"{what} of page.{suffix}", why, f"Save all of it with: {command} (or with --raw, without limit=)")


@pytest.mark.parametrize("suffix", ["json", "yaml"])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("metadata", "more"),
    [
        (FIRST, "50 more come"),
        (FIRST | {"remainingItemCount": 1}, "1 more comes"),
        ({"continue": "abc"}, "more come"),
        ({"continue": "abc", "remainingItemCount": "50"}, "more come"),
        ({"remainingItemCount": 50}, "50 more come"),
    ],
)
def test_a_page_of_pods_is_a_gap(metadata: Any, more: str, after: bool, suffix: str, tmp_path: Path) -> None:
    found = gaps(tmp_path, N, page("PodList", PODS, metadata, after=after), suffix=suffix)
    assert found == (gap("pods", more, "kubectl get pods -A -o json", suffix),)


@pytest.mark.parametrize(
    "metadata", [{}, {"continue": "", "remainingItemCount": 0}, {"continue": None}, {"remainingItemCount": -1}, None, 7]
)
def test_a_whole_list_is_none(metadata: Any, tmp_path: Path) -> None:
    for suffix in ("json", "yaml"):
        assert gaps(tmp_path, N, page("PodList", PODS, metadata), suffix=suffix) == ()


@pytest.mark.parametrize(
    ("kind", "item", "what", "command"),
    [
        ("NodeList", N, "nodes", "kubectl get nodes -A -o json"),
        ("ReplicaSetList", {"metadata": {"name": "r"}}, "ReplicaSets", "kubectl get replicasets -A -o json"),
        (
            "RuntimeClassList",
            {"metadata": {"name": "r"}, "handler": "r"},
            "RuntimeClasses",
            "kubectl get runtimeclasses -A -o json",
        ),
    ],
)
def test_so_is_one_of_another_kind(kind: str, item: dict[str, Any], what: str, command: str, tmp_path: Path) -> None:
    assert gaps(tmp_path, N, PODS[0], page(kind, [item], FIRST)) == (gap(what, "50 more come", command),)


def test_of_kinds_that_are_not_used_nothing_is_missed(tmp_path: Path) -> None:
    assert gaps(tmp_path, N, PODS[0], page("ServiceList", [{"metadata": {"name": "s"}}], FIRST)) == ()


def test_so_is_one_in_another_list(tmp_path: Path) -> None:
    whole = {"kind": "List", "items": [N, page("PodList", PODS, FIRST)]}
    for suffix in ("json", "yaml"):
        found = gaps(tmp_path, whole, suffix=suffix)
        assert found == (gap("pods", "50 more come", "kubectl get pods -A -o json", suffix),)


def test_a_page_laid_out_as_kubectl_prints_lists_is_a_gap(tmp_path: Path) -> None:
    whole = {"apiVersion": "v1", "items": [N, *PODS], "kind": "List", "metadata": FIRST}
    path = tmp_path / "page.json"
    path.write_text(json.dumps(json.loads(json.dumps(whole, sort_keys=True)), indent=4, sort_keys=True) + "\n")
    assert path.read_bytes().startswith(kubectl_list.BEGINNING)
    found = files.read((str(path),), lambda _namespace, _labels: True, "").reading.gaps
    assert found == (gap("objects", "50 more come", TOGETHER),)


def test_pages_that_are_all_there_miss_nothing(tmp_path: Path) -> None:
    def pages(*lasts: dict[str, Any]) -> tuple[Gap, ...]:
        first = page("PodList", PODS[:1], FIRST | {"remainingItemCount": 3})
        return gaps(tmp_path, N, first, *(page("PodList", PODS[1:], last) for last in lasts))

    missing = gap("pods", "3 more come", "kubectl get pods -A -o json")
    assert pages({"resourceVersion": "7"}) == ()
    assert pages() == pages({"resourceVersion": "8"}) == (missing,)
    second = page("PodList", PODS[1:2], FIRST | {"remainingItemCount": 2})
    last = page("PodList", PODS[2:], {"resourceVersion": "7"})
    first = page("PodList", PODS[:1], FIRST | {"remainingItemCount": 3})
    assert gaps(tmp_path, N, first, second, last) == ()
    assert gaps(tmp_path, N, first, last) == (missing,)
    assert gaps(tmp_path, N, first, second) == (gap("pods", "2 more come", "kubectl get pods -A -o json"),)


def test_the_audit_is_incomplete_and_so_is_a_snapshot_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "page.json").write_text(json.dumps(N) + json.dumps(page("PodList", PODS, FIRST)))
    source, saved = str(tmp_path / "page.json"), str(tmp_path / "saved.json")
    assert run(["snapshot", "-f", source, "-o", saved]) == 3
    for path in (source, saved):
        capsys.readouterr()
        assert run(["-f", path, "-o", "json"]) == 3
        (told,) = json.loads(capsys.readouterr().out)["coverage"]["gaps"]
        assert told["why"] == "it is one page of a list; 50 more come"
