"""What the pictures show, in numbers, and that no picture shows more than there is."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_cgaudit.cgroups.weights import linear, milli_to_shares, quadratic
from kubectl_cgaudit.judge.audit import NodeAudit, PodAudit
from kubectl_cgaudit.report.cuts import Limits, first, fit
from kubectl_cgaudit.report.groups import grouped
from kubectl_cgaudit.report.inside import moving
from kubectl_cgaudit.report.pictures import curves, flow
from kubectl_cgaudit.report.pictures.levels import Level, Part, of_case
from tests.support import audited, recorded_audit, recorded_blind


def _pods() -> list[tuple[NodeAudit, PodAudit]]:
    found = []
    for audit in (recorded_audit(), audited(recorded_blind())):
        nodes = {node.name: node for node in audit.nodes}
        found += [(nodes[pod.node], pod) for workload in audit.workloads for pod in workload.pods]
    return found


def test_the_levels_multiply_to_the_share() -> None:
    """The product rule, checked against the shares that the prediction made."""
    checked = 0
    for node, pod in _pods():
        for index, case in enumerate(pod.cases):
            for after in (False, True):
                moment = case.after if after else case.before
                root = node.cases[index].after if after else node.cases[index].before
                for container in pod.containers:
                    own = container.cases[index].after if after else container.cases[index].before
                    others = [each for each in pod.containers if each is not container]
                    found = of_case(root, pod, index, [container, *others], after=after)
                    if not moment.share or own.in_pod is None:
                        continue
                    assert [level.title for level in found] == ["root of the node", "QoS class", "pod", "container"]
                    for level in found:
                        assert math.isclose(sum(part.fraction for part in level.parts), 1, abs_tol=1e-6)
                    product = math.prod(level.own.fraction for level in found)
                    assert math.isclose(product, own.share or 0, rel_tol=1e-5)
                    checked += 1
    assert checked == 420


def test_the_flow_of_the_worst_pod() -> None:
    audit = recorded_audit()
    nodes = {node.name: node for node in audit.nodes}
    (pod,) = [p for w in audit.workloads for p in w.pods if p.name == "checkout-d5491e7e7-22276"]
    picture = flow.flow(of_case(nodes[pod.node].cases[0].before, pod, 0, pod.containers, after=False))
    assert [(column.title, column.caption) for column in picture.columns] == [
        ("root of the node", ("79% of the node",)),
        ("QoS class", ("49% of the node",)),
        ("pod", ("27% of the node",)),
        ("container", ("25% of the node",)),
    ]
    assert [[box.label for box in column.boxes] for column in picture.columns] == [
        ["all pods 79%", "system.slice 21%"],
        ["Guaranteed 38%", "Burstable 62%", ""],
        ["this pod 56%", "3 others 44%"],
        ["app 91%", ""],
    ]
    assert picture.columns[0].funnel == "130.0,34.0 206.0,34.0 206.0,154.0 130.0,128.5"
    assert picture.columns[-1].funnel == ""


def test_what_a_low_box_cannot_say_has_a_line_of_its_own_below() -> None:
    # Beside "0.05% of the node" it ran into the next column's line.
    audit = recorded_audit()
    nodes = {node.name: node for node in audit.nodes}
    (pod,) = [p for w in audit.workloads for p in w.pods if p.name == "log-shipper-2e955"]
    picture = flow.flow(of_case(nodes[pod.node].cases[0].before, pod, 0, pod.containers, after=False))
    assert [column.caption for column in picture.columns] == [
        ("79% of the node",),
        ("0.05% of the node", "BestEffort 0.06%"),
        ("0.02% of the node",),
        ("0.02% of the node",),
    ]


@given(st.lists(st.floats(0.0001, 1), min_size=1, max_size=12))
def test_boxes_fill_their_column_and_no_more(amounts: list[float]) -> None:
    total = sum(amounts)
    parts = tuple(Part("x", each / total, "sibling" if index else "own") for index, each in enumerate(amounts))
    (column,) = flow.flow([Level("t", "kubelet", parts)]).columns
    assert column.boxes[0].y == 34
    assert max(box.y + box.height for box in column.boxes) <= flow.HEIGHT - 41
    assert all(box.height > 0 for box in column.boxes)


def test_curves_are_the_formulas() -> None:
    picture = curves.curves(())
    assert picture.dots == ()
    assert picture.linear.startswith("56.0,350.0 ")
    assert picture.linear.endswith("700.0,14.0")
    assert picture.quadratic.split()[0] == picture.linear.split()[0]
    assert picture.quadratic.split()[-1] == picture.linear.split()[-1]
    assert (picture.default_x, picture.default_linear_y, picture.default_quadratic_y) == (396.9, 216.4, 182.0)


def test_the_dots_are_the_containers() -> None:
    weights = recorded_audit().weights
    asked = curves.requests(weights)
    assert [(row.milli, row.shares, row.containers, row.linear, row.quadratic) for row in asked[:4]] == [
        (100, 102, 6, 4, 17),
        (None, 2, 5, 1, 1),
        (50, 51, 5, 2, 11),
        (10, 10, 3, 1, 4),
    ]
    for row in asked:
        assert row.shares == milli_to_shares(row.milli or 0)
        assert (row.linear, row.quadratic) == (linear(row.shares), quadratic(row.shares))
    after = {dot.text for dot in curves.curves(weights).dots if dot.moment == "after"}
    assert "after: 1024 shares, weight 100: 3 containers" in after
    assert not any("weight 39:" in text for text in after)
    assert "now: 1024 shares, weight 39: 1 container" in {dot.text for dot in curves.curves(weights).dots}


def test_where_cpu_moves_inside_pods() -> None:
    found = moving(recorded_audit())
    assert [each.workload.title for each in found] == [
        "shop/payments",
        "platform/node-exporter",
        "edge/canary-gateway",
        "edge/legacy-gateway",
        "shop/checkout",
    ]
    assert [(each.name, *each.numbers, each.change, each.nominal) for each in found[0].slices] == [
        ("vault-agent", "19%", "24%", "+29%", "shares 51 -> weight 11"),
        ("payments", "74%", "63%", "-15%", "shares 204 -> weight 29"),
        ("metrics", "7.3%", "13%", "+79%", "shares 20 -> weight 6"),
    ]


def test_groups_keep_every_node_and_put_the_unknown_first() -> None:
    audit = recorded_audit()
    assert [group.names for group in grouped(audit.nodes)] == [("worker-c",), ("worker-a",), ("worker-b",)]
    twins = [node for node in audit.nodes for _ in range(2)]
    assert [group.names for group in grouped(twins)] == [(name,) * 2 for name in ("worker-c", "worker-a", "worker-b")]
    unknown = audited(recorded_blind()).nodes
    assert {node.confidence for group in grouped([*audit.nodes, *unknown])[:3] for node in group.nodes} == {"unknown"}


LIMITS = Limits(groups=60, workloads=1500, cards=40, findings=60, containers=3000, listed=60, text=3000)


@pytest.mark.parametrize(
    ("most", "length", "drawings", "last"),
    [
        # Workloads 1, containers 1 and 200 characters: there is nothing tighter, and this is more than was allowed.
        (1, 202, 17, Limits(1, 1, 1, 1, 1, 1, 200)),
        (100, 202, 17, Limits(1, 1, 1, 1, 1, 1, 200)),
        # Workloads 4 after 14 steps of two thirds; the text is halved in the two steps after they were 10.
        (1000, 755, 15, Limits(1, 4, 1, 1, 1, 1, 750)),
        (7499, 5000, 2, Limits(40, 1000, 26, 40, 1000, 40, 3000)),
        (7500, 7500, 1, LIMITS),
    ],
)
def test_fit_tightens_until_it_fits_or_nothing_is_left_to_cut(
    most: int, length: int, drawings: int, last: Limits
) -> None:
    tried: list[Limits] = []

    def draw(limits: Limits) -> str:
        tried.append(limits)
        return "x" * (limits.workloads + limits.containers + limits.text)

    text = fit(draw, LIMITS, most)
    assert (len(text), len(tried), tried[0], tried[-1]) == (length, drawings, LIMITS, last)


def test_first_counts_what_is_left_out() -> None:
    assert first("abcde", 2) == ("ab", 3)
    assert first("ab", 2) == ("ab", 0)
