"""The HTML report as text: what it holds, what it escapes, what it cuts."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from lxml import html as lxml_html
from msgspec.structs import replace

from kubectl_cgaudit.audit.model import Audit
from kubectl_cgaudit.report.html import LIMITS, MOST, _environment, render
from kubectl_cgaudit.report.rules import DOCS
from tests.hostile import HOSTILE, everywhere, hand_made, many
from tests.pages_support import blind, recorded

VOID = {"meta", "br", "img", "input", "link", "hr"}
ALLOWED = set(
    """html head meta title style script body header main footer section article h1 h2 h3 p ul li a b strong span code pre div
    table thead tbody tr th td details summary svg rect dl dt dd""".split()  # noqa: SIM905
)
ATTRIBUTES = set(
    """lang charset http-equiv content name class role aria-label aria-labelledby href rel id tabindex scope width height
    data-label data-workload data-effect data-value""".split()  # noqa: SIM905
)


class Page(HTMLParser):
    """The tags, attributes and text of a page; raises where a tag is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.raw: dict[str, str] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script"):
            self.raw[self.open[-1]] = self.raw.get(self.open[-1], "") + data
        elif self.open:
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.texts))


def digest(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def words(text: str, query: str) -> list[str]:
    """The texts of what an XPath finds, blanks collapsed."""
    found = lxml_html.fromstring(text).xpath(query)
    return [re.sub(r"\s+", " ", each if isinstance(each, str) else each.text_content()).strip() for each in found]


@pytest.mark.parametrize(
    "audit",
    [recorded(), blind(), hand_made(), hand_made(complete=False, open_=True)],
    ids=["recorded", "blind", "made", "open"],
)
def test_page_is_whole_and_needs_nothing(audit: Audit) -> None:
    text = render(audit)
    page = Page(text)
    assert text.startswith('<!doctype html>\n<html lang="en">\n')
    assert page.open == []
    assert {tag for tag, _ in page.tags} <= ALLOWED
    assert {key for _, attrs in page.tags for key in attrs} <= ATTRIBUTES
    (policy,) = [attrs["content"] for _, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert policy == (
        f"default-src 'none'; style-src {digest(page.raw['style'])}; script-src {digest(page.raw['script'])}; "
        "base-uri 'none'; form-action 'none'"
    )
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] or "" for _, attrs in page.tags if "href" in attrs]
    inner = {link[1:] for link in links if link.startswith("#")}
    outer = [link for link in links if not link.startswith("#")]
    assert inner
    assert inner <= set(ids)
    assert outer
    assert [link for link in outer if not link.startswith(DOCS)] == []
    assert not re.search(r"url\(|@import|javascript:|<script[^>]", text)
    assert {attrs.get("scope") for tag, attrs in page.tags if tag == "th"} == {"row", "col"}


def test_the_first_screen_of_the_recorded_cluster() -> None:
    text = render(recorded())
    assert words(text, "//ul[@class='meta']/li") == [
        "CPU priority audit",
        "Cluster: nodes.json, pods.json, workloads.json, runtimeclasses.json",
        "Target: v2+runtime",
        "Date: 2026-01-30T12:00:00Z",
        "3 nodes, 27 pods, 15 workloads, all read",
    ]
    (title,) = words(text, "//h1")
    assert title.startswith("5 of 15 workloads lose CPU to system services")
    assert words(text, "//ul[@class='chips']/li") == [
        "5 high",
        "2 medium",
        "15 low",
        "cgroup version: certain on 1, stated on 2 of 3 nodes",
    ]
    assert words(text, "//section[@aria-labelledby='affected']//h2") == ["Who is affected, all on worker-c"]
    assert words(text, "//section[@aria-labelledby='affected']//tbody/tr") == [
        "shop/checkout1 of 327% → 20%-62%",
        "data/postgres1 of 230% → 22%-61%",
        "shop/payments1 of 216% → 12%-61%",
        "kube-system/kube-proxy1 of 32.5% → 1.9%-61%",
        "platform/node-exporter1 of 32.8% → 2.3%-56%",
    ]
    assert words(text, "//section[@aria-labelledby='where']//tbody/tr") == [
        "worker-cv1 → v279% → 59%",
        "worker-av259%",
        "worker-bv287%",
    ]


def test_an_action_has_its_command_its_effect_as_a_third_bar_and_its_findings() -> None:
    document = lxml_html.fromstring(render(recorded()))
    (card,) = document.xpath("//article[@id='system-weight:worker-c']")
    assert card.xpath("string(.//h3)") == "1. Give system.slice weight 39 on worker-c"
    assert card.xpath("string(.//p[@class='for'])") == "clears 5 high · node owners"
    assert card.xpath(".//pre/code/text()") == ["systemctl set-property system.slice CPUWeight=39"]
    assert card.xpath(".//svg/@aria-label") == [
        "All pods: CPU of full worker-c, now: 79% of the node's CPU",
        "All pods: CPU of full worker-c, after: 59% of the node's CPU",
        "All pods: CPU of full worker-c, with action 1: 79% of the node's CPU",
    ]
    assert card.xpath(".//rect[@class='pods']/@width") == ["78.72%", "59.18%", "78.80%"]
    assert card.xpath(".//details//a/@href") == [f"#{each}" for each in recorded().actions[0].clears]
    (loss,) = document.xpath("//li[@id='CGA201:shop/Deployment/checkout']")
    assert loss.xpath(".//a/@href") == ["#system-weight:worker-c"]


def test_everything_else_is_folded() -> None:
    document = lxml_html.fromstring(render(recorded()))
    assert document.xpath("//section[starts-with(@class, 'fold')]/details/summary/h2/text()") == [
        "Workloads",
        "Findings by rule",
        "Nodes",
        "Questions and commands",
        "Assumptions and thresholds",
        "Coverage",
        "Method",
        "As Markdown",
    ]
    assert document.xpath("//details[@open]") == []
    for finding in recorded().findings:
        assert document.xpath(f"count(//li[@id='{finding.id}'])") == 1


def test_more_than_three_actions_are_folded() -> None:
    first, *rest = recorded().actions
    five = (first, *(rest * 4)[:2], *(replace(first, id=f"other:{n}") for n in range(2)))
    document = lxml_html.fromstring(render(replace(recorded(), actions=five)))
    assert document.xpath("//details[@class='others']/summary/text()") == ["2 more actions: 4 to 5"]
    assert len(document.xpath("//details[@class='others']/article")) == 2


def test_without_actions_the_questions_come_first() -> None:
    text = render(replace(blind(), actions=()))
    assert words(text, "//section[@aria-labelledby='actions']/p") == ["No action is proposed. Settle first:"]
    assert words(text, "//section[@aria-labelledby='actions']//pre")[0] == "stat -fc %T /sys/fs/cgroup"
    assert words(text, "//li[@class='chip open']") == ["5 open questions"]


def test_unknown_is_never_shown_as_unchanged() -> None:
    rows = lxml_html.fromstring(render(blind())).xpath("//table[@id='workloads-table']/tbody/tr")
    assert len(rows) == 15
    for row in rows:
        assert row.get("data-effect").split()[0] == "unknown"
        assert "depends on what is not known" in row.text_content()
    nodes = words(render(blind()), "//section[@aria-labelledby='where']//tbody/tr/th")
    assert nodes[:2] == ["worker-bif cgroup v2", "worker-bif cgroup v1"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("complete", [True, False])
def test_hostile_names_stay_text(name: str, complete: bool) -> None:
    text, plain = (render(hand_made(each, complete=complete, open_=True)) for each in (name, "web"))
    page, expected = Page(text), Page(plain)
    assert [tag for tag, _ in page.tags if tag != "code"] == [tag for tag, _ in expected.tags if tag != "code"]
    assert {key for _, attrs in page.tags for key in attrs} <= ATTRIBUTES
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]", text)
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert all(re.fullmatch(r"[A-Za-z][\w.:/-]*", str(each), re.ASCII) for each in ids)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", [*HOSTILE, "CGA201", "actions", "markdown"], ids=range(len(HOSTILE) + 3))
def test_a_name_in_every_field_stays_text(name: str) -> None:
    page = Page(render(everywhere(hand_made(complete=False, open_=True), name)))
    assert page.open == []
    assert {tag for tag, _ in page.tags} <= ALLOWED
    assert {key for _, attrs in page.tags for key in attrs} <= ATTRIBUTES
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [str(attrs["href"]) for _, attrs in page.tags if "href" in attrs]
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert [link for link in links if not link.startswith(("#", DOCS))] == []


def test_whatever_a_template_writes_is_visible_and_escaped() -> None:
    template = _environment().from_string("{{ text }}|{{ [text] | join(' ') }}|{{ text | name }}|{{ text | text }}")
    assert template.render(text="<\x1b\u202e>") == "|".join([r"&lt;\x1b\u202e&gt;"] * 4)


def test_template_words_in_names_are_not_run() -> None:
    text = Page(render(hand_made("{{ 7*7 }}"))).text
    assert "{{ 7*7 }}" in text
    assert "49" not in text


def test_a_rule_of_a_hostile_file_makes_no_link_and_no_id() -> None:
    audit = hand_made()
    (finding, *_) = audit.findings
    text = render(replace(audit, findings=(replace(finding, rule='CGA201" onclick="x'),)))
    assert "onclick=&#34;x" in text
    assert 'id="CGA201"' not in text
    assert "findings/CGA201" not in text


def test_an_incomplete_audit_says_so_first() -> None:
    text = render(hand_made("lost", complete=False))
    assert text.index("INCOMPLETE.</strong> This could not be read and is not in the numbers") < text.index("<main>")
    assert words(text, "//section[@aria-label='Coverage']/details/summary/span") == ["INCOMPLETE"]
    assert "everything that was asked for was read" not in text
    assert "INCOMPLETE" not in render(hand_made("lost"))


def test_the_same_audit_gives_the_same_page_and_its_time_only_if_it_has_one() -> None:
    assert render(hand_made()) == render(hand_made())
    assert "2026" not in render(hand_made())
    assert render(replace(hand_made(), time="2026-01-30T12:00:00Z")).count("2026-01-30T12:00:00Z") == 6


def test_an_audit_of_nothing() -> None:
    nothing = replace(hand_made(), nodes=(), workloads=(), findings=(), actions=(), questions=())
    text = Page(render(nothing)).text
    assert "No Linux node was audited." in text
    assert "No workload loses CPU to system services." in text
    assert "No action is proposed." in text


def test_a_large_cluster_is_cut_and_the_page_says_so() -> None:
    text = render(many(12_000))
    document = lxml_html.fromstring(text)
    assert len(text.encode()) <= MOST
    assert len(document.xpath("//table[@id='workloads-table']/tbody/tr")) == LIMITS.workloads
    in_full = "all of it: -o json=FILE, of containers also -o csv=FILE, in the same run or with kubectl cgaudit report."
    assert words(text, "//p[@class='cut']") == [
        f"1160 more actions are not shown here; {in_full}",
        f"10500 more workloads are not shown here; {in_full}",
        f"11940 more findings are not shown here; {in_full}",
    ]
    assert words(text, "//section[@aria-label='Nodes']//h3")[0] == "286 nodes: n-0, n-7, n-14 and 283 more likely"


def test_long_names_everywhere_still_fit() -> None:
    text = render(many(6_000, "<&" * 5_000))
    assert len(text.encode()) <= 5_000_000
    assert "more workloads are not shown here" in text
