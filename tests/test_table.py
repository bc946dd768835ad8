"""The terminal's table at every width."""

import itertools
import textwrap
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import Audit, ContainerAudit, GapRecord, NodeAudit, PodAudit, WorkloadAudit
from kubectl_cgaudit.judge.rules import coverage as coverage_rule
from kubectl_cgaudit.report import nodes, table, table_nodes
from kubectl_cgaudit.report.screen import Column, Screen, columns, cut, grid, middle, wrap
from tests.support import V2_LINEAR, audited, cluster, container, node, pod, recorded_audit, recorded_blind, rendered

RECORDED = recorded_audit()
BLIND = audited(recorded_blind())
HOSTILE = st.one_of(
    st.text(st.characters(), min_size=1, max_size=60),
    st.text("東京😀é\u0301\x1b[31m\u202e\n a-", min_size=1, max_size=300),
)


def renamed(audit: Audit, name: Callable[[str], str]) -> Audit:
    """The audit with every name that comes from the cluster replaced."""

    def of_container(each: ContainerAudit) -> ContainerAudit:
        return replace(each, name=name(each.name))

    def of_pod(each: PodAudit) -> PodAudit:
        return replace(each, name=name(each.name), containers=tuple(map(of_container, each.containers)))

    def of_workload(each: WorkloadAudit) -> WorkloadAudit:
        change, system = each.inside_pod, each.against_system
        return replace(
            each,
            name=name(each.name),
            namespace=name(each.namespace),
            kind=name(each.kind),
            pods=tuple(map(of_pod, each.pods)),
            inside_pod=change and replace(change, container=name(change.container or "")),
            against_system=system and replace(system, pod=name(system.pod), node=name(system.node)),
            nominal=tuple(replace(nominal, container=name(nominal.container)) for nominal in each.nominal),
        )

    def of_node(each: NodeAudit) -> NodeAudit:
        return replace(each, name=name(each.name))

    findings = tuple(
        replace(f, subject=replace(f.subject, name=name(f.subject.name)), seen=f"{name('x')}: {f.seen}")
        for f in audit.findings
    )
    gaps = tuple(replace(gap, what=name(gap.what)) for gap in audit.coverage.gaps)
    return replace(
        audit,
        workloads=tuple(map(of_workload, audit.workloads)),
        nodes=tuple(map(of_node, audit.nodes)),
        findings=findings,
        coverage=replace(audit.coverage, source=name(audit.coverage.source), gaps=gaps),
    )


def displayed(line: str) -> int:
    """How many columns a terminal needs."""
    return sum(
        2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.category(c) in ("Mn", "Me") else 1
        for c in line
    )


def rows(text: str, *beginnings: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(beginnings)]


def test_at_80_columns() -> None:
    assert rows(
        table.render(RECORDED), "NODE", "worker-c", "WORKLOAD", "shop/checkout d", "platform/node", "data/redis s"
    ) == [
        "NODE      CGROUP    PODS : SYSTEM        CPU FOR PODS  SURE",
        "worker-c  v1 -> v2  3.7 : 1 -> 1.45 : 1  79% -> 59%    stated",
        "WORKLOAD                    PODS  EFFECT        VS SYSTEM  INSIDE POD",
        "shop/checkout deploy           3  loses, moves  -62%..0%   app -6.0%",
        "platform/node-exporter ds      3  loses, moves  -56%..0%   node-exporter -10%",
        "data/redis sts                 1  nominal       0%         redis -4.7%",
    ]


def test_what_is_taken_of_system_slice_is_called_that() -> None:
    said = "system.slice: its default weight is taken, not known, on {}; SURE does not count it."
    assert table_nodes.system_slice(RECORDED.nodes) == said.format("worker-a, worker-c")
    assert table_nodes.system_slice(RECORDED.nodes[:1]) == said.format("every node")
    assert table_nodes.system_slice(RECORDED.nodes[1:2]) == ""


def findings(text: str, rule: str) -> list[str]:
    """What stands under a rule's headline, without its indent."""
    lines = text.splitlines()
    start = next(place for place, line in enumerate(lines) if line[9:].startswith(rule))
    return [lines[start][9:], *(line[9:] for line in itertools.takewhile(lambda s: s[:1] == " ", lines[start + 1 :]))]


def test_what_a_finding_is_about_is_said_once_and_counted_as_what_it_is() -> None:
    gaps = (GapRecord("pods", "not read", "Read them"), GapRecord("node x", "no CPU", "Wait"))
    wide = Screen(1000)
    (title, seen), (both, names, first) = (
        findings(table.render(replace(RECORDED, findings=tuple(coverage_rule.gaps(some))), wide), "CGA001")
        for some in (gaps[:1], gaps)
    )
    assert (title, seen) == ("CGA001 audit incomplete: 1 gap", "pods: not read.")
    assert (both, names, first) == ("CGA001 audit incomplete: 2 gaps", "pods, node x", "pods: not read.")
    told = rendered("wide", replace(RECORDED, findings=tuple(coverage_rule.gaps(gaps))))
    assert findings(told, "CGA001") == ["CGA001 audit incomplete: 2 gaps", "pods: not read.", "node x: no CPU."]
    (if_,) = (replace(each, when="worker-a on v2") for each in coverage_rule.gaps(gaps[:1]))
    assert findings(rendered("wide", replace(RECORDED, findings=(if_,))), "CGA001")[1:] == [
        "pods (worker-a on v2): pods: not read."
    ]
    other = replace(if_, when="", seen="podsling: not read.")
    assert findings(rendered("wide", replace(RECORDED, findings=(other,))), "CGA001")[1:] == [
        "pods: podsling: not read."
    ]


def test_at_120_columns_also_how_sure_and_the_cpu_of_the_node() -> None:
    assert rows(
        table.render(RECORDED, Screen(120)), "WORKLOAD", "shop/checkout d", "platform/node", "data/redis s"
    ) == [
        "WORKLOAD                    PODS  EFFECT        SURE    VS SYSTEM  CPU OF NODE    INSIDE POD",
        "shop/checkout deploy           3  loses, moves  stated  -62%..0%   27% -> 20%     app -6.0%",
        "platform/node-exporter ds      3  loses, moves  stated  -56%..0%   2.8% -> 2.3%   node-exporter -10%",
        "data/redis sts                 1  nominal       stated  0%         15%            redis -4.7%",
    ]


def test_at_200_columns_also_the_worst_pod_and_the_nominal_weight() -> None:
    lines = rows(table.render(RECORDED, Screen(200)), "NODE", "worker-c", "WORKLOAD", "shop/checkout d", "data/redis s")
    assert lines == [
        "NODE      CGROUP    PODS : SYSTEM        KUBEPODS : SYSTEM.SLICE   KUBELET           CPU FOR PODS  SURE",
        "worker-c  v1 -> v2  3.7 : 1 -> 1.45 : 1  3788 : 1024 -> 145 : 100  1.33.13 (linear)  79% -> 59%    stated",
        "WORKLOAD                    PODS  EFFECT        SURE    VS SYSTEM  CPU OF NODE    "
        "WORST POD                                               INSIDE POD          NOMINAL",
        "shop/checkout deploy           3  loses, moves  stated  -62%..0%   27% -> 20%     "
        "1.29 -> 0.492 (checkout-d5491e7e7-22276 on worker-c)    app -6.0%           app: weight 39..100 -> 100; 3 more…",
        "data/redis sts                 1  nominal       stated  0%         15%            "
        "1.13 -> 1.13 (redis-0 on worker-b)                      redis -4.7%         redis: weight 20 -> 59; 1 more…",
    ]


def test_what_is_cut_is_said() -> None:
    long = renamed(RECORDED, lambda name: name + "-with-a-name-that-goes-on-and-on")
    text = table.render(long)
    assert "3 workloads unchanged, cells cut at …: -o wide shows all.\n" in text
    assert "cut at" not in table.render(RECORDED)
    lines = text.splitlines()
    name = "shop-with-a-name-that-goes-on-and-on/payments-with-a-name-that-goes-on-and-on"
    place = lines.index(name)
    assert lines[place + 1] == "deployment-with-a-name-that-goes-on-and-on"
    assert lines[place + 2].endswith("   2  loses, moves  -61%..0%   payments-with-a… -15%")
    worker = lines.index("worker-c-with-a-name-that-goes-on-and-on")
    assert lines[worker + 1] == " " * 29 + "v1 -> v2  3.7 : 1 -> 1.45 : 1  79% -> 59%    stated"
    assert "platform-with-a-name-that-goes-on-and-on/node-exporter-with-a-name-that-goes-on-and-on" in rendered(
        "wide", long
    )


def test_nodes_are_two_tables_on_a_terminal_too_narrow_for_one() -> None:
    drawn = {
        width: nodes.as_text(RECORDED.nodes, (), evidence=False, events_read=True, screen=Screen(width, terminal=True))
        for width in (80, 200)
    }
    assert max(map(len, drawn[80].splitlines())) <= 80
    assert drawn[200] == nodes.as_text(RECORDED.nodes, (), evidence=False, events_read=True)
    assert drawn[80].splitlines()[:3] == [
        "NODES     CGROUP        HANDLER   RUNTIME",
        "worker-a  v2 (certain)  crun      crun 1.28 (quadratic) (stated)",
        "                        crun-old  crun 1.21 (linear) (stated)",
    ]
    place = drawn[80].splitlines().index("")
    assert drawn[80].splitlines()[place + 1 : place + 4] == [
        "NODES     KUBELET                   SYSTEM.SLICE            SURE",
        "worker-a  v1.36.2 linear (certain)  weight 100 (probable)   stated",
        "worker-b  v1.33.13 linear (stated)  weight 20 (stated)      stated",
    ]


def test_a_name_above_its_row_ends_somewhere() -> None:
    heads = [Column("NAME", middle, 4, whole=True), Column("B")]
    assert list(grid(heads, [["n" * 500, "b" * 70], ["short", "c"]], Screen(80))) == [
        "NAME      B",
        "\n".join([*["n" * 80] * 4, "n" * 79 + "…"]),
        f"          {'b' * 70}",
        "short     c",
    ]


@given(HOSTILE, st.sampled_from((80, 97, 120, 200)), st.booleans())
@example("東" * 200, 80, True)
@example("😀-" * 90, 120, False)
@example("e\u0301" * 300, 80, True)
@example("a b " * 100, 80, True)
@settings(max_examples=120, deadline=None)
def test_no_line_is_wider_than_the_screen(name: str, width: int, drawing: bool) -> None:
    for audit in (RECORDED, BLIND):
        text = table.render(renamed(audit, lambda old: f"{old}{name}"), Screen(width, drawing=drawing))
        assert [line for line in text.splitlines() if displayed(line) > width] == []
        assert drawing or text.isascii()
        assert not set(text) & {"\x1b", "\u202e", "\r"}


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("abc", 3),
        ("東京", 4),
        ("e\u0301", 1),
        ("😀", 2),
        ("❤\ufe0f", 2),
        ("☰", 2),
        ("\U0001f1e9", 2),
        ("é", 1),
        ("", 0),
    ],
)
def test_columns(text: str, taken: int) -> None:
    assert columns(text) == taken


@given(HOSTILE, st.integers(4, 40))
@settings(max_examples=200, deadline=None)
def test_cutting_and_wrapping_keep_to_the_width(name: str, width: int) -> None:
    shown = Screen().shown(name)
    assert columns(shown) >= displayed(shown)
    assert columns(cut(shown, width)) <= width
    assert columns(middle(shown, width)) <= width
    assert all(columns(line) <= width for line in wrap(shown, width).splitlines())


@given(
    st.text("ab -", max_size=120), st.integers(4, 20), st.sampled_from(("", " ", "   ")), st.sampled_from(("", "  "))
)
@example("ab ab", 5, "", "")
@example("ab abab", 5, "", "")
@example("a " * 20 + "abababababab", 10, "  ", "")
@settings(max_examples=500, deadline=None)
def test_plain_text_is_wrapped_as_textwrap_does(text: str, width: int, first: str, rest: str) -> None:
    assert wrap(text, width, first, rest) == textwrap.fill(
        text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


def test_columns_stay_under_their_titles_beside_wide_characters() -> None:
    heads = (Column("NAME", middle), Column("N", right=True), Column("X"))
    assert grid(heads, [("東京", "1", "a"), ("abc", "22", "b"), ("é\u0301", "3", "c")], Screen()) == [
        "NAME   N  X",
        "東京   1  a",
        "abc   22  b",
        "é\u0301      3  c",
    ]


def test_effects_beyond_two_stay_whole() -> None:
    workload = replace(RECORDED.workloads[0], effects=("loses", "unknown", "moves", "gains"))
    (line,) = rows(table.render(replace(RECORDED, workloads=(workload,))), "shop/checkout d")
    assert line == "shop/checkout deploy     3  loses, unknown, moves, gains  -62%..0%   app -6.0%"


def test_wide_has_a_title_over_every_column() -> None:
    lines = rendered("wide", RECORDED).splitlines()
    title = next(line for line in lines if line.startswith("WORKLOAD"))
    row = next(line for line in lines if line.startswith("shop/checkout d"))
    assert title.split("  ")[0] == "WORKLOAD"
    for name, value in (("SURE", "stated"), ("AGAINST SYSTEM", "-62%..0%"), ("NOMINAL WEIGHT", "app: weight 39..100")):
        assert row[title.index(name) :].startswith(value)


def test_wide_names_the_pod_of_each_number_where_they_differ() -> None:
    text = rendered("wide", RECORDED)
    (cart,) = [line for line in text.splitlines() if line.startswith("shop/cart ")]
    assert "0.00507 -> 0.00507 (cart-8bfb4e1aa-af02c on worker-a) " in cart
    assert " 0.02% -> 0.2% (cart-8bfb4e1aa-bf28a on worker-c) " in cart
    (checkout,) = [line for line in text.splitlines() if line.startswith("shop/checkout ")]
    assert "1.29 -> 0.492 (checkout-d5491e7e7-22276 on worker-c)" in checkout
    assert " 27% -> 20%  " in checkout


def test_what_cannot_be_said_of_the_inside_of_a_pod_is_not_drawn_as_nothing() -> None:
    pods = (
        pod("sandboxed", container("app", "1"), container("side", "10m"), runtimeClassName="kata"),
        pod("alone", container("app", "1")),
    )
    result = audited(cluster(node(), *pods), "- {cgroup: v1, runtimes: {default: runc 1.1.5, kata: kata}}")
    assert rows(table.render(result), "WORKLOAD", "default/alone pod", "default/sandboxed pod") == [
        "WORKLOAD               PODS  EFFECT  VS SYSTEM  INSIDE POD",
        "default/alone pod         1  loses   -61%",
        "default/sandboxed pod     1  loses   -60%       ?",
    ]


def test_at_80_columns_a_nodes_name_gives_way_and_not_its_numbers() -> None:
    result = audited(cluster(node("compute-00003.example", "31850m")))
    assert rows(table.render(result), "NODE", "compute-00003.example", "     ")[:4] == [
        "NODE         CGROUP    PODS : SYSTEM         CPU FOR PODS  SURE     WHEN",
        "compute-00003.example",
        "             v2 -> v2  12.4 : 1              93%           unknown  if cgroup v2",
        "             v1 -> v2  31.8 : 1 -> 12.4 : 1  97% -> 93%             if cgroup v1",
    ]


def test_a_virtual_node_may_have_a_kubelet_and_no_cgroups_to_predict() -> None:
    """Those of EKS Fargate run one."""
    fargate = node("f1", labels={"eks.amazonaws.com/compute-type": "fargate"})
    text = rendered("table", audited(cluster(node(), fargate, pod("p", on="f1")), V2_LINEAR, "v2"))
    assert "Virtual nodes have no cgroups to predict (1 pod): f1." in text.splitlines()


def test_unpredicted_pods_are_marked() -> None:
    result = audited(cluster(node(), pod("p", container("c", "1"), on="gone")))
    (line,) = rows(table.render(result), "default/p")
    assert line == "default/p pod  0+1?  unknown  ?          ?"


def test_the_narrow_table_says_where_the_rest_of_the_low_findings_is() -> None:
    found = recorded_audit()
    said = "What was seen of the low ones: -o wide; what to do about each: -o markdown or html."

    def lines(text: str) -> str:
        return " ".join(text.split())

    assert said in lines(table.render(found))
    assert said not in lines(rendered("wide", found))
    grave = replace(found, findings=tuple(each for each in found.findings if each.severity != "low"))
    assert said not in lines(table.render(grave))


def test_equal_nodes_share_a_row_whatever_pods_they_have() -> None:
    pods = [pod(f"p{n}", container("c", f"{n + 1}00m"), on=f"n{n}") for n in range(3)]
    found = audited(cluster(*(node(f"n{n}") for n in range(3)), node("big", cpu="8"), *pods), V2_LINEAR, "v2")
    rows = [line.split() for line in table.render(found).splitlines() if line.startswith(("n0", "n1", "n2", "big"))]
    assert [row[:3] for row in rows] == [["big", "v2", "->"], ["n0", "and", "2"]]
