"""`nodes` as text: which nodes share a row, and what would settle what is open."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import EvidenceRecord, Known, NodeAudit
from kubectl_cgaudit.report import nodes
from kubectl_cgaudit.report.groups import grouped
from kubectl_cgaudit.report.screen import PLAIN
from tests.hostile import hand_made

OURS = hand_made("web")


SURE, OPEN = Known("v1", "certain", ""), Known(None, "unknown", "")


RUNC = Known("runc 1.3.6", "likely", "")


def of_node(name: str, cgroup: Known = SURE, runtime: Known | None = RUNC, **fields: Any) -> NodeAudit:
    known = {"cgroup": cgroup, "kubelet": RUNC, "system_slice": SURE}
    known |= {} if runtime is None else {"runtime:default": runtime}
    return replace(OURS.nodes[0], name=name, known=known, **fields)


def of_nodes(*shown: NodeAudit, evidence: bool = False) -> str:
    return nodes.as_text(shown, evidence=evidence, events_read=True, screen=replace(PLAIN, width=1000))


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
        return nodes.as_text([of_node("a")], evidence=False, events_read=True, screen=screen).count("NODES")

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
    assert text[5:7] == ["", "TO SETTLE THE UNKNOWNS, CHEAPEST FIRST"]
    assert [line[:2] for line in text[7:]] == ["1.", "2."]


def test_a_node_without_a_pod_has_a_row() -> None:
    (row,) = [line for line in of_nodes(of_node("lonely", runtime=None)).splitlines() if line.startswith("lonely")]
    assert "no pod" in row


def test_evidence_is_called_what_it_is() -> None:
    hint = EvidenceRecord("cgroup", "v1", "hint", "image", "old")
    text = of_nodes(of_node("a", evidence=(hint, replace(hint, confidence="certain"))), of_node("b"), evidence=True)
    assert "  hint     cgroup is probably v1: image: old\n  certain  cgroup is v1: image: old\n" in text
    assert "EVIDENCE OF b\n  none beyond the defaults\n" in of_nodes(of_node("b", evidence=()), evidence=True)


def test_what_the_states_file_said_stands_with_the_evidence() -> None:
    said, measured = Known("v2", "stated", "states.yaml rule 3"), Known("v2", "certain", "kubelet /metrics")
    alone = of_nodes(of_node("a", said, evidence=()), evidence=True)
    assert "EVIDENCE OF a\n  stated  cgroup is v2: states.yaml rule 3\n" in alone
    assert "none beyond" not in alone
    piece = EvidenceRecord("cgroup", "v2", "certain", "kubelet /metrics", "v2")
    assert "states.yaml" not in of_nodes(of_node("a", measured, evidence=(piece,)), evidence=True)


EVENTS, LOOK, MEASURE = "Cgroup version of ", "Look on a: ", "Measure it: "


@pytest.mark.parametrize(
    ("cgroup", "runtime", "events_read", "measured", "steps"),
    [
        (SURE, RUNC, False, False, []),
        (OPEN, RUNC, False, False, [EVENTS, LOOK, MEASURE]),
        (OPEN, RUNC, True, False, [LOOK, MEASURE]),
        (SURE, OPEN, False, False, [LOOK, MEASURE]),
        (SURE, OPEN, False, True, [LOOK]),
        (OPEN, OPEN, False, True, [EVENTS, LOOK]),
    ],
)
def test_what_would_settle_what_is_open(
    cgroup: Known, runtime: Known, events_read: bool, measured: bool, steps: list[str]
) -> None:
    evidence = (EvidenceRecord("cgroup", "v1", "hint", "kubelet /metrics", ""),) if measured else ()
    one = of_node("a", cgroup, runtime, evidence=evidence)
    found = nodes.settle([one, of_node("settled")], events_read=events_read)
    assert [each[: len(step)] for each, step in zip(found, steps, strict=True)] == steps
    looks = "".join(found)
    assert ("stat -fc" in looks, "runc --version" in looks) == (cgroup is OPEN, runtime is OPEN)
    assert "settled" not in looks
    in_vain = replace(of_node("a", cgroup, runtime), problems=("/configz could not be read (403)",))
    assert len(nodes.settle([in_vain], events_read=events_read)) == len(steps) - (MEASURE in steps)
    # One node that was not measured is enough to say how it can be.
    both = nodes.settle([one, of_node("b", OPEN)], events_read=True)
    assert both[-1].startswith(MEASURE)


def where(*open_: NodeAudit) -> str:
    return nodes.settle(open_, events_read=True)[0].partition(": stat")[0]


def test_where_to_look_names_a_node_of_each_group() -> None:
    """Nodes of which the same is known may run different things where their systems differ."""
    old, new = (replace(of_node(name, OPEN), os_image=name) for name in ("20.04", "24.04"))
    assert where(old, replace(old, name="b")) == "Look on one of 2 nodes alike (20.04, b)"
    assert where(old, new, replace(new, name="c")) == "Look on one node of each group (20.04; 24.04 and 1 alike)"
    hinted = replace(old, name="d", hints=("its kernel is old: probably v1",))
    assert where(old, hinted) == "Look on one node of each group (20.04; d)"
    other = replace(old, name="e", container_runtime="cri-o://1.2.3")
    assert where(old, other) == "Look on one node of each group (20.04; e)"
    many = [replace(old, name=f"n{place:02}", os_image=str(place)) for place in range(12)]
    assert where(*many[:10]).endswith("; n08; n09)")
    assert where(*many[:11]).endswith("; n09; 1 more group is in the table)")
    assert where(*many).endswith("; n09; 2 more groups are in the table)")
    assert len([line for line in of_nodes(old, new).splitlines() if "unknown" in line]) == 2
    # What is settled does not depend on the system.
    assert of_nodes(of_node("a"), replace(of_node("b"), os_image="other")).splitlines()[1].startswith("a, b ")


def test_nodes_that_are_not_in_the_table_are_named() -> None:
    found = nodes.as_text([of_node("a")], evidence=False, events_read=True, others=["w (windows)", "f (virtual)"])
    assert "\nNot in the table: w (windows), f (virtual).\n" in found
    assert "Not in the table" not in of_nodes(of_node("a"))
