"""Whatever the names in a cluster are, Markdown shows them as text."""

import re

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import (
    Audit,
)
from kubectl_cgaudit.judge.thresholds import Thresholds
from kubectl_cgaudit.report.content import (
    FORMULAS,
)
from kubectl_cgaudit.report.cuts import IN_FULL
from kubectl_cgaudit.report.escape import visible
from kubectl_cgaudit.report.links import HOMEPAGE
from kubectl_cgaudit.report.markdown import MOST, render
from tests.hostile import HOSTILE, hand_made
from tests.markdown_support import section, tables

ROW = re.compile(r"(?<!\\)(?:\\\\)*\|")


CLOSED = {"severity", "effects", "confidence", "version", "cgroup", "beforeUnit", "afterUnit", "qos", "kind"}


CASES = re.compile("cgroup v[12]")


OUR_CODE = {*(formula for _, formula, _ in FORMULAS), *re.findall("`([^`]+)`", IN_FULL), "this"}


def parsed(text: str) -> list[Token]:
    """What GitHub's dialect makes of it: every token, also those inside paragraphs and cells."""
    parser = MarkdownIt("gfm-like")
    assert parser.linkify
    parser.linkify.set({"fuzzy_link": False})
    return [inner for token in parser.parse(text) for inner in (token, *(token.children or ()))]


def shape(text: str) -> list[str]:
    """The blocks of a document, in order."""
    return [token.type for token in parsed(text) if token.block and token.type != "inline"]


def assert_harmless(text: str) -> None:
    """No markup but our own, in GitHub's dialect and in the plain text."""
    tokens = parsed(text)
    html = "".join(token.content for token in tokens if token.type in ("html_block", "html_inline"))
    assert re.fullmatch(r"(<details>\n<summary>[A-Za-z0-9 ,:→]+</summary>\n|</details>\n)*", html)
    assert html.count("<details>") == html.count("</details>")
    assert set(re.findall(r"<[^>]*>?", text)) <= {"<details>", "</details>", "<summary>", "</summary>"}
    links = {str(token.attrs["href"]) for token in tokens if token.type == "link_open"}
    assert links <= {f"{HOMEPAGE}/blob/main/docs/findings/CGA201.md"}
    assert not any(token.type in ("image", "fence", "code_block", "s_open", "em_open") for token in tokens)
    assert {token.content for token in tokens if token.type == "code_inline"} <= OUR_CODE
    for table in tables(text):
        assert len({len(ROW.findall(line)) for line in table}) == 1
    assert not re.search(r"[^\n -\ud7ff\ue000-\U0010ffff]|[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]", text)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("complete", [True, False])
def test_hostile_names_stay_text(name: str, complete: bool) -> None:
    when = ("cgroup v1, x", "cgroup v2, x")
    text, plain = (render(hand_made(each, complete=complete, when=when)) for each in (name, "web"))
    short = len(name) < 1000
    assert [len(table) for table in tables(text)] == [len(table) for table in tables(plain)]
    assert len(text.splitlines()) == len(plain.splitlines()) + (0 if short else 2)
    assert ("Shortened to fit" in text) is not short
    assert not re.search(r"(?<!&)[@#](?=\w)", re.sub(r"\(https[^)]*\)", "", text))
    assert_harmless(text)
    assert max(map(len, text.splitlines())) < 9_500


NASTY = st.text(st.sampled_from("|`<>&*_[]()!#~$@\\\n\r\t\"'-+=.:/? 1ahtpsw\u202e\x00é") | st.characters(), max_size=40)


@settings(max_examples=60, deadline=None)
@example("outweighed-reserve")
@given(NASTY)
def test_any_name_in_every_field_stays_text(name: str) -> None:
    audit = everywhere(hand_made(complete=False, when=("cgroup v1", "cgroup v2")), name)
    text = render(audit)
    assert_harmless(text)
    assert render(audit) == text
    # A threshold's own name is said in words, and any other is shown as it is.
    if visible(name).strip() and name.replace("-", "_") not in Thresholds.__struct_fields__:
        assert shape(text) == shape(render(everywhere(audit, "web")))


def everywhere(audit: Audit, name: str) -> Audit:
    """The audit with this name in place of every string that a file may hold freely, keys of mappings included."""
    return msgspec.convert(_everywhere(msgspec.to_builtins(audit), "", name), Audit)


def _everywhere(value: object, key: str, name: str) -> object:
    if isinstance(value, dict):
        own = key not in ("known", "runtimes", "workloadNames", "ignoredKinds", "thresholds")
        return {k if own else name: _everywhere(each, k, name) for k, each in value.items()}
    if isinstance(value, list):
        return [_everywhere(each, key, name) for each in value]
    if isinstance(value, str) and key not in CLOSED and not CASES.match(value):
        return name
    return value


@pytest.mark.parametrize("character", ["x", "|", "<", '&"', "\x1b", "`", "@a", "é "], ids=ascii)
def test_a_huge_hostile_audit_fits(character: str) -> None:
    name = character * (10_000 // len(character))
    small = everywhere(hand_made(complete=False, when=("cgroup v1", "cgroup v2")), name)
    (node,), workload, finding = small.nodes, small.workloads[0], small.findings[0]
    pod = workload.pods[0]
    containers = tuple(replace(pod.containers[0], name=f"{i}{name}") for i in range(60))
    known = {f"{i}{name}": each for i in range(60) for each in node.known.values()}
    text = render(
        replace(
            small,
            nodes=tuple(replace(node, allocatable_milli=i, known=known, hints=(name, f"{i}{name}")) for i in range(60)),
            workloads=(replace(workload, pods=(replace(pod, containers=containers),), nominal=workload.nominal * 60),)
            * 60,
            findings=tuple(
                replace(finding, rule=f"{i}{name}", remedy=f"{j}{name}") for i in range(60) for j in range(3)
            ),
            verdict=replace(small.verdict, next_steps=(name,) * 60),
            scenario=replace(
                small.scenario, assumptions=(name,) * 60, thresholds={f"{i}{name}": 1.0 for i in range(60)}
            ),
            coverage=replace(
                small.coverage,
                gaps=small.coverage.gaps * 60,
                notes=(name,) * 60,
                unmatched=(name,) * 60,
                pods_without_node=(name,) * 60,
                windows_nodes=(name,) * 60,
                virtual_nodes=(name,) * 60,
                workload_names={f"{i}{name}": name for i in range(60)},
                ignored_kinds={f"{i}{name}": i for i in range(60)},
            ),
        )
    )
    assert len(text) <= MOST
    assert_harmless(text)
    assert "**Left out here:** things not read: " in text


def test_one_backtick_in_a_name_does_not_turn_the_text_around() -> None:
    text = render(hand_made("back`tick <b>"))
    assert "Do \\`this\\` to back\\`tick &lt;b&gt;." in text


def test_only_plain_words_between_backticks_are_code() -> None:
    small = hand_made()
    steps = ("Run `systemctl x=1` now.", "Run `<b>` now.", "See `http://evil.example`.", "Say `a|b`.", "`")
    text = render(replace(small, verdict=replace(small.verdict, next_steps=steps)))
    assert section(text, "Next steps").strip().splitlines() == [
        "1. Run `systemctl x=1` now.",
        "2. Run \\`&lt;b&gt;\\` now.",
        "3. See \\`http:&#8203;//evil.example\\`.",
        "4. Say \\`a\\|b\\`.",
        "5. \\`",
    ]
