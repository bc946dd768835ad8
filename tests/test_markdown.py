"""The Markdown report: what a ticket gets of the recorded cluster and of large ones, and that every name stays text."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace

from kubectl_cgaudit.report.markdown import MOST, MOST_WIDE, render
from kubectl_cgaudit.report.options import Options
from kubectl_cgaudit.report.rules import DOCS
from kubectl_cgaudit.report.sections import FORMULAS
from tests.hostile import HOSTILE, everywhere, hand_made, many
from tests.pages_support import blind, recorded

ROW = re.compile(r"(?<!\\)(?:\\\\)*\|")
OUR_CODE = {
    *(formula for _, formula, _ in FORMULAS),
    *("-", "x", "x?", "?", "~", "+", "#", "=", "-o", "json=FILE", "csv=FILE"),
    "-o json=FILE",
    "-o csv=FILE",
    "kubectl cgaudit report",
}


def parsed(text: str) -> list[Token]:
    """What GitHub's dialect makes of it: every token, also those inside paragraphs and cells."""
    parser = MarkdownIt("gfm-like")
    assert parser.linkify
    parser.linkify.set({"fuzzy_link": False})
    return [inner for token in parser.parse(text) for inner in (token, *(token.children or ()))]


def unfenced(text: str) -> str:
    """The text without its blocks of code, in which nothing is markup."""
    found: list[str] = []
    fence = ""
    for line in text.splitlines():
        opens = re.match(r" *(`{3,})", line)
        if fence:
            fence = "" if line.strip() == fence else fence
        elif opens:
            fence = opens[1]
        else:
            found.append(line)
    assert not fence
    return "\n".join(found)


def tables(text: str) -> list[list[str]]:
    """The lines of each table."""
    found = re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE)
    return [table.splitlines() for table in found]


def assert_harmless(text: str) -> None:
    """No markup but our own, in GitHub's dialect and in the plain text."""
    tokens = parsed(text)
    html = "".join(token.content for token in tokens if token.type in ("html_block", "html_inline"))
    assert re.fullmatch(r"(<details>\n<summary>[A-Za-z0-9 ,:→]+</summary>\n|</details>\n)*", html)
    assert html.count("<details>") == html.count("</details>")
    plain = unfenced(text)
    assert set(re.findall(r"<[^>]*>?", plain)) <= {"<details>", "</details>", "<summary>", "</summary>"}
    links = {str(token.attrs["href"]) for token in tokens if token.type == "link_open"}
    assert all(re.fullmatch(re.escape(DOCS) + r"/findings/CGA[0-9]{3}\.md", link) for link in links)
    assert not any(token.type in ("image", "code_block", "s_open", "em_open") for token in tokens)
    for table in tables(plain):
        assert len({len(ROW.findall(line)) for line in table}) == 1
    assert not re.search(r"[^\n -\ud7ff\ue000-\U0010ffff]|[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]", text)


def test_recorded_cluster() -> None:
    text = render(recorded())
    lines = text.splitlines()
    assert lines[0] == "# CPU priority audit: nodes.json, pods.json, workloads.json, runtimeclasses.json, v2+runtime"
    assert lines[2].startswith("**5 of 15 workloads lose CPU to system services")
    assert lines[4] == (
        "2026-01-30T12:00:00Z. 3 nodes, 27 pods, 15 workloads, all read. Findings: 5 high, 2 medium, 15 low. "
        "Shares hold when the node's CPU is full; with CPU to spare, nobody loses."
    )
    assert [line for line in lines if line.startswith("## ")] == ["## Actions", "## Workloads", "## More"]
    assert re.findall("<summary>(.*)</summary>", text) == [
        "Findings by rule",
        "Nodes",
        "Assumptions and thresholds",
        "Coverage",
        "Method",
    ]
    assert not re.search("INCOMPLETE|Shortened|Left out|…", text)
    assert 10_000 < len(text.encode()) <= MOST


def test_actions_are_a_checklist_with_commands() -> None:
    text = render(recorded())
    assert re.findall(r"^- \[ \] \*\*(.*)\*\* \((.*)\)$", text, re.MULTILINE) == [
        ("1. Give system.slice weight 39 on worker-c", "clears 5 high; node owners"),
        ("2. Raise the CPU request of payments in shop/payments from 200m to 349m", "clears 1 medium; workload owners"),
        ("3. Set the CPU limit of ext-authz to 80m in edge/legacy-gateway", "clears 1 low; workload owners"),
    ]
    fences = [token.content for token in parsed(text) if token.type == "fence"]
    assert fences == [f"{command}\n" for action in recorded().actions for command in action.run]


def test_the_workloads_that_change() -> None:
    table, *_ = tables(render(recorded()))
    assert table[0] == (
        "|  | Workload | Kind | Pods hit | On | CPU of full node | vs system | Split inside the pod | Known |"
    )
    assert table[2] == (
        "| `-` | shop/checkout | Deployment | 1 of 3 | worker-c | 27% → 20% | -62% | app 91% → 85% | stated |"
    )
    assert (
        table[7]
        == "| `~` | edge/canary-gateway | Deployment | 1 of 1 | worker-b | 9.7% | 0% | envoy 86% → 78% | stated |"
    )
    assert (
        table[9] == "| `+` | platform/log-shipper | DaemonSet | 1 of 3 | worker-c | 0.02% → 0.2% | +408% |  | stated |"
    )
    assert len(table) == 2 + 12


def test_blind_cluster_says_what_the_numbers_assume() -> None:
    text = render(blind())
    table, *_ = tables(text)
    assert table[2].startswith(
        "| `?` | shop/checkout | Deployment | 3 of 3 | worker-a, worker-b, worker-c | 27% → 20% | -62% |"
    )
    assert "| cgroup v1, linear runtime | unknown |" in table[2]
    assert "<summary>Questions and commands</summary>" in text
    assert_harmless(text)


def test_gaps_come_first() -> None:
    lines = render(hand_made("lost", complete=False)).splitlines()
    assert lines[4:7] == [
        "**INCOMPLETE: this could not be read and is not in the numbers.**",
        "",
        "- lost: lost. lost.",
    ]


@pytest.mark.parametrize("count", [100, 30_000])
def test_a_large_cluster_fits_a_ticket_and_says_what_is_cut(count: int) -> None:
    text = render(many(count, "service"))
    assert len(text.encode()) <= MOST
    assert "Shortened to fit a ticket: each place says how many it leaves out" in text
    assert re.search(r"\*\*Left out here:\*\* \d+ more (workloads|findings|finding); all of it: `-o json=FILE`", text)
    assert_harmless(text)


def test_more_on_request() -> None:
    audit = many(1000, "service")
    text, wide = render(audit), render(audit, Options(wide=True))
    assert len(text.encode()) <= MOST < len(wide.encode()) <= MOST_WIDE
    assert "Left out here" not in wide.split("<details>")[0]
    assert len(tables(wide)[0]) == 2 + 1000


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("complete", [True, False])
def test_hostile_names_stay_text(name: str, complete: bool) -> None:
    text, plain = (render(hand_made(each, complete=complete, open_=True)) for each in (name, "web"))
    assert_harmless(text)
    lengths, expected = ([len(table) for table in tables(unfenced(each))] for each in (text, plain))
    # Rows give way to names that no cluster has.
    assert lengths == expected if len(name) < 1000 else len(lengths) == len(expected)
    assert ("Shortened to fit" in text) is (len(name) > 1000)
    assert not re.search(r"(?<!&)[@#](?=\w)", re.sub(r"\(https[^)]*\)", "", unfenced(text)))
    assert len(text.encode()) <= MOST


NASTY = st.text(st.sampled_from("|`<>&*_[]()!#~$@\\\n\r\t\"'-+=.:/? 1ahtpsw\u202e\x00é") | st.characters(), max_size=40)


@settings(max_examples=60, deadline=None)
@given(NASTY)
def test_any_name_in_every_field_stays_text(name: str) -> None:
    text = render(everywhere(hand_made(complete=False, open_=True), name))
    assert_harmless(text)


@pytest.mark.parametrize("character", ["x", "|", "<", '&"', "\x1b", "`", "@a", "é "], ids=ascii)
def test_a_huge_hostile_audit_fits(character: str) -> None:
    name = character * (10_000 // len(character))
    small = everywhere(hand_made(complete=False, open_=True), name)
    (node,), workload, finding, action = small.nodes, small.workloads[0], small.findings[0], small.actions[0]
    (known, *_) = node.known.values()
    text = render(
        replace(
            small,
            nodes=tuple(
                replace(node, allocatable_milli=i, known={f"{n}{name}": known for n in range(60)}) for i in range(60)
            ),
            workloads=(workload,) * 60,
            findings=tuple(replace(finding, id=f"{i}", rule=f"{i}{name}") for i in range(60)),
            actions=tuple(replace(action, id=f"{i}", run=(name,) * 60, alternatives=(name,) * 60) for i in range(60)),
            questions=small.questions * 60,
            target=replace(small.target, assumptions=(name,) * 60, thresholds={f"{i}{name}": 1.0 for i in range(60)}),
            coverage=replace(
                small.coverage,
                gaps=small.coverage.gaps * 60,
                notes=(name,) * 60,
                pods_without_node=(name,) * 60,
                workload_names={f"{i}{name}": name for i in range(60)},
                ignored_kinds={f"{i}{name}": i for i in range(60)},
            ),
        )
    )
    assert len(text.encode()) <= MOST
    assert_harmless(text)


def test_a_command_with_fences_or_lines_stays_one_block() -> None:
    nasty = "echo '```'\n````\nrm -rf x"
    audit = recorded()
    text = render(replace(audit, actions=(replace(audit.actions[0], run=(nasty,)),)))
    assert [token.content for token in parsed(text) if token.type == "fence"] == [f"{nasty}\n"]


def test_the_same_bytes_each_time() -> None:
    assert render(recorded()) == render(recorded())
