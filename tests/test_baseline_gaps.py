"""--baseline: what could not be read, then and now."""

import pytest
from msgspec.structs import replace

from kubectl_cgaudit.audit.findings import findings
from kubectl_cgaudit.audit.model import Audit, Finding, GapRecord
from kubectl_cgaudit.collect.assemble import with_answers
from kubectl_cgaudit.collect.model import KubeletAnswers
from tests.baseline_support import compared, ids
from tests.support import V2_LINEAR, V2_QUADRATIC, audited, cluster, container, half_restarted, node, pod, ran


def without_nodes(*names: str) -> Audit:
    """An audit of pods on nodes that were not read."""
    pods = [pod(f"p{place}", container("c", "1"), on=name) for place, name in enumerate(names)]
    return audited(cluster(node(), pod("p", container("c", "1")), *pods), V2_LINEAR)


def unread(findings: tuple[Finding, ...]) -> int:
    return sum(each.rule == "CGA001" for each in findings)


FIVE = ("a0", "a1", "a2", "a3", "a4")


@pytest.mark.parametrize(
    ("then", "now", "more"),
    [
        ((*FIVE, "a5"), (*FIVE, "a5"), ""),
        ((*FIVE, "a5"), (*FIVE, "b9"), "6 nodes (a0, a1, a2, a3, a4 and 1 more) the baseline does not name b9"),
        ((*FIVE, "a5"), FIVE, ""),
        (("a0", "a1"), ("a0",), ""),
        (("a0",), ("a0", "a1"), "2 nodes (a0, a1) the baseline does not name a1"),
        (("a0",), ("a1",), "node a1 the baseline does not name a1"),
    ],
)
def test_a_gap_is_known_if_the_baseline_has_all_that_is_missing_now(
    then: tuple[str, ...], now: tuple[str, ...], more: str
) -> None:
    found = compared(without_nodes(*then), without_nodes(*now))
    assert (unread(found.findings), unread(found.known), found.fixed) == ((1, 0, ()) if more else (0, 1, ()))
    assert found.baseline is not None
    assert found.baseline.notes == (
        "The baseline is incomplete: what is new may only have been unread then",
        *([f"Of {more}"] if more else []),
    )


def test_a_gap_of_another_kind_is_new_though_it_is_of_the_same_node() -> None:
    empty = node("a0")
    empty["status"] |= {"capacity": {}, "allocatable": {}}
    now = audited(cluster(node(), empty, pod("p", container("c", "1"))), V2_LINEAR)
    found = compared(without_nodes("a0"), now)
    assert ([each for each in ids(found.findings) if each[0] == "CGA001"], unread(found.known)) == (
        [("CGA001", "node a0")],
        0,
    )


def test_a_gap_is_the_same_however_its_finding_words_it() -> None:
    """As a release may that says it otherwise: kind and members decide."""
    now = without_nodes(*FIVE, "a5")
    then = replace(
        now,
        findings=tuple(
            replace(
                each, message="6 nodes were not read", id="CGA001:other", subject=replace(each.subject, name="other")
            )
            if each.rule == "CGA001"
            else each
            for each in now.findings
        ),
    )
    found = compared(then, now)
    assert (unread(found.findings), unread(found.known), found.fixed) == (0, 1, ())


def test_of_two_gaps_of_one_name_each_finding_tells_of_its_own() -> None:
    gaps = [GapRecord("node a0", f"why {kind}", "remedy", kind, ("a0",)) for kind in ("one", "two")]
    made = ran(cluster(node(), pod("p", container("c", "1"))), V2_LINEAR)
    coverage = replace(made.audit.coverage, gaps=tuple(gaps))
    found = findings(made.tables, made.judged, made.audit.workloads, coverage, made.context.thresholds)
    told = {each.id: each.detail for each in found if each.rule == "CGA001"}
    assert {name: (detail["why"], detail["kind"]) for name, detail in told.items()} == {
        "CGA001:node a0": ("why one", "one"),
        "CGA001:node a0#2": ("why two", "two"),
    }


def test_what_kubelets_showed_is_not_gone_where_they_are_not_asked() -> None:
    """They did not answer then, or showed containers of both formulas: without --kubelet neither is seen."""
    note = "The baseline asked the kubelets and this audit did not (--kubelet): what is gone cannot be told"
    asked = half_restarted()
    silent = with_answers(asked, {"n1": KubeletAnswers("n1", None, None, {}, None, ("it did not answer",))})
    unasked = audited(replace(asked, kubelets=None), V2_QUADRATIC)
    for then, rules in ((asked, {"CGA103"}), (silent, {"CGA001"})):
        before = audited(then, V2_QUADRATIC)
        assert rules <= {each.rule for each in before.findings} - {each.rule for each in unasked.findings}
        found = compared(before, unasked)
        assert found.baseline is not None
        assert (found.fixed, found.baseline.notes[-1]) == ((), note)
    # Asked again, what is not there any more is gone.
    answered = compared(audited(silent, V2_QUADRATIC), audited(asked, V2_QUADRATIC))
    assert answered.baseline is not None
    assert ([each.rule for each in answered.fixed], note in answered.baseline.notes) == (["CGA001"], False)
