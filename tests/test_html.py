import re
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import Audit
from kubectl_cgaudit.report.html import _environment, render
from tests.support import audited, recorded_audit, recorded_blind
from tests.test_markdown import HOSTILE, hand_made

VOID = {"meta", "br", "img", "input", "link", "hr"}
ALLOWED = set(
    """html head meta title style body header main footer nav section article h1 h2 h3 p ul ol li a b i strong span code div
    table caption thead tbody tr th td details summary""".split()  # noqa: SIM905
)
ATTRIBUTES = set(
    """lang charset http-equiv content name class role aria-label aria-labelledby aria-hidden href id tabindex scope
    data-label style""".split()  # noqa: SIM905
)


class Page(HTMLParser):
    """The tags, attributes and text of a page; raises where a tag is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.declarations: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    def handle_decl(self, decl: str) -> None:
        self.declarations.append(decl)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def count(self, tag: str, **wanted: str) -> int:
        """How many tags there are with these attributes."""
        asked = {key.rstrip("_"): value for key, value in wanted.items()}
        return sum(name == tag and all(attrs.get(k) == v for k, v in asked.items()) for name, attrs in self.tags)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.texts))


def unknown_audit() -> Audit:
    return audited(recorded_blind())


def rows(text: str) -> list[str]:
    """The workloads' rows."""
    return re.findall(r'<tr class="workload [\s\S]*?</tr>', text)


@pytest.mark.parametrize("audit", [recorded_audit(), unknown_audit(), hand_made(), hand_made(complete=False)])
def test_page_is_whole_and_needs_nothing(audit: Audit) -> None:
    text = render(audit)
    page = Page(text)
    assert text.startswith('<!doctype html>\n<html lang="en">\n')
    assert page.open == []
    assert page.declarations == ["doctype html"]
    assert {tag for tag, _ in page.tags} <= ALLOWED
    assert {key for _, attrs in page.tags for key in attrs} <= ATTRIBUTES
    policy = [attrs["content"] for _, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"]
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids)) == 10
    links = [attrs["href"] for _, attrs in page.tags if "href" in attrs]
    assert links == [f"#{id_}" for id_ in ids]
    assert all(attrs["aria-labelledby"] in ids for _, attrs in page.tags if "aria-labelledby" in attrs)
    styles = {attrs["style"] for _, attrs in page.tags if "style" in attrs}
    assert styles
    assert all(re.fullmatch(r"width:\d+(\.\d+)?%", style or "") for style in styles)
    assert "<script" not in text
    assert not re.search(r"url\(|@import|javascript:", text)
    assert all(attrs.get("scope") in ("row", "col") for tag, attrs in page.tags if tag == "th")


def test_recorded_cluster() -> None:
    audit = recorded_audit()
    text = render(audit)
    page = Page(text)
    assert text.count(f'<p class="verdict">{audit.verdict.sentence}</p>') == 1
    found = [re.search(r'<th scope="row">(.*?)<span', row) for row in rows(text)]
    assert [match[1] for match in found if match] == [workload.title for workload in audit.workloads]
    assert len(found) == 15
    assert "▼ 5workloads: lose against system processes" in page.text
    assert "? 0workloads: cannot be said" in page.text
    assert page.count("details", class_="pod") == 27
    assert '<i class="pods" style="width:78.72%"></i><i class="system" style="width:21.28%"></i>' in text
    assert '<i class="pods" style="width:59.18%"></i><i class="system" style="width:40.82%"></i>' in text
    assert "pods 79%, system 21%; kubepods 3788 : system.slice 1024 = 3.7 : 1" in page.text
    assert "<code>systemctl set-property system.slice CPUWeight=39</code>" in text
    assert "platform/waiting-for-gpu" in page.text
    assert "INCOMPLETE" not in text
    for finding in audit.findings:
        assert finding.subject.title in page.text


def test_every_container_is_there() -> None:
    audit = recorded_audit()
    text = render(audit)
    containers = sum(len(pod.containers) for workload in audit.workloads for pod in workload.pods)
    appendix = text.split('id="containers"')[1]
    assert appendix.count('<tr><th scope="row">') == containers + 27
    assert (
        '<tr><th scope="row">app (app)</th><td>always</td><td>shares 1024 (1 x) → weight 100 (1 x)</td>'
        '<td class="num">25% → 17%</td><td class="num">1.17 → 0.421</td><td class="num">91% → 85%</td>'
        '<td class="num">no limit</td></tr>'
    ) in appendix


def test_unknown_is_never_drawn_as_unchanged() -> None:
    audit = unknown_audit()
    text = render(audit)
    assert audit.verdict.sentence in text
    found = rows(text)
    assert len(found) == 15
    for row in found:
        assert row.startswith('<tr class="workload unknown">')
        assert 'class="effect unknown"' in row
        assert "cannot be said" in row
        assert "nothing changes" not in row
        assert "only the number" not in row
        assert 'class="effect none"' not in row
    assert 'class="tile none zero"' in text
    assert text.count('<p class="when">? if cgroup v1</p>') == 3
    assert "For 15 workloads the effect cannot be said." in Page(text).text


def test_unknown_has_a_colour_of_its_own() -> None:
    text = render(hand_made())
    tones = dict(re.findall(r"--(loses|unknown|moves|gains|none): (#[0-9a-f]{6})", text))
    assert len(set(tones.values())) == 5


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("complete", [True, False])
def test_hostile_names_stay_text(name: str, complete: bool) -> None:
    when = ("cgroup v1, x", "cgroup v2, x")
    text = render(hand_made(name, complete=complete, when=when))
    plain = render(hand_made(complete=complete, when=when))
    page, expected = Page(text), Page(plain)
    kept = [tag for tag, _ in page.tags if tag != "code"]
    assert kept == [tag for tag, _ in expected.tags if tag != "code"]
    assert {key for _, attrs in page.tags for key in attrs} <= ATTRIBUTES
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]", text)
    assert len(text.splitlines()) == len(plain.splitlines())
    assert all(
        attrs["style"] in {a.get("style") for _, a in expected.tags} for _, attrs in page.tags if "style" in attrs
    )
    assert max(map(len, text.splitlines())) < 9_500


def test_whatever_a_template_writes_is_visible_and_escaped() -> None:
    template = _environment().from_string("{{ text }}|{{ [text] | join(' ') }}|{{ text | marked }}")
    assert template.render(text="<\x1b\u202e>") == "|".join([r"&lt;\x1b\u202e&gt;"] * 3)


def test_template_words_in_names_are_not_run() -> None:
    text = Page(render(hand_made("{{ 7*7 }}"))).text
    assert "{{ 7*7 }}" in text
    assert "49" not in text


def test_incomplete_audit_says_so_first() -> None:
    text = render(hand_made("lost", complete=False))
    assert text.index("INCOMPLETE.</strong> This could not be read") < text.index("<main>")
    assert "<li><strong>lost</strong>: lost. lost.</li>" in text
    assert "<strong>INCOMPLETE: 1 gap</strong>" in text
    assert "Complete: everything that was asked for was read." not in text
    assert "INCOMPLETE" not in render(hand_made("lost"))


def test_others_at_the_root_have_their_part_of_the_bar() -> None:
    audit = hand_made()
    node = audit.nodes[0]
    case = node.cases[0]
    shared = replace(case, before=replace(case.before, pods_share=0.5, system_share=0.3))
    text = render(replace(audit, nodes=(replace(node, cases=(shared,)),)))
    assert (
        '<i class="pods" style="width:50.00%"></i><i class="others" style="width:20.00%"></i>'
        '<i class="system" style="width:30.00%"></i>'
    ) in text
    assert "other cgroups 20%" in Page(text).text
    assert "other cgroups" not in Page(render(audit)).text


def test_the_same_audit_gives_the_same_page_and_its_time_only_if_it_has_one() -> None:
    audit = hand_made()
    assert render(audit) == render(hand_made())
    assert "2026" not in render(audit)
    assert render(replace(audit, generated_at="2026-01-30T12:00:00Z")).count("2026-01-30T12:00:00Z") == 2


def test_an_audit_of_nothing() -> None:
    text = Page(render(replace(hand_made(), nodes=(), workloads=(), findings=()))).text
    assert "No Linux node was audited." in text
    assert "No workload was audited: nothing can be said about workloads." in text
