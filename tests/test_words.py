"""Words that reports share: facts for a ticket, and changes."""

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.judge.rounding import as_said
from kubectl_cgaudit.report.content import facts
from kubectl_cgaudit.report.words import percent, signed
from kubectl_cgaudit.text import percents
from tests.hostile import hand_made
from tests.support import audited, cluster, container, node, pod

OURS = hand_made("web")


@pytest.mark.parametrize(
    ("fields", "key", "said"),
    [
        ({"filter": ""}, "Read from", "web"),
        ({"filter": "namespace a"}, "Read from", "web, only what matches namespace a"),
        ({"complete": True}, "Coverage", "complete"),
    ],
)
def test_what_a_change_ticket_asks_first(fields: dict[str, Any], key: str, said: str) -> None:
    assert dict(facts(replace(OURS, coverage=replace(OURS.coverage, **fields))))[key] == said


def test_what_was_read_and_not_audited_adds_up() -> None:
    nodes = [node(), node("windows"), node("fargate")]
    nodes[1]["status"]["nodeInfo"]["operatingSystem"] = "windows"
    nodes[2]["metadata"]["labels"] = {"eks.amazonaws.com/compute-type": "fargate"}
    one, places = container("c", "1"), ("n1", "windows", "fargate", "gone", None)
    pods = [pod(f"p{index}", one, on=place) for index, place in enumerate(places)]
    found = dict(facts(audited(cluster(*nodes, *pods, pod("done", one, phase="Succeeded")))))
    assert found["Nodes audited"] == "1 of 3 read (1 Windows, 1 virtual)"
    assert found["Pods audited"] == (
        "1 of 6 read (1 finished, 1 without a node, 1 on Windows nodes, 1 on virtual nodes, 1 on nodes that could not be read)"
    )
    cut = replace(OURS, coverage=replace(OURS.coverage, pods_read=20, filter="namespace a"))
    said = "2 of 20 read (1 without a node, 1 on Windows nodes, 2 on virtual nodes, 14 not asked for)"
    assert dict(facts(cut))["Pods audited"] == said
    whole = replace(OURS.coverage, pods_read=2, pods_without_node=(), pods_on_windows_nodes=0, pods_on_virtual_nodes=0)
    assert dict(facts(replace(OURS, coverage=whole)))["Pods audited"] == "2 of 2 read"


def test_nothing_found_is_said_in_words() -> None:
    empty = replace(OURS, verdict=replace(OURS.verdict, workloads={}, findings={}))
    found = dict(facts(empty))
    assert (found["Findings"], found["Workloads, each by its strongest effect"]) == ("none", "none")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (0.0, "0%"),
        (0.00049, "0%"),
        (0.0006, "+0.1%"),
        (-0.047, "-4.7%"),
        (0.099, "+9.9%"),
        (0.1, "+10%"),
        (-0.617, "-62%"),
        (-0.9949, "-99%"),
        (-0.9974, "-99.7%"),
        (-0.99999999, "<-99.9999%"),
        (-1.0, "-100%"),
        (0.9974, "+100%"),
    ],
)
def test_a_change_in_words(change: float, text: str) -> None:
    assert signed(change) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (None, "?"),
        (0.0, "0%"),
        (1.0, "100%"),
        (0.0995, "10%"),
        (0.0994, "9.9%"),
        (0.001, "0.1%"),
        (0.00099, "0.1%"),
        (0.0005, "0.05%"),
        (2 / 262146, "0.0008%"),
        (0.0000011, "0.0001%"),
        (0.00000099, "<0.0001%"),
        (-0.625, "-62%"),
        (-0.00001, "-0.001%"),
        (-0.0000011, "-0.0001%"),
        (-0.00000099, ">-0.0001%"),
        (-1e-9, ">-0.0001%"),
        (-0.0, "0%"),
        (0.9949, "99%"),
        (0.995, "99.5%"),
        (256 / 257, "99.6%"),
        (0.99905, "99.91%"),
        (0.9996, "99.96%"),
        (262144 / 262146, "99.9992%"),
        (0.9999989, "99.9999%"),
        (0.99999901, ">99.9999%"),
        (-0.9996, "-99.96%"),
        (-0.99999901, "<-99.9999%"),
    ],
)
def test_a_share_that_is_not_nothing_never_reads_so_nor_one_that_is_not_all_as_all(
    fraction: float | None, text: str
) -> None:
    assert percent(fraction) == text


@pytest.mark.parametrize(
    ("was", "will", "said"),
    [
        (0.27, 0.2, ("27%", "20%")),
        (0.1604, 0.1569, ("16.0%", "15.7%")),
        (0.00171, 0.00152, ("0.17%", "0.15%")),
        (0.16000001, 0.16, ("16%", "16%")),
        (0.5, 0.5, ("50%", "50%")),
        (0.0, 0.0, ("0%", "0%")),
    ],
)
def test_two_shares_have_the_digits_that_tell_them_apart(was: float, will: float, said: tuple[str, str]) -> None:
    assert percents(was, will) == said


@pytest.mark.parametrize("less", [-0.9966, -0.9992, -0.99993])
def test_of_losses_that_read_the_same_none_is_the_greater_one(less: float) -> None:
    same, more = less - 1e-8, (less - 1) / 2
    assert (percent(same), as_said(same)) == (percent(less), as_said(less))
    assert percent(more) != percent(less)
    assert as_said(more) < as_said(less)
