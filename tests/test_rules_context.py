"""What all rules over pods have in common."""

from functools import partial
from types import SimpleNamespace

import pytest

from kubectl_cgaudit.judge.audit import SEVERITIES
from kubectl_cgaudit.judge.rules import catalogue
from kubectl_cgaudit.judge.rules.context import Look, graded, pod_hits
from tests.support import ONE, audited, cluster, compared, node, recorded_audit, recorded_blind


def told(when: str) -> tuple[str, str]:
    return f"seen {when}", f"do {when}"


@pytest.mark.parametrize("order", [1, -1])
def test_of_equally_bad_cases_the_last_by_name_is_told(order: int) -> None:
    (comparison,) = compared(cluster(node(), ONE), "- {cgroup: v2}", "runtime")
    cases = sorted(comparison.pod(0), key=lambda each: each.case.when)
    assert [each.case.when for each in cases] == ["linear runtime", "quadratic runtime"]
    looks = [(each, Look(0.5 - 1e-12 * place, lambda: ("seen", "do"))) for place, each in enumerate(cases)]
    (hit,) = pod_hits(comparison.placed[0][0], None, looks[::order], graded())
    assert (hit.words(), hit.badness, hit.when, hit.holds) == (("seen", "do"), 0.5, "", True)


def test_the_worst_case_is_told_and_of_equally_bad_ones_the_last_by_name() -> None:
    found = cluster(ONE, node()).pods[0]
    looks = [
        (SimpleNamespace(case=SimpleNamespace(when=when)), bad and Look(bad, partial(told, when)))
        for when, bad in (("a", 2.0), ("b", 2.0), ("c", 1.0), ("d", None))
    ]
    (hit,) = pod_hits(found, None, iter(looks), graded())
    numbers = "These numbers hold if b; in its other cases they differ."
    assert (hit.place, hit.badness, hit.words()) == (None, 2.0, (f"seen b {numbers}", "do b"))
    assert (hit.when, hit.holds) == ("unless d", False)
    (alone,) = pod_hits(found, found.containers[0], iter(looks[:2]), graded())
    assert (alone.place, alone.when) == (0, "")
    assert list(pod_hits(found, None, iter(looks[3:]), graded())) == []


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
        return said, f"do {said}"

    given = [
        (SimpleNamespace(case=SimpleNamespace(when=name)), look and Look(look[0], partial(words, look[1]), look[2]))
        for name, look in looks.items()
    ]
    (hit,) = pod_hits(cluster(ONE, node()).pods[0], None, given, graded((1.0, "high")))
    assert (hit.when, hit.words()) == (when, (f"x{added}", "do x"))
    assert hit.holds == (None not in looks.values())


@pytest.mark.parametrize("to", ["v2+runtime", "v2", "runtime", "kubelet=1.35"])
def test_the_catalogue_knows_what_its_rules_are_about_and_how_grave_they_get(to: str) -> None:
    known = {(rule.id, rule.title): rule for rule in catalogue.RULES}
    found = [*recorded_audit(to).findings, *audited(recorded_blind(), "", to).findings]
    assert len({finding.rule for finding in found}) >= 7
    for finding in found:
        rule = known[finding.rule, finding.title]
        assert finding.subject.kind == rule.about
        assert SEVERITIES.index(finding.severity) >= SEVERITIES.index(rule.gravest)
