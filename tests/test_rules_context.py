"""What all rules over pods have in common."""

from functools import partial
from types import SimpleNamespace

import pytest

from kubectl_cgaudit.judge.audit import SEVERITIES
from kubectl_cgaudit.judge.rules import catalogue
from kubectl_cgaudit.judge.rules.context import graded, pod_hits
from tests.support import ONE, audited, cluster, compared, node, recorded_audit, recorded_blind


def told(when: str) -> tuple[str, str]:
    return f"seen {when}", f"do {when}"


@pytest.mark.parametrize("order", [1, -1])
def test_of_equally_bad_cases_the_last_by_name_is_told(order: int) -> None:
    (comparison,) = compared(cluster(node(), ONE), "- {cgroup: v2}", "runtime")
    cases = sorted(comparison.pod(0), key=lambda each: each.case.when)
    assert [each.case.when for each in cases] == ["linear runtime", "quadratic runtime"]
    looks = [(each, (0.5 - 1e-12 * place, partial(told, each.case.when))) for place, each in enumerate(cases)]
    (hit,) = pod_hits(comparison.placed[0][0], None, looks[::order], graded())
    assert (hit.words(), hit.badness, hit.when) == (("seen quadratic runtime", "do quadratic runtime"), 0.5, "")


def test_the_worst_case_is_told_and_of_equally_bad_ones_the_last_by_name() -> None:
    found = cluster(ONE, node()).pods[0]
    looks = [
        (SimpleNamespace(case=SimpleNamespace(when=when)), bad and (bad, partial(told, when)))
        for when, bad in (("a", 2.0), ("b", 2.0), ("c", 1.0), ("d", None))
    ]
    (hit,) = pod_hits(found, None, iter(looks), graded())
    assert (hit.place, hit.badness, hit.words()) == (None, 2.0, ("seen b", "do b"))
    assert hit.when
    (alone,) = pod_hits(found, found.containers[0], iter(looks[:2]), graded())
    assert (alone.place, alone.when) == (0, "")
    assert list(pod_hits(found, None, iter(looks[3:]), graded())) == []


@pytest.mark.parametrize(
    ("sizes", "when", "added"),
    [
        ((2.0, 2.0), "", ""),
        ((2.0, 1.9), "", " These numbers hold if a; it is found in every other case too, with other numbers."),
        ((2.0, 0.5), "if a", " It is found in every other case too, with other numbers."),
        ((2.0, None), "if a", ""),
    ],
)
def test_what_holds_for_sure_is_as_grave_in_every_case(
    sizes: tuple[float | None, float | None], when: str, added: str
) -> None:
    looks = [
        (SimpleNamespace(case=SimpleNamespace(when=name)), size and (size, partial(told, name)))
        for name, size in zip("ab", sizes, strict=True)
    ]
    (hit,) = pod_hits(cluster(ONE, node()).pods[0], None, looks, graded((1.0, "high")))
    last = "b" if sizes[0] == sizes[1] else "a"
    assert (hit.when, hit.words()) == (when, (f"seen {last}{added}", f"do {last}"))


@pytest.mark.parametrize("to", ["v2+runtime", "v2", "runtime", "kubelet=1.35"])
def test_the_catalogue_knows_what_its_rules_are_about_and_how_grave_they_get(to: str) -> None:
    known = {(rule.id, rule.title): rule for rule in catalogue.RULES}
    found = [*recorded_audit(to).findings, *audited(recorded_blind(), "", to).findings]
    assert len({finding.rule for finding in found}) >= 7
    for finding in found:
        rule = known[finding.rule, finding.title]
        assert finding.subject.kind == rule.about
        assert SEVERITIES.index(finding.severity) >= SEVERITIES.index(rule.gravest)
