"""Kubelets that did not answer are one gap, however many there are."""

import pytest

from kubectl_cgaudit.audit import unanswered
from kubectl_cgaudit.audit.model import GapRecord
from kubectl_cgaudit.collect.kubelet_answers import nothing
from kubectl_cgaudit.collect.model import KubeletAnswers

FORBIDDEN = "/metrics may not be read (403): grant get on nodes/metrics"
SILENT = "/metrics could not be read (no answer within 10 s)"
SPEC = "shows shares from the spec (kubelet_metrics_provider cri): they prove nothing"


def silent(**problems: tuple[str, ...]) -> dict[str, KubeletAnswers]:
    return {name: KubeletAnswers(name, None, None, {}, None, said) for name, said in problems.items()}


def test_all_that_answer_are_no_gap() -> None:
    assert unanswered.gaps({}) == []
    assert unanswered.gaps(silent(n1=())) == []


@pytest.mark.parametrize(
    ("problem", "remedy"),
    [
        (FORBIDDEN, "Ask for the permission it names, or say what the node runs with --states"),
        (SILENT, "Check that kubelet and run again, or say what the node runs with --states"),
        (SPEC, "Say what the node runs with --states"),
        ("the API server refuses the credentials", "Log in and run again, or say what the node runs with --states"),
        (
            "/metrics were not asked for: other kubelets had kept the audit waiting for 5 min",
            "Run again with a shorter --request-timeout, or say what the node runs with --states",
        ),
        ("no saved answers in x", "Save them under these names, or say what the node runs with --states"),
    ],
)
def test_one_is_told_with_what_to_do_about_its_reason(problem: str, remedy: str) -> None:
    gap = GapRecord("kubelet of n1", problem, remedy, "kubelet that did not answer", ("n1",))
    assert unanswered.gaps(silent(n1=(problem,), n2=())) == [gap]


def test_one_reason_of_many_is_said_once() -> None:
    answers = {f"n{number}": nothing(f"n{number}", FORBIDDEN) for number in range(8, 0, -1)}
    assert unanswered.gaps(answers) == [
        GapRecord(
            "kubelets of 8 nodes (n1, n2, n3, n4, n5 and 3 more)",
            FORBIDDEN,
            "Ask for the permission it names, or say what the nodes run with --states",
            "kubelet that did not answer",
            ("n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"),
        )
    ]


def test_each_reason_names_its_nodes_the_most_common_first() -> None:
    (gap,) = unanswered.gaps(silent(n3=(SILENT,), n1=(SPEC, SILENT), n2=(FORBIDDEN,)))
    assert gap.what == "kubelets of 3 nodes (n1, n2, n3)"
    assert gap.why == f"on n1, n3: {SILENT}; on n2: {FORBIDDEN}; on n1: {SPEC}"
    assert gap.remedy == (
        "Check those kubelets and run again; ask for the permission it names, or say what the nodes run with --states"
    )


def test_of_many_reasons_the_rest_is_counted() -> None:
    answers = silent(**{f"n{number}": (f"line {number} is no row",) for number in range(1, 8)})
    (gap,) = unanswered.gaps(answers)
    assert gap.why.startswith("on n1: line 1 is no row; ")
    assert gap.why.endswith("; on n5: line 5 is no row; 2 more reasons")
    assert gap.remedy == "Check those kubelets and run again, or say what the nodes run with --states"
