"""The HTML report in a real Chromium: heights, the first screen, axe, paper, no scripts, copied texts, hostile names.

Skipped, with what is missing, where there is no Node, npm or Chromium and none can be installed.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.report import html, markdown
from tests.browser import tools
from tests.hostile import HOSTILE, hand_made
from tests.pages_support import blind, recorded

HERE = Path(__file__).parent
RAN = "window.cgauditRan='yes'"
PROVOCATIONS = (
    *HOSTILE,
    f"<script>{RAN}</script>",
    f"</script><script>{RAN}</script>",
    f"</style><svg onload={RAN}>",
    f'"><img src=x onerror="{RAN}">',
    f"</textarea></pre><script>{RAN}</script>",
    "__proto__",
    "'\"]`)}\\",
)
PAGES = ("recorded", "blind", "incomplete", "empty")
CLEAN = {
    "read": 1, "requests": [], "console": [], "errors": [], "dialogs": [], "pages": [], "violations": [], "executed": None
}  # fmt: skip


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Everything that the Node process saw."""
    try:
        found = tools.find()
    except tools.Missing as error:
        if os.environ.get("CGAUDIT_BROWSER") == "required":
            raise
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("pages")

    def written(name: str, text: str) -> str:
        path = folder / f"{name}.html"
        path.write_text(text, encoding="utf-8")
        return str(path)

    nothing = replace(hand_made(), nodes=(), workloads=(), findings=(), actions=(), questions=())
    pages = {
        "recorded": recorded(),
        "blind": blind(),
        "incomplete": hand_made("lost", complete=False),
        "empty": nothing,
    }
    names = {str(index): name for index, name in enumerate(PROVOCATIONS)} | {"plain": "web"}
    job = {
        "chromium": found.chromium,
        "pages": {name: written(name, html.render(audit)) for name, audit in pages.items()},
        "hostile": {
            key: written(f"hostile-{key}", html.render(hand_made(name, complete=False, open_=True)))
            for key, name in names.items()
        },
    }
    done = subprocess.run(
        [found.node, str(HERE / "browser" / "look.mjs")],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_no_visit_asked_for_anything_or_said_anything(result: Any) -> None:
    visits = [*result["looks"].values(), *result["print"].values(), *result["hostile"].values()]
    assert [visit["seen"] for visit in visits if visit["seen"] != CLEAN] == []
    assert len(visits) == 4 * len(PAGES) + len(PAGES) + len(PROVOCATIONS) + 1


def test_the_recorded_cluster_is_low(result: Any) -> None:
    heights = {size: result["looks"][f"recorded {size} light"]["result"]["height"] for size in ("desktop", "phone")}
    assert 700 < heights["desktop"] <= 6000
    assert 1500 < heights["phone"] <= 12000


def test_the_first_screen_holds_the_answer(result: Any) -> None:
    first = ["h1", ".meta", ".chips", ".action pre", ".action .bar", "#affected"]
    assert result["looks"]["recorded desktop light"]["result"]["first"] == first


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("look", ["desktop light", "desktop dark", "phone light", "phone dark"])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(result: Any, name: str, look: str) -> None:
    seen = result["looks"][f"{name} {look}"]["result"]
    assert (seen["axeClosed"], seen["axe"]) == ([], [])
    assert (seen["overflow"], seen["overflowOpen"]) == (0, 0)


@pytest.mark.parametrize("name", PAGES)
def test_without_scripts_all_is_there_and_no_control_is_dead(result: Any, name: str) -> None:
    seen = result["plain"][name]["result"]
    assert seen["controls"] == []
    assert seen["links"]["missed"] == []
    assert {(link["href"].split(":")[0], link["rel"]) for link in seen["links"]["outside"]} == {("https", "noreferrer")}
    assert seen["hidden"] == []
    assert seen["rows"] == {"recorded": 12, "blind": 15, "incomplete": 1, "empty": 0}[name]


@pytest.mark.parametrize("name", PAGES)
def test_paper_shows_what_is_folded_and_no_controls(result: Any, name: str) -> None:
    seen = result["print"][name]["result"]
    assert seen["wide"] == []
    assert [each.split()[:2] for each in seen["folded"]] == [["As", "Markdown"]]
    assert seen["controls"] == []


def test_buttons_copy_commands_and_the_ticket(result: Any) -> None:
    copied = result["copied"]["result"]
    commands = [command for action in recorded().actions for command in action.run]
    assert {f"Copy {command}": command for command in commands}.items() <= copied.items()
    assert copied["Copy as Markdown"] == markdown.render(recorded())


def test_the_table_sorts_searches_and_filters(result: Any) -> None:
    seen = result["controls"]["result"]
    changed = [workload for workload in recorded().workloads if workload.effect != "none"]
    assert seen["before"] == [workload.title for workload in changed]
    assert seen["columns"]["Workload"] == sorted(workload.title for workload in changed)
    by_loss = [workload.against_system.change for workload in changed if workload.against_system]
    against = {workload.title: workload.against_system for workload in changed}
    assert [against[title].change for title in seen["columns"]["vs system"]] == sorted(by_loss)  # type: ignore[union-attr]
    assert set(seen["searched"]) == {"shop/checkout", "shop/payments", "shop/cart", "shop/frontend"}
    assert set(seen["filtered"]) == {"shop/checkout", "shop/payments"}
    assert seen["shown"] == "2 of 12 shown"


@pytest.mark.parametrize("index", range(len(PROVOCATIONS)))
def test_hostile_names_change_nothing_but_text(result: Any, index: int) -> None:
    seen, plain = result["hostile"][str(index)]["result"], result["hostile"]["plain"]["result"]
    assert seen["shape"] == plain["shape"]
    assert seen["found"] == plain["found"] == 1
    assert seen["overflow"] == plain["overflow"] == 0
