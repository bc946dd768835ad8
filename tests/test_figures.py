"""Rows of numbers say what the audit's own records of the same pods say, and text with blanks is the text without."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_cgaudit.judge.audit import Audit, PodAudit
from kubectl_cgaudit.judge.figures import Figures, Form, of_audit
from kubectl_cgaudit.judge.source import Pods, figures
from kubectl_cgaudit.report import ranges
from kubectl_cgaudit.report.blanks import BLANK, Kept, filled, with_blanks
from tests.support import audited, cluster, container, node, pod, rendered
from tests.test_table import BLIND, RECORDED

MIXED = audited(
    cluster(
        node("n1"),
        node("n2", "64"),
        pod("alone", container("app", "100m")),
        pod("both", container("app", "1"), container("proxy", "10m", "200m")),
        pod("best", container("app"), qos="BestEffort"),
        pod("sure", container("app", "2", "2"), qos="Guaranteed", on="n2"),
        pod("other-names", container("web", "1"), container("mesh", "10m", "200m"), on="n2"),
        pod("none", on="n2"),
    )
)

# The kubelet of after counts the pods' own requests, which moves CPU between them; on cgroup v1 it does not start.
LOST = audited(
    cluster(
        *[node(name, kubelet="v1.31.9") for name in ("n1", "n2")],
        *[pod(f"own-{on}", container("app", "1"), on=on, resources={"requests": {"cpu": "2"}}) for on in ("n1", "n2")],
        *[pod(f"p{at}-{on}", container("app", "1"), on=on) for at in (1, 2) for on in ("n1", "n2")],
    ),
    "- runtimes: {default: runc 1.3.6}\n- {match: {name: n1}, cgroup: v1}",
    "kubelet=1.35",
)


def said(pod: Figures) -> dict[str, object]:
    return {name: getattr(pod, name) for name in Figures.__slots__}


@pytest.mark.parametrize("audit", [RECORDED, BLIND, MIXED, LOST], ids=["known", "open", "mixed", "lost"])
def test_figures_are_those_of_the_records(audit: Audit) -> None:
    seen = 0
    for workload in audit.workloads:
        assert isinstance(workload.pods, Pods)
        for of_source, record in zip(figures(workload.pods), tuple(workload.pods), strict=True):
            assert said(of_source) == said(of_audit(record))
            seen += 1
    assert seen == audit.coverage.pods_audited > 5


def test_a_pod_that_does_not_come_back_neither_gains_nor_loses() -> None:
    effects = {pod.name: pod.effects for each in LOST.workloads for pod in figures(each.pods)}
    assert effects == {
        **dict.fromkeys(("own-n1", "p1-n1", "p2-n1"), ("stops",)),
        **dict.fromkeys(("own-n2", "p1-n2", "p2-n2"), ("unknown",)),
    }


def test_pods_of_one_kind_have_one_form_however_their_containers_are_called() -> None:
    forms = {pod.name: pod.form for each in MIXED.workloads for pod in figures(each.pods)}
    assert forms["both"].fixed == forms["other-names"].fixed
    assert [each.name for each in forms["other-names"].containers] == ["web", "mesh"]


def test_a_pod_is_the_same_from_figures_and_from_its_record() -> None:
    (first, *_) = RECORDED.workloads
    alone = replace(RECORDED, workloads=(first,))
    written = msgspec.json.decode(rendered("json", alone))["workloads"][0]["pods"]
    assert written == msgspec.json.decode(msgspec.json.encode(tuple(first.pods)))


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_blanks_are_found_whatever_the_texts_hold(texts: list[str]) -> None:
    """A raw NUL, and what JSON makes of it, are text like any other."""
    texts = [*texts, "\0", "\\u0000"]
    value = {str(place): each for place, each in enumerate(texts)}
    parts = with_blanks([each for text in texts for each in (text, BLANK)])
    assert len(parts) == len(texts) + 1
    assert msgspec.json.decode(filled("", parts, ["1"] * len(texts))) == [e for t in texts for e in (t, 1)]
    assert with_blanks(value) == [msgspec.json.encode(value).decode()]


def test_what_is_kept_is_bounded_and_right_for_each_form() -> None:
    made: list[Form] = []

    def make(form: Form) -> int:
        made.append(form)
        return len(made)

    kept = Kept(make)
    forms = [Form((), ((str(number),),), (), (), (True,)) for number in range(2049)]
    assert [kept.of(form) for form in forms] == list(range(1, 2050))
    assert kept.of(forms[2048]) == 2049
    # The oldest were let go of, and are made again.
    assert kept.of(forms[0]) == 2050


def test_a_saved_pod_may_have_containers_with_other_cases_than_its_own() -> None:
    record: PodAudit = BLIND.workloads[0].pods[0]
    odd = replace(record, containers=(replace(record.containers[0], others=()),))
    found = of_audit(odd)
    assert [len(each) for each in found.form.whens] == [len(record.cases), 1]
    assert len(found.values) == 4 * (len(record.cases) + 1)


@pytest.mark.parametrize(
    ("values", "least_and_greatest"),
    [
        ([1], (1, 1)),
        ([None], (None, None)),
        ([3, 1, 2], (1, 3)),
        ([3, None], (None, None)),
        ([None, None], (None, None)),
        ([0.0, -1.5], (-1.5, 0.0)),
        ([], (None, None)),
    ],
)
def test_least_and_greatest(values: list[float | None], least_and_greatest: tuple[float | None, float | None]) -> None:
    assert ranges.ends(values) == least_and_greatest


def test_shares_and_weights_are_no_range() -> None:
    name: Any = None
    mixed = (name, (("v1", 1024, 5), ("v2", 39, 5), ("v2", 100, 7), ("v2", 39, 6)), (False, False))
    assert ranges.held(mixed, after=False) == ((None, None), (5, 7))
    assert ranges.held(mixed, after=True) == ((39, 39), (5, 6))
    assert (ranges.versions(mixed, after=False), ranges.versions(mixed, after=True)) == ("v1;v2", "v2")
