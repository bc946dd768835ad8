"""The HTML report in a real Chromium. One Node process does every check (tests/browser); the tests judge what it saw.

Skipped, with what is missing, where there is no Node, npm or Chromium and none can be installed.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import CONFIDENCES, EFFECTS, Change, WorkloadAudit
from kubectl_cgaudit.report.html import render
from tests.browser import screenshots, tools
from tests.hostile import HOSTILE, hand_made
from tests.support import audited, recorded_audit, recorded_blind

PAGES = ("recorded", "unknown", "incomplete", "empty")
LOOKS = [f"{size} {scheme}" for size in ("desktop", "phone") for scheme in ("light", "dark")]
WHEN = ("cgroup v1, x", "cgroup v2, x")
WORDS = ("shop", "SHOP/CHECK", "payments", "o", "(.*", "\\", "no such workload")
EFFECT, WORD = "loses", "shop"
RAN = "window.cgauditRan='yes'"
PROVOCATIONS = (
    *HOSTILE,
    f"<script>{RAN}</script>",
    f"</script><script>{RAN}</script>",
    f"</style><svg onload={RAN}>",
    f'"><img src=x onerror="{RAN}">',
    f"' autofocus onfocus={RAN} x='",
    f"javascript:{RAN}",
    f"<!--<script>{RAN}//",
    "</title></textarea></template><plaintext>",
    "__proto__",
    "constructor",
    "'\"]`)}\\",
)
# What a column that sorts sorts by, by the words of its header; in ascending order the least comes first.
KEYS: dict[str, Callable[[WorkloadAudit], Any]] = {
    "Workload": lambda workload: workload.title,
    "Pods": lambda workload: workload.pod_count,
    "Effect": lambda workload: EFFECTS.index(workload.effect),
    "Against system": lambda workload: against(workload).change,
    "Inside the pod": lambda workload: workload.inside_pod.change,
    "How sure": lambda workload: CONFIDENCES.index(workload.confidence),
}


def against(workload: WorkloadAudit) -> Any:
    """The change that decides what is said of the workload."""
    return workload.against_system_best if workload.effect == "gains" else workload.against_system


def pages() -> dict[str, str]:
    """The reports under test."""
    return {
        "recorded": render(recorded_audit()),
        "unknown": render(audited(recorded_blind())),
        "incomplete": render(hand_made("lost", complete=False)),
        "empty": render(replace(hand_made(), nodes=(), workloads=(), findings=())),
    }


def odd() -> str:
    """A report of workloads that are hard to sort: names that begin with the same number, and one not predicted."""
    audit = hand_made()
    losing, change = audit.workloads[0], Change("web-1", None, "n1", "", 1.0, 0.7, -0.3)
    more = replace(change, after=1.3, change=0.3)
    gaining = replace(losing, namespace="10-a", against_system=more, against_system_best=more)
    blank = replace(losing, namespace="c", effects=("unknown",), pod_count=0, unpredicted_pods=1, pods=(), nominal=())
    blank = replace(blank, against_system=None, against_system_best=None, inside_pod=None, share=None)
    return render(replace(audit, workloads=(replace(losing, namespace="10-b"), gaining, blank)))


@pytest.fixture(scope="session")
def chromium() -> tools.Tools:
    """The programs, installed where that can be; otherwise what is missing is why the tests are skipped."""
    try:
        return tools.find()
    except tools.Missing as error:
        if os.environ.get("CGAUDIT_BROWSER") == "required":
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="session")
def result(chromium: tools.Tools, folder: Path) -> Any:
    """Everything that the Node process saw."""

    def written(name: str, text: str) -> str:
        path = folder / f"{name}.html"
        path.write_text(text, encoding="utf-8")
        return str(path)

    names = {str(index): name for index, name in enumerate(PROVOCATIONS)} | {"plain": "web"}
    hostile = {
        key: written(f"hostile-{key}", render(hand_made(name, complete=False, when=WHEN)))
        for key, name in names.items()
    }
    job = {
        "chromium": chromium.chromium,
        "pages": {name: written(name, text) for name, text in pages().items()},
        "pdf": {name: str(folder / f"{name}.pdf") for name in PAGES},
        "odd": written("odd", odd()),
        "words": WORDS,
        "combined": {"effect": EFFECT, "word": WORD},
        "hostile": hostile,
    }
    return json.loads(tools.run("run.mjs", given=job))


@pytest.fixture(scope="session")
def workloads() -> dict[str, WorkloadAudit]:
    """The recorded cluster's workloads that change, by title, in the report's order."""
    return {workload.title: workload for workload in recorded_audit().workloads if workload.effect != "none"}


def good(check: Any) -> Any:
    """What a check saw; a check that could not be carried out fails here and says why."""
    assert "failed" not in check, check["failed"]
    return check["result"]


def visits(found: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every visit to a page: where in the result it is, and what the page tried to do."""
    if isinstance(found, dict):
        if "seen" in found:
            yield path, found["seen"]
        for key, value in found.items():
            yield from visits(value, f"{path}/{key}")


def test_no_visit_asked_for_anything_or_said_anything(result: Any) -> None:
    clean = {"read": 1, "requests": [], "console": [], "errors": [], "dialogs": [], "pages": []}
    clean |= {"violations": [], "executed": None}
    seen = dict(visits(result))
    assert {path: events for path, events in seen.items() if events != clean} == {}
    assert {f"/looks/{name}/{look}" for name in PAGES for look in LOOKS} <= set(seen)
    assert {f"/hostile/{index}" for index in range(len(PROVOCATIONS))} <= set(seen)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_and_nothing_scrolls_sideways(result: Any, name: str, look: str) -> None:
    seen = good(result["looks"][name][look])
    assert {folds: found["axe"] for folds, found in seen.items()} == {"closed": [], "open": []}
    assert {folds: found["overflow"] for folds, found in seen.items()} == {"closed": 0, "open": 0}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_while_filters_are_on(result: Any, scheme: str) -> None:
    assert good(result["filtered"][scheme]) == []


def test_each_column_sorts_by_its_values(result: Any, workloads: dict[str, WorkloadAudit]) -> None:
    seen = good(result["sorting"])
    assert seen["before"] == list(workloads)
    sorted_by: list[str] = []
    for presses in seen["columns"]:
        (header,) = {header for press in presses for header in press["sorted"]}
        orders = {press["sorted"][header]: press["rows"] for press in presses}
        assert set(orders) == {"ascending", "descending"}
        sorted_by.append(header)
        for direction, rows in orders.items():
            values = [KEYS[header](workloads[title]) for title in rows]
            assert values == sorted(values, reverse=direction == "descending"), (header, direction)
    assert sorted_by == list(KEYS)


def test_rows_of_one_value_keep_their_order(result: Any, workloads: dict[str, WorkloadAudit]) -> None:
    seen = good(result["sorting"])
    assert [len(presses) for presses in seen["columns"]] == [2] * len(KEYS)
    before = seen["before"]
    for presses, (header, key) in zip(seen["columns"], KEYS.items(), strict=True):
        for press in presses:
            for value in {key(workload) for workload in workloads.values()}:
                was, now = (
                    [title for title in rows if key(workloads[title]) == value] for rows in (before, press["rows"])
                )
                assert now == was, (header, press["sorted"])
            before = press["rows"]


def test_names_that_begin_with_a_number_sort_as_names(result: Any) -> None:
    (by_name, *_) = good(result["sortingOdd"])["columns"]
    orders = {press["sorted"]["Workload"]: press["rows"] for press in by_name}
    assert orders["ascending"] == ["10-a/one", "10-b/one", "c/one"]
    assert orders["descending"] == ["c/one", "10-b/one", "10-a/one"]


def test_what_cannot_be_said_is_not_sorted_as_no_change(result: Any) -> None:
    columns = good(result["sortingOdd"])["columns"]
    presses = [press for presses in columns for press in presses if "Against system" in press["sorted"]]
    assert len(presses) == 2
    for press in presses:
        known = [title for title in press["rows"] if title != "c/one"]
        ascending = press["sorted"]["Against system"] == "ascending"
        assert known == (["10-b/one", "10-a/one"] if ascending else ["10-a/one", "10-b/one"])
        assert press["rows"][1] != "c/one"


def test_every_table_that_sorts_keeps_its_rows(result: Any) -> None:
    seen = good(result["everyTable"])
    assert {table["table"]: table["wrong"] for table in seen} == {"workloads": [], "weights": [], "containers": []}
    assert {table["table"]: table["columns"] for table in seen if table["columns"] < 4} == {}


@pytest.mark.parametrize("check", ["filtering", "filteringOnPhone"])
def test_each_chip_keeps_the_workloads_of_its_effect(
    result: Any, workloads: dict[str, WorkloadAudit], check: str
) -> None:
    seen = good(result[check])

    def expected(pressed: list[str]) -> list[str]:
        return [title for title, each in workloads.items() if not pressed or set(each.effects) & set(pressed)]

    looks = [seen["first"], *seen["alone"].values(), *seen["together"], seen["last"]]
    for look in looks:
        assert look["rows"] == expected(look["pressed"])
        assert look["count"] == len(look["rows"])
    assert [look["pressed"] for look in seen["alone"].values()] == [[chip] for chip in seen["chips"]]
    numbers = {chip: len(look["rows"]) for chip, look in seen["alone"].items()}
    assert numbers == {"loses": 5, "moves": 5, "gains": 2, "nominal": 12}
    assert seen["first"]["rows"] == seen["last"]["rows"] == list(workloads)
    assert seen["live"] is True


@pytest.mark.parametrize("word", WORDS)
def test_search_keeps_the_workloads_of_that_name(result: Any, workloads: dict[str, WorkloadAudit], word: str) -> None:
    seen = good(result["searching"])[word]
    assert seen["rows"] == [title for title in workloads if word.lower() in title.lower()]
    assert seen["count"] == len(seen["rows"])
    assert seen["saysNothing"] is (not seen["rows"])


def test_an_emptied_search_shows_all_again(result: Any, workloads: dict[str, WorkloadAudit]) -> None:
    assert good(result["searching"])[""]["rows"] == list(workloads)


def test_filter_search_and_sorting_together(result: Any, workloads: dict[str, WorkloadAudit]) -> None:
    seen = good(result["combined"])
    left = [title for title, each in workloads.items() if EFFECT in each.effects and WORD in title]
    assert 1 < len(left) < 5
    assert (seen["filtered"]["rows"], seen["filtered"]["count"]) == (left, len(left))
    assert seen["sorted"] == {"ascending": sorted(left), "descending": sorted(left, reverse=True)}
    assert seen["reset"] == len(workloads)


def test_copied_links_lead_to_their_headings(result: Any) -> None:
    seen = good(result["copying"])
    assert [link for link in seen if link["copied"] != "right" or link["address"] != f"#{link['id']}"] == []
    assert {"nodes", "workloads", "findings"} <= {link["id"] for link in seen}


@pytest.mark.parametrize("name", PAGES)
def test_without_scripts_all_is_there_and_no_control_is_dead(result: Any, name: str) -> None:
    seen = good(result["plain"][name])
    assert seen["controls"] == []
    assert seen["links"]["missed"] == []
    assert seen["links"]["count"] > 5
    assert {(link["href"].split(":")[0], link["rel"]) for link in seen["links"]["outside"]} <= {("https", "noreferrer")}
    assert seen["hidden"] == []
    assert seen["rows"] == {"recorded": 12, "unknown": 15, "incomplete": 1, "empty": 0}[name]


@pytest.mark.parametrize("name", PAGES)
def test_paper_cuts_nothing_off(result: Any, name: str) -> None:
    seen = good(result["print"][name])
    assert 600 < seen["width"] <= 793
    assert seen["wide"] == []


@pytest.mark.parametrize("name", PAGES)
def test_paper_shows_what_is_folded_and_no_controls(result: Any, name: str) -> None:
    seen = good(result["print"][name])
    assert seen["folded"] == []
    assert seen["controls"] == []
    assert seen["pages"] == seen["pagesOfAllOpen"] > 0


def test_the_last_container_is_on_paper(result: Any, folder: Path) -> None:
    cells = good(result["print"]["recorded"])["lastRow"]
    last = recorded_audit().workloads[-1]
    assert cells[:3] == [last.title, f"{last.pods[-1].name} on {last.pods[-1].node}", last.pods[-1].containers[-1].name]
    assert len(cells) == 9
    if program := shutil.which("pdftotext"):
        done = subprocess.run(
            [program, "-layout", folder / "recorded.pdf", "-"], capture_output=True, text=True, check=True
        )
        printed = re.sub(r"\s+", "", done.stdout)
        for text in cells:
            assert re.sub(r"\s+", "", text) in printed


@pytest.mark.parametrize("index", range(len(PROVOCATIONS)))
def test_hostile_names_change_nothing_but_text(result: Any, index: int) -> None:
    seen, plain = good(result["hostile"][str(index)]), good(result["hostile"]["plain"])
    assert seen["shape"] == plain["shape"]
    assert seen["found"] == plain["found"] == 1
    assert seen["overflow"] == 0


def jpeg_size(data: bytes) -> tuple[int, int]:
    """Width and height, from the frame's header."""
    at = next(at for at in range(len(data)) if data[at : at + 2] in (b"\xff\xc0", b"\xff\xc2"))
    return int.from_bytes(data[at + 7 : at + 9], "big"), int.from_bytes(data[at + 5 : at + 7], "big")


def test_pictures_are_the_same_bytes_each_time(chromium: tools.Tools, folder: Path) -> None:
    report = folder / "pictured.html"
    report.write_text(pages()["incomplete"], encoding="utf-8")
    first, second = (screenshots.take(report, folder / name) for name in ("once", "again"))
    widths = {path.stem: jpeg_size(path.read_bytes())[0] for path in first}
    assert widths.pop("print") < 794
    assert widths == {"desktop": 1280, "dark": 1280, "phone": 390}
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
