"""The HTML report as text: what it holds, what it escapes, what it cuts. The browser's view is in test_browser.py."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import Audit
from kubectl_cgaudit.report.html import MOST, _environment, render
from tests.hostile import HOSTILE, hand_made
from tests.support import V1, audited, cluster, container, node, pod, recorded_audit, recorded_blind

VOID = {"meta", "br", "img", "input", "link", "hr"}
DRAWN = {"svg", "rect", "line", "polyline", "polygon", "circle", "path", "text", "desc"}
ALLOWED = DRAWN | set(
    """html head meta title style script body header main footer nav section article figure h1 h2 h3 p ul ol li a b i strong
    span code div table caption thead tbody tr th td details summary dfn""".split()  # noqa: SIM905
)
OF_DRAWINGS = {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "d", "points", "width", "height", "viewbox"}
ATTRIBUTES = OF_DRAWINGS | set(
    """lang charset http-equiv content name class role aria-label aria-labelledby aria-hidden href rel id tabindex scope open
    data-label data-workload data-effect data-value""".split()  # noqa: SIM905
)
DOCS = "https://github.com/kubectl-cgaudit/kubectl-cgaudit/blob/main/docs/"


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


def unknown_audit() -> Audit:
    return audited(recorded_blind())


def rows(text: str) -> list[str]:
    """The workloads' rows."""
    return re.findall(r'<tr class="workload [\s\S]*?</tr>', text)


def digest(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


@pytest.mark.parametrize("audit", [recorded_audit(), unknown_audit(), hand_made(), hand_made(complete=False)])
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
    inner = [link[1:] for link in links if link.startswith("#")]
    outer = [link for link in links if not link.startswith("#")]
    assert inner
    assert outer
    assert set(inner) <= set(ids)
    assert [link for link in outer if not link.startswith(DOCS)] == []
    named = [attrs["aria-labelledby"] or "" for _, attrs in page.tags if "aria-labelledby" in attrs]
    assert named
    assert {each for name in named for each in name.split()} <= set(ids)
    pictures = [attrs for tag, attrs in page.tags if tag == "svg"]
    assert pictures
    assert all(attrs.get("aria-hidden") == "true" or attrs.get("role") == "img" for attrs in pictures)
    assert not re.search(r"url\(|@import|javascript:|<script[^>]", text)
    assert {attrs.get("scope") for tag, attrs in page.tags if tag == "th"} == {"row", "col"}


def test_a_tile_of_one_workload_speaks_of_one() -> None:
    one = Page(render(audited(cluster(node(), pod("p", container("app", "1"))), V1, "v2"))).text
    assert "▼ 1workload: loses against system processes" in one
    assert "= 0workloads: nothing changes beyond the thresholds" in one
    lost = Page(render(audited(cluster(node(), pod("p", container("app", "1"))), V1, "kubelet=1.35"))).text
    assert "✖ 1workload: does not run after the move" in lost


def test_recorded_cluster() -> None:
    audit = recorded_audit()
    text = render(audit)
    page = Page(text)
    assert audit.verdict.sentence.startswith(
        "5 of 15 workloads lose CPU priority against system processes; worst is shop/checkout on worker-c, from 1.29 to "
        "0.492 times system.slice (-62%; from 27% to 20% of the full node). In 5 workloads (3 of which also lose) CPU moves "
    )
    assert text.count(f'<p class="verdict">{audit.verdict.sentence.replace("->", "→")}</p>') == 1
    found = [re.search(r'<th scope="row">(?:<a href="#w\d+">)?(.*?)(?:</a>)?<span', row) for row in rows(text)]
    changed = [workload.title for workload in audit.workloads if workload.effect != "none"]
    assert [match[1] for match in found if match] == changed
    assert len(found) == 12
    assert "3 workloads with no change beyond the thresholds" in page.text
    assert "platform/build-farm Deployment, 1 pod, stated" in page.text
    assert "▼ 5workloads: lose against system processes" in page.text
    assert "? 0workloads: cannot be said" in page.text
    assert "⇄ 2workloads: CPU moves inside the pod, nothing worse" in page.text
    assert (
        '<rect class="pods" x="0.00%" width="78.72%" height="22"/><rect class="system" x="78.72%" width="21.28%"'
        in text
    )
    assert (
        '<rect class="pods" x="0.00%" width="59.18%" height="22"/><rect class="system" x="59.18%" width="40.82%"'
        in text
    )
    assert "pods 79%, system 21%; kubepods 3788 : system.slice 1024 = 3.7 : 1" in page.text
    assert "<code>systemctl set-property system.slice CPUWeight=39</code>" in text
    assert "platform/waiting-for-gpu" in page.text
    assert "cgroup version: certain on 1, stated on 2 of 3 nodes" in page.text
    assert "weight of system.slice: stated on 1, probable on 2 of 3 nodes" in page.text
    assert "Nothing: all that was asked for was read. 1 pod without a node could not be predicted." in page.text
    assert "INCOMPLETE" not in text
    for finding in audit.findings:
        assert finding.subject.title in page.text
        assert f'<a href="{DOCS}findings/{finding.rule}.md"' in text
        assert f'id="{finding.rule}"' in text


def test_the_worst_workload_is_explained_and_pictured() -> None:
    text = render(recorded_audit())
    look = Page("<div>" + text.split('<details class="card look" open>')[1].split("</details>")[0] + "</div>")
    assert (
        "At the root of the tree pods : system.slice goes 3.7 : 1 → 1.45 : 1 (3788 : 1024 → 145 : 100), because worker-c goes "
        "from cgroup v1 to v2. So it has 1.29 → 0.492 times the CPU of system.slice. Inside the pod app goes from 91% to 85% "
        "(-6.0%): the runtime writes other weights, which only its containers share."
    ) in look.text
    assert (
        "root of the node: all pods 79%, system.slice 21%; QoS class: Guaranteed 38%, Burstable 62%, BestEffort 0.06%; "
        "pod: this pod 56%, 3 others 44%; container: app 91%, istio-proxy 9.1%"
    ) in look.text
    assert "this pod, of the Burstable podskubelet56%55%" in look.text.replace(" kubelet", "kubelet")
    assert "kubectl cgaudit explain shop/checkout-d5491e7e7-22276" in look.text


def test_every_container_is_there() -> None:
    audit = recorded_audit()
    text = render(audit)
    appendix = text.split('id="containers"')[1]
    assert "42 containers; pods of a workload that show the same are one row" in appendix
    for workload in audit.workloads:
        for each in workload.pods:
            for of_pod in each.containers:
                assert f"<td>{of_pod.name}" in appendix
    assert (
        "<td>checkout-d5491e7e7-22276 on worker-c</td><td>app</td><td></td><td>shares 1024 (1 x) → weight 100 (1 x)</td>"
        "<td>25% → 17%</td><td>1.17 → 0.421</td><td>91% → 85%</td><td>no limit</td></tr>"
    ) in appendix


def test_unknown_is_never_drawn_as_unchanged() -> None:
    audit = unknown_audit()
    text = render(audit)
    assert audit.verdict.sentence in text
    found = rows(text)
    assert len(found) == 15
    for row in found:
        assert row.startswith('<tr class="workload unknown"')
        assert 'class="effect unknown"' in row
        assert "cannot be said" in row
        assert "nothing changes" not in row
        assert "only the number" not in row
        assert 'class="effect none"' not in row
    assert 'class="tile none zero"' in text
    assert text.count('<p class="when">? if cgroup v1</p>') == 3
    assert "For 15 workloads it cannot be said what they gain or lose." in Page(text).text
    assert "? unknown on 3" in Page(text).text


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
    for given, wanted in zip(page.tags, expected.tags, strict=False):
        if given[0] != "code" and wanted[0] != "code":
            assert {k: v for k, v in given[1].items() if k in OF_DRAWINGS | {"id", "href", "class"}} == {
                k: v for k, v in wanted[1].items() if k in OF_DRAWINGS | {"id", "href", "class"}
            }
        else:
            break
    assert max(map(len, text.splitlines())) < 15_000


def test_whatever_a_template_writes_is_visible_and_escaped() -> None:
    template = _environment().from_string("{{ text }}|{{ [text] | join(' ') }}|{{ text | marked }}")
    assert template.render(text="<\x1b\u202e>") == "|".join([r"&lt;\x1b\u202e&gt;"] * 3)


def test_template_words_in_names_are_not_run() -> None:
    text = Page(render(hand_made("{{ 7*7 }}"))).text
    assert "{{ 7*7 }}" in text
    assert "49" not in text


def test_a_rule_of_a_hostile_file_makes_no_link_and_no_id() -> None:
    audit = hand_made()
    (finding, *_) = audit.findings
    text = render(replace(audit, findings=(replace(finding, rule='CGA201" onclick="x'),)))
    assert "onclick=&#34;x" in text
    assert 'id="CGA201' not in text
    assert "findings/CGA201" not in text


def test_incomplete_audit_says_so_first() -> None:
    text = render(hand_made("lost", complete=False))
    assert text.index("INCOMPLETE.</strong> This is not in the numbers") < text.index("<main>")
    assert text.count("<li><strong>lost</strong>: lost. lost.</li>") == 2
    assert "<strong>INCOMPLETE: 1 gap</strong>" in text
    assert "Complete: everything that was asked for was read." not in text
    assert "INCOMPLETE" not in render(hand_made("lost"))


def test_others_at_the_root_have_their_part_of_the_bar() -> None:
    audit = hand_made()
    node = audit.nodes[0]
    shared = replace(node, before=replace(node.before, pods_share=0.5, system_share=0.3))
    text = render(replace(audit, nodes=(shared,)))
    assert (
        '<rect class="pods" x="0.00%" width="50.00%" height="22"/><rect class="others" x="50.00%" width="20.00%" height="22"/>'
        '<rect class="system" x="70.00%" width="30.00%" height="22"/>'
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


def many(count: int, name: str = "w") -> Audit:
    """An audit of `count` workloads of one pod, each on a node of its own; every fifth node has a name of its group."""
    audit = hand_made(name)
    workload, node, finding = audit.workloads[0], audit.nodes[0], audit.findings[0]
    (pod, *_) = workload.pods
    assert workload.against_system is not None
    assert workload.inside_pod is not None
    workloads = [
        replace(
            workload,
            name=f"{name}-{index}",
            pods=(replace(pod, name=f"{name}-{index}-0", node=f"n-{index // 6}"),),
            against_system=replace(workload.against_system, pod=f"{name}-{index}-0", node=f"n-{index // 6}"),
            inside_pod=replace(workload.inside_pod, pod=f"{name}-{index}-0"),
        )
        for index in range(count)
    ]
    nodes = [replace(node, name=f"n-{index}", allocatable_milli=4000 + index % 7) for index in range(count // 6)]
    findings = [replace(finding, subject=replace(finding.subject, name=each.name)) for each in workloads]
    return replace(audit, workloads=tuple(workloads), nodes=tuple(nodes), findings=tuple(findings))


def test_a_large_cluster_is_cut_and_the_page_says_so() -> None:
    text = render(many(30_000))
    page = Page(text)
    assert len(text.encode()) < MOST
    assert len(rows(text)) == 1500
    in_full = "all of it: -o json=FILE, of containers also -o csv=FILE, in the same run or with kubectl cgaudit report."
    for left_out in ("28500 more workloads that change", "29940 more findings of this rule"):
        assert f"{left_out} not shown here; {in_full}" in page.text
    assert f"The rest is not shown here; {in_full}" in page.text
    assert re.findall(r"<h3>(\d+) nodes: (n-\d+) and", text) == [("715", "n-0"), ("715", "n-1")] + [
        ("714", f"n-{index}") for index in range(2, 7)
    ]
    assert page.text.count("and 655 more.") == 2
    assert page.text.count("Pictured are the worst 40.") == 1


def test_long_names_everywhere_still_fit() -> None:
    text = render(many(6_000, "<&" * 5_000))
    assert len(text.encode()) < 5_000_000
    assert "more workloads that change" in text


def test_what_stops_sorts_as_the_worst_and_not_as_what_stays() -> None:
    pods = pod("p", container("c", "50m")), pod("q", container("c", "50m"), on="n2")
    states = "- {cgroup: v2, runtimes: {default: runc 1.2.6}}\n- {match: {name: n1}, cgroup: v1}"
    result = audited(cluster(node(kubelet="v1.33.1"), node("n2", kubelet="v1.33.1"), *pods), states, "kubelet=1.35")
    stops, stays = result.workloads
    page = render(replace(result, workloads=(stops, replace(stays, effects=("nominal",)))))
    cells = 'data-label="(Against system|Inside the pod)" data-value="(.*?)">(?:<b>)?(.*?)<'
    assert re.findall(cells, page) == [
        ("Against system", "-2.0", "stops"),
        ("Inside the pod", "", "stops"),
        ("Against system", "0.0", "0%"),
        ("Inside the pod", "0.0", "0%"),
    ]


def test_hints_are_those_of_every_node_of_a_group() -> None:
    result = audited(cluster(node("a"), node("b"), node("c")))
    hints = ("os one: a hint at v2",), ("os two: a hint at v2",), ("os two: a hint at v2",)
    page = render(replace(result, nodes=tuple(map(lambda of, said: replace(of, hints=said), result.nodes, hints))))
    assert "<h3>3 nodes: a and 2 others</h3>" in page
    assert re.findall("Hint: os (.*?):", page) == ["one", "two"]
