"""`nodes` as text: which nodes share a row, and what would settle what is open."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import EvidenceRecord, Known, NodeAudit, Settle
from kubectl_cgaudit.judge.questions import settle
from kubectl_cgaudit.report import nodes
from kubectl_cgaudit.report.groups import grouped
from kubectl_cgaudit.report.screen import PLAIN
from tests.hostile import hand_made
from tests.support import cluster, compared, container, node, pod

OURS = hand_made("web")


SURE, OPEN = Known("v1", "certain", ""), Known(None, "unknown", "")


RUNC = Known("runc 1.3.6", "likely", "")


def of_node(name: str, cgroup: Known = SURE, runtime: Known | None = RUNC, **fields: Any) -> NodeAudit:
    known = {"cgroup": cgroup, "kubelet": RUNC, "system_slice": SURE}
    known |= {} if runtime is None else {"runtime:default": runtime}
    return replace(OURS.nodes[0], name=name, known=known, **fields)


def of_nodes(*shown: NodeAudit, evidence: bool = False) -> str:
    return nodes.as_text(shown, (), evidence=evidence, events_read=True, screen=replace(PLAIN, width=1000))


def test_what_of_a_node_does_not_fit_together_is_said() -> None:
    text = of_nodes(of_node("a", contradictions=("cgroup is v1 and v2",), problems=("timed out",)), of_node("b"))
    assert "\nCONTRADICTIONS\na: cgroup is v1 and v2\n" in text
    assert "\nKUBELETS THAT DID NOT ANSWER\na: timed out\n" in text
    assert "TO SETTLE" not in text
    assert "CONTRADICTIONS" not in of_nodes(of_node("a"))


def test_only_nodes_of_which_the_same_is_known_share_a_row() -> None:
    def rows(*shown: NodeAudit) -> int:
        return of_nodes(*shown).partition("\n\n")[0].count("\n")

    alike = (of_node("a"), of_node("b"))
    assert rows(*alike) == rows(of_node("a"))
    for other_ in (
        of_node("b", replace(SURE, value="v2")),
        of_node("b", replace(SURE, confidence="stated")),
        of_node("b", kubelet_version="v9"),
        # It has no kubepods tree: nothing of it is known, whatever it runs.
        of_node("b", confidence="unknown"),
        of_node("b", runtime=replace(RUNC, value="crun 1.28")),
    ):
        assert rows(of_node("a"), other_) == rows(*alike) + 1
    assert "Of like nodes" not in of_nodes(*(of_node(name) for name in "abc"))
    assert "Of like nodes three are named" in of_nodes(*(of_node(name) for name in "abcd"), of_node("e", OPEN))


def test_reports_group_only_nodes_that_are_as_surely_known() -> None:
    found = grouped([of_node("a"), of_node("b", confidence="unknown"), of_node("c")])
    assert [group.names for group in found] == [("b",), ("a", "c")]


def test_nodes_are_two_tables_only_where_one_does_not_fit_a_terminal() -> None:
    def tables(width: int, terminal: bool = True) -> int:
        screen = replace(PLAIN, width=width, terminal=terminal)
        return nodes.as_text([of_node("a")], (), evidence=False, events_read=True, screen=screen).count("NODES")

    (row,) = [line for line in of_nodes(of_node("a")).splitlines() if line.startswith("a ")]
    assert [tables(len(row)), tables(len(row) - 1), tables(len(row) - 1, terminal=False)] == [1, 2, 1]


def test_a_node_has_a_row_a_handler_and_what_is_too_long_for_it_is_cut() -> None:
    one = of_node("a")
    more = {"runtime:kata": replace(RUNC, value="x" * 34), "runtime:long": replace(RUNC, value="y" * 36)}
    text = of_nodes(replace(one, known={**one.known, **more}), of_node("b", OPEN, None)).splitlines()
    assert text[:5] == [
        "NODES  CGROUP        HANDLER  RUNTIME                                      KUBELET                  SYSTEM.SLICE  SURE",
        f"a      v1 (certain)  default  runc 1.3.6 (likely)  {' ' * 24}web runc 1.3.6 (likely)  v1 (certain)  stated",
        f"                     kata     {'x' * 34} (likely)",
        f"                     long     {'y' * 33}… (likely)",
        f"b      unknown       -        no pod  {' ' * 37}web runc 1.3.6 (likely)  v1 (certain)  stated",
    ]
    assert len(text) == 5


def test_a_node_without_a_pod_has_a_row() -> None:
    (row,) = [line for line in of_nodes(of_node("lonely", runtime=None)).splitlines() if line.startswith("lonely")]
    assert "no pod" in row


def test_evidence_is_called_what_it_is() -> None:
    hint = EvidenceRecord("cgroup", "v1", "hint", "image", "old")
    pieces = hint, replace(hint, strength="probable", override="a boot parameter"), replace(hint, strength="certain")
    text = of_nodes(of_node("a", evidence=pieces), of_node("b"), evidence=True)
    assert (
        "  hint     cgroup is v1: image: old\n  probable cgroup is v1: image: old (unless: a boot parameter)\n"
        "  certain  cgroup is v1: image: old\n"
    ) in text
    assert "EVIDENCE OF b\n  none beyond the defaults\n" in of_nodes(of_node("b", evidence=()), evidence=True)


def test_what_the_states_file_said_stands_with_the_evidence() -> None:
    said, measured = Known("v2", "stated", "states.yaml rule 3"), Known("v2", "certain", "kubelet /metrics")
    alone = of_nodes(of_node("a", said, evidence=()), evidence=True)
    assert "EVIDENCE OF a\n  stated   cgroup is v2: states.yaml rule 3\n" in alone
    assert "none beyond" not in alone
    piece = EvidenceRecord("cgroup", "v2", "certain", "kubelet /metrics", "v2")
    assert "states.yaml" not in of_nodes(of_node("a", measured, evidence=(piece,)), evidence=True)


PROXY = "kubectl cgaudit --kubelet=proxy"
CRIO = {"containerRuntimeVersion": "cri-o://1.2.3"}


def settled(rules: str, *objects: dict[str, Any]) -> list[Settle]:
    """What would settle what is open of these nodes, each with a pod."""
    pods = [
        pod(f"p-{each['metadata']['name']}", container("c", "1"), container("d", "20m"), on=each["metadata"]["name"])
        for each in objects
    ]
    return list(settle(compared(cluster(*objects, *pods), rules, "v2")))


def test_what_decides_the_greatest_loss_is_asked_first_and_its_ways_are_by_cost() -> None:
    cgroup, runtime = settled("", node("a"))
    assert (cgroup.about, cgroup.confidence, cgroup.nodes, cgroup.states) == (
        "cgroup",
        "unknown",
        ("a",),
        "- {cgroup: v1 or v2}",
    )
    assert cgroup.decides is not None
    assert (cgroup.decides.pod, cgroup.decides.container, round(cgroup.decides.change, 2)) == ("p-a", None, -0.61)
    assert [each.command.partition("/sys")[0].partition("node/")[0] for each in cgroup.commands] == [
        "stat -fc %T ",
        "kubectl debug ",
        PROXY,
    ]
    assert "privileged" in cgroup.commands[1].needs
    assert (runtime.about, runtime.states) == ("runtime:default", "- {runtimes: {default: runc X.Y.Z}}")
    assert runtime.commands[0].command == "runc --version"


@pytest.mark.parametrize(
    ("rules", "abouts"),
    [
        ("- {cgroup: v1, runtimes: {default: runc 1.3.6}}", []),
        ("- {cgroup: v1}", ["runtime:default"]),
        ("- {runtimes: {default: runc 1.3.6}}", ["cgroup"]),
        ("", ["cgroup", "runtime:default"]),
    ],
)
def test_only_what_is_open_is_asked(rules: str, abouts: list[str]) -> None:
    assert [each.about for each in settled(rules, node("a"))] == abouts


def test_a_probable_answer_is_asked_after_an_unknown_one_and_its_line_accepts_the_default() -> None:
    """Ubuntu 24.04 starts with cgroup v2."""
    found = settled("- {runtimes: {default: runc 1.3.6}}", node("a", osImage="Ubuntu 24.04.2 LTS"))
    assert [(each.about, each.confidence, each.states) for each in found] == [("cgroup", "probable", "- {cgroup: v2}")]


def test_one_node_of_each_group_is_asked() -> None:
    """Nodes of which the same is known may run different things where their systems differ."""
    rules = "- {runtimes: {default: runc 1.3.6}}"
    old = [node(name, osImage="Some OS 1") for name in ("a", "b")]
    assert [each.nodes for each in settled(rules, *old)] == [("a", "b")]
    groups = settled(rules, *old, node("c", osImage="Some OS 2"), node("d", osImage="Some OS 1", **CRIO))
    assert sorted(each.nodes for each in groups) == [("a", "b"), ("c",), ("d",)]
    assert {each.states for each in groups} == {
        "- {match: {name: a}, cgroup: v1 or v2}",
        "- {match: {name: c}, cgroup: v1 or v2}",
        "- {match: {name: d}, cgroup: v1 or v2}",
    }


def test_only_ten_questions_are_told_as_text_and_how_all_are_measured_once() -> None:
    objects = [node(f"n{place:02}", osImage=f"Some OS {place}") for place in range(12)]
    found = settled("- {runtimes: {default: runc 1.3.6}}", *objects)
    text = nodes.as_text([of_node("a")], found, evidence=False, events_read=False, screen=replace(PLAIN, width=1000))
    assert "\nTO SETTLE WHAT IS OPEN, WHAT DECIDES MOST FIRST\n1. cgroup version of node n00 (unknown)" in text
    assert (text.count("   - stat -fc"), text.count("   - kubectl debug node/"), text.count("--kubelet=proxy")) == (
        10,
        10,
        1,
    )
    assert "2 more questions: -o json has all." in text
    assert "Events were not read" in text
    read = nodes.as_text([of_node("a")], found, evidence=False, events_read=True, screen=replace(PLAIN, width=1000))
    assert "Events were not read" not in read


def test_what_is_settled_does_not_depend_on_the_system() -> None:
    assert of_nodes(of_node("a"), replace(of_node("b"), os_image="other")).splitlines()[1].startswith("a, b ")


def test_nodes_that_are_not_in_the_table_are_named() -> None:
    found = nodes.as_text([of_node("a")], (), evidence=False, events_read=True, others=["w (windows)", "f (virtual)"])
    assert "\nNot in the table: w (windows), f (virtual).\n" in found
    assert "Not in the table" not in of_nodes(of_node("a"))
