"""What all rules over pods have in common."""

from functools import partial

import pytest

from kubectl_cgaudit.judge.audit import SEVERITIES
from kubectl_cgaudit.judge.rules import catalogue
from kubectl_cgaudit.judge.rules.context import graded, pod_hits
from kubectl_cgaudit.judge.rules.looks import Look, by_case, worst
from tests.support import (
    ONE,
    V2_LINEAR,
    audited,
    cluster,
    compared,
    node,
    recorded_audit,
    recorded_blind,
)


def told(when: str) -> tuple[str, str]:
    return f"seen {when}", f"do {when}"


@pytest.mark.parametrize("order", [1, -1])
def test_of_equally_bad_cases_the_last_by_name_is_told(order: int) -> None:
    looks = [(when, Look(0.5 - 1e-12 * place, lambda: ("seen", "do"))) for place, when in enumerate("ab")]
    found = worst(looks[::order], (True, True), graded())
    assert found is not None
    assert (found.words(), found.badness, found.when, found.severities) == (("seen", "do"), 0.5, "", ("low", "low"))


def test_the_worst_case_is_told_and_of_equally_bad_ones_the_last_by_name() -> None:
    looks = [
        (when, bad and Look(bad, partial(told, when)))
        for when, bad in (("a", 2.0), ("b", 2.0), ("c", 1.0), ("d", None))
    ]
    found = worst(looks, (True,) * 4, graded())
    assert found is not None
    seen, remedy = found.words()
    assert (found.badness, seen) == (2.0, "seen b These numbers hold if b; in its other cases they differ.")
    assert remedy == ("If b: do b In the other cases it takes something else: settle first what is not known (CGA102).")
    assert (found.when, found.severities) == ("unless d", ("low", "low", "low", None))
    assert worst(looks[3:], (True,), graded()) is None


def test_what_is_mild_in_a_case_is_low_there_and_the_worst_only_if_all_are() -> None:
    severity = graded((1.0, "high"))
    a, b, c = (
        Look(bad, partial(told, when), mild=mild)
        for when, bad, mild in (("a", 3, True), ("b", 2, False), ("c", 0.5, False))
    )
    found = worst([("a", a), ("b", b), ("c", c)], (True,) * 3, severity)
    assert found is not None
    assert (found.badness, found.severity, found.when) == (2, "high", "if b")
    assert found.severities == ("low", "high", "low")
    assert found.words()[0].startswith("seen b ")
    # One that is low by its size is as severe as one that is mild.
    found = worst([("a", a), ("c", c)], (True, True), severity)
    assert found is not None
    assert (found.badness, found.severity, found.when) == (0.5, "low", "")
    found = worst([("a", a)], (True,), severity)
    assert found is not None
    assert (found.badness, found.severity, found.when) == (3, "low", "")


def test_a_hit_names_the_container_by_its_place() -> None:
    (comparison,) = compared(cluster(node(), ONE), V2_LINEAR, "runtime")
    ((placed, _),) = comparison.placed
    (case,) = comparison.pod(0)
    look = Look(2.0, partial(told, "a"))
    for of_it, place in ((None, None), (placed.containers[0], 0)):
        (hit,) = pod_hits(placed, of_it, [(case, look)], graded())
        assert (hit.place, hit.when, hit.words()) == (place, "", ("seen a", "do a"))
    assert list(pod_hits(placed, None, [(case, None)], graded())) == []


EVERY = "is found in every other case too, with other numbers."


@pytest.mark.parametrize(
    ("looks", "when", "added"),
    [
        ({"a": (2.0, "x", ""), "b": (2.0, "x", "")}, "", ""),
        ({"a": (2.0, "x", ""), "b": (1.9, "y", "")}, "", f" These numbers hold if a; it {EVERY}"),
        ({"a": (2.0, "x", ""), "b": (0.5, "y", "")}, "if a", f" It {EVERY}"),
        ({"a": (2.0, "x", ""), "b": None}, "if a", ""),
        # As grave in two cases with numbers of their own.
        (
            {"a": (2.0, "x", ""), "b": (1.9, "y", ""), "c": None},
            "unless c",
            " These numbers hold if a; in its other cases they differ.",
        ),
        (
            {"a": (2.0, "x", ""), "b": (1.9, "y", ""), "c": (0.5, "z", "")},
            "unless c",
            f" These numbers hold if a; it {EVERY}",
        ),
        # A milder one is told as well.
        ({"a": (2.0, "x", ""), "b": (0.5, "y", ""), "c": None}, "if a", " It is found if b too, with other numbers."),
        # What is the same now is no other number.
        ({"a": (2.0, "x", "so."), "b": (2.0, "x", "so.")}, "", " So."),
        ({"a": (2.0, "x", ""), "b": (1.0, "x", "so.")}, "", " If b so."),
        ({"a": (2.0, "x", ""), "b": (1.0, "y", "so.")}, "", f" If b so. These numbers hold if a; it {EVERY}"),
        ({"a": (2.0, "x", "so."), "b": None}, "if a", " So."),
    ],
)
def test_what_holds_for_sure_is_as_grave_in_every_case(
    looks: dict[str, tuple[float, str, str] | None], when: str, added: str
) -> None:
    def words(said: str) -> tuple[str, str]:
        return said, "do"

    given = [(name, look and Look(look[0], partial(words, look[1]), look[2])) for name, look in looks.items()]
    found = worst(given, (True,) * len(given), graded((1.0, "high")))
    assert found is not None
    assert (found.when, found.words()) == (when, (f"x{added}", "do"))
    assert all(found.severities) == (None not in looks.values())


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ("xx", "x"),
        ("xy", "If a: x If b: y"),
        ("xyx", "Unless b: x If b: y"),
        (
            "xyz",
            "If a: x In the other cases it takes something else: settle first what is not known (CGA102).",
        ),
    ],
)
def test_what_to_do_is_said_by_case_where_it_differs(texts: str, said: str) -> None:
    every = [*"abc"[: len(texts)]]
    assert by_case([*zip(every, texts, strict=True)], every) == said


@pytest.mark.parametrize("to", ["v2+runtime", "v2", "runtime", "kubelet=1.35"])
def test_the_catalogue_knows_what_its_rules_are_about_and_how_grave_they_get(to: str) -> None:
    known = {(rule.id, rule.title): rule for rule in catalogue.RULES}
    found = [*recorded_audit(to).findings, *audited(recorded_blind(), "", to).findings]
    assert len({finding.rule for finding in found}) >= 7
    for finding in found:
        rule = known[finding.rule, finding.title]
        assert finding.subject.kind == rule.about
        assert SEVERITIES.index(finding.severity) >= SEVERITIES.index(rule.gravest)
